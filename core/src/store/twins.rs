//! What the public face cannot ask yet: many runs in one call, forced debits, calls that nobody wants any more, and
//! several keys in one call. In memory and on every server found the answers are the same, number by number.

use std::time::Duration;

use balde_testbed::redis::{Value, cmd};
use balde_testbed::{Server, servers_or_skip};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::{Memory, Place, Redis, ScriptClock, StoreUrl};
use crate::bucket::Run;
use crate::key::Keyspace;
use crate::limits::Limits;
use crate::runtime::Runtime;

const DEADLINE: Duration = Duration::from_secs(20);
const LIMITS: [&str; 6] =
    ["10/s burst 20", "1/d", "7/s; 20/m burst 30", "1000000/s burst 3", "3/7us; 10/s", "20/m; 5/h"];

fn run() -> impl Strategy<Value = Run> {
    let cost = prop_oneof![4 => 1..4_i64, 1 => Just(0), 1 => 0..100_i64, 1 => Just((1 << 53) - 1)];
    let count = prop_oneof![4 => Just(1_i64), 3 => 1..30_i64, 2 => -10..0_i64, 1 => Just(0), 1 => Just(1_i64 << 40), 1 => Just(-(1_i64 << 40))];
    let wait = prop_oneof![3 => Just(0_i64), 3 => 0..5_000_000_i64, 2 => Just(-1), 1 => -3_000_000..-1_i64, 1 => Just(1_i64 << 50)];
    let until = prop_oneof![4 => Just(0_i64), 1 => 1_000_000_000_000..1_000_100_000_000_i64];
    (cost, count, wait, until).prop_map(|(cost, count, wait, until)| Run { cost, count, wait, until })
}

#[tokio::test]
async fn many_runs_in_one_call() {
    let limits: Vec<Limits> = LIMITS.iter().map(|text| text.parse().unwrap()).collect();
    let clock = prop_oneof![3 => 0..1000_i64, 3 => 0..3_000_000_i64, 1 => 0..100_000_000_i64, 1 => -30_000_000..0_i64];
    let trace = prop::collection::vec((clock, 0..limits.len(), prop::collection::vec(run(), 1..6)), 200);
    let keyspace = Keyspace::new("balde", "runs").unwrap();
    for (seed, binary) in servers_or_skip().into_iter().enumerate() {
        let server = Server::start(&binary).unwrap();
        let StoreUrl(Place::Redis(servers)) = server.url().parse().unwrap() else { unreachable!() };
        let redis = Redis::new(servers, ScriptClock::Given, Runtime::new(None));
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed as u8; 32]);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        for case in 0..20 {
            let (memory, key) = (Memory::unbounded(), case.to_string());
            let mut now = 1_000_000_000_000;
            for (by, chosen, runs) in trace.new_tree(&mut runner).unwrap().current() {
                now += by;
                let limits = &limits[if case % 2 == 0 { case / 2 % LIMITS.len() } else { chosen }];
                let here = memory.call(key.as_bytes(), limits, now, &runs);
                let there = redis.call(keyspace.key(key.as_bytes()), limits, &runs, Some(now), None, DEADLINE).await;
                assert_eq!(Ok(here), there, "case {case} at {now}: {runs:?} under {limits} on {binary:?}");
            }
        }
    }
}

#[tokio::test]
async fn several_keys_in_one_call() {
    let packed = |numbers: &[f64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let (second, minute) = ([1e6, 1.0, 1e6, 2e6], [60e6, 1.0, 6e6, 60e6]);
    for binary in servers_or_skip() {
        let server = Server::start(&binary).unwrap();
        let mut connection = server.connection().unwrap();
        let _: () = cmd("RPUSH").arg("other").arg("x").query(&mut connection).unwrap();
        let source = format!("{}\n{}", include_str!("../../lua/clock_given.lua"), include_str!("../../lua/take.lua"));
        let answer: Value = cmd("EVAL")
            .arg(source)
            .arg(3)
            .arg(&["a", "other", "b"])
            .arg(packed(&second))
            .arg(packed(&[1.0, 1.0, 0.0, 0.0, 2.0, 1.0, 0.0, 0.0]))
            .arg(packed(&second))
            .arg(packed(&[1.0, 1.0, 0.0, 0.0]))
            .arg(packed(&[second, minute].concat()))
            .arg(packed(&[1.0, 5.0, 0.0, 0.0]))
            .arg(1_000_000)
            .query(&mut connection)
            .unwrap();
        let a = [0, 1, 0, 1_000_000];
        let other = [-1, 0, 2_000_000];
        let b = [0, 2, 0, 48_000_000];
        let expected = [&[1_000_000][..], &a, &other, &b].concat();
        assert_eq!(answer, Value::Array(expected.into_iter().map(Value::Int).collect()), "on {binary:?}");
    }
}
