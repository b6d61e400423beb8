//! The two copies of the decision are twins: bucket.rs in memory and take.lua on every server found give the same
//! answers, step by step, over random traces of many limits, clocks that step, refunds, resets and changes of limits.

use balde::{Acquire, Limits, Simulation, StoreUrl};
use balde_testbed::{Cluster, ClusterOptions, Server, server_or_skip, servers_or_skip};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::time::Duration;

/// One step of a trace.
#[derive(Debug, Clone)]
enum Step {
    Acquire { key: u8, cost: u64, max_wait: u64, own: Option<usize> },
    Peek { key: u8, cost: u64 },
    Refund { key: u8, tokens: u64 },
    Reset { key: u8 },
    Limits(usize),
    Clock(i64),
}

/// Limits that share periods, so that callers with different ones meet in a bucket.
const LIMITS: [&str; 14] = [
    "1/s",
    "10/s burst 20",
    "10/s burst 3",
    "7/s; 20/m burst 30",
    "20/m; 7/s; 1000/d",
    "3/m",
    "1/d",
    "1000000/s",
    "999999/s burst 5; 1/7us burst 1000",
    "1000/d burst 5; 11/h",
    "13/1500ms burst 17",
    "999999999999999/d",
    "4503599627370496/us; 1/s",
    "1/s burst 3; 2/2s; 3/3s; 4/4s; 5/5s",
];

fn step() -> impl Strategy<Value = Step> {
    let key = 0..3_u8;
    let cost = prop_oneof![4 => 1..4_u64, 2 => 0..40_u64, 1 => Just(1_000_000_u64), 1 => Just((1 << 53) - 1)];
    let wait = prop_oneof![3 => Just(0_u64), 2 => 0..3_000_000_u64, 1 => 0..80_000_000_000_u64];
    let clock = prop_oneof![
        3 => 0..3_i64,
        4 => 0..2_000_000_i64,
        2 => 0..100_000_000_i64,
        1 => 0..200_000_000_000_i64,
        1 => -9_999_999..0_i64,
        1 => -10_000_002..-9_999_998_i64,
        1 => -90_000_000_000..-10_000_001_i64,
    ];
    let own = prop_oneof![4 => Just(None), 1 => (0..LIMITS.len()).prop_map(Some)];
    prop_oneof![
        8 => (key.clone(), cost.clone(), wait, own).prop_map(|(key, cost, max_wait, own)| Step::Acquire { key, cost, max_wait, own }),
        2 => (key.clone(), cost.clone()).prop_map(|(key, cost)| Step::Peek { key, cost }),
        2 => (key.clone(), cost).prop_map(|(key, tokens)| Step::Refund { key, tokens }),
        1 => key.prop_map(|key| Step::Reset { key }),
        1 => (0..LIMITS.len()).prop_map(Step::Limits),
        6 => clock.prop_map(Step::Clock),
    ]
}

/// Plays a trace on one store and writes down every answer.
async fn answers(store: &StoreUrl, name: &str, limits: &[Limits], steps: &[Step]) -> Vec<String> {
    let mut simulation = Simulation::open(store, name, limits[0].clone()).await.unwrap();
    let (mut answers, mut now) = (Vec::with_capacity(steps.len()), 2_000_000_000_000_u64);
    for step in steps {
        let answer = match step {
            Step::Acquire { key, cost, max_wait, own } => {
                let mut request = Acquire::cost(*cost).max_wait(Duration::from_micros(*max_wait));
                if let Some(own) = own {
                    request = request.limits(&limits[*own]);
                }
                format!("{:?}", simulation.acquire(now, &[*key], &request).await)
            }
            Step::Peek { key, cost } => format!("{:?}", simulation.peek(now, &[*key], *cost).await),
            Step::Refund { key, tokens } => format!("{:?}", simulation.refund(now, &[*key], *tokens).await),
            Step::Reset { key } => format!("{:?}", simulation.reset(now, &[*key]).await),
            Step::Limits(i) => {
                simulation.set_limits(limits[*i].clone());
                String::new()
            }
            Step::Clock(by) => {
                now = now.saturating_add_signed(*by);
                String::new()
            }
        };
        answers.push(answer);
    }
    simulation.close().await.unwrap();
    answers
}

/// The same random trace in memory and on a server, compared answer by answer.
async fn compare(url: &str, seed: u8, cases: usize, length: usize) {
    let url: StoreUrl = url.parse().unwrap();
    let limits: Vec<Limits> = LIMITS.iter().map(|text| text.parse().unwrap()).collect();
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]));
    let trace = prop::collection::vec(step(), length);
    for case in 0..cases {
        let steps = trace.new_tree(&mut runner).unwrap().current();
        let mut limits = limits.clone();
        limits.rotate_left(case % LIMITS.len());
        let here = answers(&StoreUrl::memory(), "twins", &limits, &steps).await;
        let there = answers(&url, &format!("twins-{seed}-{case}"), &limits, &steps).await;
        for (i, (here, there)) in here.iter().zip(&there).enumerate() {
            let before = &steps[i.saturating_sub(12)..=i];
            assert_eq!(here, there, "seed {seed} case {case} step {i}, after {before:?} from {}", limits[0]);
        }
        assert!(here.iter().any(|answer| answer.contains("allowed: true")));
    }
}

#[tokio::test]
async fn random_traces_on_every_server_version() {
    for (i, binary) in servers_or_skip().into_iter().enumerate() {
        let server = Server::start(&binary).unwrap();
        compare(&server.url(), i as u8, 28, 400).await;
        let keys: i64 = balde_testbed::redis::cmd("DBSIZE").query(&mut server.connection().unwrap()).unwrap();
        assert_eq!(keys, 0, "a closed simulation leaves nothing behind on {binary:?}");
    }
}

#[tokio::test]
async fn random_traces_on_a_cluster() {
    let Some(binary) = server_or_skip() else { return };
    let cluster = Cluster::start(&binary, &ClusterOptions::default()).unwrap();
    compare(&cluster.url(), 99, 14, 300).await;
}
