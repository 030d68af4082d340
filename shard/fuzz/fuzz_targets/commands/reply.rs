//! Reading one reply strictly.

use ruvio_shard::reply::Protocol;

/// A reply as it came over the wire.
#[derive(Debug)]
pub enum Reply {
    /// Nil of any kind.
    Null,
    /// Text, a number, a truth value.
    Leaf(Vec<u8>),
    /// An array, a set, a map.
    Aggregate(Vec<Reply>),
}

impl Reply {
    /// Reads the one reply that `bytes` consist of; panics when they are anything else.
    pub fn parse_only(bytes: &[u8], protocol: Protocol) -> Reply {
        let (reply, rest) = Reply::parse(bytes, protocol);
        assert!(rest.is_empty(), "one reply: {}", bytes.escape_ascii());
        reply
    }

    fn parse(bytes: &[u8], protocol: Protocol) -> (Reply, &[u8]) {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n").expect("a whole line");
        let (line, rest) = (&bytes[1..end], &bytes[end + 2..]);
        assert!(!line.contains(&b'\n') && !line.contains(&b'\r'), "one line");
        let text = || std::str::from_utf8(line).expect("a number");
        let count = || text().parse::<usize>().expect("a length");
        let leaf = |bytes: &[u8]| Reply::Leaf(bytes.to_vec());
        if protocol == Protocol::Resp2 {
            assert!(b"+-:$*".contains(&bytes[0]), "RESP2 has no {}", bytes[0].escape_ascii());
        } else {
            assert!(line != b"-1" || !b"$*".contains(&bytes[0]), "RESP3 has a nil of its own");
        }
        match bytes[0] {
            b'+' | b'-' => (leaf(line), rest),
            b':' => {
                let number: i64 = text().parse().expect("an integer");
                assert_eq!(number.to_string().as_bytes(), line);
                (leaf(line), rest)
            }
            b'_' => {
                assert!(line.is_empty());
                (Reply::Null, rest)
            }
            b'#' => {
                assert!(line == b"t" || line == b"f");
                (leaf(if line == b"t" { b"1" } else { b"0" }), rest)
            }
            b',' => {
                assert!(!text().parse::<f64>().expect("a double").is_nan());
                (leaf(line), rest)
            }
            b'$' | b'*' if line == b"-1" => (Reply::Null, rest),
            b'$' => {
                let (content, rest) = rest.split_at(count());
                (leaf(content), rest.strip_prefix(b"\r\n").expect("an end"))
            }
            b'*' | b'~' => Reply::parse_parts(rest, count(), protocol),
            b'%' => Reply::parse_parts(rest, 2 * count(), protocol),
            mark => panic!("a reply that begins with {}", mark.escape_ascii()),
        }
    }

    fn parse_parts(mut rest: &[u8], count: usize, protocol: Protocol) -> (Reply, &[u8]) {
        let mut parts = Vec::new();
        for _ in 0..count {
            let (part, behind) = Reply::parse(rest, protocol);
            parts.push(part);
            rest = behind;
        }
        (Reply::Aggregate(parts), rest)
    }

    /// Its leaves in order, which do not depend on the protocol. Zeros have no sign: as in Redis, a packed sorted set
    /// does not keep it while a large one does.
    pub fn into_leaves(self) -> Vec<Vec<u8>> {
        let mut leaves = Vec::new();
        self.collect(&mut leaves);
        leaves
    }

    fn collect(self, leaves: &mut Vec<Vec<u8>>) {
        match self {
            Reply::Null => leaves.push(b"(nil)".to_vec()),
            Reply::Leaf(bytes) if bytes == b"-0" => leaves.push(b"0".to_vec()),
            Reply::Leaf(bytes) => leaves.push(bytes),
            Reply::Aggregate(parts) => parts.into_iter().for_each(|part| part.collect(leaves)),
        }
    }
}
