use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;

use super::Shared;
use super::pump::relay;

/// How long the door rests when the system has no connection to give, for want of file handles perhaps.
const REST: Duration = Duration::from_millis(10);

/// What the door is told.
#[derive(Debug)]
pub(super) struct Order {
    /// Whether the port is to accept connections, or to refuse them.
    pub(super) listen: bool,
    /// Hears when it is so.
    pub(super) done: SyncSender<io::Result<()>>,
}

/// Keeps the door of a proxy until nobody can give orders any more. Refuses until it is told to listen.
pub(super) async fn attend(port: u16, shared: Arc<Shared>, mut orders: UnboundedReceiver<Order>) {
    let mut listener = None;
    loop {
        tokio::select! {
            biased;
            order = orders.recv() => match order {
                // Whoever gave it waits for the answer; nobody is there to miss it otherwise.
                Some(Order { listen, done }) => drop(done.send(turn(&mut listener, port, listen).await)),
                None => return,
            },
            accepted = accept(listener.as_ref()) => match accepted {
                Ok(client) => {
                    let shared = Arc::clone(&shared);
                    tokio::spawn(async move { relay(client, &shared).await });
                }
                Err(_) => tokio::time::sleep(REST).await,
            },
        }
    }
}

async fn turn(listener: &mut Option<TcpListener>, port: u16, listen: bool) -> io::Result<()> {
    match listen {
        false => *listener = None,
        true if listener.is_none() => *listener = Some(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?),
        true => {}
    }
    Ok(())
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(client, _)| client),
        None => std::future::pending().await,
    }
}
