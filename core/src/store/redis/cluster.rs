//! The nodes of a store and which of them owns what. A single server is a cluster of one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::runtime::Handle;

use super::connect::{Login, Node};
use super::refresh::Refresh;
use super::topology::{Topology, redirected};
use crate::error::{Error, Result};
use crate::store::url::{Address, Servers};

/// Locks here are held for a look or a change, never across I/O: one node's trouble must not block another's calls.
pub(super) struct Cluster {
    pub(super) servers: Servers,
    login: Login,
    topology: RwLock<Option<Topology>>,
    nodes: Mutex<Nodes>,
    pub(super) refresh: Refresh,
}

#[derive(Default)]
struct Nodes {
    by_address: HashMap<Address, Arc<Node>>,
    closed: bool,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("seeds", &self.servers.seeds).finish_non_exhaustive()
    }
}

impl Cluster {
    pub(super) fn new(servers: Servers) -> Arc<Self> {
        Arc::new(Cluster {
            login: Login::new(&servers),
            servers,
            topology: RwLock::new(None),
            nodes: Mutex::default(),
            refresh: Refresh::new(),
        })
    }

    /// The node that owns `slot`, asking for the topology first where it is not known.
    ///
    /// # Errors
    /// Why nobody could say. Nothing was sent then.
    pub(super) async fn owner(self: &Arc<Self>, slot: u16, runtime: &Handle) -> Result<Arc<Node>> {
        loop {
            if let Some(address) = self.owner_address(slot) {
                return self.node(&address);
            }
            let mut ended = self.refresh.start(self, runtime);
            let known = ended.changed().await.is_ok();
            let result = ended.borrow().clone();
            match result {
                Err(error) => return Err(error),
                Ok(()) if !known => return Err(Error::closed()),
                Ok(()) if self.owner_address(slot).is_none() => {
                    return Err(Error::unavailable(format!("no node serves slot {slot} now")));
                }
                Ok(()) => {}
            }
        }
    }

    /// The node at an address, connected or not.
    pub(super) fn node(&self, address: &Address) -> Result<Arc<Node>> {
        let mut nodes = self.nodes();
        if nodes.closed {
            return Err(Error::closed());
        }
        if let Some(node) = nodes.by_address.get(address) {
            return Ok(Arc::clone(node));
        }
        let node = Node::new(address.clone(), self.login.clone());
        nodes.by_address.insert(address.clone(), Arc::clone(&node));
        Ok(node)
    }

    /// The owners of slots, once the topology is known.
    pub(super) fn masters(&self) -> Vec<Address> {
        self.topology
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map_or_else(Vec::new, |topology| topology.masters().to_vec())
    }

    /// Everybody who may know the topology: the owners of slots first, then the servers of the URL.
    pub(super) fn candidates(&self) -> Vec<Arc<Node>> {
        let mut addresses = self.masters();
        for seed in &self.servers.seeds {
            if !addresses.contains(seed) {
                addresses.push(seed.clone());
            }
        }
        addresses.iter().filter_map(|address| self.node(address).ok()).collect()
    }

    /// Takes a new topology for true and lets go of nodes that it no longer names; calls under way there still end.
    pub(super) fn adopt(&self, topology: Topology) {
        self.nodes()
            .by_address
            .retain(|address, _| topology.masters().contains(address) || self.servers.seeds.contains(address));
        *self.topology.write().unwrap_or_else(PoisonError::into_inner) = Some(topology);
    }

    /// Takes the word of `from` that `slot` is another's, and returns whose.
    pub(super) fn moved(&self, slot: u16, to: &str, from: &Address) -> Option<Address> {
        let address = redirected(to, from)?;
        if let Some(topology) = self.topology.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            topology.moved(slot, address.clone());
        }
        Some(address)
    }

    /// Closes every connection, for good.
    pub(super) fn close(&self) {
        let mut nodes = self.nodes();
        nodes.closed = true;
        for (_, node) in nodes.by_address.drain() {
            node.close();
        }
    }

    fn owner_address(&self, slot: u16) -> Option<Address> {
        self.topology.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.owner(slot).cloned()
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
