//! Calls made under the breaker's eye.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;

use super::CircuitBreaker;
use super::permit::{CallNotPermitted, CallOutcome, CallPermit};

impl CircuitBreaker {
    /// Makes the call if it is permitted. `Err` counts as a failure, and so does a panic, which goes on.
    ///
    /// # Errors
    /// [`CallError::NotPermitted`] without making the call, or [`CallError::Failed`] with its error.
    pub fn call<T, E>(&self, f: impl FnOnce() -> Result<T, E>) -> Result<T, CallError<E>> {
        let mut permit = Some(self.try_acquire_permission().map_err(CallError::NotPermitted)?);
        let result = Watch(&mut permit).over(f);
        finish(permit, result)
    }

    /// As [`call`](CircuitBreaker::call), for a future. Permission is asked when this is first polled; dropped before it
    /// is ready, the call counts for nothing.
    ///
    /// # Errors
    /// As [`call`](CircuitBreaker::call).
    pub async fn call_async<T, E, F>(&self, f: impl FnOnce() -> F) -> Result<T, CallError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let mut permit = Some(self.try_acquire_permission().map_err(CallError::NotPermitted)?);
        let result = {
            let mut future = pin!(Watch(&mut permit).over(f));
            // Only while the future runs: to be dropped between two polls is no failure.
            poll_fn(|context| Watch(&mut permit).over(|| future.as_mut().poll(context))).await
        };
        finish(permit, result)
    }
}

fn finish<T, E>(permit: Option<CallPermit<&CircuitBreaker>>, result: Result<T, E>) -> Result<T, CallError<E>> {
    if let Some(permit) = permit {
        permit.record(if result.is_ok() { CallOutcome::Success } else { CallOutcome::Failure });
    }
    result.map_err(CallError::Failed)
}

/// Holds a permit while foreign code runs that may panic: that counts as a failure.
struct Watch<'a, 'b>(&'a mut Option<CallPermit<&'b CircuitBreaker>>);

impl Watch<'_, '_> {
    /// Runs `work`, after which the permit is where it was.
    fn over<T>(self, work: impl FnOnce() -> T) -> T {
        let done = work();
        std::mem::forget(self);
        done
    }
}

impl Drop for Watch<'_, '_> {
    fn drop(&mut self) {
        if let Some(permit) = self.0.take() {
            permit.failure();
        }
    }
}

/// Why [`CircuitBreaker::call`] has no result to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallError<E> {
    /// The call was not made.
    NotPermitted(CallNotPermitted),
    /// The call was made and failed.
    Failed(E),
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::NotPermitted(refusal) => refusal.fmt(f),
            CallError::Failed(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for CallError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CallError::NotPermitted(_) => None,
            CallError::Failed(error) => error.source(),
        }
    }
}
