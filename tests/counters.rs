//! INCR and its family, at the edges of integers and floats.

use crate::support::{replies, replies_resp3};

#[test]
fn counters_start_at_zero_and_stay_integers() {
    replies(
        r#"
        INCR a => :1
        INCR a => :2
        DECR a => :1
        INCRBY a 10 => :11
        DECRBY a 3 => :8
        INCRBY a -20 => :-12
        GET a => "-12"
        DECR b => :-1
        DECRBY c 5 => :-5
        INCRBY d 0 => :0
        GET d => 0
        OBJECT ENCODING a => int
        SET e 10 EX 100 => OK
        INCR e => :11
        TTL e => :100
        INCR => -ERR wrong number of arguments for 'incr' command
        INCRBY a => -ERR wrong number of arguments for 'incrby' command
    "#,
    );
}

#[test]
fn counters_never_wrap() {
    replies(
        r#"
        SET a 9223372036854775807 => OK
        INCR a => -ERR increment or decrement would overflow
        INCRBY a 1 => -ERR increment or decrement would overflow
        DECRBY a -1 => -ERR increment or decrement would overflow
        DECR a => :9223372036854775806
        SET a -9223372036854775808 => OK
        DECR a => -ERR increment or decrement would overflow
        DECRBY a 1 => -ERR increment or decrement would overflow
        INCRBY a -1 => -ERR increment or decrement would overflow
        DECRBY a -9223372036854775808 => -ERR decrement would overflow
        GET a => "-9223372036854775808"
        SET a 0 => OK
        DECRBY a 9223372036854775807 => :-9223372036854775807
        INCRBY a 9223372036854775807 => :0
        INCRBY a 9223372036854775808 => -ERR value is not an integer or out of range
        GET a => 0
    "#,
    );
}

#[test]
fn what_is_no_strict_integer_is_refused() {
    replies(
        r#"
        SET a " 1" => OK
        INCR a => -ERR value is not an integer or out of range
        SET a "1 " => OK
        INCR a => -ERR value is not an integer or out of range
        SET a 01 => OK
        INCR a => -ERR value is not an integer or out of range
        SET a +1 => OK
        INCR a => -ERR value is not an integer or out of range
        SET a "" => OK
        INCR a => -ERR value is not an integer or out of range
        SET a 1.0 => OK
        INCR a => -ERR value is not an integer or out of range
        SET a -0 => OK
        INCR a => -ERR value is not an integer or out of range
        SET a abc => OK
        INCR a => -ERR value is not an integer or out of range
        GET a => abc
        SET b 1 => OK
        INCRBY b +1 => -ERR value is not an integer or out of range
        INCRBY b " 1" => -ERR value is not an integer or out of range
        INCRBY b 1.5 => -ERR value is not an integer or out of range
        INCRBY b "" => -ERR value is not an integer or out of range
        INCRBY b 01 => -ERR value is not an integer or out of range
        DECRBY b x => -ERR value is not an integer or out of range
        GET b => 1
        LPUSH l x => :1
        INCR l => -WRONGTYPE Operation against a key holding the wrong kind of value
        DECRBY l 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#,
    );
}

#[test]
fn incrbyfloat_prints_the_shortest_plain_decimal() {
    replies(
        r#"
        INCRBYFLOAT a 1.5 => 1.5
        INCRBYFLOAT a 1.5 => 3
        INCRBYFLOAT a -0.1 => 2.9
        GET a => 2.9
        SET b 10.50 => OK
        INCRBYFLOAT b 0.1 => 10.6
        INCRBYFLOAT b -5 => 5.6
        SET c 5.0e3 => OK
        INCRBYFLOAT c 2.0e2 => 5200
        SET d 3 => OK
        INCRBYFLOAT d 1 => 4
        INCRBYFLOAT d 0.000000000000001 => 4.000000000000001
        INCRBYFLOAT e 3e20 => 300000000000000000000
        INCRBYFLOAT e 1 => 300000000000000000000
        INCRBYFLOAT f 1e-5 => 0.00001
        SET g abc => OK
        INCRBYFLOAT g 1 => -ERR value is not a valid float
        SET g " 1" => OK
        INCRBYFLOAT g 1 => -ERR value is not a valid float
        SET g "1 " => OK
        INCRBYFLOAT g 1 => -ERR value is not a valid float
        INCRBYFLOAT h abc => -ERR value is not a valid float
        INCRBYFLOAT h nan => -ERR value is not a valid float
        INCRBYFLOAT h inf => -ERR increment would produce NaN or Infinity
        INCRBYFLOAT h -inf => -ERR increment would produce NaN or Infinity
        INCRBYFLOAT h "" => -ERR value is not a valid float
        EXISTS h => :0
        INCRBYFLOAT i 1.7 => 1.7
        INCRBYFLOAT i -1.7 => 0
        INCRBYFLOAT j 0x10 => 16
        LPUSH l x => :1
        INCRBYFLOAT l 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        SET t 1 EX 100 => OK
        INCRBYFLOAT t 0.5 => 1.5
        TTL t => :100
        INCRBYFLOAT t => -ERR wrong number of arguments for 'incrbyfloat' command
    "#,
    );
    replies_resp3(
        r#"
        INCRBYFLOAT a 1.25 => 1.25
        INCR b => :1
    "#,
    );
}
