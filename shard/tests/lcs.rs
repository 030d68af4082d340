//! `LCS`, against its definition.

use proptest::prelude::*;
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

use crate::support::{call, run, shard};

fn prepared(a: &[u8], b: &[u8]) -> Shard {
    let mut shard = shard(Settings::default(), 1);
    for (key, value) in [(b"a".as_slice(), a), (b"b", b)] {
        call(&mut shard, 1, Protocol::Resp2, &[b"SET".as_slice(), key, value]);
    }
    shard
}

/// The length, from the recursion that defines it.
fn length(a: &[u8], b: &[u8]) -> usize {
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            table[i][j] =
                if a[i - 1] == b[j - 1] { table[i - 1][j - 1] + 1 } else { table[i - 1][j].max(table[i][j - 1]) };
        }
    }
    table[a.len()][b.len()]
}

fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|byte| rest.any(|other| other == byte))
}

/// The integers of a reply, in order.
fn integers(reply: &[u8]) -> Vec<usize> {
    let text = std::str::from_utf8(reply).expect("text");
    text.split("\r\n").filter_map(|line| line.strip_prefix(':')).map(|number| number.parse().expect("digits")).collect()
}

proptest! {
    #[test]
    fn what_is_found_is_common_and_longest(
        a in proptest::collection::vec(b'a'..b'e', 0..60),
        b in proptest::collection::vec(b'a'..b'e', 0..60),
        shortest in 0_usize..4,
    ) {
        let mut shard = prepared(&a, &b);
        let longest = length(&a, &b);
        prop_assert_eq!(run(&mut shard, 1, "LCS a b LEN"), format!(":{longest}\r\n").into_bytes());
        let reply = run(&mut shard, 1, "LCS a b");
        let start = reply.iter().position(|&byte| byte == b'\n').unwrap_or_default() + 1;
        let sequence = &reply[start..reply.len() - 2];
        prop_assert_eq!(sequence.len(), longest);
        prop_assert!(is_subsequence(sequence, &a) && is_subsequence(sequence, &b));

        // The runs, from the last to the first, make up the same sequence.
        let numbers = integers(&run(&mut shard, 1, "LCS a b IDX WITHMATCHLEN"));
        let (runs, total) = numbers.split_at(numbers.len() - 1);
        prop_assert_eq!(total, &[longest]);
        let mut rebuilt = Vec::new();
        for run in runs.chunks(5).rev() {
            prop_assert_eq!(&a[run[0]..=run[1]], &b[run[2]..=run[3]]);
            prop_assert_eq!(run[4], run[1] - run[0] + 1);
            rebuilt.extend_from_slice(&a[run[0]..=run[1]]);
        }
        prop_assert_eq!(&rebuilt[..], sequence);
        let filtered = integers(&run(&mut shard, 1, &format!("LCS a b IDX WITHMATCHLEN MINMATCHLEN {shortest}")));
        let wanted: Vec<usize> =
            runs.chunks(5).filter(|run| run[4] >= shortest).flatten().copied().chain([longest]).collect();
        prop_assert_eq!(filtered, wanted);
    }
}

#[test]
fn replies_are_those_of_redis() {
    let mut shard = prepared(b"ohmytext", b"mynewtext");
    assert_eq!(run(&mut shard, 1, "LCS a b"), b"$6\r\nmytext\r\n");
    assert_eq!(
        run(&mut shard, 1, "LCS a b IDX"),
        b"*4\r\n$7\r\nmatches\r\n*2\r\n*2\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n*2\r\n*2\r\n:2\r\n:3\r\n*2\r\n:0\r\n:1\r\n\
          $3\r\nlen\r\n:6\r\n"
    );
    let words: Vec<&str> = "LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN".split(' ').collect();
    assert_eq!(
        call(&mut shard, 1, Protocol::Resp3, &words).0,
        b"%2\r\n$7\r\nmatches\r\n*1\r\n*3\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n:4\r\n$3\r\nlen\r\n:6\r\n"
    );
    assert_eq!(run(&mut shard, 1, "LCS a missing"), b"$0\r\n\r\n");
    assert_eq!(run(&mut shard, 1, "LCS missing b IDX"), b"*4\r\n$7\r\nmatches\r\n*0\r\n$3\r\nlen\r\n:0\r\n");
}

#[test]
fn errors_are_those_of_redis() {
    let mut shard = prepared(b"x", b"y");
    run(&mut shard, 1, "RPUSH l x");
    for (line, error) in [
        ("LCS a l", "ERR The specified keys must contain string values"),
        ("LCS a l what", "ERR The specified keys must contain string values"),
        ("LCS a b what", "ERR syntax error"),
        ("LCS a b MINMATCHLEN", "ERR syntax error"),
        ("LCS a b MINMATCHLEN x", "ERR value is not an integer or out of range"),
        ("LCS a b LEN IDX", "ERR If you want both the length and indexes, please just use IDX."),
    ] {
        assert_eq!(run(&mut shard, 1, line), format!("-{error}\r\n").into_bytes(), "{line}");
    }
    let long = vec![b'x'; 20_000];
    let mut shard = prepared(&long, &long);
    let error = b"-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len\r\n";
    assert_eq!(run(&mut shard, 1, "LCS a b LEN"), error);
}
