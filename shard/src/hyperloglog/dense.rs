//! Registers of 6 bits: four in three bytes, from the lowest bits up.

use super::estimate::{Histogram, VALUES};
use super::{Place, REGISTERS};

const BITS: usize = 6;
const MASK: u8 = (1 << BITS) - 1;

/// Bytes of all registers.
pub const BYTES: usize = REGISTERS * BITS / 8;

/// Splits three bytes into four registers.
#[inline]
fn unpack(&[low, middle, high]: &[u8; 3]) -> [u8; 4] {
    [low & MASK, (low >> 6 | middle << 2) & MASK, (middle >> 4 | high << 4) & MASK, high >> 2]
}

/// The first byte of a register, and the place of its lowest bit there.
#[inline]
fn place(index: usize) -> (usize, u32) {
    (index * BITS / 8, (index * BITS % 8) as u32)
}

/// What a register holds.
#[inline]
pub fn get(registers: &[u8], index: usize) -> u8 {
    let (byte, shift) = place(index);
    let next = registers.get(byte + 1).copied().unwrap_or(0);
    (u16::from_le_bytes([registers[byte], next]) >> shift) as u8 & MASK
}

/// Sets a register.
#[inline]
pub fn set(registers: &mut [u8], index: usize, value: u8) {
    let (byte, shift) = place(index);
    let clear = !(u16::from(MASK) << shift);
    let [low_clear, high_clear] = clear.to_le_bytes();
    let [low, high] = (u16::from(value & MASK) << shift).to_le_bytes();
    registers[byte] = registers[byte] & low_clear | low;
    // A register that ends with its byte may be the last one.
    if let Some(next) = registers.get_mut(byte + 1) {
        *next = *next & high_clear | high;
    }
}

/// Raises a register to what an element makes it; whether it was less.
#[inline]
pub fn raise(registers: &mut [u8], Place { index, run }: Place) -> bool {
    let raised = get(registers, index) < run;
    if raised {
        set(registers, index, run);
    }
    raised
}

/// Raises each register of `union` to that of a dense sketch.
pub fn raise_all(union: &mut [u8; REGISTERS], registers: &[u8]) {
    let (triples, _) = registers.as_chunks::<3>();
    let (fours, _) = union.as_chunks_mut::<4>();
    for (four, triple) in fours.iter_mut().zip(triples) {
        let here = unpack(triple);
        for (register, here) in four.iter_mut().zip(here) {
            *register = here.max(*register);
        }
    }
}

/// How many registers hold each number.
pub fn histogram(registers: &[u8]) -> Histogram {
    // A histogram for each of four neighbours, so that equal registers do not wait for each other.
    let mut histograms = [[0u32; VALUES]; 4];
    let (triples, _) = registers.as_chunks::<3>();
    for triple in triples {
        for (histogram, value) in histograms.iter_mut().zip(unpack(triple)) {
            histogram[usize::from(value)] += 1;
        }
    }
    std::array::from_fn(|value| histograms.iter().map(|histogram| histogram[value]).sum())
}
