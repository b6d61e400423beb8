//! A line of a log that was understood, whatever its format: when it was, and its named fields.

use std::borrow::Cow;

use super::key::Key;

/// A line that was understood.
pub(crate) trait Record {
    /// When it was, in microseconds since 1970, by the field of that name or else the usual one of its format.
    fn time(&self, field: Option<&str>) -> Result<u64, Flaw>;

    /// The field of that name; `None` where it is missing or empty.
    fn field(&self, name: &str) -> Option<Cow<'_, [u8]>>;
}

/// Why a line counts as bad.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw(pub(crate) Cow<'static, str>);

impl From<&'static str> for Flaw {
    fn from(why: &'static str) -> Self {
        Flaw(why.into())
    }
}

impl From<String> for Flaw {
    fn from(why: String) -> Self {
        Flaw(why.into())
    }
}

/// What a line asks of the limiter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) at: u64,
    pub(crate) key: Box<[u8]>,
    pub(crate) cost: u64,
}

/// What is to be taken from each line.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) key: Key,
    pub(crate) time: Option<String>,
    pub(crate) cost: Option<String>,
}

impl Wanted {
    /// The request of a line, of which `record` is what its format makes of it.
    pub(crate) fn of(&self, line: &[u8], record: &impl Record) -> Result<Request, Flaw> {
        let at = record.time(self.time.as_deref())?;
        if at > MOST {
            return Err("the time is beyond the year 2255".into());
        }
        let key = self.key.of(line, record).ok_or_else(|| Flaw::from(format!("no key: {}", self.key)))?;
        if key.len() > Key::LONGEST {
            return Err(format!("the key has more than {} bytes", Key::LONGEST).into());
        }
        let cost = match &self.cost {
            None => 1,
            Some(name) => cost(record, name)?,
        };
        Ok(Request { at, key: key.into(), cost })
    }
}

/// The largest cost and the last microsecond: the largest whole number that every language holds exactly.
const MOST: u64 = (1 << 53) - 1;

fn cost(record: &impl Record, name: &str) -> Result<u64, Flaw> {
    let text = record.field(name).ok_or_else(|| Flaw::from(format!("no cost: {name}")))?;
    let cost = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    cost.filter(|cost| *cost <= MOST).ok_or_else(|| "the cost is not a whole number of tokens".into())
}

/// The names under which programs log what people call ip, user and path.
pub(crate) fn other_names(name: &str) -> &'static [&'static str] {
    match name {
        "ip" => &["remote_addr", "client_ip", "clientip", "remote_ip", "remote_host", "client", "host"],
        "user" => &["user_id", "userid", "username", "remote_user"],
        "path" => &["uri", "url", "request_uri", "request_path"],
        _ => &[],
    }
}

/// The names of the field that holds the time, in the order in which they are tried.
pub(crate) const TIME_NAMES: [&str; 6] = ["time", "timestamp", "ts", "@timestamp", "datetime", "date"];
