//! The one script, and a call to it as bytes. `lua/README.md` is the contract of both.

use std::sync::LazyLock;

use redis::{Cmd, cmd};
use smallvec::{SmallVec, smallvec};

use crate::bucket::Run;
use crate::key::ServerKey;
use crate::limits::Limits;

/// Whose time the script decides by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptClock {
    /// The server's own.
    Server,
    /// The caller's, given with each call; buckets then never expire by real time.
    Given,
}

/// A prelude that tells the time, and the body that decides.
pub(super) struct Script {
    source: String,
    digest: String,
}

impl ScriptClock {
    pub(super) fn script(self) -> &'static Script {
        static SERVER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../../../lua/clock_server.lua")));
        static GIVEN: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../../../lua/clock_given.lua")));
        match self {
            ScriptClock::Server => &SERVER,
            ScriptClock::Given => &GIVEN,
        }
    }
}

impl Script {
    fn new(prelude: &str) -> Self {
        let source = format!("{prelude}\n{}", include_str!("../../../lua/take.lua"));
        let digest = sha1_smol::Sha1::from(&source).digest().to_string();
        Script { source, digest }
    }

    /// The command that makes a server know the script. One that came by EVAL would be evicted again.
    pub(super) fn load(&self) -> Cmd {
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(&self.source);
        load
    }
}

/// A call of the script: what is asked of one bucket.
#[derive(Debug)]
pub(super) struct Take {
    pub(super) clock: ScriptClock,
    pub(super) key: ServerKey,
    pub(super) limits: Limits,
    pub(super) runs: SmallVec<[Run; 1]>,
    /// The time, for [`ScriptClock::Given`].
    pub(super) given: Option<i64>,
}

impl Take {
    /// The command. Nobody wants what it would take after `until`, in the server's microseconds (0: for ever).
    pub(super) fn command(&self, until: i64) -> Cmd {
        let mut call = cmd("EVALSHA");
        call.arg(&self.clock.script().digest).arg(1).arg(self.key.bytes.as_slice());
        let limits = self.limits.iter();
        call.arg(packed(
            limits.flat_map(|limit| [limit.period_micros() as i64, limit.refill, limit.scale, limit.capacity()]),
        ));
        let runs = self.runs.iter();
        call.arg(packed(runs.flat_map(|run| {
            let until = if run.takes() && run.until == 0 { until } else { run.until };
            [run.cost, run.count, run.wait, until]
        })));
        if let Some(now) = self.given {
            call.arg(now);
        }
        call
    }

    /// The call that gives tokens back to the same bucket.
    pub(super) fn refund(&self, tokens: i64) -> Take {
        let (key, limits) = (self.key.clone(), self.limits.clone());
        Take { clock: self.clock, key, limits, runs: smallvec![Run::refund(tokens)], given: self.given }
    }
}

/// Whole numbers as the script reads them: little-endian doubles, exact to 2^53.
fn packed(numbers: impl Iterator<Item = i64>) -> Vec<u8> {
    numbers.flat_map(|number| (number as f64).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_two_arguments_a_key() {
        let take = Take {
            clock: ScriptClock::Given,
            key: crate::key::Keyspace::new("balde", "api").unwrap().key(b"k"),
            limits: "10/s; 1/d".parse().unwrap(),
            runs: smallvec![Run::take(1, 0), Run::refund(2), Run::look()],
            given: Some(7),
        };
        let call = take.command(9);
        let args: Vec<Vec<u8>> = call
            .args_iter()
            .filter_map(|arg| match arg {
                redis::Arg::Simple(bytes) => Some(bytes.to_vec()),
                _ => None,
            })
            .collect();
        assert_eq!(args.len(), 7);
        assert_eq!(
            (args[3].as_slice(), args[4].len(), args[5].len(), args[6].as_slice()),
            (&b"balde:{api:k}"[..], 64, 96, &b"7"[..])
        );
        assert_eq!(&args[4][..8], &1e6_f64.to_le_bytes());
        assert_eq!(&args[5][40..48], &(-2_f64).to_le_bytes());
        let until = |run: usize| f64::from_le_bytes(args[5][32 * run + 24..32 * run + 32].try_into().unwrap());
        assert_eq!([until(0), until(1), until(2)], [9.0, 0.0, 0.0], "only what takes can come too late");
    }
}
