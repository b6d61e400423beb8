//! Many tasks of one process that take from one bucket at once.

use balde::Limiter;

/// How much `tasks` tasks are admitted together that ask for a token of `hot` `calls` times each.
pub(crate) async fn admitted(limiter: &Limiter, tasks: usize, calls: usize) -> u64 {
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let mut admitted = 0;
                for _ in 0..calls {
                    admitted += u64::from(limiter.acquire("hot").await.unwrap().allowed);
                }
                admitted
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    sum
}
