//! The one script, and a call to it as bytes. `lua/README.md` is the contract of both.

use std::sync::LazyLock;

use redis::{Cmd, cmd};

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

    /// The command that decides `runs` on the bucket of `key`.
    pub(super) fn call(&self, key: &ServerKey, limits: &Limits, runs: &[Run], given: Option<i64>) -> Cmd {
        let mut call = cmd("EVALSHA");
        call.arg(&self.digest).arg(1).arg(key.bytes.as_slice());
        call.arg(packed(
            limits.iter().flat_map(|limit| [limit.period_micros() as i64, limit.refill, limit.scale, limit.capacity()]),
        ));
        call.arg(packed(runs.iter().flat_map(|run| [run.cost, run.count, run.wait, run.until])));
        if let Some(now) = given {
            call.arg(now);
        }
        call
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
        let key = crate::key::Keyspace::new("balde", "api").unwrap().key(b"k");
        let limits: Limits = "10/s; 1/d".parse().unwrap();
        let runs = [Run::take(1, 0), Run::refund(2), Run::look()];
        let call = ScriptClock::Given.script().call(&key, &limits, &runs, Some(7));
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
    }
}
