//! What the clients do, one act after the other: a command, or several that belong together.

use super::comparison::Compare;
use super::generator::Generator;
use super::templates::{
    CONNECTION, DEADLINES_FROM_NOW, LOOSE, SERVER, WAITING, WAITING_FOR_ANY, WAITING_FOR_ONE, WAKING, WAKING_OR_NOT,
};
use rand::RngExt;

/// A command and who sends it.
pub struct Command {
    /// The connection: 0 speaks RESP2, 1 speaks RESP3.
    pub client: usize,
    pub words: Vec<Vec<u8>>,
    pub compare: Compare,
}

/// One thing that is done on both servers.
pub enum Step {
    /// A command is sent and answered.
    Call(Command),
    /// A command is sent and waits; the next step begins when it does.
    CallAndWait(Command),
    /// Something comes without having been asked for, or late.
    Receive(usize, Compare),
    /// Time goes by.
    Sleep { duration_ms: u64 },
    /// Both servers go over all keys with these options.
    Scan(&'static [&'static str]),
}

/// Ways to go over all keys.
const SCANS: &[&[&str]] = &[
    &[],
    &["COUNT", "3"],
    &["COUNT", "1000"],
    &["MATCH", "*a*"],
    &["TYPE", "hash"],
    &["TYPE", "string", "COUNT", "7"],
    &["MATCH", "{2}*", "COUNT", "100", "TYPE", "zset"],
    &["TYPE", "nosuch"],
];

/// Makes acts, of steps, by chance.
pub struct Acts<'g> {
    pub generator: &'g mut Generator,
    client: usize,
    steps: Vec<Step>,
}

impl Acts<'_> {
    /// The next act.
    pub fn next(generator: &mut Generator) -> Vec<Step> {
        let client = generator.random.random_range(0..2);
        let mut acts = Acts { generator, client, steps: Vec::new() };
        acts.act();
        acts.steps
    }

    fn act(&mut self) {
        self.generator.protocol = self.client as u8 + 2;
        self.generator.change_tag();
        match self.generator.random.random_range(0..2_000) {
            0 => self.line("FLUSHDB"),
            1..3 => self.waiting(),
            3..9 => self.expiring(),
            9..15 => self.subscription(),
            15..18 => {
                let options = SCANS[self.generator.random.random_range(0..SCANS.len())];
                self.steps.push(Step::Scan(options));
            }
            18..21 => self.reset(),
            21..24 => self.functions_gone(),
            24..60 => self.deadline_from_now(),
            60..120 => self.transaction(),
            120..140 => self.one(WAITING),
            140..180 => self.key_names(),
            180..280 => self.one(CONNECTION),
            280..400 => self.one(SERVER),
            400..540 => {
                let (words, compare) = self.generator.script_call();
                self.call(words, compare);
            }
            540..580 => {
                let (words, compare) = self.generator.function_call();
                self.call(words, compare);
            }
            580..780 => self.one(LOOSE),
            _ => {
                let (words, compare) = self.generator.careless_command();
                self.call(words, compare);
            }
        }
    }

    fn command(&self, words: Vec<Vec<u8>>, compare: Compare) -> Command {
        Command { client: self.client, words, compare }
    }

    fn call(&mut self, words: Vec<Vec<u8>>, compare: Compare) {
        self.steps.push(Step::Call(self.command(words, compare)));
    }

    fn one(&mut self, templates: &[&str]) {
        let (words, compare) = self.generator.command_of(templates);
        self.call(words, compare);
    }

    fn line(&mut self, template: &str) {
        self.one(&[template]);
    }

    fn other_client(&mut self) {
        self.client = 1 - self.client;
        self.generator.protocol = self.client as u8 + 2;
    }

    fn transaction(&mut self) {
        if self.generator.once_in(3) {
            self.line("WATCH K K");
            for _ in 0..self.generator.random.random_range(0..3) {
                if self.generator.once_in(2) {
                    self.other_client();
                    self.one(&[
                        "SET K V",
                        "GET K",
                        "DEL K",
                        "EXPIREAT K FUTURE",
                        "RENAME K K",
                        "SADD K M",
                        "EVAL return(1) 1 K",
                    ]);
                    self.other_client();
                } else {
                    self.any();
                }
            }
            if self.generator.once_in(10) {
                self.one(&["UNWATCH", "EXEC"]);
            }
        }
        self.line("MULTI");
        for _ in 0..self.generator.random.random_range(0..8) {
            match self.generator.random.random_range(0..60) {
                0 => self.one(&["MULTI", "WATCH K", "MULTI W", "NOSUCH K", "GET", "UNWATCH", "SET K"]),
                1 => self.one(&[
                    "PING",
                    "ECHO V",
                    "PUBLISH CH V",
                    "CLIENT GETNAME",
                    "CONFIG GET SETTING",
                    "SCRIPT EXISTS SHA",
                ]),
                _ => self.any(),
            }
        }
        if self.generator.once_in(8) { self.line("DISCARD") } else { self.line("EXEC") }
    }

    /// A command about keys of the slot of the last.
    fn any(&mut self) {
        let (words, compare) = match self.generator.random.random_range(0..20) {
            0 => self.generator.command_of(WAITING),
            1..3 => self.generator.command_of(LOOSE),
            3 => self.generator.script_call(),
            4 => self.generator.function_call(),
            _ => self.generator.careless_command(),
        };
        self.call(words, compare);
    }

    /// A deadline from now is another moment on each server: it is shown by its sign, and goes.
    fn deadline_from_now(&mut self) {
        let template = self.generator.pick(DEADLINES_FROM_NOW);
        let words = self.generator.words(template);
        let key = words[1].clone();
        self.call(words, Compare::Exactly);
        let ask = self.generator.pick(&["TTL", "PTTL"]);
        self.call(vec![ask.into(), key.clone()], Compare::Sign);
        self.call(vec!["PERSIST".into(), key], Compare::Exactly);
    }

    fn expiring(&mut self) {
        let words = self.generator.words("PEXPIRE K 1");
        let key = words[1].clone();
        self.call(words, Compare::Exactly);
        self.steps.push(Step::Sleep { duration_ms: 4 });
        if self.generator.once_in(2) {
            let name =
                self.generator.pick(&["TYPE", "TTL", "INCR", "LLEN", "SETNX", "APPEND", "LPUSHX", "HSETNX", "DUMP"]);
            let mut words = vec![name.into(), key.clone()];
            let more = match name {
                "SETNX" | "APPEND" | "LPUSHX" => 1,
                "HSETNX" => 2,
                _ => 0,
            };
            words.extend((0..more).map(|_| b"m1".to_vec()));
            self.call(words, if name == "DUMP" { Compare::Presence } else { Compare::Exactly });
        }
        // Redis counts a key in DBSIZE until somebody asks for it.
        self.call(vec!["EXISTS".into(), key], Compare::Exactly);
    }

    /// `COMMAND GETKEYS` of a command.
    fn key_names(&mut self) {
        let (inner, compare) = match self.generator.random.random_range(0..6) {
            0 => self.generator.command_of(&[
                "BLPOP K K 1",
                "BLMPOP 1 2 K K LEFT",
                "BZPOPMIN K 1",
                "BLMOVE K K LEFT LEFT 1",
            ]),
            1 => self.generator.command_of(&[
                "EVAL x 2 K K V",
                "EVALSHA x 1 K",
                "FCALL x 0 V",
                "FCALL_RO x 1 K",
                "EVAL x 0",
            ]),
            2 => self.generator.command_of(&[
                "RESTORE K 0 V",
                "OBJECT ENCODING K",
                "MEMORY USAGE K",
                "SPOP K",
                "PUBLISH CH V",
            ]),
            _ => self.generator.sound_command(),
        };
        // Redis 7.0 wants one word more than 7.2.
        if inner.len() == 1 {
            return self.call(inner, compare);
        }
        let ask = self.generator.pick(&["GETKEYS", "GETKEYSANDFLAGS"]);
        let mut words = vec![b"COMMAND".to_vec(), ask.into()];
        words.extend(inner);
        self.call(words, Compare::Exactly);
    }

    /// The connection is as at its start, and greets again.
    fn reset(&mut self) {
        self.one(&["MULTI", "WATCH K", "SELECT D", "CLIENT SETNAME M"]);
        self.line("RESET");
        self.line("CLIENT GETNAME");
        self.line("HELLO PROTOCOL");
    }

    fn functions_gone(&mut self) {
        if self.generator.once_in(10) {
            self.one(&["SCRIPT FLUSH", "SCRIPT FLUSH ASYNC", "SCRIPT FLUSH SYNC"]);
            self.line("SCRIPT EXISTS SHA SHA");
            let (words, compare) = self.generator.script_call();
            self.call(words, compare);
            // None is unknown to what follows: which of several commands of a pipeline makes it known is a difference
            // that COMMANDS.md names.
            for words in self.generator.script_loads() {
                self.call(words, Compare::Exactly);
            }
            return;
        }
        self.one(&["FUNCTION FLUSH", "FUNCTION FLUSH ASYNC", "FUNCTION DELETE mix"]);
        self.line("FUNCTION LIST");
        let (words, compare) = self.generator.function_call();
        self.call(words, compare);
        self.line("FUNCTION LOAD REPLACE LIBRARY");
    }

    fn subscription(&mut self) {
        let kind = self.generator.pick(&["", "P", "S"]);
        self.line(&format!("{kind}SUBSCRIBE ch9"));
        for _ in 0..self.generator.random.random_range(0..4) {
            self.one(&["PING", "PING V", "GET K", "SET K V", "SUBSCRIBE ch8", "MULTI W", "ECHO V", "NOSUCH"]);
        }
        if self.generator.once_in(2) {
            self.other_client();
            self.line(if kind == "S" { "SPUBLISH ch9 V" } else { "PUBLISH ch9 V" });
            self.line("PUBSUB NUMSUB ch8 ch9");
            self.line("PUBSUB SHARDNUMSUB ch9");
            self.line("PUBSUB NUMPAT");
            self.other_client();
            self.steps.push(Step::Receive(self.client, Compare::Exactly));
        }
        self.line("UNSUBSCRIBE ch8");
        self.line(&format!("{kind}UNSUBSCRIBE ch9"));
        self.line("PING");
    }

    /// One client waits, the other gives, if nothing else, something at last.
    fn waiting(&mut self) {
        for client in [0, 1] {
            self.client = client;
            self.line("SELECT 0");
        }
        let everything = ["q0", "q1", "z0", "z1"].map(|key| format!("{{{}}}{key}", self.generator.tag).into_bytes());
        self.call([vec![b"DEL".to_vec()], everything.to_vec()].concat(), Compare::Exactly);
        let (waiting, waking) = match self.generator.random.random_range(0..3) {
            0 => (WAITING_FOR_ONE, WAKING_OR_NOT),
            1 => (WAITING_FOR_ONE, WAKING),
            _ => (WAITING_FOR_ANY, WAKING),
        };
        let (words, compare) = self.generator.command_of(waiting);
        let sleeper = self.generator.random.random_range(0..2);
        self.client = sleeper;
        self.steps.push(Step::CallAndWait(self.command(words, compare)));
        self.other_client();
        let in_transaction = self.generator.once_in(3);
        if in_transaction {
            self.line("MULTI");
        }
        for _ in 0..self.generator.random.random_range(1..4) {
            self.one(waking);
        }
        if in_transaction {
            self.line("EXEC");
        }
        self.call([vec![b"DEL".to_vec()], everything.to_vec()].concat(), Compare::Exactly);
        for key in &everything {
            let give = if key.contains(&b'q') { "RPUSH" } else { "ZADD" };
            let mut words = vec![give.into(), key.clone()];
            words.extend(if give == "ZADD" { vec![b"1".to_vec(), b"m".to_vec()] } else { vec![b"m".to_vec()] });
            self.call(words, Compare::Exactly);
        }
        self.steps.push(Step::Receive(sleeper, compare));
        self.call([vec![b"DEL".to_vec()], everything.to_vec()].concat(), Compare::Exactly);
    }
}
