//! `balde trace`: plays the steps of a trace under its own clock and answers each by one line.

mod line;

use std::io::{BufRead, BufWriter, Write, stdin, stdout};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use balde::{Acquire, Error, ErrorKind, Limits, Simulation, StoreUrl};

use crate::args::Trace;
use crate::exit::{Failure, Verdict};
use crate::feed::Feed;
use crate::figures::Figures;
use crate::interrupt;
use line::{Line, Op, Step};

/// `balde trace`
pub(crate) async fn run(args: &Trace) -> Result<Verdict, Failure> {
    let mut cases = Cases { store: args.store.parse()?, begun: 0, case: Case::None };
    let played = interrupt::unless(answer_all(&mut cases, lines())).await;
    // Also after a failure: what was written to a server is to go.
    let closed = interrupt::unless(cases.end()).await;
    played?;
    closed?;
    Ok(Verdict::Yes)
}

/// Standard input, line by line.
fn lines() -> Feed<std::io::Result<Vec<u8>>> {
    Feed::start(|sink| {
        for line in stdin().lock().split(b'\n') {
            if !sink.put(line) {
                return;
            }
        }
    })
}

async fn answer_all(cases: &mut Cases, mut lines: Feed<std::io::Result<Vec<u8>>>) -> Result<(), Failure> {
    let mut out = BufWriter::new(stdout().lock());
    while let Some(line) = lines.next().await {
        if let Some(answer) = cases.answer(&line?).await? {
            writeln!(out, "{answer}")?;
        }
        // Whoever writes a step and waits for its answer gets it; a file is answered in large blocks.
        if lines.is_idle() {
            out.flush()?;
        }
    }
    Ok(out.flush()?)
}

/// The cases of a trace, one after another, each with a store of its own.
struct Cases {
    store: StoreUrl,
    begun: u64,
    case: Case,
}

enum Case {
    /// No header was met yet.
    None,
    /// The header was wrong: so is every step.
    Refused(ErrorKind),
    Open(Simulation),
}

impl Cases {
    /// The answer to a line; a header and a blank line have none.
    async fn answer(&mut self, line: &[u8]) -> Result<Option<String>, Failure> {
        let answer = match line::read(line) {
            Line::Blank => return Ok(None),
            Line::Header(limits) => {
                self.begin(limits).await?;
                return Ok(None);
            }
            Line::Step(step) => match (&mut self.case, step) {
                (Case::Refused(kind), _) => Err(*kind),
                (Case::None, _) => Err(ErrorKind::InvalidOption),
                (Case::Open(_), Err(kind)) => Err(kind),
                (Case::Open(simulation), Ok(step)) => match perform(simulation, step).await {
                    Ok(answer) => Ok(answer),
                    Err(error) => Err(misuse(error)?),
                },
            },
        };
        Ok(Some(answer.unwrap_or_else(|kind| format!(r#"{{"error": "{}"}}"#, kind.code()))))
    }

    async fn begin(&mut self, limits: Result<Limits, ErrorKind>) -> Result<(), Failure> {
        self.end().await?;
        self.case = match limits {
            Err(kind) => Case::Refused(kind),
            Ok(limits) => {
                self.begun += 1;
                // Unlike any other trace that plays on the same server now.
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
                let name = format!("trace-{now:x}-{:x}-{}", process::id(), self.begun);
                Case::Open(Simulation::open(&self.store, &name, limits).await?)
            }
        };
        Ok(())
    }

    async fn end(&mut self) -> Result<(), Failure> {
        if let Case::Open(simulation) = std::mem::replace(&mut self.case, Case::None) {
            simulation.close().await?;
        }
        Ok(())
    }
}

async fn perform(simulation: &mut Simulation, step: Step) -> Result<String, Error> {
    let Step { at, key, op } = step;
    Ok(match op {
        Op::Acquire { cost, max_wait } => {
            let request = Acquire::cost(cost).max_wait(max_wait);
            Figures(&simulation.acquire(at, &key, &request).await?).to_string()
        }
        Op::Peek { cost } => Figures(&simulation.peek(at, &key, cost).await?).to_string(),
        Op::Refund { tokens } => {
            let remaining = simulation.refund(at, &key, tokens).await?;
            format!(r#"{{"ok": true, "remaining": {remaining}}}"#)
        }
        Op::Reset => {
            simulation.reset(at, &key).await?;
            r#"{"ok": true}"#.into()
        }
        Op::Limits(limits) => {
            simulation.set_limits(limits);
            r#"{"ok": true}"#.into()
        }
    })
}

/// What a step did wrong; a store that fails is no matter of the step and ends the trace.
fn misuse(error: Error) -> Result<ErrorKind, Failure> {
    match error.kind() {
        kind
        @ (ErrorKind::InvalidLimit | ErrorKind::InvalidCost | ErrorKind::InvalidKey | ErrorKind::InvalidOption) => {
            Ok(kind)
        }
        _ => Err(Failure::Balde(error)),
    }
}
