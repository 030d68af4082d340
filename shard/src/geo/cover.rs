//! Which cells cover an area, and whether a place is in it.

use arrayvec::ArrayVec;

use super::{Cell, EARTH_RADIUS_M, Place, degrees, radians};

/// Half of the equator on a map by Mercator's projection, in metres.
const MERCATOR_MAX_M: f64 = 20_037_726.37;

/// The cells around one, in the order in which they are searched: steps to the east and to the north.
const NEIGHBOURS: [(i32, i32); 8] = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];

/// The form of an area. Lengths are in a unit of the client's choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// All places within this distance.
    Circle {
        /// The distance.
        radius: f64,
    },
    /// All places within half of these distances along the meridians and along their own parallels.
    Box {
        /// From west to east.
        width: f64,
        /// From south to north.
        height: f64,
    },
}

/// An area around a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// The middle.
    pub centre: Place,
    /// The form.
    pub shape: Shape,
    /// The unit of its lengths, in metres.
    pub unit_m: f64,
}

/// An area's bounds in degrees, about: they are not cut off at the map's edges.
struct Bounds {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

impl Area {
    /// The distance of a place from the middle, in metres, if it is in the area.
    pub fn distance_m(&self, place: Place) -> Option<f64> {
        match self.shape {
            Shape::Circle { radius } => {
                let distance_m = self.centre.distance_m(place);
                (distance_m <= radius * self.unit_m).then_some(distance_m)
            }
            Shape::Box { width, height } => {
                if place.latitude_distance_m(self.centre) > height * self.unit_m / 2.0 {
                    return None;
                }
                let on_parallel = Place { longitude: self.centre.longitude, latitude: place.latitude };
                if place.distance_m(on_parallel) > width * self.unit_m / 2.0 {
                    return None;
                }
                Some(self.centre.distance_m(place))
            }
        }
    }

    fn bounds(&self) -> Bounds {
        let Place { longitude, latitude } = self.centre;
        let (width, height) = match self.shape {
            Shape::Circle { radius } => (radius, radius),
            Shape::Box { width, height } => (width / 2.0, height / 2.0),
        };
        let (width_m, height_m) = (self.unit_m * width, self.unit_m * height);
        let latitudes = degrees(height_m / EARTH_RADIUS_M);
        // The parallel that is cut off on the pole's side is the shorter one, so it spans more degrees.
        let widest = if latitude < 0.0 { latitude - latitudes } else { latitude + latitudes };
        let longitudes = degrees(width_m / EARTH_RADIUS_M / radians(widest).cos());
        Bounds {
            west: longitude - longitudes,
            east: longitude + longitudes,
            south: latitude - latitudes,
            north: latitude + latitudes,
        }
    }

    /// How fine the grid may be so that a cell and its neighbours cover the area, about.
    fn steps(&self) -> u32 {
        let reach = match self.shape {
            Shape::Circle { radius } => radius,
            Shape::Box { width, height } => ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt(),
        };
        let mut reach_m = reach * self.unit_m;
        if reach_m == 0.0 {
            return Cell::FINEST;
        }
        let mut steps = 1;
        while reach_m < MERCATOR_MAX_M {
            reach_m *= 2.0;
            steps += 1;
        }
        steps -= 2;
        // Towards the poles a cell is narrower than on the map.
        let latitude = self.centre.latitude.abs();
        steps -= i32::from(latitude > 66.0) + i32::from(latitude > 80.0);
        steps.clamp(1, Cell::FINEST as i32) as u32
    }

    /// The cells to be searched for the area's places, in order.
    pub fn cells(&self) -> ArrayVec<Cell, 9> {
        let bounds = self.bounds();
        let mut cell = Cell::of(self.centre, self.steps());
        if cell.steps() > 1 && !self.reaches(cell, &bounds) {
            cell = Cell::of(self.centre, cell.steps() - 1);
        }
        let ((west, east), (south, north)) = cell.bounds();
        let is_useless = |(to_east, to_north): (i32, i32)| {
            cell.steps() >= 2
                && (to_north < 0 && south < bounds.south
                    || to_north > 0 && north > bounds.north
                    || to_east < 0 && west < bounds.west
                    || to_east > 0 && east > bounds.east)
        };
        let mut cells = ArrayVec::new();
        cells.push(cell);
        for direction in NEIGHBOURS {
            if is_useless(direction) {
                continue;
            }
            let neighbour = cell.neighbour(direction.0, direction.1);
            // On a coarse grid the neighbours on both sides may be one. As in Redis only the last one is looked at, and
            // never the cell itself.
            if cells.len() == 1 || cells.last() != Some(&neighbour) {
                cells.push(neighbour);
            }
        }
        cells
    }

    /// Whether the cells next to the one in the middle reach as far as the area.
    fn reaches(&self, cell: Cell, bounds: &Bounds) -> bool {
        let longitudes = |east| cell.neighbour(east, 0).bounds().0;
        let latitudes = |north| cell.neighbour(0, north).bounds().1;
        let falls_short = latitudes(1).1 < bounds.north
            || latitudes(-1).0 > bounds.south
            || longitudes(1).1 < bounds.east
            || longitudes(-1).0 > bounds.west;
        !falls_short
    }
}
