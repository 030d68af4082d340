//! What is stored: everything that a server holds, and copies of its data directory.

use super::server::{Server, wait_until};
use super::value::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Waits until the data is read.
#[track_caller]
pub fn wait_until_loaded(server: &Server) {
    wait_until("the data to be read", || server.info_number("loading") == 0);
}

/// Everything there is in the first three databases, in a form that can be compared.
pub fn content(server: &Server) -> Vec<String> {
    let mut connection = server.connect();
    let mut content = Vec::new();
    for database in 0..3 {
        connection.line(&format!("SELECT {database}"));
        let keys = connection.line("KEYS *").sorted();
        for key in keys.elements() {
            let key = key.text();
            let value = match connection.call(&["TYPE", key]) {
                Value::Simple(kind) if kind == "string" => connection.call(&["GET", key]),
                Value::Simple(kind) if kind == "list" => connection.call(&["LRANGE", key, "0", "-1"]),
                Value::Simple(kind) if kind == "set" => connection.call(&["SMEMBERS", key]).sorted(),
                Value::Simple(kind) if kind == "hash" => connection.call(&["HGETALL", key]).sorted_pairs(),
                Value::Simple(kind) if kind == "zset" => connection.call(&["ZRANGE", key, "0", "-1", "WITHSCORES"]),
                kind => kind,
            };
            let deadline = connection.call(&["PEXPIRETIME", key]);
            content.push(format!("{database} {key} {value:?} {deadline:?}"));
        }
    }
    content
}

/// Fails unless both are the same, and names some of what is not.
#[track_caller]
pub fn assert_same(found: &[String], expected: &[String], when: &str) {
    let [found, expected] = [found, expected].map(|lines| lines.iter().collect::<BTreeSet<_>>());
    let missing: Vec<_> = expected.difference(&found).take(3).collect();
    let unexpected: Vec<_> = found.difference(&expected).take(3).collect();
    assert!(missing.is_empty() && unexpected.is_empty(), "{when}: missing {missing:?}, unexpected {unexpected:?}");
}

/// Fills the keyspace with every type of value, in several databases, in such a way that the log is needed to its end.
pub fn fill(server: &Server, count: usize) {
    let mut connection = server.connect();
    for index in 0..count {
        for line in [
            format!("SET string:{index} value"),
            format!("SET expiring:{index} value EX 1000"),
            format!("INCRBY counter:{} {index}", index % 7),
            format!("RPUSH list:{} {index}", index % 5),
            format!("SADD set:{} {index} a b c", index % 5),
            format!("SPOP set:{}", index % 5),
            format!("HSET hash:{} field:{index} {index}", index % 5),
            format!("ZADD sorted:{} {index} member:{index}", index % 5),
            format!("ZPOPMIN sorted:{}", index % 3),
            format!("DEL string:{}", index / 2),
            format!("LIMIT limit:{index} 5 1000000"),
            format!("SETV versioned:{index} {index}"),
        ] {
            let reply = connection.line(&line);
            assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
        }
    }
    connection.pipeline(["SELECT 1", "SET one 1", "SET gone 1", "SWAPDB 1 2", "SET gone 1", "FLUSHDB", "SELECT 0"]);
    connection.pipeline(["MULTI", "SET {t}a 1", "INCR {t}a", "PING", "DEL {t}a", "SET {t}b 2", "EXEC"]);
    connection.line("RENAME {t}b {t}c");
}

/// A directory as it was: every file below it by its path there, and every folder, which has no content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(pub BTreeMap<PathBuf, Option<Vec<u8>>>);

impl Snapshot {
    /// Reads what is below `directory`.
    pub fn of(directory: &Path) -> Snapshot {
        let mut snapshot = Snapshot(BTreeMap::new());
        snapshot.add(directory, Path::new(""));
        snapshot
    }

    fn add(&mut self, directory: &Path, below: &Path) {
        for entry in fs::read_dir(directory.join(below)).expect("a folder") {
            let below = below.join(entry.expect("an entry").file_name());
            let path = directory.join(&below);
            if path.is_dir() {
                self.0.insert(below.clone(), None);
                self.add(directory, &below);
            } else {
                self.0.insert(below, Some(fs::read(path).expect("a file")));
            }
        }
    }

    /// Makes `directory` be so.
    pub fn put(&self, directory: &Path) {
        fs::remove_dir_all(directory).expect("the folder as it was");
        fs::create_dir(directory).expect("a folder");
        for (below, content) in &self.0 {
            let path = directory.join(below);
            match content {
                None => fs::create_dir(path).expect("a folder"),
                Some(content) => fs::write(path, content).expect("a file"),
            }
        }
    }

    /// With everything of `other` added whose path `wanted` takes.
    pub fn with(&self, other: &Snapshot, wanted: impl Fn(&str) -> bool) -> Snapshot {
        let mut all = self.0.clone();
        let added = other.0.iter().filter(|(path, _)| wanted(&path.to_string_lossy()));
        all.extend(added.map(|(path, content)| (path.clone(), content.clone())));
        Snapshot(all)
    }

    /// Without everything whose path `unwanted` takes.
    pub fn without(&self, unwanted: impl Fn(&str) -> bool) -> Snapshot {
        let left = self.0.iter().filter(|(path, _)| !unwanted(&path.to_string_lossy()));
        Snapshot(left.map(|(path, content)| (path.clone(), content.clone())).collect())
    }

    /// With each file whose path `wanted` takes given another name and content.
    pub fn with_changed(
        &self,
        wanted: impl Fn(&str) -> bool,
        change: impl Fn(&str, &[u8]) -> (String, Vec<u8>),
    ) -> Snapshot {
        let changed = self.0.iter().map(|(path, content)| match content {
            Some(content) if wanted(&path.to_string_lossy()) => {
                let name = path.file_name().expect("a name").to_string_lossy();
                let (name, content) = change(&name, content);
                (path.with_file_name(name), Some(content))
            }
            content => (path.clone(), content.clone()),
        });
        Snapshot(changed.collect())
    }

    /// The paths of the files, as text.
    pub fn paths(&self) -> Vec<String> {
        self.0.keys().map(|path| path.to_string_lossy().into_owned()).collect()
    }
}
