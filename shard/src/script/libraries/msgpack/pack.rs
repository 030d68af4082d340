//! Values into MessagePack.

use mlua::{Lua, LuaString, Table, Value};

use super::super::call::{Arguments, Failure};
use super::super::number::{to_int, to_long};
use super::super::output::Output;

/// Tables nested deeper than this are packed as nil.
const NESTING_MAX: usize = 16;

/// Packs each argument, one behind the other.
pub fn pack(lua: &Lua, arguments: &Arguments<'_>) -> Result<LuaString, Failure> {
    if arguments.count() == 0 {
        return Err(Failure::argument(0, "MessagePack pack needs input."));
    }
    let mut out = Output::new(lua);
    for position in 1..=arguments.count() {
        pack_value(&arguments.value(position), 0, &mut out)?;
    }
    Ok(out.finish()?)
}

fn pack_value(value: &Value, level: usize, out: &mut Output<'_>) -> Result<(), Failure> {
    match value {
        Value::String(string) => {
            let bytes = string.as_bytes();
            pack_length(out, bytes.len(), Some((0xa0, 31)), [Some(0xd9), Some(0xda), Some(0xdb)])?;
            out.extend(&bytes)
        }
        Value::Boolean(boolean) => out.push(if *boolean { 0xc3 } else { 0xc2 }),
        Value::Integer(integer) => pack_integer(*integer, out),
        Value::Number(number) => pack_number(*number, out),
        Value::Table(table) if level < NESTING_MAX => pack_table(table, level, out),
        _ => out.push(0xc0),
    }
}

/// A number that is an integer is packed as one.
fn pack_number(number: f64, out: &mut Output<'_>) -> Result<(), Failure> {
    let integer = to_long(number);
    if integer as f64 == number {
        return pack_integer(integer, out);
    }
    let single = number as f32;
    if f64::from(single) == number {
        out.push(0xca)?;
        out.extend(&single.to_be_bytes())
    } else {
        out.push(0xcb)?;
        out.extend(&number.to_be_bytes())
    }
}

/// An integer takes the fewest bytes it fits, and no sign if it needs none.
fn pack_integer(integer: i64, out: &mut Output<'_>) -> Result<(), Failure> {
    let bytes = integer.to_be_bytes();
    let (marker, size) = match integer {
        -32..=0x7f => return out.push(integer as u8),
        0x80..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..=-33 => (0xd0, 1),
        -0x8000..=-0x81 => (0xd1, 2),
        -0x8000_0000..=-0x8001 => (0xd2, 4),
        _ => (0xd3, 8),
    };
    out.push(marker)?;
    out.extend(&bytes[8 - size..])
}

/// A length in front of what it counts. `short` is the marker that holds lengths up to the one named with it;
/// `markers` are those with lengths of one, two and four bytes.
fn pack_length(
    out: &mut Output<'_>,
    length: usize,
    short: Option<(u8, usize)>,
    markers: [Option<u8>; 3],
) -> Result<(), Failure> {
    if let Some((marker, _)) = short.filter(|&(_, longest)| length <= longest) {
        return out.push(marker | length as u8);
    }
    // A longer value does not fit in the memory of an interpreter.
    let bytes = u32::try_from(length).map_err(|_| Failure::memory())?.to_be_bytes();
    let fitting = [(1, 0xff), (2, 0xffff), (4, usize::MAX)];
    for (marker, (size, longest)) in markers.into_iter().zip(fitting) {
        if let Some(marker) = marker.filter(|_| length <= longest) {
            out.push(marker)?;
            return out.extend(&bytes[4 - size..]);
        }
    }
    Ok(())
}

fn pack_table(table: &Table, level: usize, out: &mut Output<'_>) -> Result<(), Failure> {
    if let Some(length) = array_length(table)? {
        pack_length(out, length, Some((0x90, 15)), [None, Some(0xdc), Some(0xdd)])?;
        for index in 1..=length {
            pack_value(&table.raw_get(index)?, level + 1, out)?;
        }
        return Ok(());
    }
    let mut length = 0;
    for pair in table.pairs::<Value, Value>() {
        pair?;
        length += 1;
    }
    pack_length(out, length, Some((0x80, 15)), [None, Some(0xde), Some(0xdf)])?;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        pack_value(&key, level + 1, out)?;
        pack_value(&value, level + 1, out)?;
    }
    Ok(())
}

/// How many values a table has, if their keys are the integers from 1 on, without a hole. An empty table is an array.
fn array_length(table: &Table) -> Result<Option<usize>, Failure> {
    let (mut count, mut largest) = (0, 0);
    for pair in table.pairs::<Value, Value>() {
        let key = match pair?.0 {
            Value::Integer(integer) => integer as f64,
            Value::Number(number) => number,
            _ => return Ok(None),
        };
        if key <= 0.0 || f64::from(to_int(key)) != key {
            return Ok(None);
        }
        largest = to_int(key).max(largest);
        count += 1;
    }
    Ok((largest == count).then_some(count as usize))
}
