//! Numbers as C has them: casts, `strtod` and `printf`.

use mlua::Lua;

use crate::number::write_i64;

/// A cast of a `double` to `long` as x86-64 does it: what does not fit, NaN included, is the smallest `long`.
pub(super) fn to_long(number: f64) -> i64 {
    if (-(2f64.powi(63))..2f64.powi(63)).contains(&number) { number as i64 } else { i64::MIN }
}

/// A cast of a `double` to `int`, like [`to_long`].
pub(super) fn to_int(number: f64) -> i32 {
    let number = number.trunc();
    if (-(2f64.powi(31))..2f64.powi(31)).contains(&number) { number as i32 } else { i32::MIN }
}

/// A cast of a `double` to `unsigned long` as compilers do it on x86-64: the upper half by way of the lower.
pub(super) fn to_unsigned_long(number: f64) -> u64 {
    let half = 2f64.powi(63);
    if number >= half { to_long(number - half) as u64 ^ (1 << 63) } else { to_long(number) as u64 }
}

/// Writes a number as `%.*g` does, with `precision` significant digits, 1 to 17.
pub(super) fn write_general(number: f64, precision: usize, out: &mut Vec<u8>) {
    if number.is_nan() {
        return out.extend_from_slice(if number.is_sign_negative() { b"-nan" } else { b"nan" });
    }
    if number.is_infinite() {
        return out.extend_from_slice(if number < 0.0 { b"-inf" } else { b"inf" });
    }
    let is_integer = number.trunc() == number && !(number == 0.0 && number.is_sign_negative());
    if is_integer && number.abs() < 10f64.powi(precision as i32) {
        return write_i64(number as i64, out);
    }
    // `d.ddde±x`: rounded once, to the digits wanted. The exponent then chooses the form.
    let scientific = format!("{number:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        out.extend_from_slice(without_zeros(mantissa).as_bytes());
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
    } else {
        let places = (precision as i32 - 1 - exponent) as usize;
        out.extend_from_slice(without_zeros(&format!("{number:.places$}")).as_bytes());
    }
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// Reads the number that `bytes` begin with as `strtod` does, without leading white space. Returns it with its length
/// in bytes, which is zero if there is none.
pub(super) fn read_number(lua: &Lua, bytes: &[u8]) -> mlua::Result<(f64, usize)> {
    let sign = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let unsigned = &bytes[sign..];
    let negated = |number: f64| if bytes[0] == b'-' { -number } else { number };
    if starts_with(unsigned, b"inf") {
        let len = if starts_with(unsigned, b"infinity") { 8 } else { 3 };
        return Ok((negated(f64::INFINITY), sign + len));
    }
    if starts_with(unsigned, b"nan") {
        return Ok((negated(f64::NAN), sign + 3 + nan_characters(&unsigned[3..])));
    }
    let hex = hex_len(unsigned);
    if hex > 0 {
        let text = lua.create_string(&bytes[..sign + hex])?;
        let number = lua.coerce_number(mlua::Value::String(text))?;
        return Ok((number.unwrap_or(0.0), sign + hex));
    }
    let len = decimal_len(unsigned);
    let number = str::from_utf8(&unsigned[..len]).ok().and_then(|text| text.parse().ok());
    Ok(number.map_or((0.0, 0), |number| (negated(number), sign + len)))
}

fn starts_with(bytes: &[u8], lower_case: &[u8]) -> bool {
    bytes.get(..lower_case.len()).is_some_and(|start| start.eq_ignore_ascii_case(lower_case))
}

/// The length of `(characters)` behind a NaN.
fn nan_characters(rest: &[u8]) -> usize {
    let Some(inside) = rest.strip_prefix(b"(") else { return 0 };
    let len = inside.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    if inside.get(len) == Some(&b')') { len + 2 } else { 0 }
}

fn count_while(bytes: &[u8], start: usize, is_digit: impl Fn(&u8) -> bool) -> usize {
    bytes[start..].iter().take_while(|byte| is_digit(byte)).count()
}

/// The length of a hexadecimal number, zero if there is none.
fn hex_len(bytes: &[u8]) -> usize {
    if !starts_with(bytes, b"0x") {
        return 0;
    }
    match significand_len(bytes, 2, u8::is_ascii_hexdigit) {
        2 => 0,
        end => end + exponent_len(&bytes[end..], b'p'),
    }
}

/// The length of a decimal number, zero if there is none.
fn decimal_len(bytes: &[u8]) -> usize {
    match significand_len(bytes, 0, u8::is_ascii_digit) {
        0 => 0,
        end => end + exponent_len(&bytes[end..], b'e'),
    }
}

/// The end of digits with a point in or around them that begin at `start`; `start` if there is no digit.
fn significand_len(bytes: &[u8], start: usize, is_digit: fn(&u8) -> bool) -> usize {
    let whole = count_while(bytes, start, is_digit);
    let point = start + whole;
    if bytes.get(point) != Some(&b'.') {
        return point;
    }
    let places = count_while(bytes, point + 1, is_digit);
    if whole + places == 0 { start } else { point + 1 + places }
}

fn exponent_len(bytes: &[u8], letter: u8) -> usize {
    if !bytes.first().is_some_and(|byte| byte.eq_ignore_ascii_case(&letter)) {
        return 0;
    }
    let sign = usize::from(matches!(bytes.get(1), Some(b'-' | b'+')));
    match count_while(bytes, 1 + sign, u8::is_ascii_digit) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}
