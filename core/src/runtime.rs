//! The tokio runtime that connections and timers live on: the one given, or else the one that polls the call.

use tokio::runtime::Handle;

/// Where tasks and timers of a limiter run.
#[derive(Debug, Clone)]
pub(crate) struct Runtime(Option<Handle>);

impl Runtime {
    pub(crate) fn new(given: Option<Handle>) -> Self {
        Runtime(given)
    }

    /// The runtime to use here and now, if there is one.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.0.clone().or_else(|| Handle::try_current().ok())
    }
}

/// Makes a timer that runs on `runtime`, whoever polls it.
pub(crate) fn on<T>(runtime: &Handle, timer: impl FnOnce() -> T) -> T {
    let _inside = runtime.enter();
    timer()
}
