//! The Application operator as a program, with its HTTP face.

#[tokio::main]
async fn main() -> flyball::Result<()> {
    flyball::run(application::operator().task("http", application::face::run)).await
}
