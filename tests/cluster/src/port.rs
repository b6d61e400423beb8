use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{Ipv4Addr, TcpListener};

use crate::Error;

/// Below the range from which kernels give outgoing connections their ports, so that a stopped server's port is still
/// free when it comes back, and low enough for the cluster bus (port + 10000) to stay below that range too.
const FIRST: u16 = 10_000;
const COUNT: u16 = 10_000;

/// How far above its port a cluster node listens for the other nodes.
pub(crate) const BUS: u16 = 10_000;

/// How often a port is chosen anew when it is lost to somebody else.
pub(crate) const ATTEMPTS: usize = 20;

/// A free loopback port, held for one server or proxy.
///
/// It stays held while the server is stopped: other testbeds on this machine, in this process or another, do not choose
/// it. Programs that know nothing of this can still take it, so starting a server must be ready for that.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _claim: Claim,
}

impl Port {
    /// Takes a port; with `bus`, one whose bus port is free too.
    pub(crate) fn take(bus: bool) -> Result<Self, Error> {
        // A random start keeps testbeds that start at the same time apart.
        let start = RandomState::new().build_hasher().finish() % u64::from(COUNT);
        (0..COUNT)
            .map(|step| FIRST + ((start + u64::from(step)) % u64::from(COUNT)) as u16)
            .find_map(|number| {
                let claim = claim(number).ok()?;
                (free(number) && (!bus || free(number + BUS))).then_some(Self { number, _claim: claim })
            })
            .ok_or(Error::NoPort)
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

fn free(number: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok()
}

// An abstract socket is a name that one process can have at a time, that leaves no file, and that the kernel gives free
// when its owner dies. It lives in the network namespace, just as ports do.
#[cfg(target_os = "linux")]
type Claim = std::os::unix::net::UnixListener;

#[cfg(target_os = "linux")]
fn claim(number: u16) -> io::Result<Claim> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("balde-testbed/{number}"))?)
}

#[cfg(not(target_os = "linux"))]
type Claim = ();

#[cfg(not(target_os = "linux"))]
fn claim(_: u16) -> io::Result<Claim> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for what is closed to be free: a child that another test is just forking may hold a copy of it until it
    /// runs its own program.
    fn soon(what: &str, condition: impl Fn() -> bool) {
        let look = || condition().then_some(()).ok_or_else(|| "not yet".into());
        crate::until(crate::wait::END, what, look).unwrap();
    }

    #[test]
    fn ports_are_free_and_given_once() {
        let ports: Vec<Port> = (0..50).map(|_| Port::take(true).unwrap()).collect();
        let mut numbers: Vec<u16> = ports.iter().map(Port::number).collect();
        for number in &numbers {
            assert!((FIRST..FIRST + COUNT).contains(number));
            soon("both ports to be free", || free(*number) && free(number + BUS));
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ports.len());
    }

    #[test]
    fn a_port_in_use_is_not_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!free(listener.local_addr().unwrap().port()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_claim_ends_with_its_port() {
        let port = Port::take(false).unwrap();
        let number = port.number();
        assert!(claim(number).is_err());
        drop(port);
        soon("the claim to end", || claim(number).is_ok());
    }
}
