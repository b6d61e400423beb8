//! Which node owns which slot, as last heard. Pure: it asks nobody.

use redis::Value;

use crate::key::SLOTS;
use crate::store::url::Address;

/// The owner of every slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Topology {
    masters: Vec<Address>,
    /// For each slot one more than its owner's place in `masters`; 0 where nobody serves it.
    owners: Box<[u16]>,
}

impl Topology {
    /// One server that owns everything: no cluster.
    pub(super) fn single(address: Address) -> Self {
        Topology { masters: vec![address], owners: vec![1; SLOTS as usize].into_boxed_slice() }
    }

    /// The answer of `asked` to CLUSTER SLOTS: `[[first, last, [host, port, ...], replicas...], ...]`.
    /// `None` for an answer of another form, or one in which no slot is served.
    pub(super) fn read(answer: &Value, asked: &Address) -> Option<Self> {
        let Value::Array(ranges) = answer else { return None };
        let mut topology = Topology { masters: Vec::new(), owners: vec![0; SLOTS as usize].into_boxed_slice() };
        for range in ranges {
            let Value::Array(parts) = range else { return None };
            let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = parts.as_slice() else { return None };
            let [host, Value::Int(port), ..] = master.as_slice() else { return None };
            let host = match host {
                Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?,
                Value::SimpleString(text) => text,
                Value::Nil => "",
                _ => return None,
            };
            let address = Address { host: host_or(host, asked), port: u16::try_from(*port).ok()? };
            let owner = topology.place(address);
            let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
            topology.owners.get_mut(first..=last)?.fill(owner);
        }
        (!topology.masters.is_empty()).then_some(topology)
    }

    /// The owner of a slot, where one is known.
    pub(super) fn owner(&self, slot: u16) -> Option<&Address> {
        let owner = *self.owners.get(slot as usize)?;
        self.masters.get((owner as usize).checked_sub(1)?)
    }

    /// All nodes that own slots.
    pub(super) fn masters(&self) -> &[Address] {
        &self.masters
    }

    /// Takes a node's word that a slot is another's.
    pub(super) fn moved(&mut self, slot: u16, to: Address) {
        let owner = self.place(to);
        if let Some(slot) = self.owners.get_mut(slot as usize) {
            *slot = owner;
        }
    }

    fn place(&mut self, address: Address) -> u16 {
        let place = self.masters.iter().position(|master| *master == address).unwrap_or_else(|| {
            self.masters.push(address);
            self.masters.len() - 1
        });
        place as u16 + 1
    }
}

/// The address in a redirection by `from`: `host:port`, where an empty host means the same one, and an IPv6 host has no brackets.
pub(super) fn redirected(text: &str, from: &Address) -> Option<Address> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(Address { host: host_or(host, from), port: port.parse().ok()? })
}

/// A node that does not know its own name leaves it out, and `?` stands for a name that is unknown.
fn host_or(host: &str, asked: &Address) -> String {
    if host.is_empty() || host == "?" { asked.host.clone() } else { host.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
        let master = Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())]);
        Value::Array(vec![Value::Int(first), Value::Int(last), master])
    }

    fn host(name: &str) -> Value {
        Value::BulkString(name.as_bytes().to_vec())
    }

    #[test]
    fn slots_have_owners_and_nodes_without_a_name_have_that_of_the_one_asked() {
        let answer = Value::Array(vec![
            range(0, 99, host("a"), 1),
            range(200, 16383, host(""), 2),
            range(100, 150, Value::Nil, 3),
        ]);
        let topology = Topology::read(&answer, &address("seed:9")).unwrap();
        assert_eq!(topology.owner(0), Some(&address("a:1")));
        assert_eq!(topology.owner(16383), Some(&address("seed:2")));
        assert_eq!(topology.owner(150), Some(&address("seed:3")));
        assert_eq!(topology.owner(151), None);
        assert_eq!(topology.masters().len(), 3);
    }

    #[test]
    fn one_slot_moves() {
        let mut topology = Topology::single(address("a:1"));
        topology.moved(7, address("b:2"));
        assert_eq!((topology.owner(7), topology.owner(8)), (Some(&address("b:2")), Some(&address("a:1"))));
    }

    #[test]
    fn answers_of_another_form_are_no_topology() {
        let asked = address("a:1");
        for answer in [
            Value::Okay,
            Value::Array(vec![]),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 16384, host("a"), 1)]),
            Value::Array(vec![range(0, 1, host("a"), 70000)]),
            Value::Array(vec![range(-1, 1, host("a"), 1)]),
        ] {
            assert_eq!(Topology::read(&answer, &asked), None, "{answer:?}");
        }
    }

    #[test]
    fn redirections_name_a_node() {
        let from = address("h:9");
        assert_eq!(redirected("10.0.0.1:7000", &from), Some(address("10.0.0.1:7000")));
        assert_eq!(redirected(":7000", &from), Some(address("h:7000")));
        assert_eq!(redirected("::1:7000", &from), Some(address("[::1]:7000")));
        assert_eq!(redirected("nonsense", &from), None);
    }
}
