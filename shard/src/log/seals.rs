//! The seals of the segments that a log has left.
//!
//! A seal says that the log goes on in the next segment, so that one that is missing is missed. So it is written only once
//! the next segment has its name on stable storage, and what is behind it in the log counts as stored only once the seal is.

use std::collections::VecDeque;

/// How far a seal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The next segment may not have its name on stable storage.
    Waiting,
    /// It is to be written.
    Due,
    /// It is written, and may not be on stable storage.
    Written,
}

#[derive(Debug)]
struct Seal<F> {
    file: F,
    offset: u64,
    position: u64,
    stage: Stage,
}

/// The seals that are not on stable storage, in the order of their positions. One that is further comes before others.
#[derive(Debug)]
pub(super) struct Seals<F>(VecDeque<Seal<F>>);

/// What a round of syncs does for seals, where all of it succeeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    /// How many were written when it began.
    written: usize,
    /// How many there were: the next segments of all of them had their names.
    named: usize,
}

impl<F: Clone> Seals<F> {
    pub(super) fn new() -> Seals<F> {
        Seals(VecDeque::new())
    }

    /// Takes note of a segment that has ended at `offset` of its file and `position` of the log, whose successor has its name.
    pub(super) fn add(&mut self, file: F, offset: u64, position: u64) {
        self.0.push_back(Seal { file, offset, position, stage: Stage::Waiting });
    }

    /// What is to be written next: the file, the offset in it, and the position in the log.
    pub(super) fn due(&self) -> Option<(F, u64, u64)> {
        let seal = self.0.iter().find(|seal| seal.stage == Stage::Due)?;
        Some((seal.file.clone(), seal.offset, seal.position))
    }

    /// Whether one is to be written.
    pub(super) fn is_due(&self) -> bool {
        self.0.iter().any(|seal| seal.stage == Stage::Due)
    }

    /// Whether one waits for a sync and for nothing else.
    pub(super) fn is_written(&self) -> bool {
        self.0.front().is_some_and(|seal| seal.stage == Stage::Written)
    }

    /// Takes note that the one that was due is written.
    pub(super) fn note_written(&mut self) {
        if let Some(seal) = self.0.iter_mut().find(|seal| seal.stage == Stage::Due) {
            seal.stage = Stage::Written;
        }
    }

    /// What a round of syncs that begins now does for them.
    pub(super) fn covered(&self) -> Covered {
        let written = self.0.iter().take_while(|seal| seal.stage == Stage::Written).count();
        Covered { written, named: self.0.len() }
    }

    /// Takes note that a round of syncs has succeeded.
    pub(super) fn note_synced(&mut self, covered: Covered) {
        for seal in self.0.iter_mut().take(covered.named).filter(|seal| seal.stage == Stage::Waiting) {
            seal.stage = Stage::Due;
        }
        self.0.drain(..covered.written.min(self.0.len()));
    }

    /// How far the log counts as stored, whatever is stored of it.
    pub(super) fn limit(&self) -> u64 {
        self.0.front().map_or(u64::MAX, |seal| seal.position)
    }

    /// Gives all of them up, with the files they belong to.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
