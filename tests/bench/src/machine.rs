//! What the figures were measured on: without it they say nothing.

use std::env;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// A few lines about this machine and the compiler.
pub(crate) fn description() -> String {
    let processor = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_string())
    });
    let processor = processor.unwrap_or_else(|| env::consts::ARCH.to_string());
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let kernel = output("uname", &["-sr"]);
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let build = if cfg!(debug_assertions) { "debug build: the figures mean little" } else { "release build" };
    format!("{processor}, {cores} cores\n{kernel}\n{}, {build}\n", output(&compiler, &["--version"]))
}

/// The date in Greenwich, `YYYY-MM-DD`.
pub(crate) fn today() -> String {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(passed.as_secs() / 86_400)
}

/// The date so many days after 1 January 1970: eras of 400 years that begin in March, so that leap days come last.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + u64::from(month <= 2))
}

fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| format!("{program}: unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (days, expected) in
            [(0, "1970-01-01"), (11_016, "2000-02-29"), (11_017, "2000-03-01"), (20_453, "2025-12-31")]
        {
            assert_eq!(date(days), expected);
        }
    }
}
