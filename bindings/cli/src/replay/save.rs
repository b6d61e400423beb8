//! A file that appears whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process;

use crate::exit::Failure;

/// A file to be written. It is made at once under another name beside its own, so that a path that cannot be written
/// fails before the work; dropped without [`Save::write`], it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Save {
    path: PathBuf,
    /// The name until it is whole; the same as `path` for what is no regular file, such as a pipe.
    partial: PathBuf,
    file: File,
    done: bool,
}

impl Save {
    pub(crate) fn begin(path: PathBuf) -> Result<Self, Failure> {
        let special = fs::metadata(&path).is_ok_and(|found| !found.is_file());
        let (partial, file) = if special {
            (path.clone(), File::options().write(true).open(&path))
        } else {
            let mut name = path.file_name().map(OsString::from).unwrap_or_default();
            name.push(format!(".partial-{}", process::id()));
            let partial = path.with_file_name(name);
            let file = File::create_new(&partial);
            (partial, file)
        };
        let file = file.map_err(|error| Failure::file(&path, &error))?;
        Ok(Save { path, partial, file, done: false })
    }

    /// Writes all of it and gives it its name, in place of what had it before.
    pub(crate) fn write(mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut written = self.file.write_all(bytes);
        if self.partial != self.path {
            written = written.and_then(|()| fs::rename(&self.partial, &self.path));
        }
        written.map_err(|error| Failure::file(&self.path, &error))?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Save {
    fn drop(&mut self) {
        if !self.done && self.partial != self.path {
            // One that cannot be removed stays; there is nobody left to tell.
            let _ = fs::remove_file(&self.partial);
        }
    }
}
