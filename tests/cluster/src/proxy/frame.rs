//! Where requests and replies begin and end on the wire (RESP2 and RESP3); pure.

/// These bytes are not RESP.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotResp;

/// What a command does to the connection that it is sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// One request, one reply.
    Reply,
    /// What follows cannot be paired any more: messages without a request, or requests without a reply.
    Stream,
    /// A replica says who it is; a copy of the data follows.
    Replica,
}

/// The length of the value at the start of `bytes`; `None` while some of it is missing.
pub(super) fn value(bytes: &[u8]) -> Result<Option<usize>, NotResp> {
    let (mut at, mut missing) = (0, 1_usize);
    while missing > 0 {
        let Some(line) = bytes.get(at..).and_then(|rest| rest.windows(2).position(|end| end == b"\r\n")) else {
            // The first byte tells a stranger early: a line of it may never end.
            return if bytes.first().is_none_or(|kind| KINDS.contains(kind)) { Ok(None) } else { Err(NotResp) };
        };
        let (kind, size) = bytes[at..at + line].split_first().ok_or(NotResp)?;
        at += line + 2;
        missing -= 1;
        match kind {
            b'+' | b'-' | b':' | b',' | b'#' | b'(' | b'_' => {}
            b'$' | b'=' | b'!' => at += count(size)?.map_or(0, |length| length + 2),
            b'*' | b'~' | b'>' => missing += count(size)?.unwrap_or(0),
            b'%' => missing += 2 * count(size)?.unwrap_or(0),
            // Attributes stand before the value that they belong to.
            b'|' => missing += 2 * count(size)?.unwrap_or(0) + 1,
            _ => return Err(NotResp),
        }
    }
    Ok((at <= bytes.len()).then_some(at))
}

/// Says whether a whole value is a message that answers no request.
pub(super) fn is_push(value: &[u8]) -> bool {
    value.first() == Some(&b'>')
}

/// The length of the request at the start of `bytes`, be it an array or a plain line of words.
pub(super) fn request(bytes: &[u8]) -> Result<Option<usize>, NotResp> {
    match bytes.first() {
        Some(b'*') => value(bytes),
        Some(kind) if KINDS.contains(kind) => Err(NotResp),
        _ => Ok(bytes.iter().position(|byte| *byte == b'\n').map(|end| end + 1)),
    }
}

/// The first two words of a whole request, in capitals; the first is missing when there is nothing to answer.
pub(super) fn words(request: &[u8]) -> [Option<String>; 2] {
    let capitals = |word: &[u8]| String::from_utf8_lossy(word).to_ascii_uppercase();
    if request.first() != Some(&b'*') {
        let mut words = request.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(capitals);
        return [words.next(), words.next()];
    }
    // Lines of an array: its size, then a size and a word in turn.
    let mut lines = request.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    [lines.nth(2).map(capitals), lines.nth(1).map(capitals)]
}

/// What the command with these first words does.
pub(super) fn effect(name: &str, second: Option<&str>) -> Effect {
    match (name, second) {
        ("REPLCONF" | "PSYNC" | "SYNC", _) => Effect::Replica,
        ("MONITOR", _) | ("CLIENT", Some("REPLY")) => Effect::Stream,
        _ if name.ends_with("SUBSCRIBE") => Effect::Stream,
        _ => Effect::Reply,
    }
}

const KINDS: &[u8] = b"+-:,#(_$=!*~>%|";

/// A length or a count; `None` for the null of RESP2, -1.
fn count(size: &[u8]) -> Result<Option<usize>, NotResp> {
    // What no server sends in one piece would only make the sums above overflow.
    const MOST: usize = 1 << 40;

    let text = std::str::from_utf8(size).map_err(|_| NotResp)?;
    match text.parse() {
        Ok(size) if size <= MOST => Ok(Some(size)),
        _ if text == "-1" => Ok(None),
        _ => Err(NotResp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_they_end() {
        let values: [&[u8]; 16] = [
            b"+OK\r\n",
            b"-ERR no\r\n",
            b":-12\r\n",
            b"$5\r\na\r\nbc\r\n",
            b"$0\r\n\r\n",
            b"$-1\r\n",
            b"*-1\r\n",
            b"*0\r\n",
            b"*2\r\n*2\r\n:1\r\n$1\r\nx\r\n+y\r\n",
            b"_\r\n",
            b"#t\r\n",
            b",1.5\r\n",
            b"(123456789012345678901234567890\r\n",
            b"=7\r\ntxt:abc\r\n",
            b"%2\r\n+a\r\n~1\r\n:1\r\n+b\r\n_\r\n",
            b"|1\r\n+ttl\r\n:3\r\n*1\r\n+x\r\n",
        ];
        for value in values {
            for part in 0..value.len() {
                assert_eq!(super::value(&value[..part]), Ok(None), "{:?}", value[..part].escape_ascii().to_string());
            }
            assert_eq!(super::value(value), Ok(Some(value.len())), "{:?}", value.escape_ascii().to_string());
            assert_eq!(super::value(&[value, b"+more\r\n"].concat()), Ok(Some(value.len())));
        }
    }

    #[test]
    fn strangers_are_told() {
        for bytes in
            [&b"HTTP/1.1 400"[..], b"*x\r\n", b"$-2\r\n", b"\r\n", b"*1\r\nx\r\n", b"$99999999999999999999\r\n"]
        {
            assert_eq!(value(bytes), Err(NotResp), "{:?}", bytes.escape_ascii().to_string());
        }
        assert_eq!(request(b"$3\r\n"), Err(NotResp));
    }

    #[test]
    fn requests_in_both_forms() {
        let get = b"*3\r\n$6\r\nconfig\r\n$3\r\nget\r\n$4\r\na\r\nb\r\n";
        assert_eq!(request(get), Ok(Some(get.len())));
        assert_eq!(words(get), [Some("CONFIG".into()), Some("GET".into())]);
        assert_eq!(request(b"ping  me\r\nping"), Ok(Some(10)));
        assert_eq!(words(b"ping  me\r\n"), [Some("PING".into()), Some("ME".into())]);
        assert_eq!((request(b"pin"), request(b"")), (Ok(None), Ok(None)));
        // Neither of these is answered.
        assert_eq!(words(b"\r\n"), [None, None]);
        assert_eq!(words(b"*0\r\n"), [None, None]);
    }

    #[test]
    fn commands_that_end_the_pairing() {
        assert_eq!(effect("PSYNC", None), Effect::Replica);
        assert_eq!(effect("SSUBSCRIBE", Some("A")), Effect::Stream);
        assert_eq!(effect("CLIENT", Some("REPLY")), Effect::Stream);
        assert_eq!(effect("CLIENT", Some("ID")), Effect::Reply);
    }
}
