//! `balde check`, `peek`, `refund` and `reset`: what they say and how they end.

mod program;

use balde_testbed::Server;
use program::{Run, balde};

const LIMIT: [&str; 2] = ["--limit", "2/h"];

fn ask(command: &str, rest: &[&str], url: &str) -> Run {
    balde([&[command, "user:42"], rest, &["--store", url, "--deadline", "5s", "--name", "api"]].concat(), b"")
}

/// The status and what is on standard output.
fn said(run: &Run) -> (i32, &str) {
    assert_eq!(run.err, "", "{}", run.out);
    (run.code, run.out.trim_end())
}

#[test]
fn a_bucket_is_taken_from_seen_filled_and_forgotten() {
    for binary in balde_testbed::servers_or_skip() {
        let server = Server::start(&binary).unwrap();
        let ask = |command, rest: &[&str]| ask(command, rest, &server.url());
        assert_eq!(said(&ask("check", &LIMIT)), (0, "admitted: 1 left, full again in 30m"));
        let peek = ask("peek", &[&LIMIT[..], &["--cost", "2"]].concat());
        assert_eq!(peek.code, 1);
        assert!(
            peek.out.starts_with("would be denied: try again in ") && peek.out.ends_with(" (2/h)\n"),
            "{}",
            peek.out
        );
        assert_eq!(ask("check", &LIMIT).code, 0);
        assert_eq!(ask("check", &LIMIT).code, 1);
        assert_eq!(said(&ask("refund", &[&["1"], &LIMIT[..]].concat())), (0, "given back: 1 left"));
        assert_eq!(ask("peek", &LIMIT).code, 0);
        assert_eq!(said(&ask("reset", &[])), (0, "forgotten: the bucket is full"));
        assert_eq!(said(&ask("peek", &LIMIT)), (0, "would be admitted: 2 left, full again in 0s"));
        let never = ask("check", &[&LIMIT[..], &["--cost", "3"]].concat());
        assert_eq!(said(&never), (1, "denied: never possible, it costs more than a full bucket holds (2/h)"));
    }
}

#[test]
fn programs_get_every_figure() {
    let Some(binary) = balde_testbed::server_or_skip() else { return };
    let server = Server::start(&binary).unwrap();
    let object = |command: &str, rest: &[&str]| -> serde_json::Value {
        let run = ask(command, &[rest, &["--json"]].concat(), &server.url());
        serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {run:?}"))
    };
    let limits = ["--limit", "10/s burst 20", "--limit", "2/h"];
    let got = object("check", &[&limits[..], &["--cost", "2"]].concat());
    let wanted = serde_json::json!({
        "allowed": true, "remaining": 0, "retry_after": 0, "reset_after": 3_600_000_000_u64, "wait": 0,
        "limit": "2/h", "source": "store", "reason": null,
    });
    assert_eq!(got, wanted);
    let never = object("check", &[&limits[..], &["--cost", "3"]].concat());
    assert_eq!(never["reason"], "cost_exceeds_capacity");
    assert_eq!(never["retry_after"], serde_json::Value::Null);
    let refund = object("refund", &[&["1"], &limits[..]].concat());
    assert_eq!(refund, serde_json::json!({"ok": true, "remaining": 1}));
    assert_eq!(object("reset", &[]), serde_json::json!({"ok": true}));
}

#[test]
fn a_request_waits_for_its_turn() {
    let Some(binary) = balde_testbed::server_or_skip() else { return };
    let server = Server::start(&binary).unwrap();
    let request = ["--limit", "5/s burst 1", "--max-wait", "30s"];
    // Five a second, so that at least the last of the ten has to wait, however slow the machine is.
    let runs: Vec<Run> = (0..10).map(|_| ask("check", &request, &server.url())).collect();
    assert!(runs.iter().all(|run| run.code == 0), "{runs:?}");
}

#[test]
fn the_ends_can_be_told_apart() {
    let nobody = "redis://127.0.0.1:1";
    let with = |store: &str, rest: &[&str]| balde([&["check", "k", "--store", store], rest].concat(), b"");
    for (run, code, says) in [
        (with(nobody, &LIMIT), 3, "hint: check that the server runs"),
        (balde(["reset", "k", "--store", nobody], b""), 3, "hint: check that the server runs"),
        (with("memory:", &LIMIT), 2, "hint: name a server"),
        (with("redis://:s3cret@127.0.0.1:x", &LIMIT), 2, "hint: a store reads"),
        (with(nobody, &["--limit", "many"]), 2, "hint: a limit reads"),
        (with(nobody, &[]), 2, "--limit"),
        (with(nobody, &["--limit", "1/s", "--cost", "-1"]), 2, "--cost"),
        (with(nobody, &["--limit", "1/s", "--max-wait", "2"]), 2, "--max-wait"),
        (with(nobody, &["--limit", "1/s", "--name", "a b"]), 2, "name"),
        (balde(["check", "k", "--limit", "1/s"], b""), 2, "--store"),
    ] {
        assert_eq!((run.code, run.out.as_str()), (code, ""), "{}", run.err);
        assert!(run.err.contains(says), "{says}: {}", run.err);
        assert!(!run.err.contains("s3cret"), "{}", run.err);
    }
}

#[test]
fn a_wrong_password_is_a_wrong_configuration() {
    let Some(binary) = balde_testbed::server_or_skip() else { return };
    let server = Server::start_with(&binary, &["--requirepass", "right"]).unwrap();
    let wrong = server.url().replace("right", "s3cret");
    let run = ask("check", &LIMIT, &wrong);
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains("hint: name and password") && !run.err.contains("s3cret"), "{}", run.err);
    assert_eq!(ask("check", &LIMIT, &server.url()).code, 0);
}
