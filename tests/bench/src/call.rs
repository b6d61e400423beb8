//! Calls to the scripts that are compared, as bytes. `lua/README.md` is the contract of balde's.

use balde::Limits;
use balde_testbed::redis::{Cmd, Connection, Pipeline, RedisResult, cmd};

/// balde's script as limiters send it to servers.
const TAKE: &str = concat!(include_str!("../../../lua/clock_server.lua"), "\n", include_str!("../../../lua/take.lua"));

const CLASSICAL: &str = include_str!("classical.lua");

/// One script with the arguments of one limit or several, on keys of its own.
#[derive(Debug)]
pub(crate) struct Contestant {
    digest: String,
    /// Told apart by one letter, so that all have keys of the same length.
    letter: char,
    arguments: Vec<Vec<u8>>,
    /// Where its reply says how many were admitted.
    admitted: usize,
}

impl Contestant {
    /// The classical script, for limits of one.
    pub(crate) fn classical(server: &mut Connection, letter: char, limits: &Limits) -> RedisResult<Self> {
        let limit = &limits[0];
        let rate = limit.count() as f64 / limit.period().as_secs_f64();
        let arguments = [rate.to_string(), limit.burst().to_string(), "1".to_string()].map(String::into_bytes);
        Ok(Contestant { digest: load(server, CLASSICAL)?, letter, arguments: arguments.into(), admitted: 0 })
    }

    /// balde's script, taking one token.
    pub(crate) fn balde(server: &mut Connection, letter: char, limits: &Limits) -> RedisResult<Self> {
        let (cost, count, wait, until) = (1, 1, 0, 0);
        let arguments = vec![packed(rules(limits)), packed([cost, count, wait, until])];
        Ok(Contestant { digest: load(server, TAKE)?, letter, arguments, admitted: 2 })
    }

    /// Calls it once for each user, pipelined, and returns how many calls were admitted.
    pub(crate) fn call(&self, server: &mut Connection, users: &[usize]) -> RedisResult<u64> {
        let mut pipeline = Pipeline::with_capacity(users.len());
        for user in users {
            let mut call = Cmd::new();
            call.arg("EVALSHA").arg(&self.digest).arg(1).arg(format!("balde:{{{}:user:{user}}}", self.letter));
            call.arg(&self.arguments);
            pipeline.add_command(call);
        }
        let replies: Vec<Vec<i64>> = pipeline.query(server)?;
        Ok(replies.iter().filter(|reply| reply.get(self.admitted) == Some(&1)).count() as u64)
    }
}

fn load(server: &mut Connection, source: &str) -> RedisResult<String> {
    cmd("SCRIPT").arg("LOAD").arg(source).query(server)
}

/// Period, refill, scale and capacity of each limit, for limits that whole numbers up to 2^52 hold exactly.
fn rules(limits: &Limits) -> impl Iterator<Item = u64> {
    limits.iter().flat_map(|limit| {
        let period = limit.period().as_micros() as u64;
        let shared = gcd(limit.count(), period);
        let (refill, scale) = (limit.count() / shared, period / shared);
        [period, refill, scale, limit.burst() * scale]
    })
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn packed(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    numbers.into_iter().flat_map(|number| (number as f64).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_whole_numbers() {
        let limits: Limits = "10/s burst 20; 1000/d".parse().unwrap();
        let expected = [1_000_000, 1, 100_000, 2_000_000, 86_400_000_000, 1, 86_400_000, 86_400_000_000];
        assert_eq!(rules(&limits).collect::<Vec<_>>(), expected);
        assert_eq!(packed(rules(&limits)).len(), 64);
    }
}
