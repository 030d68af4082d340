//! What `MONITOR` shows: every command, as it comes in, to every monitoring client of every core.

use ruvio_shard::args::Args;

use super::Core;
use super::client::ClientKey;

impl Core {
    /// Shows the monitors a command of client `key`.
    pub(super) fn feed_monitors(&mut self, key: ClientKey, args: Args<'_>) {
        let Some(client) = self.clients.get(key) else { return };
        let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let mut line =
            format!("+{}.{:06} [{} {}]", elapsed.as_secs(), elapsed.subsec_micros(), client.database, client.peer)
                .into_bytes();
        for word in args.iter() {
            line.push(b' ');
            quote(word, &mut line);
        }
        line.extend_from_slice(b"\r\n");
        self.broadcast(move |core| core.show_monitors(&line));
    }

    fn show_monitors(&mut self, line: &[u8]) {
        let monitors: Vec<ClientKey> =
            self.clients.iter().filter(|(_, client)| client.monitor).map(|(key, _)| key).collect();
        for key in monitors {
            if let Some(client) = self.clients.get_mut(key) {
                client.push_reply(line);
                self.want_flush(key);
            }
        }
    }
}

/// Writes a word as a quoted string, with what is not printable escaped.
fn quote(word: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in word {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            7 => out.extend_from_slice(b"\\a"),
            8 => out.extend_from_slice(b"\\b"),
            b' '..=b'~' => out.push(byte),
            _ => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    out.push(b'"');
}
