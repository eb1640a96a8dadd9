//! The cache operator as a program.

#[tokio::main]
async fn main() -> flyball::Result<()> {
    cache::program()
        .run(|settings| cache::operator(cache::directory::Absent, &settings.flags))
        .await
}
