//! `SORT` and `LCS` through the server: routing and documentation.

use crate::support::replies;

#[test]
fn elements_are_sorted() {
    replies(
        r#"
        RPUSH {t}l 3 1 2 => :3
        MSET {t}w1 20 {t}w2 30 {t}w3 10 => OK
        SORT {t}l => [1 2 3]
        SORT {t}l DESC LIMIT 0 2 => [3 2]
        SORT {t}l BY {t}w* => [3 1 2]
        SORT {t}l BY {t}w* GET # GET {t}w* => [3 10 1 20 2 30]
        SORT_RO {t}l ALPHA => [1 2 3]
        SORT {t}l STORE {t}d => :3
        LRANGE {t}d 0 -1 => [1 2 3]
        SORT {t}l BY w* => -ERR BY option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots.
        SORT {t}l STORE d => -CROSSSLOT Keys in request don't hash to the same slot
        SORT {t}l BY store STORE {t}d => :3
        SORT_RO {t}l STORE {t}d => -ERR syntax error
        COMMAND GETKEYS SORT abc STORE invalid STORE stillbad STORE def => [abc def]
        COMMAND GETKEYS SORT abc BY store LIMIT 0 store => [abc]
        COMMAND GETKEYS SORT_RO abc => [abc]
        COMMAND GETKEYS MIGRATE host 1 key 0 1 => [key]
        COMMAND GETKEYS MIGRATE host 1 "" 0 1 COPY KEYS a b => [a b]
    "#,
    );
}

#[test]
fn common_subsequences_are_found() {
    replies(
        r#"
        MSET {t}a ohmytext {t}b mynewtext => OK
        LCS {t}a {t}b => mytext
        LCS {t}a {t}b LEN => :6
        LCS {t}a {t}b IDX => ["matches" [[[:4 :7] [:5 :8]] [[:2 :3] [:0 :1]]] "len" :6]
        LCS {t}a other => -CROSSSLOT Keys in request don't hash to the same slot
    "#,
    );
}
