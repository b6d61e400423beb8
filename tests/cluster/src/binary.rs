use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// Redis.
    Redis,
    /// Valkey.
    Valkey,
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey",
        })
    }
}

/// A server's version; versions of different flavours compare as plain numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
    /// The third number.
    pub patch: u16,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}.{}", self.major, self.minor, self.patch))
    }
}

/// A server program that runs on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    path: PathBuf,
    flavour: Flavour,
    version: Version,
}

impl Binary {
    /// The server program at `path`: runs it with `--version` to learn what it is.
    ///
    /// A program that nobody may execute, as some Python wheels unpack them, is made executable for those who may read it.
    /// Fails with [`Error::NotAServer`] when it does not run or does not say that it is Redis or Valkey.
    pub fn at(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let refused = |why: String| Error::NotAServer { path: path.into(), why };
        make_executable(path).map_err(|error| refused(error.to_string()))?;
        let output = Command::new(path).arg("--version").output().map_err(|error| refused(error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let (flavour, version) = identify(&text).ok_or_else(|| refused(format!("--version says {:?}", text.trim())))?;
        Ok(Self { path: path.into(), flavour, version })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose it is.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }
}

impl fmt::Display for Binary {
    /// `redis 7.0.15 at /usr/bin/redis-server`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} at {}", self.flavour, self.version, self.path.display())
    }
}

fn make_executable(path: &Path) -> std::io::Result<()> {
    let metadata = fs::metadata(path)?;
    let mode = metadata.permissions().mode();
    if metadata.is_file() && mode & 0o111 == 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode | (mode & 0o444) >> 2))?;
    }
    Ok(())
}

// "Redis server v=7.0.15 sha=..." and "Valkey server v=8.1.8 sha=...".
fn identify(text: &str) -> Option<(Flavour, Version)> {
    let (name, rest) = text.trim_start().split_once(" server v=")?;
    let flavour = match name {
        "Redis" => Flavour::Redis,
        "Valkey" => Flavour::Valkey,
        _ => return None,
    };
    let mut numbers = rest.split_whitespace().next()?.split('.').map(|number| {
        // Release candidates are "8.0.0-rc1".
        number.split('-').next().unwrap_or(number).parse().ok()
    });
    let mut next = || numbers.next().flatten();
    Some((flavour, Version { major: next()?, minor: next()?, patch: next()? }))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn pretended(path: &str, flavour: Flavour, [major, minor, patch]: [u16; 3]) -> Binary {
        Binary { path: path.into(), flavour, version: Version { major, minor, patch } }
    }

    #[test]
    fn versions_are_read() {
        let read = |text| identify(text).map(|(flavour, version)| format!("{flavour} {version}"));
        let redis = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d7c971a948f0\n";
        assert_eq!(read(redis).as_deref(), Some("redis 7.0.15"));
        assert_eq!(read("Valkey server v=8.1.0-rc2 sha=00000000:1").as_deref(), Some("valkey 8.1.0"));
        assert_eq!(read("GNU coreutils 9.1"), None);
        assert_eq!(read("Redis server v=7"), None);
    }

    #[test]
    fn a_lost_execute_bit_comes_back_for_readers_only() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
        make_executable(file.path()).unwrap();
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o750);
    }

    #[test]
    fn other_programs_are_refused() {
        let error = Binary::at("/bin/sh").unwrap_err();
        assert!(matches!(error, Error::NotAServer { .. }), "{error}");
    }
}
