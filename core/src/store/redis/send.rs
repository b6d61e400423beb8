//! One command on its way: to the owner of its slot, after redirections, within its deadline, executed at most once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value, cmd};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use super::cluster::Cluster;
use super::reply::Verdict;
use super::script::Script;
use super::topology::redirected;
use crate::error::{Error, Result};
use crate::store::url::Address;

/// The first pause before a further try; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// Redirections followed at once; nodes that send a call round in a circle are given time to agree.
const QUICK_REDIRECTIONS: u32 = 5;

/// A command, the slot of its key, and the script that it calls.
pub(super) struct Message<'a> {
    pub(super) slot: u16,
    pub(super) command: Cmd,
    /// Loaded ahead when the node says NOSCRIPT.
    pub(super) load: Option<&'a Script>,
}

/// What a call was doing when its deadline passed, and why the try before that came to nothing.
struct Trail {
    stage: Stage,
    before: Option<String>,
}

enum Stage {
    Seeking,
    Connecting(Address),
    Waiting(Address),
    Pausing,
}

impl fmt::Display for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.stage {
            Stage::Seeking => f.write_str("asking which server owns the key"),
            Stage::Connecting(node) => write!(f, "connecting to {node}"),
            Stage::Waiting(node) => write!(f, "waiting for {node}; whether it acted is unknown"),
            Stage::Pausing => f.write_str("waiting to try again"),
        }?;
        self.before.iter().try_for_each(|why| write!(f, "; the try before: {why}"))
    }
}

/// How one attempt ended.
enum Step {
    Done(Value),
    /// Not executed; what was learnt leads on at once.
    Onward,
    /// Not executed; it may be in a while.
    Later(String),
}

/// What one attempt leaves to the next.
#[derive(Default)]
struct Course {
    /// The node that the last one told to ask, for this once.
    asked: Option<Address>,
    /// The script must be loaded first.
    load: bool,
}

impl Cluster {
    /// Sends a message and returns its answer.
    ///
    /// # Errors
    /// `unavailable` when no answer came in time, or none that says what happened; the typed refusal of a server.
    pub(super) async fn send(
        self: &Arc<Self>,
        message: Message<'_>,
        deadline: Duration,
        runtime: &Handle,
    ) -> Result<Value> {
        let mut trail = Trail { stage: Stage::Seeking, before: None };
        let answer = on(runtime, || timeout(deadline, self.attempts(&message, &mut trail, runtime))).await;
        answer.unwrap_or_else(|_| {
            // Who does not answer may have been replaced: others are asked, in the background.
            let _ = self.refresh.start(self, runtime);
            Err(Error::overdue(deadline, trail))
        })
    }

    /// Tries until there is an answer; the deadline ends it from outside.
    async fn attempts(self: &Arc<Self>, message: &Message<'_>, trail: &mut Trail, runtime: &Handle) -> Result<Value> {
        let (mut course, mut quick, mut pause) = (Course::default(), 0, FIRST_PAUSE);
        loop {
            let why = match self.attempt(message, &mut course, trail, runtime).await {
                Ok(Step::Done(value)) => return Ok(value),
                Ok(Step::Onward) if quick < QUICK_REDIRECTIONS => {
                    quick += 1;
                    continue;
                }
                Ok(Step::Onward) => "the nodes do not agree about who owns the key".to_string(),
                Ok(Step::Later(why)) => why,
                Err(error) => return Err(error),
            };
            let _ = self.refresh.start(self, runtime);
            (trail.stage, trail.before) = (Stage::Pausing, Some(why));
            on(runtime, || sleep(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn attempt(
        self: &Arc<Self>,
        message: &Message<'_>,
        course: &mut Course,
        trail: &mut Trail,
        runtime: &Handle,
    ) -> Result<Step> {
        trail.stage = Stage::Seeking;
        let Course { asked, load } = std::mem::take(course);
        let asking = asked.is_some();
        let node = match asked {
            Some(address) => self.node(&address),
            None => self.owner(message.slot, runtime).await,
        };
        let node = match node {
            Err(error) if error.is_retryable() => return Ok(Step::Later(error.message().to_string())),
            node => node?,
        };
        trail.stage = Stage::Connecting(node.address.clone());
        let mut connection = match node.connection(runtime).await {
            Err(error) if error.is_retryable() => return Ok(Step::Later(error.message().to_string())),
            connection => connection?,
        };
        trail.stage = Stage::Waiting(node.address.clone());
        let load = message.load.filter(|_| load).map(Script::load);
        let before: Vec<Cmd> = load.into_iter().chain(asking.then(|| cmd("ASKING"))).collect();
        let answer = match before.as_slice() {
            [] => connection.send(&message.command).await,
            before => connection.send_after(before, &message.command).await,
        };
        match Verdict::of(answer, &node.address) {
            Verdict::Answer(value) => Ok(Step::Done(value)),
            Verdict::NoScript => {
                // Also on a node that was only to be asked: the next attempt asks it again.
                *course = Course { asked: asking.then(|| node.address.clone()), load: true };
                Ok(Step::Onward)
            }
            Verdict::Moved(to) => {
                let _ = self.refresh.start(self, runtime);
                Ok(match self.moved(message.slot, &to, &node.address) {
                    Some(_) => Step::Onward,
                    None => Step::Later(format!("{} redirected to {to:?}", node.address)),
                })
            }
            Verdict::Ask(to) => {
                course.asked = redirected(&to, &node.address);
                Ok(Step::Onward)
            }
            Verdict::Later(why) => Ok(Step::Later(why)),
            Verdict::Unknown(error) => {
                let _ = self.refresh.start(self, runtime);
                Err(error)
            }
            Verdict::Unable(error) | Verdict::Refused(error) => Err(error),
        }
    }
}

/// Makes a timer that runs on `runtime`, whoever polls it.
pub(super) fn on<T>(runtime: &Handle, timer: impl FnOnce() -> T) -> T {
    let _inside = runtime.enter();
    timer()
}
