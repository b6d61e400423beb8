use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A direction in which bytes go through a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Requests.
    ToServer,
    /// Replies.
    ToClient,
    /// Both of them.
    Both,
}

/// How bytes go in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flow {
    /// How long after it came a byte goes on, at the soonest.
    pub(super) delay: Duration,
    /// Whether no byte goes on.
    pub(super) held: bool,
    /// How many bytes go on at a time.
    pub(super) piece: usize,
}

impl Flow {
    pub(super) const FREE: Self = Self { delay: Duration::ZERO, held: false, piece: usize::MAX };
}

/// The faults that concern connections as a whole.
#[derive(Debug, Clone)]
pub(super) struct Faults {
    to_server: Flow,
    to_client: Flow,
    /// Whether new connections lead nowhere.
    pub(super) blackhole: bool,
    /// How often all connections were reset.
    pub(super) resets: u64,
}

impl Faults {
    pub(super) const NONE: Self = Self { to_server: Flow::FREE, to_client: Flow::FREE, blackhole: false, resets: 0 };

    /// How bytes go in `direction`, one of the two.
    pub(super) fn flow(&self, direction: Direction) -> Flow {
        if direction == Direction::ToServer { self.to_server } else { self.to_client }
    }

    pub(super) fn change(&mut self, direction: Direction, change: impl Fn(&mut Flow)) {
        if direction != Direction::ToClient {
            change(&mut self.to_server);
        }
        if direction != Direction::ToServer {
            change(&mut self.to_client);
        }
    }

    /// Leaves no fault. Connections that were reset stay so.
    pub(super) fn heal(&mut self) {
        *self = Self { resets: self.resets, ..Self::NONE };
    }
}

/// What becomes of the next replies.
#[derive(Debug, Default)]
pub(super) struct Rules(Mutex<Vec<Rule>>);

#[derive(Debug)]
struct Rule {
    /// What a request contains whose reply it is for.
    needle: Vec<u8>,
    left: usize,
    instead: Vec<u8>,
}

impl Rules {
    /// Puts `instead` in the place of the next `count` replies to requests that contain `needle`.
    pub(super) fn add(&self, needle: &[u8], count: usize, instead: &[u8]) {
        self.lock().push(Rule { needle: needle.into(), left: count, instead: instead.into() });
    }

    /// What to send instead of the reply to `request`, by the oldest rule for it that has some left.
    pub(super) fn judge(&self, request: &[u8]) -> Option<Vec<u8>> {
        let mut rules = self.lock();
        let rule = rules.iter_mut().find(|rule| rule.left > 0 && contains(request, &rule.needle))?;
        rule.left -= 1;
        let instead = rule.instead.clone();
        rules.retain(|rule| rule.left > 0);
        Some(instead)
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || bytes.windows(needle.len()).any(|part| part == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_used_up_in_order() {
        let rules = Rules::default();
        rules.add(b"GET", 1, b"first");
        rules.add(b"", 1, b"second");
        rules.add(b"", 0, b"never");
        assert_eq!(rules.judge(b"SET"), Some(b"second".into()));
        assert_eq!(rules.judge(b"SET"), None);
        assert_eq!(rules.judge(b"a GET b"), Some(b"first".into()));
        assert_eq!(rules.judge(b"a GET b"), None);
        rules.add(b"", 1, b"");
        rules.clear();
        assert_eq!(rules.judge(b"GET"), None);
    }

    #[test]
    fn directions() {
        let mut faults = Faults::NONE;
        faults.change(Direction::ToServer, |flow| flow.held = true);
        assert!(faults.flow(Direction::ToServer).held && !faults.flow(Direction::ToClient).held);
        faults.change(Direction::Both, |flow| flow.piece = 3);
        let (up, down) = (faults.flow(Direction::ToServer), faults.flow(Direction::ToClient));
        assert_eq!((up.piece, down.piece, down.held), (3, 3, false));
        faults.resets = 2;
        faults.heal();
        assert_eq!((faults.flow(Direction::ToServer), faults.resets), (Flow::FREE, 2));
    }
}
