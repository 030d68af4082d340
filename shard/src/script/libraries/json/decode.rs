//! JSON into values. Open tables are kept on a stack of its own, so that nesting takes none of the thread's.

use mlua::{Lua, LuaString, Table, Value};

use super::super::SLOTS_MAX;
use super::super::call::{Arguments, Failure};
use super::super::number::read_number;
use super::settings::{Outcome, Settings};

pub fn decode(settings: &Settings, lua: &Lua, arguments: &Arguments<'_>) -> Outcome {
    if arguments.count() != 1 {
        return Err(Failure::argument(1, "expected 1 argument"));
    }
    let text = arguments.string(1)?;
    let text = text.as_bytes();
    if matches!(*text, [0, _, ..] | [_, 0, ..]) {
        return Err(Failure::message("JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut decoder = Decoder { settings, lua, text: &text, at: 0, string: Vec::new(), open: Vec::new(), slots: 1 };
    let value = decoder.decode()?;
    Ok([value].into_iter().collect())
}

enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// The string is in the decoder's buffer.
    String,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Token {
    /// How an error names it.
    fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::String => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Error(text) => text,
        }
    }
}

/// A token and where it begins; an error, where it was found.
struct Found {
    token: Token,
    at: usize,
}

impl Found {
    fn unexpected(&self, expected: &str) -> Failure {
        let (found, position) = (self.token.name(), self.at + 1);
        Failure::message(format!("Expected {expected} but found {found} at character {position}"))
    }
}

/// A table that is being filled.
enum Open {
    Array { table: Table, index: i64 },
    Object { table: Table, key: LuaString },
}

struct Decoder<'a> {
    settings: &'a Settings,
    lua: &'a Lua,
    text: &'a [u8],
    at: usize,
    string: Vec<u8>,
    open: Vec<Open>,
    /// Values kept by open tables.
    slots: usize,
}

impl Decoder<'_> {
    fn decode(&mut self) -> Result<Value, Failure> {
        let mut found = self.token()?;
        loop {
            // A value begins with `found`. A table that is not empty is opened and its first value begins.
            let mut value = match found.token {
                Token::String => Value::String(self.lua.create_string(&self.string)?),
                Token::Number(number) => Value::Number(number),
                Token::Boolean(boolean) => Value::Boolean(boolean),
                Token::Null => Value::NULL,
                Token::ObjectBegin => {
                    self.check_depth(3)?;
                    let table = self.lua.create_table()?;
                    let first = self.token()?;
                    if !matches!(first.token, Token::ObjectEnd) {
                        let key = self.key(first)?;
                        self.open.push(Open::Object { table, key });
                        self.slots += 2;
                        found = self.token()?;
                        continue;
                    }
                    Value::Table(table)
                }
                Token::ArrayBegin => {
                    self.check_depth(2)?;
                    let table = self.lua.create_table()?;
                    let first = self.token()?;
                    if !matches!(first.token, Token::ArrayEnd) {
                        self.open.push(Open::Array { table, index: 1 });
                        self.slots += 1;
                        found = first;
                        continue;
                    }
                    Value::Table(table)
                }
                _ => return Err(found.unexpected("value")),
            };
            // It goes into the innermost table; one that ends then is a value itself.
            found = loop {
                let Some(open) = self.open.pop() else {
                    let end = self.token()?;
                    let is_end = matches!(end.token, Token::End);
                    return if is_end { Ok(value) } else { Err(end.unexpected("the end")) };
                };
                let following = self.token()?;
                match open {
                    Open::Array { table, index } => {
                        table.raw_set(index, value)?;
                        match following.token {
                            Token::Comma => {
                                self.open.push(Open::Array { table, index: index + 1 });
                                break self.token()?;
                            }
                            Token::ArrayEnd => value = Value::Table(table),
                            _ => return Err(following.unexpected("comma or array end")),
                        }
                        self.slots -= 1;
                    }
                    Open::Object { table, key } => {
                        table.raw_set(key, value)?;
                        match following.token {
                            Token::Comma => {
                                let key = self.token()?;
                                let key = self.key(key)?;
                                self.open.push(Open::Object { table, key });
                                break self.token()?;
                            }
                            Token::ObjectEnd => value = Value::Table(table),
                            _ => return Err(following.unexpected("comma or object end")),
                        }
                        self.slots -= 2;
                    }
                }
            };
        }
    }

    /// Makes sure that one more table may be opened, which keeps up to `slots` values.
    fn check_depth(&self, slots: usize) -> Result<(), Failure> {
        let depth = self.open.len() + 1;
        if depth <= self.settings.decode_depth_max.get() as usize && self.slots + slots <= SLOTS_MAX {
            return Ok(());
        }
        let at = self.at;
        Err(Failure::message(format!("Found too many nested data structures ({depth}) at character {at}")))
    }

    /// A key, which begins with `found`, and the colon behind it.
    fn key(&mut self, found: Found) -> Result<LuaString, Failure> {
        if !matches!(found.token, Token::String) {
            return Err(found.unexpected("object key string"));
        }
        let key = self.lua.create_string(&self.string)?;
        let colon = self.token()?;
        if matches!(colon.token, Token::Colon) { Ok(key) } else { Err(colon.unexpected("colon")) }
    }

    /// A byte of the text, zero behind its end. A zero in it is an end as well.
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn token(&mut self) -> Result<Found, Failure> {
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        let at = self.at;
        let rest = self.text.get(at..).unwrap_or_default();
        let (token, len) = match self.byte(at) {
            b'{' => (Token::ObjectBegin, 1),
            b'}' => (Token::ObjectEnd, 1),
            b'[' => (Token::ArrayBegin, 1),
            b']' => (Token::ArrayEnd, 1),
            b',' => (Token::Comma, 1),
            b':' => (Token::Colon, 1),
            0 => (Token::End, 0),
            b'"' => return Ok(self.string_token()),
            b'-' | b'0'..=b'9' => {
                if !self.settings.decode_invalid.get() && is_no_json_number(rest) {
                    (Token::Error("invalid number"), 0)
                } else {
                    self.number_token(rest)?
                }
            }
            b't' if rest.starts_with(b"true") => (Token::Boolean(true), 4),
            b'f' if rest.starts_with(b"false") => (Token::Boolean(false), 5),
            b'n' if rest.starts_with(b"null") => (Token::Null, 4),
            b'f' | b'i' | b'I' | b'n' | b'N' | b't' | b'+'
                if self.settings.decode_invalid.get() && is_no_json_number(rest) =>
            {
                self.number_token(rest)?
            }
            _ => (Token::Error("invalid token"), 0),
        };
        self.at += len;
        Ok(Found { token, at })
    }

    fn number_token(&self, rest: &[u8]) -> Result<(Token, usize), Failure> {
        Ok(match read_number(self.lua, rest)? {
            (_, 0) => (Token::Error("invalid number"), 0),
            (number, len) => (Token::Number(number), len),
        })
    }

    fn string_token(&mut self) -> Found {
        let begin = self.at;
        self.at += 1;
        self.string.clear();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0)).unwrap_or(rest.len());
            self.string.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match self.byte(self.at) {
                b'"' => {
                    self.at += 1;
                    return Found { token: Token::String, at: begin };
                }
                b'\\' => {
                    if let Err(text) = self.escape() {
                        return Found { token: Token::Error(text), at: self.at };
                    }
                }
                _ => return Found { token: Token::Error("unexpected end of string"), at: self.at },
            }
        }
    }

    /// Takes an escape sequence. At an error the place stays in front of it.
    fn escape(&mut self) -> Result<(), &'static str> {
        let byte = match self.byte(self.at + 1) {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'f' => 0x0c,
            b'r' => b'\r',
            b'u' => {
                let (character, len) = self.unicode(self.at).ok_or("invalid unicode escape code")?;
                self.string.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                self.at += len;
                return Ok(());
            }
            _ => return Err("invalid escape code"),
        };
        self.string.push(byte);
        self.at += 2;
        Ok(())
    }

    /// The character that `\uXXXX`, or a pair of them, stands for, and the length of the sequence.
    fn unicode(&self, at: usize) -> Option<(char, usize)> {
        let unit = self.hex(at + 2)?;
        if unit & 0xf800 != 0xd800 {
            return Some((char::from_u32(unit)?, 6));
        }
        if unit & 0x400 != 0 || self.byte(at + 6) != b'\\' || self.byte(at + 7) != b'u' {
            return None;
        }
        let low = self.hex(at + 8).filter(|low| low & 0xfc00 == 0xdc00)?;
        let character = 0x1_0000 + ((unit & 0x3ff) << 10 | low & 0x3ff);
        Some((char::from_u32(character)?, 12))
    }

    fn hex(&self, at: usize) -> Option<u32> {
        (at..at + 4).try_fold(0, |value, at| Some(value << 4 | char::from(self.byte(at)).to_digit(16)?))
    }
}

/// Whether `strtod` might read a number here that JSON does not have.
fn is_no_json_number(rest: &[u8]) -> bool {
    let unsigned = match rest {
        [b'+', ..] => return true,
        [b'-', unsigned @ ..] => unsigned,
        unsigned => unsigned,
    };
    match unsigned {
        [b'0', b'x' | b'X' | b'0'..=b'9', ..] => true,
        [b'0'..=b'9', ..] => false,
        [a, b, c, ..] => {
            let word = [*a, *b, *c];
            word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
        }
        _ => false,
    }
}
