//! One node: its address and the one connection to it, made by a task of its own so that a caller who gives up
//! does not end it for the others.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind as RedisErrorKind, Pipeline, RedisConnectionInfo, RedisError, Value,
};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::offset::Offset;
use crate::error::{Error, ErrorKind, Result};
use crate::store::url::{Address, Servers};

/// How long one attempt to connect may take, whatever a caller's deadline is: the next callers need the connection too.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How to enter a server.
#[derive(Clone)]
pub(super) struct Login(RedisConnectionInfo);

impl Login {
    pub(super) fn new(servers: &Servers) -> Self {
        let mut info = RedisConnectionInfo::default().set_db(servers.db).set_skip_set_lib_name();
        if let Some(user) = &servers.user {
            info = info.set_username(user);
        }
        if let Some(password) = &servers.password {
            info = info.set_password(password);
        }
        Login(info)
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(***)")
    }
}

/// A node and what is known of the way to it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) address: Address,
    login: Login,
    link: Mutex<Link>,
}

enum Link {
    Down,
    Connecting(watch::Receiver<Option<Result<Connection>>>),
    Up(Connection, AbortHandle),
    Closed,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Link::Down => "Down",
            Link::Connecting(_) => "Connecting",
            Link::Up(..) => "Up",
            Link::Closed => "Closed",
        })
    }
}

impl Node {
    pub(super) fn new(address: Address, login: Login) -> Arc<Self> {
        Arc::new(Node { address, login, link: Mutex::new(Link::Down) })
    }

    /// The connection, made first where there is none.
    ///
    /// # Errors
    /// Why it could not be made. Nothing was sent then.
    pub(super) async fn connection(self: &Arc<Self>, runtime: &Handle) -> Result<Connection> {
        let mut attempt = {
            let mut link = self.lock();
            match &*link {
                Link::Up(connection, _) => return Ok(connection.clone()),
                Link::Connecting(attempt) => attempt.clone(),
                Link::Closed => return Err(Error::closed()),
                Link::Down => {
                    let (sender, attempt) = watch::channel(None);
                    *link = Link::Connecting(attempt.clone());
                    runtime.spawn(Arc::clone(self).connect(sender, runtime.clone()));
                    attempt
                }
            }
        };
        match attempt.wait_for(Option::is_some).await {
            Ok(result) => result.clone().unwrap_or_else(|| Err(Error::closed())),
            Err(_) => Err(Error::unavailable(format!(
                "the attempt to connect to {} was dropped with its runtime",
                self.address
            ))),
        }
    }

    /// Drops the connection and makes no other.
    pub(super) fn close(&self) {
        if let Link::Up(_, driver) = std::mem::replace(&mut *self.lock(), Link::Closed) {
            driver.abort();
        }
    }

    async fn connect(self: Arc<Self>, sender: watch::Sender<Option<Result<Connection>>>, runtime: Handle) {
        let made = match tokio::time::timeout(CONNECT_TIMEOUT, self.enter()).await {
            Ok(made) => made,
            Err(_) => Err(Error::overdue(CONNECT_TIMEOUT, format!("connecting to {}", self.address))),
        };
        let mut link = self.lock();
        let closed = matches!(*link, Link::Closed);
        let result = match made {
            Ok((connection, driver)) if !closed => {
                let node = Arc::downgrade(&self);
                let driver = runtime.spawn(async move {
                    driver.await;
                    Node::lost(&node);
                });
                *link = Link::Up(connection.clone(), driver.abort_handle());
                Ok(connection)
            }
            _ if closed => Err(Error::closed()),
            Ok(_) => Err(Error::closed()),
            Err(error) => {
                *link = Link::Down;
                Err(error)
            }
        };
        drop(link);
        sender.send_replace(Some(result));
    }

    /// The TCP connection and the server's welcome.
    async fn enter(&self) -> Result<(Connection, impl Future<Output = ()> + Send + 'static)> {
        let unreachable =
            |error: std::io::Error| Error::unavailable(format!("cannot connect to {}: {error}", self.address));
        let stream = TcpStream::connect((self.address.host.as_str(), self.address.port)).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let (multiplexed, driver) = MultiplexedConnection::new_with_config(&self.login.0, stream, config)
            .await
            .map_err(|error| self.refused(&error))?;
        Ok((Connection { multiplexed, offset: Arc::new(Offset::new()) }, driver))
    }

    fn refused(&self, error: &RedisError) -> Error {
        match (error.kind(), error.code()) {
            (RedisErrorKind::AuthenticationFailed, _) | (_, Some("WRONGPASS" | "NOAUTH")) => {
                Error::new(ErrorKind::Auth, format!("{} refused the user or password of the store's URL", self.address))
            }
            (_, Some("NOPERM")) => {
                Error::new(ErrorKind::Permission, format!("the access rules of {} forbid to connect", self.address))
            }
            (_, Some("ERR")) => Error::option(format!(
                "{} refused the database of the store's URL: {}",
                self.address,
                error.detail().unwrap_or("")
            )),
            _ => Error::unavailable(format!("{} did not welcome the connection: {error}", self.address)),
        }
    }

    /// The connection's driver ended: whatever was under way has failed, and the next caller connects anew.
    fn lost(node: &Weak<Node>) {
        if let Some(node) = node.upgrade() {
            let mut link = node.lock();
            if matches!(*link, Link::Up(..)) {
                *link = Link::Down;
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A live connection that many callers share.
#[derive(Clone)]
pub(super) struct Connection {
    multiplexed: MultiplexedConnection,
    /// Of this connection alone: the next one may lead to another server.
    pub(super) offset: Arc<Offset>,
}

impl Connection {
    /// Sends a command behind others that it needs, at once, and waits for the answer to it alone.
    pub(super) async fn send(&mut self, before: &[Cmd], command: &Cmd) -> Result<Value, RedisError> {
        if before.is_empty() {
            return self.multiplexed.send_packed_command(command).await.and_then(accepted);
        }
        let mut pipeline = Pipeline::with_capacity(before.len() + 1);
        for command in before {
            pipeline.add_command(command.clone());
        }
        pipeline.add_command(command.clone()).ignore_errors();
        let mut answers = self.multiplexed.send_packed_commands(&pipeline, 0, before.len() + 1).await?;
        let last = answers.pop();
        last.ok_or_else(|| RedisError::from((RedisErrorKind::Client, "no answer to the last command")))
            .and_then(accepted)
    }
}

/// A server's refusal is an error, whichever way the answer came.
fn accepted(answer: Value) -> Result<Value, RedisError> {
    match answer {
        Value::ServerError(error) => Err(error.into()),
        answer => Ok(answer),
    }
}
