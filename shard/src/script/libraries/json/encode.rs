//! Values into JSON. The walk keeps a stack of its own, so that nesting takes none of the thread's.

use mlua::{Function, Lua, LuaString, Table, Value};

use super::super::SLOTS_MAX;
use super::super::call::{Arguments, Failure, type_name};
use super::super::number::{to_int, write_general};
use super::super::output::Output;
use super::settings::{InvalidNumbers, Settings};

/// The longest form of a number in bytes, with room to spare.
const NUMBER_BYTES_MAX: usize = 32;

pub fn encode(
    settings: &Settings,
    next: &Function,
    lua: &Lua,
    arguments: &Arguments<'_>,
) -> Result<LuaString, Failure> {
    if arguments.count() != 1 {
        return Err(Failure::argument(1, "expected 1 argument"));
    }
    let mut encoder = Encoder { settings, next, out: Output::new(lua), open: Vec::new(), slots: 1 };
    encoder.encode(arguments.value(1))?;
    Ok(encoder.out.finish()?)
}

/// A table that is being written, and how far it is.
enum Open {
    Array { table: Table, index: i64, length: i64 },
    Object { table: Table, key: Value },
}

impl Open {
    /// Values it keeps.
    fn slots(&self) -> usize {
        match self {
            Open::Array { .. } => 1,
            Open::Object { .. } => 2,
        }
    }
}

struct Encoder<'a> {
    settings: &'a Settings,
    next: &'a Function,
    out: Output<'a>,
    open: Vec<Open>,
    /// Values kept by open tables.
    slots: usize,
}

impl Encoder<'_> {
    fn encode(&mut self, value: Value) -> Result<(), Failure> {
        let mut value = Some(value);
        loop {
            if let Some(value) = value {
                self.start(value)?;
            }
            if self.open.is_empty() {
                return Ok(());
            }
            value = self.advance()?;
        }
    }

    /// Writes a value, of a table its beginning.
    fn start(&mut self, value: Value) -> Result<(), Failure> {
        match value {
            Value::String(string) => self.string(&string),
            Value::Integer(integer) => self.number(integer as f64),
            Value::Number(number) => self.number(number),
            Value::Boolean(true) => self.out.extend(b"true"),
            Value::Boolean(false) => self.out.extend(b"false"),
            Value::Nil => self.out.extend(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => self.out.extend(b"null"),
            Value::Table(table) => self.table(table),
            other => Err(refused(&other, "type not supported")),
        }
    }

    fn table(&mut self, table: Table) -> Result<(), Failure> {
        let depth = self.open.len() + 1;
        if depth > self.settings.encode_depth_max.get() as usize || self.slots + 3 > SLOTS_MAX {
            return Err(Failure::message(format!("Cannot serialise, excessive nesting ({depth})")));
        }
        let length = self.array_length(&table)?;
        let open = if length > 0 {
            self.out.push(b'[')?;
            Open::Array { table, index: 0, length: i64::from(length) }
        } else {
            self.out.push(b'{')?;
            Open::Object { table, key: Value::Nil }
        };
        self.slots += open.slots();
        self.open.push(open);
        Ok(())
    }

    /// Goes to the next value of the innermost table and writes what stands before it; at its end closes the table and
    /// returns none.
    fn advance(&mut self) -> Result<Option<Value>, Failure> {
        let Some(open) = self.open.last_mut() else { return Ok(None) };
        let end = match open {
            Open::Array { table, index, length } if *index < *length => {
                if *index > 0 {
                    self.out.push(b',')?;
                }
                *index += 1;
                return Ok(Some(table.raw_get(*index)?));
            }
            Open::Array { .. } => b']',
            Open::Object { table, key } => {
                let is_first = key.is_nil();
                let (following, value): (Value, Value) = self.next.call((&*table, &*key))?;
                if !following.is_nil() {
                    *key = following.clone();
                    if !is_first {
                        self.out.push(b',')?;
                    }
                    self.key(following)?;
                    return Ok(Some(value));
                }
                b'}'
            }
        };
        self.out.push(end)?;
        if let Some(closed) = self.open.pop() {
            self.slots -= closed.slots();
        }
        Ok(None)
    }

    fn key(&mut self, key: Value) -> Result<(), Failure> {
        let number = match key {
            Value::String(string) => {
                self.string(&string)?;
                return self.out.push(b':');
            }
            Value::Integer(integer) => integer as f64,
            Value::Number(number) => number,
            other => return Err(refused(&other, "table key must be a number or string")),
        };
        self.out.push(b'"')?;
        self.number(number)?;
        self.out.extend(b"\":")
    }

    fn number(&mut self, number: f64) -> Result<(), Failure> {
        if !number.is_finite() {
            match self.settings.invalid_numbers.get() {
                InvalidNumbers::Refused => {
                    return Err(refused(&Value::Number(number), "must not be NaN or Inf"));
                }
                InvalidNumbers::Written if number.is_nan() => return self.out.extend(b"nan"),
                InvalidNumbers::Written => {}
                InvalidNumbers::Null => return self.out.extend(b"null"),
            }
        }
        let precision = self.settings.number_precision.get() as usize;
        write_general(number, precision, self.out.room_for(NUMBER_BYTES_MAX)?);
        Ok(())
    }

    fn string(&mut self, string: &LuaString) -> Result<(), Failure> {
        let bytes = string.as_bytes();
        self.out.push(b'"')?;
        let mut rest: &[u8] = &bytes;
        while let Some(plain) = rest.iter().position(|&byte| is_escaped(byte)) {
            self.out.extend(&rest[..plain])?;
            let byte = rest[plain];
            let short = match byte {
                0x08 => b'b',
                b'\t' => b't',
                b'\n' => b'n',
                0x0c => b'f',
                b'\r' => b'r',
                b'"' | b'/' | b'\\' => byte,
                _ => 0,
            };
            if short == 0 {
                self.out.extend(format!("\\u{byte:04x}").as_bytes())?;
            } else {
                self.out.extend(&[b'\\', short])?;
            }
            rest = &rest[plain + 1..];
        }
        self.out.extend(rest)?;
        self.out.push(b'"')
    }

    /// How long the array is that a table is written as. Zero or less: it is written as an object.
    fn array_length(&self, table: &Table) -> Result<i32, Failure> {
        let (mut largest, mut count): (i32, i32) = (0, 0);
        for pair in table.pairs::<Value, Value>() {
            let key = match pair?.0 {
                Value::Integer(integer) => integer as f64,
                Value::Number(number) => number,
                _ => return Ok(-1),
            };
            if key < 1.0 || key.floor() != key {
                return Ok(-1);
            }
            // An index beyond the range of an `int` makes an object of it.
            if key > f64::from(largest) {
                largest = to_int(key);
            }
            count = count.wrapping_add(1);
        }
        let settings = self.settings;
        let ratio = settings.sparse_ratio.get();
        if ratio > 0 && largest > count.wrapping_mul(ratio) && largest > settings.sparse_safe.get() {
            if !settings.sparse_as_objects.get() {
                return Err(Failure::message("Cannot serialise table: excessively sparse array"));
            }
            return Ok(-1);
        }
        Ok(largest)
    }
}

fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || matches!(byte, b'"' | b'\\' | b'/' | 0x7f)
}

fn refused(value: &Value, reason: &str) -> Failure {
    Failure::message(format!("Cannot serialise {}: {reason}", type_name(value)))
}
