//! What `MONITOR` shows: every command, as it comes in, to every monitoring client of every core.

use std::sync::atomic::Ordering;

use ruvio_shard::args::Args;
use ruvio_shard::command::Flags;

use super::Core;
use super::client::ClientKey;
use crate::registry::{Registered, Run};

/// Shown for a word that is a secret, as in Redis.
pub const REDACTED: &[u8] = b"(redacted)";

/// Parameters of `CONFIG SET` that hold a secret.
const SECRET_PARAMETERS: [&str; 5] =
    ["requirepass", "masterauth", "masteruser", "tls-key-file-pass", "tls-client-key-file-pass"];

impl Core {
    /// Starts to show commands to a client; false when it was shown them already.
    pub fn start_monitoring(&mut self, key: ClientKey) -> bool {
        let Some(client) = self.clients.get_mut(key).filter(|client| !client.monitor) else { return false };
        client.monitor = true;
        self.process.monitors.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Ends what [`Core::start_monitoring`] started, if it did.
    pub fn stop_monitoring(&mut self, key: ClientKey) {
        let Some(client) = self.clients.get_mut(key).filter(|client| client.monitor) else { return };
        client.monitor = false;
        self.process.monitors.fetch_sub(1, Ordering::Relaxed);
    }

    /// Shows the monitors a command of client `key`. As in Redis what is for operators is not shown, and a monitor that is
    /// reset does not see it.
    pub(super) fn feed_monitors(&mut self, key: ClientKey, command: &Registered, args: Args<'_>) {
        // Scripts have the flag for Redis's sake, which shows them itself, before what they call.
        let is_script = matches!(command.run, Run::Script(_));
        if command.spec.flags.has_any(Flags::SKIP_MONITOR.and(Flags::ADMIN)) && !is_script {
            return;
        }
        let Some(client) = self.clients.get(key) else { return };
        let line = line(&format!("{} {}", client.database, client.peer), command, args);
        let not_to = (command.spec.name == "reset").then_some(client.id);
        self.broadcast(move |core| core.show_monitors(&line, not_to));
    }

    /// Shows the monitors a command that a script calls.
    pub(super) fn feed_monitors_of_script(&mut self, database: usize, command: &Registered, args: Args<'_>) {
        if !command.spec.flags.has_any(Flags::SKIP_MONITOR.and(Flags::ADMIN)) {
            let line = line(&format!("{database} lua"), command, args);
            self.broadcast(move |core| core.show_monitors(&line, None));
        }
    }

    fn show_monitors(&mut self, line: &[u8], not_to: Option<u64>) {
        let monitors: Vec<ClientKey> = self
            .clients
            .iter()
            .filter(|(_, client)| client.monitor && !client.closing && client.wants_replies())
            .filter(|(_, client)| not_to != Some(client.id))
            .map(|(key, _)| key)
            .collect();
        for key in monitors {
            if let Some(client) = self.clients.get_mut(key) {
                client.push_reply(line);
                self.want_flush(key);
            }
        }
    }
}

/// What monitors are shown of a command that came from `source`.
fn line(source: &str, command: &Registered, args: Args<'_>) -> Vec<u8> {
    let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut line = format!("+{}.{:06} [{source}]", elapsed.as_secs(), elapsed.subsec_micros()).into_bytes();
    for word in shown_words(command, args) {
        line.push(b' ');
        quote(word, &mut line);
    }
    line.extend_from_slice(b"\r\n");
    line
}

/// A command's words as monitors and the slow log may show them: without passwords.
pub(super) fn shown_words<'a>(command: &Registered, args: Args<'a>) -> impl ExactSizeIterator<Item = &'a [u8]> {
    let name = command.spec.name;
    // Where the next secrets end.
    let mut secret_until = if name == "auth" && args.len() <= 3 { 3 } else { 0 };
    // Behind this word stand only keys.
    let keyword = if name == "migrate" { (6..args.len()).find(|&index| args.is(index, "keys")) } else { None };
    args.iter().enumerate().map(move |(index, word)| {
        match name {
            "auth" if index == 0 => return word,
            "hello" if index >= 2 && index >= secret_until && args.is(index, "auth") => {
                secret_until = index + 3;
                return word;
            }
            "migrate" if index >= 6 && index >= secret_until && keyword.is_none_or(|keyword| index < keyword) => {
                secret_until = if args.is(index, "auth") {
                    index + 2
                } else if args.is(index, "auth2") {
                    index + 3
                } else {
                    0
                };
                return word;
            }
            "config|set" if index >= 2 && index % 2 == 0 => {
                let secret = SECRET_PARAMETERS.iter().any(|parameter| args.is(index, parameter));
                secret_until = if secret { index + 2 } else { 0 };
                return word;
            }
            _ => {}
        }
        if index < secret_until { REDACTED } else { word }
    })
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

#[cfg(test)]
mod tests {
    use ruvio_shard::args::OwnedArgs;

    use super::*;
    use crate::registry::{Found, registry};

    fn shown(line: &str) -> String {
        let args: OwnedArgs = line.split(' ').collect();
        let Found::Command(command) = registry().find(args.as_args()) else { panic!("no command in {line}") };
        let words: Vec<_> = shown_words(command, args.as_args()).map(String::from_utf8_lossy).collect();
        words.join(" ")
    }

    #[test]
    fn passwords_are_not_shown() {
        for (line, wanted) in [
            ("AUTH secret", "AUTH (redacted)"),
            ("auth default secret", "auth (redacted) (redacted)"),
            ("HELLO 3 AUTH default secret", "HELLO 3 AUTH (redacted) (redacted)"),
            ("hello 3 setname me auth auth secret", "hello 3 setname me auth (redacted) (redacted)"),
            ("config set maxmemory 1 RequirePass secret", "config set maxmemory 1 RequirePass (redacted)"),
            ("config set requirepass secret maxmemory 1", "config set requirepass (redacted) maxmemory 1"),
            ("set auth secret", "set auth secret"),
            ("migrate host 1 key 0 1 copy auth auth", "migrate host 1 key 0 1 copy auth (redacted)"),
            (
                "migrate host 1 key 0 1 AUTH2 me secret keys auth key",
                "migrate host 1 key 0 1 AUTH2 (redacted) (redacted) keys auth key",
            ),
        ] {
            assert_eq!(shown(line), wanted);
        }
    }
}
