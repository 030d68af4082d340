//! The form of a hash with many or long fields.

use super::field::{Field, FieldRef};
use crate::hash_key;
use crate::packed::{Elements, IntBuffer};
use crate::table::{Position, Table};

/// A hash that has outgrown its packed form.
#[derive(Default)]
pub struct LargeHash {
    fields: Table<Field>,
    /// Bytes of the fields' blocks.
    block_bytes: usize,
}

impl LargeHash {
    /// The fields of a packed hash.
    pub fn from_packed(bytes: &[u8]) -> LargeHash {
        let mut hash = LargeHash::default();
        let mut elements = Elements::new(bytes).map(|(_, element)| element);
        while let (Some(field), Some(value)) = (elements.next(), elements.next()) {
            let (mut field_text, mut value_text) = (IntBuffer::new(), IntBuffer::new());
            hash.add(field.as_bytes(&mut field_text), value.as_bytes(&mut value_text));
        }
        hash
    }

    /// Number of fields.
    #[inline]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Where a field is; valid until the hash changes.
    #[inline]
    pub fn find(&self, field: &[u8]) -> Option<Position> {
        self.fields.find(hash_key(field), field)
    }

    /// The value at `position`.
    #[inline]
    pub fn value_at(&self, position: Position) -> &[u8] {
        self.fields.at(position).value()
    }

    /// The value of a field.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        self.fields.get(hash_key(field), field).map(FieldRef::value)
    }

    /// Adds a field that is not there.
    pub fn add(&mut self, field: &[u8], value: &[u8]) {
        let block = Field::new(field, value);
        self.block_bytes += block.view().block_bytes();
        self.fields.insert(hash_key(field), block);
    }

    /// Replaces the value at `position`.
    pub fn set_at(&mut self, position: Position, value: &[u8]) {
        let mut field = self.fields.at_mut(position);
        let before = field.view().block_bytes();
        field.set_value(value);
        let after = field.view().block_bytes();
        drop(field);
        self.block_bytes = self.block_bytes - before + after;
    }

    /// Sets a field; whether it is new.
    pub fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        match self.find(field) {
            Some(position) => {
                self.set_at(position, value);
                false
            }
            None => {
                self.add(field, value);
                true
            }
        }
    }

    /// Removes the field at `position`.
    pub fn remove_at(&mut self, position: Position) {
        let field = self.fields.remove(position);
        self.block_bytes -= field.view().block_bytes();
    }

    /// Every field, in no order that lasts.
    pub fn iter(&self) -> impl Iterator<Item = FieldRef<'_>> {
        self.fields.iter()
    }

    /// A field chosen with equal chance for each; `random(n)` gives a number below `n`.
    pub fn random(&self, random: impl FnMut(usize) -> usize) -> Option<FieldRef<'_>> {
        self.fields.random(random)
    }

    /// Visits at least `count` fields from scan position `from` on, where there are as many; returns the position to go
    /// on from, or `None` at the end. See [`Table::scan`].
    pub fn scan<'a>(&'a self, from: u64, count: usize, visit: impl FnMut(FieldRef<'a>)) -> Option<u64> {
        self.fields.scan(from, count, false, visit).1
    }

    /// A copy that shares nothing with the original.
    pub fn duplicate(&self) -> LargeHash {
        let mut copy = LargeHash::default();
        for field in self.iter() {
            let (name, value) = field.parts();
            copy.add(name, value);
        }
        copy
    }

    /// Frees about `budget` fields; true when nothing is left. Once begun, the hash is good for nothing else.
    pub fn reclaim(&mut self, budget: usize) -> bool {
        self.fields.drain_some(budget, drop)
    }

    /// Bytes of memory it holds, about.
    pub fn heap_bytes(&self) -> usize {
        self.fields.heap_bytes() + self.block_bytes
    }
}
