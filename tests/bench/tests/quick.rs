//! The benchmarks run, print ratios and leave their results behind; no figure is judged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn bench(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_balde-bench"));
    command.args(arguments).current_dir(folder);
    command
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn written(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let days = entries(&folder.join("results"));
    let mut files: Vec<PathBuf> = days.iter().flat_map(|day| entries(day)).collect();
    files.sort();
    files
}

#[test]
fn both_are_measured_and_written() {
    let servers = balde_testbed::servers_or_skip();
    let folder = tempfile::tempdir().unwrap();
    let printed = text(&bench(folder.path(), &["--quick"]).output().unwrap());
    let files = written(folder.path());
    let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["memory.md", "script.md"]);
    for file in &files {
        let kept = fs::read_to_string(file).unwrap();
        let table = kept.lines().filter(|line| line.starts_with('|')).collect::<Vec<_>>();
        assert!(table.iter().all(|line| printed.contains(line)), "{printed}");
        assert!(kept.contains("rustc") && kept.contains("cores"), "{kept}");
    }
    assert_eq!(printed.matches("<= 1.00: ").count(), 8, "{printed}");
    assert_eq!(printed.matches("| classical ").count(), 3 * servers.len(), "{printed}");
    assert_eq!(printed.matches("<= 1.50: ").count(), 3 * servers.len(), "{printed}");
    // The scripts are only comparable where they do the same: all of two workloads admitted, all of one denied.
    let script = fs::read_to_string(&files[1]).unwrap();
    assert_eq!(script.matches(" 100.0 % ").count(), 2 * 3 * servers.len(), "{script}");
    assert_eq!(script.matches(" 0.0 % ").count(), 3 * servers.len(), "{script}");
}

#[test]
fn without_servers_it_says_so_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bench(folder.path(), &["all", "--quick"]);
    command.env("PATH", "").env("BALDE_VENV", "nowhere").env_remove("BALDE_REDIS_SERVERS");
    let printed = text(&command.output().unwrap());
    assert!(printed.contains("Nothing was measured: no Redis or Valkey server was found"), "{printed}");
    assert_eq!(written(folder.path()).len(), 2);
}

#[test]
fn what_is_not_understood_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["--fast"][..], &["scripts"], &["script", "memory"]] {
        let output = bench(folder.path(), arguments).output().unwrap();
        assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("usage"), "{output:?}");
    }
    assert!(!folder.path().join("results").exists());
}
