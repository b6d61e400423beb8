//! Where a bucket lives on a server: `<prefix>:{<name>:<key>}`, byte exact.
//!
//! The braces make one hash tag of name and key, so that a bucket lies on one slot and the buckets of a limiter
//! spread over all of them. In the key `%` and `}` are written `%25` and `%7D`: a user's braces, colons, spaces or
//! NULs can then neither choose a slot, nor reach another limiter's bucket, nor merge two users.

use crc::{CRC_16_XMODEM, Crc};

use crate::error::{Error, ErrorKind, Result};

/// The longest key of a caller, in bytes.
pub(crate) const MAX_KEY: usize = 1024;

/// The longest prefix or name, in bytes.
const MAX_WORD: usize = 64;

/// The number of slots of a Redis Cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// Checks that a caller's key is not longer than [`MAX_KEY`] bytes. The empty key is a key like any other.
pub(crate) fn checked(key: &[u8]) -> Result<&[u8]> {
    if key.len() > MAX_KEY {
        return Err(Error::new(
            ErrorKind::InvalidKey,
            format!("the key has {} bytes; at most {MAX_KEY} are taken, so hash longer ones", key.len()),
        ));
    }
    Ok(key)
}

/// The part of a server's key that is the same for all buckets of a limiter.
#[derive(Debug, Clone)]
pub(crate) struct Keyspace {
    head: Box<[u8]>,
}

impl Keyspace {
    /// # Errors
    /// `invalid_option` for a prefix or name that is not 1 to 64 of `A-Z a-z 0-9 . _ -`.
    pub(crate) fn new(prefix: &str, name: &str) -> Result<Self> {
        for (what, word) in [("prefix", prefix), ("name", name)] {
            let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
            if word.is_empty() || word.len() > MAX_WORD || !word.bytes().all(plain) {
                return Err(Error::option(format!(
                    "{what} {word:?}: use 1 to {MAX_WORD} letters, digits, dots, underscores or hyphens"
                )));
            }
        }
        Ok(Keyspace { head: format!("{prefix}:{{{name}:").into_bytes().into_boxed_slice() })
    }

    /// The server's key of a caller's key.
    pub(crate) fn key(&self, key: &[u8]) -> ServerKey {
        let mut bytes = Vec::with_capacity(self.head.len() + key.len() + 1);
        bytes.extend_from_slice(&self.head);
        for &byte in key {
            match byte {
                b'%' => bytes.extend_from_slice(b"%25"),
                b'}' => bytes.extend_from_slice(b"%7D"),
                _ => bytes.push(byte),
            }
        }
        bytes.push(b'}');
        ServerKey { slot: slot(&bytes), bytes }
    }
}

/// A key as a server knows it, and the cluster slot that it lies on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerKey {
    pub(crate) bytes: Vec<u8>,
    pub(crate) slot: u16,
}

/// The cluster slot of a key: the CRC16 of its first non-empty `{...}`, or else of all of it.
fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|b| *b == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        rest.iter().position(|b| *b == b'}').map(|close| &rest[..close])
    });
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    Crc::<u16>::new(&CRC_16_XMODEM).checksum(hashed) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, key: &[u8]) -> Vec<u8> {
        Keyspace::new("balde", name).unwrap().key(key).bytes
    }

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        for (key, expected) in [
            ("rl:{}{same}", 15561),
            ("A}B{C", 7939),
            ("{test", 10879),
            ("foo", 12182),
            ("a{'1':{'i32':1}}", 5540),
            ("{user1000}.following", 3443),
            ("lmtr-b:demo:99", 5967),
        ] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
    }

    #[test]
    fn no_two_callers_meet_in_one_key() {
        let keys: [(&str, &[u8]); 12] = [
            ("a", b"b:c"),
            ("a", b"b%3Ac"),
            ("a", b""),
            ("a", b"}"),
            ("a", b"%7D"),
            ("a", b"%257D"),
            ("a", b"{x}"),
            ("a", b"x"),
            ("a", b"x\0"),
            ("a", b"x "),
            ("ab", b"x"),
            ("a", b"\xff\xfe"),
        ];
        let all: std::collections::HashSet<_> = keys.iter().map(|(name, key)| written(name, key)).collect();
        assert_eq!(all.len(), keys.len());
        assert_eq!(written("api", b"user:{42}%"), b"balde:{api:user:{42%7D%25}");
    }

    #[test]
    fn braces_cannot_choose_a_slot() {
        let space = Keyspace::new("balde", "api").unwrap();
        let tagged = space.key(b"{same}1");
        assert_ne!(tagged.slot, space.key(b"{same}2").slot);
        assert_eq!(tagged.slot, slot(b"api:{same%7D1"));
    }

    #[test]
    fn names_and_keys_out_of_bounds_are_refused() {
        for name in ["", "a:b", "a{b", "a b", "ä", &"x".repeat(65)] {
            assert_eq!(Keyspace::new("balde", name).unwrap_err().code(), "invalid_option");
            assert_eq!(Keyspace::new(name, "api").unwrap_err().code(), "invalid_option");
        }
        assert!(checked(&[0; MAX_KEY]).is_ok());
        assert_eq!(checked(&[0; MAX_KEY + 1]).unwrap_err().code(), "invalid_key");
    }
}
