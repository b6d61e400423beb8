//! `balde replay` against the exact oracle, line for line, and the sample log against its generator.

mod program;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::read::GzDecoder;
use program::{balde, root};
use serde_json::Value;

/// A Python that runs, or `None`, which is said.
fn python() -> Option<Command> {
    let works = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match works {
        Ok(status) if status.success() => Some(Command::new("python3")),
        _ => {
            balde_testbed::skipped("there is no python3");
            None
        }
    }
}

/// What a Python program of the project prints.
fn printed(mut python: Command, script: &str, args: &[&str]) -> Vec<u8> {
    let output = python.arg(root(script)).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn sample() -> String {
    let mut text = String::new();
    let packed = fs::read(root("examples/logs/sample.log.gz")).unwrap();
    assert_eq!(packed[4..8], [0; 4], "a time in the file makes it another one each time it is made");
    GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    text
}

/// Plays a log with the oracle and with the program; both must say the same of each line and each key.
fn agrees(log: &Path, limits: &[&str]) {
    let Some(python) = python() else { return };
    let log = log.to_str().unwrap();
    let limits: Vec<&str> = limits.iter().flat_map(|limit| ["--limit", limit]).collect();
    let oracle = printed(python, "tests/oracle/replay.py", &[&[log], &limits[..]].concat());
    let oracle: Value = serde_json::from_slice(&oracle).unwrap();
    let decisions = tempfile::NamedTempFile::new().unwrap();
    let more = ["--key", "ip", "--json", "--decisions", decisions.path().to_str().unwrap()];
    let run = balde([&["replay", log], &limits[..], &more].concat(), b"");
    assert_eq!(run.code, 0, "{}", run.err);
    let found: Value = serde_json::from_str(&run.out).unwrap();
    for figure in ["lines", "bad_lines", "admitted", "denied", "keys"] {
        assert_eq!(found[figure], oracle[figure], "{figure} of {log}");
    }
    assert!(found["denied"].as_u64() > Some(0), "limits that deny nothing prove nothing");
    assert_eq!(fs::read_to_string(decisions.path()).unwrap(), oracle["decisions"].as_str().unwrap(), "{log}");
}

#[test]
fn the_sample_log_is_what_its_generator_makes() {
    let Some(python) = python() else { return };
    assert!(printed(python, "examples/logs/generate.py", &[]) == sample().as_bytes(), "make it again: see its README");
}

#[test]
fn the_sample_log_is_decided_as_the_oracle_does() {
    let log = tempfile::NamedTempFile::new().unwrap();
    fs::write(log.path(), sample()).unwrap();
    agrees(log.path(), &["2/s burst 60"]);
    agrees(log.path(), &["3/s burst 10", "500/h"]);
}

#[test]
fn a_real_log_is_decided_as_the_oracle_does() {
    let log = root("../shared/data/access.log");
    match log.exists() {
        true => agrees(&log, &["1/s burst 10"]),
        false => balde_testbed::skipped(format!("{} is not there", log.display())),
    }
}

/// Plays random traces with the oracle and with the program; every answer must be the same. The changes of limits in
/// them are such that no rounding shows.
fn random_traces_agree(store: &str, seeds: std::ops::Range<u32>) {
    for seed in seeds {
        let Some(generator) = python() else { return };
        let seed = seed.to_string();
        let args = ["--seed", &seed, "--cases", "120", "--steps", "60", "--changes"];
        let trace = printed(generator, "tests/oracle/random_traces.py", &args);
        let oracle = python().map(|mut oracle| {
            oracle.arg(root("tests/oracle/trace.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = oracle.spawn().unwrap();
            let (mut stdin, trace) = (child.stdin.take().unwrap(), trace.clone());
            let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &trace).unwrap());
            let output = child.wait_with_output().unwrap();
            writer.join().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        });
        let run = balde(["trace", "--store", store], &trace);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        let wanted = oracle.unwrap();
        assert_eq!(run.out.lines().count(), 120 * 60);
        for (number, (got, wanted)) in run.out.lines().zip(wanted.lines()).enumerate() {
            assert_eq!(got, wanted, "answer {} of seed {seed} on {store}", number + 1);
        }
    }
}

#[test]
fn random_traces_are_decided_as_the_oracle_does() {
    random_traces_agree("memory:", 1..7);
}

#[test]
fn random_traces_on_servers_are_decided_as_the_oracle_does() {
    for (i, binary) in balde_testbed::servers_or_skip().iter().enumerate() {
        let server = balde_testbed::Server::start(binary).unwrap();
        random_traces_agree(&server.url(), 10 + i as u32..11 + i as u32);
    }
}
