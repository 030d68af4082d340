//! Numbers as clients write and read them: strict integer parsing, `strtod`-like floats and their reply formats.

mod extended;
mod natural;

pub use extended::{DecimalError, Extended, add_decimal, write_f64_human};

use crate::number::extended::{HexNumber, parse_hex};

/// The two decimal digits of every number below one hundred.
const DIGIT_PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    pairs
};

/// The longest decimal form of an `i64`, `-9223372036854775808`, in bytes.
const INTEGER_DIGITS_MAX: usize = 20;

/// A stack buffer in which an integer is given its decimal form.
#[derive(Clone, Debug, Default)]
pub struct IntBuffer {
    bytes: [u8; INTEGER_DIGITS_MAX],
}

impl IntBuffer {
    /// An empty buffer.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes `value` in decimal and returns the digits. The buffer can be used again afterwards.
    #[inline]
    pub fn format(&mut self, value: i64) -> &[u8] {
        let mut rest = value.unsigned_abs();
        let mut start = INTEGER_DIGITS_MAX;
        while rest >= 100 {
            start -= 2;
            self.bytes[start..start + 2].copy_from_slice(&DIGIT_PAIRS[(rest % 100) as usize]);
            rest /= 100;
        }
        if rest >= 10 {
            start -= 2;
            self.bytes[start..start + 2].copy_from_slice(&DIGIT_PAIRS[rest as usize]);
        } else {
            start -= 1;
            self.bytes[start] = b'0' + rest as u8;
        }
        if value < 0 {
            start -= 1;
            self.bytes[start] = b'-';
        }
        &self.bytes[start..]
    }
}

/// The length in bytes of the decimal form of `value`.
#[inline]
pub fn decimal_len(value: i64) -> usize {
    let magnitude = value.unsigned_abs();
    let digits = magnitude.checked_ilog10().map_or(1, |log| log as usize + 1);
    digits + usize::from(value < 0)
}

/// Appends the decimal form of `value`.
#[inline]
pub fn write_i64(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(IntBuffer::new().format(value));
}

/// Parses the canonical decimal form of an `i64`, and nothing else.
///
/// Canonical means that [`write_i64`] gives the same bytes back: no leading zero, no `+`, no white space, no `-0`.
#[inline]
pub fn parse_i64(bytes: &[u8]) -> Option<i64> {
    let (&first, rest) = bytes.split_first()?;
    if bytes.len() > INTEGER_DIGITS_MAX {
        return None;
    }
    let (negative, lead, rest) = match first {
        b'0' => return rest.is_empty().then_some(0),
        b'1'..=b'9' => (false, first, rest),
        b'-' => {
            let (&lead, rest) = rest.split_first()?;
            if !(b'1'..=b'9').contains(&lead) {
                return None;
            }
            (true, lead, rest)
        }
        _ => return None,
    };
    if rest.len() > 18 {
        return None;
    }
    // At most nineteen digits are left, which always fit an unsigned 64-bit integer.
    let mut magnitude = u64::from(lead - b'0');
    for &byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit);
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Parses a float as scores and float arguments are written.
///
/// Accepted are the forms of C's `strtod`: decimal with an optional exponent, hexadecimal (`0x1.8p1`) and `inf` or
/// `infinity` in any case, each with an optional sign. Refused are the empty string, white space anywhere, anything
/// left over, NaN, finite forms too large for a double and non-zero forms so small that they round to zero.
pub fn parse_f64(bytes: &[u8]) -> Option<f64> {
    let (negative, unsigned) = split_sign(bytes);
    if is_infinity(unsigned) {
        return Some(if negative { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    let magnitude = if is_hex(unsigned) { hex_to_f64(parse_hex(unsigned)?)? } else { decimal_to_f64(unsigned)? };
    Some(if negative { -magnitude } else { magnitude })
}

/// Splits an optional sign off; true means negative.
fn split_sign(bytes: &[u8]) -> (bool, &[u8]) {
    match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    }
}

fn is_infinity(unsigned: &[u8]) -> bool {
    unsigned.eq_ignore_ascii_case(b"inf") || unsigned.eq_ignore_ascii_case(b"infinity")
}

fn is_hex(unsigned: &[u8]) -> bool {
    matches!(unsigned, [b'0', b'x' | b'X', ..])
}

fn decimal_to_f64(unsigned: &[u8]) -> Option<f64> {
    // The standard parser knows words and a sign of its own, which must not pass here.
    if !matches!(unsigned.first(), Some(b'0'..=b'9' | b'.')) {
        return None;
    }
    let value: f64 = str::from_utf8(unsigned).ok()?.parse().ok()?;
    if value.is_infinite() {
        return None;
    }
    if value == 0.0 {
        let significand = unsigned.split(|byte| matches!(byte, b'e' | b'E')).next()?;
        if significand.iter().any(|byte| matches!(byte, b'1'..=b'9')) {
            return None;
        }
    }
    Some(value)
}

fn hex_to_f64(number: HexNumber) -> Option<f64> {
    const EXPONENT_MIN: i64 = -1074;
    const EXPONENT_MAX: i64 = 971;
    const HIDDEN_BIT: u64 = 1 << 52;
    if number.is_zero() {
        return Some(0.0);
    }
    let (significand, exponent) = number.round(53, EXPONENT_MIN);
    if significand == 0 || exponent > EXPONENT_MAX {
        return None;
    }
    if significand < HIDDEN_BIT {
        return Some(f64::from_bits(significand));
    }
    let biased = u64::try_from(exponent - EXPONENT_MIN + 1).ok()?;
    Some(f64::from_bits((biased << 52) | (significand & (HIDDEN_BIT - 1))))
}

/// Appends a double as it is replied: the shortest digits which parse back to `value`.
///
/// Integers have no point. Numbers take the exponent form (`1e+21`, `1.5e-7`: sign always, no padding) by the rule of
/// the `fpconv` library: when writing them out would append more than seven zeros, or would put more than six digits
/// behind the point of a number outside of 0.001 to 10000. Infinities are `inf` and `-inf`, negative zero is `-0` and
/// NaN is `nan`.
pub fn write_f64(value: f64, out: &mut Vec<u8>) {
    /// Integers up to half the range of an `i64` are written out whole.
    const INTEGER_MAX: f64 = (i64::MAX / 2) as f64;

    if value.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    if value.is_sign_negative() && (value == 0.0 || value.is_infinite()) {
        out.push(b'-');
    }
    if value.is_infinite() {
        return out.extend_from_slice(b"inf");
    }
    if value.abs() <= INTEGER_MAX && value.trunc() == value {
        return write_i64(value as i64, out);
    }
    if value < 0.0 {
        out.push(b'-');
    }
    let digits = ShortestDigits::of(value.abs());
    digits.write_to(out);
}

/// The shortest decimal significand of a positive double: `digits × 10^exponent`.
struct ShortestDigits {
    bytes: [u8; Self::CAPACITY],
    len: usize,
    exponent: i32,
}

impl ShortestDigits {
    /// Seventeen digits always tell two doubles apart.
    const CAPACITY: usize = 17;

    fn of(value: f64) -> Self {
        use std::io::Write;
        // The standard form is `d.ddde-300`: at most seventeen digits, a point and five bytes of exponent.
        let mut text = [0u8; 32];
        let mut cursor = &mut text[..];
        let written = match write!(cursor, "{value:e}") {
            Ok(()) => 32 - cursor.len(),
            Err(_) => 0,
        };
        let mut digits = Self { bytes: [b'0'; Self::CAPACITY], len: 0, exponent: 0 };
        let mut parts = text[..written].split(|&byte| byte == b'e');
        for &byte in parts.next().unwrap_or_default() {
            if byte.is_ascii_digit() && digits.len < Self::CAPACITY {
                digits.bytes[digits.len] = byte;
                digits.len += 1;
            }
        }
        let scientific = parts.next().and_then(parse_i64).unwrap_or(0) as i32;
        digits.exponent = scientific + 1 - digits.len as i32;
        digits
    }

    fn write_to(&self, out: &mut Vec<u8>) {
        let digits = &self.bytes[..self.len];
        let count = self.len as i32;
        let scientific = self.exponent + count - 1;
        if self.exponent >= 0 && scientific < count + 7 {
            out.extend_from_slice(digits);
            out.extend(std::iter::repeat_n(b'0', self.exponent as usize));
        } else if self.exponent < 0 && (self.exponent > -7 || scientific.abs() < 4) {
            let integer_digits = count + self.exponent;
            if integer_digits <= 0 {
                out.extend_from_slice(b"0.");
                out.extend(std::iter::repeat_n(b'0', -integer_digits as usize));
                out.extend_from_slice(digits);
            } else {
                let (integer, fraction) = digits.split_at(integer_digits as usize);
                out.extend_from_slice(integer);
                out.push(b'.');
                out.extend_from_slice(fraction);
            }
        } else {
            let (first, rest) = digits.split_at(1);
            out.extend_from_slice(first);
            if !rest.is_empty() {
                out.push(b'.');
                out.extend_from_slice(rest);
            }
            out.extend_from_slice(if scientific < 0 { b"e-" } else { b"e+" });
            write_i64(i64::from(scientific.abs()), out);
        }
    }
}

#[cfg(test)]
mod tests;
