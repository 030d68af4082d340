//! Integers of any width within a string, at any bit.

/// Bytes that a field may touch: 64 bits that begin within a byte.
const FIELD_BYTES_MAX: usize = 9;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    signed: bool,
    width: u32,
}

/// What becomes of a number that a field cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// Its low bits are kept.
    #[default]
    Wrap,
    /// The field gets its largest or smallest number.
    Saturate,
    /// The field stays as it is.
    Fail,
}

impl FieldType {
    /// Parses `i1` to `i64` and `u1` to `u63`. An unsigned field of 64 bits would not fit the reply.
    pub fn parse(word: &[u8]) -> Option<FieldType> {
        let (&sign, digits) = word.split_first()?;
        let (signed, longest) = match sign {
            b'i' => (true, 64),
            b'u' => (false, 63),
            _ => return None,
        };
        let width = crate::number::parse_i64(digits).filter(|width| (1..=longest).contains(width))?;
        Some(FieldType { signed, width: width as u32 })
    }

    /// Number of bits.
    #[inline]
    pub fn width(self) -> u32 {
        self.width
    }

    /// The largest and the smallest number.
    pub(super) fn bounds(self) -> (i64, i64) {
        if self.signed {
            let largest = i64::MAX >> (64 - self.width);
            (largest, !largest)
        } else {
            (((1u64 << self.width) - 1) as i64, 0)
        }
    }

    /// The number that the low bits of `value` stand for.
    pub(super) fn truncate(self, value: i64) -> i64 {
        let unused = 64 - self.width;
        if self.signed { value << unused >> unused } else { ((value as u64) << unused >> unused) as i64 }
    }

    /// The field at bit `offset`. Bits behind the end of the string are clear.
    pub fn get(self, bytes: &[u8], offset: u64) -> i64 {
        let first = usize::try_from(offset / 8).unwrap_or(usize::MAX).min(bytes.len());
        let bytes = &bytes[first..bytes.len().min(first.saturating_add(FIELD_BYTES_MAX))];
        let mut window = [0; size_of::<u128>()];
        window[..bytes.len()].copy_from_slice(bytes);
        let aligned = u128::from_be_bytes(window) << (offset % 8);
        self.truncate((aligned >> (u128::BITS - self.width)) as i64)
    }

    /// Writes the field at bit `offset`, which must end within the string.
    pub fn set(self, bytes: &mut [u8], offset: u64, value: i64) {
        let first = (offset / 8) as usize;
        let last = ((offset + u64::from(self.width) - 1) / 8) as usize;
        let bytes = &mut bytes[first..=last];
        let mut window = [0; size_of::<u128>()];
        window[..bytes.len()].copy_from_slice(bytes);
        let shift = u128::BITS - self.width - (offset % 8) as u32;
        let mask = ((1u128 << self.width) - 1) << shift;
        let word = u128::from_be_bytes(window) & !mask | (u128::from(value as u64) << shift) & mask;
        bytes.copy_from_slice(&word.to_be_bytes()[..bytes.len()]);
    }

    /// The number that the field holds after `value` was stored in it; `None` where it must stay as it is.
    pub fn store(self, value: i64, overflow: Overflow) -> Option<i64> {
        let (largest, smallest) = self.bounds();
        // Redis takes an unsigned field's value for unsigned, and the distance from a narrow signed field's largest
        // number wraps around for values far below: both are then too large, not too small.
        let too_far = if self.signed { self.width < 64 && largest.checked_sub(value).is_none() } else { value < 0 };
        let too_large = value > largest || too_far;
        self.settle(value, too_large, value < smallest, overflow)
    }

    /// The number that the field holds after `increment` was added to its `value`; `None` where it must stay as it is.
    pub fn add(self, value: i64, increment: i64, overflow: Overflow) -> Option<i64> {
        let (largest, smallest) = self.bounds();
        let sum = i128::from(value) + i128::from(increment);
        self.settle(value.wrapping_add(increment), sum > i128::from(largest), sum < i128::from(smallest), overflow)
    }

    fn settle(self, value: i64, too_large: bool, too_small: bool, overflow: Overflow) -> Option<i64> {
        if !too_large && !too_small {
            return Some(value);
        }
        let (largest, smallest) = self.bounds();
        match overflow {
            Overflow::Wrap => Some(self.truncate(value)),
            Overflow::Saturate => Some(if too_large { largest } else { smallest }),
            Overflow::Fail => None,
        }
    }
}
