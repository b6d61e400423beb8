//! Real Redis and Valkey servers for tests, the demo and benchmarks.
//!
//! [`Binary`] finds the servers installed on this machine, [`Server`] runs one of them alone, [`Cluster`] runs several
//! as a Redis Cluster. All listen on free loopback ports, keep their files in a temporary folder and are killed when
//! dropped; on Linux they also die when this process dies in any other way ([`tied`]).
//!
//! ```no_run
//! use balde_testbed::{Binary, Cluster, ClusterOptions};
//!
//! let cluster = Cluster::start(&Binary::any()?, &ClusterOptions { replicas: 1, ..Default::default() })?;
//! println!("{}", cluster.url());
//! cluster.master_of(balde_testbed::slot::of(b"user:42"))?.stop();
//! # Ok::<(), balde_testbed::Error>(())
//! ```
//!
//! [`Proxy`] stands in front of a server, or of every node of a cluster ([`ClusterOptions::proxied`]), and makes the
//! faults of a network: delays, lost replies, half-open connections, refusals, resets.
//!
//! Every call blocks; every wait is for a condition and has an end, after which it fails with [`Error::Late`] and the
//! last thing it saw. Everything takes `&self`, so one server can be frozen by one thread while another talks to it.
//!
//! Unix only. Connections are those of the [`redis`] crate, re-exported here so that callers use the same version.

mod binary;
mod cluster;
mod error;
mod find;
mod form;
mod info;
mod migration;
mod port;
mod proxy;
mod server;
mod skip;
pub mod slot;
pub mod tied;
mod view;
mod wait;

pub use binary::{Binary, Flavour, Version};
pub use cluster::{Cluster, ClusterOptions};
pub use error::Error;
pub use find::{Found, Origin};
pub use info::CommandStats;
pub use migration::Migration;
pub use proxy::{Counters, Direction, Proxy};
pub use redis;
pub use server::Server;
pub use skip::{server_or_skip, servers_or_skip, skipped};
pub use wait::until;
