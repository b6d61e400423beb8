use std::collections::HashMap;
use std::ops::RangeInclusive;

/// One line of `CLUSTER NODES`: a node as another one, or the node itself, sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) id: String,
    pub(crate) port: u16,
    flags: Vec<String>,
    /// The master's id, for a replica.
    pub(crate) master: Option<String>,
    pub(crate) epoch: u64,
    connected: bool,
    slots: Vec<RangeInclusive<u16>>,
}

impl Line {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|have| have == flag)
    }

    pub(crate) fn is_master(&self) -> bool {
        self.has("master")
    }

    pub(crate) fn owns(&self, slot: u16) -> bool {
        self.slots.iter().any(|range| range.contains(&slot))
    }

    /// Why this node may not be talked to by the one that sees it, if so.
    fn trouble(&self) -> Option<&str> {
        let flags = ["handshake", "noaddr", "fail", "fail?"];
        flags.into_iter().find(|flag| self.has(flag)).or((!self.connected).then_some("disconnected"))
    }

    fn role(&self) -> (bool, Option<&str>, &[RangeInclusive<u16>]) {
        (self.is_master(), self.master.as_deref(), &self.slots)
    }
}

/// The answer of one node to `CLUSTER NODES`.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The node itself.
    pub(crate) own: Line,
    others: HashMap<String, Line>,
}

impl View {
    /// Reads the answer; `None` when it is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let lines: Vec<Line> = text.lines().map(line).collect::<Option<_>>()?;
        let own = lines.iter().find(|line| line.has("myself"))?.clone();
        let others = lines.into_iter().filter(|line| line.id != own.id).map(|line| (line.id.clone(), line)).collect();
        Some(Self { own, others })
    }

    /// Says whether the node knows `id` and is through with the handshake.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.own.id == id || self.others.get(id).is_some_and(|line| !line.has("handshake"))
    }
}

/// Checks that all these nodes see each other, and see of each other what each says of itself.
/// Nodes that were not asked are left out: they may be dead.
pub(crate) fn agreed(views: &[View]) -> Result<(), String> {
    for teller in views {
        for viewer in views.iter().filter(|viewer| viewer.own.id != teller.own.id) {
            let (viewer_port, port) = (viewer.own.port, teller.own.port);
            let seen = viewer.others.get(&teller.own.id);
            let seen = seen.ok_or_else(|| format!("{viewer_port} does not know {port}"))?;
            if let Some(trouble) = seen.trouble() {
                return Err(format!("{viewer_port} sees {port} as {trouble}"));
            }
            if seen.role() != teller.own.role() || seen.port != port {
                return Err(format!("{viewer_port} has an outdated view of {port}"));
            }
        }
    }
    Ok(())
}

// <id> <ip:port@bus[,host]> <flags> <master|-> <ping> <pong> <epoch> <link> <slots...>
fn line(text: &str) -> Option<Line> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [id, address, flags, master, _, _, epoch, link, slots @ ..] = words.as_slice() else {
        return None;
    };
    Some(Line {
        id: (*id).into(),
        port: address.split_once('@')?.0.rsplit_once(':')?.1.parse().ok()?,
        flags: flags.split(',').map(Into::into).collect(),
        master: (*master != "-").then(|| (*master).into()),
        epoch: epoch.parse().ok()?,
        connected: *link == "connected",
        // A slot on its way is listed apart, in brackets, and still among those of its owner.
        slots: slots.iter().filter(|word| !word.starts_with('[')).map(|word| range(word)).collect::<Option<_>>()?,
    })
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aa 127.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-5460 9000 [7-<-bb]\n\
                     bb 127.0.0.1:7001@17001,host master - 0 17 2 connected 5461-8999\n\
                     cc 127.0.0.1:7002@17002 slave aa 0 17 1 connected\n";

    fn view(text: &str) -> View {
        View::parse(text).unwrap()
    }

    #[test]
    fn a_line_is_read() {
        let view = view(A);
        assert_eq!((view.own.port, view.own.epoch, view.own.is_master()), (7000, 1, true));
        assert!(view.own.owns(5460) && view.own.owns(9000) && !view.own.owns(5461));
        assert_eq!(view.others["cc"].master.as_deref(), Some("aa"));
        assert!(View::parse("nonsense").is_none());
    }

    #[test]
    fn agreement_needs_everybodys_word() {
        let a = view(A);
        let b = A.replace("myself,", "").replace("1,host master", "1,host myself,master");
        assert_eq!(agreed(&[a.clone(), view(&b)]), Ok(()));
        let slots = view(&b.replace("0-5460", "0-5459"));
        assert_eq!(agreed(&[a.clone(), slots]), Err("7001 has an outdated view of 7000".into()));
        let failed = view(&b.replace("0 master", "0 master,fail?"));
        assert_eq!(agreed(&[a.clone(), failed]), Err("7001 sees 7000 as fail?".into()));
        let lonely: String = b.lines().skip(1).map(|line| format!("{line}\n")).collect();
        assert_eq!(agreed(&[a, view(&lonely)]), Err("7001 does not know 7000".into()));
    }
}
