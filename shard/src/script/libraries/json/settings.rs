//! What scripts can set for a `cjson` module.

use std::cell::Cell;

use mlua::{Lua, MultiValue, Value};

use super::super::call::{Arguments, Failure};

pub type Outcome = Result<MultiValue, Failure>;

/// What becomes of infinities and NaN when they are encoded.
#[derive(Clone, Copy, PartialEq)]
pub enum InvalidNumbers {
    Refused,
    Written,
    Null,
}

/// The settings of a module, as its functions change them.
pub struct Settings {
    /// Whether arrays with too many holes are written as objects; otherwise they are refused.
    pub sparse_as_objects: Cell<bool>,
    /// An array has too many holes when its largest index is more than this many times its number of values; 0 for
    /// never.
    pub sparse_ratio: Cell<i32>,
    /// Up to this index an array may have any holes.
    pub sparse_safe: Cell<i32>,
    /// Levels of nesting.
    pub encode_depth_max: Cell<i32>,
    /// Levels of nesting.
    pub decode_depth_max: Cell<i32>,
    /// Significant digits.
    pub number_precision: Cell<i32>,
    /// Whether `encode` would keep its buffer for the next call. There is none to keep; the setting only remembers.
    keep_buffer: Cell<bool>,
    pub invalid_numbers: Cell<InvalidNumbers>,
    /// Whether forms of `strtod` that are no JSON can be decoded.
    pub decode_invalid: Cell<bool>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            sparse_as_objects: Cell::new(false),
            sparse_ratio: Cell::new(2),
            sparse_safe: Cell::new(10),
            encode_depth_max: Cell::new(1000),
            decode_depth_max: Cell::new(1000),
            number_precision: Cell::new(14),
            keep_buffer: Cell::new(true),
            invalid_numbers: Cell::new(InvalidNumbers::Refused),
            decode_invalid: Cell::new(true),
        }
    }
}

impl Settings {
    pub fn encode_sparse_array(&self, _: &Lua, arguments: &Arguments<'_>) -> Outcome {
        at_most(arguments, 3)?;
        let as_objects = switch(arguments, &self.sparse_as_objects)?;
        let ratio = integer(arguments, 2, &self.sparse_ratio, 0, i32::MAX)?;
        let safe = integer(arguments, 3, &self.sparse_safe, 0, i32::MAX)?;
        Ok([as_objects, ratio, safe].into_iter().collect())
    }

    pub fn encode_max_depth(&self, _: &Lua, arguments: &Arguments<'_>) -> Outcome {
        at_most(arguments, 1)?;
        one(integer(arguments, 1, &self.encode_depth_max, 1, i32::MAX)?)
    }

    pub fn decode_max_depth(&self, _: &Lua, arguments: &Arguments<'_>) -> Outcome {
        at_most(arguments, 1)?;
        one(integer(arguments, 1, &self.decode_depth_max, 1, i32::MAX)?)
    }

    pub fn encode_number_precision(&self, _: &Lua, arguments: &Arguments<'_>) -> Outcome {
        at_most(arguments, 1)?;
        one(integer(arguments, 1, &self.number_precision, 1, 14)?)
    }

    pub fn encode_keep_buffer(&self, _: &Lua, arguments: &Arguments<'_>) -> Outcome {
        at_most(arguments, 1)?;
        one(switch(arguments, &self.keep_buffer)?)
    }

    pub fn encode_invalid_numbers(&self, lua: &Lua, arguments: &Arguments<'_>) -> Outcome {
        at_most(arguments, 1)?;
        if let Some(choice) = choice(arguments, &["off", "on", "null"])? {
            self.invalid_numbers.set(match choice {
                0 => InvalidNumbers::Refused,
                1 => InvalidNumbers::Written,
                _ => InvalidNumbers::Null,
            });
        }
        one(match self.invalid_numbers.get() {
            InvalidNumbers::Refused => Value::Boolean(false),
            InvalidNumbers::Written => Value::Boolean(true),
            InvalidNumbers::Null => Value::String(lua.create_string("null")?),
        })
    }

    pub fn decode_invalid_numbers(&self, _: &Lua, arguments: &Arguments<'_>) -> Outcome {
        at_most(arguments, 1)?;
        one(switch(arguments, &self.decode_invalid)?)
    }
}

fn one(value: Value) -> Outcome {
    Ok([value].into_iter().collect())
}

fn at_most(arguments: &Arguments<'_>, count: usize) -> Result<(), Failure> {
    if arguments.count() <= count {
        return Ok(());
    }
    Err(Failure::argument(count + 1, "found too many arguments"))
}

/// Sets a number from an argument, if there is one, and returns what is set.
fn integer(
    arguments: &Arguments<'_>,
    position: usize,
    setting: &Cell<i32>,
    smallest: i32,
    largest: i32,
) -> Result<Value, Failure> {
    if !arguments.is_nil(position) {
        let value = arguments.integer(position)? as i32;
        if !(smallest..=largest).contains(&value) {
            // It names the first argument whichever it is.
            let text = format!("expected integer between {smallest} and {largest}");
            return Err(Failure::argument(1, text));
        }
        setting.set(value);
    }
    Ok(Value::Integer(i64::from(setting.get())))
}

/// Sets a switch from the first argument, if there is one, and returns what is set.
fn switch(arguments: &Arguments<'_>, setting: &Cell<bool>) -> Result<Value, Failure> {
    if let Some(choice) = choice(arguments, &["off", "on"])? {
        setting.set(choice == 1);
    }
    Ok(Value::Boolean(setting.get()))
}

/// The first argument as one of `options`, by its place; booleans stand for the first two.
fn choice(arguments: &Arguments<'_>, options: &[&str]) -> Result<Option<usize>, Failure> {
    match arguments.value(1) {
        Value::Nil => Ok(None),
        Value::Boolean(on) => Ok(Some(usize::from(on))),
        _ => {
            let given = arguments.string(1)?;
            let given = given.as_bytes();
            let given = given.split(|&byte| byte == 0).next().unwrap_or_default();
            let place = options.iter().position(|option| option.as_bytes() == given);
            let unknown = || Failure::argument(1, [b"invalid option '".as_slice(), given, b"'"].concat());
            place.map(Some).ok_or_else(unknown)
        }
    }
}
