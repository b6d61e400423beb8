//! Clusters whose nodes are behind proxies.

use std::collections::HashSet;
use std::time::Duration;

use balde_testbed::{
    Cluster, ClusterOptions, Direction, Error, Proxy, redis, server_or_skip, servers_or_skip, slot, until,
};
use redis::{Client, Connection, RedisResult, Value};

const END: Duration = Duration::from_secs(60);

fn start(binary: &balde_testbed::Binary, options: ClusterOptions) -> Cluster {
    let options = ClusterOptions { proxied: true, ..options };
    Cluster::start(binary, &options).unwrap_or_else(|error| panic!("{binary}: {error}"))
}

fn through(proxy: &Proxy) -> Connection {
    let connection = Client::open(proxy.url()).unwrap().get_connection().unwrap();
    connection.set_read_timeout(Some(END)).unwrap();
    connection
}

fn get(connection: &mut Connection, key: &str) -> RedisResult<Option<String>> {
    redis::cmd("GET").arg(key).query(connection)
}

/// The kind of a redirection and the port that it names.
fn redirection(reply: RedisResult<Option<String>>) -> (String, u16) {
    let error = reply.unwrap_err();
    let (address, _) = error.redirect_node().unwrap_or_else(|| panic!("no redirection: {error}"));
    (error.code().unwrap().into(), address.rsplit_once(':').unwrap().1.parse().unwrap())
}

/// The ports of all nodes that `CLUSTER SLOTS` names, as told by the node behind `proxy`.
fn told(proxy: &Proxy) -> HashSet<u16> {
    let ranges: Vec<Vec<Value>> = redis::cmd("CLUSTER").arg("SLOTS").query(&mut through(proxy)).unwrap();
    let nodes = ranges.iter().flat_map(|range| &range[2..]);
    nodes.map(|node| redis::from_redis_value::<(String, u16)>(first_two(node)).unwrap().1).collect()
}

/// The address of a node without what newer servers tell besides.
fn first_two(node: &Value) -> Value {
    let Value::Array(parts) = node else { panic!("no node: {node:?}") };
    Value::Array(parts[..2].to_vec())
}

/// The port and the bus port of all nodes, as `CLUSTER NODES` of the node behind `proxy` names them.
fn known(proxy: &Proxy) -> HashSet<(u16, u16)> {
    let text: String = redis::cmd("CLUSTER").arg("NODES").query(&mut through(proxy)).unwrap();
    let address = |line: &str| {
        let (port, bus) = line.split_once(':')?.1.split_once('@')?;
        Some((port.parse().ok()?, bus.split([' ', ',']).next()?.parse().ok()?))
    };
    text.lines().map(|line| address(line).unwrap_or_else(|| panic!("no address: {line}"))).collect()
}

/// The ports of the proxies, each with the bus port of the node behind it, where no proxy is.
fn announced(cluster: &Cluster) -> HashSet<(u16, u16)> {
    let pairs = cluster.nodes().iter().zip(cluster.proxies());
    pairs.map(|(node, proxy)| (proxy.port(), node.port() + 10_000)).collect()
}

fn ports(cluster: &Cluster) -> HashSet<u16> {
    cluster.proxies().iter().map(Proxy::port).collect()
}

#[test]
fn every_version_leads_through_proxies() {
    for binary in servers_or_skip() {
        let cluster = start(&binary, ClusterOptions::default());
        for proxy in cluster.proxies() {
            assert_eq!(told(proxy), ports(&cluster), "{binary}");
            assert_eq!(known(proxy), announced(&cluster), "{binary}");
            assert!(cluster.url().contains(&format!("127.0.0.1:{}", proxy.port())));
        }
        let (from, to) = (cluster.proxy_of(42).unwrap(), cluster.proxy_of(16_000).unwrap());
        let node = cluster.master_of(42).unwrap();
        assert_eq!(cluster.proxy(node.port()).unwrap().port(), from.port());
        assert_eq!(cluster.proxy(from.port()).unwrap().port(), from.port());
        let key = slot::key_in(42).unwrap();
        let moved = redirection(get(&mut through(to), &key));
        assert_eq!(moved, ("MOVED".into(), from.port()), "{binary}");

        // MIGRATE does not need the proxy.
        let target = cluster.master_of(16_000).unwrap().port();
        let () = redis::cmd("SET").arg(&key).arg("v").query(&mut through(from)).unwrap();
        to.refuse().unwrap();
        let migration = cluster.begin_migration(42, target).unwrap();
        migration.move_keys().unwrap();
        let ask = redirection(get(&mut through(from), &key));
        assert_eq!(ask, ("ASK".into(), to.port()), "{binary}");
        migration.finish().unwrap();
        to.heal().unwrap();
        assert_eq!(cluster.proxy_of(42).unwrap().port(), to.port());
        assert_eq!(get(&mut through(to), &key).unwrap().as_deref(), Some("v"), "{binary}");

        // The reply of one shard is lost, and only that.
        let counted = to.requests("GET");
        to.drop_reply_to(1, key.as_bytes());
        let mut connection = through(to);
        connection.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(get(&mut connection, &key).unwrap_err().is_timeout());
        assert_eq!((to.counters().dropped, to.requests("GET")), (1, counted + 1));

        // What is announced outlives the process.
        node.restart().unwrap();
        cluster.settle().unwrap();
        assert_eq!(told(from), ports(&cluster), "{binary}");
    }
}

#[test]
fn replicas_are_spared() {
    for binary in servers_or_skip() {
        let options = ClusterOptions { replicas: 1, node_timeout: Duration::from_secs(1), ..Default::default() };
        let cluster = start(&binary, options);
        let master = cluster.master_of(7).unwrap();
        let proxy = cluster.proxy_of(7).unwrap();
        // CLUSTER SLOTS names replicas only when they have copied something.
        assert!(told(proxy).is_subset(&ports(&cluster)), "{binary}");
        assert_eq!(known(proxy), announced(&cluster), "{binary}");
        assert_eq!(proxy.counters().replicas, 1, "{binary}");

        proxy.hold(Direction::Both);
        proxy.reset();
        let mut connection = master.connection().unwrap();
        let () = redis::cmd("SET").arg(slot::key_in(7)).arg("v").query(&mut connection).unwrap();
        let reached: u32 = redis::cmd("WAIT").arg(1).arg(20_000).query(&mut connection).unwrap();
        assert_eq!((reached, proxy.counters().replicas), (1, 1), "{binary}");

        // A shard that clients cannot reach is alive for the other nodes, and can hand over.
        let heir = cluster.replicas_of(master.port()).unwrap()[0];
        proxy.heal().unwrap();
        cluster.failover(heir.port()).unwrap();
        let new = cluster.proxy_of(7).unwrap();
        assert_eq!(new.port(), cluster.proxy(heir.port()).unwrap().port());
        let kept = get(&mut through(new), &slot::key_in(7).unwrap()).unwrap();
        assert_eq!(kept.as_deref(), Some("v"), "{binary}");

        // Without being told, once the process dies: the former master takes its place again.
        heir.stop();
        until(END, "the replica to take over", || match cluster.proxy_of(7) {
            Ok(proxy) if proxy.port() != new.port() => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .unwrap();
    }
}

#[test]
fn a_password_is_in_the_url() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let args = ["--requirepass", "word", "--masterauth", "word"].map(String::from).to_vec();
    let cluster = start(&binary, ClusterOptions { masters: 1, replicas: 1, args, ..Default::default() });
    let ports: Vec<String> = cluster.proxies().iter().map(|proxy| format!("127.0.0.1:{}", proxy.port())).collect();
    assert_eq!(cluster.url(), format!("redis+cluster://:word@{}", ports.join(",")));
}

#[test]
fn a_cluster_without_proxies_has_none() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let cluster = Cluster::start(&binary, &ClusterOptions { masters: 1, ..Default::default() }).unwrap();
    assert!(cluster.proxies().is_empty());
    assert!(matches!(cluster.proxy(cluster.nodes()[0].port()), Err(Error::Invalid(_))));
    assert!(matches!(cluster.proxy_of(0), Err(Error::Invalid(_))));
}
