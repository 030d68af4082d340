//! Places, held as the scores of sorted sets.

mod add;
mod nearest;
mod options;
mod read;
mod search;

use crate::command::{Begin, Categories, Command, Find, Flags, Group, Handler, KeyFlags, KeySpec, Spec};

const READ_KEY: KeySpec = KeySpec::one(1, KeyFlags::READ.and(KeyFlags::ACCESS));
const READ: &[KeySpec] = &[READ_KEY];
const OVERWRITE: KeyFlags = KeyFlags::OVERWRITE.and(KeyFlags::UPDATE);

const WRITE_OOM: Flags = Flags::WRITE.and(Flags::DENY_OOM);
const STORE_OLD: Flags = WRITE_OOM.and(Flags::MOVABLE_KEYS).and(Flags::DEPRECATED);
const READ_OLD: Flags = Flags::READ_ONLY.and(Flags::DEPRECATED);

const SEARCH_COMPLEXITY: &str = "O(N+log(M)) where N is the number of members in the grid cells that cover the area, and M is the number of members in the area.";

/// The key behind a word of the options, which begin at word `start`.
const fn stored_behind(word: &'static str, start: i32) -> KeySpec {
    KeySpec {
        begin: Begin::Keyword { word, start },
        find: Find::Range { last: 0, step: 1, limit: 0 },
        flags: OVERWRITE,
    }
}

/// What the commands of the family have in common.
const fn command(
    (name, arity, flags): (&'static str, i32, Flags),
    keys: &'static [KeySpec],
    since: &'static str,
    complexity: &'static str,
    summary: &'static str,
    syntax: &'static str,
    run: Handler,
) -> Command {
    let (categories, group) = (Categories::GEO, Group::Geo);
    Command { spec: Spec { name, arity, flags, keys, categories, group, since, complexity, summary, syntax }, run }
}

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    command(
        ("geoadd", -5, WRITE_OOM),
        &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::UPDATE))],
        "3.2.0",
        "O(log(N)) for each member added, where N is the number of members of the sorted set.",
        "Adds members with their places, or moves them.",
        "key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]",
        add::geoadd,
    ),
    command(
        ("geopos", -2, Flags::READ_ONLY),
        READ,
        "3.2.0",
        "O(1) for each member.",
        "Returns the longitude and latitude of members.",
        "key [member [member ...]]",
        read::geopos,
    ),
    command(
        ("geodist", -4, Flags::READ_ONLY),
        READ,
        "3.2.0",
        "O(1)",
        "Returns the distance between two members.",
        "key member1 member2 [M | KM | FT | MI]",
        read::geodist,
    ),
    command(
        ("geohash", -2, Flags::READ_ONLY),
        READ,
        "3.2.0",
        "O(1) for each member.",
        "Returns the standard geohashes of members.",
        "key [member [member ...]]",
        read::geohash,
    ),
    command(
        ("geosearch", -7, Flags::READ_ONLY),
        READ,
        "6.2.0",
        SEARCH_COMPLEXITY,
        "Returns the members in a circle or a box around a place or a member.",
        "key <FROMMEMBER member | FROMLONLAT longitude latitude> \
         <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> \
         [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
        search::geosearch,
    ),
    command(
        ("geosearchstore", -8, WRITE_OOM),
        &[KeySpec::one(1, OVERWRITE), KeySpec::one(2, KeyFlags::READ.and(KeyFlags::ACCESS))],
        "6.2.0",
        SEARCH_COMPLEXITY,
        "Stores the members in a circle or a box around a place or a member.",
        "destination source <FROMMEMBER member | FROMLONLAT longitude latitude> \
         <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> \
         [ASC | DESC] [COUNT count [ANY]] [STOREDIST]",
        search::geosearchstore,
    ),
    command(
        ("georadius", -6, STORE_OLD),
        &[READ_KEY, stored_behind("STORE", 6), stored_behind("STOREDIST", 6)],
        "3.2.0",
        SEARCH_COMPLEXITY,
        "Returns or stores the members in a circle around a place.",
        "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] \
         [ASC | DESC] [STORE key | STOREDIST key]",
        search::georadius,
    ),
    command(
        ("georadiusbymember", -5, STORE_OLD),
        &[READ_KEY, stored_behind("STORE", 5), stored_behind("STOREDIST", 5)],
        "3.2.0",
        SEARCH_COMPLEXITY,
        "Returns or stores the members in a circle around one of them.",
        "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] \
         [STORE key | STOREDIST key]",
        search::georadiusbymember,
    ),
    command(
        ("georadius_ro", -6, READ_OLD),
        READ,
        "3.2.10",
        SEARCH_COMPLEXITY,
        "Returns the members in a circle around a place.",
        "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] \
         [ASC | DESC]",
        search::georadius_ro,
    ),
    command(
        ("georadiusbymember_ro", -5, READ_OLD),
        READ,
        "3.2.10",
        SEARCH_COMPLEXITY,
        "Returns the members in a circle around one of them.",
        "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]",
        search::georadiusbymember_ro,
    ),
];
