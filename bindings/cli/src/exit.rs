//! How the program ends: 0 done or admitted, 1 denied, 2 misuse or a wrong configuration, 3 the store is unavailable.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use balde::{Error, ErrorKind};

/// What a command that did its work has to say to the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Done; for a single request: admitted.
    Yes,
    /// Denied.
    No,
}

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something in the command line, an input or the configuration is wrong: what, and what to do about it.
    Misuse { message: String, hint: String },
    /// The crate refused, or the store did not answer.
    Balde(Error),
    /// Nobody reads the output any more: that is no reason to complain.
    Unread,
    /// Ctrl-C.
    Interrupted,
}

impl Failure {
    pub(crate) fn misuse(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::Misuse { message: message.into(), hint: hint.into() }
    }

    /// A file that cannot be read or written.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Failure::misuse(format!("{}: {error}", path.display()), "check the path and its permissions")
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Balde(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Unread,
            _ => Failure::misuse(error.to_string(), "input or output failed; is the disk full?"),
        }
    }
}

/// The exit status of a command. A failure is told on standard error first.
pub(crate) fn code(done: Result<Verdict, Failure>) -> ExitCode {
    let (message, hint, code) = match &done {
        Ok(Verdict::Yes) | Err(Failure::Unread) => return ExitCode::SUCCESS,
        Ok(Verdict::No) => return ExitCode::from(1),
        // 128 + SIGINT, as shells have it.
        Err(Failure::Interrupted) => ("interrupted", "", 130),
        Err(Failure::Misuse { message, hint }) => (message.as_str(), hint.as_str(), 2),
        Err(Failure::Balde(error)) => {
            let code = if error.kind() == ErrorKind::Unavailable { 3 } else { 2 };
            (error.message(), hint_for(error.kind()), code)
        }
    };
    // Where standard error is closed, the status still says what happened.
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "balde: {message}");
    if !hint.is_empty() {
        let _ = writeln!(stderr, "hint: {hint}");
    }
    ExitCode::from(code)
}

fn hint_for(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidLimit => "a limit reads N/[k]UNIT [burst C], such as \"10/s burst 20\" or \"100/15m\"",
        ErrorKind::InvalidCost => "a cost is a whole number of tokens, 0 or more",
        ErrorKind::InvalidKey => "a key has at most 1024 bytes",
        ErrorKind::InvalidOption => "see balde help and the help of the command",
        ErrorKind::InvalidUrl => {
            "a store reads redis://[user[:pass]@]host[:port][/db] or redis+cluster://host:port,host:port"
        }
        ErrorKind::Unavailable => "check that the server runs and that --store names it",
        ErrorKind::Auth => "name and password go into the URL: redis://user:pass@host:port",
        ErrorKind::Permission => "the server's administrator can allow the command to this user (ACL SETUSER)",
        ErrorKind::UnsupportedServer => "Redis 6.2 or newer, or Valkey, is needed; redis+cluster:// needs a cluster",
        ErrorKind::Tls => "check the server's certificate and the scheme of the URL",
        ErrorKind::Closed | ErrorKind::Internal => "",
    }
}
