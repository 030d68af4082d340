//! The 80-bit extended precision in which float increments are computed, in integer arithmetic.
//!
//! Replies of `INCRBYFLOAT` and `HINCRBYFLOAT` show the digits of a `long double` of the x86 family: a significand of
//! 64 bits and an exponent of 15. Parsing, addition and printing here round as IEEE 754 demands (to nearest, ties to
//! even), so that the digits agree on every machine.

use super::natural::Natural;
use super::{is_hex, is_infinity, split_sign, write_i64};

/// Exponent of the unit of the last place of the smallest numbers.
const EXPONENT_MIN: i64 = -16445;
/// Exponent of the unit of the last place of the largest numbers.
const EXPONENT_MAX: i64 = 16320;
/// Digits behind the point in the human-friendly form.
const FRACTION_DIGITS: usize = 17;
const FRACTION_SCALE: u64 = 100_000_000_000_000_000;
/// Longer texts are not taken for floats.
const TEXT_LEN_MAX: usize = 5 * 1024 - 1;
/// Exponents written by clients are clamped to this: far outside of any range, far from any overflow.
const WRITTEN_EXPONENT_MAX: i64 = 1_000_000_000;
/// The greatest power of five which fits 63 bits is `5^27`.
const FAST_EXPONENT_MAX: i64 = 27;

/// Why a float increment was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// The current value is no float.
    CurrentNotFloat,
    /// The increment is no float.
    IncrementNotFloat,
    /// The result is infinite or not a number.
    ResultNotFinite,
}

/// Adds two numbers in the forms of [`Extended::parse`] and gives the sum in human-friendly form.
///
/// # Errors
///
/// When either is no float, or when the sum is not finite.
pub fn add_decimal(current: &[u8], increment: &[u8]) -> Result<Vec<u8>, DecimalError> {
    let current = Extended::parse(current).ok_or(DecimalError::CurrentNotFloat)?;
    let increment = Extended::parse(increment).ok_or(DecimalError::IncrementNotFloat)?;
    let sum = current.plus(increment).filter(Extended::is_finite).ok_or(DecimalError::ResultNotFinite)?;
    let mut text = Vec::with_capacity(24);
    sum.write_human(&mut text);
    Ok(text)
}

/// Appends `value` without an exponent: seventeen digits behind the point, trailing zeros trimmed.
///
/// Infinities are `inf` and `-inf`, NaN is `nan`, and what rounds to zero is `0` whatever its sign.
pub fn write_f64_human(value: f64, out: &mut Vec<u8>) {
    match Extended::from_f64(value) {
        Some(extended) => extended.write_human(out),
        None => out.extend_from_slice(b"nan"),
    }
}

/// A number in 80-bit extended precision, never NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    negative: bool,
    magnitude: Magnitude,
}

/// `Finite` stands for `significand × 2^exponent`. The top bit of the significand is set unless the exponent is
/// [`EXPONENT_MIN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Magnitude {
    Finite { significand: u64, exponent: i64 },
    Infinite,
}

impl Extended {
    /// Parses the forms of C's `strtold`: decimal with an optional exponent, hexadecimal and `inf` or `infinity` in
    /// any case, each with an optional sign.
    ///
    /// Refused are texts of 5 KiB and more, white space, anything left over, NaN, finite forms out of range and
    /// non-zero forms which round to zero.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > TEXT_LEN_MAX {
            return None;
        }
        let (negative, unsigned) = split_sign(bytes);
        if is_infinity(unsigned) {
            return Some(Self { negative, magnitude: Magnitude::Infinite });
        }
        let number = if is_hex(unsigned) { parse_hex(unsigned)? } else { parse_decimal(unsigned)? };
        if number.is_zero() {
            return Some(Self::zero(negative));
        }
        let rounded = Self::round(negative, number);
        let in_range = matches!(rounded.magnitude, Magnitude::Finite { significand, .. } if significand != 0);
        in_range.then_some(rounded)
    }

    /// The same value in extended precision, or none for NaN.
    pub fn from_f64(value: f64) -> Option<Self> {
        let negative = value.is_sign_negative();
        if value.is_nan() {
            return None;
        }
        if value.is_infinite() {
            return Some(Self { negative, magnitude: Magnitude::Infinite });
        }
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let biased = ((bits >> 52) & 0x7ff) as i64;
        let significand = if biased == 0 { fraction } else { fraction | (1 << 52) };
        let number = BinaryNumber { significand: significand.into(), exponent: biased.max(1) - 1075, sticky: false };
        Some(Self::round(negative, number))
    }

    /// Whether the number is finite.
    pub fn is_finite(&self) -> bool {
        matches!(self.magnitude, Magnitude::Finite { .. })
    }

    fn zero(negative: bool) -> Self {
        Self { negative, magnitude: Magnitude::Finite { significand: 0, exponent: EXPONENT_MIN } }
    }

    fn round(negative: bool, number: BinaryNumber) -> Self {
        let (significand, exponent) = number.round(64, EXPONENT_MIN);
        if significand == 0 {
            return Self::zero(negative);
        }
        let magnitude = match exponent {
            ..=EXPONENT_MAX => Magnitude::Finite { significand, exponent },
            _ => Magnitude::Infinite,
        };
        Self { negative, magnitude }
    }

    /// The sum, rounded to extended precision, or none where infinities of both signs meet.
    pub fn plus(self, other: Self) -> Option<Self> {
        match (self.magnitude, other.magnitude) {
            (Magnitude::Infinite, Magnitude::Infinite) => (self.negative == other.negative).then_some(self),
            (Magnitude::Infinite, _) => Some(self),
            (_, Magnitude::Infinite) => Some(other),
            (
                Magnitude::Finite { significand, exponent },
                Magnitude::Finite { significand: other_significand, exponent: other_exponent },
            ) => {
                // Ordered by exponent, then significand, operands are ordered by magnitude.
                if (exponent, significand) >= (other_exponent, other_significand) {
                    Some(Self::add_smaller(
                        self.negative,
                        (significand, exponent),
                        other.negative,
                        (other_significand, other_exponent),
                    ))
                } else {
                    Some(Self::add_smaller(
                        other.negative,
                        (other_significand, other_exponent),
                        self.negative,
                        (significand, exponent),
                    ))
                }
            }
        }
    }

    fn add_smaller(negative: bool, large: (u64, i64), small_negative: bool, small: (u64, i64)) -> Self {
        const GUARD_BITS: u32 = 63;
        let distance = large.1 - small.1;
        let aligned_large = u128::from(large.0) << GUARD_BITS;
        let unaligned_small = u128::from(small.0) << GUARD_BITS;
        let aligned_small = if distance < 128 { unaligned_small >> distance } else { 0 };
        let sticky = if distance < 128 { aligned_small << distance != unaligned_small } else { small.0 != 0 };
        let significand = if negative == small_negative {
            aligned_large + aligned_small
        } else {
            // Bits are only lost where the exponents differ, and then the larger operand has its top bit set: the
            // borrow for them cannot underflow.
            aligned_large - aligned_small - u128::from(sticky)
        };
        if significand == 0 {
            return Self::zero(negative && small_negative);
        }
        Self::round(negative, BinaryNumber { significand, exponent: large.1 - i64::from(GUARD_BITS), sticky })
    }

    /// Appends the human-friendly form: see [`write_f64_human`].
    pub fn write_human(self, out: &mut Vec<u8>) {
        let start = out.len();
        if self.negative {
            out.push(b'-');
        }
        match self.magnitude {
            Magnitude::Infinite => out.extend_from_slice(b"inf"),
            Magnitude::Finite { significand, exponent: exponent @ 0.. } => {
                Natural::from_shifted(significand, exponent as usize).write_decimal(out);
            }
            Magnitude::Finite { significand, exponent } => {
                write_fixed(significand, exponent.unsigned_abs(), out);
                if out[start..] == *b"-0" {
                    out.remove(start);
                }
            }
        }
    }
}

/// Appends `significand / 2^shift`, where `shift` is not zero, with the digits behind the point rounded and trimmed.
fn write_fixed(significand: u64, shift: u64, out: &mut Vec<u8>) {
    let mut integer = if shift < 64 { significand >> shift } else { 0 };
    let fraction = if shift < 64 { significand & ((1 << shift) - 1) } else { significand };
    // Below 2^121, so that all shifts by 128 and more round to zero.
    let scaled = u128::from(fraction) * u128::from(FRACTION_SCALE);
    let mut digits = 0u64;
    if shift < 128 {
        digits = (scaled >> shift) as u64;
        let remainder = scaled & ((1 << shift) - 1);
        let half = 1u128 << (shift - 1);
        if remainder > half || (remainder == half && digits & 1 == 1) {
            digits += 1;
        }
    }
    if digits == FRACTION_SCALE {
        integer += 1;
        digits = 0;
    }
    // The shift leaves 63 bits, and with so many of them the fraction is one bit, which never rounds up.
    write_i64(integer as i64, out);
    if digits == 0 {
        return;
    }
    let point = out.len();
    write_i64((FRACTION_SCALE + digits) as i64, out);
    out[point] = b'.';
    debug_assert_eq!(out.len(), point + 1 + FRACTION_DIGITS);
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

/// An exact binary number `significand × 2^exponent`, or one a little larger (by less than one unit of the last place)
/// where `sticky` is set. A sticky number has more significant bits than any format it is rounded to.
#[derive(Clone, Copy, Debug)]
pub(super) struct BinaryNumber {
    significand: u128,
    exponent: i64,
    sticky: bool,
}

/// A hexadecimal float, not yet rounded.
pub(super) type HexNumber = BinaryNumber;

impl BinaryNumber {
    pub(super) fn is_zero(&self) -> bool {
        self.significand == 0
    }

    /// Rounds to nearest, ties to even, to `precision` bits (64 at most) and no exponent below `exponent_min`.
    pub(super) fn round(self, precision: u32, exponent_min: i64) -> (u64, i64) {
        let bits = 128 - self.significand.leading_zeros();
        let exponent = (self.exponent + i64::from(bits) - i64::from(precision)).max(exponent_min);
        let shift = exponent - self.exponent;
        if shift <= 0 {
            return ((self.significand << -shift) as u64, exponent);
        }
        if shift > 128 {
            return (0, exponent);
        }
        let quotient = if shift < 128 { self.significand >> shift } else { 0 };
        let half = 1u128 << (shift - 1);
        let remainder = self.significand & (half | (half - 1));
        let up = remainder > half || (remainder == half && (self.sticky || quotient & 1 == 1));
        let rounded = quotient + u128::from(up);
        if rounded >> precision != 0 { ((rounded >> 1) as u64, exponent + 1) } else { (rounded as u64, exponent) }
    }
}

/// Digits on both sides of an optional point, at least one of them, and what follows.
struct Digits<'a> {
    integer: &'a [u8],
    fraction: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Digits<'a> {
    fn split(bytes: &'a [u8], is_digit: fn(&u8) -> bool) -> Option<Self> {
        let span = |bytes: &[u8]| bytes.iter().position(|byte| !is_digit(byte)).unwrap_or(bytes.len());
        let (integer, mut rest) = bytes.split_at(span(bytes));
        let mut fraction = &rest[..0];
        if let [b'.', behind @ ..] = rest {
            (fraction, rest) = behind.split_at(span(behind));
        }
        (!integer.is_empty() || !fraction.is_empty()).then_some(Self { integer, fraction, rest })
    }
}

/// An exponent behind its `marker`, zero where there is nothing at all, clamped where it is very large.
fn parse_exponent(bytes: &[u8], marker: u8) -> Option<i64> {
    let Some((first, rest)) = bytes.split_first() else {
        return Some(0);
    };
    let (negative, digits) = split_sign(rest);
    if !first.eq_ignore_ascii_case(&marker) || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude =
        digits.iter().fold(0, |value: i64, digit| (value * 10 + i64::from(digit - b'0')).min(WRITTEN_EXPONENT_MAX));
    Some(if negative { -magnitude } else { magnitude })
}

/// Parses `0x` and what follows it, without a sign.
pub(super) fn parse_hex(bytes: &[u8]) -> Option<HexNumber> {
    let digits = Digits::split(bytes.get(2..)?, u8::is_ascii_hexdigit)?;
    let written = parse_exponent(digits.rest, b'p')?;
    let mut number = BinaryNumber { significand: 0, exponent: 0, sticky: false };
    for &byte in digits.integer.iter().chain(digits.fraction) {
        let digit = char::from(byte).to_digit(16)?;
        if number.significand >> 124 == 0 {
            number.significand = (number.significand << 4) | u128::from(digit);
        } else {
            number.sticky |= digit != 0;
            number.exponent += 4;
        }
    }
    number.exponent += written - 4 * digits.fraction.len() as i64;
    Some(number)
}

/// Parses a decimal without a sign. What is far out of range comes back as a number which rounds to infinity or zero.
fn parse_decimal(bytes: &[u8]) -> Option<BinaryNumber> {
    let digits = Digits::split(bytes, u8::is_ascii_digit)?;
    let mut exponent = parse_exponent(digits.rest, b'e')? - digits.fraction.len() as i64;
    let all: Vec<u8> = digits.integer.iter().chain(digits.fraction).copied().collect();
    let Some(first) = all.iter().position(|&digit| digit != b'0') else {
        return Some(BinaryNumber { significand: 0, exponent: 0, sticky: false });
    };
    let end = all.iter().rposition(|&digit| digit != b'0').map_or(all.len(), |last| last + 1);
    exponent += (all.len() - end) as i64;
    let significant = &all[first..end];

    if significant.len() <= 19 && exponent.abs() <= FAST_EXPONENT_MAX {
        let value = significant.iter().fold(0, |value: u128, digit| value * 10 + u128::from(digit - b'0'));
        let five_power = 5u128.pow(exponent.unsigned_abs() as u32);
        if exponent >= 0 {
            return Some(BinaryNumber { significand: value * five_power, exponent, sticky: false });
        }
        let shift = value.leading_zeros();
        let shifted = value << shift;
        return Some(BinaryNumber {
            significand: shifted / five_power,
            exponent: exponent - i64::from(shift),
            sticky: shifted % five_power != 0,
        });
    }

    // The largest number is near 1.2e4932 and the smallest near 3.6e-4951.
    let magnitude = exponent + significant.len() as i64;
    if magnitude.abs() > 5000 {
        return Some(BinaryNumber { significand: 1, exponent: magnitude * 4, sticky: false });
    }
    let mut number = Natural::from_digits(significant);
    let power = exponent.unsigned_abs() as usize;
    let mut inexact = false;
    if exponent >= 0 {
        number.multiply_by_five_power(power);
    } else {
        // log2(5) is below 7/3: at least 128 bits of quotient are left.
        let shift = (power * 7 / 3 + 130).saturating_sub(number.bits());
        number.shift_left(shift);
        inexact = number.divide_by_five_power(power);
        exponent -= shift as i64;
    }
    let (significand, dropped, sticky) = number.leading_bits();
    Some(BinaryNumber { significand, exponent: exponent + dropped as i64, sticky: sticky || inexact })
}
