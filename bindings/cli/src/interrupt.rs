//! Ctrl-C and the polite request to end: both stop the work, and leave time to clean up.

use std::future::{Future, pending};

use crate::exit::Failure;

/// Works until it is done or a signal comes: then [`Failure::Interrupted`], and the work is dropped where it stands.
///
/// Cleaning up afterwards is work too: who asks twice does not want to wait for it.
pub(crate) async fn unless<T, E: Into<Failure>>(work: impl Future<Output = Result<T, E>>) -> Result<T, Failure> {
    tokio::select! {
        biased;
        () = ctrl_c() => Err(Failure::Interrupted),
        () = terminate() => Err(Failure::Interrupted),
        done = work => done.map_err(Into::into),
    }
}

/// Where the signal cannot be listened to, it ends the process, as it does by default.
async fn ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        pending().await
    }
}

#[cfg(unix)]
async fn terminate() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => pending().await,
    }
}

#[cfg(not(unix))]
async fn terminate() {
    pending().await
}
