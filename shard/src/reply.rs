//! Writing replies, in RESP2 or RESP3.

use crate::error::CommandError;
use crate::number;

/// The protocol a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2, what a connection starts with.
    #[default]
    Resp2,
    /// RESP3, after `HELLO 3`.
    Resp3,
}

/// Writes one reply behind what a buffer already holds.
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
}

/// A place left for the length of an aggregate, see [`Reply::begin`].
#[must_use = "the aggregate needs its length"]
pub struct Deferred {
    at: usize,
    mark: u8,
}

impl<'a> Reply<'a> {
    /// A writer at the end of `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Reply<'a> {
        Reply { out, protocol }
    }

    /// The protocol replies are written in.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Whether the protocol is RESP3.
    #[inline]
    pub fn is_resp3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    #[inline]
    fn header(&mut self, mark: u8, number: usize) {
        // Lengths below ten are by far the most frequent.
        if number < 10 {
            self.out.extend_from_slice(&[mark, b'0' + number as u8, b'\r', b'\n']);
        } else {
            self.out.push(mark);
            number::write_i64(number as i64, self.out);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    /// `+OK`
    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// A simple string; `text` must not hold a line break.
    #[inline]
    pub fn simple(&mut self, text: &str) {
        debug_assert!(!text.contains(['\r', '\n']));
        self.out.push(b'+');
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    /// An error; line breaks in its text become spaces.
    pub fn error(&mut self, error: &CommandError) {
        self.out.push(b'-');
        let start = self.out.len();
        self.out.extend_from_slice(error.text().as_bytes());
        for byte in &mut self.out[start..] {
            if matches!(*byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.out.push(b':');
        number::write_i64(value, self.out);
        self.out.extend_from_slice(b"\r\n");
    }

    /// A count as an integer.
    #[inline]
    pub fn count(&mut self, value: usize) {
        self.integer(value as i64);
    }

    /// A bulk string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.out.reserve(bytes.len() + 16);
        self.header(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// An integer as a bulk string.
    #[inline]
    pub fn bulk_integer(&mut self, value: i64) {
        let mut scratch = number::IntBuffer::new();
        let text = scratch.format(value);
        self.header(b'$', text.len());
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Nil where the accepted reply is a scalar.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(if self.is_resp3() { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// Nil where the accepted reply is an array.
    #[inline]
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(if self.is_resp3() { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// An array of `len` replies, which follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.header(b'*', len);
    }

    /// A map of `pairs` keys and values, which follow; a flat array in RESP2.
    #[inline]
    pub fn map(&mut self, pairs: usize) {
        if self.is_resp3() { self.header(b'%', pairs) } else { self.header(b'*', pairs * 2) }
    }

    /// A set of `len` replies, which follow; an array in RESP2.
    #[inline]
    pub fn set(&mut self, len: usize) {
        self.header(if self.is_resp3() { b'~' } else { b'*' }, len);
    }

    /// A push of `len` replies, which follow; an array in RESP2.
    #[inline]
    pub fn push(&mut self, len: usize) {
        self.header(if self.is_resp3() { b'>' } else { b'*' }, len);
    }

    /// A double; a bulk string in RESP2.
    pub fn double(&mut self, value: f64) {
        if self.is_resp3() {
            self.out.push(b',');
            number::write_f64(value, self.out);
            self.out.extend_from_slice(b"\r\n");
        } else {
            self.bulk_double(value);
        }
    }

    /// A double whose digits are given; a bulk string in RESP2.
    pub fn double_text(&mut self, digits: &[u8]) {
        if self.is_resp3() {
            self.out.push(b',');
            self.out.extend_from_slice(digits);
            self.out.extend_from_slice(b"\r\n");
        } else {
            self.bulk(digits);
        }
    }

    /// A double as a bulk string.
    pub fn bulk_double(&mut self, value: f64) {
        // The text takes at most 24 bytes, so its length has one digit or two.
        let start = self.out.len();
        self.out.extend_from_slice(b"$00\r\n");
        number::write_f64(value, self.out);
        let len = self.out.len() - start - 5;
        self.out[start + 1] = b'0' + (len / 10) as u8;
        self.out[start + 2] = b'0' + (len % 10) as u8;
        if len < 10 {
            self.out.remove(start + 1);
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// A boolean; `1` or `0` in RESP2.
    pub fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(match (self.protocol, value) {
            (Protocol::Resp3, true) => b"#t\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp2, false) => b":0\r\n",
        });
    }

    /// Plain text as a verbatim string; a bulk string in RESP2.
    pub fn verbatim(&mut self, text: &[u8]) {
        if self.is_resp3() {
            self.header(b'=', text.len() + 4);
            self.out.extend_from_slice(b"txt:");
            self.out.extend_from_slice(text);
            self.out.extend_from_slice(b"\r\n");
        } else {
            self.bulk(text);
        }
    }

    /// Starts an array whose length is not known yet; give it to [`Reply::end`] with the number of replies written.
    #[inline]
    pub fn begin_array(&mut self) -> Deferred {
        Deferred { at: self.out.len(), mark: b'*' }
    }

    /// Starts a set whose length is not known yet.
    #[inline]
    pub fn begin_set(&mut self) -> Deferred {
        Deferred { at: self.out.len(), mark: if self.is_resp3() { b'~' } else { b'*' } }
    }

    /// Starts a map whose length is not known yet; its length is given in pairs.
    #[inline]
    pub fn begin_map(&mut self) -> Deferred {
        Deferred { at: self.out.len(), mark: if self.is_resp3() { b'%' } else { b'2' } }
    }

    /// Gives a deferred aggregate its length.
    pub fn end(&mut self, deferred: Deferred, len: usize) {
        let (mark, len) = if deferred.mark == b'2' { (b'*', len * 2) } else { (deferred.mark, len) };
        let mut header = vec![mark];
        number::write_i64(len as i64, &mut header);
        header.extend_from_slice(b"\r\n");
        self.out.splice(deferred.at..deferred.at, header);
    }

    /// How many bytes the buffer holds, for taking a reply back with [`Reply::rewind`].
    #[inline]
    pub fn mark(&self) -> usize {
        self.out.len()
    }

    /// Takes back what was written since `mark`.
    #[inline]
    pub fn rewind(&mut self, mark: usize) {
        self.out.truncate(mark);
    }

    /// Replies that are already encoded in this reply's protocol.
    pub fn raw(&mut self, encoded: &[u8]) {
        self.out.extend_from_slice(encoded);
    }
}
