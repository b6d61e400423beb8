use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
usage: balde-testbed servers
           lists the Redis and Valkey servers on this machine; exits with 1 when there is none
       balde-testbed run [--standalone | --cluster] [--masters N] [--replicas N] [--server PATH] [-- COMMAND ARGS...]
           starts one server, or a cluster of N masters (3) with N replicas each (0), on free ports of 127.0.0.1;
           with a COMMAND: runs it with BALDE_URL set and exits as it does (125: the testbed itself failed);
           without: prints the URL and waits until its standard input ends or it is told to stop by a signal";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Help,
    Servers,
    Run(Plan),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Masters and replicas of each; one server alone when there is none.
    pub(crate) cluster: Option<(usize, usize)>,
    pub(crate) server: Option<PathBuf>,
    pub(crate) command: Vec<String>,
}

pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Action, String> {
    match args.next().as_deref() {
        Some("run") => plan(args),
        Some("servers") => args.next().map_or(Ok(Action::Servers), |more| Err(format!("{more:?} is not known here"))),
        Some("help" | "-h" | "--help") => Ok(Action::Help),
        Some(other) => Err(format!("{other:?} is not known")),
        None => Err("what to do is missing".into()),
    }
}

fn plan(mut args: impl Iterator<Item = String>) -> Result<Action, String> {
    let mut plan = Plan::default();
    let (mut alone, mut cluster, mut masters, mut replicas) = (false, false, None, None);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-h" | "--help" => return Ok(Action::Help),
            "--standalone" => alone = true,
            "--cluster" => cluster = true,
            "--masters" => masters = Some(number(&arg, args.next(), 1)?),
            "--replicas" => replicas = Some(number(&arg, args.next(), 0)?),
            "--server" => plan.server = Some(args.next().ok_or("--server needs a path")?.into()),
            "--" => {
                plan.command = args.by_ref().collect();
                if plan.command.is_empty() {
                    return Err("a command is missing after --".into());
                }
            }
            _ => return Err(format!("{arg:?} is not known here")),
        }
    }
    // Whoever counts masters means a cluster.
    if cluster || masters.is_some() || replicas.is_some() {
        plan.cluster = Some((masters.unwrap_or(3), replicas.unwrap_or(0)));
    }
    match alone && plan.cluster.is_some() {
        true => Err("--standalone goes with none of --cluster, --masters and --replicas".into()),
        false => Ok(Action::Run(plan)),
    }
}

fn number(name: &str, value: Option<String>, least: usize) -> Result<usize, String> {
    let number = value.and_then(|value| value.parse().ok()).filter(|number| (least..=100).contains(number));
    number.ok_or_else(|| format!("{name} needs a number from {least} to 100"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Action, String> {
        parse(line.split_whitespace().map(Into::into))
    }

    fn run(cluster: Option<(usize, usize)>, server: Option<&str>, command: &[&str]) -> Result<Action, String> {
        let command = command.iter().map(|word| (*word).into()).collect();
        Ok(Action::Run(Plan { cluster, server: server.map(Into::into), command }))
    }

    #[test]
    fn good_lines() {
        assert_eq!(parsed("servers"), Ok(Action::Servers));
        assert_eq!(parsed("run"), run(None, None, &[]));
        assert_eq!(parsed("run --cluster"), run(Some((3, 0)), None, &[]));
        assert_eq!(parsed("run --replicas 1 -- a --cluster --"), run(Some((3, 1)), None, &["a", "--cluster", "--"]));
        assert_eq!(parsed("run --standalone --server /s"), run(None, Some("/s"), &[]));
        assert_eq!(parsed("run --help"), Ok(Action::Help));
    }

    #[test]
    fn bad_lines() {
        for line in
            ["", "walk", "servers now", "run now", "run --masters", "run --masters 0", "run --masters x", "run --"]
        {
            assert!(parsed(line).is_err(), "{line:?}");
        }
        assert!(parsed("run --standalone --masters 3").is_err());
        assert!(parsed("run --server").is_err());
    }
}
