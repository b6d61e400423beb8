//! Hash slots, as the Redis Cluster specification defines them.

use std::ops::Range;

/// How many slots a cluster has; a slot is a number below this.
pub const COUNT: u16 = 16_384;

/// The slot of a key: that of its hash tag, the bytes between the first `{` and the next `}`, when there are any.
pub fn of(key: &[u8]) -> u16 {
    crc16(tag(key)) % COUNT
}

/// A key that lives in `slot`: short, made of digits, always the same. Distinct keys of one slot can be made from it as a
/// hash tag, `{tag}a`, `{tag}b`. `None` when `slot` is not below [`COUNT`].
pub fn key_in(slot: u16) -> Option<String> {
    // The numbers up to 200,000 cover all slots; a test holds that.
    (slot < COUNT).then(|| (0..200_000u32).map(|n| n.to_string()).find(|key| of(key.as_bytes()) == slot))?
}

/// The slots of part `part` of `parts` when all slots are divided evenly, in order.
pub(crate) fn share(part: usize, parts: usize) -> Range<u16> {
    // Both ends are at most COUNT.
    let edge = |n: usize| (n * usize::from(COUNT) / parts) as u16;
    edge(part)..edge(part + 1)
}

fn tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else {
        return key;
    };
    match key[open + 1..].iter().position(|byte| *byte == b'}') {
        // "{}" is no tag: the whole key counts.
        None | Some(0) => key,
        Some(length) => &key[open + 1..open + 1 + length],
    }
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ (u16::from(*byte) << 8),
            |crc, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specifications_examples() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(of(b"{user1000}.following"), of(b"{user1000}.followers"));
        assert_eq!(of(b"foo{}{bar}"), crc16(b"foo{}{bar}") % COUNT);
        assert_eq!(of(b"foo{{bar}}zap"), crc16(b"{bar") % COUNT);
        assert_eq!(of(b"foo{bar}{zap}"), crc16(b"bar") % COUNT);
        assert_eq!(of(b"foo{bar"), crc16(b"foo{bar") % COUNT);
    }

    #[test]
    fn shares_are_even_and_whole() {
        assert_eq!((share(0, 3), share(1, 3), share(2, 3)), (0..5461, 5461..10922, 10922..16384));
        assert_eq!(share(0, 1), 0..COUNT);
    }

    #[test]
    fn numbers_reach_every_slot() {
        let mut seen = vec![false; usize::from(COUNT)];
        (0..200_000u32).for_each(|n| seen[usize::from(of(n.to_string().as_bytes()))] = true);
        assert!(seen.iter().all(|seen| *seen));
        assert_eq!(key_in(777).map(|key| of(key.as_bytes())), Some(777));
        assert_eq!(key_in(COUNT), None);
    }
}
