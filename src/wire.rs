//! Framing requests: RESP arrays of bulk strings, and inline commands.

use ruvio_shard::args::ArgRange;

/// Longest inline request, and longest line that announces a length, in bytes.
const MAX_LINE: usize = 64 * 1024;

/// Most words a request may announce.
const MAX_WORDS: i64 = i32::MAX as i64;

/// Ranges of words that a connection keeps room for.
const KEPT_RANGES: usize = 64;

/// Words and bulk bytes that a client may send before it has authenticated.
const UNAUTHENTICATED_WORDS: i64 = 10;
const UNAUTHENTICATED_BULK: i64 = 16 * 1024;

/// What a request may be, for the client that sends it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest bulk string, in bytes (`proto-max-bulk-len`).
    pub max_bulk_len: usize,
    /// Whether the client has authenticated.
    pub authenticated: bool,
}

/// How far a request has been read. Kept with a connection while a request is incomplete, so that no byte is parsed
/// twice however slowly it arrives.
#[derive(Debug, Default)]
pub struct Progress {
    /// Words still to come; 0 before the first line is complete.
    missing: usize,
    /// Offset of what is to be parsed next, from the request's start.
    offset: usize,
    /// Bytes of the line that is being read, from its start, in which its end was looked for in vain. 0 for lines that are
    /// short enough to be looked through again.
    searched: usize,
    /// Where the words are, from the request's start.
    ranges: Vec<ArgRange>,
}

impl Progress {
    /// Starts a new request.
    #[inline]
    pub fn reset(&mut self) {
        self.missing = 0;
        self.offset = 0;
        self.searched = 0;
        self.ranges.clear();
        self.ranges.shrink_to(KEPT_RANGES);
    }

    /// The words of the request that is complete.
    #[inline]
    pub fn ranges(&self) -> &[ArgRange] {
        &self.ranges
    }
}

/// What came of reading a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Framed {
    /// A whole request of this many bytes; without words when it was an empty line or array.
    Request(usize),
    /// More bytes are needed.
    Incomplete,
    /// The client does not speak the protocol; the text goes behind `ERR Protocol error: `.
    Broken(String),
}

/// A line's content and the offset behind it.
enum Line<'a> {
    Complete(&'a [u8], usize),
    Incomplete,
    TooLong,
}

#[inline]
fn line<'a>(bytes: &'a [u8], start: usize, searched: &mut usize) -> Line<'a> {
    let rest = &bytes[start..];
    // Lengths are short, so a plain loop beats a search that must warm up.
    let near = &rest[..rest.len().min(24)];
    let at = match near.iter().position(|&byte| byte == b'\r') {
        Some(at) => Some(at),
        None => find_from(&rest[..rest.len().min(MAX_LINE)], b'\r', searched),
    };
    match at {
        // The byte after CR is taken for LF, as Redis does.
        Some(at) if at + 1 < rest.len() => Line::Complete(&rest[..at], start + at + 2),
        Some(_) => Line::Incomplete,
        None if rest.len() >= MAX_LINE => Line::TooLong,
        None => Line::Incomplete,
    }
}

/// Where `end` is in `line`, of which `searched` bytes hold none. However it came in pieces, a long line is searched once.
#[cold]
fn find_from(line: &[u8], end: u8, searched: &mut usize) -> Option<usize> {
    let from = (*searched).min(line.len());
    match line[from..].iter().position(|&byte| byte == end) {
        Some(at) => {
            // The line may be looked through again: what is behind its end may be missing.
            *searched = 0;
            Some(from + at)
        }
        None => {
            *searched = line.len();
            None
        }
    }
}

/// A length of one or two digits on a line of its own, as nearly all are, and the offset behind the line.
#[inline]
fn short_length(bytes: &[u8], start: usize) -> Option<(i64, usize)> {
    match bytes.get(start..)? {
        [digit @ b'0'..=b'9', b'\r', _, ..] => Some((i64::from(digit - b'0'), start + 3)),
        [ten @ b'1'..=b'9', digit @ b'0'..=b'9', b'\r', _, ..] => {
            Some((i64::from(ten - b'0') * 10 + i64::from(digit - b'0'), start + 4))
        }
        _ => None,
    }
}

/// What came of reading a line that announces a length.
enum Length {
    /// The length, and the offset behind the line.
    Complete(i64, usize),
    Incomplete,
    TooLong,
    Invalid,
}

#[inline(always)]
fn length(bytes: &[u8], start: usize, searched: &mut usize) -> Length {
    if let Some((length, end)) = short_length(bytes, start) {
        return Length::Complete(length, end);
    }
    match line(bytes, start, searched) {
        Line::Complete(digits, end) => match ruvio_shard::number::parse_i64(digits) {
            Some(length) => Length::Complete(length, end),
            None => Length::Invalid,
        },
        Line::Incomplete => Length::Incomplete,
        Line::TooLong => Length::TooLong,
    }
}

/// Reads the request at the start of `bytes`, going on from `progress`.
#[inline(always)]
pub fn frame(bytes: &[u8], progress: &mut Progress, limits: Limits) -> Framed {
    if progress.missing == 0 {
        match bytes.first() {
            None => return Framed::Incomplete,
            Some(b'*') => {}
            Some(_) => return frame_inline(bytes, progress),
        }
        let (words, end) = match length(bytes, 1, &mut progress.searched) {
            Length::Complete(words, end) if words <= MAX_WORDS => (words, end),
            Length::Complete(..) | Length::Invalid => return Framed::Broken("invalid multibulk length".into()),
            Length::Incomplete => return Framed::Incomplete,
            Length::TooLong => return Framed::Broken("too big mbulk count string".into()),
        };
        if words > UNAUTHENTICATED_WORDS && !limits.authenticated {
            return Framed::Broken("unauthenticated multibulk length".into());
        }
        if words <= 0 {
            return Framed::Request(end);
        }
        progress.missing = words as usize;
        progress.offset = end;
    }
    while progress.missing > 0 {
        let start = progress.offset;
        match bytes.get(start) {
            None => return Framed::Incomplete,
            Some(b'$') => {}
            Some(&other) => {
                let shown = match other {
                    b' ' | b'\r' | b'\n' => ' ',
                    other if other.is_ascii_graphic() => other as char,
                    _ => '?',
                };
                return Framed::Broken(format!("expected '$', got '{shown}'"));
            }
        }
        let (len, end) = match length(bytes, start + 1, &mut progress.searched) {
            Length::Complete(len, end) if len >= 0 && len as u64 <= limits.max_bulk_len as u64 => (len, end),
            Length::Complete(..) | Length::Invalid => return Framed::Broken("invalid bulk length".into()),
            Length::Incomplete => return Framed::Incomplete,
            Length::TooLong => return Framed::Broken("too big bulk count string".into()),
        };
        if len > UNAUTHENTICATED_BULK && !limits.authenticated {
            return Framed::Broken("unauthenticated bulk length".into());
        }
        let len = len as usize;
        if bytes.len() - end < len + 2 {
            return Framed::Incomplete;
        }
        progress.ranges.push(ArgRange { start: end as u32, len: len as u32 });
        progress.offset = end + len + 2;
        progress.missing -= 1;
    }
    Framed::Request(progress.offset)
}

/// Reads an inline request: words on one line, quoted as in a shell. Words are unquoted in place by the caller's copy:
/// see [`inline_words`].
fn frame_inline(bytes: &[u8], progress: &mut Progress) -> Framed {
    let window = &bytes[..bytes.len().min(MAX_LINE + 1)];
    let Some(newline) = find_from(window, b'\n', &mut progress.searched) else {
        return if bytes.len() > MAX_LINE {
            Framed::Broken("too big inline request".into())
        } else {
            Framed::Incomplete
        };
    };
    progress.offset = newline + 1;
    Framed::Request(newline + 1)
}

/// Splits an inline request into words.
pub use ruvio_shard::words::split as inline_words;

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { max_bulk_len: 512 << 20, authenticated: true };

    fn words(request: &[u8]) -> Option<Vec<Vec<u8>>> {
        let (mut out, mut ranges) = (Vec::new(), Vec::new());
        inline_words(request, &mut out, &mut ranges)
            .then(|| ranges.iter().map(|range| out[range.start as usize..][..range.len as usize].to_vec()).collect())
    }

    #[test]
    fn a_request_is_found_however_it_is_cut() {
        let request = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\nb\r\nc\r\n";
        for cut in 0..request.len() {
            let mut progress = Progress::default();
            assert_eq!(frame(&request[..cut], &mut progress, LIMITS), Framed::Incomplete, "cut at {cut}");
            assert_eq!(frame(request, &mut progress, LIMITS), Framed::Request(request.len()));
            let last = progress.ranges()[2];
            assert_eq!(&request[last.start as usize..][..last.len as usize], b"b\r\nc");
        }
    }

    #[test]
    fn a_long_line_is_searched_once() {
        for (start, end, found) in [
            (&b"GET "[..], &b"\n"[..], Framed::Request(1005)),
            (b"*1\r\n$", b"\r\n", Framed::Broken("invalid bulk length".into())),
        ] {
            let request = [start, &[b'1'; 1000], end].concat();
            let mut progress = Progress::default();
            let mut searched = 0;
            for cut in start.len() + 100..request.len() {
                assert_eq!(frame(&request[..cut], &mut progress, LIMITS), Framed::Incomplete, "cut at {cut}");
                // Only a line whose end came without the byte behind it is looked through again.
                let ended = request[cut - 1] == b'\r';
                assert!(progress.searched > searched || ended, "cut at {cut}");
                searched = progress.searched;
            }
            assert_eq!(frame(&request, &mut progress, LIMITS), found);
            assert_eq!(progress.searched, 0);
        }
    }

    #[test]
    fn broken_requests_are_named_as_redis_names_them() {
        let cases: [(&[u8], &str); 7] = [
            (b"*3000000000\r\n", "invalid multibulk length"),
            (b"*x\r\n", "invalid multibulk length"),
            (b"*1\r\nfoo\r\n", "expected '$', got 'f'"),
            (b"*1\r\n\r\n", "expected '$', got ' '"),
            (b"*1\r\n$-5\r\n", "invalid bulk length"),
            (b"*1\r\n$2000000000\r\n", "invalid bulk length"),
            (b"*1\r\n$x\r\n", "invalid bulk length"),
        ];
        for (request, text) in cases {
            assert_eq!(frame(request, &mut Progress::default(), LIMITS), Framed::Broken(text.into()));
        }
        let long = vec![b'1'; MAX_LINE + 1];
        let with = |head: &[u8]| [head, &long].concat();
        for (request, text) in [
            (with(b"*"), "too big mbulk count string"),
            (with(b"*1\r\n$"), "too big bulk count string"),
            (with(b""), "too big inline request"),
        ] {
            assert_eq!(frame(&request, &mut Progress::default(), LIMITS), Framed::Broken(text.into()));
        }
    }

    #[test]
    fn inline_words_are_quoted_as_in_redis() {
        assert_eq!(words(b"set a b\r\n"), Some(vec![b"set".to_vec(), b"a".to_vec(), b"b".to_vec()]));
        assert_eq!(words(b" \r\n"), Some(vec![]));
        assert_eq!(words(br#"a "b c\x41\n" 'd\'e'"#), Some(vec![b"a".to_vec(), b"b cA\n".to_vec(), b"d'e".to_vec()]));
        assert_eq!(words(b"\x0ba \"b\"\x0bc\x0bd"), Some(vec![b"a".to_vec(), b"b".to_vec(), b"c\x0bd".to_vec()]));
        assert_eq!(words(br#"a "b"#), None);
        assert_eq!(words(br#"a "b"c"#), None);
    }
}
