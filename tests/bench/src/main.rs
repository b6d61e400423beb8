//! Measures what balde promises about its cost, and prints the figures beside those of what it replaces.
//!
//! A goal that is missed is printed as missed and is not a failure: a busy machine must not turn a build red.

mod call;
mod machine;
mod memory;
mod random;
mod script;
mod stats;
mod table;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: balde-bench [all | script | memory] [--quick]

  script   server time of one call beside a classical script, on every Redis and Valkey found
  memory   decisions in this process beside governor's keyed limiter
  all      both, and writes them to results/DATE/ in the current folder (the default)
  --quick  a few rounds only: shows that it works, measures little";

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("balde-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<String>) -> Result<(), Failure> {
    let (options, words): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|argument| argument.starts_with('-'));
    let quick = options.iter().any(|option| option == "--quick");
    if options.iter().any(|option| option == "--help" || option == "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    if let Some(unknown) = options.iter().find(|option| *option != "--quick") {
        return Err(format!("unknown option {unknown}\n{USAGE}").into());
    }
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] | ["all"] => all(quick),
        ["script"] => {
            print!("{}", script::report(quick)?);
            Ok(())
        }
        ["memory"] => {
            print!("{}", memory::report(quick)?);
            Ok(())
        }
        unknown => Err(format!("not understood: {}\n{USAGE}", unknown.join(" ")).into()),
    }
}

fn all(quick: bool) -> Result<(), Failure> {
    let machine = machine::description();
    println!("{machine}");
    let folder = Path::new("results").join(machine::today());
    fs::create_dir_all(&folder)?;
    for (name, report) in
        [("memory", memory::report as fn(bool) -> Result<String, Failure>), ("script", script::report)]
    {
        let text = report(quick)?;
        println!("{text}");
        let path = folder.join(name).with_extension("md");
        fs::write(&path, format!("{text}\n```\n{machine}```\n"))?;
        println!("written: {}\n", path.display());
    }
    Ok(())
}
