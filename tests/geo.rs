//! The geo commands, option by option.

use crate::support::{replies, replies_resp3};

const SICILY: &str = r"
    GEOADD {t}k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 13.583333 37.316667 Agrigento => :3
";

#[test]
fn members_are_added_with_their_places() {
    replies(
        r#"
        GEOADD k 13.361389 38.115556 Palermo => :1
        GEOADD k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :1
        GEOADD k CH 13.361389 38.2 Palermo 15.087269 37.502669 Catania => :1
        GEOADD k NX CH 1 2 Palermo 3 4 new => :1
        GEOADD k XX CH 1 2 Palermo 3 4 other => :1
        ZRANGE k 0 -1 => [Palermo new Catania]
        ZSCORE k Catania => 3479447370796909
        GEOADD k XX NX 1 2 a => -ERR syntax error
        GEOADD k 1 2 a 3 => -ERR syntax error
        GEOADD k NX CH NX CH => -ERR syntax error
        GEOADD k 1 x a => -ERR value is not a valid float
        GEOADD k 181 2 a => -ERR invalid longitude,latitude pair 181.000000,2.000000
        GEOADD k 1 2 a 1 -85.06 b => -ERR invalid longitude,latitude pair 1.000000,-85.060000
        ZCARD k => :3
        GEOADD k -180 -85.05112878 corner 180 85.05112878 other => :2
        GEOPOS k corner => [["-179.99999731779098511" "-85.05112751263942528"]]
        RPUSH list a => :1
        GEOADD list 1 2 a => -WRONGTYPE Operation against a key holding the wrong kind of value
        GEOADD k 1 2 => -ERR wrong number of arguments for 'geoadd' command
    "#,
    );
}

#[test]
fn places_distances_and_hashes_of_members_are_told() {
    let script = r#"
        GEOPOS {t}k Palermo nobody => [["13.36138933897018433" "38.11555639549629859"] nil-array]
        GEOPOS {t}k => []
        GEOPOS {t}missing a => [nil-array]
        GEOHASH {t}k Palermo nobody Catania => [sqc8b49rny0 nil sqdtr74hyu0]
        GEOHASH {t}missing a => [nil]
        GEODIST {t}k Palermo Catania => "166274.1516"
        GEODIST {t}k Palermo Catania km => "166.2742"
        GEODIST {t}k Palermo Catania FT => "545518.8700"
        GEODIST {t}k Palermo Catania mi => "103.3182"
        GEODIST {t}k Palermo Palermo => "0.0000"
        GEODIST {t}k Palermo nobody => nil
        GEODIST {t}missing a b => nil
        GEODIST {t}k Palermo Catania ells => -ERR unsupported unit provided. please use M, KM, FT, MI
        GEODIST {t}k Palermo Catania m m => -ERR syntax error
        RPUSH {t}list a => :1
        GEOPOS {t}list a => -WRONGTYPE Operation against a key holding the wrong kind of value
        GEOHASH {t}list a => -WRONGTYPE Operation against a key holding the wrong kind of value
        GEODIST {t}list a b => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#;
    replies(&[SICILY, script].concat());
    let script = "
        GEOPOS {t}k Palermo nobody => [[,13.36138933897018433 ,38.11555639549629859] nil]
        GEODIST {t}k Palermo Catania km => 166.2742
        GEORADIUS {t}k 15 37 100 km WITHDIST WITHCOORD => [[Catania 56.4413 [,15.08726745843887329 ,37.50266842333162032]]]
    ";
    replies_resp3(&[SICILY, script].concat());
}

#[test]
fn searches_find_members_within_circles_and_boxes() {
    let script = r#"
        GEOSEARCH {t}k FROMLONLAT 15 37 BYRADIUS 200 km ASC => [Catania Agrigento Palermo]
        GEOSEARCH {t}k FROMLONLAT 15 37 BYRADIUS 200 km DESC => [Palermo Agrigento Catania]
        GEOSEARCH {t}k FROMMEMBER Palermo BYRADIUS 100 KM ASC => [Palermo Agrigento]
        GEOSEARCH {t}k FROMLONLAT 15 37 BYBOX 400 400 km ASC COUNT 2 => [Catania Agrigento]
        GEOSEARCH {t}k FROMLONLAT 15 37 BYBOX 50 50 km => []
        GEOSEARCH {t}k FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 => [Catania]
        GEOSEARCH {t}k FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 ANY WITHHASH => [[Agrigento :3479030013248308]]
        GEOSEARCH {t}k FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 WITHDIST WITHHASH WITHCOORD => [[Catania "56.4413" :3479447370796909 ["15.08726745843887329" "37.50266842333162032"]]]
        GEORADIUS {t}k 15 37 200 km ASC COUNT 2 WITHDIST => [[Catania "56.4413"] [Agrigento "130.4235"]]
        GEORADIUS_RO {t}k 15 37 100 km => [Catania]
        GEORADIUSBYMEMBER {t}k Palermo 100 km ASC => [Palermo Agrigento]
        GEORADIUSBYMEMBER_RO {t}k Palermo 100 km DESC => [Agrigento Palermo]
        GEOSEARCH {t}missing FROMMEMBER a BYRADIUS 1 m => []
        GEORADIUSBYMEMBER {t}missing a x y => []
        GEOSEARCH {t}k FROMMEMBER nobody BYRADIUS 1 m => -ERR could not decode requested zset member
        GEOSEARCH {t}k FROMMEMBER Palermo FROMLONLAT 1 2 BYRADIUS 1 m => -ERR syntax error
        GEOSEARCH {t}k FROMLONLAT 1 2 BYRADIUS 1 m BYBOX 1 1 m => -ERR syntax error
        GeoSearch {t}k BYRADIUS 1 m ASC ASC => -ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GeoSearch
        GEOSEARCH {t}k FROMLONLAT 1 2 ASC ASC => -ERR exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCH
        GEOSEARCH {t}k FROMLONLAT 1 2 BYRADIUS 1 m ANY => -ERR the ANY argument requires COUNT argument
        GEOSEARCH {t}k FROMLONLAT 1 2 BYRADIUS 1 m COUNT 0 => -ERR COUNT must be > 0
        GEOSEARCH {t}k FROMLONLAT 1 2 BYRADIUS 1 m STOREDIST => -ERR syntax error
        GEOSEARCH {t}k FROMLONLAT 1 99 BYRADIUS 1 m => -ERR invalid longitude,latitude pair 1.000000,99.000000
        GEOSEARCH {t}k FROMLONLAT 1 2 BYRADIUS -1 m => -ERR radius cannot be negative
        GEOSEARCH {t}k FROMLONLAT 1 2 BYRADIUS x m => -ERR need numeric radius
        GEOSEARCH {t}k FROMLONLAT 1 2 BYBOX x 1 m => -ERR need numeric width
        GEOSEARCH {t}k FROMLONLAT 1 2 BYBOX 1 x m => -ERR need numeric height
        GEOSEARCH {t}k FROMLONLAT 1 2 BYBOX 1 -1 m => -ERR height or width cannot be negative
        GEORADIUS {t}k 1 2 3 ells => -ERR unsupported unit provided. please use M, KM, FT, MI
        GEORADIUS_RO {t}k 1 2 3 km STORE {t}d => -ERR syntax error
        RPUSH {t}list a => :1
        GEOSEARCH {t}list FROMLONLAT x y BYRADIUS 1 m => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#;
    replies(&[SICILY, script].concat());
}

#[test]
fn found_members_are_stored() {
    let script = r#"
        GEOSEARCHSTORE {t}d {t}k FROMLONLAT 15 37 BYRADIUS 150 km => :2
        ZRANGE {t}d 0 -1 WITHSCORES => [Agrigento 3479030013248308 Catania 3479447370796909]
        EXPIREAT {t}d 9000000000 => :1
        GEOSEARCHSTORE {t}d {t}k FROMLONLAT 15 37 BYBOX 400 400 km COUNT 1 STOREDIST => :1
        TTL {t}d => :-1
        7.2| ZRANGE {t}d 0 -1 WITHSCORES => [Catania 56.4412578701582]
        GEORADIUS {t}k 15 37 150 km STORE {t}d => :2
        ZRANGE {t}d 0 -1 => [Agrigento Catania]
        GEORADIUSBYMEMBER {t}k Palermo 100 km STOREDIST {t}d => :2
        ZRANGE {t}d 0 -1 => [Palermo Agrigento]
        GEORADIUSBYMEMBER {t}k Palermo 100 km STORE {t}k => :2
        ZCARD {t}k => :2
        GEORADIUS {t}k 1 1 1 m STORE {t}d => :0
        EXISTS {t}d => :0
        SET {t}d text => OK
        GEOSEARCHSTORE {t}d {t}missing FROMMEMBER a BYRADIUS 1 m => :0
        EXISTS {t}d => :0
        GEORADIUS {t}k 1 2 3 km STORE {t}d WITHDIST => -ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options
        GEOSEARCHSTORE {t}d {t}k FROMLONLAT 1 2 BYRADIUS 3 km WITHHASH => -ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options
        GEORADIUS {t}k 1 2 3 km STORE => -ERR syntax error
    "#;
    replies(&[SICILY, script].concat());
}

/// Which keys a call has depends on its words: those behind STORE and STOREDIST must be in the slot of the first.
#[test]
fn destinations_are_in_the_slot_of_the_source() {
    if crate::support::against_reference_server() {
        return;
    }
    let script = "
        COMMAND GETKEYS GEORADIUS {t}k 1 2 3 km STORE {t}d => [{t}k {t}d]
        COMMAND GETKEYS GEORADIUSBYMEMBER store 1 2 km => [store]
        GEORADIUS {t}k 15 37 200 km STORE {u}d => -CROSSSLOT Keys in request don't hash to the same slot
        GEORADIUS {t}k 15 37 200 km STORE {t}d STORE {u}d => -CROSSSLOT Keys in request don't hash to the same slot
        GEORADIUS {t}k 15 37 200 km STORE {t}e STORE {t}d => :3
        EXISTS {t}e => :0
        EXISTS {t}d => :1
    ";
    replies(&[SICILY, script].concat());
}
