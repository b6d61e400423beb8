//! Lines of any length from any input, in memory of a fixed size.

use std::io::{self, BufRead};

use memchr::memchr;

/// The longest line that is read. Of a longer one only the beginning is kept, and it counts as bad.
pub(crate) const LONGEST: usize = 1 << 20;

/// Reads lines into one buffer.
pub(crate) struct Lines<R> {
    input: R,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Lines { input, line: Vec::new() }
    }

    /// The next line without its end, or `None` at the end of the input. One of more than [`LONGEST`] bytes is cut
    /// there, so that it is longer than `LONGEST` by exactly one.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let mut met = false;
        loop {
            let block = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                block => block?,
            };
            if block.is_empty() {
                break;
            }
            met = true;
            let end = memchr(b'\n', block);
            let part = &block[..end.unwrap_or(block.len())];
            let room = LONGEST + 1 - self.line.len();
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        Ok(met.then_some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_every_way() {
        let mut lines = Lines::new(io::BufReader::with_capacity(3, &b"one\n\ntwo, longer\r\nlast"[..]));
        for wanted in ["one", "", "two, longer", "last"] {
            assert_eq!(lines.next().unwrap(), Some(wanted.as_bytes()));
        }
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let text = [&vec![b'x'; 3 * LONGEST][..], b"\nshort"].concat();
        let mut lines = Lines::new(&text[..]);
        assert_eq!(lines.next().unwrap().map(<[u8]>::len), Some(LONGEST + 1));
        assert_eq!(lines.next().unwrap(), Some(&b"short"[..]));
    }
}
