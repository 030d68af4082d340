//! Reading lengths, strings and numbers from bytes of any origin.

use std::borrow::Cow;

use super::LoadError::{self, Damaged};
use super::lzf;
use crate::number::IntBuffer;
use crate::packed::Element;

/// The two high bits of a length's first byte: what kind it is.
const KIND_MASK: u8 = 0xc0;
pub(super) const LENGTH_6: u8 = 0x00;
pub(super) const LENGTH_14: u8 = 0x40;
pub(super) const LENGTH_32: u8 = 0x80;
pub(super) const LENGTH_64: u8 = 0x81;
/// With this kind the other bits tell how a string is encoded.
pub(super) const ENCODED: u8 = 0xc0;
pub(super) const INT_8: u8 = 0;
pub(super) const INT_16: u8 = 1;
pub(super) const INT_32: u8 = 2;
pub(super) const LZF: u8 = 3;

/// Reads an RDB from memory, part by part.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// A string as an RDB holds it.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// It is the decimal form of this integer.
    Integer(i64),
    /// Its bytes.
    Bytes(Cow<'a, [u8]>),
}

impl Text<'_> {
    /// The string as the collections take it.
    #[inline]
    pub fn element(&self) -> Element<'_> {
        match self {
            Text::Integer(value) => Element::Int(*value),
            Text::Bytes(bytes) => Element::Bytes(bytes),
        }
    }

    /// The string's bytes; `scratch` is used where it is an integer.
    #[inline]
    pub fn as_bytes<'b>(&'b self, scratch: &'b mut IntBuffer) -> &'b [u8] {
        match self {
            Text::Integer(value) => scratch.format(*value),
            Text::Bytes(bytes) => bytes,
        }
    }
}

enum Length {
    Plain(u64),
    Encoded(u8),
}

impl<'a> Reader<'a> {
    /// Reads `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// [`LoadError::Damaged`] when there are fewer; so it is with everything else here.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], LoadError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Damaged)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, LoadError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A number of four bytes, least significant first.
    pub fn u32(&mut self) -> Result<u32, LoadError> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number of eight bytes, least significant first.
    pub fn u64(&mut self) -> Result<u64, LoadError> {
        self.array().map(u64::from_le_bytes)
    }

    #[inline]
    fn any_length(&mut self) -> Result<Length, LoadError> {
        let first = self.byte()?;
        Ok(match first & KIND_MASK {
            LENGTH_6 => Length::Plain(first.into()),
            LENGTH_14 => Length::Plain(u64::from(first & !KIND_MASK) << 8 | u64::from(self.byte()?)),
            ENCODED => Length::Encoded(first & !KIND_MASK),
            _ => match first {
                LENGTH_32 => Length::Plain(u32::from_be_bytes(self.array()?).into()),
                LENGTH_64 => Length::Plain(u64::from_be_bytes(self.array()?)),
                _ => return Err(Damaged),
            },
        })
    }

    /// A number in the variable form of lengths.
    pub fn number(&mut self) -> Result<u64, LoadError> {
        match self.any_length()? {
            Length::Plain(number) => Ok(number),
            Length::Encoded(_) => Err(Damaged),
        }
    }

    /// The number of parts that follow, each of which takes a byte at least.
    pub fn count(&mut self) -> Result<usize, LoadError> {
        let count = usize::try_from(self.number()?).map_err(|_| Damaged)?;
        if count > self.rest.len() { Err(Damaged) } else { Ok(count) }
    }

    fn length(&mut self) -> Result<usize, LoadError> {
        usize::try_from(self.number()?).map_err(|_| Damaged)
    }

    /// A string.
    #[inline]
    pub fn text(&mut self) -> Result<Text<'a>, LoadError> {
        match self.any_length()? {
            Length::Plain(len) => {
                let bytes = self.bytes(usize::try_from(len).map_err(|_| Damaged)?)?;
                Ok(Text::Bytes(Cow::Borrowed(bytes)))
            }
            Length::Encoded(INT_8) => Ok(Text::Integer(i8::from_le_bytes(self.array()?).into())),
            Length::Encoded(INT_16) => Ok(Text::Integer(i16::from_le_bytes(self.array()?).into())),
            Length::Encoded(INT_32) => Ok(Text::Integer(i32::from_le_bytes(self.array()?).into())),
            Length::Encoded(LZF) => {
                let (compressed_len, len) = (self.length()?, self.length()?);
                let bytes = lzf::decompress(self.bytes(compressed_len)?, len).ok_or(Damaged)?;
                Ok(Text::Bytes(Cow::Owned(bytes)))
            }
            Length::Encoded(_) => Err(Damaged),
        }
    }

    /// A string that holds a container in binary.
    pub fn blob(&mut self) -> Result<Cow<'a, [u8]>, LoadError> {
        match self.text()? {
            Text::Bytes(bytes) => Ok(bytes),
            // No container is as short as a number.
            Text::Integer(_) => Err(Damaged),
        }
    }
}
