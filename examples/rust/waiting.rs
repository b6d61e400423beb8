//! A worker that calls a partner's API no faster than it may: each call waits for its own tokens, in line.
//! `cargo run -p balde-examples --bin waiting`

use std::time::{Duration, Instant};

use balde::{Acquire, Limiter};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), balde::Error> {
    let limiter = Limiter::builder("partner").limits("20/s burst 1".parse()?).build()?;
    let patient = Acquire::cost(1).max_wait(Duration::from_secs(1));

    let started = Instant::now();
    for job in 1..=5 {
        let decision = limiter.acquire_with("partner-api", patient.clone()).await?;
        assert!(decision.allowed, "five jobs need a fifth of a second, and each may wait a whole one");
        println!("job {job} after {:?} (waited {:?})", started.elapsed(), decision.wait);
    }

    // What would have to wait longer than it may is told at once, and takes nothing.
    let hurried = limiter.acquire_with("partner-api", Acquire::cost(1)).await?;
    println!("without waiting: allowed = {}, try again in {:?}", hurried.allowed, hurried.retry_after);
    Ok(())
}
