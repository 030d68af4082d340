//! Making an image of all keys (see [`crate::image`]).

use super::Keys;
use crate::database::Database;
use crate::entry::{Entry, EntryRef};
use crate::hash_key;
use crate::image::Image;
use crate::image::parts::{Budget, SharedParts};
use crate::log::Header;
use crate::object::Object;
use crate::table::Position;

/// Entries visited between two looks at what is left to do.
const STEP: usize = 64;

/// Bytes saved in one go, unless a single entry has more.
const STEP_BYTES: usize = 128 << 10;

/// A collection that is being saved in parts.
pub(super) struct Begun {
    /// Which one of the image it is.
    number: u32,
    database: usize,
    slot: u16,
    key: Box<[u8]>,
    parts: SharedParts,
    /// The collection itself, where its key is gone.
    detached: Option<Box<Object>>,
}

/// Where an entry is.
#[derive(Clone, Copy)]
struct Place {
    database: usize,
    slot: u16,
    position: Position,
}

/// Where a walk over all keys is that [`Keys::save_some`] takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    database: usize,
    slot: usize,
    position: u64,
}

impl Keys {
    /// Goes to the next slot that holds keys, unless some of the one before are not saved yet; `None` when all are.
    pub fn next_slot_of(&self, walk: &mut Walk) -> Option<u16> {
        while walk.position == 0 {
            match self.databases.get(walk.database)?.next_slot(walk.slot, false) {
                Some(slot) => {
                    walk.slot = slot.into();
                    break;
                }
                None => *walk = Walk { database: walk.database + 1, slot: 0, position: 0 },
            }
        }
        Some(walk.slot as u16)
    }

    /// Saves some of the keys of the slot that [`Keys::next_slot_of`] has named, in an image that is made of nothing else.
    /// The keys must not change as long as the walk goes on.
    pub fn save_some(&self, walk: &mut Walk, image: &mut Image) {
        let Some(database) = self.databases.get(walk.database) else { return };
        let slot = walk.slot as u16;
        let mut positions: Vec<Position> = Vec::new();
        let next = database.table(slot).and_then(|table| table.scan_positions(walk.position, STEP, &mut positions));
        for &position in &positions {
            let entry = database.at(slot, position);
            if image.is_for_parts(entry) {
                image.save_in_parts(walk.database, entry);
            } else {
                image.save(walk.database, entry);
            }
        }
        match next {
            Some(position) => walk.position = position,
            None => (walk.slot, walk.position) = (walk.slot + 1, 0),
        }
    }

    /// Begins an image of all keys as they are now; false while another one is made. The header stands at the front of it.
    pub fn begin_image(&mut self, header: &Header) -> bool {
        if self.image.is_some() {
            return false;
        }
        self.mark = !self.mark;
        self.image = Some(Box::new(Image::new(header)));
        true
    }

    /// The image in the making.
    pub fn image(&mut self) -> Option<&mut Image> {
        self.image.as_deref_mut()
    }

    /// Saves about `budget` entries more. True when all are, and then the image has to be taken with
    /// [`Keys::end_image`].
    pub fn advance_image(&mut self, budget: usize) -> bool {
        let Some(mut image) = self.image.take() else { return true };
        let mut visited = 0;
        let enough = image.waiting_bytes() + STEP_BYTES;
        if !self.advance_parts(&mut image, budget, enough) {
            self.image = Some(image);
            return false;
        }
        let mut positions: Vec<Position> = Vec::new();
        let done = loop {
            let (database_number, slot, position) = image.cursor;
            let Some(database) = self.databases.get_mut(database_number) else { break true };
            let Some(slot) = (if position > 0 { Some(slot as u16) } else { database.next_slot(slot, false) }) else {
                image.cursor = (database_number + 1, 0, 0);
                continue;
            };
            positions.clear();
            let mut next = None;
            if let Some(table) = database.table(slot) {
                next = table.scan_positions(position, STEP, &mut positions);
                // They lie anywhere in memory.
                positions.iter().for_each(|&position| table.prefetch_at(position));
            }
            let mut positions_left = positions.iter();
            while image.waiting_bytes() < enough
                && let Some(&position) = positions_left.next()
            {
                let entry = database.at(slot, position);
                if entry.mark() == self.mark {
                    continue;
                }
                let place = Place { database: database_number, slot, position };
                save_or_begin(&mut image, &mut self.begun, database, place);
                database.set_mark(slot, position, self.mark);
                if !self.begun.is_empty() {
                    break;
                }
            }
            if !positions_left.as_slice().is_empty() || !self.begun.is_empty() {
                // The same entries are visited once more, and passed over as far as they are saved.
                break false;
            }
            image.cursor = match next {
                Some(position) => (database_number, slot.into(), position),
                None => (database_number, usize::from(slot) + 1, 0),
            };
            visited += positions.len().max(1);
            if visited >= budget {
                break false;
            }
        };
        if done {
            image.end();
        }
        self.image = Some(image);
        done
    }

    /// Goes on with the collections that are saved in parts; true when there are none left.
    fn advance_parts(&mut self, image: &mut Image, budget: usize, enough: usize) -> bool {
        let budget = Budget { elements: budget, bytes: STEP_BYTES };
        while let Some(mut begun) = self.begun.pop() {
            let done = self.with_collection(&mut begun, |object| object.save_some(budget)).unwrap_or(true);
            image.add_parts(begun.number, &mut begun.parts.borrow_mut());
            if !done {
                self.begun.push(begun);
                return false;
            }
            if begun.parts.borrow().left > 0 {
                // It went in a way that nobody has told of; without it the image is not whole.
                debug_assert!(false, "a collection was lost while it was saved");
                image.abandon();
            }
            image.end_parts(begun.number);
            if let Some(object) = begun.detached {
                self.remains.add_object(*object);
            }
            if image.waiting_bytes() >= enough {
                return self.begun.is_empty();
            }
        }
        true
    }

    /// Runs `work` on a collection that is saved in parts, wherever it is.
    fn with_collection<R>(&mut self, begun: &mut Begun, work: impl FnOnce(&mut Object) -> R) -> Option<R> {
        if let Some(object) = &mut begun.detached {
            return Some(work(object));
        }
        let database = &mut self.databases[begun.database];
        let position = database.find(begun.slot, hash_key(&begun.key), &begun.key)?;
        let mut entry = database.at_mut(begun.slot, position);
        let object = entry.object_mut()?;
        object.parts().is_some_and(|parts| parts.are(&begun.parts)).then(|| work(object))
    }

    /// Keeps a collection that loses its key while it is saved in parts; returns the entry where it is not.
    #[cold]
    pub(super) fn detach(&mut self, mut entry: Entry) -> Option<Entry> {
        let Some(parts) = entry.view().object().and_then(Object::parts).cloned() else { return Some(entry) };
        match self.begun.iter_mut().find(|begun| begun.parts.are(&parts)) {
            Some(begun) => {
                begun.detached = entry.take_object();
                None
            }
            None => Some(entry),
        }
    }

    /// Notes where a collection is now that is saved in parts and gets another key.
    #[cold]
    pub(super) fn note_moved(&mut self, slot: u16, entry: EntryRef<'_>) {
        let Some(parts) = entry.object().and_then(Object::parts) else { return };
        if let Some(begun) = self.begun.iter_mut().find(|begun| begun.parts.are(parts)) {
            (begun.database, begun.slot, begun.key) = (self.selected, slot, entry.key().into());
        }
    }

    /// Takes the image out, once [`Keys::advance_image`] has said that all is saved.
    pub fn end_image(&mut self) -> Option<Box<Image>> {
        self.image.take()
    }

    /// Gives the image up that is made, because whole databases change. The walk goes on from the start, so that all
    /// entries have the same mark in the end.
    pub fn abandon_image(&mut self) {
        let Some(image) = &mut self.image else { return };
        image.abandon();
        image.cursor = (0, 0, 0);
        for mut begun in std::mem::take(&mut self.begun) {
            self.with_collection(&mut begun, Object::stop_saving);
            if let Some(object) = begun.detached {
                self.remains.add_object(*object);
            }
        }
    }

    /// Saves an entry that is about to change, unless that was done.
    #[inline]
    pub(super) fn save_before_change(&mut self, slot: u16, position: Position) {
        if self.image.is_some() {
            self.save(slot, position);
        }
    }

    #[cold]
    fn save(&mut self, slot: u16, position: Position) {
        let database = &mut self.databases[self.selected];
        let entry = database.at(slot, position);
        if entry.mark() != self.mark
            && let Some(image) = &mut self.image
        {
            let place = Place { database: self.selected, slot, position };
            save_or_begin(image, &mut self.begun, database, place);
            database.set_mark(slot, position, self.mark);
        }
    }
}

/// Saves an entry, or begins to where it is saved in parts.
fn save_or_begin(image: &mut Image, begun: &mut Vec<Begun>, database: &mut Database, place: Place) {
    let Place { database: number, slot, position } = place;
    let entry = database.at(slot, position);
    if !image.is_for_parts(entry) {
        image.save(number, entry);
        return;
    }
    let parts = SharedParts::new(entry.object().map_or(0, Object::elements));
    begun.push(Begun {
        number: image.begin_parts(number, entry),
        database: number,
        slot,
        key: entry.key().into(),
        parts: parts.clone(),
        detached: None,
    });
    if let Some(object) = database.at_mut(slot, position).object_mut() {
        object.begin_saving(parts);
    }
}
