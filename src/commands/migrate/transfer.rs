//! Sending values to another server, on a thread of its own.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use ruvio_shard::error::CommandError;

use crate::process::now_ms;

/// Values sent before their replies are read, so that neither side waits for the other to read: at most this many, and no
/// more once they have this many bytes.
const WINDOW_ITEMS: usize = 256;
const WINDOW_BYTES: usize = 1 << 20;

/// The longest reply that is read, in bytes: status lines and errors.
const REPLY_MAX: u64 = 64 << 10;

/// Where values are sent, and how.
pub struct Target {
    /// Name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What is given to `AUTH`; nothing without authentication.
    pub credentials: Vec<Vec<u8>>,
    /// The database.
    pub database: i64,
    /// How long the other server may be silent.
    pub timeout: Duration,
    /// Whether keys that are there are replaced.
    pub replace: bool,
}

/// A value to be sent.
pub struct Item {
    /// Its key.
    pub key: Box<[u8]>,
    /// What `DUMP` gives.
    pub payload: Vec<u8>,
    /// When it expires, in ms since the epoch.
    pub deadline_ms: Option<i64>,
}

/// What came of sending.
pub struct Transferred {
    /// For each value whether the other server has taken it.
    pub taken: Vec<bool>,
    /// The first thing that went wrong.
    pub error: Option<CommandError>,
}

/// A connection to the other server.
struct Link {
    socket: BufReader<TcpStream>,
    unsent: Vec<u8>,
}

/// Sends the values, and reads what becomes of each.
pub fn send(target: &Target, items: &[Item]) -> Transferred {
    let mut transferred = Transferred { taken: vec![false; items.len()], error: None };
    let result = Link::open(target).and_then(|mut link| link.send_all(target, items, &mut transferred));
    if let Err(error) = result {
        transferred.error.get_or_insert(error);
    }
    transferred
}

/// The error for one that the other server replied, given without its first `-`.
fn replied(error: &str) -> CommandError {
    CommandError::new(format!("ERR Target instance replied with error: {error}"))
}

fn broken(doing: &str) -> CommandError {
    CommandError::new(format!("IOERR error or timeout {doing} to target instance"))
}

impl Link {
    fn open(target: &Target) -> Result<Link, CommandError> {
        let connect = || -> io::Result<TcpStream> {
            let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
            for address in (target.host.as_str(), target.port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, target.timeout) {
                    Ok(socket) => {
                        socket.set_nodelay(true)?;
                        socket.set_read_timeout(Some(target.timeout))?;
                        socket.set_write_timeout(Some(target.timeout))?;
                        return Ok(socket);
                    }
                    Err(error) => last = error,
                }
            }
            Err(last)
        };
        // To Redis a connection that is refused is one that cannot be written to.
        let socket = connect().map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => broken("writing"),
            _ => CommandError::new("IOERR error or timeout connecting to the client"),
        })?;
        let mut link = Link { socket: BufReader::new(socket), unsent: Vec::new() };
        if !target.credentials.is_empty() {
            let words: Vec<&[u8]> = target.credentials.iter().map(Vec::as_slice).collect();
            link.add(&[&[b"AUTH".as_slice()], &words[..]].concat());
            link.flush()?;
            link.read_reply()?.map_err(|error| replied(&error))?;
        }
        link.add(&[b"SELECT", target.database.to_string().as_bytes()]);
        link.flush()?;
        link.read_reply()?.map_err(|error| replied(&error))?;
        Ok(link)
    }

    fn send_all(&mut self, target: &Target, items: &[Item], transferred: &mut Transferred) -> Result<(), CommandError> {
        let mut awaited = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let ttl_ms = match item.deadline_ms.map(|deadline_ms| deadline_ms.saturating_sub(now_ms())) {
                // It has expired meanwhile.
                Some(..=0) => continue,
                Some(ttl_ms) => ttl_ms,
                None => 0,
            };
            let ttl = ttl_ms.to_string();
            let words = [b"RESTORE".as_slice(), &item.key, ttl.as_bytes(), &item.payload, b"REPLACE"];
            self.add(&words[..if target.replace { 5 } else { 4 }]);
            awaited.push(index);
            if awaited.len() == WINDOW_ITEMS || self.unsent.len() >= WINDOW_BYTES {
                self.settle(&mut awaited, transferred)?;
            }
        }
        self.settle(&mut awaited, transferred)
    }

    /// Sends what was added and reads the replies.
    fn settle(&mut self, awaited: &mut Vec<usize>, transferred: &mut Transferred) -> Result<(), CommandError> {
        self.flush()?;
        for index in awaited.drain(..) {
            match self.read_reply()? {
                Ok(()) => transferred.taken[index] = true,
                Err(error) => {
                    transferred.error.get_or_insert_with(|| replied(&error));
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, words: &[&[u8]]) {
        self.unsent.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            self.unsent.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            self.unsent.extend_from_slice(word);
            self.unsent.extend_from_slice(b"\r\n");
        }
    }

    fn flush(&mut self) -> Result<(), CommandError> {
        let sent = self.socket.get_mut().write_all(&self.unsent);
        self.unsent.clear();
        self.unsent.shrink_to(WINDOW_BYTES);
        sent.map_err(|_| broken("writing"))
    }

    /// The next reply: done, or the error that it is.
    fn read_reply(&mut self) -> Result<Result<(), String>, CommandError> {
        let mut line = Vec::new();
        let read = io::Read::take(&mut self.socket, REPLY_MAX).read_until(b'\n', &mut line);
        match (read, line.strip_suffix(b"\r\n")) {
            (Ok(_), Some([b'+', ..])) => Ok(Ok(())),
            (Ok(_), Some([b'-', error @ ..])) => Ok(Err(String::from_utf8_lossy(error).into_owned())),
            _ => Err(broken("reading")),
        }
    }
}
