use std::error::Error;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use balde_testbed::{Binary, Cluster, ClusterOptions, Server, tied};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::Plan;

/// Only held: dropping it kills the servers.
enum Running {
    Alone(Server),
    Together(Cluster),
}

enum Event {
    Signal(i32),
    InputEnded,
    CommandEnded(io::Result<ExitStatus>),
}

/// Does what the plan says and returns what to exit with, when all that was started is gone.
pub(crate) fn run(plan: Plan) -> Result<ExitCode, Box<dyn Error>> {
    let (sender, events) = channel();
    // Listened for before the first server starts, so that none is left behind by a signal that comes meanwhile.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let told = sender.clone();
    thread::spawn(move || signals.forever().try_for_each(|signal| told.send(Event::Signal(signal))));

    let running = start(&plan)?;
    let url = match &running {
        Running::Alone(server) => server.url(),
        Running::Together(cluster) => cluster.url(),
    };
    let Some((program, args)) = plan.command.split_first() else {
        println!("{url}");
        io::stdout().flush()?;
        return Ok(wait_for_the_end(sender, &events));
    };
    // Standard output is the command's alone.
    eprintln!("BALDE_URL={url}");
    let mut command = Command::new(program);
    command.args(args).env("BALDE_URL", &url);
    match tied::spawn(command) {
        Ok(child) => wait_for_the_command(child, sender, &events),
        Err(error) => {
            eprintln!("balde-testbed: cannot run {program}: {error}");
            Ok(ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }))
        }
    }
}

fn start(plan: &Plan) -> Result<Running, balde_testbed::Error> {
    let binary = plan.server.as_ref().map_or_else(Binary::any, Binary::at)?;
    match plan.cluster {
        None => Server::start(&binary).map(Running::Alone),
        Some((masters, replicas)) => {
            let options = ClusterOptions { masters, replicas, ..ClusterOptions::default() };
            Cluster::start(&binary, &options).map(Running::Together)
        }
    }
}

fn wait_for_the_end(sender: Sender<Event>, events: &Receiver<Event>) -> ExitCode {
    thread::spawn(move || {
        // An input that cannot be read has ended too.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        sender.send(Event::InputEnded)
    });
    match events.recv() {
        Ok(Event::Signal(signal)) => ended_by(signal),
        _ => ExitCode::SUCCESS,
    }
}

fn wait_for_the_command(
    mut child: Child,
    sender: Sender<Event>,
    events: &Receiver<Event>,
) -> Result<ExitCode, Box<dyn Error>> {
    let pid = child.id();
    thread::spawn(move || sender.send(Event::CommandEnded(child.wait())));
    loop {
        match events.recv()? {
            // A terminal sends Ctrl-C to the command as well; a second one from here could be one too many.
            Event::Signal(SIGINT) | Event::InputEnded => {}
            // The command may just have ended; its own event then follows.
            Event::Signal(signal) => drop(tied::signal(pid, signal)),
            Event::CommandEnded(status) => {
                let status = status?;
                let code = status.code().and_then(|code| u8::try_from(code).ok());
                return Ok(code.map_or_else(|| ended_by(status.signal().unwrap_or(0)), ExitCode::from));
            }
        }
    }
}

/// The exit code by which shells report a signal.
fn ended_by(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}
