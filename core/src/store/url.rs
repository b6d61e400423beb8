//! The address of a store: a URL with a closed set of schemes, whose secrets show nowhere.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use crate::error::{Error, ErrorKind, Result};

/// The port of a URL that names none.
const DEFAULT_PORT: u16 = 6379;

/// Where buckets live: `memory:`, `redis://[user[:pass]@]host[:port][/db]` or
/// `redis+cluster://[user[:pass]@]host[:port][,host[:port]...]`.
///
/// User and password are percent-encoded where they hold `@ : / % ? #`; a `+` stays a `+`. IPv6 hosts stand in brackets.
/// Printing an address (also with `{:?}`) shows `***` in place of a password.
///
/// ```
/// use balde::StoreUrl;
/// let url: StoreUrl = "redis+cluster://app:s3cret@10.0.0.1:7000,10.0.0.2:7000".parse()?;
/// assert_eq!(url.to_string(), "redis+cluster://app:***@10.0.0.1:7000,10.0.0.2:7000");
/// # Ok::<(), balde::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(pub(crate) Place);

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    Redis(Servers),
}

/// Servers to begin with, and how to enter.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Servers {
    pub(crate) seeds: Vec<Address>,
    /// The URL says that this is a cluster, so that a server which is none is an error.
    pub(crate) cluster: bool,
    pub(crate) db: i64,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

/// A server's host and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl StoreUrl {
    /// The store in this process.
    pub const fn memory() -> Self {
        StoreUrl(Place::Memory)
    }
}

impl FromStr for StoreUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if matches!(text, "memory:" | "memory://") {
            return Ok(StoreUrl::memory());
        }
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| wrong("it has no scheme such as `memory:` or `redis://`"))?;
        let cluster = match scheme {
            "redis" => false,
            "redis+cluster" => true,
            "rediss" | "rediss+cluster" | "redis+sentinel" => {
                return Err(wrong("TLS and Sentinel are not supported by this version"));
            }
            _ => return Err(wrong("the scheme is not one of `memory:`, `redis://`, `redis+cluster://`")),
        };
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        let (hosts, db) = match place.split_once('/') {
            Some((hosts, db)) if !db.is_empty() => {
                (hosts, db.parse().map_err(|_| wrong("the database is not a number"))?)
            }
            Some((hosts, _)) => (hosts, 0),
            None => (place, 0),
        };
        if db < 0 || (cluster && db != 0) {
            return Err(wrong("a cluster has database 0 only, and no database is negative"));
        }
        let seeds = hosts.split(',').map(str::parse).collect::<Result<Vec<Address>>>()?;
        if !cluster && seeds.len() > 1 {
            return Err(wrong("several hosts need `redis+cluster://`"));
        }
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            Some((user, password)) => (decoded(user)?, decoded(password)?),
            None => (None, None),
        };
        if user.is_some() && password.is_none() {
            return Err(wrong(
                "a user needs a password: `user:password@host`, or `:password@host` for the default user",
            ));
        }
        Ok(StoreUrl(Place::Redis(Servers { seeds, cluster, db, user, password })))
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or_else(|| wrong("an IPv6 host lacks its `]`"))?,
            None => text.find(':').map_or((text, ""), |colon| text.split_at(colon)),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
        if host.is_empty() || !host.chars().all(plain) {
            return Err(wrong("a host is missing or holds characters that no host has"));
        }
        let port = match port.strip_prefix(':') {
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| wrong("a port is not a number from 1 to 65535"))?,
            None if port.is_empty() => DEFAULT_PORT,
            None => return Err(wrong("something other than a port follows an IPv6 host")),
        };
        Ok(Address { host: host.to_string(), port })
    }
}

/// The reason alone: the text of a wrong URL may hold a password anywhere.
fn wrong(why: &str) -> Error {
    Error::new(ErrorKind::InvalidUrl, format!("the store's URL is not understood: {why}"))
}

fn decoded(text: &str) -> Result<Option<String>> {
    let text =
        percent_decode_str(text).decode_utf8().map_err(|_| wrong("user or password is not percent-encoded UTF-8"))?;
    Ok((!text.is_empty()).then(|| text.into_owned()))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place::Redis(servers) = &self.0 else { return f.write_str("memory:") };
        f.write_str(if servers.cluster { "redis+cluster://" } else { "redis://" })?;
        if servers.password.is_some() {
            write!(f, "{}:***@", servers.user.as_deref().unwrap_or(""))?;
        }
        for (i, seed) in servers.seeds.iter().enumerate() {
            write!(f, "{}{seed}", if i > 0 { "," } else { "" })?;
        }
        if servers.db == 0 { Ok(()) } else { write!(f, "/{}", servers.db) }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Servers {
        match text.parse::<StoreUrl>().unwrap().0 {
            Place::Redis(servers) => servers,
            Place::Memory => panic!("{text} is no server"),
        }
    }

    #[test]
    fn urls_read_and_print_back_without_secrets() {
        for (text, printed) in [
            ("memory:", "memory:"),
            ("redis://localhost", "redis://localhost:6379"),
            ("redis://[::1]:7000/3", "redis://[::1]:7000/3"),
            ("redis://:p%40ss@h:1/", "redis://:***@h:1"),
            ("redis+cluster://u:p@a:1,b", "redis+cluster://u:***@a:1,b:6379"),
        ] {
            let url: StoreUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), printed);
            assert!(!format!("{url:?}").contains("p@"));
        }
    }

    #[test]
    fn a_password_keeps_every_character() {
        let url = servers("redis://app:p%40%3A%2F%23%25+%3D%3F%26%2B@h");
        assert_eq!(url.password.as_deref(), Some("p@:/#%+=?&+"));
        assert_eq!(url.user.as_deref(), Some("app"));
        assert_eq!(servers("redis://app:a@b:c@h").password.as_deref(), Some("a@b:c"));
    }

    #[test]
    fn what_is_no_url_is_refused_without_repeating_it() {
        for text in [
            "",
            "memory",
            "localhost:6379",
            "http://h",
            "redis://",
            "redis://h:0",
            "redis://h:99999",
            "redis://h:x",
            "redis://h/x",
            "redis://h/-1",
            "redis://a,b",
            "redis+cluster://a/1",
            "redis://u:secret@h:x",
            "redis://user@h",
            "redis://[::1",
            "redis://[::1]7",
            "redis://a b",
            "rediss://h",
        ] {
            let error = text.parse::<StoreUrl>().expect_err(text);
            assert_eq!(error.code(), "invalid_url", "{text}");
            assert!(!error.to_string().contains("secret"));
        }
    }
}
