//! Natural numbers of any size, with the few operations which exact decimal conversion needs.

/// A natural number in 32-bit limbs, least significant first, without leading zero limbs.
#[derive(Clone, Debug, Default)]
pub(super) struct Natural {
    limbs: Vec<u32>,
}

/// The largest power of five in a limb, and its exponent.
const FIVE_POWER: (u32, u32) = (1_220_703_125, 13);
/// The largest power of ten in a limb, and its exponent.
const TEN_POWER: (u32, usize) = (1_000_000_000, 9);

impl Natural {
    /// The number which ASCII decimal `digits` stand for.
    pub(super) fn from_digits(digits: &[u8]) -> Self {
        let mut number = Self::default();
        for chunk in digits.chunks(TEN_POWER.1) {
            let scale = 10u32.pow(chunk.len() as u32);
            let value = chunk.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
            number.multiply_add(scale, value);
        }
        number
    }

    /// The number `significand × 2^shift`.
    pub(super) fn from_shifted(significand: u64, shift: usize) -> Self {
        let mut number = Self { limbs: vec![significand as u32, (significand >> 32) as u32] };
        number.trim();
        number.shift_left(shift);
        number
    }

    /// The number of bits, zero for zero.
    pub(super) fn bits(&self) -> usize {
        self.limbs.last().map_or(0, |top| self.limbs.len() * 32 - top.leading_zeros() as usize)
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }

    fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for limb in &mut self.limbs {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            *limb = product as u32;
            carry = product >> 32;
        }
        if carry != 0 {
            self.limbs.push(carry as u32);
        }
    }

    /// Divides by `divisor`, leaves the quotient and returns the remainder.
    fn divide(&mut self, divisor: u32) -> u32 {
        let mut remainder = 0u64;
        for limb in self.limbs.iter_mut().rev() {
            let dividend = (remainder << 32) | u64::from(*limb);
            *limb = (dividend / u64::from(divisor)) as u32;
            remainder = dividend % u64::from(divisor);
        }
        self.trim();
        remainder as u32
    }

    /// Multiplies by `5^exponent`.
    pub(super) fn multiply_by_five_power(&mut self, exponent: usize) {
        let step = FIVE_POWER.1 as usize;
        for _ in 0..exponent / step {
            self.multiply_add(FIVE_POWER.0, 0);
        }
        self.multiply_add(5u32.pow((exponent % step) as u32), 0);
    }

    /// Divides by `5^exponent`, leaves the quotient and tells whether anything remained.
    pub(super) fn divide_by_five_power(&mut self, exponent: usize) -> bool {
        let step = FIVE_POWER.1 as usize;
        let mut remained = false;
        for _ in 0..exponent / step {
            remained |= self.divide(FIVE_POWER.0) != 0;
        }
        remained | (self.divide(5u32.pow((exponent % step) as u32)) != 0)
    }

    /// Multiplies by `2^shift`.
    pub(super) fn shift_left(&mut self, shift: usize) {
        if self.limbs.is_empty() {
            return;
        }
        self.multiply_add(1 << (shift % 32), 0);
        self.limbs.splice(0..0, std::iter::repeat_n(0, shift / 32));
    }

    /// The 128 leading bits (all bits where there are fewer), the number of bits dropped below them, and whether any
    /// dropped bit was set.
    pub(super) fn leading_bits(&self) -> (u128, usize, bool) {
        let dropped = self.bits().saturating_sub(128);
        let (skipped, shift) = (dropped / 32, dropped % 32);
        let mut leading = 0u128;
        for (index, &limb) in self.limbs.iter().skip(skipped).enumerate() {
            let limb = u128::from(limb);
            leading |= match index {
                0 => limb >> shift,
                _ => limb << (index * 32 - shift),
            };
        }
        let partial = self.limbs.get(skipped).is_some_and(|limb| limb & ((1 << shift) - 1) != 0);
        let sticky = partial || self.limbs.iter().take(skipped).any(|&limb| limb != 0);
        (leading, dropped, sticky)
    }

    /// Appends the decimal form.
    pub(super) fn write_decimal(mut self, out: &mut Vec<u8>) {
        let mut chunks = Vec::with_capacity(self.limbs.len() * 32 / 29 + 1);
        while !self.limbs.is_empty() {
            chunks.push(self.divide(TEN_POWER.0));
        }
        let leading = chunks.pop().unwrap_or(0);
        super::write_i64(i64::from(leading), out);
        for chunk in chunks.into_iter().rev() {
            let start = out.len();
            super::write_i64(i64::from(TEN_POWER.0) + i64::from(chunk), out);
            out.remove(start);
        }
    }
}
