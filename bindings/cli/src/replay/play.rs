//! Plays events against a simulation: on a server, different keys at once and each key in order.

use balde::{Acquire, Result, Simulation};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use indexmap::IndexMap;

use super::order::Event;
use super::tally::Tally;

/// How many events are played between two looks at what else there is to do.
pub(crate) const CHUNK: usize = 1024;

/// How many keys a server is asked about at once.
const AT_ONCE: usize = 64;

/// Plays a chunk of events and counts what was decided, in their order.
pub(crate) async fn play(simulation: &Simulation, remote: bool, events: &[Event], tally: &mut Tally) -> Result<()> {
    let mut allowed = vec![false; events.len()];
    if remote {
        let mut keys: IndexMap<usize, Vec<usize>> = IndexMap::new();
        for (index, event) in events.iter().enumerate() {
            keys.entry(event.key).or_default().push(index);
        }
        let tally = &*tally;
        let each = stream::iter(keys).map(|(key, indices)| async move {
            let mut decided = Vec::with_capacity(indices.len());
            for index in indices {
                decided.push((index, ask(simulation, &events[index], tally.key(key)).await?));
            }
            Ok(decided)
        });
        let mut decided = each.buffer_unordered(AT_ONCE);
        while let Some(of_one_key) = decided.try_next().await? {
            for (index, answer) in of_one_key {
                allowed[index] = answer;
            }
        }
    } else {
        for (event, allowed) in events.iter().zip(&mut allowed) {
            *allowed = ask(simulation, event, tally.key(event.key)).await?;
        }
    }
    for (event, allowed) in events.iter().zip(allowed) {
        tally.decided(event, allowed);
    }
    Ok(())
}

async fn ask(simulation: &Simulation, event: &Event, key: &[u8]) -> Result<bool> {
    Ok(simulation.acquire(event.at, key, &Acquire::cost(event.cost)).await?.allowed)
}
