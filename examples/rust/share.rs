//! Several processes take from one bucket on a server or cluster, all at once; together they get what one bucket gives.
//! `cargo run -p balde-examples --bin share -- STORE [PROCESSES] [CAPACITY]`

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use balde::{Limiter, OnFailure, StoreUrl};

const TASKS: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let store: StoreUrl = args.next().ok_or("give the URL of a store, such as redis://localhost")?.parse()?;
    let processes: usize = args.next().map_or(Ok(4), |n| n.parse())?;
    let capacity: u64 = args.next().map_or(Ok(1000), |n| n.parse())?;
    // No refill to speak of, so that the sum must come out even.
    let limiter = Limiter::builder("share").limits(format!("{capacity}/100d").parse()?).store(store.clone());
    // Here a server that does not answer must not pass for one that admits.
    let limiter = limiter.deadline(Duration::from_secs(10)).on_failure(OnFailure::Deny).build()?;
    let runtime = tokio::runtime::Runtime::new()?;

    if std::env::var_os("BALDE_SHARE_CHILD").is_some() {
        println!("{}", runtime.block_on(take_all(limiter))?);
        return Ok(());
    }
    runtime.block_on(limiter.reset("bucket"))?;
    println!("{processes} processes with {TASKS} tasks each take from one bucket of {capacity} tokens on {store}");
    let program = std::env::current_exe()?;
    let children: Vec<_> = (0..processes)
        .map(|_| {
            let mut child = Command::new(&program);
            child.args(std::env::args().skip(1)).env("BALDE_SHARE_CHILD", "1").stdout(Stdio::piped());
            child.spawn()
        })
        .collect::<io::Result<_>>()?;
    let mut sum = 0;
    for (i, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output()?;
        let admitted: u64 = String::from_utf8(output.stdout)?.trim().parse()?;
        println!("  process {}: {admitted} admitted", i + 1);
        sum += admitted;
    }
    runtime.block_on(limiter.reset("bucket"))?;
    println!("together: {sum} of {capacity}{}", if sum == capacity { ", exactly" } else { "" });
    if sum == capacity { Ok(()) } else { Err("the sum is not the capacity".into()) }
}

/// Takes with every task until the bucket is empty, and returns how much this process got.
async fn take_all(limiter: Limiter) -> Result<u64, Box<dyn std::error::Error>> {
    limiter.ready(Duration::from_secs(10)).await?;
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let mut admitted = 0;
                while limiter.acquire("bucket").await?.allowed {
                    admitted += 1;
                }
                Ok::<u64, balde::Error>(admitted)
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await??;
    }
    Ok(sum)
}
