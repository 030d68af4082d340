//! `bit`: operations on 32-bit integers, as Lua BitOp has them.

use mlua::{Lua, Table};

use super::call::{Arguments, Failure, function};

type Unary = fn(u32) -> u32;
type Binary = fn(u32, u32) -> u32;

const UNARY: [(&str, Unary); 3] = [("tobit", |bits| bits), ("bnot", |bits| !bits), ("bswap", u32::swap_bytes)];

const FOLDING: [(&str, Binary); 3] =
    [("band", |left, right| left & right), ("bor", |left, right| left | right), ("bxor", |left, right| left ^ right)];

const SHIFTS: [(&str, Binary); 5] = [
    ("lshift", |bits, by| bits << by),
    ("rshift", |bits, by| bits >> by),
    ("arshift", |bits, by| (bits as i32 >> by) as u32),
    ("rol", u32::rotate_left),
    ("ror", u32::rotate_right),
];

pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    for (name, operation) in UNARY {
        library.raw_set(name, function(lua, move |_, arguments| Ok(signed(operation(bits(arguments, 1)?))))?)?;
    }
    for (name, operation) in FOLDING {
        library.raw_set(name, function(lua, move |_, arguments| fold(arguments, operation))?)?;
    }
    for (name, operation) in SHIFTS {
        // Of the second argument the low five bits count.
        let shift = move |_: &Lua, arguments: &Arguments<'_>| {
            Ok(signed(operation(bits(arguments, 1)?, bits(arguments, 2)? & 31)))
        };
        library.raw_set(name, function(lua, shift)?)?;
    }
    library.raw_set("tohex", function(lua, |_, arguments| hexadecimal(arguments))?)?;
    Ok(library)
}

/// An argument as bits: a number modulo 2^32, rounded to the nearest integer, halves to the even one.
fn bits(arguments: &Arguments<'_>, position: usize) -> Result<u32, Failure> {
    /// Added to a number below 2^51 it leaves the integer in the low bits of the significand.
    const INTEGER_SHIFT: f64 = 6_755_399_441_055_744.0;
    let number = arguments.as_number(position)?;
    let number = number.ok_or_else(|| arguments.wrong_type(position, "number"))?;
    Ok((number + INTEGER_SHIFT).to_bits() as u32)
}

fn signed(bits: u32) -> i64 {
    i64::from(bits as i32)
}

/// Arguments are looked at from the last to the first, so that it is the last wrong one an error names.
fn fold(arguments: &Arguments<'_>, operation: Binary) -> Result<i64, Failure> {
    let mut result = bits(arguments, 1)?;
    for position in (2..=arguments.count()).rev() {
        result = operation(result, bits(arguments, position)?);
    }
    Ok(signed(result))
}

fn hexadecimal(arguments: &Arguments<'_>) -> Result<String, Failure> {
    let value = bits(arguments, 1)?;
    let digits = if arguments.count() < 2 { 8 } else { bits(arguments, 2)? as i32 };
    let text = if digits < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    let shown = digits.unsigned_abs().min(8) as usize;
    Ok(text[8 - shown..].to_owned())
}
