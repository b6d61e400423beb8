//! One command on its way: to the owner of its slot, after redirections, within its deadline, executed at most once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, cmd};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use super::cluster::Cluster;
use super::flight::{Flight, Heard, Landing};
use super::reply::{self, Verdict};
use super::script::{ScriptClock, Take};
use super::topology::redirected;
use crate::bucket::Outcome;
use crate::error::{Error, Result};
use crate::key::ServerKey;
use crate::runtime::on;
use crate::store::url::Address;

/// The first pause before a further try; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// Redirections followed at once; nodes that send a call round in a circle are given time to agree.
const QUICK_REDIRECTIONS: u32 = 5;

/// What a server is asked to do with one key.
#[derive(Debug, Clone)]
pub(super) enum Message {
    Take(Arc<Take>),
    Remove(ServerKey),
}

impl Message {
    fn slot(&self) -> u16 {
        match self {
            Message::Take(take) => take.key.slot,
            Message::Remove(key) => key.slot,
        }
    }

    fn command(&self, until: i64) -> Cmd {
        match self {
            Message::Take(take) => take.command(until),
            Message::Remove(key) => {
                let mut remove = cmd("DEL");
                remove.arg(key.bytes.as_slice());
                remove
            }
        }
    }

    /// The command that makes a server able to do it.
    fn load(&self) -> Option<Cmd> {
        match self {
            Message::Take(take) => Some(take.clock.script().load()),
            Message::Remove(_) => None,
        }
    }
}

/// What a call was doing when its deadline passed, and why the try before that came to nothing.
struct Trail {
    stage: Stage,
    before: Option<String>,
    /// When the deadline passes.
    ends: Instant,
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
    /// Executed; a take has an outcome.
    Done(Option<Outcome>),
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
    /// Sends a message and returns the outcome, where it has one. With `heard`, a take that is given up on is settled
    /// when its answer comes late.
    ///
    /// # Errors
    /// `unavailable` when no answer came in time, or none that says what happened; the typed refusal of a server.
    pub(super) async fn send(
        self: &Arc<Self>,
        message: &Message,
        heard: Option<Heard>,
        deadline: Duration,
        runtime: &Handle,
    ) -> Result<Option<Outcome>> {
        let mut landing = match (message, heard) {
            (Message::Take(take), Some(heard)) => {
                let (cluster, take, runtime) = (Arc::clone(self), Arc::clone(take), runtime.clone());
                Some(Landing { cluster, take, heard, runtime })
            }
            _ => None,
        };
        let mut trail = Trail { stage: Stage::Seeking, before: None, ends: Instant::now() + deadline };
        let attempts = self.attempts(message, &mut landing, &mut trail, runtime);
        let answer = on(runtime, || timeout(deadline, attempts)).await;
        answer.unwrap_or_else(|_| {
            // Who does not answer may have been replaced: others are asked, in the background.
            let _ = self.refresh.start(self, runtime);
            Err(Error::overdue(deadline, trail))
        })
    }

    /// Tries until there is an answer; the deadline ends it from outside.
    async fn attempts(
        self: &Arc<Self>,
        message: &Message,
        landing: &mut Option<Landing>,
        trail: &mut Trail,
        runtime: &Handle,
    ) -> Result<Option<Outcome>> {
        let (mut course, mut quick, mut pause) = (Course::default(), 0, FIRST_PAUSE);
        loop {
            let why = match self.attempt(message, &mut course, landing, trail, runtime).await {
                Ok(Step::Done(outcome)) => return Ok(outcome),
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
        message: &Message,
        course: &mut Course,
        landing: &mut Option<Landing>,
        trail: &mut Trail,
        runtime: &Handle,
    ) -> Result<Step> {
        trail.stage = Stage::Seeking;
        let Course { asked, load } = std::mem::take(course);
        let asking = asked.is_some();
        let node = match asked {
            Some(address) => self.node(&address),
            None => self.owner(message.slot(), runtime).await,
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
        let sent = connection.offset.here();
        let until = connection.offset.there(sent + trail.ends.saturating_duration_since(Instant::now()));
        let command = message.command(until.unwrap_or(0));
        let load = if load { message.load() } else { None };
        let before: Vec<Cmd> = load.into_iter().chain(asking.then(|| cmd("ASKING"))).collect();
        let offset = Arc::clone(&connection.offset);
        let answer = Flight::new(async move { connection.send(&before, &command).await }, landing).await;
        match Verdict::of(answer, &node.address) {
            Verdict::Answer(value) => {
                let Message::Take(take) = message else { return Ok(Step::Done(None)) };
                let outcome = reply::outcome(value, take.limits.len(), take.runs.len())?;
                if take.clock == ScriptClock::Server {
                    offset.learn(outcome.now, sent);
                }
                // Skipped for its time was over, and yet it is not: the server's clock stepped, which is known by now.
                let mut answers = take.runs.iter().zip(&outcome.admitted);
                let skipped = answers.any(|(run, admitted)| run.takes() && run.until == 0 && *admitted == -1);
                Ok(if skipped { Step::Onward } else { Step::Done(Some(outcome)) })
            }
            Verdict::NoScript => {
                // Also on a node that was only to be asked: the next attempt asks it again.
                *course = Course { asked: asking.then(|| node.address.clone()), load: true };
                Ok(Step::Onward)
            }
            Verdict::Moved(to) => {
                let _ = self.refresh.start(self, runtime);
                Ok(match self.moved(message.slot(), &to, &node.address) {
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
