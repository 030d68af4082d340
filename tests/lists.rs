//! The list commands without blocking, option by option.

use crate::support::{Server, replies, replies_resp3};

#[test]
fn pushes_and_pops_work_at_both_ends() {
    replies(
        r#"
        RPUSH l a b c => :3
        LPUSH l z y => :5
        LRANGE l 0 -1 => [y z a b c]
        LLEN l => :5
        LLEN missing => :0
        LPUSHX l x => :6
        RPUSHX l d e => :8
        LPUSHX missing x => :0
        RPUSHX missing x => :0
        EXISTS missing => :0
        LPOP l => x
        RPOP l => e
        LPOP l 2 => [y z]
        RPOP l 2 => [d c]
        LPOP l 0 => []
        LPOP missing => nil
        LPOP missing 2 => nil-array
        LPOP missing 0 => nil-array
        RPOP missing => nil
        RPOP missing 2 => nil-array
        LPOP l -1 => -ERR value is out of range, must be positive
        LPOP l x => -ERR value is out of range, must be positive
        RPOP l 1 2 => -ERR wrong number of arguments for 'rpop' command
        LPOP l 100 => [a b]
        EXISTS l => :0
        LPUSH l => -ERR wrong number of arguments for 'lpush' command
        RPUSHX l => -ERR wrong number of arguments for 'rpushx' command
    "#,
    );
}

#[test]
fn lrange_counts_from_both_ends() {
    replies(
        r#"
        RPUSH l a b c d e => :5
        LRANGE l 0 -1 => [a b c d e]
        LRANGE l 1 3 => [b c d]
        LRANGE l -3 -2 => [c d]
        LRANGE l 3 1 => []
        LRANGE l -100 100 => [a b c d e]
        LRANGE l 5 10 => []
        LRANGE l 0 -100 => []
        LRANGE l -9223372036854775808 9223372036854775807 => [a b c d e]
        LRANGE l x 1 => -ERR value is not an integer or out of range
        LRANGE l 0 1.5 => -ERR value is not an integer or out of range
        LRANGE missing 0 -1 => []
        LINDEX l 0 => a
        LINDEX l -1 => e
        LINDEX l 4 => e
        LINDEX l 5 => nil
        LINDEX l -6 => nil
        LINDEX l x => -ERR value is not an integer or out of range
        LINDEX missing 0 => nil
    "#,
    );
}

#[test]
fn elements_are_changed_in_place() {
    replies(
        r#"
        RPUSH l a b c d => :4
        LSET l 0 A => OK
        LSET l -1 D => OK
        LSET l 4 x => -ERR index out of range
        LSET l -5 x => -ERR index out of range
        LSET l x x => -ERR value is not an integer or out of range
        LSET missing 0 x => -ERR no such key
        LRANGE l 0 -1 => [A b c D]
        LINSERT l BEFORE b X => :5
        LINSERT l after b Y => :6
        LINSERT l BEFORE nothere X => :-1
        LINSERT missing BEFORE b X => :0
        LINSERT l bogus b X => -ERR syntax error
        LRANGE l 0 -1 => [A X b Y c D]
        LTRIM l 1 -2 => OK
        LRANGE l 0 -1 => [X b Y c]
        LTRIM l 0 100 => OK
        LTRIM l x 1 => -ERR value is not an integer or out of range
        LTRIM l 5 10 => OK
        EXISTS l => :0
        LTRIM missing 0 1 => OK
        RPUSH m a b a c a => :5
        LREM m 2 a => :2
        LRANGE m 0 -1 => [b c a]
        RPUSH m a b a => :6
        LREM m -1 a => :1
        LRANGE m 0 -1 => [b c a a b]
        LREM m 0 a => :2
        LREM m 0 zz => :0
        LREM m x a => -ERR value is not an integer or out of range
        LREM missing 0 a => :0
        LREM m 0 b => :2
        LREM m 0 c => :1
        EXISTS m => :0
    "#,
    );
}

#[test]
fn lpos_searches_with_rank_count_and_limit() {
    replies(
        r#"
        RPUSH l a b c d 1 2 3 4 3 3 3 => :11
        LPOS l 3 => :6
        LPOS l a => :0
        LPOS l zz => nil
        LPOS l 3 RANK 2 => :8
        LPOS l 3 RANK -1 => :10
        LPOS l 3 RANK -3 => :8
        LPOS l 3 RANK 9 => nil
        LPOS l 3 COUNT 0 => [:6 :8 :9 :10]
        LPOS l 3 COUNT 2 => [:6 :8]
        LPOS l 3 COUNT 2 RANK 2 => [:8 :9]
        LPOS l 3 COUNT 0 RANK -2 => [:9 :8 :6]
        LPOS l 3 COUNT 0 MAXLEN 8 => [:6]
        LPOS l 3 COUNT 0 MAXLEN 9 RANK -1 => [:10 :9 :8 :6]
        LPOS l 3 MAXLEN 0 => :6
        LPOS l zz COUNT 0 => []
        LPOS missing a => nil
        LPOS missing a COUNT 1 => []
        LPOS l 3 RANK 0 => -ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
        LPOS l 3 COUNT -1 => -ERR COUNT can't be negative
        LPOS l 3 MAXLEN -1 => -ERR MAXLEN can't be negative
        7.2| LPOS l 3 RANK -9223372036854775808 => -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        LPOS l 3 RANK x => -ERR value is not an integer or out of range
        LPOS l 3 bogus => -ERR syntax error
        LPOS l 3 COUNT => -ERR syntax error
        LPOS l => -ERR wrong number of arguments for 'lpos' command
    "#,
    );
}

#[test]
fn lmove_and_rpoplpush_move_one_element() {
    replies(
        r#"
        RPUSH {t}l a b c d => :4
        LMOVE {t}l {t}m LEFT RIGHT => a
        LMOVE {t}l {t}m RIGHT LEFT => d
        LRANGE {t}l 0 -1 => [b c]
        LRANGE {t}m 0 -1 => [d a]
        LMOVE {t}l {t}l LEFT RIGHT => b
        LRANGE {t}l 0 -1 => [c b]
        LMOVE {t}l {t}l LEFT LEFT => c
        LMOVE {t}missing {t}m LEFT RIGHT => nil
        LMOVE {t}l {t}m up RIGHT => -ERR syntax error
        LMOVE {t}l {t}m LEFT => -ERR wrong number of arguments for 'lmove' command
        RPOPLPUSH {t}l {t}m => b
        LRANGE {t}m 0 -1 => [b d a]
        RPOPLPUSH {t}l {t}m => c
        EXISTS {t}l => :0
        RPOPLPUSH {t}l {t}m => nil
        SET {t}s v => OK
        LMOVE {t}m {t}s LEFT LEFT => -WRONGTYPE Operation against a key holding the wrong kind of value
        RPOPLPUSH {t}m {t}s => -WRONGTYPE Operation against a key holding the wrong kind of value
        LMOVE {t}s {t}m LEFT LEFT => -WRONGTYPE Operation against a key holding the wrong kind of value
        LLEN {t}m => :4
        LMOVE {t}missing {t}s LEFT LEFT => nil
    "#,
    );
}

#[test]
fn lmpop_takes_from_the_first_list_that_has_any() {
    replies(
        r#"
        RPUSH {t}l a b c => :3
        RPUSH {t}m x y => :2
        LMPOP 2 {t}l {t}m LEFT => ["{t}l" [a]]
        LMPOP 2 {t}l {t}m RIGHT COUNT 5 => ["{t}l" [c b]]
        LMPOP 2 {t}l {t}m LEFT COUNT 1 => ["{t}m" [x]]
        LMPOP 1 {t}l LEFT => nil-array
        LMPOP 2 {t}l {t}m right count 100 => ["{t}m" [y]]
        LMPOP 2 {t}l {t}m LEFT => nil-array
        LMPOP 0 {t}l LEFT => -ERR numkeys should be greater than 0
        LMPOP -1 {t}l LEFT => -ERR numkeys should be greater than 0
        LMPOP x {t}l LEFT => -ERR numkeys should be greater than 0
        LMPOP 2 {t}l {t}LEFT => -ERR syntax error
        LMPOP 1 {t}l up => -ERR syntax error
        LMPOP 1 {t}l LEFT COUNT 0 => -ERR count should be greater than 0
        LMPOP 1 {t}l LEFT COUNT -1 => -ERR count should be greater than 0
        LMPOP 1 {t}l LEFT COUNT 1 COUNT 2 => -ERR syntax error
        LMPOP 1 {t}l LEFT bogus => -ERR syntax error
        LMPOP 1 => -ERR wrong number of arguments for 'lmpop' command
        SET {t}s v => OK
        LMPOP 2 {t}l {t}s LEFT => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#,
    );
    replies_resp3(
        r#"
        LMPOP 1 l LEFT => nil
        RPUSH l a b c => :3
        LMPOP 1 l LEFT COUNT 2 => [l [a b]]
        LPOP l 1 => [c]
        LPOP l => nil
        LPOP l 1 => nil
        LPOS l a => nil
    "#,
    );
}

#[test]
fn list_commands_refuse_other_types() {
    replies(
        r#"
        SET s v => OK
        LPUSH s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        RPUSH s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        LPUSHX s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        LPOP s => -WRONGTYPE Operation against a key holding the wrong kind of value
        LPOP s 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        RPOP s => -WRONGTYPE Operation against a key holding the wrong kind of value
        LLEN s => -WRONGTYPE Operation against a key holding the wrong kind of value
        LRANGE s 0 -1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        LINDEX s 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
        LSET s 0 a => -WRONGTYPE Operation against a key holding the wrong kind of value
        LINSERT s BEFORE a b => -WRONGTYPE Operation against a key holding the wrong kind of value
        LTRIM s 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        LREM s 0 a => -WRONGTYPE Operation against a key holding the wrong kind of value
        LPOS s a => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#,
    );
}

#[test]
fn list_encodings_change_at_the_configured_limits() {
    // Redis 7.0 knows no small encoding for lists.
    replies(
        r#"
        RPUSH l a b => :2
        7.2| OBJECT ENCODING l => listpack
        CONFIG SET list-max-listpack-size 3 => OK
        RPUSH l c => :3
        7.2| OBJECT ENCODING l => listpack
        RPUSH l d => :4
        OBJECT ENCODING l => quicklist
        CONFIG GET list-max-listpack-size => [list-max-listpack-size 3]
        CONFIG GET list-compress-depth => [list-compress-depth 0]
        LRANGE l 0 -1 => [a b c d]
    "#,
    );
}

#[test]
fn a_long_list_keeps_its_order() {
    let server = Server::start();
    let mut connection = server.connect();
    for chunk in 0..100 {
        let mut command = vec!["RPUSH".to_owned(), "l".to_owned()];
        command.extend((0..1_000).map(|index| (chunk * 1_000 + index).to_string()));
        assert_eq!(connection.call(&command).integer(), (chunk + 1) * 1_000);
    }
    for index in [0_i64, 1, 999, 1_000, 49_999, 73_123, 99_999] {
        assert_eq!(connection.line(&format!("LINDEX l {index}")).text(), index.to_string());
        assert_eq!(connection.line(&format!("LINDEX l {}", index - 100_000)).text(), index.to_string());
    }
    assert_eq!(connection.line("LINSERT l BEFORE 50000 new").integer(), 100_001);
    assert_eq!(connection.line("LINDEX l 50000").text(), "new");
    assert_eq!(connection.line("LREM l 1 new").integer(), 1);
    let all = connection.line("LRANGE l 0 -1");
    assert!(all.elements().iter().enumerate().all(|(index, value)| value.text() == index.to_string()));
    connection.line("LTRIM l 500 -500");
    assert_eq!(connection.line("LLEN l").integer(), 99_001);
}
