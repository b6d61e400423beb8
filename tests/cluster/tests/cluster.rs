//! Clusters of every version found here.

use std::collections::HashSet;
use std::net::TcpStream;
use std::time::Duration;

use balde_testbed::{Cluster, ClusterOptions, Error, Server, redis, server_or_skip, servers_or_skip, slot, until};

const END: Duration = Duration::from_secs(60);

fn set(server: &Server, key: &str, value: &str) {
    let () = redis::cmd("SET").arg(key).arg(value).query(&mut server.connection().unwrap()).unwrap();
}

fn get(server: &Server, key: &str) -> Result<Option<String>, redis::RedisError> {
    redis::cmd("GET").arg(key).query(&mut server.connection().unwrap())
}

fn get_asking(server: &Server, key: &str) -> Option<String> {
    let mut connection = server.connection().unwrap();
    let () = redis::cmd("ASKING").query(&mut connection).unwrap();
    redis::cmd("GET").arg(key).query(&mut connection).unwrap()
}

/// The kind of a redirection, its slot and the port it names.
fn redirection(error: &redis::RedisError) -> (String, u16, u16) {
    let (address, slot) = error.redirect_node().unwrap_or_else(|| panic!("no redirection: {error}"));
    let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
    (error.code().unwrap().into(), slot, port)
}

#[test]
fn every_version_forms_a_cluster_and_moves_a_slot() {
    for binary in servers_or_skip() {
        let cluster = Cluster::start(&binary, &ClusterOptions::default()).unwrap_or_else(|e| panic!("{binary}: {e}"));
        let ports: Vec<String> = cluster.nodes().iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        assert_eq!(cluster.url(), format!("redis+cluster://{}", ports.join(",")));
        assert_eq!(cluster.masters().unwrap().len(), 3);
        let owners: HashSet<u16> = [0, 6000, 16_383].map(|slot| cluster.master_of(slot).unwrap().port()).into();
        assert_eq!(owners.len(), 3);
        moves_a_slot(&cluster);
    }
}

fn moves_a_slot(cluster: &Cluster) {
    let tag = slot::key_in(42).unwrap();
    let (first, second) = (format!("{{{tag}}}first"), format!("{{{tag}}}second"));
    let from = cluster.master_of(42).unwrap();
    let to = cluster.master_of(16_000).unwrap();
    assert_eq!(redirection(&get(to, &first).unwrap_err()), ("MOVED".into(), 42, from.port()));
    set(from, &first, "1");
    set(from, &second, "2");

    let migration = cluster.begin_migration(42, to.port()).unwrap();
    assert!(migration.move_key(first.as_bytes()).unwrap());
    assert!(!migration.move_key(first.as_bytes()).unwrap());
    // Half moved: each key is where it is said to be, and both together are nowhere.
    assert_eq!(redirection(&get(from, &first).unwrap_err()), ("ASK".into(), 42, to.port()));
    assert_eq!(get_asking(to, &first).as_deref(), Some("1"));
    assert_eq!(get(from, &second).unwrap().as_deref(), Some("2"));
    let mut connection = to.connection().unwrap();
    let () = redis::cmd("ASKING").query(&mut connection).unwrap();
    let both = redis::cmd("MGET").arg(&first).arg(&second).query::<Vec<String>>(&mut connection);
    assert_eq!(both.unwrap_err().code(), Some("TRYAGAIN"));

    assert_eq!(migration.move_keys().unwrap(), 1);
    migration.finish().unwrap();
    assert_eq!(cluster.master_of(42).unwrap().port(), to.port());
    assert_eq!(get(to, &second).unwrap().as_deref(), Some("2"));
    assert_eq!(redirection(&get(from, &first).unwrap_err()), ("MOVED".into(), 42, to.port()));
}

#[test]
fn unfinished_migrations() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    // MIGRATE, the URL and every connection must know the password.
    let args = ["--requirepass", "word", "--masterauth", "word"].map(String::from).to_vec();
    let cluster = Cluster::start(&binary, &ClusterOptions { masters: 2, args, ..Default::default() }).unwrap();
    assert!(cluster.url().starts_with("redis+cluster://:word@127.0.0.1:"));
    let key = slot::key_in(9).unwrap();
    let from = cluster.master_of(9).unwrap();
    let to = cluster.master_of(16_000).unwrap();
    assert!(matches!(cluster.begin_migration(9, from.port()), Err(Error::Invalid(_))));

    set(from, &key, "here");
    cluster.begin_migration(9, to.port()).unwrap().finish().unwrap_err();
    cluster.begin_migration(9, to.port()).unwrap().abandon().unwrap();
    assert_eq!(get(from, &key).unwrap().as_deref(), Some("here"));
    assert_eq!(cluster.master_of(9).unwrap().port(), from.port());

    cluster.migrate_slot(9, to.port()).unwrap();
    assert_eq!(get(to, &key).unwrap().as_deref(), Some("here"));
}

#[test]
fn failovers_ordered_and_not() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let options = ClusterOptions { replicas: 1, node_timeout: Duration::from_secs(1), ..Default::default() };
    let cluster = Cluster::start(&binary, &options).unwrap();
    assert_eq!((cluster.nodes().len(), cluster.masters().unwrap().len()), (6, 3));
    for master in cluster.masters().unwrap() {
        assert_eq!(cluster.replicas_of(master.port()).unwrap().len(), 1);
    }

    let key = slot::key_in(100).unwrap();
    let old = cluster.master_of(100).unwrap();
    let new = cluster.replicas_of(old.port()).unwrap()[0];
    set(old, &key, "kept");
    assert!(matches!(cluster.failover(old.port()), Err(Error::Invalid(_))));
    cluster.failover(new.port()).unwrap();
    assert_eq!(cluster.master_of(100).unwrap().port(), new.port());
    assert_eq!(get(new, &key).unwrap().as_deref(), Some("kept"));
    assert_eq!(redirection(&get(old, &key).unwrap_err()), ("MOVED".into(), 100, new.port()));
    assert_eq!(cluster.replicas_of(new.port()).unwrap()[0].port(), old.port());

    // Now without being told: its master dies, and comes back as its replica.
    new.stop();
    let heir = until(END, "the replica to take over", || match cluster.master_of(100) {
        Ok(master) if get(master, &key).is_ok() => Ok(master),
        Ok(master) => Err(format!("port {} does not serve yet", master.port())),
        Err(error) => Err(error.to_string()),
    });
    assert_eq!(heir.unwrap().port(), old.port());
    new.restart().unwrap();
    until(END, "the dead to come back as a replica", || match cluster.replicas_of(old.port()) {
        Ok(replicas) if replicas.iter().any(|replica| replica.port() == new.port()) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .unwrap();
    cluster.settle().unwrap();
}

#[test]
fn a_cluster_takes_its_nodes_with_it() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let cluster = Cluster::start(&binary, &ClusterOptions { masters: 1, replicas: 1, ..Default::default() }).unwrap();
    assert!(cluster.node(1).is_err());
    let ports: Vec<u16> = cluster.nodes().iter().map(Server::port).collect();
    assert_eq!(ports.len(), 2);
    drop(cluster);
    for port in ports {
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    }
}

#[test]
fn slots_are_counted_as_the_server_does() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let server = Server::start_with(&binary, &["--cluster-enabled", "yes"]).unwrap();
    let mut connection = server.connection().unwrap();
    for key in ["", "a", "{", "{}", "{}a", "a{b}c", "{{}}", "}{a}", "balde:{api:user%7D}", "ä"] {
        let theirs: u16 = redis::cmd("CLUSTER").arg("KEYSLOT").arg(key).query(&mut connection).unwrap();
        assert_eq!(slot::of(key.as_bytes()), theirs, "{key:?}");
    }
}

#[test]
fn no_masters_no_cluster() {
    let Some(binary) = server_or_skip() else {
        return;
    };
    let error = Cluster::start(&binary, &ClusterOptions { masters: 0, ..Default::default() }).unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
}
