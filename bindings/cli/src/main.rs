//! `balde`, the command line: translates arguments into calls of the crate and answers into text. It decides nothing.

mod args;
mod check;
mod duration;
mod exit;
mod feed;
mod figures;
mod interrupt;
mod replay;
mod trace;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use exit::{Failure, Verdict};

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::code(Err(Failure::from(error))),
    };
    let done = runtime.block_on(run(args.command));
    // A thread may still wait for more of standard input; nobody wants it any more.
    runtime.shutdown_background();
    exit::code(done)
}

async fn run(command: Command) -> Result<Verdict, Failure> {
    match command {
        Command::Replay(replay) => replay::run(replay).await,
        Command::Check(check) => check::check(check).await,
        Command::Peek(peek) => check::peek(peek).await,
        Command::Refund(refund) => check::refund(refund).await,
        Command::Reset(reset) => check::reset(reset).await,
        Command::Trace(trace) => trace::run(&trace).await,
    }
}
