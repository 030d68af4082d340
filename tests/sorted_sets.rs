//! The sorted set commands without blocking, option by option.

use crate::support::{Server, replies, replies_resp3};
use std::collections::BTreeSet;

#[test]
fn zadd_options_decide_what_changes() {
    replies(
        r#"
        ZADD z 1 a 2 b => :2
        ZADD z 3 a 4 c => :1
        ZADD z CH 5 a 6 d => :2
        ZADD z NX 9 a 9 e => :1
        ZSCORE z a => 5
        ZADD z XX 7 a 7 zz => :0
        ZSCORE z zz => nil
        ZADD z XX CH 8 a => :1
        ZADD z GT 5 a 10 b => :0
        ZADD z GT CH 1 a 20 b => :1
        ZADD z LT CH 1 a 30 b => :1
        ZADD z GT CH 1 new => :1
        ZADD z XX GT CH 100 other => :0
        ZADD z INCR 5 a => 6
        ZADD z NX INCR 5 a => nil
        ZADD z XX INCR 5 nope => nil
        ZADD z GT INCR -1 a => nil
        ZADD z LT INCR -1 a => 5
        ZADD z NX XX 1 a => -ERR XX and NX options at the same time are not compatible
        ZADD z NX GT 1 a => -ERR GT, LT, and/or NX options at the same time are not compatible
        ZADD z NX LT 1 a => -ERR GT, LT, and/or NX options at the same time are not compatible
        ZADD z GT LT 1 a => -ERR GT, LT, and/or NX options at the same time are not compatible
        ZADD z INCR 1 a 2 b => -ERR INCR option supports a single increment-element pair
        ZADD z 1 => -ERR wrong number of arguments for 'zadd' command
        ZADD z 1 a 2 => -ERR syntax error
        ZADD z x a => -ERR value is not a valid float
        ZADD z nan a => -ERR value is not a valid float
        ZADD z 1 a x b => -ERR value is not a valid float
        ZADD z inf p -inf q => :2
        ZSCORE z p => inf
        ZSCORE z q => "-inf"
        ZADD z INCR -inf p => -ERR resulting score is not a number (NaN)
        ZADD z NX => -ERR wrong number of arguments for 'zadd' command
        ZADD z bogus 1 a => -ERR syntax error
        ZADD missing XX 1 a => :0
        EXISTS missing => :0
        ZRANGE z 0 -1 WITHSCORES => [q "-inf" new 1 c 4 a 5 d 6 e 9 b 20 p inf]
        ZADD f 1.5 a 1e3 b 3.0 d => :3
        ZRANGE f 0 -1 WITHSCORES => [a 1.5 d 3 b 1000]
        # From 7.2 on scores are printed with the fewest digits that read back as the same number.
        ZADD g 0.1 a 1e-5 b 1e-7 c 1e20 d 123456789012345680 e 3.14159265358979 f -2.5e-10 g => :7
        7.2| ZSCORE g a => 0.1
        7.2| ZSCORE g b => 0.00001
        7.2| ZSCORE g c => 1e-7
        7.2| ZSCORE g d => 1e+20
        7.2| ZSCORE g e => 123456789012345680
        7.2| ZSCORE g f => 3.14159265358979
        7.2| ZSCORE g g => "-2.5e-10"
        ZADD f 0x10 hex => :1
        ZSCORE f hex => 16
        ZADD f 1_0 u => -ERR value is not a valid float
        ZADD f "" u => -ERR value is not a valid float
        ZADD f " 1" u => -ERR value is not a valid float
    "#,
    );
}

#[test]
fn scores_ranks_and_counts_are_read() {
    replies(
        r#"
        ZADD z 1 a 2 b 3 c 3 d => :4
        ZCARD z => :4
        ZCARD missing => :0
        ZSCORE z c => 3
        ZSCORE z zz => nil
        ZSCORE missing a => nil
        ZMSCORE z a zz d => [1 nil 3]
        ZMSCORE missing a b => [nil nil]
        ZRANK z a => :0
        ZRANK z d => :3
        ZREVRANK z d => :0
        ZREVRANK z a => :3
        ZRANK z zz => nil
        ZREVRANK missing a => nil
        7.2| ZRANK z c WITHSCORE => [:2 3]
        7.2| ZREVRANK z c WITHSCORE => [:1 3]
        7.2| ZRANK z zz WITHSCORE => nil-array
        7.2| ZRANK missing a WITHSCORE => nil-array
        7.2| ZRANK z a bogus => -ERR syntax error
        ZCOUNT z 2 3 => :3
        ZCOUNT z (2 3 => :2
        ZCOUNT z (2 (3 => :0
        ZCOUNT z -inf +inf => :4
        ZCOUNT z 5 1 => :0
        ZCOUNT missing 1 2 => :0
        ZCOUNT z x 1 => -ERR min or max is not a float
        ZCOUNT z 1 (x => -ERR min or max is not a float
        ZCOUNT z nan 1 => -ERR min or max is not a float
        ZINCRBY z 2.5 a => 3.5
        ZINCRBY z -2.5 a => 1
        ZINCRBY z 1 new => 1
        ZINCRBY z x a => -ERR value is not a valid float
        ZINCRBY z inf a => inf
        ZINCRBY z -inf a => -ERR resulting score is not a number (NaN)
        ZREM z a zz => :1
        ZREM missing a => :0
        ZREM z b c d new => :4
        EXISTS z => :0
    "#,
    );
    replies_resp3(
        r#"
        ZADD z 1 a 2.5 b => :2
        ZSCORE z b => ,2.5
        ZSCORE z zz => nil
        ZMSCORE z a zz => [,1 nil]
        ZINCRBY z 0.5 a => ,1.5
        ZADD z INCR 1 a => ,2.5
        ZADD z NX INCR 1 a => nil
        ZRANK z a => :0
        7.2| ZRANK z a WITHSCORE => [:0 ,2.5]
        7.2| ZRANK z zz WITHSCORE => nil
        ZADD z inf c -inf d => :2
        ZSCORE z c => ,inf
        ZRANGE z 0 -1 WITHSCORES => [[d ,-inf] [a ,2.5] [b ,2.5] [c ,inf]]
        ZRANGE z 0 -1 => [d a b c]
    "#,
    );
}

#[test]
fn zrange_selects_by_rank_score_and_name() {
    replies(
        r#"
        ZADD z 1 a 2 b 3 c 4 d => :4
        ZRANGE z 0 -1 => [a b c d]
        ZRANGE z 1 2 WITHSCORES => [b 2 c 3]
        ZRANGE z -2 -1 => [c d]
        ZRANGE z 3 1 => []
        ZRANGE z 0 1 REV => [d c]
        ZRANGE z 0 1 REV WITHSCORES => [d 4 c 3]
        ZRANGE z 2 3 BYSCORE => [b c]
        ZRANGE z (2 +inf BYSCORE => [c d]
        ZRANGE z 3 2 BYSCORE REV => [c b]
        ZRANGE z +inf -inf BYSCORE REV LIMIT 1 2 => [c b]
        ZRANGE z -inf +inf BYSCORE LIMIT 1 -1 => [b c d]
        ZRANGE z -inf +inf BYSCORE LIMIT -1 2 => []
        ZRANGE z -inf +inf BYSCORE LIMIT 9 2 => []
        ZRANGE z 0 1 LIMIT 0 1 => -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        ZRANGE z 0 1 BYSCORE BYLEX => -ERR syntax error
        ZRANGE z - + BYLEX WITHSCORES => -ERR syntax error, WITHSCORES not supported in combination with BYLEX
        ZRANGE z 0 1 bogus => -ERR syntax error
        ZRANGE z x 1 => -ERR value is not an integer or out of range
        ZRANGE z x 1 BYSCORE => -ERR min or max is not a float
        ZRANGE z 0 1 BYSCORE LIMIT 0 => -ERR syntax error
        ZRANGE z 0 1 BYSCORE LIMIT x 1 => -ERR value is not an integer or out of range
        ZRANGE missing 0 -1 => []
        ZREVRANGE z 0 1 => [d c]
        ZREVRANGE z 0 1 WITHSCORES => [d 4 c 3]
        ZREVRANGE z 0 1 BYSCORE => -ERR syntax error
        ZRANGEBYSCORE z 2 3 => [b c]
        ZRANGEBYSCORE z (1 (4 WITHSCORES => [b 2 c 3]
        ZRANGEBYSCORE z -inf inf LIMIT 1 2 => [b c]
        ZRANGEBYSCORE z -inf inf WITHSCORES LIMIT 1 1 => [b 2]
        ZRANGEBYSCORE z x 3 => -ERR min or max is not a float
        ZRANGEBYSCORE z 1 3 REV => -ERR syntax error
        ZREVRANGEBYSCORE z 3 2 => [c b]
        ZREVRANGEBYSCORE z +inf (2 WITHSCORES LIMIT 0 1 => [d 4]
        ZADD n 0 a 0 b 0 c 0 d => :4
        ZRANGE n [b [c BYLEX => [b c]
        ZRANGE n (b + BYLEX => [c d]
        ZRANGE n - (c BYLEX => [a b]
        ZRANGE n + - BYLEX REV LIMIT 0 2 => [d c]
        ZRANGEBYLEX n - + => [a b c d]
        ZRANGEBYLEX n [b (d => [b c]
        ZRANGEBYLEX n - + LIMIT 1 2 => [b c]
        ZRANGEBYLEX n + - => []
        ZRANGEBYLEX n b c => -ERR min or max not valid string range item
        ZREVRANGEBYLEX n + - => [d c b a]
        ZREVRANGEBYLEX n (d [b LIMIT 0 1 => [c]
        ZLEXCOUNT n - + => :4
        ZLEXCOUNT n (a [c => :2
        ZLEXCOUNT n b c => -ERR min or max not valid string range item
        ZLEXCOUNT missing - + => :0
    "#,
    );
    replies_resp3(
        r#"
        ZADD z 1 a 2 b => :2
        ZRANGEBYSCORE z -inf +inf WITHSCORES => [[a ,1] [b ,2]]
        ZREVRANGE z 0 -1 WITHSCORES => [[b ,2] [a ,1]]
        ZREVRANGEBYSCORE z +inf -inf WITHSCORES => [[b ,2] [a ,1]]
        ZRANGE z 0 -1 BYSCORE REV => []
    "#,
    );
}

#[test]
fn ranges_are_stored_and_removed() {
    replies(
        r#"
        ZADD {t}z 1 a 2 b 3 c 4 d 5 e => :5
        ZRANGESTORE {t}d {t}z 1 3 => :3
        ZRANGE {t}d 0 -1 WITHSCORES => [b 2 c 3 d 4]
        ZRANGESTORE {t}d {t}z 2 4 BYSCORE LIMIT 1 1 => :1
        ZRANGE {t}d 0 -1 => [c]
        ZRANGESTORE {t}d {t}z 0 1 REV => :2
        ZRANGE {t}d 0 -1 => [d e]
        ZRANGESTORE {t}d {t}z 0 1 WITHSCORES => -ERR syntax error
        ZRANGESTORE {t}d {t}z 9 10 => :0
        EXISTS {t}d => :0
        ZRANGESTORE {t}d {t}missing 0 1 => :0
        SET {t}s v => OK
        ZRANGESTORE {t}s {t}z 0 0 => :1
        TYPE {t}s => +zset
        SET {t}s v => OK
        ZRANGESTORE {t}d {t}s 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZREMRANGEBYRANK {t}z 0 0 => :1
        ZREMRANGEBYRANK {t}z -1 -1 => :1
        ZREMRANGEBYRANK {t}z 5 9 => :0
        ZREMRANGEBYRANK {t}z x 9 => -ERR value is not an integer or out of range
        ZREMRANGEBYSCORE {t}z 2 (3 => :1
        ZREMRANGEBYSCORE {t}z x 1 => -ERR min or max is not a float
        ZREMRANGEBYSCORE {t}z -inf +inf => :2
        EXISTS {t}z => :0
        ZADD {t}n 0 a 0 b 0 c => :3
        ZREMRANGEBYLEX {t}n [a (c => :2
        ZREMRANGEBYLEX {t}n a c => -ERR min or max not valid string range item
        ZREMRANGEBYLEX {t}n - + => :1
        EXISTS {t}n => :0
        ZREMRANGEBYRANK {t}missing 0 1 => :0
    "#,
    );
}

#[test]
fn pops_take_from_either_end() {
    replies(
        r#"
        ZADD z 1 a 2 b 3 c 4 d 5 e => :5
        ZPOPMIN z => [a 1]
        ZPOPMAX z => [e 5]
        ZPOPMIN z 2 => [b 2 c 3]
        ZPOPMIN z 0 => []
        ZPOPMAX z 10 => [d 4]
        EXISTS z => :0
        ZPOPMIN missing => []
        ZPOPMAX missing 3 => []
        ZPOPMIN z -1 => -ERR value is out of range, must be positive
        ZPOPMIN z x => -ERR value is out of range, must be positive
        ZPOPMIN z 1 2 => -ERR syntax error
        ZADD {t}z 1 a 2 b => :2
        ZADD {t}y 5 x 6 y => :2
        ZMPOP 2 {t}z {t}y MIN => ["{t}z" [[a 1]]]
        ZMPOP 2 {t}z {t}y MAX COUNT 5 => ["{t}z" [[b 2]]]
        ZMPOP 2 {t}z {t}y max => ["{t}y" [[y 6]]]
        ZMPOP 1 {t}z MIN => nil-array
        ZMPOP 1 {t}z bogus => -ERR syntax error
        ZMPOP 0 {t}z MIN => -ERR numkeys should be greater than 0
        ZMPOP 1 {t}z MIN COUNT 0 => -ERR count should be greater than 0
        ZMPOP 3 {t}z MIN => -ERR syntax error
        ZMPOP 1 {t}z MIN COUNT 1 COUNT 1 => -ERR syntax error
        SET {t}s v => OK
        ZMPOP 2 {t}s {t}y MIN => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZPOPMIN {t}s => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#,
    );
    replies_resp3(
        r#"
        ZADD z 1 a 2.5 b 3 c 4 d => :4
        ZPOPMIN z => [a ,1]
        ZPOPMIN z 1 => [[b ,2.5]]
        ZPOPMAX z 2 => [[d ,4] [c ,3]]
        ZPOPMAX z => []
        ZPOPMIN z 2 => []
        ZMPOP 1 z MIN => nil
        ZADD z 1 a 2 b => :2
        ZMPOP 1 z MIN COUNT 2 => [z [[a ,1] [b ,2]]]
    "#,
    );
}

#[test]
fn sorted_sets_are_combined() {
    replies(
        r#"
        ZADD {t}a 1 x 2 y 3 z => :3
        ZADD {t}b 10 y 20 z 30 w => :3
        SADD {t}s x w => :2
        ZUNION 2 {t}a {t}b => [x y z w]
        ZUNION 2 {t}a {t}b WITHSCORES => [x 1 y 12 z 23 w 30]
        ZUNION 2 {t}a {t}b WEIGHTS 2 0.5 WITHSCORES => [x 2 y 9 w 15 z 16]
        ZUNION 2 {t}a {t}b AGGREGATE MIN WITHSCORES => [x 1 y 2 z 3 w 30]
        ZUNION 2 {t}a {t}b AGGREGATE MAX WITHSCORES => [x 1 y 10 z 20 w 30]
        ZUNION 2 {t}a {t}s WITHSCORES => [w 1 x 2 y 2 z 3]
        ZINTER 2 {t}a {t}b WITHSCORES => [y 12 z 23]
        ZINTER 2 {t}a {t}b WEIGHTS 1 -1 AGGREGATE max WITHSCORES => [y 2 z 3]
        ZINTER 2 {t}a {t}missing => []
        ZDIFF 2 {t}a {t}b WITHSCORES => [x 1]
        ZDIFF 2 {t}missing {t}a => []
        ZDIFF 2 {t}a {t}b WEIGHTS 1 2 => -ERR syntax error
        ZINTERCARD 2 {t}a {t}b => :2
        ZINTERCARD 2 {t}a {t}b LIMIT 1 => :1
        ZINTERCARD 2 {t}a {t}b LIMIT -1 => -ERR LIMIT can't be negative
        ZINTERCARD 0 {t}a => -ERR at least 1 input key is needed for 'zintercard' command
        ZINTERCARD 3 {t}a {t}b => -ERR syntax error
        ZUNIONSTORE {t}d 2 {t}a {t}b => :4
        ZRANGE {t}d 0 -1 WITHSCORES => [x 1 y 12 z 23 w 30]
        ZINTERSTORE {t}d 2 {t}a {t}b AGGREGATE MIN => :2
        ZRANGE {t}d 0 -1 WITHSCORES => [y 2 z 3]
        ZDIFFSTORE {t}d 2 {t}a {t}b => :1
        ZRANGE {t}d 0 -1 WITHSCORES => [x 1]
        ZINTERSTORE {t}d 2 {t}a {t}missing => :0
        EXISTS {t}d => :0
        ZUNIONSTORE {t}a 2 {t}a {t}b WEIGHTS 1 2 => :4
        ZRANGE {t}a 0 -1 WITHSCORES => [x 1 y 22 z 43 w 60]
        ZUNION 0 {t}a => -ERR at least 1 input key is needed for 'zunion' command
        ZUNION x {t}a => -ERR value is not an integer or out of range
        ZUNIONSTORE {t}d 0 {t}a => -ERR at least 1 input key is needed for 'zunionstore' command
        ZUNION 3 {t}a {t}b => -ERR syntax error
        ZUNION 2 {t}a {t}b WEIGHTS 1 => -ERR syntax error
        ZUNION 2 {t}a {t}b WEIGHTS 1 x => -ERR weight value is not a float
        ZUNION 2 {t}a {t}b AGGREGATE AVG => -ERR syntax error
        ZUNIONSTORE {t}d 2 {t}a {t}b WITHSCORES => -ERR syntax error
        ZADD {t}i inf m => :1
        ZADD {t}j -inf m => :1
        ZUNION 2 {t}i {t}j WITHSCORES => [m 0]
        ZUNION 1 {t}i WEIGHTS 0 WITHSCORES => [m 0]
        SET {t}str v => OK
        ZUNION 2 {t}a {t}str => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZINTERSTORE {t}d 2 {t}a {t}str => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZDIFF 1 => -ERR wrong number of arguments for 'zdiff' command
    "#,
    );
    replies_resp3(
        r#"
        ZADD {t}a 1 x 2 y => :2
        ZUNION 1 {t}a WITHSCORES => [[x ,1] [y ,2]]
        ZDIFF 1 {t}a WITHSCORES => [[x ,1] [y ,2]]
        ZINTER 2 {t}a {t}a WITHSCORES => [[x ,2] [y ,4]]
        ZINTER 2 {t}a {t}a => [x y]
    "#,
    );
}

#[test]
fn zrandmember_respects_count_and_shape() {
    replies(
        r#"
        ZRANDMEMBER missing => nil
        ZRANDMEMBER missing 3 => []
        ZADD z 1 a => :1
        ZRANDMEMBER z => a
        ZRANDMEMBER z 5 => [a]
        ZRANDMEMBER z -3 => [a a a]
        ZRANDMEMBER z 0 => []
        ZRANDMEMBER z -2 WITHSCORES => [a 1 a 1]
        ZRANDMEMBER z 1 bogus => -ERR syntax error
        ZRANDMEMBER z x => -ERR value is not an integer or out of range
        ZRANDMEMBER z -9223372036854775808 => -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        ZRANDMEMBER z 1 WITHSCORES extra => -ERR syntax error
    "#,
    );
    replies_resp3(
        r#"
        ZADD z 1 a => :1
        ZRANDMEMBER z -2 WITHSCORES => [[a ,1] [a ,1]]
        ZRANDMEMBER z 1 => [a]
        ZRANDMEMBER missing => nil
    "#,
    );
}

#[test]
fn sorted_set_commands_refuse_other_types() {
    replies(
        r#"
        SET s v => OK
        ZADD s 1 a => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZADD s x a => -ERR value is not a valid float
        ZINCRBY s 1 a => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZREM s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZCARD s => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZSCORE s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZMSCORE s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZRANK s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZCOUNT s 1 2 => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZRANGE s 0 -1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZRANGEBYSCORE s 1 2 => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZRANGEBYLEX s - + => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZLEXCOUNT s - + => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZREMRANGEBYRANK s 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZPOPMAX s => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZRANDMEMBER s => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZSCAN s 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#,
    );
}

#[test]
fn sorted_set_encodings_change_at_the_configured_limits() {
    replies(
        r#"
        ZADD z 1 a => :1
        OBJECT ENCODING z => listpack
        CONFIG SET zset-max-listpack-entries 2 => OK
        ZADD z 2 b => :1
        OBJECT ENCODING z => listpack
        ZADD z 3 c => :1
        OBJECT ENCODING z => skiplist
        CONFIG SET zset-max-listpack-value 4 => OK
        ZADD y 1 12345 => :1
        OBJECT ENCODING y => skiplist
        CONFIG SET zset-max-ziplist-entries 9 => OK
        CONFIG GET zset-max-listpack-entries => [zset-max-listpack-entries 9]
        ZRANGE z 0 -1 WITHSCORES => [a 1 b 2 c 3]
    "#,
    );
}

#[test]
fn zscan_gives_members_with_their_scores() {
    replies(
        r#"
        ZADD z 1 a 2.5 b => :2
        ZSCAN z 0 => [0 ??[a 1 b 2.5]]
        ZSCAN z 0 MATCH b => [0 ??[b 2.5]]
        ZSCAN z 0 NOSCORES => [0 ??[a b]]
        ZSCAN z 0 NOVALUES => -ERR NOVALUES option can only be used in HSCAN
        ZSCAN missing 0 => [0 ??[]]
        ZSCAN z x => -ERR invalid cursor
        ZSCAN z 0 COUNT 0 => -ERR syntax error
    "#,
    );
}

#[test]
fn a_large_sorted_set_keeps_order_and_ranks() {
    let server = Server::start();
    let mut connection = server.connect();
    // 7919 is prime, so every score from 0 to 9,999 comes once, in a scattered order.
    let scores: Vec<u64> = (0..10_000).map(|index| index * 7_919 % 10_000).collect();
    for chunk in scores.chunks(500) {
        let mut command = vec!["ZADD".to_owned(), "z".to_owned()];
        command.extend(chunk.iter().flat_map(|score| [score.to_string(), format!("member:{score:05}")]));
        assert_eq!(connection.call(&command).integer(), 500);
    }
    for score in [0, 1, 4_999, 5_000, 9_998, 9_999] {
        assert_eq!(connection.line(&format!("ZRANK z member:{score:05}")).integer(), score);
        assert_eq!(connection.line(&format!("ZREVRANK z member:{score:05}")).integer(), 9_999 - score);
    }
    assert_eq!(connection.line("ZCOUNT z (100 200").integer(), 100);
    let all = connection.line("ZRANGE z 0 -1");
    let distinct: BTreeSet<&str> = all.elements().iter().map(|member| member.text()).collect();
    assert!(distinct.len() == 10_000 && all.elements().is_sorted_by_key(|member| member.text().to_owned()));
    assert_eq!(connection.line("ZREMRANGEBYSCORE z 1000 8999").integer(), 8_000);
    assert_eq!(connection.line("ZRANK z member:09000").integer(), 1_000);
}
