use std::io;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::dialogue::Dialogue;
use super::fault::{Direction, Faults, Flow};
use super::tally::Present;
use super::{Shared, gone};

/// How many bytes are read at a time.
const CHUNK: usize = 16 << 10;

/// How many chunks may wait in one direction. When that many do, no more is read, and the sender notices in the end.
const WAITING: usize = 1 << 10;

/// How far pieces are apart: without a pause the receiver's kernel would put them together again.
const BETWEEN_PIECES: Duration = Duration::from_millis(1);

/// Carries the bytes of one connection until both sides have ended it, or one of them broke it, or it is reset.
pub(super) async fn relay(mut client: TcpStream, shared: &Shared) {
    let present = shared.tally.arrival();
    let mut faults = shared.faults.subscribe();
    let resets = faults.borrow().resets;
    // Replicas have their connections through the proxy too, but it is clients that faults are for.
    let mut reset = std::pin::pin!(faults.wait_for(|faults| faults.resets > resets && !present.is_replica()));

    let connected = tokio::select! {
        biased;
        _ = &mut reset => Err(gone()),
        server = connect(shared) => server,
    };
    let Ok(mut server) = connected else {
        return abort(&client);
    };
    let carried = tokio::select! {
        // A reset comes before the bytes that arrived after it.
        biased;
        _ = reset => Err(gone()),
        carried = carry_both(&mut client, &mut server, shared, &present) => carried,
    };
    if carried.is_err() {
        // Each side learns of what the other one did, or of the reset.
        abort(&client);
        abort(&server);
    }
}

/// Makes the end of a connection, when it is dropped, a reset.
fn abort(stream: &TcpStream) {
    // Fails only for a connection that has ended in some other way.
    let _ = stream.set_zero_linger();
}

async fn connect(shared: &Shared) -> io::Result<TcpStream> {
    let mut faults = shared.faults.subscribe();
    faults.wait_for(|faults| !faults.blackhole).await.map_err(|_| gone())?;
    drop(faults);
    TcpStream::connect((Ipv4Addr::LOCALHOST, shared.upstream)).await
}

async fn carry_both(
    client: &mut TcpStream,
    server: &mut TcpStream,
    shared: &Shared,
    present: &Present<'_>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();

    let dialogue = Mutex::new(Dialogue::default());
    let lock = || -> MutexGuard<'_, Dialogue> { dialogue.lock().unwrap_or_else(PoisonError::into_inner) };
    let requests = |bytes: Option<&[u8]>| {
        let bytes = bytes.unwrap_or_default();
        let mut dialogue = lock();
        // Known before they reach the server, hence before it can answer.
        shared.tally.requests(dialogue.ask(bytes));
        if dialogue.is_replica() {
            present.mark_replica();
        }
        bytes.to_vec()
    };
    let judge = |request: &[u8]| shared.rules.judge(request).inspect(|instead| shared.tally.instead(instead));
    let replies = |bytes: Option<&[u8]>| match bytes {
        Some(bytes) => lock().answer(bytes, judge),
        None => lock().answers_end(),
    };

    let gate = |direction| Gate { direction, faults: shared.faults.subscribe(), present };
    tokio::try_join!(
        carry(from_client, to_server, requests, gate(Direction::ToServer)),
        carry(from_server, to_client, replies, gate(Direction::ToClient)),
    )?;
    Ok(())
}

/// Carries one direction to its end. `sift` sees every chunk, then the end (`None`), and says what is to go on.
async fn carry(
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    sift: impl FnMut(Option<&[u8]>) -> Vec<u8>,
    gate: Gate<'_>,
) -> io::Result<()> {
    // Reading goes on while bytes wait, so that a delay does not add up and a closed gate does not hide requests.
    let (chunks, waiting) = mpsc::channel(WAITING);
    tokio::try_join!(take_in(from, chunks, sift), give_out(waiting, to, gate))?;
    Ok(())
}

struct Chunk {
    came: Instant,
    bytes: Vec<u8>,
}

async fn take_in(
    mut from: ReadHalf<'_>,
    chunks: mpsc::Sender<Chunk>,
    mut sift: impl FnMut(Option<&[u8]>) -> Vec<u8>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let length = from.read(&mut buffer).await?;
        let bytes = sift((length > 0).then_some(&buffer[..length]));
        if !bytes.is_empty() {
            let came = Instant::now();
            chunks.send(Chunk { came, bytes }).await.map_err(|_| gone())?;
        }
        if length == 0 {
            return Ok(());
        }
    }
}

async fn give_out(mut waiting: mpsc::Receiver<Chunk>, mut to: WriteHalf<'_>, mut gate: Gate<'_>) -> io::Result<()> {
    while let Some(chunk) = waiting.recv().await {
        let mut left = chunk.bytes.as_slice();
        while !left.is_empty() {
            // Asked before every piece: faults may have changed since the last one.
            let flow = gate.open(chunk.came).await?;
            let (piece, rest) = left.split_at(flow.piece.min(left.len()));
            to.write_all(piece).await?;
            left = rest;
            if !left.is_empty() {
                sleep(BETWEEN_PIECES).await;
            }
        }
    }
    // A line that carries nothing does not carry the end either.
    gate.open(Instant::now()).await?;
    to.shutdown().await
}

/// What bytes of one direction wait at.
struct Gate<'a> {
    direction: Direction,
    faults: watch::Receiver<Faults>,
    present: &'a Present<'a>,
}

impl Gate<'_> {
    /// Waits until what came at `came` may go on, and says how.
    async fn open(&mut self, came: Instant) -> io::Result<Flow> {
        loop {
            let flow = match self.present.is_replica() {
                true => Flow::FREE,
                false => self.faults.borrow_and_update().flow(self.direction),
            };
            let due = came + flow.delay;
            if !flow.held && due <= Instant::now() {
                return Ok(flow);
            }
            tokio::select! {
                changed = self.faults.changed() => changed.map_err(|_| gone())?,
                () = sleep_until(due), if !flow.held => {}
            }
        }
    }
}
