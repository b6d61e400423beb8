//! Single servers of every version found here.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use balde_testbed::{CommandStats, Error, Server, redis, server_or_skip, servers_or_skip};

fn ping(server: &Server) -> Result<String, Error> {
    redis::cmd("PING").query(&mut server.connection()?).map_err(|source| Error::Redis { what: "PING".into(), source })
}

#[test]
fn every_version_starts_answers_and_stops() {
    for binary in servers_or_skip() {
        let server = Server::start(&binary).unwrap_or_else(|error| panic!("{binary}: {error}"));
        assert_eq!(ping(&server).unwrap(), "PONG");
        assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));

        let mut connection = server.connection().unwrap();
        let info: String = redis::cmd("INFO").arg("server").query(&mut connection).unwrap();
        let version = format!("{}_version:{}\r", binary.flavour(), binary.version());
        assert!(info.contains(&version), "{binary} does not run as what it says it is: {info}");

        server.stop();
        assert!(!server.is_running());
        assert!(TcpStream::connect(("127.0.0.1", server.port())).is_err());
        assert!(ping(&server).is_err());
    }
}

#[test]
fn a_restart_keeps_the_port_and_forgets_the_data() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let server = Server::start(&binary).unwrap();
    let port = server.port();
    let () = redis::cmd("SET").arg("a").arg(1).query(&mut server.connection().unwrap()).unwrap();
    // Once from a running state, once from a stopped one.
    server.restart().unwrap();
    server.stop();
    server.restart().unwrap();
    assert_eq!(server.port(), port);
    let value: Option<u32> = redis::cmd("GET").arg("a").query(&mut server.connection().unwrap()).unwrap();
    assert_eq!(value, None);
}

#[test]
fn a_frozen_server_answers_nobody_until_it_is_thawed() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let server = Server::start(&binary).unwrap();
    let mut connection = server.connection().unwrap();
    server.freeze().unwrap();
    server.freeze().unwrap();
    assert!(server.is_frozen() && server.is_running());

    connection.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let silence = redis::cmd("PING").query::<String>(&mut connection).unwrap_err();
    assert!(silence.is_timeout(), "{silence}");

    server.thaw().unwrap();
    assert!(!server.is_frozen());
    assert_eq!(ping(&server).unwrap(), "PONG");

    // Frozen ones can be stopped as well, and only running ones frozen.
    server.freeze().unwrap();
    server.stop();
    assert!(matches!(server.freeze(), Err(Error::Invalid(_))));
    assert!(matches!(server.thaw(), Err(Error::Invalid(_))));
}

#[test]
fn commands_are_counted() {
    for binary in servers_or_skip() {
        let server = Server::start(&binary).unwrap();
        assert_eq!(server.commandstats("GET").unwrap(), CommandStats::default());
        let mut connection = server.connection().unwrap();
        for _ in 0..3 {
            let _: Option<String> = redis::cmd("GET").arg("a").query(&mut connection).unwrap();
        }
        let () = redis::cmd("SET").arg("list").arg("no").query(&mut connection).unwrap();
        redis::cmd("LPUSH").arg("list").arg(1).query::<u32>(&mut connection).unwrap_err();
        let stats = server.commandstats("get").unwrap();
        assert_eq!((stats.calls, stats.failed_calls, stats.rejected_calls), (3, 0, 0), "{binary}");
        assert_eq!(server.commandstats("lpush").unwrap().failed_calls, 1, "{binary}");
    }
}

#[test]
fn a_password_is_known_to_connections_and_the_url() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let server = Server::start_with(&binary, &["--requirepass", "s3cret/ä"]).unwrap();
    assert_eq!(ping(&server).unwrap(), "PONG");
    assert_eq!(server.url(), format!("redis://:s3cret%2F%C3%A4@127.0.0.1:{}", server.port()));
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    assert_eq!(redis::cmd("PING").query::<String>(&mut connection).unwrap(), "PONG");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let error = Server::start_with(&binary, &["--maxmemory", "a-lot"]).unwrap_err();
    assert!(matches!(error, Error::Died { .. }) && error.to_string().contains("maxmemory"), "{error}");
}

#[test]
fn servers_started_side_by_side_do_not_meet() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let start = || {
        let binary = binary.clone();
        thread::spawn(move || Server::start(&binary).unwrap())
    };
    let starters: Vec<_> = (0..6).map(|_| start()).collect();
    let servers: Vec<Server> = starters.into_iter().map(|starter| starter.join().unwrap()).collect();
    // The threads that asked for them have ended; the servers have not.
    for server in &servers {
        assert_eq!(ping(server).unwrap(), "PONG");
    }
    let ports: Vec<u16> = servers.iter().map(Server::port).collect();
    drop(servers);
    assert!(ports.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_err()));
}
