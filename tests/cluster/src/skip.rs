use std::env;
use std::fmt::Display;
use std::io::{self, Write};

use crate::Binary;

/// Every server of [`Binary::find_all`], for a test that needs real ones.
///
/// Where none is found the list is empty, and standard error gets a line `skipped: ...` that says why: the test then
/// has nothing to do and passes. Panics instead when `BALDE_REQUIRE_SERVERS` is set, to anything but nothing or `0`.
pub fn servers_or_skip() -> Vec<Binary> {
    match Binary::any() {
        Ok(_) => Binary::find_all(),
        Err(error) if required() => panic!("BALDE_REQUIRE_SERVERS is set, but {error}"),
        Err(error) => {
            skipped(error);
            Vec::new()
        }
    }
}

/// The server of [`Binary::any`], for a test that needs a real one; `None` where [`servers_or_skip`] has none.
pub fn server_or_skip() -> Option<Binary> {
    match Binary::any() {
        Ok(binary) => Some(binary),
        Err(_) => servers_or_skip().into_iter().next(),
    }
}

/// Says on standard error that a test was skipped, and why: past the capture of the output of tests that pass.
pub fn skipped(why: impl Display) {
    // A reason that nobody can be told is no reason to fail.
    let _ = writeln!(io::stderr(), "skipped: {why}");
}

fn required() -> bool {
    env::var_os("BALDE_REQUIRE_SERVERS").is_some_and(|value| !value.is_empty() && value != "0")
}
