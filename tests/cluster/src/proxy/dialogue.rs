use std::collections::VecDeque;
use std::mem;

use super::frame::{self, Effect};

/// The requests and replies of one connection, paired in order; it sees all bytes of both directions and moves none.
#[derive(Debug, Default)]
pub(super) struct Dialogue {
    /// Requests that were not answered yet.
    pending: VecDeque<Pending>,
    /// Bytes of a request, and of a reply, that is not whole yet.
    request: Vec<u8>,
    reply: Vec<u8>,
    /// Whether requests, and replies, cannot be told apart any more.
    requests_lost: bool,
    replies_lost: bool,
    replica: bool,
}

#[derive(Debug)]
enum Pending {
    Request(Vec<u8>),
    /// From here on replies do not pair with requests.
    Stream,
}

impl Dialogue {
    /// Takes what the client sent next. Returns the names of the commands that it completes.
    pub(super) fn ask(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut names = Vec::new();
        if self.requests_lost {
            return names;
        }
        self.request.extend_from_slice(bytes);
        while !self.requests_lost && !self.request.is_empty() {
            match frame::request(&self.request) {
                Ok(None) => break,
                Err(_) => self.lose_requests(),
                Ok(Some(length)) => {
                    let rest = self.request.split_off(length);
                    let request = mem::replace(&mut self.request, rest);
                    names.extend(self.asked(request));
                }
            }
        }
        names
    }

    fn asked(&mut self, request: Vec<u8>) -> Option<String> {
        // A request without a word gets no reply.
        let [Some(name), second] = frame::words(&request) else { return None };
        match frame::effect(&name, second.as_deref()) {
            Effect::Reply => self.pending.push_back(Pending::Request(request)),
            Effect::Stream => self.lose_requests(),
            Effect::Replica => {
                self.replica = true;
                self.lose_requests();
            }
        }
        Some(name)
    }

    fn lose_requests(&mut self) {
        self.requests_lost = true;
        self.request = Vec::new();
        self.pending.push_back(Pending::Stream);
    }

    /// Takes what the server sent next. Returns what the client is to get: whole replies, each as it is or what `judge`
    /// puts in its place when it is shown the request.
    pub(super) fn answer(&mut self, bytes: &[u8], mut judge: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
        self.reply.extend_from_slice(bytes);
        let mut out = Vec::new();
        while !self.reply.is_empty() {
            self.replies_lost |= matches!(self.pending.front(), Some(Pending::Stream));
            let length = if self.replies_lost { Ok(Some(self.reply.len())) } else { frame::value(&self.reply) };
            match length {
                Ok(None) => break,
                Err(_) => self.replies_lost = true,
                Ok(Some(length)) => {
                    let rest = self.reply.split_off(length);
                    let reply = mem::replace(&mut self.reply, rest);
                    let answers = !self.replies_lost && !frame::is_push(&reply);
                    // Without a request there may still be words of the server, such as that it has no room for clients.
                    let request = if answers { self.pending.pop_front() } else { None };
                    let instead = match request {
                        Some(Pending::Request(request)) => judge(&request),
                        _ => None,
                    };
                    out.extend(instead.unwrap_or(reply));
                }
            }
        }
        out
    }

    /// Takes the end of what the server sent. Returns what is left of a reply that is not whole.
    pub(super) fn answers_end(&mut self) -> Vec<u8> {
        mem::take(&mut self.reply)
    }

    /// Says whether the client turned out to be a replica of the server.
    pub(super) fn is_replica(&self) -> bool {
        self.replica
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows the request in the place of its reply.
    fn echo(request: &[u8]) -> Option<Vec<u8>> {
        Some([b"<", request.trim_ascii_end(), b">"].concat())
    }

    #[test]
    fn replies_pair_with_requests_in_order_however_they_are_cut() {
        let mut dialogue = Dialogue::default();
        assert_eq!(dialogue.ask(b"ping\r\n*1\r\n$3\r\nge"), ["PING"]);
        assert_eq!(dialogue.answer(b"+PO", echo), b"");
        assert_eq!(dialogue.ask(b"t\r\ninfo\r\n"), ["GET", "INFO"]);
        assert_eq!(dialogue.answer(b"NG\r\n$1\r\nx\r", echo), b"<ping>");
        assert_eq!(dialogue.answer(b"\n+last\r\n", echo), b"<*1\r\n$3\r\nget><info>");
        // Nobody asked for this one.
        assert_eq!(dialogue.answer(b"-ERR go\r\n+part", echo), b"-ERR go\r\n");
        assert_eq!(dialogue.answers_end(), b"+part");
    }

    #[test]
    fn pushed_messages_answer_nothing() {
        let mut dialogue = Dialogue::default();
        dialogue.ask(b"get\r\n");
        let push = b">2\r\n+invalidate\r\n*0\r\n";
        assert_eq!(dialogue.answer(&[&push[..], b"_\r\n"].concat(), echo), [&push[..], b"<get>"].concat());
    }

    #[test]
    fn a_stream_passes_after_the_replies_before_it() {
        let mut dialogue = Dialogue::default();
        assert_eq!(dialogue.ask(b"ping\r\nREPLCONF ack 1\r\n\0\0*"), ["PING", "REPLCONF"]);
        assert!(dialogue.is_replica());
        assert_eq!(dialogue.ask(b"ping\r\n"), [""; 0]);
        assert_eq!(dialogue.answer(b"+PONG\r\n+OK\r\n$EOF:", echo), b"<ping>+OK\r\n$EOF:");
        assert_eq!(dialogue.answer(b"+x\r\n", echo), b"+x\r\n");

        let mut dialogue = Dialogue::default();
        dialogue.ask(b"$what\r\n");
        assert!(!dialogue.is_replica());
        assert_eq!(dialogue.answer(b"+x\r\n", echo), b"+x\r\n");
    }

    #[test]
    fn what_is_no_reply_passes() {
        let mut dialogue = Dialogue::default();
        dialogue.ask(b"get\r\n");
        assert_eq!(dialogue.answer(b"HTTP/1.1", echo), b"HTTP/1.1");
    }
}
