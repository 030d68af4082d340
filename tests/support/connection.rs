//! A blocking RESP2/RESP3 client, small enough to be trusted, that sends exactly what a test wants to send.

use super::notation::split_words;
use super::value::Value;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// How long a test waits for a reply before it fails.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

/// One client connection.
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    consumed: usize,
}

/// The RESP frame of a command.
pub fn encode_command<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut frame = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let argument = argument.as_ref();
        frame.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        frame.extend_from_slice(argument);
        frame.extend_from_slice(b"\r\n");
    }
    frame
}

impl Connection {
    /// Connects to a port of this machine.
    ///
    /// # Errors
    /// As `TcpStream::connect`.
    pub fn open(port: u16) -> io::Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Connection { stream, received: Vec::new(), consumed: 0 })
    }

    /// Sends a command and waits for its reply.
    #[track_caller]
    pub fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Value {
        self.send(&encode_command(arguments));
        self.read_value()
    }

    /// Sends a command written as one line, in the notation of scripts, and waits for its reply.
    #[track_caller]
    pub fn line(&mut self, line: &str) -> Value {
        let words = split_words(line).unwrap_or_else(|problem| panic!("{problem}: {line}"));
        self.call(&words)
    }

    /// Sends all commands, one a line, in one write, and reads all their replies.
    #[track_caller]
    pub fn pipeline<'l>(&mut self, lines: impl IntoIterator<Item = &'l str>) -> Vec<Value> {
        let mut frames = Vec::new();
        let mut count = 0;
        for line in lines {
            frames.extend(encode_command(&split_words(line).expect("a well-formed line")));
            count += 1;
        }
        self.send(&frames);
        (0..count).map(|_| self.read_value()).collect()
    }

    /// Sends bytes as they are.
    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("send to the server");
    }

    /// Sends bytes as they are, telling whether the server still takes them.
    ///
    /// # Errors
    /// The address that it connects from.
    pub fn local_address(&self) -> String {
        self.stream.local_addr().expect("a connected socket").to_string()
    }

    /// As `TcpStream::write_all`.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// A second handle to the same socket, to send from one thread while another reads.
    pub fn sender(&self) -> TcpStream {
        self.stream.try_clone().expect("clone the socket")
    }

    /// Ends the sending half: the server reads an end of file after what was sent.
    pub fn finish_sending(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("shut down the sending half");
    }

    /// Waits for one reply.
    #[track_caller]
    pub fn read_value(&mut self) -> Value {
        self.try_read_value().unwrap_or_else(|error| panic!("no reply from the server: {error}"))
    }

    /// Waits for one reply.
    ///
    /// # Errors
    /// `UnexpectedEof` when the server closed the connection, `InvalidData` when it sent what is no RESP, otherwise as
    /// `TcpStream::read`.
    pub fn try_read_value(&mut self) -> io::Result<Value> {
        let line = self.read_line()?;
        let Some((&kind, rest)) = line.split_first() else { return Err(malformed(&line)) };
        let text = || String::from_utf8_lossy(rest).into_owned();
        let value = match kind {
            b'+' => Value::Simple(text()),
            b'-' => Value::Error(text()),
            b':' => Value::Integer(number(&line)?),
            b',' => Value::Double(text()),
            b'(' => Value::BigNumber(text()),
            b'#' if rest == b"t" => Value::Boolean(true),
            b'#' if rest == b"f" => Value::Boolean(false),
            b'_' if rest.is_empty() => Value::Null,
            b'$' | b'!' | b'=' => match (kind, number(&line)?) {
                (b'$', -1) => Value::Null,
                (_, length) => {
                    let bytes = self.read_bulk(usize::try_from(length).map_err(|_| malformed(&line))?)?;
                    match kind {
                        b'$' => Value::Bulk(bytes),
                        b'!' => Value::Error(String::from_utf8_lossy(&bytes).into_owned()),
                        _ if bytes.get(3) == Some(&b':') => {
                            Value::Verbatim(String::from_utf8_lossy(&bytes[..3]).into_owned(), bytes[4..].to_vec())
                        }
                        _ => return Err(malformed(&bytes)),
                    }
                }
            },
            b'*' => match number(&line)? {
                -1 => Value::NullArray,
                count => Value::Array(self.read_values(count)?),
            },
            b'~' => Value::Set(self.read_values(number(&line)?)?),
            b'>' => Value::Push(self.read_values(number(&line)?)?),
            b'%' => {
                let mut flat = self.read_values(2 * number(&line)?)?.into_iter();
                let mut pairs = Vec::new();
                while let (Some(key), Some(value)) = (flat.next(), flat.next()) {
                    pairs.push((key, value));
                }
                Value::Map(pairs)
            }
            _ => return Err(malformed(&line)),
        };
        Ok(value)
    }

    /// Waits until the server closes the connection; panics when it sends anything more.
    #[track_caller]
    pub fn expect_close(&mut self) {
        match self.try_read_value() {
            Ok(value) => panic!("the server should have closed the connection and sent {value:?}"),
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {}
            Err(error) => panic!("the server should have closed the connection: {error}"),
        }
    }

    /// Panics when the server sends anything, or closes, within `duration`.
    #[track_caller]
    pub fn expect_silence(&mut self, duration: Duration) {
        self.stream.set_read_timeout(Some(duration)).expect("set the time-out");
        match self.fill() {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => panic!("the connection should have stayed open: {error}"),
            Ok(()) => panic!("nothing should have come: {}", self.received[self.consumed..].escape_ascii()),
        }
        self.stream.set_read_timeout(Some(REPLY_TIMEOUT)).expect("set the time-out");
    }

    fn read_values(&mut self, count: i64) -> io::Result<Vec<Value>> {
        (0..count).map(|_| self.try_read_value()).collect()
    }

    fn read_line(&mut self) -> io::Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            let pending = &self.received[self.consumed..];
            if let Some(at) = pending[searched..].windows(2).position(|pair| pair == b"\r\n") {
                let line = pending[..searched + at].to_vec();
                self.consumed += line.len() + 2;
                return Ok(line);
            }
            searched = pending.len().saturating_sub(1);
            self.fill()?;
        }
    }

    fn read_bulk(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.received.len() - self.consumed < length + 2 {
            self.fill()?;
        }
        let bytes = self.received[self.consumed..self.consumed + length].to_vec();
        let end = &self.received[self.consumed + length..self.consumed + length + 2];
        if end != b"\r\n" {
            return Err(malformed(end));
        }
        self.consumed += length + 2;
        Ok(bytes)
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.consumed > 0 {
            self.received.drain(..self.consumed);
            self.consumed = 0;
        }
        let filled = self.received.len();
        self.received.resize(filled + 65_536, 0);
        let result = self.stream.read(&mut self.received[filled..]);
        self.received.truncate(filled + result.as_ref().map_or(0, |&count| count));
        match result? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn number(line: &[u8]) -> io::Result<i64> {
    let digits = line.get(1..).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| malformed(line))
}

fn malformed(bytes: &[u8]) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("malformed reply: {}", bytes.escape_ascii()))
}
