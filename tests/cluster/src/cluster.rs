use std::time::Duration;

use crate::form::{self, Node, ask};
use crate::migration::Migration;
use crate::port::{BUS, Port};
use crate::view::Line;
use crate::{Binary, Error, Proxy, Server, wait};

/// What a cluster is to be like.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// How many masters share the slots; at least 1, and 3 for failovers that nobody orders.
    pub masters: usize,
    /// How many replicas each master gets.
    pub replicas: usize,
    /// After what silence a node is suspected of being dead, in whole milliseconds (`cluster-node-timeout`).
    pub node_timeout: Duration,
    /// Further arguments for every node, as for [`Server::start_with`]. A password needs `--masterauth` too.
    pub args: Vec<String>,
    /// Whether every node is behind a [`Proxy`] of its own, whose port it announces: then the URL, MOVED, ASK and
    /// `CLUSTER SLOTS` lead clients through proxies, and replicas too, whom faults spare. What the testbed itself asks
    /// of nodes, MIGRATE, and the talk of the nodes among each other go past them.
    pub proxied: bool,
}

impl Default for ClusterOptions {
    /// 3 masters without replicas, a node timeout of 5 s, no further arguments, no proxies.
    fn default() -> Self {
        Self { masters: 3, replicas: 0, node_timeout: Duration::from_secs(5), args: Vec::new(), proxied: false }
    }
}

/// A running Redis Cluster on loopback ports; its nodes are killed when it is dropped.
///
/// It serves the slots that it still has when others are lost (`cluster-require-full-coverage no`).
#[derive(Debug)]
pub struct Cluster {
    servers: Vec<Server>,
    /// One for each server, in the same order, or none at all.
    proxies: Vec<Proxy>,
}

impl Cluster {
    /// Starts the nodes, makes them one cluster and returns when all agree that it is ready and all replicas are in
    /// step. Takes 2 to 4 s: a master refuses to serve in its first 2 s.
    pub fn start(binary: &Binary, options: &ClusterOptions) -> Result<Self, Error> {
        if options.masters == 0 {
            return Err(Error::Invalid("a cluster needs a master".into()));
        }
        let args = arguments(options);
        let launch = || launch(binary, &args, options.proxied);
        let count = options.masters * (1 + options.replicas);
        // All are launched before the first is waited for: they start side by side.
        let launched = (0..count).map(|_| launch()).collect::<Result<Vec<_>, _>>()?;
        let ready = launched.into_iter().map(|node| Server::ready(node, launch, |(server, _)| server));
        let (servers, proxies): (Vec<_>, Vec<_>) = ready.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        form::form(&servers, options.masters)?;
        Ok(Self { servers, proxies: proxies.into_iter().flatten().collect() })
    }

    /// `redis+cluster://127.0.0.1:PORT,127.0.0.1:PORT,...`: all nodes, those that began as masters first. The ports are
    /// those of the proxies when there are some.
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.servers.iter().map(|node| format!("127.0.0.1:{}", node.announced())).collect();
        // All nodes have the same arguments, hence the same password.
        format!("redis+cluster://{}{}", self.servers[0].credentials(), nodes.join(","))
    }

    /// All nodes, those that began as masters first; whatever state they are in.
    pub fn nodes(&self) -> &[Server] {
        &self.servers
    }

    /// The node with this port. Fails with [`Error::Invalid`] when there is none.
    pub fn node(&self, port: u16) -> Result<&Server, Error> {
        let node = self.servers.iter().find(|server| server.port() == port);
        node.ok_or_else(|| Error::Invalid(format!("no node of this cluster has port {port}")))
    }

    /// The proxy in front of the node with this port; the proxy's own port will do as well.
    /// Fails with [`Error::Invalid`] when there is none.
    pub fn proxy(&self, port: u16) -> Result<&Proxy, Error> {
        let mut pairs = self.servers.iter().zip(&self.proxies);
        let pair = pairs.find(|(server, proxy)| server.port() == port || proxy.port() == port);
        pair.map(|(_, proxy)| proxy)
            .ok_or_else(|| Error::Invalid(format!("no proxy of this cluster has to do with port {port}")))
    }

    /// The proxy in front of the master of a slot now, found as [`Cluster::master_of`] does.
    pub fn proxy_of(&self, slot: u16) -> Result<&Proxy, Error> {
        self.proxy(self.master_of(slot)?.port())
    }

    /// All proxies, in the order of [`Cluster::nodes`]; none when the cluster was not to be proxied.
    pub fn proxies(&self) -> &[Proxy] {
        &self.proxies
    }

    /// The nodes that call themselves masters now, of those that answer. One that comes back from a freeze or a
    /// restart may do so until it learns better.
    pub fn masters(&self) -> Result<Vec<&Server>, Error> {
        Ok(self.words()?.into_iter().filter(|(_, line)| line.is_master()).map(|(server, _)| server).collect())
    }

    /// The nodes that call themselves replicas of the node `master` (a port) now, of those that answer.
    /// `master` itself must answer.
    pub fn replicas_of(&self, master: u16) -> Result<Vec<&Server>, Error> {
        let id = Node::of(self.node(master)?)?.view()?.own.id;
        let words = self.words()?.into_iter();
        Ok(words.filter(|(_, line)| line.master.as_ref() == Some(&id)).map(|(server, _)| server).collect())
    }

    /// The master of a slot now: the node that calls it its own, of several the one with the latest claim.
    /// Fails when no node that answers does.
    pub fn master_of(&self, slot: u16) -> Result<&Server, Error> {
        let claims = self.words()?.into_iter().filter(|(_, line)| line.is_master() && line.owns(slot));
        let latest = claims.max_by_key(|(_, line)| line.epoch);
        latest.map(|(server, _)| server).ok_or_else(|| Error::Invalid(format!("no node that answers owns slot {slot}")))
    }

    /// Waits until all nodes that can answer (running, not frozen) agree on who owns what, are fit to serve, and their
    /// replicas are in step; at most 30 s.
    pub fn settle(&self) -> Result<(), Error> {
        wait::until(wait::END, "the nodes to agree", || {
            let nodes = self.answering().map(Node::of).collect::<Result<Vec<_>, _>>();
            form::settled(&mut nodes.map_err(|error| error.to_string())?)
        })
    }

    /// Makes the node `replica` (a port) the master in its master's place (`CLUSTER FAILOVER`) and waits until the
    /// cluster has settled. Nothing is lost. Its master must answer; kill that one for a failover that nobody orders.
    pub fn failover(&self, replica: u16) -> Result<(), Error> {
        // Either side gives a failover up after 5 s, when the other one did not keep up; it must then be ordered anew.
        const GIVEN_UP: Duration = Duration::from_secs(6);

        let mut node = Node::of(self.node(replica)?)?;
        if node.view()?.own.is_master() {
            return Err(Error::Invalid(format!("the node on port {replica} is no replica")));
        }
        let what = format!("port {replica} to become a master");
        wait::until(wait::END, &what, || {
            let () = ask(&mut node, "FAILOVER", &[] as &[&str]).map_err(|error| error.to_string())?;
            let done = wait::until(GIVEN_UP, &what, || match node.view() {
                Ok(view) if view.own.is_master() => Ok(()),
                Ok(_) => Err("it still is a replica".into()),
                Err(error) => Err(error.to_string()),
            });
            done.map_err(|error| error.to_string())
        })?;
        self.settle()
    }

    /// Moves a slot with all its keys to the master `to` (a port): [`Cluster::begin_migration`],
    /// [`Migration::move_keys`], [`Migration::finish`].
    pub fn migrate_slot(&self, slot: u16, to: u16) -> Result<(), Error> {
        let migration = self.begin_migration(slot, to)?;
        migration.move_keys()?;
        migration.finish()
    }

    /// Opens the move of a slot to the master `to` (a port). From here on the slot's owner answers ASK for keys that it
    /// does not have (any more), and `to` serves them to those who say ASKING.
    pub fn begin_migration(&self, slot: u16, to: u16) -> Result<Migration<'_>, Error> {
        Migration::begin(self, slot, self.master_of(slot)?, self.node(to)?)
    }

    /// What each node that can answer says of itself.
    fn words(&self) -> Result<Vec<(&Server, Line)>, Error> {
        self.answering().map(|server| Ok((server, Node::of(server)?.view()?.own))).collect()
    }

    fn answering(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().filter(|server| server.is_running() && !server.is_frozen())
    }
}

/// Starts a node, and a proxy in front of it if there is to be one, without waiting for it.
fn launch(binary: &Binary, args: &[String], proxied: bool) -> Result<(Server, Option<Proxy>), Error> {
    let port = Port::take(true)?;
    if !proxied {
        return Ok((Server::launch(binary, port, args)?, None));
    }
    let proxy = Proxy::start(port.number())?;
    // At the start: Redis 6.2 takes a later change for news to others only.
    let (announced, bus) = (proxy.port().to_string(), (port.number() + BUS).to_string());
    let announce = ["--cluster-announce-port", &announced, "--cluster-announce-bus-port", &bus].map(String::from);
    Ok((Server::launch(binary, port, &[args, &announce].concat())?, Some(proxy)))
}

fn arguments(options: &ClusterOptions) -> Vec<String> {
    let timeout = options.node_timeout.as_millis().to_string();
    let settings = [
        ("--cluster-enabled", "yes"),
        ("--cluster-node-timeout", timeout.as_str()),
        ("--cluster-require-full-coverage", "no"),
        // Known from the start instead of learnt from the first greeting.
        ("--cluster-announce-ip", "127.0.0.1"),
        // A replica gets its copy at once, over the wire.
        ("--repl-diskless-sync", "yes"),
        ("--repl-diskless-sync-delay", "0"),
    ];
    let settings = settings.into_iter().flat_map(|(name, value)| [name.to_owned(), value.to_owned()]);
    settings.chain(options.args.iter().cloned()).collect()
}
