//! Input read ahead by a thread of its own, so that the program can listen to signals and to servers meanwhile.

use std::thread;

use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How many items the thread may be ahead.
const AHEAD: usize = 64;

/// Where the reading thread puts what it read.
pub(crate) struct Sink<T>(Sender<T>);

impl<T> Sink<T> {
    /// Hands an item over, waiting for room. False when nobody wants more: the thread should end.
    pub(crate) fn put(&self, item: T) -> bool {
        self.0.blocking_send(item).is_ok()
    }
}

/// What the reading thread has read.
pub(crate) struct Feed<T>(Receiver<T>);

impl<T: Send + 'static> Feed<T> {
    /// Starts a thread that reads. One that waits for input ends with the process.
    pub(crate) fn start(read: impl FnOnce(Sink<T>) + Send + 'static) -> Self {
        let (sender, items) = channel(AHEAD);
        thread::spawn(move || read(Sink(sender)));
        Feed(items)
    }

    /// The next item, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<T> {
        self.0.recv().await
    }

    /// Whether nothing is there to be taken without waiting.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.is_empty()
    }
}
