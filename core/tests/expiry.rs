//! Every key expires, right when its bucket would be full again, whatever happens to the client.

use std::time::Duration;

use balde::{Acquire, Limiter, OnFailure};
use balde_testbed::redis::{Connection, cmd};
use balde_testbed::{Server, servers_or_skip, tied, until};
use std::process::{Command, Stdio};

const DEADLINE: Duration = Duration::from_secs(20);

fn limiter(url: &str, name: &str, limits: &str) -> Limiter {
    let builder = Limiter::builder(name).limits(limits.parse().unwrap()).store(url.parse().unwrap());
    builder.deadline(DEADLINE).on_failure(OnFailure::Deny).build().unwrap()
}

fn pttl(connection: &mut Connection, key: &str) -> i64 {
    cmd("PTTL").arg(key).query(connection).unwrap()
}

#[tokio::test]
async fn a_key_lives_until_its_bucket_is_full_and_a_little_longer() {
    for binary in servers_or_skip() {
        let server = Server::start(&binary).unwrap();
        let mut connection = server.connection().unwrap();
        // The limits, the cost, and the milliseconds that the cost takes to come back.
        for (name, limits, cost, fill) in [
            ("minute", "6/m", 1, 10_000),
            ("x1", "1/15s burst 3", 3, 45_000),
            ("x2", "1000/m burst 1001", 3, 180),
            ("x4", "5/h", 5, 3_600_000),
            ("two", "10/s; 100/d", 4, 4 * 864_000),
            ("slow", "1/100d burst 500", 500, 500 * 100 * 86_400_000_i64),
        ] {
            let limiter = limiter(&server.url(), name, limits);
            let decision = limiter.acquire_with("k", Acquire::cost(cost)).await.unwrap();
            assert!(decision.allowed);
            assert_eq!(decision.reset_after, Duration::from_millis(fill as u64), "{name}");
            let key = format!("balde:{{{name}:k}}");
            let left = pttl(&mut connection, &key);
            // It counts down since the take, and a slow machine may take its time to ask.
            assert!(left <= fill + 1, "{name} on {binary:?}: {left} of {fill} ms");
            assert!(left > fill - 20_000 && (left > 0 || fill < 20_000), "{name} on {binary:?}: {left} of {fill} ms");
        }
    }
}

#[tokio::test]
async fn an_expired_bucket_is_a_full_one() {
    for binary in servers_or_skip() {
        let server = Server::start(&binary).unwrap();
        let limiter = limiter(&server.url(), "short", "5/100ms");
        assert_eq!(limiter.acquire_with("k", Acquire::cost(5)).await.unwrap().remaining, 0);
        let mut connection = server.connection().unwrap();
        until(Duration::from_secs(30), "the key to expire", || match pttl(&mut connection, "balde:{short:k}") {
            -2 => Ok(()),
            left => Err(format!("{left} ms left")),
        })
        .unwrap();
        assert_eq!(limiter.peek("k").await.unwrap().remaining, 5);
    }
}

#[tokio::test]
async fn a_key_that_lost_its_expiry_gets_it_back_with_the_next_take() {
    for binary in servers_or_skip() {
        let server = Server::start(&binary).unwrap();
        let limiter = limiter(&server.url(), "kept", "10/h");
        assert!(limiter.acquire("k").await.unwrap().allowed);
        let mut connection = server.connection().unwrap();
        let _: i64 = cmd("PERSIST").arg("balde:{kept:k}").query(&mut connection).unwrap();
        assert_eq!(pttl(&mut connection, "balde:{kept:k}"), -1);
        assert!(limiter.acquire("k").await.unwrap().allowed);
        assert!(pttl(&mut connection, "balde:{kept:k}") > 0);
    }
}

#[tokio::test]
async fn looking_and_giving_back_leave_no_key() {
    for binary in servers_or_skip() {
        let server = Server::start(&binary).unwrap();
        let limiter = limiter(&server.url(), "looks", "10/h; 3/m");
        for _ in 0..100 {
            assert_eq!(limiter.acquire_with("k", Acquire::cost(0)).await.unwrap().remaining, 3);
        }
        let dear = limiter.acquire_with("k", Acquire::cost(11)).await.unwrap();
        assert_eq!(
            (dear.allowed, dear.retry_after, dear.reason.unwrap().as_str()),
            (false, None, "cost_exceeds_capacity")
        );
        assert_eq!(limiter.refund("k", 5).await.unwrap(), 3);
        let keys = |connection: &mut Connection| cmd("DBSIZE").query::<i64>(connection).unwrap();
        let mut connection = server.connection().unwrap();
        assert_eq!(keys(&mut connection), 0);
        assert!(limiter.acquire("k").await.unwrap().allowed);
        assert_eq!(keys(&mut connection), 1);
        assert_eq!(limiter.refund("k", 1).await.unwrap(), 3);
        assert_eq!(keys(&mut connection), 0, "full is the same as no bucket");
        assert!(limiter.acquire("k").await.unwrap().allowed);
        limiter.reset("k").await.unwrap();
        assert_eq!(keys(&mut connection), 0);
    }
}

/// Not a test of its own: the body of a child process that takes until it is killed.
#[test]
fn child() {
    let Ok(url) = std::env::var("BALDE_TEST_URL") else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let limiter = limiter(&url, "killed", "1000/h; 100000/d");
        for i in 0_u64.. {
            let _ = limiter.acquire(i.to_string()).await;
        }
    });
}

#[test]
fn clients_that_die_in_mid_call_leave_no_key_without_expiry() {
    for binary in servers_or_skip() {
        let server = Server::start(&binary).unwrap();
        let mut connection = server.connection().unwrap();
        for round in 1..=5_i64 {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["child", "--exact"]).stdout(Stdio::null()).env("BALDE_TEST_URL", server.url());
            let mut child = tied::spawn(command).unwrap();
            until(Duration::from_secs(60), "the child to take", || {
                let keys: i64 = cmd("DBSIZE").query(&mut connection).unwrap();
                if keys >= 50 * round { Ok(()) } else { Err(format!("{keys} keys")) }
            })
            .unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let keys: Vec<String> = cmd("KEYS").arg("*").query(&mut connection).unwrap();
        assert!(keys.len() >= 50);
        for key in keys {
            assert!(pttl(&mut connection, &key) != -1, "{key} would stay for ever");
        }
    }
}
