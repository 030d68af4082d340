//! From strings and integers to the bytes of an element.

use super::decode::{
    BACKLEN_1_MAX, BACKLEN_2_MAX, BACKLEN_3_MAX, BACKLEN_4_MAX, INT_7_MAX, INT_13, INT_16, INT_24, INT_32, INT_64,
    STR_6, STR_12, STR_32,
};
use crate::number::parse_i64;

const HEAD_LEN_MAX: usize = 9;
const BACKLEN_LEN_MAX: usize = 5;

/// The parts of an encoded element. The head of an integer holds its value.
pub(super) struct Encoded<'a> {
    head: [u8; HEAD_LEN_MAX],
    head_len: usize,
    body: &'a [u8],
    backlen: [u8; BACKLEN_LEN_MAX],
    backlen_len: usize,
}

impl<'a> Encoded<'a> {
    #[inline]
    pub(super) fn new(element: &'a [u8]) -> Self {
        match parse_i64(element) {
            Some(value) => Self::integer(value),
            None => Self::string(element),
        }
    }

    #[inline]
    fn string(body: &'a [u8]) -> Self {
        let len = body.len();
        let mut head = [0; HEAD_LEN_MAX];
        let head_len = if len < 1 << 6 {
            head[0] = STR_6 | len as u8;
            1
        } else if len < 1 << 12 {
            head[0] = STR_12 | (len >> 8) as u8;
            head[1] = len as u8;
            2
        } else {
            assert!(u32::try_from(len).is_ok(), "an element of 4 GiB or more cannot be packed");
            head[0] = STR_32;
            head[1..5].copy_from_slice(&(len as u32).to_le_bytes());
            5
        };
        Self::assemble(head, head_len, body)
    }

    #[inline]
    fn integer(value: i64) -> Self {
        let mut head = [0; HEAD_LEN_MAX];
        let le_bytes = value.to_le_bytes();
        let (tag, value_len) = match value {
            0..=INT_7_MAX => {
                head[0] = value as u8;
                return Self::assemble(head, 1, &[]);
            }
            -4096..=4095 => {
                head[0] = INT_13 | (le_bytes[1] & 0x1f);
                head[1] = le_bytes[0];
                return Self::assemble(head, 2, &[]);
            }
            -0x8000..=0x7fff => (INT_16, 2),
            -0x80_0000..=0x7f_ffff => (INT_24, 3),
            -0x8000_0000..=0x7fff_ffff => (INT_32, 4),
            _ => (INT_64, 8),
        };
        head[0] = tag;
        head[1..=value_len].copy_from_slice(&le_bytes[..value_len]);
        Self::assemble(head, 1 + value_len, &[])
    }

    #[inline]
    fn assemble(head: [u8; HEAD_LEN_MAX], head_len: usize, body: &'a [u8]) -> Self {
        let len = head_len + body.len();
        let backlen_len = backlen_len(len);
        Self { head, head_len, body, backlen: backlen_bytes(len, backlen_len), backlen_len }
    }

    /// The length in bytes of the whole element.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.head_len + self.body.len() + self.backlen_len
    }

    #[inline]
    fn parts(&self) -> [&[u8]; 3] {
        [&self.head[..self.head_len], self.body, &self.backlen[..self.backlen_len]]
    }

    #[inline]
    fn append_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.len());
        for part in self.parts() {
            out.extend_from_slice(part);
        }
    }

    /// Fills `target`, which must have the length of the element.
    #[inline]
    pub(super) fn copy_to(&self, mut target: &mut [u8]) {
        for part in self.parts() {
            let (filled, rest) = target.split_at_mut(part.len());
            filled.copy_from_slice(part);
            target = rest;
        }
    }
}

/// The number of bytes which the `backlen` of an element of `len` bytes takes.
///
/// The largest values of two, three and four bytes take one more byte than they need, as the format has it.
#[inline]
pub(super) fn backlen_len(len: usize) -> usize {
    if len <= BACKLEN_1_MAX {
        return 1;
    }
    2 + [BACKLEN_2_MAX, BACKLEN_3_MAX, BACKLEN_4_MAX].iter().filter(|&&max| len > max).count()
}

/// Seven bits a byte, most significant first; the high bit of a byte tells that another lies before it.
#[inline]
fn backlen_bytes(len: usize, backlen_len: usize) -> [u8; BACKLEN_LEN_MAX] {
    let mut bytes = [0; BACKLEN_LEN_MAX];
    let mut rest = len;
    for (index, byte) in bytes[..backlen_len].iter_mut().enumerate().rev() {
        *byte = (rest & 0x7f) as u8 | if index > 0 { 0x80 } else { 0 };
        rest >>= 7;
    }
    bytes
}

/// Appends `element` in its encoded form.
///
/// # Panics
///
/// When the element has 4 GiB or more, which its length field cannot tell.
#[inline]
pub fn encode(element: &[u8], out: &mut Vec<u8>) {
    Encoded::new(element).append_to(out);
}

/// Appends the integer `value` in its encoded form: what [`encode`] does for its decimal form.
#[inline]
pub fn encode_int(value: i64, out: &mut Vec<u8>) {
    Encoded::integer(value).append_to(out);
}

/// The length in bytes which `element` has when it is encoded.
#[inline]
pub fn encoded_len(element: &[u8]) -> usize {
    Encoded::new(element).len()
}
