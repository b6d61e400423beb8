use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use balde::{CallOutcome, CircuitBreaker, CircuitBreakerState as State, SlidingWindow};

use crate::{SECOND, breaker, fail, small, succeed};

const THREADS: u64 = 4;
const CALLS: u64 = 20_000;

/// Runs `work(thread, number)` on all threads at once, with another number for each call that looks random.
fn on_all_threads(work: impl Fn(u64, u64) + Sync) {
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                start.wait();
                let mut random = thread + 1;
                for _ in 0..CALLS {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    work(thread, random >> 33);
                }
            });
        }
    });
}

fn outcome(random: u64) -> CallOutcome {
    if random.is_multiple_of(3) { CallOutcome::Failure } else { CallOutcome::Success }
}

fn counts(breaker: &CircuitBreaker) -> (u64, u64, u64) {
    let seen = breaker.snapshot();
    (seen.calls, seen.failed_calls, seen.slow_calls)
}

/// Small windows, so that threads meet in every slot. Where all of one fail it opens, and is closed again at once: so
/// results of the generation before come late all the time.
#[test]
fn a_count_window_does_not_drift() {
    for size in [1, 2, 7, 10_000] {
        let config = small().sliding_window(SlidingWindow::Count(size)).minimum_number_of_calls(size);
        let (breaker, _) = breaker(&config.failure_rate_threshold(100));
        on_all_threads(|_, random| {
            if let Ok(permit) = breaker.try_acquire_permission() {
                permit.record(outcome(random));
            }
            breaker.transition_to_closed();
        });
        succeed(&breaker, size as usize);
        assert_eq!(counts(&breaker), (u64::from(size), 0, 0), "size {size}");
        breaker.reset();
        succeed(&breaker, size as usize - 1);
        assert_eq!(counts(&breaker), (u64::from(size) - 1, 0, 0), "size {size}");
    }
}

#[test]
fn a_full_count_window_holds_its_size_whatever_ends_at_once() {
    let config = small().sliding_window(SlidingWindow::Count(10_000)).minimum_number_of_calls(10_000);
    let (breaker, _) = breaker(&config);
    on_all_threads(|_, random| breaker.record(outcome(random), SECOND));
    assert_eq!(breaker.snapshot().calls, 10_000);
    let failed = breaker.snapshot().failed_calls;
    assert!((3_000..3_700).contains(&failed), "a third of them: {failed}");
}

#[test]
fn a_time_window_counts_every_call() {
    let config = small().sliding_window(SlidingWindow::Time(SECOND)).minimum_number_of_calls(1_000_000);
    let (breaker, _) = breaker(&config.slow_call_duration_threshold(SECOND));
    let (failed, slow) = (AtomicU64::new(0), AtomicU64::new(0));
    on_all_threads(|_, random| {
        failed.fetch_add(u64::from(outcome(random) == CallOutcome::Failure), Ordering::Relaxed);
        let dawdles = random.is_multiple_of(5);
        slow.fetch_add(u64::from(dawdles), Ordering::Relaxed);
        breaker.record(outcome(random), if dawdles { 2 * SECOND } else { SECOND });
    });
    assert_eq!(counts(&breaker), (THREADS * CALLS, failed.into_inner(), slow.into_inner()));
}

#[test]
fn the_call_that_completes_the_minimum_opens_it_whoever_it_is() {
    for window in [SlidingWindow::Count(THREADS as u32), SlidingWindow::Time(SECOND)] {
        let (breaker, _) = breaker(&small().sliding_window(window).minimum_number_of_calls(THREADS as u32));
        let (start, end) = (Barrier::new(THREADS as usize), Barrier::new(THREADS as usize));
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (breaker, start, end) = (&breaker, &start, &end);
                scope.spawn(move || {
                    for round in 0..2_000 {
                        start.wait();
                        if thread % 2 == 0 {
                            fail(breaker, 1)
                        } else {
                            succeed(breaker, 1)
                        }
                        if end.wait().is_leader() {
                            assert_eq!(breaker.state(), State::Open, "{window:?}, round {round}");
                            breaker.reset();
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn probes_in_are_probes_out() {
    let (breaker, clock) = breaker(&small());
    fail(&breaker, 4);
    clock.advance(SECOND);
    let (inside, admitted) = (AtomicU64::new(0), AtomicU64::new(0));
    on_all_threads(|_, _| {
        if let Ok(permit) = breaker.try_acquire_permission() {
            assert!(inside.fetch_add(1, Ordering::SeqCst) < 2);
            thread::yield_now();
            admitted.fetch_add(1, Ordering::Relaxed);
            inside.fetch_sub(1, Ordering::SeqCst);
            drop(permit);
        }
    });
    let refused = breaker.snapshot().not_permitted_calls;
    assert_eq!(admitted.into_inner() + refused, THREADS * CALLS);
    assert_eq!((breaker.state(), breaker.snapshot().probes), (State::HalfOpen, 0));
    breaker.try_acquire_permission().unwrap().success();
    breaker.try_acquire_permission().unwrap().success();
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn all_at_once_it_still_finds_its_way_back() {
    for window in [SlidingWindow::Count(4), SlidingWindow::Time(SECOND)] {
        let (breaker, clock) = breaker(&small().sliding_window(window));
        let transitions = Arc::new(AtomicU64::new(0));
        breaker.on_transition({
            let transitions = transitions.clone();
            move |transition| {
                assert_ne!(transition.from, transition.to);
                transitions.fetch_add(1, Ordering::Relaxed);
            }
        });
        on_all_threads(|thread, random| match random % 100 {
            0 if thread == 0 => breaker.transition_to_forced_open(),
            1 if thread == 0 => breaker.transition_to_disabled(),
            2..6 if thread == 0 => breaker.transition_to_closed(),
            6 => breaker.reset(),
            7 => breaker.open_until(SECOND),
            8..28 => clock.advance(SECOND / 5),
            kind => {
                if let Ok(permit) = breaker.try_acquire_permission() {
                    match kind % 4 {
                        0 => permit.failure(),
                        1 => drop(permit),
                        _ => permit.success(),
                    }
                }
            }
        });
        assert!(transitions.load(Ordering::Relaxed) > 100);
        assert_eq!(breaker.snapshot().probes, 0);
        breaker.reset();
        fail(&breaker, 3);
        assert_eq!(counts(&breaker), (3, 3, 0), "{window:?}");
        fail(&breaker, 1);
        clock.advance(SECOND);
        for _ in 0..2 {
            breaker.try_acquire_permission().unwrap().success();
        }
        assert_eq!(breaker.state(), State::Closed);
    }
}
