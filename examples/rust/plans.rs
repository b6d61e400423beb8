//! Customers with different plans on one limiter, and a test of them without sleeping.
//! `cargo run -p balde-examples --bin plans`

use std::sync::Arc;
use std::time::Duration;

use balde::{Acquire, Limiter, Limits, ManualClock};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), balde::Error> {
    let clock = Arc::new(ManualClock::new());
    let free: Limits = "2/s; 5/h".parse()?;
    let gold: Limits = "10/s; 1000/h".parse()?;
    let limiter = Limiter::builder("plans").limits(free).clock(clock.clone()).build()?;

    let mut admitted = (0, 0);
    for _ in 0..60 {
        admitted.0 += u32::from(limiter.acquire("bob").await?.allowed);
        admitted.1 += u32::from(limiter.acquire_with("ann", Acquire::cost(1).limits(&gold)).await?.allowed);
        clock.advance(Duration::from_millis(500));
    }
    println!("in half a minute bob (free) got {}, ann (gold) got {}", admitted.0, admitted.1);
    assert_eq!(admitted, (5, 60));

    // Bob upgrades: what he has used stays used, and comes back at the new rate from now on.
    let upgraded = limiter.peek_with("bob", Acquire::cost(1).limits(&gold)).await?;
    println!("bob on gold has {} now, and {} holds him back", upgraded.remaining, upgraded.limit);
    Ok(())
}
