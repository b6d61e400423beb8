//! `balde trace` and `balde replay` against real servers: the same answers, and nothing left behind.

mod program;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use balde_testbed::{Cluster, ClusterOptions, Server, redis, tied};
use program::{balde, root};

/// How many keys a server holds.
fn keys(server: &Server) -> u64 {
    redis::cmd("DBSIZE").query(&mut server.connection().unwrap()).unwrap()
}

/// Every trace with a wanted answer, as one input and one output.
fn vectors() -> (Vec<u8>, Vec<u8>) {
    let (mut traces, mut wanted) = (Vec::new(), Vec::new());
    for folder in ["tests/vectors", "../shared/vectors"] {
        let Ok(entries) = fs::read_dir(root(folder)) else {
            balde_testbed::skipped(format!("{folder} is not there"));
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if let Some(trace) = path.to_str().unwrap().strip_suffix(".want.jsonl") {
                traces.extend(fs::read(format!("{trace}.jsonl")).unwrap());
                wanted.extend(fs::read(&path).unwrap());
            }
        }
    }
    assert!(!wanted.is_empty(), "there are no vectors");
    (traces, wanted)
}

fn answers_as_wanted(url: &str, nodes: &[&Server]) {
    let (traces, wanted) = vectors();
    let run = balde(["trace", "--store", url], &traces);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let wanted = String::from_utf8(wanted).unwrap();
    for (number, (got, wanted)) in run.out.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(got, wanted, "answer {}", number + 1);
    }
    assert_eq!(run.out, wanted);
    nodes.iter().for_each(|node| assert_eq!(keys(node), 0, "keys are left on {}", node.url()));
}

fn replays_as_in_memory(url: &str, nodes: &[&Server]) {
    let log = root("examples/logs/sample.log.gz");
    let replay = |store: &str| {
        let decisions = tempfile::NamedTempFile::new().unwrap();
        let (log, letters) = (log.to_str().unwrap(), decisions.path().to_str().unwrap());
        let limits = ["--limit", "2/s burst 60", "--limit", "500/h"];
        let run =
            balde([&["replay", log, "--json", "--decisions", letters, "--store", store], &limits[..]].concat(), b"");
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        (run.out, fs::read_to_string(letters).unwrap())
    };
    assert!(replay(url) == replay("memory:"), "the server decides otherwise than the embedded store");
    nodes.iter().for_each(|node| assert_eq!(keys(node), 0, "keys are left on {}", node.url()));
}

#[test]
fn every_server_answers_as_wanted() {
    for binary in balde_testbed::servers_or_skip() {
        eprintln!("{binary}");
        let server = Server::start(&binary).unwrap();
        answers_as_wanted(&server.url(), &[&server]);
    }
}

#[test]
fn every_server_replays_as_the_embedded_store() {
    for binary in balde_testbed::servers_or_skip() {
        let server = Server::start(&binary).unwrap();
        replays_as_in_memory(&server.url(), &[&server]);
    }
}

#[test]
fn a_cluster_answers_and_replays_as_one_server() {
    let Some(binary) = balde_testbed::server_or_skip() else { return };
    let cluster = Cluster::start(&binary, &ClusterOptions::default()).unwrap();
    let nodes: Vec<&Server> = cluster.nodes().iter().collect();
    answers_as_wanted(&cluster.url(), &nodes);
    replays_as_in_memory(&cluster.url(), &nodes);
    // A plain address of one node leads to all of them.
    answers_as_wanted(&nodes[0].url(), &nodes);
}

#[test]
fn who_is_interrupted_leaves_nothing() {
    const SIGINT: i32 = 2;
    let Some(binary) = balde_testbed::server_or_skip() else { return };
    let server = Server::start(&binary).unwrap();
    let log: String = (0..2000).map(|second| format!("{{\"time\": {second}, \"ip\": \"::1\"}}\n")).collect();
    for (args, input) in [
        (vec!["trace"], "{\"limits\": [\"1/h\"]}\n{\"at\": 0}\n"),
        (vec!["replay", "-", "--limit", "1/h"], log.as_str()),
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_balde"))
            .args(args.iter().copied().chain(["--store", &server.url()]))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It would wait for more, for ever.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        let written = || if keys(&server) > 0 { Ok(()) } else { Err("none".into()) };
        balde_testbed::until(Duration::from_secs(60), "a key", written).unwrap();
        tied::signal(child.id(), SIGINT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{args:?}");
        assert_eq!(keys(&server), 0, "{args:?}");
    }
}
