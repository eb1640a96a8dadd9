//! The Application operator as a program, with its HTTP API.

#[tokio::main]
async fn main() -> flyball::Result<()> {
    flyball::run(application::operator_with_http_api()).await
}
