/// What a server counted about one command since it started or since `CONFIG RESETSTAT`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommandStats {
    /// Calls that were executed, failed ones included.
    pub calls: u64,
    /// Time spent in them, in microseconds.
    pub usec: u64,
    /// Calls refused before they were executed (wrong arity, no permission, wrong node and the like).
    pub rejected_calls: u64,
    /// Calls that failed while they were executed.
    pub failed_calls: u64,
}

impl CommandStats {
    /// Reads the line of `command` from the text of `INFO commandstats`; all zero when it was never called.
    pub(crate) fn read(info: &str, command: &str) -> Self {
        let line = field(info, &format!("cmdstat_{}", command.to_ascii_lowercase())).unwrap_or_default();
        let count = |name: &str| {
            let value = line.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            value.and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        Self {
            calls: count("calls"),
            usec: count("usec"),
            rejected_calls: count("rejected_calls"),
            failed_calls: count("failed_calls"),
        }
    }
}

/// The value of `name` in the text of `INFO` or `CLUSTER INFO`.
pub(crate) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

/// How many replicas a master has that are in step with it, from the text of `INFO replication`.
pub(crate) fn online_replicas(info: &str) -> usize {
    info.lines().filter(|line| line.starts_with("slave") && line.contains(",state=online,")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commandstats() {
        let info = "# Commandstats\r\ncmdstat_eval:calls=9,usec=90,usec_per_call=10.00\r\n\
                    cmdstat_evalsha:calls=3,usec=70,usec_per_call=23.33,rejected_calls=1,failed_calls=2\r\n";
        let expected = CommandStats { calls: 3, usec: 70, rejected_calls: 1, failed_calls: 2 };
        assert_eq!(CommandStats::read(info, "EVALSHA"), expected);
        assert_eq!(CommandStats::read(info, "eval").rejected_calls, 0);
        assert_eq!(CommandStats::read(info, "get"), CommandStats::default());
    }

    #[test]
    fn replicas() {
        let info = "role:master\r\nconnected_slaves:2\r\n\
                    slave0:ip=127.0.0.1,port=1,state=online,offset=14,lag=0\r\n\
                    slave1:ip=127.0.0.1,port=2,state=wait_bgsave,offset=0,lag=0\r\n";
        assert_eq!(online_replicas(info), 1);
        assert_eq!(field(info, "role"), Some("master"));
        assert_eq!(field(info, "connected"), None);
    }
}
