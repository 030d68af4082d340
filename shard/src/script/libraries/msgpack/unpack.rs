//! Values out of MessagePack.

use mlua::{Lua, MultiValue, Table, Value};

use super::super::SLOTS_MAX;
use super::super::call::{Arguments, Failure};

/// Unpacks all values.
pub fn unpack(lua: &Lua, arguments: &Arguments<'_>) -> Result<MultiValue, Failure> {
    unpack_some(lua, arguments, 0, 0)
}

/// Unpacks one value from an offset on, and returns the offset behind it first.
pub fn unpack_one(lua: &Lua, arguments: &Arguments<'_>) -> Result<MultiValue, Failure> {
    let offset = arguments.integer_or(2, 0)?;
    unpack_some(lua, arguments, 1, offset)
}

/// Unpacks at most a number of values from an offset on, and returns the offset behind them first.
pub fn unpack_limit(lua: &Lua, arguments: &Arguments<'_>) -> Result<MultiValue, Failure> {
    let limit = arguments.integer(2)?;
    let offset = arguments.integer_or(3, 0)?;
    unpack_some(lua, arguments, limit, offset)
}

/// Without limit and offset all values are unpacked, and no offset is returned.
fn unpack_some(lua: &Lua, arguments: &Arguments<'_>, limit: i64, offset: i64) -> Result<MultiValue, Failure> {
    let input = arguments.string(1)?;
    let input = input.as_bytes();
    // The messages give numbers as C's `int`.
    let as_int = |number: i64| number as i32;
    let length = as_int(input.len() as i64);
    if offset < 0 || limit < 0 {
        let offset = as_int(offset);
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {length}.");
        return Err(Failure::message(text));
    }
    let rest = usize::try_from(offset).ok().and_then(|offset| input.get(offset..));
    let rest = rest.ok_or_else(|| {
        let offset = as_int(offset);
        Failure::message(format!("Start offset {offset} greater than input length {length}."))
    })?;
    let all = limit == 0 && offset == 0;
    let limit = if all { i64::MAX } else { limit };
    let mut unpacker = Unpacker { lua, rest, open: Vec::new(), slots: 1 };
    let mut results = Vec::new();
    while !unpacker.rest.is_empty() && (results.len() as i64) < limit {
        results.push(unpacker.value()?);
        unpacker.slots += 1;
    }
    if !all {
        let next = input.len() - unpacker.rest.len();
        results.insert(0, Value::Integer(if unpacker.rest.is_empty() { -1 } else { next as i64 }));
    }
    Ok(MultiValue::from_vec(results))
}

/// A table that is being filled.
struct Open {
    table: Table,
    content: Content,
    /// Values, or pairs, that are still to come.
    left: u32,
}

enum Content {
    Array { index: i64 },
    Map { key: Option<Value> },
}

/// What a value begins with: a whole scalar, or the head of a table.
enum Start {
    Scalar(Value),
    Array(u32),
    Map(u32),
}

struct Unpacker<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
    open: Vec<Open>,
    /// Values kept at the moment: results and what stands for open tables.
    slots: usize,
}

impl<'a> Unpacker<'a> {
    /// Unpacks one value with all that is in it.
    fn value(&mut self) -> Result<Value, Failure> {
        loop {
            let mut value = match self.start()? {
                Start::Scalar(value) => value,
                Start::Array(0) | Start::Map(0) => Value::Table(self.lua.create_table()?),
                Start::Array(left) => {
                    self.open(Content::Array { index: 1 }, left)?;
                    continue;
                }
                Start::Map(left) => {
                    self.open(Content::Map { key: None }, left)?;
                    continue;
                }
            };
            // The value goes into the innermost table; one that is full then is a value itself.
            loop {
                let Some(open) = self.open.last_mut() else { return Ok(value) };
                if !open.put(value)? {
                    break;
                }
                let Some(full) = self.open.pop() else { break };
                self.slots -= 2;
                value = Value::Table(full.table);
            }
        }
    }

    fn open(&mut self, content: Content, left: u32) -> Result<(), Failure> {
        self.slots += 2;
        let table = self.lua.create_table()?;
        self.open.push(Open { table, content, left });
        Ok(())
    }

    fn start(&mut self) -> Result<Start, Failure> {
        if self.slots >= SLOTS_MAX {
            let what = "too many return values at once; use unpack_one or unpack_limit instead.";
            return Err(Failure::stack(what));
        }
        let marker = self.integer::<1>()? as u8;
        let value = match marker {
            0x00..=0x7f => Value::Integer(i64::from(marker)),
            0xe0..=0xff => Value::Integer(i64::from(marker as i8)),
            0xcc => Value::Integer(self.integer::<1>()? as i64),
            0xcd => Value::Integer(self.integer::<2>()? as i64),
            0xce => Value::Integer(self.integer::<4>()? as i64),
            // What is too large for a signed integer comes out as a negative one.
            0xcf | 0xd3 => Value::Integer(self.integer::<8>()? as i64),
            0xd0 => Value::Integer(i64::from(self.integer::<1>()? as i8)),
            0xd1 => Value::Integer(i64::from(self.integer::<2>()? as i16)),
            0xd2 => Value::Integer(i64::from(self.integer::<4>()? as i32)),
            0xca => Value::Number(f64::from(f32::from_bits(self.integer::<4>()? as u32))),
            0xcb => Value::Number(f64::from_bits(self.integer::<8>()?)),
            0xc0 => Value::Nil,
            0xc2 => Value::Boolean(false),
            0xc3 => Value::Boolean(true),
            0xa0..=0xbf => self.string_of(u64::from(marker & 0x1f))?,
            0xd9 => self.string::<1>()?,
            0xda => self.string::<2>()?,
            0xdb => self.string::<4>()?,
            0x90..=0x9f => return Ok(Start::Array(u32::from(marker & 0xf))),
            0xdc => return Ok(Start::Array(self.integer::<2>()? as u32)),
            0xdd => return Ok(Start::Array(self.integer::<4>()? as u32)),
            0x80..=0x8f => return Ok(Start::Map(u32::from(marker & 0xf))),
            0xde => return Ok(Start::Map(self.integer::<2>()? as u32)),
            0xdf => return Ok(Start::Map(self.integer::<4>()? as u32)),
            _ => return Err(Failure::message("Bad data format in input.")),
        };
        Ok(Start::Scalar(value))
    }

    /// An unsigned integer of `N` bytes, the most significant first.
    fn integer<const N: usize>(&mut self) -> Result<u64, Failure> {
        let bytes = self.bytes(N)?;
        Ok(bytes.iter().fold(0, |value, &byte| (value << 8) | u64::from(byte)))
    }

    /// A string behind its length, which takes `N` bytes.
    fn string<const N: usize>(&mut self) -> Result<Value, Failure> {
        let length = self.integer::<N>()?;
        self.string_of(length)
    }

    fn string_of(&mut self, length: u64) -> Result<Value, Failure> {
        let length = usize::try_from(length).map_err(|_| missing_bytes())?;
        let bytes = self.bytes(length)?;
        Ok(Value::String(self.lua.create_string(bytes)?))
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Failure> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(missing_bytes)?;
        self.rest = rest;
        Ok(bytes)
    }
}

fn missing_bytes() -> Failure {
    Failure::message("Missing bytes in input.")
}

impl Open {
    /// Puts the next value, or half of a pair, into the table. True if the table is full.
    fn put(&mut self, value: Value) -> Result<bool, Failure> {
        match &mut self.content {
            Content::Array { index } => {
                self.table.raw_set(*index, value)?;
                *index += 1;
            }
            Content::Map { key: key @ None } => {
                *key = Some(value);
                return Ok(false);
            }
            Content::Map { key } => match key.take() {
                None | Some(Value::Nil) => return Err(Failure::Core("table index is nil")),
                Some(Value::Number(number)) if number.is_nan() => return Err(Failure::Core("table index is NaN")),
                Some(key) => self.table.raw_set(key, value)?,
            },
        }
        self.left -= 1;
        Ok(self.left == 0)
    }
}
