//! What a server spends on one call: balde's script beside the classical one, by the server's own count.

use std::fmt::Write;

use balde::Limits;
use balde_testbed::redis::{Connection, cmd};
use balde_testbed::{Binary, Server};

use crate::Failure;
use crate::call::Contestant;
use crate::random::Random;
use crate::stats::{Spread, ratio};
use crate::table::{Table, verdict};

const USERS: usize = 20_000;
/// Calls in one pipeline: more of them would only lengthen the server's buffers.
const PIPELINE: usize = 256;
const NAMES: [&str; 3] = ["classical", "balde, one limit", "balde, two limits"];
const TWO_TO_ONE: f64 = 1.5;

/// The same calls to every contestant; the classical script knows the first limit only.
struct Workload {
    title: &'static str,
    one: &'static str,
    two: &'static str,
}

const WORKLOADS: [Workload; 3] = [
    Workload { title: "Admitted", one: "10/s burst 20", two: "10/s burst 20; 1000/d" },
    Workload { title: "Admitted, no bucket ever full again", one: "100/h", two: "100/h; 1000/d" },
    Workload { title: "Denied: every bucket is empty", one: "1/d", two: "1/d; 2/7d" },
];

/// Measures every server found on this machine; where there is none it says so.
pub(crate) fn report(quick: bool) -> Result<String, Failure> {
    let (rounds, calls) = if quick { (3, PIPELINE) } else { (31, 10 * PIPELINE) };
    let mut text = format!(
        "# Server time of one call\n\nINFO commandstats, microseconds for each EVALSHA: {rounds} rounds of {calls} \
         pipelined calls each, interleaved, random keys out of {USERS}, one token a call. Medians; ratios are taken round by round.\n"
    );
    let servers = Binary::find_all();
    if servers.is_empty() {
        let why = Binary::any().err().map(|error| error.to_string()).unwrap_or_default();
        writeln!(text, "\nNothing was measured: {why}")?;
    }
    for binary in servers {
        eprintln!("measuring {binary}");
        writeln!(text, "\n## {} {}", binary.flavour(), binary.version())?;
        let server = Server::start(&binary)?;
        // From 8 on servers spend less on what the classical script does much of: formatting numbers.
        let goal = if binary.version().major >= 8 { 0.95 } else { 0.90 };
        for workload in &WORKLOADS {
            write!(text, "\n{}", workload.measure(&server, rounds, calls, goal)?)?;
        }
    }
    Ok(text)
}

impl Workload {
    fn measure(&self, server: &Server, rounds: usize, calls: usize, goal: f64) -> Result<String, Failure> {
        let connection = &mut server.connection()?;
        let (one, two): (Limits, Limits) = (self.one.parse()?, self.two.parse()?);
        let contestants = [
            Contestant::classical(connection, 'c', &one)?,
            Contestant::balde(connection, 'o', &one)?,
            Contestant::balde(connection, 't', &two)?,
        ];
        cmd("FLUSHALL").query::<()>(connection)?;
        let everyone: Vec<usize> = (0..USERS).collect();
        for contestant in &contestants {
            run(contestant, connection, &everyone)?;
        }

        let mut random = Random::seeded(7);
        let mut cost: [Vec<f64>; 3] = Default::default();
        let mut admitted = [0; 3];
        for round in 0..rounds {
            let users: Vec<usize> = (0..calls).map(|_| random.below(USERS)).collect();
            for turn in 0..contestants.len() {
                let who = (round + turn) % contestants.len();
                cmd("CONFIG").arg("RESETSTAT").query::<()>(connection)?;
                admitted[who] += run(&contestants[who], connection, &users)?;
                let stats = server.commandstats("EVALSHA")?;
                if (stats.calls, stats.failed_calls) != (calls as u64, 0) {
                    return Err(format!("{}: {calls} calls were sent, counted were {stats:?}", NAMES[who]).into());
                }
                cost[who].push(stats.usec as f64 / stats.calls as f64);
            }
        }
        Ok(self.table(&cost, &admitted, rounds * calls, goal))
    }

    fn table(&self, cost: &[Vec<f64>; 3], admitted: &[u64; 3], calls: usize, goal: f64) -> String {
        let spread = cost.each_ref().map(|cost| Spread::of(cost));
        let mut table = Table::new(&["", "us/call", "quartiles", "admitted", "/ classical", "goal", "/ one", "goal"]);
        for (who, name) in NAMES.iter().enumerate() {
            let Spread { low, median, high } = spread[who];
            let (to_classical, to_one) = (ratio(&cost[who], &cost[0]), ratio(&cost[who], &cost[1]));
            let mut cells = [const { String::new() }; 8];
            cells[0] = (*name).to_string();
            cells[1] = format!("{median:.2}");
            cells[2] = format!("{low:.2}-{high:.2}");
            cells[3] = format!("{:.1} %", 100.0 * admitted[who] as f64 / calls as f64);
            if who > 0 {
                cells[4] = format!("{to_classical:.2}");
            }
            if who == 1 {
                cells[5] = verdict(to_classical, goal);
            }
            if who == 2 {
                cells[6] = format!("{to_one:.2}");
                cells[7] = verdict(to_one, TWO_TO_ONE);
            }
            table.row(cells);
        }
        format!("{} (`{}` and `{}`)\n\n{table}", self.title, self.one, self.two)
    }
}

fn run(contestant: &Contestant, server: &mut Connection, users: &[usize]) -> Result<u64, Failure> {
    let mut admitted = 0;
    for users in users.chunks(PIPELINE) {
        admitted += contestant.call(server, users)?;
    }
    Ok(admitted)
}
