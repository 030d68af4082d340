//! Making an image of all keys (see [`crate::image`]).

use super::Keys;
use crate::image::Image;
use crate::log::Header;
use crate::table::Position;

/// Entries visited between two looks at what is left to do.
const STEP: usize = 64;

/// Bytes saved in one go, unless a single entry has more.
const STEP_BYTES: usize = 128 << 10;

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
        positions.iter().for_each(|&position| image.save(walk.database, database.at(slot, position)));
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
                if entry.mark() != self.mark {
                    image.save(database_number, entry);
                    database.set_mark(slot, position, self.mark);
                }
            }
            if !positions_left.as_slice().is_empty() {
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

    /// Takes the image out, once [`Keys::advance_image`] has said that all is saved.
    pub fn end_image(&mut self) -> Option<Box<Image>> {
        self.image.take()
    }

    /// Gives the image up that is made, because whole databases change. The walk goes on from the start, so that all
    /// entries have the same mark in the end.
    pub fn abandon_image(&mut self) {
        if let Some(image) = &mut self.image {
            image.abandon();
            image.cursor = (0, 0, 0);
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
            image.save(self.selected, entry);
            database.set_mark(slot, position, self.mark);
        }
    }
}
