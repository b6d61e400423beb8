use std::{fmt, io, path::PathBuf};

/// Why a server, a cluster or a command to one of them failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No server binary was found; the text says where it was looked for and how to get one.
    NoServer(String),
    /// The file is not a Redis or Valkey server that runs here.
    NotAServer {
        /// The file.
        path: PathBuf,
        /// What it did instead.
        why: String,
    },
    /// The operating system refused something.
    Io {
        /// What was tried.
        what: String,
        /// Its answer.
        source: io::Error,
    },
    /// A server refused a command, or did not answer it.
    Redis {
        /// What was tried, and on which port.
        what: String,
        /// The reply or the connection's failure.
        source: redis::RedisError,
    },
    /// The server process ended by itself.
    Died {
        /// Its port.
        port: u16,
        /// The last lines of its log.
        log: String,
    },
    /// Somebody else took the port between the choice and the server's start.
    PortTaken(u16),
    /// No free port is left in the range that servers are given.
    NoPort,
    /// A condition did not come true in time.
    Late {
        /// The condition.
        what: String,
        /// Why it was not true when last looked at.
        last: String,
    },
    /// The caller asked for something that cannot be.
    Invalid(String),
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    pub(crate) fn redis(what: impl Into<String>) -> impl FnOnce(redis::RedisError) -> Self {
        let what = what.into();
        move |source| Self::Redis { what, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServer(text) | Self::Invalid(text) => f.write_str(text),
            Self::NotAServer { path, why } => {
                write!(f, "{} is not a usable server: {why}", path.display())
            }
            Self::Io { what, source } => write!(f, "{what}: {source}"),
            Self::Redis { what, source } => write!(f, "{what}: {source}"),
            Self::Died { port, log } => {
                write!(f, "the server for port {port} ended by itself; its log ends with:\n{log}")
            }
            Self::PortTaken(port) => write!(f, "port {port} was taken by somebody else"),
            Self::NoPort => f.write_str("no free port is left for a server"),
            Self::Late { what, last } => write!(f, "waited too long for {what}: {last}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Redis { source, .. } => Some(source),
            _ => None,
        }
    }
}
