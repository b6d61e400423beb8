use std::future::{Future, pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

use balde::{CallError, CallNotPermitted, CircuitBreakerState as State};

use crate::{SECOND, breaker, fail, small};

#[test]
fn a_call_counts_by_its_result() {
    let (breaker, _) = breaker(&small());
    assert_eq!(breaker.call(|| Ok::<_, ()>(1)), Ok(1));
    assert_eq!(breaker.call(|| Err::<(), _>("down")), Err(CallError::Failed("down")));
    assert_eq!((breaker.snapshot().calls, breaker.snapshot().failed_calls), (2, 1));
    fail(&breaker, 2);
    let refused = breaker.call(|| -> Result<(), ()> { unreachable!("it must not be called") }).unwrap_err();
    assert!(matches!(refused, CallError::NotPermitted(CallNotPermitted { state: State::Open, .. })));
}

#[test]
fn a_panic_counts_as_a_failure_and_goes_on() {
    let (breaker, clock) = breaker(&small());
    fail(&breaker, 4);
    clock.advance(SECOND);
    let panicked = catch_unwind(AssertUnwindSafe(|| breaker.call(|| -> Result<(), ()> { panic!("boom") })));
    assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "boom");
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn the_breaker_may_be_used_within_a_call() {
    let (breaker, _) = breaker(&small());
    let inner = breaker.call(|| {
        breaker.transition_to_forced_open();
        breaker.call(|| Ok::<_, ()>(()))
    });
    assert!(matches!(inner, Err(CallError::Failed(CallError::NotPermitted(_)))));
    assert_eq!(breaker.state(), State::ForcedOpen);
}

#[tokio::test]
async fn futures_count_likewise() {
    let (breaker, clock) = breaker(&small());
    assert_eq!(breaker.call_async(|| ready(Ok::<_, ()>(1))).await, Ok(1));
    assert_eq!(breaker.call_async(|| ready(Err::<(), _>(2))).await, Err(CallError::Failed(2)));
    fail(&breaker, 2);
    assert!(breaker.call_async(|| ready(Ok::<_, ()>(1))).await.is_err());
    clock.advance(SECOND);
    let panicking = tokio::spawn({
        let breaker = breaker.clone();
        async move {
            let call = || async {
                tokio::task::yield_now().await;
                if breaker.state() == State::HalfOpen { panic!("boom") } else { Ok::<(), ()>(()) }
            };
            breaker.call_async(call).await
        }
    });
    assert!(panicking.await.unwrap_err().is_panic());
    assert_eq!(breaker.state(), State::Open);
}

#[tokio::test]
async fn a_cancelled_call_counts_for_nothing() {
    let (breaker, clock) = breaker(&small());
    fail(&breaker, 4);
    clock.advance(SECOND);
    {
        let mut hung = Box::pin(breaker.call_async(pending::<Result<(), ()>>));
        assert!(is_pending(hung.as_mut()).await);
        assert_eq!(breaker.snapshot().probes, 1);
    }
    assert_eq!((breaker.snapshot().probes, breaker.snapshot().calls), (0, 0));
    assert_eq!(breaker.state(), State::HalfOpen);
}

/// Whether the future still has to wait after one poll.
async fn is_pending(mut future: Pin<&mut impl Future>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
}
