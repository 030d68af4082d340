//! The forms that other versions of Redis write, put together here byte by byte.

use ruvio_shard::settings::Settings;

use super::{content, new_shard, restore_content, small_limits};

/// A string of up to 16,383 bytes in an RDB.
pub fn blob(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x40 | (bytes.len() >> 8) as u8, bytes.len() as u8];
    out.extend_from_slice(bytes);
    out
}

/// A ziplist of entries that are given as encoding and content.
pub fn ziplist(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    let (mut before, mut last) = (0_usize, 10);
    for entry in entries {
        last = 10 + body.len();
        if before < 254 {
            body.push(before as u8);
        } else {
            body.push(254);
            body.extend_from_slice(&(before as u32).to_le_bytes());
        }
        body.extend_from_slice(entry);
        before = 10 + body.len() - last;
    }
    let mut out = ((10 + body.len() + 1) as u32).to_le_bytes().to_vec();
    out.extend_from_slice(&(last as u32).to_le_bytes());
    out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    out.extend_from_slice(&body);
    out.push(255);
    out
}

/// A string as a ziplist's entry, with its length in 1, 2 or 5 bytes as it needs.
pub fn entry(text: &[u8]) -> Vec<u8> {
    let mut out = match text.len() {
        len @ ..64 => vec![len as u8],
        len @ 64..16_384 => vec![0x40 | (len >> 8) as u8, len as u8],
        len => [&[0x80], &(len as u32).to_be_bytes()[..]].concat(),
    };
    out.extend_from_slice(text);
    out
}

/// Every encoding of an integer in a ziplist, and the integer.
pub fn integers() -> Vec<(Vec<u8>, i64)> {
    vec![
        (vec![0xf1], 0),
        (vec![0xfd], 12),
        (vec![0xfe, 0x9c], -100),
        (vec![0xc0, 0x18, 0xfc], -1000),
        (vec![0xf0, 0x40, 0x42, 0x0f], 1_000_000),
        (vec![0xf0, 0xff, 0xff, 0xff], -1),
        (vec![0xd0, 0xff, 0xff, 0xff, 0x7f], i64::from(i32::MAX)),
        (vec![0xe0, 0, 0, 0, 0, 0, 0, 0, 0x80], i64::MIN),
    ]
}

/// A listpack of strings of less than 64 bytes.
pub fn listpack(elements: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    for element in elements {
        body.push(0x80 | element.len() as u8);
        body.extend_from_slice(element.as_bytes());
        body.push(element.len() as u8 + 1);
    }
    let mut out = ((6 + body.len() + 1) as u32).to_le_bytes().to_vec();
    out.extend_from_slice(&(elements.len() as u16).to_le_bytes());
    out.extend_from_slice(&body);
    out.push(255);
    out
}

/// Contents of every type that is read, each with what is to be had of it.
pub fn contents() -> Vec<(Vec<u8>, Vec<&'static str>)> {
    let typed = |value_type: u8, rest: &[u8]| [&[value_type], rest].concat();
    let nodes = |parts: &[Vec<u8>]| [vec![parts.len() as u8], parts.concat()].concat();
    let long: &'static str = "long enough that an entry behind it tells its length in five bytes, which takes more than two \
         hundred and fifty-three bytes, so this goes on for quite a while and says nothing that anybody would want to know, \
         but it must be as long as that to be of any use here, and now it is, or nearly so: here is the end of it";
    let small = ziplist(&[entry(b"a"), vec![0xf3], entry(b"b"), entry(b"x")]);
    vec![
        (typed(0, b"\x05hello"), vec!["hello"]),
        (typed(0, b"\xc0\x85"), vec!["-123"]),
        (typed(0, b"\xc2\x00\x00\x00\x80"), vec!["-2147483648"]),
        (typed(0, b"\x80\x00\x00\x00\x02hi"), vec!["hi"]),
        (typed(0, b"\x81\x00\x00\x00\x00\x00\x00\x00\x02hi"), vec!["hi"]),
        (typed(0, b"\xc3\x09\x1e\x01aa\xe0\x11\x00\x01aa"), vec!["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]),
        (typed(1, b"\x02\x01a\xc0\x07"), vec!["a", "7"]),
        (typed(2, b"\x02\x01a\xc0\x07"), vec!["7", "a"]),
        (typed(3, b"\x03\x01a\x031.5\x01b\xfe\x01c\xff"), vec!["c", "-inf", "a", "1.5", "b", "inf"]),
        (typed(4, b"\x01\x01f\x01v"), vec!["f", "v"]),
        (typed(5, b"\x01\x01m\x00\x00\x00\x00\x00\x00\xf8\xbf"), vec!["m", "-1.5"]),
        (typed(9, &blob(b"\x02\x01f\x02\x01vv_\x01g\x00\x00\xff")), vec!["f", "vv", "g", ""]),
        (typed(9, &blob(b"\xfe\x01f\xfe\x02\x00\x00\x00\x00vv\xff")), vec!["f", "vv"]),
        (
            typed(10, &blob(&ziplist(&[entry(b"a"), vec![0xf3], entry(long.as_bytes()), entry(b"")]))),
            vec!["a", "2", long, ""],
        ),
        (typed(11, &blob(b"\x02\0\0\0\x02\0\0\0\xff\xff\x05\x00")), vec!["-1", "5"]),
        (typed(11, &blob(b"\x08\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0")), vec!["1"]),
        (
            typed(12, &blob(&ziplist(&[entry(b"m"), entry(b"-0.25"), entry(b"n"), vec![0xf3]]))),
            vec!["m", "-0.25", "n", "2"],
        ),
        (typed(13, &blob(&small)), vec!["a", "2", "b", "x"]),
        (
            typed(14, &nodes(&[blob(&small), blob(&ziplist(&[])), blob(&small)])),
            vec!["a", "2", "b", "x", "a", "2", "b", "x"],
        ),
        (typed(16, &blob(&listpack(&["f", "v", "g", "w"]))), vec!["f", "v", "g", "w"]),
        (typed(17, &blob(&listpack(&["m", "2.5", "n", "10"]))), vec!["m", "2.5", "n", "10"]),
        // Out of order, which Redis would not write: what counts are the scores.
        (typed(17, &blob(&listpack(&["n", "10", "m", "2.5"]))), vec!["m", "2.5", "n", "10"]),
        (
            typed(18, &[&[2, 2], &blob(&listpack(&["a", "12"]))[..], &[1, 5], b"plain"].concat()),
            vec!["a", "12", "plain"],
        ),
        (typed(20, &blob(&listpack(&["m", "12"]))), vec!["12", "m"]),
        (typed(24, b"\0\0\0\0\0\0\0\0\x01\x00\x01f\x01v"), vec!["f", "v"]),
        (typed(25, &[&[0; 8], &blob(b"\x0f\0\0\0\x03\0\x81f\x02\x81v\x02\x00\x01\xff")[..]].concat()), vec!["f", "v"]),
    ]
}

#[test]
fn every_form_is_read() {
    for settings in [Settings::default(), small_limits()] {
        let mut shard = new_shard(settings);
        for (bytes, wanted) in contents() {
            assert_eq!(restore_content(&mut shard, "k", &bytes), b"+OK\r\n", "{bytes:?}");
            let mut found = content(&mut shard, "k");
            found.pop();
            if bytes[0] == 9 || bytes[0] == 13 || bytes[0] == 16 {
                // Fields come sorted here.
                let mut pairs: Vec<_> = wanted.chunks(2).collect();
                pairs.sort();
                assert_eq!(found, pairs.concat().iter().map(|text| text.as_bytes()).collect::<Vec<_>>(), "{bytes:?}");
            } else {
                assert_eq!(found, wanted.iter().map(|text| text.as_bytes()).collect::<Vec<_>>(), "{bytes:?}");
            }
        }
    }
}

#[test]
fn integers_of_ziplists_are_read_in_every_encoding() {
    let mut shard = new_shard(Settings::default());
    let (entries, wanted): (Vec<_>, Vec<_>) = integers().into_iter().unzip();
    let bytes = [&[10], &blob(&ziplist(&entries))[..]].concat();
    assert_eq!(restore_content(&mut shard, "k", &bytes), b"+OK\r\n");
    let mut found = content(&mut shard, "k");
    found.pop();
    assert_eq!(found, wanted.iter().map(|n| n.to_string().into_bytes()).collect::<Vec<_>>());
}
