//! The examples run, and say what their comments promise.

use std::process::Command;

use balde_testbed::{Cluster, ClusterOptions, server_or_skip};

fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn quickstart() {
    let text = output(env!("CARGO_BIN_EXE_quickstart"), &[]);
    assert!(text.contains("request 3: go on, 0 left\nrequest 4: too many, try again in"), "{text}");
}

#[test]
fn waiting() {
    let text = output(env!("CARGO_BIN_EXE_waiting"), &[]);
    assert!(text.contains("job 5 after"), "{text}");
}

#[test]
fn plans() {
    let text = output(env!("CARGO_BIN_EXE_plans"), &[]);
    assert!(text.contains("bob (free) got 5, ann (gold) got 60"), "{text}");
}

#[test]
fn share() {
    let Some(binary) = server_or_skip() else { return };
    let cluster = Cluster::start(&binary, &ClusterOptions::default()).unwrap();
    let text = output(env!("CARGO_BIN_EXE_share"), &[&cluster.url(), "3", "1000"]);
    assert!(text.contains("together: 1000 of 1000, exactly"), "{text}");
}
