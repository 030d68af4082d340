//! The estimate: Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", arXiv:1702.01284,
//! section 4, in the order of floating-point operations that Redis has, so that the estimates are the same.

use super::{LONGEST_RUN, REGISTERS};

/// Numbers that a register of 6 bits can hold.
pub const VALUES: usize = 64;

/// How many registers hold each number.
pub type Histogram = [u32; VALUES];

/// 0.5 / ln 2
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// Estimates how many different elements made registers what they are.
pub fn from_histogram(histogram: &Histogram) -> u64 {
    let registers = REGISTERS as f64;
    let longest = usize::from(LONGEST_RUN);
    let mut z = registers * tau((registers - f64::from(histogram[longest])) / registers);
    for &count in histogram[1..longest].iter().rev() {
        z += f64::from(count);
        z *= 0.5;
    }
    z += registers * sigma(f64::from(histogram[0]) / registers);
    let estimate = ALPHA * registers * registers / z;
    // Registers that no elements can have made give no finite estimate; what C makes of that marks it as out of date.
    if estimate.is_finite() { estimate.round() as u64 } else { i64::MIN as u64 }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if before == z {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if before == z {
            return z / 3.0;
        }
    }
}
