//! Changing lists of either form.

use super::large::LargeList;
use super::{End, LISTPACK_OVERHEAD, Limit, ListRef, NewElements, Wanted, packed_form, with_scratch};
use crate::entry::Entry;
use crate::object::Object;
use crate::packed::{self, Elements};

/// A list borrowed to be changed. It takes the large form when it outgrows the limit, and the packed form again when it
/// has shrunk well below. A list that has become empty is the caller's to remove.
pub struct ListMut<'a> {
    entry: &'a mut Entry,
    limit: Limit,
}

impl<'a> ListMut<'a> {
    /// The list of an entry whose kind is [`Kind::List`](crate::entry::Kind::List).
    #[inline]
    pub fn new(entry: &'a mut Entry, limit: Limit) -> ListMut<'a> {
        ListMut { entry, limit }
    }

    /// The list for reading.
    #[inline]
    pub fn view(&self) -> ListRef<'_> {
        ListRef::of(self.entry.view())
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn large(&mut self) -> Option<&mut LargeList> {
        match self.entry.object_mut() {
            Some(Object::List(list)) => Some(list),
            _ => None,
        }
    }

    /// Takes the large form where `count` more elements of `bytes` bytes would not fit the packed one. Like in Redis
    /// the bytes are those of the strings, not of their packed form.
    #[inline]
    fn prepare_growth(&mut self, bytes: usize, count: usize) {
        if let ListRef::Packed { elements, count: old_count } = self.view()
            && !self.limit.admits(LISTPACK_OVERHEAD + elements.len() + bytes, old_count + count)
        {
            let list = LargeList::from_packed(elements, old_count, self.limit);
            self.entry.set_object(Box::new(Object::List(list)));
        }
    }

    /// Takes the packed form where the list has become small.
    #[inline]
    fn shrink(&mut self) {
        let Limit { bytes, count } = self.limit.for_packing();
        let Some(list) = self.large() else { return };
        if !list.fits(Limit { bytes: bytes - LISTPACK_OVERHEAD, count }) {
            return;
        }
        list.save_rest();
        let count = list.len();
        let elements = list.nodes().map(|(elements, _)| elements).collect::<Vec<_>>().concat();
        packed_form::store(self.entry, count, &elements);
    }

    /// Pushes `elements` one after the other to an end; returns the new length.
    #[inline]
    pub fn push<'e>(&mut self, end: End, elements: impl NewElements<'e>) -> usize {
        let added = elements.len();
        self.prepare_growth(elements.clone().map(<[u8]>::len).sum(), added);
        let limit = self.limit;
        with_scratch(|scratch| {
            if let Some(list) = self.large() {
                for element in elements {
                    scratch.clear();
                    packed::encode(element, scratch);
                    list.push(end, scratch, limit);
                }
                return list.len();
            }
            let (count, old) = packed_form::parts(self.entry.view().payload());
            let at = match end {
                End::Left => {
                    elements.rev().for_each(|element| packed::encode(element, scratch));
                    0
                }
                End::Right => {
                    elements.for_each(|element| packed::encode(element, scratch));
                    old.len()
                }
            };
            packed_form::splice(self.entry, at..at, scratch, count + added);
            count + added
        })
    }

    /// Removes `count` elements, or as many as there are, from an end.
    pub fn remove(&mut self, end: End, count: usize) {
        if let Some(list) = self.large() {
            list.remove(end, count);
            self.shrink();
            return;
        }
        let (old_count, elements) = packed_form::parts(self.entry.view().payload());
        let left = old_count.saturating_sub(count);
        let first = if end == End::Left { count } else { left };
        let boundary = packed::get(elements, first, old_count).map(|(range, _)| range.start);
        let range = match (end, boundary) {
            (_, None) if count == 0 => return,
            (_, None) => 0..elements.len(),
            (End::Left, Some(boundary)) => 0..boundary,
            (End::Right, Some(boundary)) => boundary..elements.len(),
        };
        packed_form::splice(self.entry, range, &[], left);
    }

    /// Replaces the `index`-th element; whether there is one.
    pub fn set(&mut self, index: usize, element: &[u8]) -> bool {
        if index >= self.len() {
            return false;
        }
        self.prepare_growth(element.len(), 1);
        let limit = self.limit;
        let done = with_scratch(|scratch| {
            packed::encode(element, scratch);
            if let Some(list) = self.large() {
                let Some(place) = list.place(index) else { return false };
                list.replace(place, scratch, limit);
                return true;
            }
            let (count, elements) = packed_form::parts(self.entry.view().payload());
            let Some((range, _)) = packed::get(elements, index, count) else { return false };
            packed_form::splice(self.entry, range, scratch, count);
            true
        });
        self.shrink();
        done
    }

    /// Inserts `element` before (`Left`) or after the first element that is `pivot`; the new length, unless there is no
    /// such element.
    pub fn insert_beside(&mut self, pivot: &[u8], side: End, element: &[u8]) -> Option<usize> {
        let (wanted, limit) = (Wanted::new(pivot), self.limit);
        if let ListRef::Packed { elements, .. } = self.view()
            && !Elements::new(elements).any(|(_, element)| wanted.is(element))
        {
            return None;
        }
        self.prepare_growth(element.len(), 1);
        with_scratch(|scratch| {
            packed::encode(element, scratch);
            if let Some(list) = self.large() {
                let place = list.find(wanted)?;
                list.insert(place, side, scratch, limit);
                return Some(list.len());
            }
            let (count, elements) = packed_form::parts(self.entry.view().payload());
            let (position, _) = Elements::new(elements).find(|(_, element)| wanted.is(*element))?;
            let at = if side == End::Left { position.start } else { position.end };
            packed_form::splice(self.entry, at..at, scratch, count + 1);
            Some(count + 1)
        })
    }

    /// Removes up to `most` elements equal to `element`, the ones nearest to `from`; returns how many.
    pub fn remove_matching(&mut self, element: &[u8], most: usize, from: End) -> usize {
        let (wanted, limit) = (Wanted::new(element), self.limit);
        match self.large() {
            Some(list) => {
                let removed = list.remove_matching(wanted, most, from, limit);
                if removed > 0 {
                    self.shrink();
                }
                removed
            }
            None => packed_form::remove_matching(self.entry, wanted, most, from),
        }
    }
}
