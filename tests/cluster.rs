//! How the server describes itself to cluster-aware clients, and what the ports of single shards answer.

use crate::support::{Options, Server, Value, check};
use std::collections::BTreeSet;

/// Keys with their slots, from the CRC16/XMODEM of the key or of its `{tag}`.
const SLOTS: [(&str, i64); 10] = [
    ("123456789", 12_739),
    ("foo", 12_182),
    ("bar", 5_061),
    ("\"\"", 0),
    ("{user1000}.following", 3_443),
    ("{user1000}.followers", 3_443),
    ("foo{}{bar}", 8_363),
    ("foo{{bar}}zap", 4_015),
    ("foo{bar}{zap}", 5_061),
    ("foo{bar", 15_278),
];

/// A key whose slot belongs to `shard`.
fn key_of_shard(server: &Server, shard: u16) -> String {
    let mut connection = server.connect_to_shard(shard);
    let keys = (0..).map(|index| format!("key:{index}"));
    let mut owned = keys.filter(|key| !matches!(connection.line(&format!("GET {key}")), Value::Error(_)));
    owned.next().expect("some key belongs to each shard")
}

#[test]
fn keyslot_hashes_the_tag_or_the_whole_key() {
    let server = Server::start();
    let mut connection = server.connect();
    for (key, slot) in SLOTS {
        assert_eq!(connection.line(&format!("CLUSTER KEYSLOT {key}")), Value::Integer(slot), "{key}");
    }
}

#[test]
fn slots_are_divided_among_the_shard_ports() {
    for shards in [1, 2, 3] {
        let server = Server::with(&Options { shards, ..Options::default() });
        let slots = server.connect().line("CLUSTER SLOTS");
        let mut next_slot = 0;
        let mut ports = BTreeSet::new();
        let mut ids = BTreeSet::new();
        let mut ranges: Vec<&[Value]> = slots.elements().iter().map(Value::elements).collect();
        ranges.sort_by_key(|range| range[0].integer());
        for range in ranges {
            let [first, last, node] = range else { panic!("a range has one node and no replica: {range:?}") };
            assert_eq!(first.integer(), next_slot, "every slot belongs to one shard");
            next_slot = last.integer() + 1;
            let [address, port, id, metadata] = node.elements() else { panic!("four parts of a node: {node:?}") };
            assert_eq!(address.text(), "127.0.0.1");
            assert!(id.text().len() == 40 && id.text().bytes().all(|byte| byte.is_ascii_hexdigit()), "{id:?}");
            assert_eq!(metadata.elements().len(), 0);
            ports.insert(port.integer());
            ids.insert(id.text().to_owned());
        }
        assert_eq!(next_slot, 16_384);
        assert_eq!(ports, (0..shards).map(|shard| i64::from(server.shard_port(shard))).collect());
        assert_eq!(ids.len(), usize::from(shards));
    }
}

#[test]
fn shards_nodes_and_slots_agree() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut from_slots: Vec<(i64, i64, i64, String)> = Vec::new();
    for range in connection.line("CLUSTER SLOTS").elements() {
        let [first, last, node] = range.elements() else { panic!("one node") };
        let node = node.elements();
        from_slots.push((first.integer(), last.integer(), node[1].integer(), node[2].text().to_owned()));
    }
    let mut from_shards = Vec::new();
    for shard in connection.line("CLUSTER SHARDS").elements() {
        let [node] = shard.field("nodes").elements() else { panic!("one node a shard") };
        assert_eq!(node.field("ip").text(), "127.0.0.1");
        assert_eq!(node.field("endpoint").text(), "127.0.0.1");
        assert_eq!(node.field("role").text(), "master");
        assert_eq!(node.field("health").text(), "online");
        assert!(node.field("replication-offset").integer() >= 0);
        for range in shard.field("slots").elements().chunks(2) {
            let port = node.field("port").integer();
            from_shards.push((range[0].integer(), range[1].integer(), port, node.field("id").text().to_owned()));
        }
    }
    let mut from_nodes = Vec::new();
    let nodes = connection.line("CLUSTER NODES");
    for line in nodes.text().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(words.len() >= 8, "{line}");
        let (address, bus_port) = words[1].split_once('@').expect("address@bus port");
        let port = address.strip_prefix("127.0.0.1:").expect("the address").parse().expect("a port");
        assert!(bus_port.split(',').next().is_some_and(|port| port.parse::<u32>().is_ok()), "{line}");
        assert!(words[2].split(',').any(|flag| flag == "master"), "{line}");
        assert_eq!((words[3], words[7]), ("-", "connected"), "{line}");
        for range in &words[8..] {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            from_nodes.push((first.parse().expect("a slot"), last.parse().expect("a slot"), port, words[0].to_owned()));
        }
    }
    from_slots.sort();
    from_shards.sort();
    from_nodes.sort();
    assert_eq!(from_slots, from_shards);
    assert_eq!(from_slots, from_nodes);
    let myself: Vec<&str> = nodes.text().lines().filter(|line| line.contains("myself")).collect();
    let [myself] = myself[..] else { panic!("one line is myself: {nodes:?}") };
    let words: Vec<&str> = myself.split(' ').collect();
    assert!(words[1].starts_with(&format!("127.0.0.1:{}@", server.port())), "the shared port is a node: {myself}");
    assert_eq!(words.len(), 8, "the shared port owns no slot: {myself}");
    assert_eq!(connection.line("CLUSTER MYID").text(), words[0]);
}

#[test]
fn each_shard_port_knows_its_own_name() {
    let server = Server::start();
    let mut names = BTreeSet::new();
    let mut shard_names = BTreeSet::new();
    for shard in 0..2 {
        let mut connection = server.connect_to_shard(shard);
        let id = connection.line("CLUSTER MYID").text().to_owned();
        let nodes = connection.line("CLUSTER NODES");
        let myself = nodes.text().lines().find(|line| line.contains("myself")).expect("one line is myself");
        assert!(myself.starts_with(&format!("{id} 127.0.0.1:{}@", server.shard_port(shard))), "{myself}");
        let shard_id = connection.line("CLUSTER MYSHARDID").text().to_owned();
        assert_eq!(shard_id.len(), 40);
        names.insert(id);
        shard_names.insert(shard_id);
    }
    assert_eq!((names.len(), shard_names.len()), (2, 2));
}

#[test]
fn the_state_of_the_cluster_is_ok() {
    let server = Server::start();
    let mut connection = server.connect();
    let info = connection.line("CLUSTER INFO");
    for line in [
        "cluster_state:ok",
        "cluster_slots_assigned:16384",
        "cluster_slots_ok:16384",
        "cluster_slots_pfail:0",
        "cluster_slots_fail:0",
        "cluster_known_nodes:3",
        "cluster_size:2",
    ] {
        assert!(info.text().lines().any(|found| found == line), "{line} in {info:?}");
    }
    assert!(connection.line("INFO cluster").text().contains("cluster_enabled:1\r\n"));
}

#[test]
fn keys_are_counted_and_listed_by_slot() {
    let server = Server::start();
    let mut connection = server.connect();
    check(
        &mut connection,
        r#"
        MSET {bar}a 1 {bar}b 2 {bar}c 3 => OK
        SET foo 1 => OK
        CLUSTER COUNTKEYSINSLOT 5061 => :3
        CLUSTER COUNTKEYSINSLOT 12182 => :1
        CLUSTER COUNTKEYSINSLOT 5062 => :0
        CLUSTER GETKEYSINSLOT 5061 10 => ?[{bar}a {bar}b {bar}c]
        CLUSTER GETKEYSINSLOT 12182 10 => [foo]
        CLUSTER GETKEYSINSLOT 5061 0 => []
        DEL {bar}a => :1
        CLUSTER COUNTKEYSINSLOT 5061 => :2
        CLUSTER COUNTKEYSINSLOT 16384 => -ERR Invalid slot
        CLUSTER COUNTKEYSINSLOT -1 => -ERR Invalid slot
        CLUSTER COUNTKEYSINSLOT x => -ERR value is not an integer or out of range
        CLUSTER GETKEYSINSLOT 1 -1 => -ERR Invalid slot or number of keys
        CLUSTER GETKEYSINSLOT 99999 1 => -ERR Invalid slot or number of keys
        CLUSTER NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try CLUSTER HELP.
        CLUSTER KEYSLOT => -ERR wrong number of arguments for 'cluster|keyslot' command
        CLUSTER SLOTS x => -ERR wrong number of arguments for 'cluster|slots' command
        CLUSTER => -ERR wrong number of arguments for 'cluster' command
        CLUSTER LINKS => []
        READONLY => OK
        READWRITE => OK
        ASKING => OK
    "#,
    );
    assert_eq!(connection.line("CLUSTER GETKEYSINSLOT 5061 1").elements().len(), 1);
}

#[test]
fn a_shard_port_sends_clients_to_the_owner_of_a_slot() {
    let server = Server::start();
    let (first, second) = (key_of_shard(&server, 0), key_of_shard(&server, 1));
    let mut connection = server.connect_to_shard(0);
    let slot = connection.line(&format!("CLUSTER KEYSLOT {second}")).integer();
    let moved = format!("MOVED {slot} 127.0.0.1:{}", server.shard_port(1));
    assert_eq!(connection.line(&format!("SET {first} v")), Value::Simple("OK".to_owned()));
    assert_eq!(connection.line(&format!("SET {second} v")).error(), moved);
    assert_eq!(connection.line(&format!("GET {second}")).error(), moved);
    assert_eq!(connection.line(&format!("MGET {{{second}}}a {{{second}}}b")).error(), moved);
    assert_eq!(connection.line("SELECT 5"), Value::Simple("OK".to_owned()), "databases exist on every port");
    assert_eq!(connection.line(&format!("SET {first} five")), Value::Simple("OK".to_owned()));
    assert_eq!(connection.line(&format!("GET {second}")).error(), moved, "each database has the same slot map");
    connection.line("ASKING");
    assert_eq!(connection.line(&format!("GET {second}")).error(), moved, "nothing is being moved");
    let mut other = server.connect_to_shard(1);
    let slot = connection.line(&format!("CLUSTER KEYSLOT {first}")).integer();
    let moved = format!("MOVED {slot} 127.0.0.1:{}", server.shard_port(0));
    assert_eq!(other.line(&format!("DEL {first}")).error(), moved);
    // Wrong arity and unknown commands are told before the slot matters.
    let error = other.line(&format!("GET {first} x"));
    assert_eq!(error.error(), "ERR wrong number of arguments for 'get' command");
    assert_eq!(server.info_number("forwarded_commands"), 0, "a shard's port forwards no command with a key");
}

#[test]
fn keys_of_different_slots_are_refused_on_every_port_and_number_of_shards() {
    for shards in [1, 2] {
        let server = Server::with(&Options { shards, ..Options::default() });
        let mut connections = vec![server.connect()];
        connections.extend((0..shards).map(|shard| server.connect_to_shard(shard)));
        for connection in &mut connections {
            for command in [
                "MSET a 1 b 2",
                "MGET a b",
                "DEL a b",
                "EXISTS a b c",
                "RENAME a b",
                "COPY a b",
                "SUNIONSTORE d a b",
                "SINTERCARD 2 a b",
                "ZUNIONSTORE d 2 a b",
                "LMOVE a b LEFT LEFT",
                "LMPOP 2 a b LEFT",
                "MSETNX a 1 b 2",
                "TRANSFER a b 1",
                "ZMOVEDUE a b 1",
            ] {
                let reply = connection.line(command);
                assert_eq!(
                    format!("{reply:?}"),
                    "-CROSSSLOT Keys in request don't hash to the same slot",
                    "{command} with {shards} shards"
                );
            }
        }
        assert_eq!(server.connect().line("DBSIZE"), Value::Integer(0), "nothing was written");
    }
}

#[test]
fn commands_without_keys_speak_for_the_whole_process_on_every_port() {
    let server = Server::start();
    let mut shared = server.connect();
    for index in 0..200 {
        shared.line(&format!("SET key:{index} v"));
    }
    for shard in 0..2 {
        let mut connection = server.connect_to_shard(shard);
        assert_eq!(connection.line("DBSIZE"), Value::Integer(200));
        assert_eq!(connection.line("KEYS *").elements().len(), 200);
        assert!(connection.line("INFO keyspace").text().contains("db0:keys=200,"));
    }
    server.connect_to_shard(1).line("FLUSHALL");
    assert_eq!(shared.line("DBSIZE"), Value::Integer(0));
}
