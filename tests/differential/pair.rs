//! The same steps on two servers, and the first difference between them.

use super::acts::{Command, Step};
use super::comparison::{Compare, are_same, contents, scan_everything};
use super::generator::Generator;
use crate::support::{Connection, Server, Value, encode_command, wait_until};
use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

/// How many of the last commands are looked through for those that explain a difference.
const HISTORY: usize = 4_000;
const PAYLOADS: usize = 64;

/// A connection to this server and one to Redis, which are sent the same.
struct Client {
    ours: Connection,
    theirs: Connection,
    /// How to compare the replies of the commands that are queued in a transaction.
    queued: Vec<Compare>,
}

/// Both servers with two clients each, of RESP2 and of RESP3, and the subscribers to their messages.
pub struct Pair<'s> {
    servers: [&'s Server; 2],
    clients: [Client; 2],
    subscribers: [Client; 2],
    history: VecDeque<String>,
    /// How many commands each client has sent.
    sent: [usize; 2],
    /// How many of them were answered with errors.
    errors: usize,
    dumps: usize,
}

impl Client {
    fn connect(servers: [&Server; 2], lines: &[&str]) -> Client {
        let [mut ours, mut theirs] = servers.map(Server::connect);
        for line in lines {
            ours.line(line);
            theirs.line(line);
        }
        Client { ours, theirs, queued: Vec::new() }
    }

    /// The same line on both, with the same reply.
    #[track_caller]
    fn line(&mut self, line: &[&str]) -> Value {
        let ours = self.ours.call(line);
        assert_eq!(ours, self.theirs.call(line), "{line:?}");
        ours
    }

    fn send(&mut self, frames: &[u8]) {
        self.ours.send(frames);
        self.theirs.send(frames);
    }
}

/// What replies have in common, one for each server.
struct Replies {
    ours: Value,
    theirs: Value,
}

impl<'s> Pair<'s> {
    /// Connects all clients.
    pub fn connect(servers: [&'s Server; 2]) -> Pair<'s> {
        Pair {
            servers,
            clients: [Client::connect(servers, &[]), Client::connect(servers, &["HELLO 3"])],
            subscribers: [
                Client::connect(servers, &["SUBSCRIBE ch0", "SUBSCRIBE ch1", "PSUBSCRIBE ch[12]"]),
                Client::connect(servers, &["HELLO 3", "SSUBSCRIBE ch3"]),
            ],
            history: VecDeque::new(),
            sent: [0; 2],
            errors: 0,
            dumps: 0,
        }
    }

    /// How many commands were sent.
    pub fn sent(&self) -> usize {
        self.sent.iter().sum()
    }

    /// How many commands were sent, in words.
    pub fn summary(&self) -> String {
        let [resp2, resp3] = self.sent;
        format!("{resp2} commands in RESP2 and {resp3} in RESP3, {} answered with errors", self.errors)
    }

    /// The same line on both servers, with the same reply.
    #[track_caller]
    pub fn line(&mut self, line: &[&str]) -> Value {
        self.clients[0].line(line)
    }

    /// Does the steps; says what differs.
    pub fn run(&mut self, steps: &[Step], generator: &mut Generator) -> Result<(), String> {
        let mut steps = steps.iter().peekable();
        while let Some(step) = steps.next() {
            match step {
                Step::Call(command) => {
                    let mut batch = vec![command];
                    while let Some(Step::Call(next)) = steps.peek() {
                        if next.client != command.client {
                            break;
                        }
                        batch.push(next);
                        steps.next();
                    }
                    self.call(&batch, generator)?;
                }
                Step::CallAndWait(command) => {
                    self.note(command);
                    self.clients[command.client].send(&encode_command(&command.words));
                    for server in self.servers {
                        wait_until("the client should wait", || server.info_number("blocked_clients") > 0);
                    }
                }
                Step::Receive(client, compare) => {
                    self.compare(*client, *compare, false, "what comes late")?;
                }
                Step::Sleep { duration_ms } => thread::sleep(Duration::from_millis(*duration_ms)),
                Step::Scan(options) => {
                    let client = &mut self.clients[0];
                    let ours = scan_everything(&mut client.ours, options);
                    let theirs = scan_everything(&mut client.theirs, options);
                    if ours != theirs {
                        return Err(format!("SCAN {options:?}\n  ours:    {ours:?}\n  Redis's: {theirs:?}"));
                    }
                }
            }
        }
        self.compare_messages()
    }

    fn call(&mut self, batch: &[&Command], generator: &mut Generator) -> Result<(), String> {
        let frames: Vec<u8> = batch.iter().flat_map(|command| encode_command(&command.words)).collect();
        self.clients[batch[0].client].send(&frames);
        for command in batch {
            let shown = self.note(command);
            let is_execution = command.words[0].eq_ignore_ascii_case(b"EXEC");
            let replies = self.compare(command.client, command.compare, is_execution, &shown)?;
            self.errors += usize::from(matches!(replies.ours, Value::Error(_)));
            let client = &mut self.clients[command.client];
            match (&replies.ours, command.words[0].to_ascii_uppercase().as_slice()) {
                (Value::Simple(text), _) if text == "QUEUED" => client.queued.push(command.compare),
                (Value::Array(_) | Value::Null | Value::NullArray, b"EXEC") => client.queued.clear(),
                (Value::Simple(_), b"DISCARD" | b"RESET") => client.queued.clear(),
                (Value::Error(text), b"EXEC") if text.starts_with("EXECABORT") => client.queued.clear(),
                (Value::Bulk(ours), b"DUMP") => {
                    self.dumps += 1;
                    let payload = match &replies.theirs {
                        Value::Bulk(theirs) if self.dumps.is_multiple_of(2) => theirs,
                        _ => ours,
                    };
                    if generator.payloads.len() < PAYLOADS {
                        generator.payloads.push(payload.clone());
                    } else {
                        generator.payloads[self.dumps % PAYLOADS] = payload.clone();
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a reply from both servers; that of `EXEC` is compared part by part, as the queued commands are.
    fn compare(&mut self, client: usize, compare: Compare, is_execution: bool, shown: &str) -> Result<Replies, String> {
        let replies = {
            let client = &mut self.clients[client];
            Replies { ours: client.ours.read_value(), theirs: client.theirs.read_value() }
        };
        let (ours, theirs) = (&replies.ours, &replies.theirs);
        let is_queued = matches!(ours, Value::Simple(text) if text == "QUEUED");
        let is_same = match (ours, theirs) {
            (Value::Array(ours), Value::Array(theirs)) if is_execution && ours.len() == theirs.len() => {
                let ways = &self.clients[client].queued;
                let parts = ours.iter().zip(theirs).zip(ways);
                ways.len() == ours.len() && parts.into_iter().all(|((ours, theirs), way)| are_same(ours, theirs, *way))
            }
            _ if is_queued => ours == theirs,
            _ => are_same(ours, theirs, compare),
        };
        if is_same {
            return Ok(replies);
        }
        Err(format!(
            "{shown}\n  ours:    {ours:?}\n  Redis's: {theirs:?}\nbefore that:\n{}",
            self.commands_about_the_same(shown)
        ))
    }

    /// The messages that both subscribers were sent, up to a mark of each client.
    fn compare_messages(&mut self) -> Result<(), String> {
        for (subscriber, publish, channel) in [(0, "PUBLISH", "ch0"), (1, "SPUBLISH", "ch3")] {
            for client in 0..2 {
                self.clients[client].line(&[publish, channel, &format!("mark {client}")]);
            }
            let subscriber = &mut self.subscribers[subscriber];
            let [ours, theirs] = [&mut subscriber.ours, &mut subscriber.theirs].map(messages_until_marks);
            if ours != theirs {
                return Err(format!("messages\n  ours:    {ours:?}\n  Redis's: {theirs:?}"));
            }
        }
        Ok(())
    }

    fn note(&mut self, command: &Command) -> String {
        self.sent[command.client] += 1;
        let words: Vec<String> = command.words.iter().map(|word| format!("\"{}\"", word.escape_ascii())).collect();
        let shown = format!("{} (RESP{}): {}", self.sent(), command.client + 2, words.join(" "));
        self.history.push_back(shown.clone());
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
        shown
    }

    /// The last commands that have a key of this one.
    fn commands_about_the_same(&self, shown: &str) -> String {
        let keys: Vec<&str> = shown.split(' ').filter(|word| word.starts_with("\"{")).collect();
        let about = |line: &&String| keys.iter().any(|key| line.contains(key)) || line.contains("SELECT");
        let mut lines: Vec<String> = self.history.iter().rev().skip(1).filter(about).take(14).cloned().collect();
        lines.reverse();
        lines.iter_mut().for_each(|line| line.truncate(400));
        lines.join("\n")
    }

    /// What the databases hold, of each server.
    pub fn contents(&mut self, databases: u32) -> [Vec<Vec<(String, String)>>; 2] {
        let client = &mut self.clients[0];
        [&mut client.ours, &mut client.theirs].map(|connection| {
            (0..databases)
                .map(|database| {
                    connection.line(&format!("SELECT {database}"));
                    contents(connection)
                })
                .collect()
        })
    }
}

fn messages_until_marks(connection: &mut Connection) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut marks = 0;
    while marks < 2 {
        let message = connection.read_value();
        let parts = message.elements();
        if parts.last().is_some_and(|payload| payload.bytes().starts_with(b"mark ")) {
            marks += 1;
        } else {
            messages.push(message);
        }
    }
    messages
}
