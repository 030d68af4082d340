//! HyperLogLogs: estimates of how many different elements were seen, in strings of Redis's own format.
//!
//! ```text
//! bytes 0–3    "HYLL"
//! byte 4       form of the registers: 0 dense, 1 sparse
//! bytes 5–7    zero
//! bytes 8–15   the last estimate, little-endian; the top bit says that it is out of date
//! ...          registers
//! ```
//!
//! A dense sketch has 16384 registers of 6 bits, the first in the lowest bits of the first byte. A sparse one has runs of
//! equal registers (see `sparse.rs`); it becomes dense when it would grow past a limit or a register past 32. The bytes
//! are those that Redis would write, so that values move between both.

mod dense;
mod estimate;
mod sparse;

pub use sparse::runs;

/// Bytes before the registers.
pub const HEADER_BYTES: usize = 16;

/// Number of registers.
pub const REGISTERS: usize = 1 << INDEX_BITS;

/// Bits of an element's hash that choose its register.
const INDEX_BITS: u32 = 14;

/// Largest number that a register holds because of an element: one more than the bits of a hash that choose no register.
const LONGEST_RUN: u8 = (u64::BITS - INDEX_BITS) as u8 + 1;

/// Bytes of a dense sketch.
const DENSE_BYTES: usize = HEADER_BYTES + dense::BYTES;

const MAGIC: &[u8; 4] = b"HYLL";
const FORM: usize = 4;
const ESTIMATE: std::ops::Range<usize> = 8..HEADER_BYTES;
const OUT_OF_DATE: u8 = 0x80;

/// How the registers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 6 bits each.
    Dense,
    /// Runs of equal ones.
    Sparse,
}

/// The runs of a sparse sketch do not make up all registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// Where an element belongs: its register, and what that must be at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    index: usize,
    run: u8,
}

impl Place {
    /// The place of an element: the register's number are the lowest bits of its hash, and what it must be at least is
    /// the length of the zero bits above them, with the one bit that ends them.
    #[inline]
    fn of(element: &[u8]) -> Place {
        const SEED: u64 = 0xadc8_3b19;
        let hash = murmur_hash_64a(element, SEED);
        let index = (hash as usize) & (REGISTERS - 1);
        let rest = hash >> INDEX_BITS | 1 << (u64::BITS - INDEX_BITS);
        Place { index, run: rest.trailing_zeros() as u8 + 1 }
    }
}

/// Austin Appleby's MurmurHash64A, reading little-endian words.
#[inline]
fn murmur_hash_64a(bytes: &[u8], seed: u64) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(MULTIPLIER);
    hash ^ hash >> SHIFT
}

/// The form of a string that is a sketch. Whether the runs of a sparse one are sound is found out when they are read.
#[inline]
pub fn form(bytes: &[u8]) -> Option<Form> {
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    if !header.starts_with(MAGIC) {
        return None;
    }
    match header[FORM] {
        0 if bytes.len() == DENSE_BYTES => Some(Form::Dense),
        1 => Some(Form::Sparse),
        _ => None,
    }
}

/// The last estimate, unless the sketch changed since.
#[inline]
pub fn cached_estimate(sketch: &[u8]) -> Option<u64> {
    let bytes = sketch.get(ESTIMATE)?.try_into().ok()?;
    let estimate = u64::from_le_bytes(bytes);
    (estimate >> 63 == 0).then_some(estimate)
}

/// Notes an estimate in a sketch.
pub fn cache_estimate(sketch: &mut [u8], estimate: u64) {
    sketch[ESTIMATE].copy_from_slice(&estimate.to_le_bytes());
}

/// Notes in a sketch that it changed since its last estimate.
#[inline]
pub fn discard_estimate(sketch: &mut [u8]) {
    sketch[HEADER_BYTES - 1] |= OUT_OF_DATE;
}

/// An estimate of how many different elements a sketch has seen.
///
/// # Errors
/// [`Corrupt`]
pub fn estimate(sketch: &[u8]) -> Result<u64, Corrupt> {
    let registers = &sketch[HEADER_BYTES..];
    match form(sketch) {
        Some(Form::Dense) => Ok(estimate::from_histogram(&dense::histogram(registers))),
        Some(Form::Sparse) => Ok(estimate::from_histogram(&sparse::histogram(registers)?)),
        None => Err(Corrupt),
    }
}

/// What a change to a sketch's bytes would be.
pub enum Change {
    /// None: the sketch has seen the element, or so it seems.
    None,
    /// This range of its bytes is replaced.
    Splice(std::ops::Range<usize>, sparse::Replacement),
    /// All of its bytes are.
    Whole(Vec<u8>),
}

/// What adding an element to a sparse sketch changes in its bytes. The caller discards the estimate.
///
/// # Errors
/// [`Corrupt`]
#[inline]
pub fn plan_addition(sketch: &[u8], element: &[u8], longest_sparse: usize) -> Result<Change, Corrupt> {
    plan(sketch, Place::of(element), longest_sparse)
}

#[inline]
fn plan(sketch: &[u8], place: Place, longest_sparse: usize) -> Result<Change, Corrupt> {
    match sparse::raise(&sketch[HEADER_BYTES..], place, longest_sparse.saturating_sub(HEADER_BYTES))? {
        sparse::Raise::None => Ok(Change::None),
        sparse::Raise::Replace(range, replacement) => {
            Ok(Change::Splice(range.start + HEADER_BYTES..range.end + HEADER_BYTES, replacement))
        }
        sparse::Raise::NotSparse => {
            let mut dense = to_dense(sketch)?;
            dense::raise(&mut dense[HEADER_BYTES..], place);
            Ok(Change::Whole(dense))
        }
    }
}

/// Adds an element to a dense sketch; whether it changed. The caller discards the estimate.
#[inline]
pub fn add_to_dense(sketch: &mut [u8], element: &[u8]) -> bool {
    dense::raise(&mut sketch[HEADER_BYTES..], Place::of(element))
}

/// The dense form of a sketch; its estimate is the same.
///
/// # Errors
/// [`Corrupt`]
pub fn to_dense(sketch: &[u8]) -> Result<Vec<u8>, Corrupt> {
    if form(sketch) == Some(Form::Dense) {
        return Ok(sketch.to_vec());
    }
    let mut dense = vec![0; DENSE_BYTES];
    dense[..HEADER_BYTES].copy_from_slice(&sketch[..HEADER_BYTES]);
    dense[FORM] = 0;
    let mut index = 0;
    for run in runs(&sketch[HEADER_BYTES..]) {
        let end = index + run.len;
        if end > REGISTERS {
            return Err(Corrupt);
        }
        if run.value > 0 {
            (index..end).for_each(|index| dense::set(&mut dense[HEADER_BYTES..], index, run.value));
        }
        index = end;
    }
    if index == REGISTERS { Ok(dense) } else { Err(Corrupt) }
}

/// Sets each register of a dense sketch to a value and reads them all; the first that is another, and what it is.
///
/// # Errors
/// The number of a register that is wrong, and what it holds.
pub fn check_registers(values: &[u8]) -> Result<(), (usize, u8)> {
    let mut registers = vec![0; dense::BYTES];
    values.iter().enumerate().for_each(|(index, value)| dense::set(&mut registers, index, *value));
    let held = values.iter().enumerate().map(|(index, value)| (index, *value, dense::get(&registers, index)));
    let wrong = held.into_iter().find(|(_, value, found)| value != found);
    wrong.map_or(Ok(()), |(index, _, found)| Err((index, found)))
}

/// A sketch in memory of its own.
pub struct Sketch(Vec<u8>);

impl Default for Sketch {
    /// A sketch that has seen nothing.
    fn default() -> Sketch {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[1, 0, 0, 0]);
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&sparse::EMPTY);
        Sketch(bytes)
    }
}

impl Sketch {
    /// A copy of a string for which [`form`] found a form.
    pub fn copy_of(sketch: &[u8]) -> Sketch {
        Sketch(sketch.to_vec())
    }

    /// The string.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its form.
    pub fn form(&self) -> Option<Form> {
        form(&self.0)
    }

    /// The same in the dense form.
    ///
    /// # Errors
    /// [`Corrupt`]
    pub fn into_dense(self) -> Result<Sketch, Corrupt> {
        to_dense(&self.0).map(Sketch)
    }

    /// See [`estimate`].
    ///
    /// # Errors
    /// [`Corrupt`]
    pub fn estimate(&self) -> Result<u64, Corrupt> {
        estimate(&self.0)
    }

    /// Adds an element; whether that changed anything. The estimate is out of date then.
    ///
    /// # Errors
    /// [`Corrupt`]
    pub fn add(&mut self, element: &[u8], longest_sparse: usize) -> Result<bool, Corrupt> {
        self.raise(Place::of(element), longest_sparse)
    }

    fn raise(&mut self, place: Place, longest_sparse: usize) -> Result<bool, Corrupt> {
        let changed = if self.0[FORM] == 0 {
            dense::raise(&mut self.0[HEADER_BYTES..], place)
        } else {
            match plan(&self.0, place, longest_sparse)? {
                Change::None => false,
                Change::Splice(range, replacement) => {
                    self.0.splice(range, replacement);
                    true
                }
                Change::Whole(dense) => {
                    self.0 = dense;
                    true
                }
            }
        };
        if changed {
            self.discard_estimate();
        }
        Ok(changed)
    }

    /// Adds what another sketch has seen.
    ///
    /// # Errors
    /// [`Corrupt`]
    pub fn add_all(&mut self, union: &Union, longest_sparse: usize) -> Result<(), Corrupt> {
        if union.any_dense && self.0[FORM] != 0 {
            self.0 = to_dense(&self.0)?;
        }
        for (index, &run) in union.registers.iter().enumerate() {
            if run > 0 {
                self.raise(Place { index, run }, longest_sparse)?;
            }
        }
        Ok(())
    }

    /// Notes that it changed since its last estimate.
    pub fn discard_estimate(&mut self) {
        discard_estimate(&mut self.0);
    }
}

/// What several sketches have seen together, a byte a register.
pub struct Union {
    registers: Box<[u8; REGISTERS]>,
    any_dense: bool,
}

impl Default for Union {
    /// Of no sketch.
    fn default() -> Union {
        Union { registers: Box::new([0; REGISTERS]), any_dense: false }
    }
}

impl Union {
    /// Takes a sketch in.
    ///
    /// # Errors
    /// [`Corrupt`]
    pub fn take_in(&mut self, sketch: &[u8]) -> Result<(), Corrupt> {
        let registers = &sketch[HEADER_BYTES..];
        match form(sketch) {
            Some(Form::Dense) => {
                self.any_dense = true;
                dense::raise_all(&mut self.registers, registers);
                Ok(())
            }
            Some(Form::Sparse) => sparse::raise_all(&mut self.registers, registers),
            None => Err(Corrupt),
        }
    }

    /// An estimate of how many different elements they have seen.
    pub fn estimate(&self) -> u64 {
        let mut histogram = [0; estimate::VALUES];
        self.registers.iter().for_each(|&value| histogram[usize::from(value)] += 1);
        estimate::from_histogram(&histogram)
    }

    /// What each register holds.
    pub fn registers(&self) -> &[u8; REGISTERS] {
        &self.registers
    }
}

#[cfg(test)]
mod tests;
