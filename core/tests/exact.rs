//! What the whole fleet gets is what one bucket gives: real processes, a real cluster with replicas.

mod hammer;

use std::collections::HashMap;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use balde::{Acquire, Limiter, OnFailure};
use balde_testbed::{Cluster, ClusterOptions, redis, server_or_skip, tied};

/// Long enough that a slow machine changes nothing.
const DEADLINE: Duration = Duration::from_secs(20);
const READY: Duration = Duration::from_secs(30);

fn limiter(url: &str, name: &str, limits: &str) -> Limiter {
    let builder = Limiter::builder(name).limits(limits.parse().unwrap()).store(url.parse().unwrap());
    builder.deadline(DEADLINE).on_failure(OnFailure::Deny).build().unwrap()
}

fn cluster() -> Option<Cluster> {
    let options = ClusterOptions { replicas: 1, ..Default::default() };
    server_or_skip().map(|binary| Cluster::start(&binary, &options).unwrap())
}

/// Not a test of its own: the body of a child process of the tests below, which set its environment.
#[test]
fn child() {
    let Ok(url) = std::env::var("BALDE_TEST_URL") else { return };
    let var = |name: &str| std::env::var(name).unwrap();
    let (limits, tasks, calls): (String, usize, usize) =
        (var("BALDE_TEST_LIMITS"), var("BALDE_TEST_TASKS").parse().unwrap(), var("BALDE_TEST_CALLS").parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let admitted = runtime.block_on(async {
        let limiter = limiter(&url, "exact", &limits);
        limiter.ready(READY).await.unwrap();
        hammer::admitted(&limiter, tasks, calls).await
    });
    println!("admitted={admitted};");
}

/// Runs `processes` of [`child`] at once and returns how much they were admitted together.
fn fleet(url: &str, limits: &str, processes: usize, tasks: usize, calls: usize) -> u64 {
    let children: Vec<_> = (0..processes)
        .map(|_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["child", "--exact", "--nocapture"]).stdout(Stdio::piped());
            command.env("BALDE_TEST_URL", url).env("BALDE_TEST_LIMITS", limits);
            command.env("BALDE_TEST_TASKS", tasks.to_string()).env("BALDE_TEST_CALLS", calls.to_string());
            tied::spawn(command).unwrap()
        })
        .collect();
    let admitted = |mut child: std::process::Child| {
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert!(child.wait().unwrap().success(), "{out}");
        let figure = out.split("admitted=").nth(1).and_then(|rest| rest.split(';').next());
        figure.unwrap_or_else(|| panic!("no figure in {out}")).parse::<u64>().unwrap()
    };
    children.into_iter().map(admitted).sum()
}

/// The time of the server that owns the bucket, in microseconds.
fn server_time(cluster: &Cluster) -> u64 {
    let key = "balde:{exact:hot}";
    let server = cluster.master_of(balde_testbed::slot::of(key.as_bytes())).unwrap();
    let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(&mut server.connection().unwrap()).unwrap();
    seconds * 1_000_000 + micros
}

#[test]
fn eight_processes_share_one_bucket_exactly() {
    let Some(cluster) = cluster() else { return };
    assert_eq!(fleet(&cluster.url(), "1000/100d", 8, 64, 6), 1000);
}

#[test]
fn a_refilling_bucket_never_gives_more_than_its_rate() {
    let Some(cluster) = cluster() else { return };
    let before = server_time(&cluster);
    let admitted = fleet(&cluster.url(), "500/s burst 100", 4, 32, 60);
    let passed = server_time(&cluster) - before;
    let bound = 100 + 500 * passed / 1_000_000 + 1;
    assert!(admitted <= bound, "{admitted} of {bound} in {passed} us");
    assert!(admitted >= 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_keys_spread_over_the_masters() {
    let Some(cluster) = cluster() else { return };
    let limiter = limiter(&cluster.url(), "spread", "10/h");
    limiter.ready(READY).await.unwrap();
    let tasks: Vec<_> = (0..50)
        .map(|task| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                for i in 0..200 {
                    assert_eq!(limiter.acquire(format!("user {task}:{i}")).await.unwrap().remaining, 9);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let keys: HashMap<u16, u64> = cluster
        .masters()
        .unwrap()
        .iter()
        .map(|master| (master.port(), redis::cmd("DBSIZE").query(&mut master.connection().unwrap()).unwrap()))
        .collect();
    assert_eq!(keys.values().sum::<u64>(), 10_000);
    for keys in keys.values() {
        assert!((3000..=3700).contains(keys), "{keys} of 10,000 keys on one of three masters");
    }
}

#[tokio::test]
async fn a_redis_url_of_a_cluster_node_is_used_as_a_cluster() {
    let Some(cluster) = cluster() else { return };
    for node in cluster.nodes() {
        let limiter = limiter(&format!("redis://127.0.0.1:{}", node.port()), "node", "1000/d");
        for i in 0..50 {
            assert!(limiter.acquire(format!("{}:{i}", node.port())).await.unwrap().allowed);
        }
    }
}

#[tokio::test]
async fn callers_with_their_own_limits_share_the_bucket() {
    let Some(cluster) = cluster() else { return };
    let limiter = limiter(&cluster.url(), "plans", "10/h");
    let gold = "100/h".parse().unwrap();
    assert_eq!(limiter.acquire_with("k", Acquire::cost(4)).await.unwrap().remaining, 6);
    assert_eq!(limiter.acquire_with("k", Acquire::cost(5).limits(&gold)).await.unwrap().remaining, 1);
    assert!(!limiter.acquire_with("k", Acquire::cost(2)).await.unwrap().allowed);
    limiter.set_limits("20/h; 5/m".parse().unwrap()).unwrap();
    let both = limiter.peek("k").await.unwrap();
    assert_eq!((both.remaining, both.limit.to_string().as_str()), (1, "20/h"));
}
