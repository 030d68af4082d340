//! Places on the globe as scores of sorted sets.
//!
//! Longitude and latitude are each cut into 2^26 steps, and the bits of both numbers are interleaved into one of 52 bits,
//! which a score holds exactly. Places whose numbers begin with the same bits lie in the same cell of a grid, so an area
//! is a few ranges of scores. All formulas are carried out in Redis's order of operations: the results are the same bit
//! by bit.

mod cell;
mod cover;

pub use cell::Cell;
pub use cover::{Area, Shape};

/// The farthest west and east, in degrees.
pub const LONGITUDE_MAX: f64 = 180.0;

/// The farthest north and south, in degrees: where a square map of the world by Mercator's projection ends.
pub const LATITUDE_MAX: f64 = 85.051_128_78;

/// The earth's quadratic mean radius (WGS 84), in metres.
const EARTH_RADIUS_M: f64 = 6_372_797.560_856;

const RADIANS_A_DEGREE: f64 = std::f64::consts::PI / 180.0;

/// A place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Degrees east.
    pub longitude: f64,
    /// Degrees north.
    pub latitude: f64,
}

impl Place {
    /// A place that a score can stand for.
    pub fn new(longitude: f64, latitude: f64) -> Option<Place> {
        let is_inside = longitude.abs() <= LONGITUDE_MAX && latitude.abs() <= LATITUDE_MAX;
        is_inside.then_some(Place { longitude, latitude })
    }

    /// The score that stands for the place.
    #[inline]
    pub fn to_score(self) -> f64 {
        Cell::of(self, Cell::FINEST).bits() as f64
    }

    /// The place that a score stands for. Any score does for one.
    #[inline]
    pub fn from_score(score: f64) -> Place {
        let (longitude, latitude) = Cell::with_bits(bits_of_score(score)).bounds();
        let middle = |(min, max): (f64, f64), limit: f64| ((min + max) / 2.0).clamp(-limit, limit);
        Place { longitude: middle(longitude, LONGITUDE_MAX), latitude: middle(latitude, LATITUDE_MAX) }
    }

    /// The distance between two places on a sphere, in metres.
    pub fn distance_m(self, other: Place) -> f64 {
        let half_longitude = ((radians(other.longitude) - radians(self.longitude)) / 2.0).sin();
        if half_longitude == 0.0 {
            return self.latitude_distance_m(other);
        }
        let (here, there) = (radians(self.latitude), radians(other.latitude));
        let half_latitude = ((there - here) / 2.0).sin();
        let haversine = half_latitude * half_latitude + here.cos() * there.cos() * half_longitude * half_longitude;
        2.0 * EARTH_RADIUS_M * haversine.sqrt().asin()
    }

    /// The distance between the parallels of two places, in metres.
    #[inline]
    fn latitude_distance_m(self, other: Place) -> f64 {
        EARTH_RADIUS_M * (radians(other.latitude) - radians(self.latitude)).abs()
    }

    /// The standard geohash: eleven characters of 5 bits each, of which the last is always `0` since there are but 52
    /// bits. The standard's grid ends at the poles.
    pub fn geohash(self) -> [u8; 11] {
        const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let bits = Cell::of_grid(self, 90.0, Cell::FINEST).bits();
        std::array::from_fn(|index| match index {
            10 => ALPHABET[0],
            _ => ALPHABET[(bits >> (47 - index * 5) & 0x1f) as usize],
        })
    }
}

/// Degrees in radians.
#[inline]
fn radians(degrees: f64) -> f64 {
    degrees * RADIANS_A_DEGREE
}

/// Radians in degrees. The standard library multiplies by the inverse, which may round to another number.
#[inline]
fn degrees(radians: f64) -> f64 {
    radians / RADIANS_A_DEGREE
}

/// The bits of a score. One that is negative or too large for a cell's number wraps around, as C has it on x86-64.
#[inline]
fn bits_of_score(score: f64) -> u64 {
    const TWO_TO_63: f64 = (1u64 << 63) as f64;
    if score < TWO_TO_63 {
        score as i64 as u64
    } else if score < 2.0 * TWO_TO_63 {
        score as u64
    } else {
        0
    }
}

#[cfg(test)]
mod tests;
