//! Runs of equal registers.
//!
//! ```text
//! 00nnnnnn             n + 1 registers are 0
//! 01nnnnnn mmmmmmmm    256 n + m + 1 registers are 0
//! 1vvvvvnn             n + 1 registers are v + 1
//! ```
//!
//! Runs are split and joined in just the way that Redis does it, so that the same additions give the same bytes.

use std::ops::Range;

use arrayvec::ArrayVec;

use super::estimate::{Histogram, VALUES};
use super::{Corrupt, Place, REGISTERS};

/// No register set: one run of zeros.
pub const EMPTY: [u8; 2] = [LONG_ZEROS | 0x3f, 0xff];

const LONG_ZEROS: u8 = 0x40;
const VALUE: u8 = 0x80;
const SHORT_ZEROS_MAX: usize = 64;
const VALUE_MAX: u8 = 32;
const VALUE_LEN_MAX: usize = 4;

/// Opcodes from the one before the change on among which equal neighbours are looked for.
const JOIN_STEPS: usize = 5;

/// Bytes behind a change which those opcodes may reach, and one more.
const JOIN_BYTES: usize = 2 * JOIN_STEPS + 1;

/// The bytes that replace others: at most the opcode before the change, the five that take the place of one, and those
/// behind that may be joined.
pub type Replacement = ArrayVec<u8, { 2 + 5 + JOIN_BYTES }>;

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What the registers hold.
    pub value: u8,
    /// How many there are.
    pub len: usize,
    /// Whether it is a run of zeros in two bytes.
    pub is_long: bool,
}

impl Run {
    /// The run whose opcode begins with `first`. A second byte that is missing counts as 0.
    #[inline]
    fn decode(first: u8, second: Option<&u8>) -> Run {
        if first & VALUE != 0 {
            Run { value: (first >> 2 & 0x1f) + 1, len: usize::from(first & 3) + 1, is_long: false }
        } else if first & LONG_ZEROS == 0 {
            Run { value: 0, len: usize::from(first) + 1, is_long: false }
        } else {
            let len = usize::from(first & 0x3f) << 8 | usize::from(second.copied().unwrap_or(0));
            Run { value: 0, len: len + 1, is_long: true }
        }
    }

    /// Bytes of its opcode.
    #[inline]
    fn bytes(self) -> usize {
        1 + usize::from(self.is_long)
    }
}

/// The runs of a sparse sketch's registers.
pub fn runs(registers: &[u8]) -> impl Iterator<Item = Run> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let run = Run::decode(*registers.get(at)?, registers.get(at + 1));
        at += run.bytes();
        Some(run)
    })
}

#[inline]
fn value_opcode(value: u8, len: usize) -> u8 {
    VALUE | (value - 1) << 2 | (len - 1) as u8
}

/// What raising a register takes.
pub enum Raise {
    /// Nothing: it holds as much.
    None,
    /// A range of the bytes is replaced.
    Replace(Range<usize>, Replacement),
    /// It cannot be done within the sparse form, or not within the limit.
    NotSparse,
}

/// The opcode that a register belongs to.
struct Found {
    run: Run,
    /// The run's first register.
    first: usize,
    /// Offset of the opcode.
    at: usize,
    /// Offset of the opcode before it; its own where there is none.
    before: usize,
}

/// The registers that an opcode stands for; 0 for one of two bytes.
const LENGTHS: [u8; 256] = {
    let mut lengths = [0; 256];
    let mut opcode = 0;
    while opcode < 256 {
        lengths[opcode] = match opcode as u8 & (VALUE | LONG_ZEROS) {
            0 => opcode as u8 + 1,
            LONG_ZEROS => 0,
            _ => (opcode as u8 & 3) + 1,
        };
        opcode += 1;
    }
    lengths
};

/// The registers that eight opcodes of one byte stand for; `None` where one of them begins an opcode of two bytes.
#[inline]
pub(super) fn length_of_eight(opcodes: &[u8; 8]) -> Option<usize> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const PAIRS: u64 = 0x00ff_00ff_00ff_00ff;
    let word = u64::from_le_bytes(*opcodes);
    let values = word >> 7 & EACH;
    let long_zeros = word >> 6 & EACH & !values;
    if long_zeros != 0 {
        return None;
    }
    // What of a byte is its length less one: the lowest two bits of a value's opcode, six bits of the others.
    let lengths = word & ((EACH * 0x3f) ^ (values * 0x3c));
    // The sum of eight bytes needs more than one.
    let pairs = (lengths & PAIRS) + (lengths >> 8 & PAIRS);
    let sum = pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48;
    Some(sum as usize + opcodes.len())
}

#[inline]
fn find(registers: &[u8], index: usize) -> Result<Found, Corrupt> {
    let (mut at, mut before, mut first) = (0, 0, 0);
    loop {
        if let Some(opcodes) = registers[at..].first_chunk()
            && let Some(len) = length_of_eight(opcodes)
            && first + len <= index
        {
            before = at + opcodes.len() - 1;
            at += opcodes.len();
            first += len;
            continue;
        }
        let opcode = *registers.get(at).ok_or(Corrupt)?;
        // The long way only for the few long runs: which of the others it is cannot be predicted.
        let (len, bytes) = match LENGTHS[usize::from(opcode)] {
            0 => {
                let second = registers.get(at + 1).ok_or(Corrupt)?;
                (Run::decode(opcode, Some(second)).len, 2)
            }
            len => (usize::from(len), 1),
        };
        if index < first + len {
            let run = Run::decode(opcode, registers.get(at + 1));
            return Ok(Found { run, first, at, before });
        }
        before = at;
        at += bytes;
        first += len;
    }
}

/// What it takes to raise a register to what an element makes it. `longest` is the limit for all registers, in bytes.
///
/// # Errors
/// [`Corrupt`] when no opcode stands for the register.
#[inline]
pub fn raise(registers: &[u8], Place { index, run: value }: Place, longest: usize) -> Result<Raise, Corrupt> {
    if value > VALUE_MAX {
        return Ok(Raise::NotSparse);
    }
    let Found { run, first, at, before } = find(registers, index)?;
    if run.value >= value {
        return Ok(Raise::None);
    }
    let mut replacement = Replacement::new();
    replacement.extend(registers[before..at].iter().copied());
    let start = replacement.len();
    push_run(&mut replacement, run.value, index - first);
    replacement.push(value_opcode(value, 1));
    push_run(&mut replacement, run.value, first + run.len - 1 - index);
    let opcodes = replacement.len() - start;
    if opcodes > run.bytes() && registers.len() - run.bytes() + opcodes > longest {
        return Ok(Raise::NotSparse);
    }
    let behind = at + run.bytes();
    let end = registers.len().min(behind + JOIN_BYTES);
    replacement.extend(registers[behind..end].iter().copied());
    join(&mut replacement);
    Ok(Raise::Replace(before..end, replacement))
}

/// Appends the opcode of a run that was part of a longer one.
#[inline]
fn push_run(opcodes: &mut Replacement, value: u8, len: usize) {
    match (value, len) {
        (_, 0) => {}
        (0, 1..=SHORT_ZEROS_MAX) => opcodes.push((len - 1) as u8),
        (0, _) => {
            let [low, high, ..] = (len - 1).to_le_bytes();
            opcodes.push(LONG_ZEROS | high & 0x3f);
            opcodes.push(low);
        }
        (value, len) => opcodes.push(value_opcode(value, len)),
    }
}

/// Joins neighbours of equal value, as far from the first opcode as Redis looks for them.
#[inline]
fn join(opcodes: &mut Replacement) {
    let mut at = 0;
    for _ in 0..JOIN_STEPS {
        let Some(&opcode) = opcodes.get(at) else { return };
        let run = Run::decode(opcode, None);
        if run.value > 0
            && let Some(next) = opcodes.get(at + 1).map(|&next| Run::decode(next, None))
            && next.value == run.value
            && run.len + next.len <= VALUE_LEN_MAX
        {
            // The joined one may be joined again with what follows it.
            opcodes[at + 1] = value_opcode(run.value, run.len + next.len);
            opcodes.remove(at);
        } else {
            at += run.bytes();
        }
    }
}

/// Raises each register of `union` to that of a sparse sketch.
///
/// # Errors
/// [`Corrupt`] when the runs are not as many registers as there are.
pub fn raise_all(union: &mut [u8; REGISTERS], registers: &[u8]) -> Result<(), Corrupt> {
    let mut index = 0;
    for run in runs(registers) {
        let of_run = union.get_mut(index..index + run.len).ok_or(Corrupt)?;
        if run.value > 0 {
            of_run.iter_mut().for_each(|register| *register = run.value.max(*register));
        }
        index += run.len;
    }
    if index == REGISTERS { Ok(()) } else { Err(Corrupt) }
}

/// How many registers hold each number.
///
/// # Errors
/// [`Corrupt`] when the runs are not as many registers as there are.
pub fn histogram(registers: &[u8]) -> Result<Histogram, Corrupt> {
    let mut histogram = [0; VALUES];
    let mut index = 0;
    for run in runs(registers) {
        index += run.len;
        if index > REGISTERS {
            return Err(Corrupt);
        }
        histogram[usize::from(run.value)] += run.len as u32;
    }
    if index == REGISTERS { Ok(histogram) } else { Err(Corrupt) }
}
