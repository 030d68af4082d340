//! Searches by place against looking at every member.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ruvio_shard::geo::{Area, Place, Shape};
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

use crate::support;

const NOW_MS: i64 = 1_700_000_000_000;

fn run(shard: &mut Shard, line: &str) -> String {
    String::from_utf8_lossy(&support::run(shard, NOW_MS, line)).into_owned()
}

/// The members of a reply that is an array of bulk strings.
fn members(reply: &str) -> Vec<String> {
    reply.split("\r\n").skip(2).step_by(2).map(str::to_owned).collect()
}

proptest! {
    #[test]
    fn a_search_finds_what_is_within(
        // Within a few degrees, far from the poles.
        places in prop::collection::vec((8.0f64..12.0, 48.0f64..52.0), 1..200),
        (longitude, latitude) in (8.0f64..12.0, 48.0f64..52.0),
        (width, height) in (0.1f64..400.0, 0.1f64..400.0),
        circle in any::<bool>(),
        count in 1usize..20,
        packed in any::<bool>(),
    ) {
        let zset_max_listpack_entries = if packed { 1000 } else { 0 };
        let mut shard = support::shard(Settings { zset_max_listpack_entries, ..Settings::default() }, 1);
        let mut model = BTreeMap::new();
        for (number, (longitude, latitude)) in places.iter().enumerate() {
            run(&mut shard, &format!("GEOADD k {longitude} {latitude} m{number}"));
            let place = Place { longitude: *longitude, latitude: *latitude };
            model.insert(format!("m{number}"), Place::from_score(place.to_score()));
        }
        let shape = if circle { Shape::Circle { radius: width } } else { Shape::Box { width, height } };
        let by = if circle { format!("BYRADIUS {width} km") } else { format!("BYBOX {width} {height} km") };
        let area = Area { centre: Place { longitude, latitude }, shape, unit_m: 1000.0 };
        let distances = model.iter().filter_map(|(member, place)| Some((area.distance_m(*place)?, member.clone())));
        let mut nearest: Vec<(f64, String)> = distances.collect();
        nearest.sort_by(|one, other| one.0.total_cmp(&other.0));
        let nearest: Vec<String> = nearest.into_iter().map(|(_, member)| member).collect();

        let search = format!("GEOSEARCH k FROMLONLAT {longitude} {latitude} {by}");
        let mut found = members(&run(&mut shard, &search));
        found.sort_unstable();
        let mut expected = nearest.clone();
        expected.sort_unstable();
        prop_assert_eq!(found, &expected[..]);
        prop_assert_eq!(members(&run(&mut shard, &format!("{search} ASC"))), &nearest[..]);
        let farthest: Vec<String> = nearest.iter().rev().cloned().collect();
        prop_assert_eq!(members(&run(&mut shard, &format!("{search} DESC"))), &farthest[..]);
        let few = nearest.len().min(count);
        prop_assert_eq!(members(&run(&mut shard, &format!("{search} COUNT {count}"))), &nearest[..few]);
        prop_assert_eq!(members(&run(&mut shard, &format!("{search} DESC COUNT {count}"))), &farthest[..few]);
        let any = members(&run(&mut shard, &format!("{search} COUNT {count} ANY")));
        prop_assert!(any.len() == few && any.iter().all(|member| nearest.contains(member)));

        let stored = run(&mut shard, &format!("GEOSEARCHSTORE d k FROMLONLAT {longitude} {latitude} {by} STOREDIST"));
        prop_assert_eq!(stored, format!(":{}\r\n", nearest.len()));
        prop_assert_eq!(members(&run(&mut shard, "ZRANGE d 0 -1")), nearest);
    }
}

#[test]
fn only_what_moves_a_member_is_a_change() {
    let mut shard = support::shard(Settings::default(), 1);
    let mut changes = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        support::call(&mut shard, NOW_MS, Protocol::Resp2, &words).1
    };
    assert_eq!(changes("GEOADD k 1 2 a 3 4 b"), 1);
    assert_eq!(changes("GEOADD k 1 2 a 3 4 b"), 0);
    assert_eq!(changes("GEOADD k NX 5 6 a"), 0);
    assert_eq!(changes("GEOADD k XX 5 6 c"), 0);
    assert_eq!(changes("GEOADD k 1 2 a 3 91 b"), 0, "an error");
    assert_eq!(changes("GEOADD k 5 6 a"), 1);
    assert_eq!(changes("GEORADIUS k 5 6 1 km STORE d"), 1);
    assert_eq!(changes("GEORADIUS k 50 6 1 km STORE d"), 1, "the key is gone");
    assert_eq!(changes("GEORADIUS k 50 6 1 km STORE d"), 0);
}
