//! Each fault of a proxy in front of one real server.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use balde_testbed::{Direction, Proxy, Server, redis, server_or_skip, servers_or_skip, until};
use redis::{Client, Connection};

const END: Duration = Duration::from_secs(30);

/// Longer than any test lasts: what comes sooner was let through.
const NEVER: Duration = Duration::from_secs(3600);

/// A server behind a proxy; nothing where no server is installed.
fn proxied() -> Option<(Server, Proxy)> {
    let server = Server::start(&server_or_skip()?).unwrap();
    let proxy = Proxy::start(server.port()).unwrap();
    Some((server, proxy))
}

fn client(url: &str) -> Connection {
    let connection = Client::open(url).unwrap().get_connection().unwrap();
    connection.set_read_timeout(Some(END)).unwrap();
    connection
}

fn set(connection: &mut Connection, key: &str, value: &str) -> redis::RedisResult<()> {
    redis::cmd("SET").arg(key).arg(value).query(connection)
}

fn get(connection: &mut Connection, key: &str) -> Option<String> {
    redis::cmd("GET").arg(key).query(connection).unwrap()
}

/// A connection without a client's opinions on what it carries.
fn raw(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.set_read_timeout(Some(END)).unwrap();
    stream
}

/// Sends `line` and checks that exactly `reply` comes next.
fn talk(stream: &mut TcpStream, line: &str, reply: &str) {
    stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    hear(stream, reply);
}

fn hear(stream: &mut TcpStream, reply: &str) {
    let mut heard = vec![0; reply.len()];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(String::from_utf8_lossy(&heard), reply);
}

fn soon(what: &str, condition: impl Fn() -> bool) {
    until(END, what, || condition().then_some(()).ok_or_else(|| "not yet".into())).unwrap();
}

#[test]
fn without_faults_all_passes_and_is_counted() {
    for binary in servers_or_skip() {
        let server = Server::start(&binary).unwrap();
        let proxy = Proxy::start(server.port()).unwrap();
        assert_eq!(proxy.url(), format!("redis://127.0.0.1:{}", proxy.port()));
        let large = "x".repeat(1 << 20);
        for protocol in ["resp2", "resp3"] {
            let mut connection = client(&format!("{}/?protocol={protocol}", proxy.url()));
            set(&mut connection, "a", &large).unwrap();
            assert_eq!(get(&mut connection, "a").as_deref(), Some(large.as_str()), "{binary} {protocol}");
            let _: redis::Value = redis::cmd("CONFIG").arg("GET").arg("*").query(&mut connection).unwrap();
            let mut pipe = redis::pipe();
            for _ in 0..100 {
                pipe.cmd("GET").arg("b");
            }
            assert_eq!(pipe.query::<Vec<Option<String>>>(&mut connection).unwrap().len(), 100);
            assert_eq!(proxy.counters().open, 1);
            drop(connection);
            soon("the connection to end", || proxy.counters().open == 0);
        }
        let counters = proxy.counters();
        assert_eq!((counters.accepted, counters.replicas, counters.dropped, counters.replaced), (2, 0, 0, 0));
        assert_eq!((proxy.requests("set"), proxy.requests("GET"), proxy.requests("LPUSH")), (2, 202, 0));
    }
}

#[test]
fn a_delay_in_each_direction() {
    const DELAY: Duration = Duration::from_millis(120);

    let Some((server, proxy)) = proxied() else { return };
    let mut connection = client(&proxy.url());
    let mut took = |direction, delay| {
        proxy.delay(direction, delay);
        let start = Instant::now();
        set(&mut connection, "a", "1").unwrap();
        start.elapsed()
    };
    assert!(took(Direction::ToServer, DELAY) >= DELAY);
    assert!(took(Direction::ToClient, DELAY) >= 2 * DELAY);
    assert!(took(Direction::ToServer, Duration::ZERO) >= DELAY);

    // A request on its way feels a change, and the end of it.
    proxy.delay(Direction::ToServer, NEVER);
    thread::scope(|scope| {
        let asked = scope.spawn(|| get(&mut connection, "a"));
        soon("the request to be on its way", || proxy.requests("GET") == 1);
        assert_eq!(server.commandstats("get").unwrap().calls, 0);
        proxy.heal().unwrap();
        assert_eq!(asked.join().unwrap().as_deref(), Some("1"));
    });
}

#[test]
fn dropped_replies() {
    let Some((server, proxy)) = proxied() else { return };
    let mut stream = raw(&proxy);
    talk(&mut stream, "PING a", "$1\r\na\r\n");
    proxy.drop_reply(2);
    // Sent together, answered together, and the third is heard: the connection lives, and whole replies were counted.
    talk(&mut stream, "SET k v\r\nCONFIG GET maxmem*\r\nPING b", "$1\r\nb\r\n");
    assert_eq!(get(&mut server.connection().unwrap(), "k").as_deref(), Some("v"));
    assert_eq!(proxy.counters().dropped, 2);

    proxy.drop_reply_to(1, b"INCR");
    talk(&mut stream, "PING c\r\nINCR n\r\nINCR n", "$1\r\nc\r\n:2\r\n");
    proxy.drop_reply(1);
    proxy.heal().unwrap();
    talk(&mut stream, "PING d", "$1\r\nd\r\n");
    assert_eq!(proxy.counters().dropped, 3);
}

#[test]
fn dropped_replies_of_resp3() {
    let Some((server, proxy)) = proxied() else { return };
    let mut stream = raw(&proxy);
    // The reply to HELLO is a map of many things.
    proxy.drop_reply(1);
    talk(&mut stream, "HELLO 3\r\nCLIENT TRACKING ON", "+OK\r\n");
    talk(&mut stream, "GET k", "_\r\n");
    // A message that nobody asked for is no reply.
    proxy.drop_reply(1);
    set(&mut server.connection().unwrap(), "k", "v").unwrap();
    hear(&mut stream, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n");
    talk(&mut stream, "GET k\r\nPING b", "$1\r\nb\r\n");
    assert_eq!(proxy.counters().dropped, 2);
}

#[test]
fn subscriptions_pass() {
    let Some((server, proxy)) = proxied() else { return };
    let mut stream = raw(&proxy);
    proxy.drop_reply(1);
    talk(&mut stream, "SUBSCRIBE c", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    let heard: u32 = redis::cmd("PUBLISH").arg("c").arg("x").query(&mut server.connection().unwrap()).unwrap();
    assert_eq!(heard, 1);
    hear(&mut stream, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n");
    assert_eq!(proxy.counters().dropped, 0);
}

#[test]
fn held_replies_come_when_it_heals() {
    let Some((server, proxy)) = proxied() else { return };
    let mut connection = client(&proxy.url());
    proxy.hold(Direction::ToClient);
    thread::scope(|scope| {
        let asked = scope.spawn(|| set(&mut connection, "a", "1"));
        soon("the server to act", || get(&mut server.connection().unwrap(), "a").is_some());
        assert!(!asked.is_finished());
        proxy.heal().unwrap();
        asked.join().unwrap().unwrap();
    });
}

#[test]
fn held_requests_and_ends_go_on_when_it_heals() {
    let Some((server, proxy)) = proxied() else { return };
    let mut connection = client(&proxy.url());
    let mut idle = client(&proxy.url());
    for (name, connection) in [("asking", &mut connection), ("idle", &mut idle)] {
        let () = redis::cmd("CLIENT").arg("SETNAME").arg(name).query(connection).unwrap();
    }
    let listed = |name: &str| {
        let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut server.connection().unwrap()).unwrap();
        list.contains(&format!("name={name} "))
    };
    proxy.hold(Direction::Both);
    connection.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(set(&mut connection, "a", "1").unwrap_err().is_timeout());
    drop((connection, idle));
    assert_eq!((proxy.requests("SET"), server.commandstats("set").unwrap().calls), (1, 0));

    // One that connects meanwhile is held as well.
    let mut late = raw(&proxy);
    late.write_all(b"PING late\r\n").unwrap();
    soon("the late one's request", || proxy.requests("PING") == 1);
    assert_eq!(server.commandstats("ping").unwrap().calls, 0);
    // By now the proxy has seen that the others are gone; the server has not.
    assert!(listed("asking") && listed("idle") && proxy.counters().open == 3);

    proxy.heal().unwrap();
    hear(&mut late, "$4\r\nlate\r\n");
    soon("the request to arrive", || server.commandstats("set").unwrap().calls == 1);
    soon("the ends to arrive", || !listed("asking") && !listed("idle"));
}

#[test]
fn refused_connections() {
    let Some((_server, proxy)) = proxied() else { return };
    let mut stream = raw(&proxy);
    talk(&mut stream, "PING a", "$1\r\na\r\n");
    for _ in 0..2 {
        proxy.refuse().unwrap();
        let refused = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        talk(&mut stream, "PING b", "$1\r\nb\r\n");
    }
    proxy.heal().unwrap();
    talk(&mut raw(&proxy), "PING c", "$1\r\nc\r\n");
}

#[test]
fn connections_into_a_black_hole() {
    let Some((server, proxy)) = proxied() else { return };
    let mut before = raw(&proxy);
    talk(&mut before, "PING a", "$1\r\na\r\n");
    proxy.blackhole();
    let mut lost = raw(&proxy);
    lost.write_all(b"SET k v\r\n").unwrap();
    lost.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let silence = lost.read(&mut [0]).unwrap_err();
    assert!(matches!(silence.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silence}");
    talk(&mut before, "GET k", "$-1\r\n");
    assert_eq!(server.commandstats("set").unwrap().calls, 0);

    proxy.heal().unwrap();
    lost.set_read_timeout(Some(END)).unwrap();
    hear(&mut lost, "+OK\r\n");
}

#[test]
fn reset_connections() {
    let Some((server, proxy)) = proxied() else { return };
    let mut streams = [raw(&proxy), raw(&proxy)];
    for stream in &mut streams {
        talk(stream, "PING a", "$1\r\na\r\n");
    }
    // What was held is lost, not released.
    proxy.hold(Direction::ToServer);
    streams[0].write_all(b"SET k v\r\n").unwrap();
    soon("the request to be held", || proxy.requests("SET") == 1);
    proxy.reset();
    for stream in &mut streams {
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    proxy.heal().unwrap();
    talk(&mut raw(&proxy), "GET k", "$-1\r\n");
    soon("the server to see their end", || proxy.counters().open == 0);
    assert_eq!((server.commandstats("set").unwrap().calls, proxy.counters().accepted), (0, 3));
}

#[test]
fn slices() {
    let Some((server, proxy)) = proxied() else { return };
    let value = "0123456789".repeat(20);
    let mut stream = raw(&proxy);
    talk(&mut stream, &format!("SET k {value}"), "+OK\r\n");
    proxy.slice(3);
    stream.write_all(b"GET k\r\n").unwrap();
    let (mut reply, mut reads) = (Vec::new(), 0);
    let expected = format!("$200\r\n{value}\r\n");
    while reply.len() < expected.len() {
        let mut buffer = [0; 1000];
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0);
        reply.extend_from_slice(&buffer[..length]);
        reads += 1;
    }
    assert_eq!(String::from_utf8(reply).unwrap(), expected);
    // How many pieces a read finds is the kernel's affair; but never is it all of them.
    assert!(reads > 1);

    let mut connection = client(&proxy.url());
    proxy.slice(1);
    set(&mut connection, "k", "sliced").unwrap();
    assert_eq!(get(&mut connection, "k").as_deref(), Some("sliced"));
    assert_eq!(server.commandstats("set").unwrap().calls, 2);
}

#[test]
fn garbage_instead_of_replies() {
    let Some((server, proxy)) = proxied() else { return };
    let mut stream = raw(&proxy);
    proxy.garbage_to(b"SET", b"\0HTTP");
    talk(&mut stream, "PING a\r\nSET k v\r\nPING b", "$1\r\na\r\n\0HTTP$1\r\nb\r\n");
    assert_eq!(get(&mut server.connection().unwrap(), "k").as_deref(), Some("v"));
    assert_eq!((proxy.counters().replaced, proxy.counters().dropped), (1, 0));

    let mut connection = client(&proxy.url());
    proxy.garbage(b"what?\r\n");
    let error = redis::cmd("GET").arg("k").query::<String>(&mut connection).unwrap_err();
    assert_eq!(error.kind(), redis::ErrorKind::Parse, "{error}");
    assert_eq!(get(&mut client(&proxy.url()), "k").as_deref(), Some("v"));
}

#[test]
fn a_server_that_is_down_and_comes_back() {
    let Some((server, proxy)) = proxied() else { return };
    let mut before = raw(&proxy);
    talk(&mut before, "PING a", "$1\r\na\r\n");
    server.stop();
    // Either kind of end, as the server's kernel chose.
    assert!(matches!(before.read(&mut [0]), Ok(0) | Err(_)));
    let error = raw(&proxy).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    server.restart().unwrap();
    talk(&mut raw(&proxy), "PING b", "$1\r\nb\r\n");
}

#[test]
fn a_dropped_proxy_leaves_nothing() {
    let Some((_server, proxy)) = proxied() else { return };
    let mut stream = raw(&proxy);
    talk(&mut stream, "PING a", "$1\r\na\r\n");
    proxy.hold(Direction::Both);
    let port = proxy.port();
    drop(proxy);
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    assert_eq!(TcpStream::connect(("127.0.0.1", port)).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}
