//! Asks for tokens until a bucket is empty. `cargo run -p balde-examples --bin quickstart [STORE]`

use balde::Limiter;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "memory:".to_string());
    let limiter = Limiter::builder("quickstart").limits("3/m".parse()?).store(store.parse()?).build()?;
    limiter.ready(std::time::Duration::from_secs(5)).await?;

    for request in 1..=4 {
        let decision = limiter.acquire("user:42").await?;
        match decision.retry_after {
            _ if decision.allowed => println!("request {request}: go on, {} left", decision.remaining),
            Some(after) => println!("request {request}: too many, try again in {:.1} s", after.as_secs_f64()),
            None => println!("request {request}: never"),
        }
    }
    limiter.reset("user:42").await?;
    limiter.close();
    Ok(())
}
