//! What a server's answer means: figures, a redirection, "not now", or an error; and above all, whether the call
//! was executed. Only what proves that it was not may be sent again.

use redis::{RedisError, Value};
use smallvec::SmallVec;

use crate::bucket::Outcome;
use crate::error::{Error, ErrorKind, Result};
use crate::store::url::Address;

/// What to do with an answer.
#[derive(Debug)]
pub(super) enum Verdict {
    Answer(Value),
    /// Not executed: the slot's owner is another node, for good.
    Moved(String),
    /// Not executed: this one key may be found on another node, while its slot is on the way there.
    Ask(String),
    /// Not executed: the node does not know the script.
    NoScript,
    /// Not executed: the node cannot now; the topology may have changed.
    Later(String),
    /// Not executed, and not worth a further try within one deadline.
    Unable(Error),
    /// Nobody knows whether it was executed. Never sent again.
    Unknown(Error),
    /// Not executed, and never will be.
    Refused(Error),
}

impl Verdict {
    pub(super) fn of(reply: Result<Value, RedisError>, node: &Address) -> Verdict {
        let error = match reply {
            Ok(value) => return Verdict::Answer(value),
            Err(error) => error,
        };
        let Some(code) = error.code() else {
            return Verdict::Unknown(Error::unavailable(format!(
                "the connection to {node} broke while waiting for its answer, so that it is unknown whether it acted: {error}"
            )));
        };
        let detail = error.detail().unwrap_or("").to_string();
        match code {
            "MOVED" | "ASK" => match error.redirect_node() {
                Some((address, _)) if code == "MOVED" => Verdict::Moved(address.to_string()),
                Some((address, _)) => Verdict::Ask(address.to_string()),
                None => Verdict::Refused(Error::new(
                    ErrorKind::Internal,
                    format!("{node} answered {code} without an address"),
                )),
            },
            "NOSCRIPT" => Verdict::NoScript,
            // Up to 6.2 what fails inside a script loses its code and keeps its words.
            "ERR" => Verdict::of_words(&detail, node),
            code => Verdict::of_code(code, &detail, node),
        }
    }

    fn of_code(code: &str, detail: &str, node: &Address) -> Verdict {
        let says = format!("{node} answered {code} {detail}");
        match code {
            "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "READONLY" => Verdict::Later(says),
            "BUSY" | "OOM" | "MISCONF" | "NOREPLICAS" => Verdict::Unable(Error::unavailable(says)),
            "NOAUTH" | "WRONGPASS" => Verdict::Refused(Error::new(
                ErrorKind::Auth,
                format!("{node} refused the user or password of the store's URL"),
            )),
            "NOPERM" => Verdict::Refused(Error::new(
                ErrorKind::Permission,
                format!("the access rules of {node} forbid it: {detail}"),
            )),
            "WRONGTYPE" => Verdict::Refused(foreign()),
            _ => Verdict::Refused(Error::new(ErrorKind::Internal, says)),
        }
    }

    fn of_words(detail: &str, node: &Address) -> Verdict {
        const WORDS: [(&str, &str); 9] = [
            ("OOM command not allowed", "OOM"),
            ("MISCONF", "MISCONF"),
            ("READONLY", "READONLY"),
            ("read only replica", "READONLY"),
            ("CLUSTERDOWN", "CLUSTERDOWN"),
            ("Not enough good replicas", "NOREPLICAS"),
            ("can't run this command", "NOPERM"),
            ("no permissions", "NOPERM"),
            ("WRONGTYPE", "WRONGTYPE"),
        ];
        match WORDS.iter().find(|(words, _)| detail.contains(words)) {
            Some((_, code)) => Verdict::of_code(code, detail, node),
            None if detail.contains("unknown command") => Verdict::Refused(Error::new(
                ErrorKind::UnsupportedServer,
                format!("{node} does not run scripts: {detail}"),
            )),
            None => Verdict::Refused(Error::new(ErrorKind::Internal, format!("{node} answered ERR {detail}"))),
        }
    }
}

/// The outcome in the answer to a call of `runs` runs on a bucket of `limits` limits.
pub(super) fn outcome(answer: Value, limits: usize, runs: usize) -> Result<Outcome> {
    let unread = || Error::new(ErrorKind::Internal, "the script's answer is not of the expected form");
    let Value::Array(values) = answer else { return Err(unread()) };
    let mut numbers = SmallVec::<[i64; 8]>::with_capacity(values.len());
    for value in values {
        let Value::Int(number) = value else { return Err(unread()) };
        numbers.push(number);
    }
    if numbers.len() != 2 + runs + limits {
        return Err(unread());
    }
    let ahead = numbers[1];
    if ahead < 0 {
        return Err(foreign());
    }
    Ok(Outcome {
        now: numbers[0],
        ahead,
        admitted: SmallVec::from_slice(&numbers[2..2 + runs]),
        units: SmallVec::from_slice(&numbers[2 + runs..]),
    })
}

fn foreign() -> Error {
    Error::new(
        ErrorKind::Internal,
        "the bucket's key holds something that this version did not write; use another prefix, or reset the key if nobody else needs it",
    )
}

/// Whether an error says that the server is no cluster node (and not that it is one in trouble).
pub(super) fn says_no_cluster(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or("").to_ascii_lowercase();
    error.code() == Some("ERR")
        && ["cluster support disabled", "unknown command", "unknown subcommand", "unsupported"]
            .iter()
            .any(|words| detail.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(line: &str) -> Verdict {
        let reply = match redis::parse_redis_value(format!("-{line}\r\n").as_bytes()) {
            Ok(Value::ServerError(error)) => Err(error.into()),
            reply => reply,
        };
        Verdict::of(reply, &"h:1".parse().unwrap())
    }

    #[test]
    fn what_was_not_executed_may_be_sent_again() {
        assert!(matches!(verdict("MOVED 5 10.0.0.1:7000"), Verdict::Moved(to) if to == "10.0.0.1:7000"));
        assert!(matches!(verdict("ASK 5 :7000"), Verdict::Ask(to) if to == ":7000"));
        assert!(matches!(verdict("NOSCRIPT No matching script."), Verdict::NoScript));
        for line in ["TRYAGAIN x", "CLUSTERDOWN x", "LOADING x", "MASTERDOWN x", "READONLY x"] {
            assert!(matches!(verdict(line), Verdict::Later(_)), "{line}");
        }
        assert!(matches!(
            verdict(
                "ERR Error running script (call to f_1): @user_script:5: READONLY You can't write against a read only replica."
            ),
            Verdict::Later(_)
        ));
    }

    #[test]
    fn a_server_that_cannot_is_unavailable_and_one_that_will_not_is_a_typed_error() {
        for line in [
            "BUSY x",
            "OOM x",
            "MISCONF x",
            "ERR Error running script: OOM command not allowed when used memory > 'maxmemory'.",
        ] {
            assert!(matches!(verdict(line), Verdict::Unable(error) if error.code() == "unavailable"), "{line}");
        }
        for (line, code) in [
            ("NOAUTH Authentication required.", "auth"),
            ("NOPERM this user has no permissions to run the 'evalsha' command", "permission"),
            ("ERR unknown command `EVALSHA`", "unsupported_server"),
            ("WRONGTYPE x", "internal"),
            ("CROSSSLOT x", "internal"),
            ("ERR something else", "internal"),
        ] {
            assert!(matches!(verdict(line), Verdict::Refused(error) if error.code() == code), "{line}");
        }
    }

    #[test]
    fn a_broken_connection_leaves_it_unknown() {
        let broken = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert!(
            matches!(Verdict::of(Err(broken), &"h:1".parse().unwrap()), Verdict::Unknown(error) if error.is_retryable())
        );
    }

    #[test]
    fn an_answer_is_read_whole_or_not_at_all() {
        let answer = |numbers: &[i64]| Value::Array(numbers.iter().map(|n| Value::Int(*n)).collect());
        let read = outcome(answer(&[5, 0, 1, -1, 70, 80]), 2, 2).unwrap();
        assert_eq!((read.now, read.admitted.as_slice(), read.units.as_slice()), (5, &[1, -1][..], &[70, 80][..]));
        assert!(outcome(answer(&[5, 0, 1]), 1, 1).is_err());
        assert!(outcome(Value::Okay, 1, 1).is_err());
        assert!(outcome(answer(&[5, -1, 0, 9]), 1, 1).unwrap_err().message().contains("did not write"));
    }
}
