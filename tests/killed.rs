//! A server that is killed under load, again and again: nothing that was acknowledged is lost, and nothing is done by half.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::stored::{Snapshot, wait_until_loaded};
use crate::support::{Connection, Options, Server, Value, encode_command, wait_until};

/// Rounds a mode; more are made by hand.
const ROUNDS_VARIABLE: &str = "RUVIO_KILL_ROUNDS";
const ROUNDS: usize = 20;

/// Keys of one shard, and of the other.
const TAGS: [&str; 2] = ["{a}", "{b}"];

const JOBS: usize = 5_000;

/// The load at the time of the kill must have got so far, in acknowledged calls of each client.
const LEAST: u64 = 20;

fn rounds() -> usize {
    std::env::var(ROUNDS_VARIABLE).map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"))
}

/// Sends a command and reads its reply; `None` when the server is gone.
fn try_call(connection: &mut Connection, words: &[&str]) -> Option<Value> {
    connection.try_send(&encode_command(words)).ok()?;
    connection.try_read_value().ok()
}

/// What the clients of one shard were told.
#[derive(Default)]
struct Told {
    /// Keys `TAGw:ROUND:0` and so on are set.
    set: AtomicU64,
    /// Calls of `INCR`, and of `TRANSFER` behind each of them.
    counted: AtomicU64,
    /// Jobs moved.
    moved: AtomicU64,
}

/// Has the clients end, whatever becomes of the test.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Loads both shards, kills the server on the way, and returns what the clients were told.
fn load_and_kill(server: &mut Server, round: usize, moved_before: [u64; 2], saves: bool) -> [Told; 2] {
    let told = [Told::default(), Told::default()];
    let ended = AtomicBool::new(false);
    let start = Barrier::new(7);
    std::thread::scope(|scope| {
        for ((tag, told), moved_before) in TAGS.iter().zip(&told).zip(moved_before) {
            let (ended, start) = (&ended, &start);
            let [mut setter, mut counter, mut mover] = [(); 3].map(|()| server.connect());
            scope.spawn(move || {
                start.wait();
                for number in 0_u64.. {
                    let key = format!("{tag}w:{round}:{number}");
                    if ended.load(Ordering::Relaxed) || try_call(&mut setter, &["SET", &key, "x"]).is_none() {
                        return;
                    }
                    told.set.store(number + 1, Ordering::Release);
                }
            });
            scope.spawn(move || {
                start.wait();
                for number in 1_u64.. {
                    let (one, other) = (format!("{tag}one"), format!("{tag}other"));
                    let amount = (number % 7).to_string();
                    let mut frames = encode_command(&["INCR", &format!("{tag}n:{round}")]);
                    frames.extend(encode_command(&["TRANSFER", &one, &other, &amount]));
                    frames.extend(encode_command(&["TRANSFER", &other, &one, "3"]));
                    // Refused: it leaves nothing behind.
                    frames.extend(encode_command(&["TRANSFER", &one, &other, "9000000"]));
                    if ended.load(Ordering::Relaxed) || counter.try_send(&frames).is_err() {
                        return;
                    }
                    let counted = counter.try_read_value();
                    if !matches!(counted, Ok(Value::Integer(counted)) if counted as u64 == number) {
                        return;
                    }
                    told.counted.store(number, Ordering::Release);
                    if (0..3).any(|_| counter.try_read_value().is_err()) {
                        return;
                    }
                }
            });
            scope.spawn(move || {
                start.wait();
                for job in moved_before.. {
                    let (due, ready, max) = (format!("{tag}due"), format!("{tag}ready"), job.to_string());
                    let reply = try_call(&mut mover, &["ZMOVEDUE", &due, &ready, &max, "COUNT", "1"]);
                    if ended.load(Ordering::Relaxed) || reply != Some(Value::Integer(1)) {
                        return;
                    }
                    told.moved.store(job + 1 - moved_before, Ordering::Release);
                }
            });
        }
        let mut saver = server.connect();
        start.wait();
        if saves {
            assert_eq!(saver.line("BGSAVE"), Value::Simple("Background saving started".to_owned()));
        }
        let _ending = EndOnDrop(&ended);
        wait_until("the load", || {
            told.iter().all(|told| {
                [&told.set, &told.counted, &told.moved].iter().all(|count| count.load(Ordering::Acquire) >= LEAST)
            })
        });
        // Not always at the same point of a write.
        std::thread::sleep(Duration::from_micros(round as u64 * 7_919 % 20_000));
        server.kill();
    });
    told
}

fn number(connection: &mut Connection, words: &[&str]) -> u64 {
    match connection.call(words) {
        Value::Integer(number) => number as u64,
        Value::Null => 0,
        value => value.text().parse().expect("a number"),
    }
}

/// Checks what is there of one shard after a round; returns how many jobs were moved in all.
fn check(connection: &mut Connection, tag: &str, round: usize, told: &Told, moved_before: u64, mode: &str) -> u64 {
    let when = format!("{mode}, round {round}, {tag}");
    let set = told.set.load(Ordering::Acquire);
    for number in 0..set {
        let key = format!("{tag}w:{round}:{number}");
        connection.send(&encode_command(&["GET", &key]));
    }
    for number in 0..set {
        assert_eq!(connection.read_value().text(), "x", "{when}: write {number} of {set} is lost");
    }
    assert_eq!(connection.call(&["EXISTS", &format!("{tag}w:{round}:{}", set + 1)]), Value::Integer(0), "{when}");
    let (counted, there) =
        (told.counted.load(Ordering::Acquire), number(connection, &["GET", &format!("{tag}n:{round}")]));
    assert!((counted..=counted + 1).contains(&there), "{when}: {there} calls of INCR, {counted} acknowledged");
    let total: u64 =
        ["one", "other"].map(|account| number(connection, &["GET", &format!("{tag}{account}")])).iter().sum();
    assert_eq!(total, 1_000_000, "{when}");
    let ready = connection.call(&["LRANGE", &format!("{tag}ready"), "0", "-1"]);
    let due = connection.call(&["ZRANGE", &format!("{tag}due"), "0", "-1"]);
    let moved = ready.elements().len() as u64;
    let acknowledged = moved_before + told.moved.load(Ordering::Acquire);
    assert!(
        (acknowledged..=acknowledged + 1).contains(&moved),
        "{when}: {moved} jobs moved, {acknowledged} acknowledged"
    );
    let jobs: Vec<&str> = ready.elements().iter().chain(due.elements()).map(Value::text).collect();
    assert_eq!(jobs.len(), JOBS, "{when}: jobs");
    assert_eq!(jobs.iter().collect::<BTreeSet<_>>().len(), JOBS, "{when}: a job is there twice");
    moved
}

/// Puts jobs in both queues, which are empty.
fn add_jobs(server: &Server) {
    let mut connection = server.connect();
    for tag in TAGS {
        connection.call(&["DEL", &format!("{tag}due"), &format!("{tag}ready")]);
        for job in 0..JOBS {
            connection.send(&encode_command(&["ZADD", &format!("{tag}due"), &job.to_string(), &format!("job:{job}")]));
        }
        (0..JOBS).for_each(|_| assert_eq!(connection.read_value(), Value::Integer(1)));
    }
}

fn kill_in_rounds(mode: &str) {
    let mut server = Server::with(&Options { arguments: &["--durability", mode], ..Options::default() });
    for tag in TAGS {
        server.connect().call(&["MSET", &format!("{tag}one"), "1000000", &format!("{tag}other"), "0"]);
    }
    add_jobs(&server);
    let mut moved = [0, 0];
    for round in 0..rounds() {
        if moved.iter().any(|&moved| moved as usize > JOBS / 2) {
            add_jobs(&server);
            moved = [0, 0];
        }
        let told = load_and_kill(&mut server, round, moved, round % 3 == 2);
        server.restart();
        wait_until_loaded(&server);
        let mut connection = server.connect();
        for ((tag, told), moved) in TAGS.iter().zip(&told).zip(&mut moved) {
            *moved = check(&mut connection, tag, round, told, *moved, mode);
        }
    }
}

#[test]
fn with_everysec_nothing_acknowledged_is_lost_when_the_process_is_killed() {
    kill_in_rounds("everysec");
}

#[test]
fn with_always_nothing_acknowledged_is_lost_when_the_process_is_killed() {
    kill_in_rounds("always");
}

#[test]
fn with_memory_nothing_is_there_after_a_kill_and_nothing_is_written() {
    let mut server = Server::with(&Options { arguments: &["--durability", "memory"], ..Options::default() });
    for round in 0..rounds() {
        for tag in TAGS {
            server.connect().call(&["MSET", &format!("{tag}one"), "1000000", &format!("{tag}other"), "0"]);
        }
        add_jobs(&server);
        load_and_kill(&mut server, round, [0, 0], false);
        assert!(!server.data().exists() || Snapshot::of(&server.data()).0.is_empty());
        server.restart();
        assert_eq!(server.connect().line("DBSIZE"), Value::Integer(0));
    }
}
