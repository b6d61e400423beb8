//! The one error of the crate: a closed kind, a stable code, what went wrong and what to do.

use std::fmt;
use std::time::Duration;

use crate::decision::Reason;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of thing went wrong. The set is closed, and every binding maps all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A limit's text or numbers say nothing that a bucket can hold.
    InvalidLimit,
    /// A cost or a refund is not a whole number from 0 to 2^53 - 1.
    InvalidCost,
    /// A key is longer than [`Key::MAX`](crate::Limiter::MAX_KEY) bytes.
    InvalidKey,
    /// An option is unknown, out of its bounds, or contradicts another.
    InvalidOption,
    /// A store's URL cannot be understood.
    InvalidUrl,
    /// The store did not answer, or not in time. What it did with the call may be unknown.
    Unavailable,
    /// The server refused the name or the password.
    Auth,
    /// The server's access rules forbid a command that the limiter needs.
    Permission,
    /// The server cannot run the script, or is not what the URL says it is.
    UnsupportedServer,
    /// The encrypted connection could not be made.
    Tls,
    /// The limiter was closed.
    Closed,
    /// A fault of this library, or data under one of its keys that it did not write.
    Internal,
}

impl ErrorKind {
    /// Every kind, in the order of the enum.
    pub const ALL: [ErrorKind; 12] = [
        ErrorKind::InvalidLimit,
        ErrorKind::InvalidCost,
        ErrorKind::InvalidKey,
        ErrorKind::InvalidOption,
        ErrorKind::InvalidUrl,
        ErrorKind::Unavailable,
        ErrorKind::Auth,
        ErrorKind::Permission,
        ErrorKind::UnsupportedServer,
        ErrorKind::Tls,
        ErrorKind::Closed,
        ErrorKind::Internal,
    ];

    /// The stable code: the same text in every language, for programs to compare.
    pub const fn code(self) -> &'static str {
        match self {
            ErrorKind::InvalidLimit => "invalid_limit",
            ErrorKind::InvalidCost => "invalid_cost",
            ErrorKind::InvalidKey => "invalid_key",
            ErrorKind::InvalidOption => "invalid_option",
            ErrorKind::InvalidUrl => "invalid_url",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Auth => "auth",
            ErrorKind::Permission => "permission",
            ErrorKind::UnsupportedServer => "unsupported_server",
            ErrorKind::Tls => "tls",
            ErrorKind::Closed => "closed",
            ErrorKind::Internal => "internal",
        }
    }
}

/// Misuse, a wrong configuration, or a store that does not answer.
///
/// A denied request is never an error: see [`Decision::allowed`](crate::Decision::allowed).
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    /// What a fallback says of it, where it is one that a fallback answers.
    reason: Reason,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), reason: Reason::Unavailable }
    }

    pub(crate) fn option(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::InvalidOption, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Unavailable, message)
    }

    /// The deadline passed while `what` was being done.
    pub(crate) fn overdue(deadline: Duration, what: impl fmt::Display) -> Self {
        let message = format!("no answer within {deadline:?} while {what}");
        Error { reason: Reason::Timeout, ..Error::unavailable(message) }
    }

    pub(crate) fn closed() -> Self {
        Error::new(ErrorKind::Closed, "the limiter was closed; build a new one")
    }

    /// Why a fallback decides instead, for an error that is retryable.
    pub(crate) fn reason(&self) -> Reason {
        self.reason
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The stable code of the kind, such as `"invalid_limit"`.
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// Whether the same call may succeed later with nothing changed by the caller.
    pub fn is_retryable(&self) -> bool {
        self.kind == ErrorKind::Unavailable
    }

    /// What went wrong and what to do about it, in one sentence, without the code and without secrets.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_stable() {
        let codes: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        assert_eq!(
            codes.join(" "),
            "invalid_limit invalid_cost invalid_key invalid_option invalid_url unavailable auth \
             permission unsupported_server tls closed internal"
        );
    }

    #[test]
    fn an_error_says_its_code_and_what_to_do() {
        let error = Error::closed();
        assert_eq!(error.to_string(), "closed: the limiter was closed; build a new one");
        assert_eq!(format!("{error:?}"), error.to_string());
        assert!(!error.is_retryable());
        assert!(Error::unavailable("x").is_retryable());
    }
}
