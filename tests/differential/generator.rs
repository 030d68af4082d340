//! Makes random commands of templates.

use super::comparison::{Compare, way_for};
use super::keyspace::KEYSPACE;
use super::scripts::{FUNCTIONS, LIBRARY, SCRIPTS};
use super::templates::SETTINGS;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

const WRONG_WORDS: [&str; 12] = [
    "",
    "x",
    "-1",
    "0",
    "1.5",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "nan",
    "inf",
    "NX",
    "(",
];

/// Commands with options that Redis 7.0 does not have: a word more or less is another error there.
const TAKE_MORE_WORDS: [&str; 12] = [
    "INCR",
    "DECR",
    "INCRBY",
    "DECRBY",
    "INCRBYFLOAT",
    "HINCRBY",
    "HINCRBYFLOAT",
    "ZINCRBY",
    "ZRANK",
    "ZREVRANK",
    "BITCOUNT",
    "BITPOS",
];

/// The names of keys that mostly hold a type, by the beginnings of the commands that the type is for.
const HOMES: [(&str, &[&str]); 5] = [
    ("zset", &["Z", "BZ", "GEO"]),
    (
        "set",
        &["SADD", "SREM", "SCARD", "SIS", "SMI", "SME", "SMO", "SINTER", "SUNION", "SDIFF", "SPOP", "SRAND", "SSCAN"],
    ),
    ("hash", &["H"]),
    ("list", &["L", "RP", "BL", "BR"]),
    ("string", &["SET", "GET", "APP", "STR", "SUBSTR", "INCR", "DECR", "MGET", "MSET", "BIT", "LCS", "PSETEX"]),
];

/// Commands that speak for one shard in a script, and for all databases of Redis.
const NOT_IN_SCRIPTS: [&str; 2] = ["DBSIZE", "KEYS"];

/// Makes random commands.
pub struct Generator {
    /// What chance decides.
    pub random: StdRng,
    /// The keys of the last command had this hash tag.
    pub tag: u32,
    /// Values as `DUMP` gave them, of both servers.
    pub payloads: Vec<Vec<u8>>,
    /// The digests of `SCRIPTS`, in their order.
    pub digests: Vec<String>,
    /// The name of the keys that the command in progress mostly finds its type at.
    home: Option<&'static str>,
    /// The version of the protocol that the next command's connection speaks.
    pub protocol: u8,
}

impl Generator {
    /// The same commands for the same seed.
    pub fn new(seed: u64) -> Generator {
        Generator {
            random: StdRng::seed_from_u64(seed),
            tag: 0,
            payloads: Vec::new(),
            digests: Vec::new(),
            home: None,
            protocol: 2,
        }
    }

    /// Has the keys of the commands that follow be of another slot, or of the same. There are few tags, so that keys
    /// meet each other; several, so that both shards own some.
    pub fn change_tag(&mut self) {
        self.tag = self.random.random_range(0..6);
    }

    /// One of several, by chance.
    pub fn pick<'c>(&mut self, choices: &[&'c str]) -> &'c str {
        choices.choose(&mut self.random).expect("a choice")
    }

    /// Whether what happens once in `times` happens now.
    pub fn once_in(&mut self, times: u32) -> bool {
        self.random.random_ratio(1, times)
    }

    /// The words of a template.
    pub fn words(&mut self, template: &str) -> Vec<Vec<u8>> {
        let has_start = |starts: &&[&str]| starts.iter().any(|start| template.starts_with(start));
        // `LCS` is about strings.
        let home = HOMES.iter().rev().find(|(_, starts)| has_start(starts));
        self.home = home.map(|(name, _)| *name);
        let mut words = Vec::new();
        for placeholder in template.split(' ') {
            match placeholder.strip_prefix("MANY") {
                Some(of) => self.add_many(of, &mut words),
                None => words.push(self.word(placeholder)),
            }
        }
        words
    }

    /// So many members that a value is no longer stored as a small one.
    fn add_many(&mut self, of: &str, words: &mut Vec<Vec<u8>>) {
        let first = self.random.random_range(0..200);
        for number in first..first + self.random.random_range(100..400) {
            match of {
                "NUMBERS" => words.push(format!("{}", number * 3 - 300).into_bytes()),
                "SCORES" => words.extend([self.word("F"), format!("m{number}").into_bytes()]),
                "PAIRS" => words.extend([format!("m{number}").into_bytes(), self.word("I")]),
                _ => words.push(format!("m{number}").into_bytes()),
            }
        }
    }

    /// A number with a fraction, of any size, in any notation.
    fn odd_number(&mut self) -> String {
        let number = self.random.random_range(-1_000_000_i64..1_000_000) as f64;
        let scale = 10_f64.powi(self.random.random_range(-12..12));
        match self.random.random_range(0..5) {
            0 => format!("{:e}", number * scale),
            1 => format!("{:.3}", number / 1_000.0),
            2 => format!("{}", number * scale),
            3 => format!("{}.{:03}", self.random.random::<i32>(), self.random.random_range(0..1_000)),
            _ => format!("{}", f64::from(self.random.random_range(-99..100)) / 10.0),
        }
    }

    /// What a word of a template stands for: a key, a member, a value, an integer and so on.
    fn word(&mut self, placeholder: &str) -> Vec<u8> {
        let text = match placeholder {
            "K" => {
                let any_home =
                    if self.once_in(2) { HOMES.choose(&mut self.random).map(|(name, _)| *name) } else { None };
                let home = self.home.filter(|_| !self.once_in(4)).or(any_home);
                let name = home.unwrap_or("any");
                format!("{{{}}}{name}{}", self.tag, self.random.random_range(0..3))
            }
            // Keys that somebody waits for.
            "Q" | "Z" => {
                format!("{{{}}}{}{}", self.tag, placeholder.to_lowercase(), self.random.random_range(0..2))
            }
            // Weights for SORT, and the pattern that finds them.
            "WK" => format!("{{{}}}w_m{}", self.tag, self.random.random_range(0..12)),
            "WP" => format!("{{{}}}w_*", self.tag),
            // Ranges by name are defined where all scores are equal: no other command uses this key.
            "LEX" => format!("{{{}}}lex", self.tag),
            "M" if self.once_in(40) => "m".repeat(self.random.random_range(60..200)),
            "M" => format!("m{}", self.random.random_range(0..12)),
            "V" => return self.value(),
            "HLL" => format!("{{{}}}hll{}", self.tag, self.random.random_range(0..2)),
            "T" => self.random.random_range(0..2).to_string(),
            "O" if self.once_in(4) => format!("#{}", self.random.random_range(0..8)),
            "O" => self.random.random_range(0..200).to_string(),
            "BF" => format!("{}{}", self.pick(&["i", "u"]), self.random.random_range(1..=64)),
            // Hundredths of a degree: far enough from each other that no two distances are the same.
            "LON" => format!("{}", f64::from(self.random.random_range(-18_000_i32..=18_000)) / 100.0),
            "LAT" => format!("{}", f64::from(self.random.random_range(-8_500_i32..=8_500)) / 100.0),
            "R" => {
                let digits = self.random.random_range(1..8);
                self.random.random_range(0..10_u64.pow(digits)).to_string()
            }
            "U" => self.pick(&["m", "km", "KM", "ft", "mi", "ells"]).to_owned(),
            "I" => self.random.random_range(-20_i64..100).to_string(),
            "BIG" => (self.random.random::<i64>() >> self.random.random_range(0..4)).to_string(),
            // Quarters are exact in binary, and few digits in any way of printing them.
            "F" => format!("{}", f64::from(self.random.random_range(-40_i32..80)) / 4.0),
            "X" => self.odd_number(),
            "(X" => format!("({}", self.odd_number()),
            "N" => self.random.random_range(-8_i32..12).to_string(),
            "P" => self.random.random_range(0_i32..6).to_string(),
            "B" => {
                let score = f64::from(self.random.random_range(-20_i32..40)) / 2.0;
                match self.random.random_range(0..8) {
                    0 => "-inf".to_owned(),
                    1 => "+inf".to_owned(),
                    2 => format!("({score}"),
                    3 => self.pick(&WRONG_WORDS).to_owned(),
                    _ => score.to_string(),
                }
            }
            "L" => match self.random.random_range(0..8) {
                0 | 1 => "-".to_owned(),
                2 | 3 => "+".to_owned(),
                4 => self.pick(&WRONG_WORDS).to_owned(),
                side => format!("{}m{}", if side == 5 { "(" } else { "[" }, self.random.random_range(0..12)),
            },
            "W" => self.pick(&WRONG_WORDS).to_owned(),
            "D" => self.random.random_range(0..3).to_string(),
            "FUTURE" => self.random.random_range(9_000_000_000_u64..9_000_000_010).to_string(),
            "FUTUREMS" => self.random.random_range(9_000_000_000_000_u64..9_000_000_010_000).to_string(),
            "PAYLOAD" => return self.payload(),
            "CH" => format!("ch{}", self.random.random_range(0..4)),
            "CH*" => format!("ch{}*", self.random.random_range(0..4)),
            "SETTING" => self.pick(SETTINGS).to_owned(),
            "PROTOCOL" => self.protocol.to_string(),
            "SOURCE" => self.script().1.to_owned(),
            "SHA" => self.digests.choose(&mut self.random).expect("a digest").clone(),
            "LIBRARY" => LIBRARY.to_owned(),
            fixed => fixed.to_owned(),
        };
        text.into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let length = match self.random.random_range(0..20) {
            0 => self.random.random_range(100..2_000),
            1..4 => 0,
            _ => self.random.random_range(1..12),
        };
        (0..length).map(|_| if self.once_in(8) { self.random.random() } else { b'v' }).collect()
    }

    /// A value as one of the servers dumped it, now and then damaged.
    fn payload(&mut self) -> Vec<u8> {
        let mut payload = self.payloads.choose(&mut self.random).cloned().unwrap_or_default();
        if self.once_in(20) && !payload.is_empty() {
            let place = self.random.random_range(0..payload.len());
            payload[place] ^= 1 << self.random.random_range(0..8);
        }
        payload
    }

    /// A command about keys and values, and what of its reply can be compared.
    pub fn command(&mut self) -> (Vec<Vec<u8>>, Compare) {
        if self.once_in(2_000) {
            return (vec![b"FLUSHDB".to_vec()], Compare::Exactly);
        }
        self.change_tag();
        self.command_with_tag()
    }

    /// As `command`, with keys of the slot of the last command.
    pub fn command_with_tag(&mut self) -> (Vec<Vec<u8>>, Compare) {
        let template = self.pick(KEYSPACE);
        let mut words = self.words(template);
        let name = template.split(' ').next().unwrap_or_default();
        if self.once_in(60) && !TAKE_MORE_WORDS.contains(&name) {
            // Where the word would be a key it must be of the same slot.
            let key_follows = template.ends_with(" K") || template.ends_with(" HLL") || name.starts_with("MSET");
            words.push(if key_follows { self.word("K") } else { self.pick(&WRONG_WORDS).as_bytes().to_vec() });
        }
        (words, way_for(template))
    }

    /// As `command_with_tag`, with the name in any case and now and then without the last words.
    pub fn careless_command(&mut self) -> (Vec<Vec<u8>>, Compare) {
        let (mut words, compare) = self.command_with_tag();
        if self.once_in(10) {
            words[0].make_ascii_lowercase();
        }
        let name = String::from_utf8_lossy(&words[0]).to_uppercase();
        if self.once_in(100) && !TAKE_MORE_WORDS.contains(&name.as_str()) {
            words.truncate(self.random.random_range(1..=words.len()));
        }
        (words, compare)
    }

    /// A command whose words are all sound.
    pub fn sound_command(&mut self) -> (Vec<Vec<u8>>, Compare) {
        loop {
            let template = self.pick(KEYSPACE);
            if !template.split(' ').any(|word| word == "W") {
                return (self.words(template), way_for(template));
            }
        }
    }

    /// Calls that make all scripts known.
    pub fn script_loads(&self) -> Vec<Vec<Vec<u8>>> {
        SCRIPTS
            .iter()
            .map(|(source, _)| vec![b"SCRIPT".to_vec(), b"LOAD".to_vec(), source.as_bytes().to_vec()])
            .collect()
    }

    /// A command of any of the templates.
    pub fn command_of(&mut self, templates: &[&str]) -> (Vec<Vec<u8>>, Compare) {
        let template = self.pick(templates);
        (self.words(template), way_for(template))
    }

    fn script(&mut self) -> (usize, &'static str, &'static str) {
        // Half of the scripts are the first few, which run any command.
        let few = if self.once_in(2) { 5 } else { SCRIPTS.len() };
        let index = self.random.random_range(0..few);
        (index, SCRIPTS[index].0, SCRIPTS[index].1)
    }

    /// A call of a script, by its source or by its digest.
    pub fn script_call(&mut self) -> (Vec<Vec<u8>>, Compare) {
        let (index, source, rest) = self.script();
        let (name, script) = match self.random.random_range(0..10) {
            0..5 => ("EVAL", source),
            5 => ("EVAL_RO", source),
            6..9 => ("EVALSHA", self.digests[index].as_str()),
            _ => ("EVALSHA_RO", self.digests[index].as_str()),
        };
        let words = vec![name.as_bytes().to_vec(), script.as_bytes().to_vec()];
        let (words, compare) = self.with_arguments(words, rest);
        (words, with_doubles(compare, source.starts_with("redis.setresp(3)")))
    }

    /// A call of a function of the library.
    pub fn function_call(&mut self) -> (Vec<Vec<u8>>, Compare) {
        let (function, rest) = *FUNCTIONS.choose(&mut self.random).expect("a function");
        let name = if self.once_in(3) { "FCALL_RO" } else { "FCALL" };
        let words = vec![name.as_bytes().to_vec(), function.as_bytes().to_vec()];
        let (words, compare) = self.with_arguments(words, rest);
        (words, with_doubles(compare, function == "try"))
    }

    /// A script's words with the number of its keys, keys and arguments.
    fn with_arguments(&mut self, mut words: Vec<Vec<u8>>, rest: &str) -> (Vec<Vec<u8>>, Compare) {
        let mut compare = Compare::Exactly;
        for placeholder in rest.split(' ') {
            if placeholder == "COMMAND" {
                let (inner, way) = loop {
                    let (inner, way) = self.careless_command();
                    let name = String::from_utf8_lossy(&inner[0]).to_uppercase();
                    if !NOT_IN_SCRIPTS.contains(&name.as_str()) {
                        break (inner, way);
                    }
                };
                words.extend(inner);
                compare = way;
            } else {
                words.push(self.word(placeholder));
            }
        }
        if self.once_in(60) {
            words[2] = self.word("W");
        }
        (words, compare)
    }
}

/// How to compare what a script replies that sees doubles: to RESP2 they are shown in 17 digits by Redis 7.0, in the fewest
/// from 7.2 on.
fn with_doubles(compare: Compare, sees_doubles: bool) -> Compare {
    if sees_doubles && compare == Compare::Exactly { Compare::Scores } else { compare }
}
