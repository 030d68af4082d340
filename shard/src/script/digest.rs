//! What a script is known by: the SHA-1 of its text.

use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use sha1::{Digest as _, Sha1};

/// The SHA-1 of a script's whole text. Its text form is 40 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; Digest::BYTES]);

impl Digest {
    /// Length of a digest in bytes.
    pub const BYTES: usize = 20;
    /// Length of its text form in bytes.
    pub const HEX_LEN: usize = 2 * Self::BYTES;

    /// The digest of `body`.
    pub fn of(body: &[u8]) -> Digest {
        Digest(Sha1::digest(body).into())
    }

    /// Reads the text form, in either case; nothing when `text` is no digest.
    pub fn parse(text: &[u8]) -> Option<Digest> {
        if text.len() != Self::HEX_LEN {
            return None;
        }
        let (mut bytes, mut all) = ([0; Self::BYTES], 0);
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let (high, low) = (NIBBLES[usize::from(pair[0])], NIBBLES[usize::from(pair[1])]);
            all |= high | low;
            *byte = (high << 4) | low;
        }
        (all & NO_DIGIT == 0).then_some(Digest(bytes))
    }

    /// The text form.
    pub fn hex(&self) -> [u8; Digest::HEX_LEN] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; Self::HEX_LEN];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        text
    }

    /// The bytes themselves.
    pub fn bytes(&self) -> &[u8; Digest::BYTES] {
        &self.0
    }
}

impl From<[u8; Digest::BYTES]> for Digest {
    fn from(bytes: [u8; Digest::BYTES]) -> Digest {
        Digest(bytes)
    }
}

/// What a byte stands for that is no hexadecimal digit.
const NO_DIGIT: u8 = 0x80;

/// The value of each byte as a hexadecimal digit.
const NIBBLES: [u8; 256] = {
    let mut nibbles = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        let digit = b"0123456789abcdef"[value];
        nibbles[digit as usize] = value as u8;
        nibbles[digit.to_ascii_uppercase() as usize] = value as u8;
        value += 1;
    }
    nibbles
};

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (head, _) = self.0.split_at(8);
        state.write_u64(head.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)));
    }
}

/// The hasher for maps with digests as keys: a digest's own first bytes are spread well enough.
#[derive(Default)]
pub struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// Builds [`DigestHasher`]s.
pub type DigestHashing = BuildHasherDefault<DigestHasher>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_text_is_its_sha1() {
        assert_eq!(Digest::of(b"return 1").to_string(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert_eq!(Digest::of(b"").to_string(), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    }

    #[test]
    fn both_cases_are_read_and_the_lower_one_is_written() {
        let digest = Digest::of(b"return 1");
        let text = digest.to_string();
        assert_eq!(digest.hex(), text.as_bytes());
        assert_eq!(Digest::parse(text.to_uppercase().as_bytes()), Some(digest));
        for wrong in [&text[1..], "", &format!("{text}0"), &text.replace('e', "g")] {
            assert_eq!(Digest::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
