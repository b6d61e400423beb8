//! `balde replay`: what limits would have done to the traffic of logs, on the logs' own clock.
//!
//! A thread reads lines and makes requests of them ([`input`]); they are put in order ([`order`]), played against a
//! simulation ([`play`]), counted ([`tally`]) and reported, as text, JSON or a page.

mod chart;
mod combined;
mod csv;
mod format;
mod html;
mod input;
mod json;
mod key;
mod lines;
mod order;
mod play;
mod record;
mod report;
mod save;
mod tally;
mod text;
mod time;
mod timeline;

use std::io::{BufWriter, Write, stdout};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use balde::{Simulation, StoreUrl};

use crate::args::Replay;
use crate::exit::{Failure, Verdict};
use crate::feed::Feed;
use crate::interrupt;
use input::{Batch, Log};
use key::Key;
use order::{Event, Order};
use record::Wanted;
use report::Report;
use save::Save;
use tally::Tally;

/// How many keys people are shown when they do not say.
const TOP: usize = 20;

/// `balde replay`
pub(crate) async fn run(args: Replay) -> Result<Verdict, Failure> {
    let limits = args.limits.parsed()?;
    let store: StoreUrl = args.store.parse()?;
    let wanted = wanted(&args)?;
    let key = wanted.key.to_string();
    let logs = args.logs.into_iter().map(Log::open).collect::<Result<Vec<_>, _>>()?;
    let html = args.html.map(Save::begin).transpose()?;
    let decisions = args.decisions.map(Save::begin).transpose()?;
    let names: Vec<String> = logs.iter().map(|log| log.name.clone()).collect();

    // Unlike any other replay that plays on the same server now.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let name = format!("replay-{now:x}-{:x}", process::id());
    let simulation = interrupt::unless(Simulation::open(&store, &name, limits.clone())).await?;
    let mut tally = Tally::new(decisions.is_some());
    let mut order = Order::new(u64::try_from(args.window.as_micros()).unwrap_or(u64::MAX));
    let feed = input::read(logs, args.format, wanted);
    let remote = store != StoreUrl::memory();
    let played = interrupt::unless(play_all(feed, &simulation, remote, &mut order, &mut tally)).await;
    // Also after a failure: what was written to a server is to go.
    let closed = interrupt::unless(simulation.close()).await;
    played?;
    closed?;

    let report = Report { limits, key, window: args.window, logs: names, tally: &tally, late_lines: order.late() };
    if let Some(file) = html {
        file.write(html::page(&report, args.top.unwrap_or(TOP)).as_bytes())?;
    }
    if let Some(file) = decisions {
        file.write(tally.decisions())?;
    }
    let mut out = BufWriter::new(stdout().lock());
    match args.json {
        true => report.write_json(&mut out, args.top.unwrap_or(usize::MAX))?,
        false => text::write(&report, args.top.unwrap_or(TOP), &mut out)?,
    }
    out.flush()?;
    Ok(Verdict::Yes)
}

fn wanted(args: &Replay) -> Result<Wanted, Failure> {
    let key = Key::parse(&args.key)?;
    if let (Some(crate::args::FormatName::Combined), Key::Field(name)) = (args.format, &key)
        && !combined::NAMES.contains(&name.as_str())
    {
        let hint = format!("its fields are {}; for others write regex:PATTERN", combined::NAMES.join(", "));
        return Err(Failure::misuse(format!("an access log has no field {name:?}"), hint));
    }
    Ok(Wanted { key, time: args.time_field.clone(), cost: args.cost_field.clone() })
}

async fn play_all(
    mut feed: Feed<Batch>,
    simulation: &Simulation,
    remote: bool,
    order: &mut Order,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let mut chunk = Vec::with_capacity(play::CHUNK);
    while let Some(batch) = feed.next().await {
        for entry in batch? {
            match entry.request {
                Err(flaw) => tally.bad(entry.log, entry.number, flaw),
                Ok(request) => {
                    let (place, key) = tally.asked(request.key);
                    order.put(Event { at: request.at, place, key, cost: request.cost });
                }
            }
            while let Some(event) = order.due() {
                chunk.push(event);
                play_full(simulation, remote, &mut chunk, tally).await?;
            }
        }
    }
    while let Some(event) = order.rest() {
        chunk.push(event);
        play_full(simulation, remote, &mut chunk, tally).await?;
    }
    Ok(play::play(simulation, remote, &chunk, tally).await?)
}

/// Plays the chunk when it is full.
async fn play_full(
    simulation: &Simulation,
    remote: bool,
    chunk: &mut Vec<Event>,
    tally: &mut Tally,
) -> Result<(), Failure> {
    if chunk.len() == play::CHUNK {
        play::play(simulation, remote, chunk, tally).await?;
        chunk.clear();
    }
    Ok(())
}
