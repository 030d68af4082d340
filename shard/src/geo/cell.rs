//! The grid: a cell is a prefix of the interleaved bits of longitude and latitude.

use super::{LATITUDE_MAX, LONGITUDE_MAX, Place};

/// Bits of latitudes: every other one from the lowest on.
const LATITUDE_BITS: u64 = 0x5555_5555_5555_5555;

/// Bits of longitudes.
const LONGITUDE_BITS: u64 = !LATITUDE_BITS;

/// A cell of the grid that divides the map into 2^steps columns and as many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    bits: u64,
    steps: u32,
}

impl Cell {
    /// Steps of the finest grid.
    pub const FINEST: u32 = 26;

    /// The cell of the map that a place is in.
    #[inline]
    pub fn of(place: Place, steps: u32) -> Cell {
        Cell::of_grid(place, LATITUDE_MAX, steps)
    }

    /// The cell that a place is in, of a grid that ends at latitudes of its own.
    #[inline]
    pub fn of_grid(place: Place, latitude_max: f64, steps: u32) -> Cell {
        let fixed_point = |degrees: f64, max: f64| {
            let offset = (degrees + max) / (max + max);
            (offset * (1u64 << steps) as f64) as u32
        };
        let latitude = fixed_point(place.latitude, latitude_max);
        let longitude = fixed_point(place.longitude, LONGITUDE_MAX);
        Cell { bits: spread(latitude) | spread(longitude) << 1, steps }
    }

    /// The cell of the finest grid with this number.
    #[inline]
    pub fn with_bits(bits: u64) -> Cell {
        Cell { bits, steps: Cell::FINEST }
    }

    /// Its number.
    #[inline]
    pub fn bits(self) -> u64 {
        self.bits
    }

    /// The steps of its grid.
    #[inline]
    pub fn steps(self) -> u32 {
        self.steps
    }

    /// The scores of the places in it: from the first one to before the second one.
    pub fn scores(self) -> (f64, f64) {
        let align = |bits: u64| (bits << (2 * (Cell::FINEST - self.steps))) as f64;
        (align(self.bits), align(self.bits.wrapping_add(1)))
    }

    /// Its least and greatest longitude, and its least and greatest latitude, in degrees.
    #[inline]
    pub fn bounds(self) -> ((f64, f64), (f64, f64)) {
        let steps = (1u64 << self.steps) as f64;
        let degrees = |index: u32, max: f64| -max + (f64::from(index) / steps) * (max + max);
        let range = |index: u32, max: f64| (degrees(index, max), degrees(index.wrapping_add(1), max));
        (range(gather(self.bits >> 1), LONGITUDE_MAX), range(gather(self.bits), LATITUDE_MAX))
    }

    /// The cell so many columns to the east (negative: to the west) and rows to the north (negative: to the south), at
    /// most one each. The map goes on behind its edges from the other side.
    pub fn neighbour(self, east: i32, north: i32) -> Cell {
        let used = u64::MAX >> (u64::BITS - 2 * self.steps);
        let step = |bits: u64, of: u64, others: u64, direction: i32| match direction {
            0 => bits & of,
            // With all other bits set a carry passes through them, and with none a borrow does.
            1.. => (bits & of).wrapping_add((others & used).wrapping_add(1)) & of & used,
            _ => (bits & of | others & used).wrapping_sub((others & used).wrapping_add(1)) & of & used,
        };
        let longitude = step(self.bits, LONGITUDE_BITS, LATITUDE_BITS, east);
        let latitude = step(self.bits, LATITUDE_BITS, LONGITUDE_BITS, north);
        Cell { bits: longitude | latitude, steps: self.steps }
    }
}

/// Puts a zero bit before each bit.
#[inline]
fn spread(bits: u32) -> u64 {
    let mut spread = u64::from(bits);
    spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff;
    spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
    spread = (spread | spread << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    spread = (spread | spread << 2) & 0x3333_3333_3333_3333;
    (spread | spread << 1) & LATITUDE_BITS
}

/// Takes every other bit, from the lowest on.
#[inline]
fn gather(bits: u64) -> u32 {
    let mut gathered = bits & LATITUDE_BITS;
    gathered = (gathered | gathered >> 1) & 0x3333_3333_3333_3333;
    gathered = (gathered | gathered >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    gathered = (gathered | gathered >> 4) & 0x00ff_00ff_00ff_00ff;
    gathered = (gathered | gathered >> 8) & 0x0000_ffff_0000_ffff;
    (gathered | gathered >> 16) as u32
}
