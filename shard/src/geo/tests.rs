use proptest::prelude::*;

use super::*;

fn places() -> impl Strategy<Value = Place> {
    (-LONGITUDE_MAX..LONGITUDE_MAX, -LATITUDE_MAX..LATITUDE_MAX)
        .prop_map(|(longitude, latitude)| Place { longitude, latitude })
}

fn areas() -> impl Strategy<Value = Area> {
    // Up to about 5000 km: larger ones reach around the globe.
    let lengths = || (0f64..6.7).prop_map(|power| 10f64.powf(power));
    let shapes = prop_oneof![
        lengths().prop_map(|radius| Shape::Circle { radius }),
        (lengths(), lengths()).prop_map(|(width, height)| Shape::Box { width, height }),
    ];
    (places(), shapes, prop_oneof![Just(1.0), Just(0.3048)]).prop_map(|(centre, shape, unit_m)| Area {
        centre,
        shape,
        unit_m,
    })
}

proptest! {
    #[test]
    fn scores_keep_places_to_half_a_metre(place in places()) {
        let kept = Place::from_score(place.to_score());
        prop_assert!((kept.longitude - place.longitude).abs() <= 180.0 / f64::from(1 << 26));
        prop_assert!((kept.latitude - place.latitude).abs() <= LATITUDE_MAX / f64::from(1 << 26));
        prop_assert_eq!(kept.to_score(), place.to_score());
        prop_assert!(place.distance_m(kept) < 0.5);
    }

    #[test]
    fn any_score_is_a_place_on_the_map(score in any::<f64>().prop_filter("a number", |score| !score.is_nan())) {
        let place = Place::from_score(score);
        prop_assert!(Place::new(place.longitude, place.latitude).is_some());
    }

    #[test]
    fn cells_hold_the_scores_of_their_places(place in places(), steps in 1u32..=26) {
        let cell = Cell::of(place, steps);
        let (min, max) = cell.scores();
        prop_assert!((min..max).contains(&place.to_score()));
        let ((west, east), (south, north)) = cell.bounds();
        prop_assert!(west <= place.longitude && place.longitude <= east);
        prop_assert!(south <= place.latitude && place.latitude <= north);
    }

    #[test]
    fn neighbours_are_next_to_each_other(place in places(), steps in 2u32..=26) {
        let cell = Cell::of(place, steps);
        for (east, north) in [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1)] {
            let neighbour = cell.neighbour(east, north);
            prop_assert_ne!(neighbour, cell);
            prop_assert_eq!(neighbour.neighbour(-east, -north), cell);
        }
        let ((_, east), (_, north)) = cell.bounds();
        if east < LONGITUDE_MAX {
            prop_assert_eq!(cell.neighbour(1, 0).bounds().0.0, east);
        }
        if north < LATITUDE_MAX {
            prop_assert_eq!(cell.neighbour(0, 1).bounds().1.0, north);
        }
    }

    #[test]
    fn areas_are_covered(area in areas(), east in -1.0f64..1.0, north in -1.0f64..1.0) {
        // A place about as far away as the area is large, as long as no edge of the map is in between.
        let reach_m = area.unit_m * match area.shape {
            Shape::Circle { radius } => radius,
            Shape::Box { width, height } => width.max(height) / 2.0,
        };
        let span = reach_m / 111_000.0;
        let latitude = area.centre.latitude + north * span;
        let longitude = area.centre.longitude + east * span / radians(latitude).cos().max(0.05);
        let Some(place) = Place::new(longitude, latitude) else { return Ok(()) };
        let place = Place::from_score(place.to_score());
        // Close to the poles the cells do not reach everywhere: so it is with Redis.
        prop_assume!(area.centre.latitude.abs() < 70.0 && latitude.abs() < 70.0);
        if area.distance_m(place).is_some() {
            let score = place.to_score();
            let covers = |cell: &Cell| (cell.scores().0..cell.scores().1).contains(&score);
            prop_assert!(area.cells().iter().any(covers), "{:?} is not searched", place);
        }
    }
}

/// What Redis 7.0.15 makes of the places of its own documentation.
#[test]
fn numbers_are_those_of_redis() {
    let palermo = Place { longitude: 13.361389, latitude: 38.115556 };
    let catania = Place { longitude: 15.087269, latitude: 37.502669 };
    assert_eq!(palermo.to_score(), 3_479_099_956_230_698.0);
    assert_eq!(catania.to_score(), 3_479_447_370_796_909.0);
    let (palermo, catania) = (Place::from_score(palermo.to_score()), Place::from_score(catania.to_score()));
    assert_eq!(palermo.geohash(), *b"sqc8b49rny0");
    assert_eq!(catania.geohash(), *b"sqdtr74hyu0");
    assert_eq!(format!("{:.4}", palermo.distance_m(catania)), "166274.1516");
}

#[test]
fn the_map_ends_before_the_poles() {
    assert!(Place::new(180.0, LATITUDE_MAX).is_some() && Place::new(-180.0, -LATITUDE_MAX).is_some());
    assert!(Place::new(180.1, 0.0).is_none() && Place::new(0.0, 85.06).is_none());
    assert!(Place::new(f64::INFINITY, 0.0).is_none());
}
