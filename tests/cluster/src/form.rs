use redis::{Connection, FromRedisValue, ToRedisArgs};

use crate::port::BUS;
use crate::view::{self, View};
use crate::{Error, Server, info, slot, wait};

/// One `CLUSTER` command and its arguments, sent to one node.
pub(crate) fn ask<T: FromRedisValue>(node: &mut Node<'_>, what: &str, args: &[impl ToRedisArgs]) -> Result<T, Error> {
    let answer = redis::cmd("CLUSTER").arg(what).arg(args).query(&mut node.connection);
    answer.map_err(Error::redis(format!("CLUSTER {what} on port {}", node.server.port())))
}

/// A node with a connection to it.
pub(crate) struct Node<'a> {
    pub(crate) server: &'a Server,
    pub(crate) connection: Connection,
}

impl<'a> Node<'a> {
    pub(crate) fn of(server: &'a Server) -> Result<Self, Error> {
        Ok(Self { server, connection: server.connection()? })
    }

    pub(crate) fn view(&mut self) -> Result<View, Error> {
        let text: String = ask(self, "NODES", NONE)?;
        let port = self.server.port();
        View::parse(&text).ok_or_else(|| Error::Invalid(format!("CLUSTER NODES on port {port} gave {text:?}")))
    }
}

const NONE: &[&str] = &[];

/// Makes one cluster of fresh nodes: the first `masters` share the slots evenly, the others become their replicas in turn.
pub(crate) fn form(servers: &[Server], masters: usize) -> Result<(), Error> {
    let mut nodes = servers.iter().map(Node::of).collect::<Result<Vec<_>, _>>()?;
    for (index, node) in nodes.iter_mut().enumerate() {
        // Nodes that start with equal epochs must first quarrel them out, which takes rounds of gossip.
        let () = ask(node, "SET-CONFIG-EPOCH", &[index + 1])?;
        if index < masters {
            // Not ADDSLOTSRANGE, which came with Redis 7.
            let () = ask(node, "ADDSLOTS", &slot::share(index, masters).collect::<Vec<u16>>())?;
        }
    }
    // Every pair is introduced, so that nobody has to wait for gossip to hear of somebody.
    for index in 0..nodes.len() {
        for other in &servers[index + 1..] {
            // The bus has no proxy in front.
            let (port, bus) = (other.announced().to_string(), (other.port() + BUS).to_string());
            let () = ask(&mut nodes[index], "MEET", &["127.0.0.1", &port, &bus])?;
        }
    }
    let ids = wait::until(wait::END, "the nodes to know each other", || acquainted(&mut nodes))?;
    for (index, node) in nodes.iter_mut().enumerate().skip(masters) {
        let () = ask(node, "REPLICATE", &[&ids[(index - masters) % masters]])?;
    }
    wait::until(wait::END, "the cluster to be formed", || settled(&mut nodes))
}

/// The nodes' ids, once each knows all.
fn acquainted(nodes: &mut [Node<'_>]) -> Result<Vec<String>, String> {
    let views = views(nodes)?;
    let ids: Vec<String> = views.iter().map(|view| view.own.id.clone()).collect();
    match views.iter().find(|view| !ids.iter().all(|id| view.knows(id))) {
        None => Ok(ids),
        Some(view) => Err(format!("port {} does not know all", view.own.port)),
    }
}

/// Checks that all these nodes are fit to serve, agree on who owns what, and that their replicas are in step.
pub(crate) fn settled(nodes: &mut [Node<'_>]) -> Result<(), String> {
    let views = views(nodes)?;
    view::agreed(&views)?;
    for (node, own) in nodes.iter_mut().zip(views.iter().map(|view| &view.own)) {
        let state: String = ask(node, "INFO", NONE).map_err(|error| error.to_string())?;
        if info::field(&state, "cluster_state") != Some("ok") {
            return Err(format!("port {} says that the cluster is not ok", own.port));
        }
        let replication = node.server.info("replication").map_err(|error| error.to_string())?;
        let replicas = views.iter().filter(|view| view.own.master.as_ref() == Some(&own.id)).count();
        if info::online_replicas(&replication) < replicas {
            return Err(format!("replicas of port {} are not online", own.port));
        }
        // A replica whose master is not among these nodes has nobody to be in step with.
        let followed = views.iter().any(|view| own.master.as_ref() == Some(&view.own.id));
        if followed && info::field(&replication, "master_link_status") != Some("up") {
            return Err(format!("port {} has no link to its master", own.port));
        }
    }
    Ok(())
}

fn views(nodes: &mut [Node<'_>]) -> Result<Vec<View>, String> {
    nodes.iter_mut().map(Node::view).collect::<Result<_, _>>().map_err(|error| error.to_string())
}
