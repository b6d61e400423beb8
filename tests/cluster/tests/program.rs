//! The program `balde-testbed`, and what it leaves behind: nothing.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use balde_testbed::{server_or_skip, tied, until};

const END: Duration = Duration::from_secs(30);

fn testbed(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_balde-testbed"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Starts a testbed and waits for its URL; the ports are those in it.
fn started(mut testbed: Command) -> (Child, Vec<u16>) {
    let mut child = testbed.spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
    let ports: Vec<u16> = url.trim().split(',').map(|node| node.rsplit(':').next().unwrap().parse().unwrap()).collect();
    for port in &ports {
        TcpStream::connect(("127.0.0.1", *port)).unwrap();
    }
    (child, ports)
}

fn all_refuse(ports: &[u16]) {
    for port in ports {
        until(END, &format!("port {port} to refuse"), || match TcpStream::connect(("127.0.0.1", *port)) {
            Ok(_) => Err("it accepts".into()),
            Err(_) => Ok(()),
        })
        .unwrap();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn servers_die_with_a_testbed_that_is_killed() {
    if server_or_skip().is_none() {
        return;
    }
    for args in [&["run"] as &[&str], &["run", "--masters", "1", "--replicas", "1"]] {
        // What it cannot clean up itself is to go with this test.
        let folder = tempfile::tempdir().unwrap();
        let mut testbed = testbed(args);
        testbed.env("TMPDIR", folder.path());
        let (mut child, ports) = started(testbed);
        // SIGKILL: the testbed has no chance to clean up.
        child.kill().unwrap();
        child.wait().unwrap();
        all_refuse(&ports);
    }
}

#[test]
fn the_end_of_its_input_ends_it() {
    if server_or_skip().is_none() {
        return;
    }
    let (mut child, ports) = started(testbed(&["run"]));
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    all_refuse(&ports);
}

#[test]
fn a_signal_ends_it() {
    if server_or_skip().is_none() {
        return;
    }
    let (mut child, ports) = started(testbed(&["run"]));
    // Held open: waiting for a child closes its input, which would end it as well.
    let _input = child.stdin.take();
    tied::signal(child.id(), libc::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + libc::SIGTERM));
    all_refuse(&ports);
}

#[test]
fn a_command_gets_the_url_and_gives_its_exit_code() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let server = binary.path().to_str().unwrap();
    let script = "echo \"$BALDE_URL\"; exit 7";
    let output = testbed(&["run", "--server", server, "--", "sh", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let url = String::from_utf8(output.stdout).unwrap();
    let port = url.trim().strip_prefix("redis://127.0.0.1:").unwrap().parse().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("BALDE_URL={url}"));
    all_refuse(&[port]);

    let output = testbed(&["run", "--", "no-such-program-anywhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    let output = testbed(&["run", "--", "sh", "-c", "kill -9 $$"]).output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 9));
}

#[test]
fn a_command_is_told_to_stop() {
    if server_or_skip().is_none() {
        return;
    }
    let script = "trap 'exit 5' TERM; echo ready; while :; do read -r line || exit 6; done";
    let mut child = testbed(&["run", "--", "sh", "-c", script]).stderr(Stdio::null()).spawn().unwrap();
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    tied::signal(child.id(), libc::SIGTERM).unwrap();
    // A shell runs its trap when what it waits in has returned: give `read` a line, and no end of input.
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"\n").unwrap();
    let code = until(END, "the command to end", || child.try_wait().unwrap().ok_or("it runs".into()));
    assert_eq!(code.unwrap().code(), Some(5));
}

#[test]
fn misuse_and_missing_servers() {
    assert_eq!(testbed(&["walk"]).stderr(Stdio::null()).status().unwrap().code(), Some(125));
    let output = testbed(&["run", "--server", "/no/such/server"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/server"));

    let mut nowhere = testbed(&["servers"]);
    nowhere.env("PATH", "").env("BALDE_REDIS_SERVERS", "").env("BALDE_VENV", "/no/such/venv");
    let output = nowhere.output().unwrap();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true));
    assert!(String::from_utf8_lossy(&output.stderr).contains("pip install"));
}

#[test]
fn servers_are_listed() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let output = testbed(&["servers"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().contains(binary.path().to_str().unwrap()));
}
