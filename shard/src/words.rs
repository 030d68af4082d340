//! Words of a line as Redis splits them: an inline request, or the first line of a script.

use crate::args::ArgRange;

/// Whether C's `isspace` holds, which Redis splits lines by: what Rust calls whitespace, and a vertical tab.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Splits `line` into words, appended to `out` with their ranges; false when quotes are unbalanced.
pub fn split(line: &[u8], out: &mut Vec<u8>, ranges: &mut Vec<ArgRange>) -> bool {
    let mut rest = line.iter().copied().peekable();
    loop {
        while rest.next_if(|&byte| is_space(byte)).is_some() {}
        if rest.peek().is_none() {
            return true;
        }
        let start = out.len();
        // The quote that is open.
        let mut quote = None;
        loop {
            let Some(byte) = rest.next() else {
                if quote.is_some() {
                    return false;
                }
                break;
            };
            match (quote, byte) {
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b' ' | b'\n' | b'\r' | b'\t' | 0) => break,
                (Some(b'"'), b'\\') => {
                    let Some(escaped) = rest.next() else { return false };
                    match escaped {
                        b'n' => out.push(b'\n'),
                        b'r' => out.push(b'\r'),
                        b't' => out.push(b'\t'),
                        b'b' => out.push(8),
                        b'a' => out.push(7),
                        b'x' => {
                            let mut ahead = rest.clone();
                            let digit = |byte: Option<u8>| byte.and_then(|byte| (byte as char).to_digit(16));
                            match (digit(ahead.next()), digit(ahead.next())) {
                                (Some(high), Some(low)) => {
                                    out.push((high * 16 + low) as u8);
                                    rest = ahead;
                                }
                                _ => out.push(b'x'),
                            }
                        }
                        other => out.push(other),
                    }
                }
                (Some(b'\''), b'\\') if rest.peek() == Some(&b'\'') => {
                    rest.next();
                    out.push(b'\'');
                }
                (Some(open), close) if open == close => {
                    // A closing quote must end the word.
                    if rest.peek().is_some_and(|&byte| !is_space(byte)) {
                        return false;
                    }
                    break;
                }
                (_, byte) => out.push(byte),
            }
        }
        ranges.push(ArgRange { start: start as u32, len: (out.len() - start) as u32 });
    }
}
