//! Reading collections back that were saved in parts.

use std::collections::HashMap;

use super::{HASH, LIST, SET, SORTED_SET};
use crate::entry::{Entry, Header as EntryHeader};
use crate::hash::LargeHash;
use crate::list::{End, LargeList, Limit};
use crate::log::Refusal;
use crate::object::Object;
use crate::packed::{self, Elements};
use crate::set::LargeSet;
use crate::settings::Settings;
use crate::sorted_set::{LargeSortedSet, Scores};

/// What is read of a collection so far.
enum Gathered {
    List { list: LargeList, from_the_right: Vec<Vec<u8>> },
    Set(LargeSet),
    Hash(LargeHash),
    SortedSet(Scores),
}

/// A collection in the making.
struct Unfinished {
    database: usize,
    key: Box<[u8]>,
    deadline_ms: Option<i64>,
    version: Option<i64>,
    access: u32,
    /// Elements still to come.
    left: u64,
    gathered: Gathered,
}

/// The collections that are not complete yet, by their numbers.
#[derive(Default)]
pub(super) struct UnfinishedParts(HashMap<u32, Unfinished>);

impl UnfinishedParts {
    /// Whether every one that was begun has been ended.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Begins one; `rest` is what follows the head of its entry.
    pub(super) fn begin(
        &mut self,
        number: u32,
        database: usize,
        header: EntryHeader<'_>,
        mut rest: &[u8],
    ) -> Result<(), Refusal> {
        let [kind] = super::reader::take::<1>(&mut rest)?;
        let left = u64::from_le_bytes(super::reader::take(&mut rest)?);
        let gathered = match kind {
            LIST => Gathered::List { list: LargeList::default(), from_the_right: Vec::new() },
            SET => Gathered::Set(LargeSet::new()),
            HASH => Gathered::Hash(LargeHash::default()),
            SORTED_SET => Gathered::SortedSet(Scores::default()),
            _ => return Err("a collection has an unknown kind".into()),
        };
        if !rest.is_empty() || left == 0 {
            return Err("the beginning of a collection is damaged".into());
        }
        let EntryHeader { key, deadline_ms, version, access } = header;
        let unfinished = Unfinished { database, key: key.into(), deadline_ms, version, access, left, gathered };
        match self.0.insert(number, unfinished) {
            None => Ok(()),
            Some(_) => Err("a collection begins twice".into()),
        }
    }

    /// Adds elements.
    pub(super) fn add(
        &mut self,
        number: u32,
        mut elements: &[u8],
        from_the_right: bool,
        settings: &Settings,
    ) -> Result<(), Refusal> {
        let unfinished = self.0.get_mut(&number).ok_or("a collection goes on that was not begun")?;
        while !elements.is_empty() {
            let added = unfinished.gathered.add(&mut elements, from_the_right, Limit::of(settings))?;
            unfinished.left =
                unfinished.left.checked_sub(added).ok_or("a collection has more elements than it says")?;
        }
        Ok(())
    }

    /// Ends one: its database, and the entry.
    pub(super) fn end(&mut self, number: u32, settings: &Settings) -> Result<(usize, Entry), Refusal> {
        let unfinished = self.0.remove(&number).ok_or("a collection ends that was not begun")?;
        if unfinished.left > 0 {
            return Err("a collection lacks elements".into());
        }
        let Unfinished { database, key, deadline_ms, version, access, .. } = unfinished;
        let header = EntryHeader { key: &key, deadline_ms, version: None, access };
        let object = unfinished.gathered.finish(Limit::of(settings));
        let mut entry = Entry::with_object(header, Box::new(object));
        if version.is_some() {
            entry.set_version(version);
        }
        Ok((database, entry))
    }
}

impl Gathered {
    /// Adds what stands at the front of `elements`; how many elements that was.
    fn add(&mut self, elements: &mut &[u8], from_the_right: bool, limit: Limit) -> Result<u64, Refusal> {
        match self {
            Gathered::List { list, from_the_right: at_the_end } => {
                let packed = take_bytes(elements)?;
                let count = packed::validate(packed).filter(|count| *count > 0).ok_or("a list is damaged")?;
                if from_the_right {
                    at_the_end.push(packed.to_vec());
                } else {
                    Elements::new(packed)
                        .for_each(|(position, _)| list.push(End::Right, &packed[position.range()], limit));
                }
                return Ok(count as u64);
            }
            _ if from_the_right => return Err("what is no list has elements from the right".into()),
            Gathered::Set(set) => {
                if !set.insert(take_bytes(elements)?) {
                    return Err("a set has a member twice".into());
                }
            }
            Gathered::Hash(hash) => {
                let deadline_ms = i64::from_le_bytes(super::reader::take(elements)?);
                let (name, value) = (take_bytes(elements)?, take_bytes(elements)?);
                if deadline_ms < 0 || hash.find(name).is_some() {
                    return Err("a hash has a field twice, or an impossible deadline".into());
                }
                hash.add(name, value, (deadline_ms > 0).then_some(deadline_ms));
            }
            Gathered::SortedSet(scores) => {
                let score = f64::from_le_bytes(super::reader::take(elements)?);
                let mut is_new = true;
                scores.merge(take_bytes(elements)?, |present| {
                    is_new = present.is_none();
                    score
                });
                if !is_new || score.is_nan() {
                    return Err("a sorted set has a member twice, or a score that is no number".into());
                }
            }
        }
        Ok(1)
    }

    fn finish(self, limit: Limit) -> Object {
        match self {
            Gathered::List { mut list, from_the_right } => {
                from_the_right.iter().rev().for_each(|element| list.push(End::Right, element, limit));
                Object::List(list)
            }
            Gathered::Set(set) => Object::Set(set),
            Gathered::Hash(hash) => Object::Hash(hash),
            Gathered::SortedSet(scores) => Object::SortedSet(LargeSortedSet::from(scores)),
        }
    }
}

/// Takes bytes that stand behind their length.
fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Refusal> {
    let len = u32::from_le_bytes(super::reader::take(bytes)?) as usize;
    let (taken, rest) = bytes.split_at_checked(len).ok_or("a collection is cut")?;
    *bytes = rest;
    Ok(taken)
}
