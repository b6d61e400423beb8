//! Calm in failure: what callers get when servers do not answer, in what time, and what the bucket shows afterwards.

use std::time::{Duration, Instant};

use balde::{Acquire, Limiter, OnFailure, Reason, Source};
use balde_testbed::{Cluster, ClusterOptions, Direction, Proxy, Server, redis, server_or_skip, slot};

/// The end of every wait for a condition.
const END: Duration = Duration::from_secs(60);

fn builder(url: &str, limits: &str) -> balde::Builder {
    Limiter::builder("calm").limits(limits.parse().unwrap()).store(url.parse().unwrap())
}

/// Waits until `limiter` says that `remaining` tokens are left, asking the server itself.
async fn remains(limiter: &Limiter, key: &str, remaining: u64) {
    let started = Instant::now();
    let mut last = None;
    while started.elapsed() < END {
        last = limiter.peek(key).await.ok().map(|decision| decision.remaining);
        if last == Some(remaining) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{last:?} tokens remain instead of {remaining}");
}

/// A limiter that reaches the server past every fault.
fn onlooker(server: &Server, limits: &str) -> Limiter {
    builder(&server.url(), limits).deadline(END).build().unwrap()
}

#[tokio::test]
async fn a_lost_reply_is_one_debit_and_never_sent_again() {
    let Some(binary) = server_or_skip() else { return };
    for policy in [OnFailure::Deny, OnFailure::Allow] {
        let server = Server::start(&binary).unwrap();
        let proxy = Proxy::start(server.port()).unwrap();
        let limiter = builder(&proxy.url(), "10/100d").on_failure(policy).deadline(Duration::from_millis(500));
        let limiter = limiter.build().unwrap();
        limiter.ready(END).await.unwrap();
        let before = proxy.requests("EVALSHA");
        proxy.drop_reply_to(1, b"EVALSHA");
        let decision = limiter.acquire("k").await.unwrap();
        assert_eq!((decision.source, decision.reason), (Source::Fallback, Some(Reason::Timeout)));
        assert_eq!(decision.allowed, policy == OnFailure::Allow);
        assert_eq!(proxy.requests("EVALSHA") - before, 1);
        // Nobody knows, so nobody gives it back.
        remains(&onlooker(&server, "10/100d"), "k", 9).await;
    }
}

#[tokio::test]
async fn a_late_debit_that_nobody_used_is_given_back_and_one_that_was_used_is_kept() {
    let Some(binary) = server_or_skip() else { return };
    // Local takes the debit back, and settles what it admitted.
    for (policy, left) in [(OnFailure::Deny, 10), (OnFailure::Allow, 7), (OnFailure::Local, 7)] {
        let server = Server::start(&binary).unwrap();
        let proxy = Proxy::start(server.port()).unwrap();
        let limiter = builder(&proxy.url(), "10/100d").on_failure(policy).fleet(1).deadline(Duration::from_millis(300));
        let limiter = limiter.build().unwrap();
        limiter.ready(END).await.unwrap();
        let _ = limiter.acquire_with("other", Acquire::cost(0)).await.unwrap();
        proxy.hold(Direction::ToClient);
        let decision = limiter.acquire_with("k", Acquire::cost(3)).await.unwrap();
        assert_eq!((decision.allowed, decision.source), (policy != OnFailure::Deny, Source::Fallback));
        let onlooker = onlooker(&server, "10/100d");
        remains(&onlooker, "k", 7).await;
        proxy.heal().unwrap();
        remains(&onlooker, "k", left).await;
        // The connection is used again, and what the bucket shows stays so.
        remains(&limiter, "k", left).await;
    }
}

#[tokio::test]
async fn a_caller_who_goes_away_leaves_no_debit_behind() {
    let Some(binary) = server_or_skip() else { return };
    let server = Server::start(&binary).unwrap();
    let proxy = Proxy::start(server.port()).unwrap();
    let limiter = builder(&proxy.url(), "10/100d").deadline(END).build().unwrap();
    limiter.ready(END).await.unwrap();
    proxy.hold(Direction::ToClient);
    let onlooker = onlooker(&server, "10/100d");
    let call = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire_with("k", Acquire::cost(4)).await }
    });
    remains(&onlooker, "k", 6).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    proxy.heal().unwrap();
    remains(&onlooker, "k", 10).await;
}

#[tokio::test]
async fn a_waiter_who_goes_away_gives_its_place_back() {
    let Some(binary) = server_or_skip() else { return };
    let server = Server::start(&binary).unwrap();
    let limiter = builder(&server.url(), "1/h burst 2").deadline(END).build().unwrap();
    assert_eq!(limiter.acquire_with("k", Acquire::cost(2)).await.unwrap().remaining, 0);
    let waiter = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire_with("k", Acquire::cost(2).max_wait(Duration::from_secs(86_400))).await }
    });
    let promised = |decision: balde::Decision| decision.reset_after > Duration::from_secs(3 * 3600);
    while !promised(limiter.peek("k").await.unwrap()) {
        tokio::task::yield_now().await;
    }
    waiter.abort();
    let _ = waiter.await;
    let started = Instant::now();
    while promised(limiter.peek("k").await.unwrap()) {
        assert!(started.elapsed() < END, "the promise stays");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_take_that_comes_too_late_is_skipped_by_the_server() {
    let Some(binary) = server_or_skip() else { return };
    let server = Server::start(&binary).unwrap();
    let proxy = Proxy::start(server.port()).unwrap();
    let limiter = builder(&proxy.url(), "10/100d").on_failure(OnFailure::Allow).deadline(Duration::from_millis(200));
    let limiter = limiter.build().unwrap();
    limiter.ready(END).await.unwrap();
    // The server's clock is known from an answer.
    while limiter.acquire_with("k", Acquire::cost(1)).await.unwrap().source != Source::Store {}
    proxy.hold(Direction::ToServer);
    assert_eq!(limiter.acquire_with("late", Acquire::cost(5)).await.unwrap().source, Source::Fallback);
    // By the server's clock its time is over, and a little more.
    let mut connection = server.connection().unwrap();
    let mut time = || -> (u64, u64) { redis::cmd("TIME").query(&mut connection).unwrap() };
    let start = time();
    while time().0 < start.0 + 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let seen = proxy.requests("EVALSHA");
    proxy.heal().unwrap();
    let onlooker = onlooker(&server, "10/100d");
    while server.commandstats("evalsha").unwrap().calls < seen {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    remains(&onlooker, "late", 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_that_is_cut_off_admits_its_share_and_settles_it() {
    let Some(binary) = server_or_skip() else { return };
    let server = Server::start(&binary).unwrap();
    let proxy = Proxy::start(server.port()).unwrap();
    let fleet: Vec<Limiter> = (0..4)
        .map(|_| {
            let builder = builder(&proxy.url(), "100/100d").on_failure(OnFailure::Local).fleet(4);
            builder.deadline(Duration::from_millis(200)).build().unwrap()
        })
        .collect();
    for process in &fleet {
        process.ready(END).await.unwrap();
        assert_eq!(process.acquire_with("k", Acquire::cost(5)).await.unwrap().source, Source::Store);
    }
    proxy.refuse().unwrap();
    proxy.reset();
    let mut admitted = 0;
    for process in &fleet {
        let mut taken = 0;
        for _ in 0..30 {
            let decision = process.acquire("k").await.unwrap();
            assert_eq!(decision.source, Source::Fallback);
            taken += u64::from(decision.allowed);
        }
        assert_eq!(taken, 25, "a share is a quarter");
        assert_eq!(process.stats().fallback_admitted, 25);
        admitted += taken;
    }
    assert_eq!(admitted, 100);
    proxy.heal().unwrap();
    // 20 were taken before: the settled 100 find 80, and the bucket is not below 0 by it.
    remains(&onlooker(&server, "100/100d"), "k", 0).await;
    let refill = onlooker(&server, "100/100d").peek("k").await.unwrap().reset_after;
    assert!(refill <= Duration::from_secs(100 * 86_400), "below 0: {refill:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_dead_master_degrades_its_own_keys_only() {
    let Some(binary) = server_or_skip() else { return };
    let cluster = Cluster::start(&binary, &ClusterOptions::default()).unwrap();
    let limiter = builder(&cluster.url(), "1000000/d").deadline(Duration::from_millis(300)).build().unwrap();
    limiter.ready(END).await.unwrap();
    let slot_of = |key: &str| slot::of(format!("balde:{{calm:{key}}}").as_bytes());
    let dead = cluster.master_of(slot_of("0")).unwrap();
    let owned = |key: &str| cluster.master_of(slot_of(key)).unwrap().port() == dead.port();
    let keys: Vec<(String, bool)> = (0..60).map(|i| (i.to_string(), owned(&i.to_string()))).collect();
    dead.freeze().unwrap();
    let (mut theirs, mut others) = (0, 0);
    for (key, of_dead) in keys {
        let decision = limiter.acquire(&key).await.unwrap();
        assert!(decision.allowed);
        if of_dead {
            assert_eq!(decision.source, Source::Fallback, "{key}");
            theirs += 1;
        } else {
            assert_eq!(decision.source, Source::Store, "{key}: {decision:?}");
            others += 1;
        }
    }
    assert!(theirs > 0 && others > 0);
    dead.thaw().unwrap();
    let started = Instant::now();
    while limiter.acquire("0").await.unwrap().source != Source::Store {
        assert!(started.elapsed() < END, "recovery goes unnoticed");
    }
}
