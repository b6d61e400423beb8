use crate::form::{Node, ask};
use crate::{Cluster, Error, Server};

/// How many keys are listed and moved at a time.
const BATCH: usize = 100;

/// How long one MIGRATE may take, in milliseconds.
const MOVE_TIMEOUT: u32 = 5_000;

/// A slot on its way from one master to another.
///
/// Dropping it leaves the slot as it is, half moved; [`Migration::finish`] or [`Migration::abandon`] ends it.
#[derive(Debug)]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: u16,
    from: &'a Server,
    to: &'a Server,
}

impl<'a> Migration<'a> {
    pub(crate) fn begin(cluster: &'a Cluster, slot: u16, from: &'a Server, to: &'a Server) -> Result<Self, Error> {
        if from.port() == to.port() {
            return Err(Error::Invalid(format!("slot {slot} is on port {} already", to.port())));
        }
        let (mut source, mut target) = (Node::of(from)?, Node::of(to)?);
        let (source_id, target_id) = (source.view()?.own.id, target.view()?.own.id);
        // The target first: an ASK must not lead to a node that knows of nothing.
        set_slot(&mut target, slot, &["IMPORTING", &source_id])?;
        set_slot(&mut source, slot, &["MIGRATING", &target_id])?;
        Ok(Self { cluster, slot, from, to })
    }

    /// The slot.
    pub fn slot(&self) -> u16 {
        self.slot
    }

    /// The master that owns the slot until the move is finished.
    pub fn from(&self) -> &'a Server {
        self.from
    }

    /// The master that will own it.
    pub fn to(&self) -> &'a Server {
        self.to
    }

    /// Moves one key, so that a slot can be left with some of its keys moved. Says whether there was such a key.
    pub fn move_key(&self, key: &[u8]) -> Result<bool, Error> {
        self.send(&mut Node::of(self.from)?, &[key.to_vec()])
    }

    /// Moves all keys that the slot's owner still has. Returns how many it had.
    pub fn move_keys(&self) -> Result<usize, Error> {
        let mut source = Node::of(self.from)?;
        let mut moved = 0;
        loop {
            let keys: Vec<Vec<u8>> = ask(&mut source, "GETKEYSINSLOT", &[usize::from(self.slot), BATCH])?;
            if keys.is_empty() {
                return Ok(moved);
            }
            self.send(&mut source, &keys)?;
            moved += keys.len();
        }
    }

    /// Gives the slot to its new owner and waits until the cluster has settled. All keys must have been moved.
    pub fn finish(self) -> Result<(), Error> {
        let mut source = Node::of(self.from)?;
        let left: usize = ask(&mut source, "COUNTKEYSINSLOT", &[self.slot])?;
        if left > 0 {
            return Err(Error::Invalid(format!("{left} keys of slot {} were not moved yet", self.slot)));
        }
        let mut target = Node::of(self.to)?;
        let owner = target.view()?.own.id;
        // The new owner first, so that at no time nobody owns the slot.
        set_slot(&mut target, self.slot, &["NODE", &owner])?;
        set_slot(&mut source, self.slot, &["NODE", &owner])?;
        // The other masters would hear of it by gossip; telling them is quicker.
        for master in self.cluster.masters()? {
            if master.port() != self.from.port() && master.port() != self.to.port() {
                set_slot(&mut Node::of(master)?, self.slot, &["NODE", &owner])?;
            }
        }
        self.cluster.settle()
    }

    /// Ends the move without giving the slot away. Keys that were moved stay, out of reach, where they are.
    pub fn abandon(self) -> Result<(), Error> {
        set_slot(&mut Node::of(self.from)?, self.slot, &["STABLE"])?;
        set_slot(&mut Node::of(self.to)?, self.slot, &["STABLE"])
    }

    fn send(&self, source: &mut Node<'_>, keys: &[Vec<u8>]) -> Result<bool, Error> {
        let mut command = redis::cmd("MIGRATE");
        command.arg("127.0.0.1").arg(self.to.port()).arg("").arg(0).arg(MOVE_TIMEOUT);
        if let Some(password) = self.to.password() {
            command.arg("AUTH").arg(password);
        }
        let answer = command.arg("KEYS").arg(keys).query::<String>(&mut source.connection);
        let answer = answer.map_err(Error::redis(format!("MIGRATE on port {}", self.from.port())))?;
        // The other answer is NOKEY.
        Ok(answer == "OK")
    }
}

fn set_slot(node: &mut Node<'_>, slot: u16, args: &[&str]) -> Result<(), Error> {
    let slot = slot.to_string();
    ask(node, "SETSLOT", &[&[slot.as_str()], args].concat())
}
