//! Faults of the network, made on purpose: a TCP proxy in front of one server.

mod dialogue;
mod door;
mod fault;
mod frame;
mod pump;
mod tally;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::Error;
use crate::port::{ATTEMPTS, Port};

use door::Order;
use fault::{Faults, Rules};
use tally::Tally;

pub use fault::Direction;
pub use tally::Counters;

/// A TCP proxy on a loopback port in front of one server, that does to the traffic what networks do.
///
/// Faults are set and lifted at any time from any thread, add up, and concern connections that are open as well as those
/// to come, unless said otherwise; what is set before a request is sent is true for that request. [`Proxy::heal`] lifts
/// them all. None of these calls waits for traffic.
///
/// Replies are counted and paired with requests by their framing (RESP2 and RESP3); messages that answer no request pass.
/// From `MONITOR`, `CLIENT REPLY` or a subscription on, a connection is only a stream of bytes. The link of a replica,
/// once it has said that it is one, is spared all faults: they are for clients.
///
/// A server that is down cannot be told from here as it can directly: the proxy accepts, then resets the connection.
/// [`Proxy::refuse`] is the way to a refusal. Dropping the proxy closes its port and all connections.
#[derive(Debug)]
pub struct Proxy {
    port: Port,
    shared: Arc<Shared>,
    /// Both present until the proxy is dropped.
    orders: Option<UnboundedSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    upstream: u16,
    faults: watch::Sender<Faults>,
    rules: Rules,
    tally: Tally,
}

impl Proxy {
    /// Opens a proxy on a free port in front of the server on port `upstream` of 127.0.0.1, which need not run yet.
    /// It has a thread of its own.
    pub fn start(upstream: u16) -> Result<Self, Error> {
        for _ in 0..ATTEMPTS {
            let proxy = Self::closed(Port::take(false)?, upstream)?;
            match proxy.order(true) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                listening => return listening.map(|()| proxy).map_err(Error::io("cannot open a proxy")),
            }
        }
        Err(Error::NoPort)
    }

    /// A proxy that refuses connections until it is told to listen.
    fn closed(port: Port, upstream: u16) -> Result<Self, Error> {
        let (faults, _) = watch::channel(Faults::NONE);
        let shared = Arc::new(Shared { upstream, faults, rules: Rules::default(), tally: Tally::default() });
        let (orders, inbox) = unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::io("cannot start a proxy"))?;
        let attended = door::attend(port.number(), Arc::clone(&shared), inbox);
        // The runtime ends with its thread, and all connections with the runtime.
        let thread = thread::Builder::new().name("testbed-proxy".into()).spawn(move || runtime.block_on(attended));
        let thread = Some(thread.map_err(Error::io("cannot start a proxy"))?);
        Ok(Self { port, shared, orders: Some(orders), thread })
    }

    /// Its port on 127.0.0.1, the same for all its life.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// `redis://127.0.0.1:PORT`, without the password that the server may want.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// Lets every byte in `direction` go on no sooner than `delay` after it came, also those on their way now. This is
    /// latency: what comes together goes on together. Connecting is not delayed. Zero ends it.
    pub fn delay(&self, direction: Direction, delay: Duration) {
        self.change(|faults| faults.change(direction, |flow| flow.delay = delay));
    }

    /// Lets nothing go on in `direction`, not even the end of a connection, while all stays open: a half-open connection.
    /// Bytes are kept, some MiB of each connection, and go on when it heals. The proxy still reads, counts and judges.
    pub fn hold(&self, direction: Direction) {
        self.change(|faults| faults.change(direction, |flow| flow.held = true));
    }

    /// Delivers bytes in pieces of `bytes` bytes (at least 1), 1 ms apart, in both directions.
    pub fn slice(&self, bytes: usize) {
        self.change(|faults| faults.change(Direction::Both, |flow| flow.piece = bytes.max(1)));
    }

    /// Swallows the next `count` replies: the server has acted, the client never hears of it, the connection stays open.
    /// Further calls add to it.
    pub fn drop_reply(&self, count: usize) {
        self.drop_reply_to(count, b"");
    }

    /// Does so with the next `count` replies to requests that contain `needle`, such as `EVALSHA` or a key, byte by byte.
    /// Requests that are waiting for their replies count as well.
    pub fn drop_reply_to(&self, count: usize, needle: &[u8]) {
        self.shared.rules.add(needle, count, b"");
    }

    /// Sends `bytes`, whatever they are, in the place of the next reply.
    pub fn garbage(&self, bytes: &[u8]) {
        self.garbage_to(b"", bytes);
    }

    /// Sends `bytes` in the place of the next reply to a request that contains `needle`.
    pub fn garbage_to(&self, needle: &[u8], bytes: &[u8]) {
        self.shared.rules.add(needle, 1, bytes);
    }

    /// Refuses new connections: nobody listens any more when this returns. Those that are open live on.
    /// Fails only when the proxy's thread has died.
    pub fn refuse(&self) -> Result<(), Error> {
        self.order(false).map_err(Error::io(format!("cannot close port {}", self.port())))
    }

    /// Accepts new connections and answers nothing on them; when it heals they lead to the server after all.
    /// Those that are open live on.
    pub fn blackhole(&self) {
        self.change(|faults| faults.blackhole = true);
    }

    /// Ends all connections that were accepted by now, with an RST to both sides; what was held or delayed on them is
    /// lost. New ones are served.
    pub fn reset(&self) {
        self.change(|faults| faults.resets += 1);
    }

    /// Lifts all faults: held, delayed and sliced bytes go on at once, the port accepts again.
    /// Fails when somebody else has taken the port meanwhile.
    pub fn heal(&self) -> Result<(), Error> {
        self.shared.rules.clear();
        self.change(Faults::heal);
        self.order(true).map_err(Error::io(format!("cannot open port {} again", self.port())))
    }

    /// What it has counted up to now.
    pub fn counters(&self) -> Counters {
        self.shared.tally.read()
    }

    /// How many requests with this command (in any case) came in since it started.
    pub fn requests(&self, command: &str) -> u64 {
        self.counters().requests.get(&command.to_ascii_uppercase()).copied().unwrap_or(0)
    }

    fn change(&self, change: impl FnOnce(&mut Faults)) {
        self.shared.faults.send_modify(change);
    }

    /// Tells the door to listen, or not to, and waits until it does so.
    fn order(&self, listen: bool) -> io::Result<()> {
        let (done, answer) = sync_channel(1);
        let told = self.orders.as_ref().map(|orders| orders.send(Order { listen, done }));
        told.ok_or_else(gone)?.map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.orders.take());
        // It fails when the thread has panicked, which was told where it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The other end of something inside the proxy, or a connection, is no more.
fn gone() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}
