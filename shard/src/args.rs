//! The words of a command, as ranges of the buffer they were read into.

use std::ops::Index;

/// A word's place in its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgRange {
    /// Offset of the first byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

/// The words of one command; the first is its name.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    buffer: &'a [u8],
    ranges: &'a [ArgRange],
}

impl<'a> Args<'a> {
    /// The words at `ranges` of `buffer`.
    #[inline]
    pub fn new(buffer: &'a [u8], ranges: &'a [ArgRange]) -> Args<'a> {
        Args { buffer, ranges }
    }

    /// Number of words, the name included.
    #[inline]
    pub fn len(self) -> usize {
        self.ranges.len()
    }

    /// Bytes from the start of the first word to the end of the last one; their sum or a little more.
    #[inline]
    pub fn span(self) -> usize {
        match (self.ranges.first(), self.ranges.last()) {
            (Some(first), Some(last)) => (last.start + last.len).saturating_sub(first.start) as usize,
            _ => 0,
        }
    }

    /// Whether there is no word at all.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.ranges.is_empty()
    }

    /// The word at `index`. Panics past the end: handlers run only after the arity was checked.
    #[inline]
    pub fn at(self, index: usize) -> &'a [u8] {
        let range = self.ranges[index];
        &self.buffer[range.start as usize..][..range.len as usize]
    }

    /// The word at `index`, if there is one.
    #[inline]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        (index < self.len()).then(|| self.at(index))
    }

    /// Whether the word at `index` is `option`, in any case.
    #[inline]
    pub fn is(self, index: usize, option: &str) -> bool {
        self.get(index).is_some_and(|word| word.eq_ignore_ascii_case(option.as_bytes()))
    }

    /// The words from `start` on.
    #[inline]
    pub fn from(self, start: usize) -> Args<'a> {
        Args { buffer: self.buffer, ranges: self.ranges.get(start..).unwrap_or(&[]) }
    }

    /// The words in `range`, as far as there are such.
    #[inline]
    pub fn range(self, range: std::ops::Range<usize>) -> Args<'a> {
        Args { buffer: self.buffer, ranges: self.ranges.get(range).unwrap_or(&[]) }
    }

    /// All words in order.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator + Clone {
        self.ranges.iter().map(move |range| &self.buffer[range.start as usize..][..range.len as usize])
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];
    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        self.at(index)
    }
}

/// Words that own their buffer: for commands that do not come from a socket, and for those that change cores.
#[derive(Clone, Debug, Default)]
pub struct OwnedArgs {
    buffer: Vec<u8>,
    ranges: Vec<ArgRange>,
}

impl OwnedArgs {
    /// No words.
    pub fn new() -> OwnedArgs {
        OwnedArgs::default()
    }

    /// Adds a word.
    pub fn push(&mut self, word: &[u8]) {
        let start = u32::try_from(self.buffer.len()).expect("the protocol bounds a command below 4 GiB");
        let len = u32::try_from(word.len()).expect("the protocol bounds a command below 4 GiB");
        self.buffer.extend_from_slice(word);
        self.ranges.push(ArgRange { start, len });
    }

    /// The words, borrowed.
    pub fn as_args(&self) -> Args<'_> {
        Args::new(&self.buffer, &self.ranges)
    }
}

impl<W: AsRef<[u8]>> FromIterator<W> for OwnedArgs {
    fn from_iter<I: IntoIterator<Item = W>>(words: I) -> OwnedArgs {
        let mut args = OwnedArgs::new();
        for word in words {
            args.push(word.as_ref());
        }
        args
    }
}
