//! Reading lists of either form.

use std::collections::vec_deque;

use super::large::LargeList;
use super::node::Node;
use super::{End, packed_form};
use crate::entry::{Encoding, EntryRef};
use crate::object::Object;
use crate::packed::{self, Element, Elements};

/// A list of either form.
#[derive(Clone, Copy)]
pub enum ListRef<'a> {
    /// Packed elements inside the entry.
    Packed {
        /// The elements.
        elements: &'a [u8],
        /// How many they are.
        count: usize,
    },
    /// Packed nodes.
    Large(&'a LargeList),
}

impl<'a> ListRef<'a> {
    /// The list of an entry whose kind is [`Kind::List`](crate::entry::Kind::List).
    #[inline]
    pub fn of(entry: EntryRef<'a>) -> ListRef<'a> {
        if let Some(Object::List(list)) = entry.object() {
            return ListRef::Large(list);
        }
        debug_assert_eq!(entry.encoding(), Encoding::PackedList);
        let (count, elements) = packed_form::parts(entry.payload());
        ListRef::Packed { elements, count }
    }

    /// Number of elements.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            ListRef::Packed { count, .. } => count,
            ListRef::Large(list) => list.len(),
        }
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The `index`-th element from the head.
    pub fn get(self, index: usize) -> Option<Element<'a>> {
        match self {
            ListRef::Packed { elements, count } => packed::get(elements, index, count).map(|(_, element)| element),
            ListRef::Large(list) => list.get(index),
        }
    }

    /// The element at an end.
    #[inline]
    pub fn last(self, end: End) -> Option<Element<'a>> {
        self.walk(end, 0).next()
    }

    /// Walks from `end` to the other one, without the first `skip` elements.
    #[inline]
    pub fn walk(self, end: End, skip: usize) -> Walk<'a> {
        let nothing = Elements::new(&[]);
        let (current, later) = match self {
            ListRef::Packed { elements, count } if skip < count => {
                let index = if end == End::Left { skip } else { count - 1 - skip };
                let current = match (packed::get(elements, index, count), end) {
                    (Some((range, _)), End::Left) => Elements::within(elements, range.start..elements.len()),
                    (Some((range, _)), End::Right) => Elements::within(elements, 0..range.end),
                    (None, _) => nothing,
                };
                (current, None)
            }
            ListRef::Packed { .. } => (nothing, None),
            ListRef::Large(list) => match list.walk(end, skip) {
                Some((current, later)) => (current, Some(later)),
                None => (nothing, None),
            },
        };
        Walk { end, current, later }
    }
}

/// Iterator over the elements of a list from one end on.
pub struct Walk<'a> {
    end: End,
    current: Elements<'a>,
    later: Option<vec_deque::Iter<'a, Node>>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        loop {
            let element = match self.end {
                End::Left => self.current.next(),
                End::Right => self.current.next_back(),
            };
            if let Some((_, element)) = element {
                return Some(element);
            }
            let later = self.later.as_mut()?;
            let node = match self.end {
                End::Left => later.next(),
                End::Right => later.next_back(),
            };
            self.current = Elements::new(node?.packed());
        }
    }
}
