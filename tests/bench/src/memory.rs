//! What a decision in this process costs: `memory:` beside governor's keyed limiter on dashmap.

use std::fmt::Write;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use balde::Limiter;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::Failure;
use crate::random::Random;
use crate::stats::{Spread, ratio};
use crate::table::{Table, verdict};

const USERS: usize = 20_000;
const GOAL: f64 = 1.0;

/// Who asks, and for how much: `rate` tokens a second, at most `burst` at once.
struct Workload {
    title: &'static str,
    users: usize,
    rate: u32,
    burst: u32,
}

const WORKLOADS: [Workload; 4] = [
    Workload { title: "random keys, mostly full again", users: USERS, rate: 1_000, burst: 1_000 },
    Workload { title: "random keys, never full again", users: USERS, rate: 10, burst: 1_000_000 },
    Workload { title: "one hot key, mostly denied", users: 1, rate: 10, burst: 20 },
    Workload { title: "one hot key, always admitted", users: 1, rate: 1_000_000, burst: 1_000_000_000 },
];

/// The two limiters of a workload with their own state, and what was measured of them.
struct Match<'a> {
    workload: &'a Workload,
    threads: usize,
    balde: Limiter,
    governor: DefaultKeyedRateLimiter<String>,
    /// Nanoseconds a decision, and how many were admitted: balde first.
    cost: [Vec<f64>; 2],
    admitted: [u64; 2],
}

/// Measures all workloads with one thread and with two, everything interleaved.
pub(crate) fn report(quick: bool) -> Result<String, Failure> {
    let (rounds, decisions) = if quick { (3, 10_000) } else { (21, 400_000) };
    eprintln!("measuring memory:");
    let mut matches = Vec::new();
    for workload in &WORKLOADS {
        for threads in [1, 2] {
            matches.push(Match::new(workload, threads)?);
        }
    }
    let names: Vec<String> = (0..USERS).map(|user| format!("user:{user}")).collect();
    for round in 0..rounds {
        for each in &mut matches {
            each.play(round, &names, decisions);
        }
    }

    let mut table =
        Table::new(&["", "threads", "balde ns", "governor ns", "ratio", "goal", "balde admits", "governor admits"]);
    for each in &matches {
        table.row(each.row(rounds * decisions));
    }
    let mut text = String::new();
    write!(
        text,
        "# Decisions in this process\n\nNanoseconds from call to answer as each thread sees it, medians (and quartiles) \
         of {rounds} interleaved rounds of {decisions} decisions a thread; ratios are taken round by round. governor: keyed, dashmap, \
         quanta clock, `String` keys, as it comes.\n\n{table}"
    )?;
    Ok(text)
}

impl<'a> Match<'a> {
    fn new(workload: &'a Workload, threads: usize) -> Result<Self, Failure> {
        let Workload { rate, burst, .. } = *workload;
        let limits = format!("{rate}/s burst {burst}").parse()?;
        let quota = Quota::per_second(NonZeroU32::new(rate).ok_or("no rate")?);
        Ok(Match {
            workload,
            threads,
            balde: Limiter::builder("bench").limits(limits).build()?,
            governor: RateLimiter::dashmap(quota.allow_burst(NonZeroU32::new(burst).ok_or("no burst")?)),
            cost: Default::default(),
            admitted: [0; 2],
        })
    }

    /// One round: each limiter decides the same requests, the one that begins changing from round to round.
    fn play(&mut self, round: usize, names: &[String], decisions: usize) {
        let requests: Vec<Vec<&String>> = (0..self.threads)
            .map(|thread| {
                let mut random = Random::seeded((round * self.threads + thread) as u64);
                (0..decisions).map(|_| &names[random.below(self.workload.users)]).collect()
            })
            .collect();
        for turn in 0..2 {
            let who = (round + turn) % 2;
            let (nanos, admitted) = match who {
                0 => timed(&requests, |key| self.balde.try_acquire_local(key).is_some_and(|decision| decision.allowed)),
                _ => timed(&requests, |key| self.governor.check_key(key).is_ok()),
            };
            self.cost[who].push(nanos / decisions as f64);
            self.admitted[who] += admitted;
        }
    }

    fn row(&self, decisions: usize) -> [String; 8] {
        let spread = self.cost.each_ref().map(|cost| Spread::of(cost));
        let ratio = ratio(&self.cost[0], &self.cost[1]);
        let cost = spread.map(|Spread { low, median, high }| format!("{median:.1} ({low:.1}-{high:.1})"));
        let all = (decisions * self.threads) as f64;
        let share = self.admitted.map(|admitted| format!("{:.1} %", 100.0 * admitted as f64 / all));
        let ([balde, governor], [ours, theirs]) = (cost, share);
        let (title, threads) = (self.workload.title.to_string(), self.threads.to_string());
        [title, threads, balde, governor, format!("{ratio:.2}"), verdict(ratio, GOAL), ours, theirs]
    }
}

/// Nanoseconds that the threads took, on average, for a list of requests each, and how many were admitted.
fn timed(requests: &[Vec<&String>], decide: impl Fn(&String) -> bool + Sync) -> (f64, u64) {
    let start = Barrier::new(requests.len());
    let list = |list: &[&String]| {
        start.wait();
        let begun = Instant::now();
        let admitted = list.iter().filter(|key| black_box(decide(black_box(key)))).count();
        (begun.elapsed().as_nanos() as f64, admitted as u64)
    };
    let total = thread::scope(|scope| {
        let threads: Vec<_> = requests.iter().map(|requests| scope.spawn(|| list(requests))).collect();
        let each =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        each.fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });
    (total.0 / requests.len() as f64, total.1)
}
