//! `balde trace` on the embedded store: the vectors, and what is no step.

mod program;

use std::fs;
use std::path::{Path, PathBuf};

use program::{Run, balde, root};

fn trace(lines: &[&str]) -> Run {
    balde(["trace"], lines.join("\n").as_bytes())
}

/// Plays a file of traces and compares each answer with the one wanted.
fn holds(path: &Path) {
    let run = balde(["trace"], &fs::read(path).unwrap());
    let wanted = fs::read_to_string(path.with_extension("want.jsonl")).unwrap();
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", path.display());
    for (number, (got, wanted)) in run.out.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(got, wanted, "{}: answer {}", path.display(), number + 1);
    }
    assert_eq!(run.out, wanted, "{}", path.display());
}

#[test]
fn the_vectors_hold() {
    let folder = root("tests/vectors");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let traces = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let traces: Vec<PathBuf> = traces.filter(|path| !path.to_str().unwrap().ends_with(".want.jsonl")).collect();
    assert!(!traces.is_empty(), "{} has no vectors", folder.display());
    traces.iter().for_each(|path| holds(path));
}

#[test]
fn the_samples_hold() {
    let samples = root("../shared/vectors/samples.jsonl");
    match samples.exists() {
        true => holds(&samples),
        false => balde_testbed::skipped(format!("{} is not there", samples.display())),
    }
}

#[test]
fn what_is_no_step_gets_its_code_and_changes_nothing() {
    let run = trace(&[
        r#"{"at": 0}"#,
        r#"{"limits": ["1/h burst 2"], "name": "a case"}"#,
        "",
        "nonsense",
        r#"{"at": 0, "cost": NaN}"#,
        r#"{"at": 0, "cost": -1}"#,
        r#"{"at": 0, "op": "refund", "cost": 0.5}"#,
        r#"{"at": 0, "op": "limits", "limits": ["0/s"]}"#,
        r#"{"at": -1}"#,
        r#"{"at": 0, "op": "steal"}"#,
        r#"{"at": 0, "tokens": 1}"#,
        r#"{"at": 0, "key": 7}"#,
        r#"{"at": 0, "cost": 2.0}"#,
        r#"{"limits": ["1/s", "60/1000ms"]}"#,
        r#"{"at": 0}"#,
        r#"{"limits": "1/s; 5/m"}"#,
        r#"{"at": 0}"#,
    ]);
    let answers: Vec<_> = run.out.lines().collect();
    let error = |code: &str| format!(r#"{{"error": "{code}"}}"#);
    let mut wanted: Vec<String> =
        ["option", "option", "cost", "cost", "cost", "limit", "option", "option", "option", "key"]
            .map(|what| error(&format!("invalid_{what}")))
            .into();
    wanted.push(r#"{"allowed": true, "remaining": 0, "retry_after": 0, "reset_after": 7200000000, "wait": 0}"#.into());
    wanted.push(error("invalid_limit"));
    wanted.push(r#"{"allowed": true, "remaining": 0, "retry_after": 0, "reset_after": 12000000, "wait": 0}"#.into());
    assert_eq!(answers, wanted);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

#[test]
fn a_step_is_answered_before_the_next_is_sent() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    let mut child = Command::new(env!("CARGO_BIN_EXE_balde"))
        .arg("trace")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    writeln!(stdin, r#"{{"limits": ["1/s"]}}"#).unwrap();
    for allowed in [true, false] {
        writeln!(stdin, r#"{{"at": 0}}"#).unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert!(answer.starts_with(&format!(r#"{{"allowed": {allowed}"#)), "{answer}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_who_leaves_is_no_failure() {
    use std::process::{Command, Stdio};

    let lines = ["{\"limits\": [\"1/s\"]}\n", &"{\"at\": 0}\n".repeat(20_000)].concat();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), lines).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_balde"))
        .arg("trace")
        .stdin(file.reopen().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
