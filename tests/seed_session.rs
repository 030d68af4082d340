//! The session that introduces the native commands, from the first line to the last, in one connection.

use crate::support::replies;

#[test]
fn the_introducing_session_answers_reply_for_reply() {
    replies(
        r#"
        # Move money only if there is enough.
        SET {user:42}:wallet 50 => OK
        TRANSFER {user:42}:wallet {user:42}:escrow 30 => [:20 :30]
        TRANSFER {user:42}:wallet {user:42}:escrow 30 => nil-array
        GET {user:42}:wallet => 20
        GET {user:42}:escrow => 30
        HSET account:7 available 50 => :1
        HTRANSFER account:7 available held 30 MAX 1000 => [:20 :30]
        HTRANSFER account:7 available held 30 MAX 1000 => nil-array

        # Sell the last ticket once.
        SET stock:ticket-42 500 => OK
        TAKE stock:ticket-42 2 => :498
        TAKE stock:ticket-42 1000 => nil
        GET stock:ticket-42 => 498
        SET seats:room-9 56 => OK
        INCRBY seats:room-9 1 MAX 120 => :57
        INCRBY seats:room-9 63 MAX 120 => :120
        INCRBY seats:room-9 1 MAX 120 => nil

        # A daily counter that cleans up after itself.
        INCR hits:user-7:2026-10-29 EX 86400 => :1
        INCR hits:user-7:2026-10-29 EX 86400 => :2
        INCR hits:user-7:2026-10-29 => :3
        TTL hits:user-7:2026-10-29 => :86399..86400

        # Keep the newest value, whatever order writers arrive in.
        SET watermark:orders 1700000200 IFGT => OK
        SET watermark:orders 1700000100 IFGT => nil
        GET watermark:orders => 1700000200
        SET price:best 499 IFLT PX 3600000 => OK
        PTTL price:best => :3590000..3600000

        # A rate limit in one round trip.
        LIMIT api:key-7 3 60000 => :2
        LIMIT api:key-7 3 60000 => :1
        LIMIT api:key-7 3 60000 => :0
        LIMIT api:key-7 3 60000 => nil
        LIMIT api:key-7:sliding 100 60000 SLIDING => :99
        LIMIT api:key-7:burst 10 1000 TOKENS COST 2 WITHRETRY => [:8 :0]

        # Pop the jobs that are due.
        ZADD {jobs}:due 100 job:9 200 job:10 300 job:11 => :3
        ZPOPBYSCORE {jobs}:due 150 COUNT 10 => [job:9]
        ZMOVEDUE {jobs}:due {jobs}:ready 250 COUNT 100 => :1
        LRANGE {jobs}:ready 0 -1 => [job:10]
        ZRANGE {jobs}:due 0 -1 WITHSCORES => [job:11 300]
        ZMOVEDUE due ready 250 => -CROSSSLOT Keys in request don't hash to the same slot

        # Save only if nobody else saved first.
        SETV profile:ada v1 => :1
        SETV profile:ada v2 1 => :2
        SETV profile:ada v3 1 => -ERR version mismatch
        GETV profile:ada => [v2 :2]
    "#,
    );
}
