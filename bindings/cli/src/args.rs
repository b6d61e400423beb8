//! The command line as it is read and documented.

// The comments below are printed as help, where brackets mean what may be left out.
#![allow(rustdoc::broken_intra_doc_links)]

use std::path::PathBuf;
use std::time::Duration;

use balde::{Limits, StoreUrl};
use clap::{Args as Group, Parser, Subcommand, ValueEnum};

use crate::duration;
use crate::exit::Failure;

/// Exact distributed rate limiting: replay a policy over real traffic, and look at single buckets.
///
/// Exit status: 0 done or admitted, 1 denied, 2 misuse or wrong configuration, 3 store unavailable.
#[derive(Debug, Parser)]
#[command(name = "balde", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Replay(Replay),
    Check(Check),
    Peek(Peek),
    Refund(Refund),
    Reset(Reset),
    Trace(Trace),
}

/// What a policy would have done to real traffic: plays logs against limits, on the logs' own clock
///
/// Reads combined or common access logs, JSON lines and CSV, plain or gzip, and says what would have been admitted and
/// denied, for whom and when. Several files are read one after another in the order given. Lines may be out of order by
/// --window; one that comes later still is played at the time reached by then, and counted as late. A line that cannot
/// be read, has no time or lacks the key is counted as bad, and the first few are shown; it never stops the replay.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  balde replay access.log --limit '5/s burst 20'
  balde replay access.log.*.gz --limit 10/s --limit 1000/h --key user --html report.html
  zcat -f app.jsonl* | balde replay - --limit 100/m --key tenant.id --json
  balde replay access.log --limit 1/s --key 'regex:/api/(?<key>[a-z]+)'

The embedded store plays a million lines in a few seconds. With --store the same traffic is played against a real
server under the log's clock, in keys of its own that are removed at the end.")]
pub(crate) struct Replay {
    /// Log files, plain or gzip; `-` is standard input
    #[arg(value_name = "LOG", required = true)]
    pub(crate) logs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Who is limited: ip, user, path, any field of the line (JSON: also a.b), or regex:PATTERN over the whole line,
    /// of which the group named `key` counts, or else the first one
    #[arg(long, value_name = "FIELD", default_value = "ip")]
    pub(crate) key: String,
    /// The format of all logs; guessed from the first lines of each without it
    #[arg(long, value_enum)]
    pub(crate) format: Option<FormatName>,
    /// The field that holds the time, for JSON and CSV [default: time, timestamp, ts, @timestamp, datetime or date].
    /// RFC 3339, or a number of seconds, milli-, micro- or nanoseconds since 1970; UTC where no zone is given
    #[arg(long, value_name = "FIELD")]
    pub(crate) time_field: Option<String>,
    /// A field that holds the cost of the request in whole tokens [default: each request costs 1]
    #[arg(long, value_name = "FIELD")]
    pub(crate) cost_field: Option<String>,
    /// How far out of order lines may be
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = duration::parse)]
    pub(crate) window: Duration,
    /// Where the buckets live: memory:, redis://HOST:PORT or redis+cluster://HOST:PORT,HOST:PORT
    #[arg(long, value_name = "URL", default_value = "memory:")]
    pub(crate) store: String,
    /// How many keys to show, the most denied first [default: 20; with --json all]
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a report as one HTML page that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write one letter for each line of the logs, in their order: A admitted, D denied, B bad (a CSV header has none).
    /// Takes one byte of memory a line
    #[arg(long, value_name = "FILE")]
    pub(crate) decisions: Option<PathBuf>,
}

/// The formats of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// Combined or common access log, as Apache and nginx write it
    Combined,
    /// One JSON object a line
    Json,
    /// Comma, semicolon or tab separated, with the names in the first line; a record is one line
    Csv,
}

/// Take tokens from a bucket: exit 0 admitted (after waiting), 1 denied
///
/// Asks the store and nothing else: where it does not answer, the exit status is 3.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  balde check user:42 --limit '10/s burst 20' --name api --store redis://127.0.0.1:6379
  balde check nightly --limit 1/m --max-wait 2m --store redis+cluster://10.0.0.1:7000 && ./nightly.sh")]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) bucket: Bucket,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// How many tokens to take; 0 looks and takes nothing
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) cost: u64,
    /// How long to wait for the tokens, such as 2s or 500ms; the wait is over when the command ends
    #[arg(long, value_name = "SPAN", default_value = "0", value_parser = duration::parse)]
    pub(crate) max_wait: Duration,
}

/// What check would say, taking nothing: exit 0 would be admitted, 1 would be denied
#[derive(Debug, Group)]
#[command(after_help = "Example:
  balde peek user:42 --limit '10/s burst 20' --name api --store redis://127.0.0.1:6379 --json")]
pub(crate) struct Peek {
    #[command(flatten)]
    pub(crate) bucket: Bucket,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// How many tokens to ask about
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) cost: u64,
}

/// Give tokens back to a bucket, at most until it is full
#[derive(Debug, Group)]
#[command(after_help = "Example:
  balde refund user:42 5 --limit '10/s burst 20' --name api --store redis://127.0.0.1:6379")]
pub(crate) struct Refund {
    #[command(flatten)]
    pub(crate) bucket: Bucket,
    /// How many tokens
    #[arg(value_name = "N", allow_negative_numbers = true)]
    pub(crate) tokens: u64,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// Forget a bucket: the next request meets a full one
#[derive(Debug, Group)]
#[command(after_help = "Example:
  balde reset user:42 --name api --store redis://127.0.0.1:6379")]
pub(crate) struct Reset {
    #[command(flatten)]
    pub(crate) bucket: Bucket,
}

/// Answer a trace: JSON lines in, JSON lines out, under the trace's own clock
///
/// {"limits": ["10/s burst 20"]} starts a case with an empty store; each further line is a step, such as
/// {"at": 0, "op": "acquire", "key": "a", "cost": 1, "max_wait": 0}, and gets one line of answer. Operations are acquire,
/// peek, refund, reset and limits; times are whole microseconds; misuse is answered by {"error": CODE}.
#[derive(Debug, Group)]
#[command(after_help = "Example:
  printf '%s\\n' '{\"limits\": [\"1/s\"]}' '{\"at\": 0}' '{\"at\": 5}' | balde trace")]
pub(crate) struct Trace {
    /// Where the buckets live: memory:, redis://HOST:PORT or redis+cluster://HOST:PORT,HOST:PORT
    #[arg(long, value_name = "URL", default_value = "memory:")]
    pub(crate) store: String,
}

/// The limits, given once or several times.
#[derive(Debug, Group)]
pub(crate) struct LimitArgs {
    /// A limit, N/[k]UNIT [burst C], such as '10/s burst 20' or 100/15m; several must all pass
    #[arg(long = "limit", value_name = "LIMIT", required = true)]
    texts: Vec<String>,
}

impl LimitArgs {
    pub(crate) fn parsed(&self) -> Result<Limits, Failure> {
        Ok(self.texts.join(";").parse()?)
    }
}

/// One bucket on a server.
#[derive(Debug, Group)]
pub(crate) struct Bucket {
    /// Whose bucket
    pub(crate) key: String,
    /// The store: redis://USER:PASS@HOST:PORT/DB, of which only the host must be given, or redis+cluster://HOST:PORT,HOST:PORT
    // A plain string: what clap cannot parse it prints, and there may be a password in it.
    #[arg(long, value_name = "URL")]
    store: String,
    /// The limiter's name, as the services have it
    #[arg(long, default_value = "default")]
    pub(crate) name: String,
    /// The prefix of all keys on the server
    #[arg(long, default_value = "balde")]
    pub(crate) prefix: String,
    /// How long the store may take to answer
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = duration::parse)]
    pub(crate) deadline: Duration,
    /// Print JSON, times in whole microseconds
    #[arg(long)]
    pub(crate) json: bool,
}

impl Bucket {
    /// The server. A bucket in this process would end with it, so that asking it says nothing.
    pub(crate) fn server(&self) -> Result<StoreUrl, Failure> {
        let store: StoreUrl = self.store.parse()?;
        if store == StoreUrl::memory() {
            return Err(Failure::misuse(
                "memory: is a bucket in this process, and would be gone when the command ends",
                "name a server, such as --store redis://127.0.0.1:6379",
            ));
        }
        Ok(store)
    }
}
