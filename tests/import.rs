//! What `ruvio import` makes of RDB files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::support::dump_file::{DumpFile, listpack, ziplist};
use crate::support::{Connection, PortBlock, Server, Value, encode_command, wait_until};

const DATABASES: usize = 16;

/// A key that is no other's.
const COPY: &[u8] = b"copy of a value";

/// Runs `ruvio import` for two shards.
fn import(file: &Path, directory: &Path) -> Output {
    import_for(2, file, directory)
}

fn import_for(shards: usize, file: &Path, directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ruvio"));
    command.arg("import").arg(file).arg("--dir").arg(directory).args(["--shards", &shards.to_string()]);
    command.output().expect("run ruvio import")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The lines that a successful import has printed.
#[track_caller]
fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stderr), "", "where standard error is no terminal there is no bar");
    text(&output.stdout).lines().map(str::to_owned).collect()
}

/// The one line that an import has failed with.
#[track_caller]
fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = text(&output.stderr);
    assert_eq!(error.lines().count(), 1, "{error}");
    error.trim_end().to_owned()
}

/// Starts a server on the data in `folder/data`, which is divided into two shards.
fn serve(folder: TempDir) -> Server {
    let ports = PortBlock::claim();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ruvio"));
    for (flag, value) in [("--port", ports.port(0)), ("--shards", 2), ("--shard-port-base", ports.port(1))] {
        command.arg(flag).arg(value.to_string());
    }
    command.arg("--dir").arg(folder.path().join("data")).args(["--durability", "everysec"]);
    let server = Server::from_command(command, ports, folder);
    wait_until("the data to be read", || server.info_number("loading") == 0);
    server
}

fn folder() -> TempDir {
    TempDir::with_prefix("ruvio-import-").expect("a folder")
}

/// Writes a file and imports it; the folder has the data.
fn imported(bytes: &[u8]) -> (TempDir, Vec<String>) {
    let folder = folder();
    let file = folder.path().join("dump.rdb");
    fs::write(&file, bytes).expect("write a file");
    let output = import(&file, &folder.path().join("data"));
    let lines = lines(&output);
    (folder, lines)
}

/// What can be compared of a key's value, whatever its type.
fn content(connection: &mut Connection, key: &[u8]) -> Value {
    let kind = connection.call(&[b"TYPE", key]);
    match kind.text() {
        "string" => connection.call(&[b"GET", key]),
        "list" => connection.call(&[b"LRANGE", key, b"0", b"-1"]),
        "set" => connection.call(&[b"SMEMBERS", key]).sorted(),
        "hash" => connection.call(&[b"HGETALL", key]).sorted_pairs(),
        "zset" => {
            // Redis 7.0 shows 17 digits of a score, and later versions the fewest: compared by value.
            let members = connection.call(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]);
            let shown = members.elements().chunks(2).map(|pair| {
                let score: f64 = pair[1].text().parse().expect("a score");
                Value::Bulk([pair[0].bytes(), format!(" {score:e}").as_bytes()].concat())
            });
            Value::Array(shown.collect())
        }
        _ => kind,
    }
}

fn keys(connection: &mut Connection, database: usize) -> Vec<Vec<u8>> {
    connection.line(&format!("SELECT {database}"));
    let mut keys: Vec<Vec<u8>> = connection.line("KEYS *").elements().iter().map(|key| key.bytes().to_vec()).collect();
    keys.sort();
    keys
}

/// Fills a Redis server with values of every type, in every form it gives them.
fn fill(redis: &mut Connection) {
    let long = "repeated".repeat(2_000);
    let noise: Vec<u8> = (0..1_000_000u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut words: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut add = |line: &[&[u8]]| words.push(line.iter().map(|word| word.to_vec()).collect());
    for integer in ["0", "-128", "127", "-32768", "70000", "-2147483648", "5000000000", "9223372036854775807"] {
        add(&[b"SET", format!("integer:{integer}").as_bytes(), integer.as_bytes()]);
    }
    add(&[b"SET", b"empty", b""]);
    add(&[b"SET", b"", b"the empty key"]);
    add(&[b"SET", b"short", b"value"]);
    add(&[b"SET", b"compressed", long.as_bytes()]);
    add(&[b"SET", b"noise", &noise]);
    add(&[b"SET", long.as_bytes(), b"under a compressed key"]);
    add(&[b"SET", &(0..=255).collect::<Vec<u8>>(), &(0..=255).rev().collect::<Vec<u8>>()]);
    add(&[b"SETBIT", b"bits", b"100000", b"1"]);
    add(&[b"PFADD", b"hyperloglog", b"a", b"b", b"c"]);
    add(&[b"GEOADD", b"places", b"13.36", b"38.11", b"Palermo", b"15.08", b"37.5", b"Catania"]);
    add(&[b"RPUSH", b"list", b"a", b"1", b"-70000", b"5000000000", b"", long.as_bytes()]);
    add(&[b"DEBUG", b"QUICKLIST-PACKED-THRESHOLD", b"100b"]);
    add(&[b"RPUSH", b"list:plain", b"a", &[b'x'; 200], b"b", &[b'y'; 3_000], b"c"]);
    add(&[b"DEBUG", b"QUICKLIST-PACKED-THRESHOLD", b"0"]);
    add(&[b"SADD", b"set:16", b"1", b"-2", b"30000"]);
    add(&[b"SADD", b"set:32", b"1", b"-70000"]);
    add(&[b"SADD", b"set:64", b"1", b"5000000000"]);
    add(&[b"SADD", b"set", b"a", b"12", b"", b"b"]);
    add(&[b"SADD", b"set:long", long.as_bytes()]);
    add(&[b"ZADD", b"sorted", b"1", b"a", b"2.5", b"b", b"-inf", b"c", b"inf", b"d", b"1e300", b"e", b"0.1", b"f"]);
    add(&[b"ZADD", b"sorted:long", b"-0", long.as_bytes(), b"3.141592653589793", b"pi"]);
    add(&[b"HSET", b"hash", b"field", b"value", b"number", b"12", b"", b"empty"]);
    add(&[b"HSET", b"hash:long", b"field", long.as_bytes()]);
    for index in 0..3_000 {
        let number = index.to_string();
        let name = format!("member-{index}");
        let score = (f64::from(index) / 7.0).to_string();
        add(&[b"RPUSH", b"list:large", name.as_bytes()]);
        add(&[b"SADD", b"set:large", name.as_bytes()]);
        add(&[b"SADD", b"set:large:integers", number.as_bytes()]);
        add(&[b"ZADD", b"sorted:large", score.as_bytes(), name.as_bytes()]);
        add(&[b"HSET", b"hash:large", name.as_bytes(), number.as_bytes()]);
        add(&[b"SET", format!("key:{index}").as_bytes(), number.as_bytes()]);
        if index % 3 == 0 {
            add(&[
                b"PEXPIREAT",
                format!("key:{index}").as_bytes(),
                format!("{}", 4_000_000_000_123i64 + i64::from(index)).as_bytes(),
            ]);
        }
    }
    add(&[b"EXPIRE", b"hash:large", b"100000"]);
    for database in [1, 5, 15] {
        add(&[b"SELECT", database.to_string().as_bytes()]);
        add(&[b"SET", b"here", format!("database {database}").as_bytes()]);
        add(&[b"RPUSH", b"list", b"a", b"b"]);
        add(&[b"EXPIRE", b"list", b"1000"]);
    }
    add(&[b"SELECT", b"0"]);
    for chunk in words.chunks(500) {
        let mut bytes = Vec::new();
        chunk.iter().for_each(|words| bytes.extend(encode_command(words)));
        redis.send(&bytes);
        for words in chunk {
            let reply = redis.read_value();
            assert!(!matches!(reply, Value::Error(_)), "{}: {reply:?}", text(&words[0]));
        }
    }
}

#[track_caller]
fn check_same(redis: &mut Connection, here: &mut Connection, options: &[&str]) {
    for database in 0..DATABASES {
        let (expected, found) = (keys(redis, database), keys(here, database));
        assert_eq!(found, expected, "keys of database {database}, {options:?}");
        for key in &expected {
            let shown = key.escape_ascii().to_string();
            assert_eq!(content(here, key), content(redis, key), "{shown} of {database}, {options:?}");
            let deadline = redis.call(&[b"PEXPIRETIME".as_slice(), key]);
            let found = here.call(&[b"PEXPIRETIME".as_slice(), key]);
            assert_eq!(found, deadline, "{shown} of {database}, {options:?}");
            // What this server gives back is as Redis would have it.
            let payload = here.call(&[b"DUMP".as_slice(), key]);
            let deadline = deadline.integer().max(0).to_string();
            let copy = [b"RESTORE", COPY, deadline.as_bytes(), payload.bytes(), b"REPLACE", b"ABSTTL"];
            assert_eq!(redis.call(&copy), Value::Simple("OK".into()), "{shown}");
            let digests = redis.call(&[b"DEBUG".as_slice(), b"DIGEST-VALUE", key, COPY]);
            assert_eq!(digests.elements()[0], digests.elements()[1], "{shown} of {database}, {options:?}");
            redis.call(&[b"DEL", COPY]);
        }
    }
}

#[test]
fn files_of_redis_are_imported_whole() {
    let variants: [&[&str]; 4] = [
        &[],
        &["--rdbcompression", "no", "--rdbchecksum", "no"],
        &["--maxmemory-policy", "allkeys-lru", "--maxmemory", "1gb"],
        &["--maxmemory-policy", "allkeys-lfu", "--maxmemory", "1gb"],
    ];
    for options in variants {
        let arguments = [&["--enable-debug-command", "yes"], options].concat();
        let Some(server) = Server::start_redis(&arguments) else {
            println!("skipped: no redis-server on PATH to write a file");
            return;
        };
        let mut redis = server.connect();
        fill(&mut redis);
        assert_eq!(redis.line("SAVE"), Value::Simple("OK".into()));
        let file = server.data().with_file_name("dump.rdb");
        let folder = folder();
        let lines = lines(&import(&file, &folder.path().join("data")));
        let count: usize = (0..DATABASES).map(|database| keys(&mut redis, database).len()).sum();
        let bytes = fs::metadata(&file).expect("the file").len();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let start = format!("imported {count} keys for 2 shards into ");
        assert!(lines[0].starts_with(&start), "{lines:?}");
        assert!(lines[0].contains(&format!(": {bytes} bytes read in ")), "{lines:?}");
        assert!(lines[0].ends_with(" seconds, 0 skipped, 0 expired"), "{lines:?}");
        let mut imported = serve(folder);
        check_same(&mut redis, &mut imported.connect(), options);
        imported.connect().line("SET later 1");
        imported.kill_and_restart();
        wait_until("the data to be read", || imported.info_number("loading") == 0);
        assert_eq!(imported.connect().line("GET later"), Value::Bulk(b"1".to_vec()));
        redis.line("SELECT 0");
        redis.line("SET later 1");
        check_same(&mut redis, &mut imported.connect(), options);
    }
}

#[test]
fn what_has_no_place_here_is_named() {
    let Some(server) = Server::start_redis(&[]) else {
        println!("skipped: no redis-server on PATH to write a file");
        return;
    };
    let mut redis = server.connect();
    redis.pipeline([
        "SET before 1",
        "XADD \"a stream\" * field value",
        "XADD grouped 1-1 field value",
        "XADD grouped 1-2 field value",
        "XGROUP CREATE grouped group 0",
        "XREADGROUP GROUP group consumer COUNT 1 STREAMS grouped >",
        "XGROUP CREATE grouped empty $",
        "XDEL grouped 1-2",
        "SELECT 3",
        "XADD other * field value",
        "EXPIRE other 1000",
        "SET after 2",
        "SELECT 0",
    ]);
    let library = "#!lua name=mylib\nredis.register_function('seven', function() return 7 end)";
    redis.call(&["FUNCTION", "LOAD", library]);
    assert_eq!(redis.line("SAVE"), Value::Simple("OK".into()));
    let folder = folder();
    let mut lines = lines(&import(&server.data().with_file_name("dump.rdb"), &folder.path().join("data")));
    let summary = lines.pop().expect("a last line");
    assert!(summary.starts_with("imported 2 keys "), "{summary}");
    assert!(summary.ends_with(" 3 skipped, 0 expired"), "{summary}");
    lines.sort();
    assert_eq!(
        lines,
        [
            "not imported: key 'a stream' of database 0: streams are not supported",
            "not imported: key 'grouped' of database 0: streams are not supported",
            "not imported: key 'other' of database 3: streams are not supported",
        ]
    );
    let imported = serve(folder);
    let mut connection = imported.connect();
    assert_eq!(connection.line("GET before"), Value::Bulk(b"1".to_vec()));
    assert_eq!(connection.line("FCALL seven 0"), Value::Integer(7), "functions are imported");
    assert_eq!(connection.line("DBSIZE"), Value::Integer(1));
    connection.line("SELECT 3");
    assert_eq!(connection.line("GET after"), Value::Bulk(b"2".to_vec()));
    assert_eq!(connection.line("TTL after"), Value::Integer(-1));
}

const FUTURE_MS: i64 = 4_000_000_000_000;

/// A file with every kind of record and every form of value there is.
fn every_record() -> DumpFile {
    let name = |text: &str| -> u64 {
        let place = |byte: u8| {
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".iter().position(|&other| other == byte)
        };
        text.bytes().fold(0, |number, byte| number << 6 | place(byte).expect("a character of a name") as u64) << 10 | 3
    };
    let zipmap = b"\x02\x01a\x01\x00b\x01c\x01\x00d\xff";
    let intset = [&2u32.to_le_bytes()[..], &2u32.to_le_bytes(), &(-3i16).to_le_bytes(), &7i16.to_le_bytes()].concat();
    DumpFile::new(12)
        .bytes(&[250])
        .strings(&["redis-ver", "7.4.0"])
        .bytes(&[250])
        .strings(&["redis-bits", "64"])
        .bytes(&[247])
        .numbers(&[name("beside-it"), 2, 1, 5])
        .strings(&["text"])
        .numbers(&[1, 7, 2, 9, 3])
        .bytes(&[1, 2, 3, 4])
        .numbers(&[4])
        .bytes(&[1, 2, 3, 4, 5, 6, 7, 8])
        .numbers(&[0])
        .bytes(&[245])
        .strings(&["#!lua name=mylib\nredis.register_function('f', function() return 1 end)"])
        .bytes(&[245])
        .strings(&["#!lua name=broken\nend"])
        .bytes(&[254])
        .numbers(&[0])
        .bytes(&[251])
        .numbers(&[24, 2])
        .bytes(&[244])
        .numbers(&[12_182, 1, 0])
        .key(0, "integer")
        .strings(&["12345"])
        .bytes(&[252])
        .bytes(&FUTURE_MS.to_le_bytes())
        .bytes(&[249, 77])
        .key(0, "expires:ms")
        .strings(&["value".repeat(20)])
        .bytes(&[253])
        .bytes(&2_000_000_000u32.to_le_bytes())
        .bytes(&[248])
        .numbers(&[1_000])
        .key(0, "expires:s")
        .strings(&["value"])
        .bytes(&[252])
        .bytes(&1_000_000_000_000i64.to_le_bytes())
        .key(0, "expired")
        .strings(&["value"])
        .key(1, "list")
        .numbers(&[2])
        .strings(&["a", "b"])
        .key(2, "set")
        .numbers(&[2])
        .strings(&["a", "b"])
        .key(3, "sorted")
        .numbers(&[3])
        .strings(&["a"])
        .bytes(b"\x031.5")
        .strings(&["b"])
        .bytes(&[254])
        .strings(&["c"])
        .bytes(&[255])
        .key(4, "hash")
        .numbers(&[1])
        .strings(&["a", "b"])
        .key(5, "sorted:2")
        .numbers(&[1])
        .strings(&["a"])
        .bytes(&2.5f64.to_le_bytes())
        .key(7, "module")
        .numbers(&[name("some-type"), 2, 5, 5])
        .strings(&["text"])
        .numbers(&[0])
        .key(9, "hash:zipmap")
        .strings(&[zipmap])
        .key(10, "list:ziplist")
        .strings(&[ziplist(&["a", "b"])])
        .key(11, "set:intset")
        .strings(&[intset])
        .key(12, "sorted:ziplist")
        .strings(&[ziplist(&["a", "1.5", "b", "2"])])
        .key(13, "hash:ziplist")
        .strings(&[ziplist(&["a", "b"])])
        .key(14, "list:quicklist")
        .numbers(&[2])
        .strings(&[ziplist(&["a", "b"]), ziplist(&["c"])])
        .key(15, "stream")
        .numbers(&[1])
        .strings(&["0123456789abcdef", "nodes"])
        .numbers(&[1, 5, 6, 1])
        .strings(&["group"])
        .numbers(&[5, 6, 1])
        .bytes(&[7; 24])
        .numbers(&[1, 1])
        .strings(&["consumer"])
        .bytes(&[7; 8])
        .numbers(&[1])
        .bytes(&[7; 16])
        .key(16, "hash:listpack")
        .strings(&[listpack(&["a", "b"])])
        .key(17, "sorted:listpack")
        .strings(&[listpack(&["a", "3"])])
        .key(18, "list:quicklist2")
        .numbers(&[2, 1])
        .strings(&["plain"])
        .numbers(&[2])
        .strings(&[listpack(&["a", "5"])])
        .key(20, "set:listpack")
        .strings(&[listpack(&["a", "5"])])
        .key(21, "stream:3")
        .numbers(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
        .strings(&["group"])
        .numbers(&[0, 0, 0, 0, 1])
        .strings(&["consumer"])
        .bytes(&[7; 16])
        .numbers(&[0])
        .bytes(&[254])
        .numbers(&[9])
        .key(24, "hash:deadlines")
        .bytes(&FUTURE_MS.to_le_bytes())
        .numbers(&[2, 0])
        .strings(&["stays", "a"])
        .numbers(&[11])
        .strings(&["goes", "b"])
        .key(25, "hash:listpack:deadlines")
        .bytes(&FUTURE_MS.to_le_bytes())
        .strings(&[listpack(&["stays", "b", "0"])])
}

#[test]
fn every_record_and_every_form_of_a_value_is_read() {
    let (folder, mut lines) = imported(&every_record().end());
    let summary = lines.pop().expect("a last line");
    assert!(summary.starts_with("imported 20 keys for 2 shards "), "{summary}");
    assert!(summary.ends_with(" 5 skipped, 1 expired"), "{summary}");
    assert_eq!(
        lines,
        [
            "not imported: data of module type beside-it beside the keys",
            "not imported: function library '#!lua name=broken': ERR Error compiling function: \
             user_function:2: '<eof>' expected near 'end'",
            "not imported: key 'module' of database 0: values of modules are not supported",
            "not imported: key 'stream' of database 0: streams are not supported",
            "not imported: key 'stream:3' of database 0: streams are not supported",
        ]
    );
    let server = serve(folder);
    let mut connection = server.connect();
    let idle_s = connection.line("OBJECT IDLETIME expires:s").integer();
    assert!((1_000..1_100).contains(&idle_s), "{idle_s}");
    for (line, expected) in [
        ("FCALL f 0", "1".to_owned()),
        ("GET integer", "12345".into()),
        ("GET expires:ms", "value".repeat(20)),
        ("PEXPIRETIME expires:ms", FUTURE_MS.to_string()),
        ("GET expires:s", "value".into()),
        ("PEXPIRETIME expires:s", "2000000000000".into()),
        ("TTL integer", "-1".into()),
        ("EXISTS expired", "0".into()),
        ("LRANGE list 0 -1", "a b".into()),
        ("SISMEMBER set b", "1".into()),
        ("ZRANGE sorted 0 -1 WITHSCORES", "c -inf a 1.5 b inf".into()),
        ("HGETALL hash", "a b".into()),
        ("ZRANGE sorted:2 0 -1 WITHSCORES", "a 2.5".into()),
        ("HMGET hash:zipmap a c", "b d".into()),
        ("LRANGE list:ziplist 0 -1", "a b".into()),
        ("SMISMEMBER set:intset -3 7 8", "1 1 0".into()),
        ("ZRANGE sorted:ziplist 0 -1 WITHSCORES", "a 1.5 b 2".into()),
        ("HGETALL hash:ziplist", "a b".into()),
        ("LRANGE list:quicklist 0 -1", "a b c".into()),
        ("HGETALL hash:listpack", "a b".into()),
        ("ZRANGE sorted:listpack 0 -1 WITHSCORES", "a 3".into()),
        ("LRANGE list:quicklist2 0 -1", "plain a 5".into()),
        ("SMISMEMBER set:listpack a 5", "1 1".into()),
        ("SELECT 9", "OK".into()),
        ("HMGET hash:deadlines stays goes", "a b".into()),
        ("HPEXPIRETIME hash:deadlines FIELDS 2 stays goes", format!("-1 {}", FUTURE_MS + 10)),
        ("HPEXPIRETIME hash:listpack:deadlines FIELDS 1 stays", "-1".into()),
    ] {
        let reply = connection.line(line);
        let shown = |value: &Value| match value {
            Value::Integer(integer) => integer.to_string(),
            Value::Simple(word) => word.clone(),
            other => text(other.bytes()),
        };
        let found = match &reply {
            Value::Array(elements) => elements.iter().map(shown).collect::<Vec<_>>().join(" "),
            other => shown(other),
        };
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn versions_6_to_12_are_read_and_no_other() {
    for version in [5, 6, 7, 8, 9, 10, 11, 12, 13, 9999] {
        let folder = folder();
        let file = folder.path().join("dump.rdb");
        let bytes = DumpFile::new(version).bytes(&[254]).numbers(&[0]).key(0, "key").strings(&["value"]).end();
        fs::write(&file, bytes).expect("write a file");
        let data = folder.path().join("data");
        let output = import(&file, &data);
        if (6..=12).contains(&version) {
            assert!(lines(&output)[0].starts_with("imported 1 keys "), "{output:?}");
        } else {
            let expected = format!(
                "ruvio: {}: the file has RDB version {version}; versions 6 to 12 can be imported (at byte 5)",
                file.display()
            );
            assert_eq!(refusal(&output), expected);
            assert!(!data.exists());
        }
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_in_one_line() {
    let value = |file: DumpFile| file.key(0, "key").strings(&["value"]);
    let whole = value(DumpFile::new(10)).end();
    let mut wrong_checksum = whole.clone();
    *wrong_checksum.last_mut().expect("a last byte") ^= 1;
    let followed = [&whole[..], b"*1\r\n$4\r\nPING\r\n"].concat();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "this is no RDB file: it does not begin with REDIS and a version (at byte 0)"),
        (b"REDIS".to_vec(), "this is no RDB file: it does not begin with REDIS and a version (at byte 0)"),
        (b"VALKEY080\xff".to_vec(), "this is no RDB file: it does not begin with REDIS and a version (at byte 0)"),
        (b"REDISabcd\xff".to_vec(), "this is no RDB file: REDIS is not followed by a version (at byte 5)"),
        (whole[..whole.len() - 3].to_vec(), "the file is truncated (at byte 26)"),
        (wrong_checksum, "the checksum is wrong: "),
        (followed, "something follows the end, as in an append-only file; only RDB files can be imported (at byte 29)"),
        (DumpFile::new(10).key(99, "key").end(), "there is no value type 99 (at byte 14)"),
        (
            DumpFile::new(10).key(6, "key").end(),
            "a value of a module in the form of before Redis 4.0, which has no end",
        ),
        (
            DumpFile::new(10).bytes(&[254]).numbers(&[1024]).end(),
            "the file has a database 1024; there can be 1024, from 0 on",
        ),
        (
            DumpFile::new(10).key(10, "a b").strings(&["junk"]).end(),
            "the value of key 'a b' of database 0 is damaged (at byte 14)",
        ),
        (DumpFile::new(10).key(1, "key").numbers(&[u64::MAX]).end(), "no string has the encoding 63"),
        (DumpFile::new(10).bytes(&[0, 0x81]).bytes(&[0xff; 8]).end(), "the file is truncated"),
        (DumpFile::new(10).bytes(&[0, 0x82]).end(), "no length begins with byte 130 (at byte 10)"),
        (DumpFile::new(10).bytes(&[246]).end(), "a function in the form of candidates of Redis 7.0"),
        (DumpFile::new(10).bytes(&[247]).numbers(&[1, 2, 1, 6]).end(), "no part of a module's data is of kind 6"),
    ];
    for (bytes, expected) in cases {
        let folder = folder();
        let file = folder.path().join("dump.rdb");
        fs::write(&file, bytes).expect("write a file");
        let data = folder.path().join("data");
        let error = refusal(&import(&file, &data));
        let start = format!("ruvio: {}: {expected}", file.display());
        assert!(error.starts_with(&start), "{error}\n{expected}");
        assert!(!data.exists(), "nothing is left after: {error}");
    }
    let missing = folder();
    let error = refusal(&import(&missing.path().join("none.rdb"), &missing.path().join("data")));
    assert!(error.contains("none.rdb: No such file or directory"), "{error}");
    let error = refusal(&import(missing.path(), &missing.path().join("data")));
    assert!(error.ends_with(" is no file"), "{error}");
}

/// Every file in a folder with its bytes, below it too.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read(&path).expect("a file")));
        }
    }
    found.sort();
    found
}

#[test]
fn a_directory_that_holds_data_or_is_in_use_is_left_as_it_is() {
    let bytes = DumpFile::new(10).key(0, "key").strings(&["value"]).end();
    let (folder, _) = imported(&bytes);
    let (file, data) = (folder.path().join("dump.rdb"), folder.path().join("data"));
    let before = files(&data);
    let error = refusal(&import(&file, &data));
    assert_eq!(error, format!("ruvio: {} holds data already; choose another --dir", data.display()));
    assert_eq!(files(&data), before);
    let server = serve(folder);
    server.connect().line("SET other 1");
    let error = refusal(&import(&file, &data));
    assert!(error.contains("another process uses the data directory"), "{error}");
    assert_eq!(server.connect().line("GET key"), Value::Bulk(b"value".to_vec()));
}

#[test]
fn what_an_import_that_died_has_left_is_replaced() {
    let folder = folder();
    let (file, data) = (folder.path().join("dump.rdb"), folder.path().join("data"));
    fs::create_dir_all(data.join("importing/shard-7")).expect("a folder");
    fs::write(data.join("importing/shard-7/checkpoint-0000000000000000"), "half").expect("a file");
    fs::write(&file, DumpFile::new(10).key(0, "key").bytes(&[0xff]).end()).expect("write a file");
    refusal(&import(&file, &data));
    let left: Vec<_> = files(&data).into_iter().map(|(path, _)| path).collect();
    assert_eq!(left, [data.join("lock")], "of a directory that was there before, the directory stays");
    fs::write(&file, DumpFile::new(10).key(0, "key").strings(&["value"]).end()).expect("write a file");
    lines(&import(&file, &data));
    assert!(!data.join("importing").exists());
    assert_eq!(serve(folder).connect().line("GET key"), Value::Bulk(b"value".to_vec()));
}

#[test]
fn any_number_of_shards_can_be_imported_for() {
    let mut file = DumpFile::new(10);
    for index in 0..100 {
        file = file.key(0, &format!("key:{index}")).strings(&["value"]);
    }
    let folder = folder();
    let path = folder.path().join("dump.rdb");
    fs::write(&path, file.end()).expect("write a file");
    for shards in [1, 3, 7] {
        let data = folder.path().join(format!("data-{shards}"));
        let lines = lines(&import_for(shards, &path, &data));
        assert!(lines[0].starts_with(&format!("imported 100 keys for {shards} shards ")), "{lines:?}");
        let found = fs::read_dir(data.join("generation-1")).expect("the generation").count();
        assert_eq!(found, shards);
        let manifest = fs::read_to_string(data.join("manifest.toml")).expect("the manifest");
        assert!(manifest.contains(&format!("shards = {shards}")), "{manifest}");
    }
    let error = refusal(&import_for(0, &path, &folder.path().join("none")));
    assert!(error.contains("--shards must be 1 to "), "{error}");
}

#[test]
fn databases_a_server_does_not_have_by_default_are_told() {
    let bytes = DumpFile::new(10).bytes(&[254]).numbers(&[20]).key(0, "key").strings(&["value"]).end();
    let (_folder, lines) = imported(&bytes);
    assert!(lines[0].ends_with("; start the server with --databases 21"), "{lines:?}");
}

/// Imports damaged files. With a checksum each is refused; without one some can be read all the same.
fn check_damaged(damaged: impl Iterator<Item = Vec<u8>>, is_always_refused: bool) {
    let folder = folder();
    let (file, data) = (folder.path().join("dump.rdb"), folder.path().join("data"));
    for bytes in damaged {
        fs::write(&file, &bytes).expect("write a file");
        let output = import(&file, &data);
        if output.status.success() {
            assert!(!is_always_refused, "{}", bytes.escape_ascii());
            fs::remove_dir_all(&data).expect("remove what was imported");
        } else {
            refusal(&output);
            assert!(!data.exists(), "{output:?}");
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let bytes = every_record().end();
    check_damaged((0..bytes.len()).map(|len| bytes[..len].to_vec()), true);
}

#[test]
fn a_file_with_any_byte_changed_is_refused_by_its_checksum() {
    let bytes = every_record().end();
    let changed = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        bytes
    };
    check_damaged((0..bytes.len()).map(changed), true);
}

#[test]
fn a_changed_file_without_a_checksum_does_no_harm() {
    let bytes = every_record().end_without_checksum();
    let changed = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] = bytes[at].wrapping_mul(31).wrapping_add(at as u8 | 1);
        bytes
    };
    check_damaged((0..bytes.len()).step_by(4).map(changed), false);
}
