//! A connection that sends batches of commands and waits for all their replies.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::Result;

/// How long a reply may take.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Commands, encoded one behind the other.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    commands: usize,
}

impl Batch {
    /// Adds a command.
    pub fn push<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        self.bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            let word = word.as_ref();
            self.bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            self.bytes.extend_from_slice(word);
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.commands += 1;
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.commands = 0;
    }
}

/// A client connection.
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    /// Connects to a port of this machine.
    pub fn open(port: u16) -> Result<Connection> {
        let connect = || {
            let stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
            Ok(stream)
        };
        let stream = connect().map_err(|error: std::io::Error| format!("port {port}: {error}"))?;
        Ok(Connection { stream, received: vec![0; 64 * 1024] })
    }

    /// Sends one command and waits for its reply, which must not be an array or an error.
    pub fn call(&mut self, words: &[&str]) -> Result<()> {
        let mut batch = Batch::default();
        batch.push(words);
        self.send(&batch).map_err(|error| format!("{}: {error}", words.join(" ")))
    }

    /// Sends the batch and waits for its replies. The replies must fit the socket's buffers, and be lines, bulk strings
    /// or arrays of them; the first error among them is returned.
    pub fn send(&mut self, batch: &Batch) -> Result<()> {
        self.write(batch)?;
        self.read(batch.commands)
    }

    /// Sends the batch.
    pub fn write(&mut self, batch: &Batch) -> Result<()> {
        self.stream.write_all(&batch.bytes).map_err(|error| error.to_string())
    }

    /// Waits for so many replies, or messages; the first error among them is returned. Nothing may come behind them.
    pub fn read(&mut self, replies: usize) -> Result<()> {
        let mut missing = replies;
        let mut filled = 0;
        let mut failed = None;
        while missing > 0 {
            if filled == self.received.len() {
                self.received.resize(filled * 2, 0);
            }
            match self.stream.read(&mut self.received[filled..]) {
                Ok(0) => return Err("the server closed the connection".into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("no reply: {error}")),
            }
            let mut consumed = 0;
            while missing > 0
                && let Some(len) = reply_len(&self.received[consumed..filled])
            {
                let reply = &self.received[consumed..consumed + len];
                if reply[0] == b'-' && failed.is_none() {
                    failed = Some(String::from_utf8_lossy(&reply[1..]).trim().to_owned());
                }
                consumed += len;
                missing -= 1;
            }
            self.received.copy_within(consumed..filled, 0);
            filled -= consumed;
        }
        failed.map_or(Ok(()), Err)
    }
}

/// The length of the reply at the start of `bytes`, if it is whole.
fn reply_len(bytes: &[u8]) -> Option<usize> {
    let line = bytes.iter().position(|&byte| byte == b'\n')? + 1;
    let announced = || std::str::from_utf8(&bytes[1..line]).ok()?.trim().parse::<i64>().ok();
    let len = match bytes[0] {
        b'$' => match usize::try_from(announced()?) {
            Ok(bulk) => line + bulk + 2,
            Err(_) => line,
        },
        b'*' => {
            let mut len = line;
            for _ in 0..announced()?.max(0) {
                len += reply_len(bytes.get(len..)?)?;
            }
            len
        }
        _ => line,
    };
    (len <= bytes.len()).then_some(len)
}
