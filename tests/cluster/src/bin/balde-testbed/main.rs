//! Starts Redis and Valkey servers for programs in any language; `balde-testbed --help` says how.

mod args;
mod run;

use std::process::ExitCode;

use args::{Action, USAGE};
use balde_testbed::Binary;

/// What this program exits with when it fails itself, as `env` and `timeout` do: other codes are the command's own.
const OWN_FAILURE: u8 = 125;

fn main() -> ExitCode {
    let action = match args::parse(std::env::args().skip(1)) {
        Ok(action) => action,
        Err(error) => {
            eprintln!("balde-testbed: {error}\n{USAGE}");
            return ExitCode::from(OWN_FAILURE);
        }
    };
    match action {
        Action::Help => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Action::Servers => servers(),
        Action::Run(plan) => run::run(plan).unwrap_or_else(|error| {
            eprintln!("balde-testbed: {error}");
            ExitCode::from(OWN_FAILURE)
        }),
    }
}

fn servers() -> ExitCode {
    let found = Binary::search();
    for error in &found.refused {
        eprintln!("balde-testbed: {error}");
    }
    for (origin, binary) in &found.servers {
        println!("{:<7}{:<9}{origin:<6} {}", binary.flavour(), binary.version(), binary.path().display());
    }
    if !found.servers.is_empty() {
        return ExitCode::SUCCESS;
    }
    if let Err(error) = Binary::any() {
        eprintln!("balde-testbed: {error}");
    }
    ExitCode::FAILURE
}
