//! The notation of scripts: words of a command, and what its reply should be.
//!
//! A word is a run of visible characters, or a quoted string with the escapes of `redis-cli`. An expected reply is
//!
//! | written | means |
//! | --- | --- |
//! | `OK`, `+text up to the end` | a simple string |
//! | `-ERR text up to the end`, `-"ERR text "` | an error, word for word |
//! | `-ERR begins so*` | an error whose text begins so |
//! | `:3`, `:90..100` | an integer, an integer of a range (both ends count) |
//! | `word`, `"quoted \x00"` | a bulk string |
//! | `nil`, `nil-array` | the null bulk of RESP2 or the null of RESP3; the null array of RESP2 |
//! | `[a :1 [b]]` | an array |
//! | `?[a b]` | an array in any order |
//! | `??[a 1 b 2]` | an array of pairs in any order |
//! | `~[a b]`, `%[a :1 b :2]` | a set, a map of RESP3, in any order |
//! | `,1.5`, `#t`, `#f` | a double and booleans of RESP3 |
//! | `*` | anything but an error |

use super::value::Value;
use std::ops::RangeInclusive;

/// What a reply should be.
#[derive(Debug)]
pub enum Expected {
    /// This value.
    Exactly(Value),
    /// An integer of a range.
    Within(RangeInclusive<i64>),
    /// Elements in this order.
    Array(Vec<Expected>),
    /// Elements in any order.
    Unordered(Vec<Expected>),
    /// Pairs in any order, in a flat array.
    UnorderedPairs(Vec<Expected>),
    /// A set of RESP3.
    Set(Vec<Expected>),
    /// A map of RESP3: keys and values in turn, the pairs in any order.
    Map(Vec<Expected>),
    /// An error whose text begins so.
    ErrorThatBegins(String),
    /// No error.
    Anything,
}

impl Expected {
    /// Reads the notation; the error names what is wrong with it.
    pub fn parse(text: &str) -> Result<Expected, String> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix('+') {
            return Ok(Expected::Exactly(Value::Simple(rest.to_owned())));
        }
        let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
        if let Some(rest) = text.strip_prefix('-') {
            reader.at = 1;
            if let Some(beginning) = rest.strip_suffix('*') {
                return Ok(Expected::ErrorThatBegins(beginning.to_owned()));
            }
            let quoted = reader.peek() == Some(b'"');
            let error = if quoted { String::from_utf8_lossy(&reader.quoted()?).into_owned() } else { rest.to_owned() };
            return Ok(Expected::Exactly(Value::Error(error)));
        }
        let expected = reader.expected()?;
        reader.skip_spaces();
        if reader.at < reader.bytes.len() { Err("more than one reply".to_owned()) } else { Ok(expected) }
    }

    /// Whether `value` is as expected.
    pub fn matches(&self, value: &Value) -> bool {
        match (self, value) {
            (Expected::Exactly(expected), value) => expected == value,
            (Expected::Within(range), Value::Integer(integer)) => range.contains(integer),
            (Expected::Array(expected), Value::Array(elements)) => {
                expected.len() == elements.len() && expected.iter().zip(elements).all(|(e, v)| e.matches(v))
            }
            (Expected::Unordered(expected), Value::Array(elements))
            | (Expected::Set(expected), Value::Set(elements)) => {
                let groups: Vec<Vec<&Value>> = elements.iter().map(|element| vec![element]).collect();
                match_in_any_order(expected, groups, 1)
            }
            (Expected::UnorderedPairs(expected), Value::Array(elements)) => {
                match_in_any_order(expected, elements.chunks(2).map(|pair| pair.iter().collect()).collect(), 2)
            }
            (Expected::Map(expected), Value::Map(pairs)) => {
                match_in_any_order(expected, pairs.iter().map(|(key, value)| vec![key, value]).collect(), 2)
            }
            (Expected::ErrorThatBegins(beginning), Value::Error(text)) => text.starts_with(beginning),
            (Expected::Anything, value) => !matches!(value, Value::Error(_)),
            _ => false,
        }
    }
}

/// Whether each group of `size` expectations finds a group of values of its own.
fn match_in_any_order(expected: &[Expected], mut groups: Vec<Vec<&Value>>, size: usize) -> bool {
    expected.len() == groups.len() * size
        && expected.chunks(size).all(|wanted| {
            let matching = |group: &Vec<&Value>| {
                group.len() == wanted.len() && wanted.iter().zip(group).all(|(expected, value)| expected.matches(value))
            };
            let found = groups.iter().position(matching);
            found.map(|index| groups.swap_remove(index)).is_some()
        })
}

/// The words of a command line.
pub fn split_words(line: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut reader = Reader { bytes: line.as_bytes(), at: 0 };
    let mut words = Vec::new();
    loop {
        reader.skip_spaces();
        match reader.peek() {
            None => return Ok(words),
            Some(b'"') => words.push(reader.quoted()?),
            Some(_) => words.push(reader.bare(b" ").to_vec()),
        }
    }
}

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    fn take(&mut self, prefix: &[u8]) -> bool {
        let taken = self.bytes[self.at..].starts_with(prefix);
        if taken {
            self.at += prefix.len();
        }
        taken
    }

    fn bare(&mut self, ends: &[u8]) -> &'t [u8] {
        let start = self.at;
        while self.peek().is_some_and(|byte| !ends.contains(&byte)) {
            self.at += 1;
        }
        &self.bytes[start..self.at]
    }

    fn quoted(&mut self) -> Result<Vec<u8>, String> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let byte = self.peek().ok_or("a quoted string without an end")?;
            self.at += 1;
            match byte {
                b'"' => return Ok(bytes),
                b'\\' => {
                    let escape = self.peek().ok_or("an escape without an end")?;
                    self.at += 1;
                    bytes.push(match escape {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'x' => {
                            let digits = self.bytes.get(self.at..self.at + 2).ok_or("two digits after \\x")?;
                            self.at += 2;
                            let digits = std::str::from_utf8(digits).map_err(|error| error.to_string())?;
                            u8::from_str_radix(digits, 16).map_err(|error| error.to_string())?
                        }
                        other => other,
                    });
                }
                other => bytes.push(other),
            }
        }
    }

    fn elements(&mut self) -> Result<Vec<Expected>, String> {
        let mut elements = Vec::new();
        loop {
            self.skip_spaces();
            if self.take(b"]") {
                return Ok(elements);
            }
            elements.push(self.expected()?);
        }
    }

    fn expected(&mut self) -> Result<Expected, String> {
        self.skip_spaces();
        if self.take(b"[") {
            return Ok(Expected::Array(self.elements()?));
        }
        if self.take(b"??[") {
            return Ok(Expected::UnorderedPairs(self.elements()?));
        }
        if self.take(b"?[") {
            return Ok(Expected::Unordered(self.elements()?));
        }
        if self.take(b"~[") {
            return Ok(Expected::Set(self.elements()?));
        }
        if self.take(b"%[") {
            return Ok(Expected::Map(self.elements()?));
        }
        if self.peek() == Some(b'"') {
            return Ok(Expected::Exactly(Value::Bulk(self.quoted()?)));
        }
        let word = std::str::from_utf8(self.bare(b" ]")).map_err(|error| error.to_string())?;
        let integer = |digits: &str| digits.parse::<i64>().map_err(|error| format!("{error}: {digits}"));
        Ok(match (word, word.split_at_checked(1)) {
            ("", _) => return Err("a reply is missing".to_owned()),
            ("OK", _) => Expected::Exactly(Value::Simple("OK".to_owned())),
            ("nil", _) => Expected::Exactly(Value::Null),
            ("nil-array", _) => Expected::Exactly(Value::NullArray),
            ("*", _) => Expected::Anything,
            ("#t", _) => Expected::Exactly(Value::Boolean(true)),
            ("#f", _) => Expected::Exactly(Value::Boolean(false)),
            (_, Some(("+", text))) => Expected::Exactly(Value::Simple(text.to_owned())),
            (_, Some((",", digits))) => Expected::Exactly(Value::Double(digits.to_owned())),
            (_, Some((":", digits))) => match digits.split_once("..") {
                Some((low, high)) => Expected::Within(integer(low)?..=integer(high)?),
                None => Expected::Exactly(Value::Integer(integer(digits)?)),
            },
            _ => Expected::Exactly(Value::Bulk(word.as_bytes().to_vec())),
        })
    }
}

#[test]
fn the_notation_tells_apart_what_replies_tell_apart() {
    let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
    let matches = |notation: &str, value: &Value| Expected::parse(notation).expect(notation).matches(value);
    assert!(matches("OK", &Value::Simple("OK".to_owned())) && !matches("OK", &bulk("OK")));
    assert!(matches("3", &bulk("3")) && !matches("3", &Value::Integer(3)));
    assert!(matches("nil", &Value::Null) && !matches("nil", &Value::NullArray));
    assert!(matches(":1..3", &Value::Integer(3)) && !matches(":1..3", &Value::Integer(4)));
    let pair = Value::Array(vec![bulk("b"), bulk("a")]);
    assert!(matches("?[a b]", &pair) && !matches("[a b]", &pair) && !matches("?[a a]", &pair));
    assert!(matches(r#""\x00\"""#, &Value::Bulk(vec![0, b'"'])));
    assert!(!matches("*", &Value::Error("ERR".to_owned())));
    assert!(Expected::parse("a b").is_err() && Expected::parse("[a").is_err());
}
