//! `struct`: values packed as C lays them out, by a format string.

use mlua::{Lua, LuaString, MultiValue, Table, Value};

use super::SLOTS_MAX;
use super::call::{Arguments, Failure, function};
use super::number::to_unsigned_long;
use super::output::Output;

/// The widest integer in bytes that a format can ask for.
const INTEGER_BYTES_MAX: usize = 32;

/// The alignment of `!` alone.
const NATIVE_ALIGNMENT: usize = 8;

pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    library.raw_set("pack", function(lua, pack)?)?;
    library.raw_set("unpack", function(lua, unpack)?)?;
    library.raw_set("size", function(lua, size)?)?;
    Ok(library)
}

#[derive(Clone, Copy, PartialEq)]
enum Endian {
    Big,
    Little,
}

/// A format being read, with the byte order and the greatest alignment in force.
struct Format<'a> {
    text: &'a [u8],
    endian: Endian,
    alignment: usize,
}

impl<'a> Format<'a> {
    /// The format ends at its first zero byte, as a string of C does.
    fn new(text: &'a [u8]) -> Format<'a> {
        let len = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        Format { text: &text[..len], endian: Endian::Little, alignment: 1 }
    }

    /// The next option and the size it has in bytes. Options without a fixed size have none.
    fn next(&mut self) -> Result<Option<(u8, usize)>, Failure> {
        let Some((&option, rest)) = self.text.split_first() else { return Ok(None) };
        self.text = rest;
        let size = match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'f' => 4,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > INTEGER_BYTES_MAX {
                    let text = format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
                    return Err(Failure::message(text));
                }
                size
            }
            _ => 0,
        };
        Ok(Some((option, size)))
    }

    fn number(&mut self, default: usize) -> Result<usize, Failure> {
        let digits = self.text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(default);
        }
        let (number, rest) = self.text.split_at(digits);
        self.text = rest;
        let number =
            number.iter().try_fold(0i32, |number, &digit| number.checked_mul(10)?.checked_add(i32::from(digit - b'0')));
        number.map(|number| number as usize).ok_or_else(|| Failure::message("integral size overflow"))
    }

    /// How many bytes to leave out before `option`.
    fn padding(&self, position: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let size = size.min(self.alignment);
        (size - (position & (size - 1))) & (size - 1)
    }

    /// Takes an option that is no value but says how those behind it are to be read.
    fn control(&mut self, option: u8) -> Result<(), Failure> {
        match option {
            b' ' => {}
            b'>' => self.endian = Endian::Big,
            b'<' => self.endian = Endian::Little,
            b'!' => {
                let alignment = self.number(NATIVE_ALIGNMENT)?;
                if !alignment.is_power_of_two() {
                    return Err(Failure::message(format!("alignment {alignment} is not a power of 2")));
                }
                self.alignment = alignment;
            }
            _ => return Err(Failure::argument(1, [b"invalid format option '".as_slice(), &[option], b"'"].concat())),
        }
        Ok(())
    }

    /// Bytes of a number with the least first, in the order in force; and back.
    fn ordered(&self, bytes: &mut [u8]) {
        if self.endian == Endian::Big {
            bytes.reverse();
        }
    }
}

fn is_integer(option: u8) -> bool {
    matches!(option, b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I')
}

fn pack(lua: &Lua, arguments: &Arguments<'_>) -> Result<LuaString, Failure> {
    let format = arguments.string(1)?;
    let format = format.as_bytes();
    let mut format = Format::new(&format);
    let mut out = Output::new(lua);
    let mut position = 1;
    let mut next = || {
        position += 1;
        position
    };
    while let Some((option, size)) = format.next()? {
        out.zeros(format.padding(out.len(), option, size))?;
        match option {
            b'x' => out.push(0)?,
            b'f' => {
                let mut bytes = (number(arguments, next())? as f32).to_le_bytes();
                format.ordered(&mut bytes);
                out.extend(&bytes)?;
            }
            b'd' => {
                let mut bytes = number(arguments, next())?.to_le_bytes();
                format.ordered(&mut bytes);
                out.extend(&bytes)?;
            }
            b'c' | b's' => {
                let position = next();
                let text = missing_as_nil(arguments, position, "string", arguments.string(position))?;
                let text = text.as_bytes();
                let size = if size == 0 { text.len() } else { size };
                // The argument it names is the one behind the one that is too short.
                let text = text.get(..size).ok_or_else(|| Failure::argument(position + 1, "string too short"))?;
                out.extend(text)?;
                if option == b's' {
                    out.push(0)?;
                }
            }
            integer if is_integer(integer) => {
                let value = integer_bits(number(arguments, next())?);
                let mut bytes = [0; INTEGER_BYTES_MAX];
                bytes[..8].copy_from_slice(&value.to_le_bytes());
                format.ordered(&mut bytes[..size]);
                out.extend(&bytes[..size])?;
            }
            control => format.control(control)?,
        }
    }
    Ok(out.finish()?)
}

fn number(arguments: &Arguments<'_>, position: usize) -> Result<f64, Failure> {
    missing_as_nil(arguments, position, "number", arguments.number(position))
}

/// Where arguments end, the packer has put a nil of its own, so that is what it finds there.
fn missing_as_nil<T>(
    arguments: &Arguments<'_>,
    position: usize,
    wanted: &str,
    found: Result<T, Failure>,
) -> Result<T, Failure> {
    match arguments.get(position) {
        Some(_) => found,
        None => Err(Failure::argument(position, format!("{wanted} expected, got nil"))),
    }
}

/// A number as an integer's bits: negative ones by way of the signed type.
fn integer_bits(number: f64) -> u64 {
    if number < 0.0 { super::number::to_long(number) as u64 } else { to_unsigned_long(number) }
}

fn unpack(lua: &Lua, arguments: &Arguments<'_>) -> Result<MultiValue, Failure> {
    let format = arguments.string(1)?;
    let format = format.as_bytes();
    let mut format = Format::new(&format);
    let data = arguments.string(2)?;
    let data = data.as_bytes();
    // A negative offset is a very large one, which alignment can carry back to zero.
    let mut position = arguments.integer_or(3, 1)? as usize;
    if position == 0 {
        return Err(Failure::argument(3, "offset must be 1 or greater"));
    }
    position -= 1;
    let mut results: Vec<Value> = Vec::new();
    while let Some((option, size)) = format.next()? {
        position = position.wrapping_add(format.padding(position, option, size));
        let mut field = field(&data, position, size)?;
        if results.len() >= SLOTS_MAX {
            return Err(Failure::stack("too many results"));
        }
        match option {
            b'x' => {}
            b'f' => {
                let mut bytes = [0; 4];
                bytes.copy_from_slice(field);
                format.ordered(&mut bytes);
                results.push(Value::Number(f64::from(f32::from_le_bytes(bytes))));
            }
            b'd' => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(field);
                format.ordered(&mut bytes);
                results.push(Value::Number(f64::from_le_bytes(bytes)));
            }
            b'c' => {
                if size == 0 {
                    let size = previous_size(lua, &mut results)?;
                    field = self::field(&data, position, size)?;
                }
                results.push(Value::String(lua.create_string(field)?));
            }
            b's' => {
                let rest = &data[position..];
                let len = rest.iter().position(|&byte| byte == 0);
                let len = len.ok_or_else(|| Failure::message("unfinished string in data"))?;
                field = &rest[..=len];
                results.push(Value::String(lua.create_string(&rest[..len])?));
            }
            integer if is_integer(integer) => {
                results.push(Value::Number(read_integer(field, format.endian, integer.is_ascii_lowercase())));
            }
            control => format.control(control)?,
        }
        position += field.len();
    }
    results.push(Value::Number((position + 1) as f64));
    Ok(MultiValue::from_vec(results))
}

fn field(data: &[u8], position: usize, size: usize) -> Result<&[u8], Failure> {
    let end = position.checked_add(size);
    end.and_then(|end| data.get(position..end)).ok_or_else(|| Failure::argument(2, "data string too short"))
}

/// The size that `c0` takes: the value read last, which is then no result.
fn previous_size(lua: &Lua, results: &mut Vec<Value>) -> Result<usize, Failure> {
    let number = results.last().map(|value| lua.coerce_number(value.clone())).transpose()?.flatten();
    let number = number.ok_or_else(|| Failure::message("format 'c0' needs a previous size"))?;
    results.pop();
    Ok(integer_bits(number) as usize)
}

/// An integer of any size. Only its last eight bytes count.
fn read_integer(bytes: &[u8], endian: Endian, is_signed: bool) -> f64 {
    let add = |value: u64, &byte: &u8| (value << 8) | u64::from(byte);
    let value = match endian {
        Endian::Big => bytes.iter().fold(0, add),
        Endian::Little => bytes.iter().rev().fold(0, add),
    };
    if !is_signed {
        return value as f64;
    }
    // Beyond eight bytes the shift is taken modulo 64, as the processor does it.
    let mask = u64::MAX.wrapping_shl((bytes.len() as u32 * 8).wrapping_sub(1));
    let value = if value & mask == 0 { value } else { value | mask };
    value as i64 as f64
}

fn size(_: &Lua, arguments: &Arguments<'_>) -> Result<f64, Failure> {
    let format = arguments.string(1)?;
    let format = format.as_bytes();
    let mut format = Format::new(&format);
    let mut total: usize = 0;
    while let Some((option, size)) = format.next()? {
        total = total.saturating_add(format.padding(total, option, size));
        match option {
            b's' => return Err(Failure::argument(1, "option 's' has no fixed size")),
            b'c' if size == 0 => return Err(Failure::argument(1, "option 'c0' has no fixed size")),
            _ if !option.is_ascii_alphanumeric() => format.control(option)?,
            _ => {}
        }
        total = total.saturating_add(size);
    }
    Ok(total as f64)
}
