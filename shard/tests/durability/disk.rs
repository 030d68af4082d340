//! A disk that fails, loses and reorders, as its seed says.
//!
//! Of each file it knows what programs read and what is on stable storage. What was written in between gets there with a
//! sync; when the power is cut, any part of it may have got there, page by page and in no order, and likewise names of files.
//! A sync that fails may have dropped what it was to store, though it is still read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use ruvio_shard::log::{Completion, Disk, DiskError, FileName};

/// Bytes that get to stable storage together, unless they are torn.
const PAGE_BYTES: usize = 128;

/// The names of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    Segment(u64),
    Reserve,
    Checkpoint(u64),
    NewCheckpoint,
}

impl From<FileName> for Name {
    fn from(name: FileName) -> Name {
        match name {
            FileName::Segment(position) => Name::Segment(position),
            FileName::Reserve => Name::Reserve,
        }
    }
}

/// How often something goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Chances in a thousand: of a write that is cut short, fails, or finds no space; of a sync that fails; of a file that
    /// cannot be made; of something that takes seconds.
    pub short: u32,
    pub write_error: u32,
    pub sync_error: u32,
    pub no_space: u32,
    pub slow: u32,
}

#[derive(Clone, Default)]
struct Node {
    /// What is read.
    shown: Vec<u8>,
    stored: Vec<u8>,
    /// Writes that are shown and not stored, with their numbers and offsets.
    unsynced: Vec<(u64, usize, Vec<u8>)>,
    /// Whether a failed sync has dropped something.
    has_lost: bool,
}

fn apply(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    if content.len() < offset + bytes.len() {
        content.resize(offset + bytes.len(), 0);
    }
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// A change of the directory; files are known by their nodes, whatever they are called meanwhile.
#[derive(Clone, Copy, Debug)]
enum Change {
    Put(Name, usize),
    Rename(Name, Name, usize),
    Remove(Name, usize),
}

fn change(directory: &mut BTreeMap<Name, usize>, change: Change) {
    match change {
        Change::Put(name, node) => drop(directory.insert(name, node)),
        Change::Rename(from, to, node) => {
            if directory.get(&from) == Some(&node) {
                directory.remove(&from);
            }
            directory.insert(to, node);
        }
        Change::Remove(name, node) => {
            if directory.get(&name) == Some(&node) {
                directory.remove(&name);
            }
        }
    }
}

enum Work {
    Write {
        file: usize,
        offset: usize,
        bytes: Vec<u8>,
        from: usize,
    },
    /// The files, and the number of the first write that it need not cover.
    Sync {
        files: Vec<Handle>,
        until: u64,
    },
}

/// An open file, or the directory.
#[derive(Clone, Copy, Debug)]
pub enum Handle {
    File(usize),
    Directory,
}

pub struct State {
    random: SmallRng,
    pub now_ms: i64,
    pub weather: Weather,
    nodes: Vec<Node>,
    directory: BTreeMap<Name, usize>,
    stored_directory: BTreeMap<Name, usize>,
    changes: Vec<Change>,
    writes: u64,
    under_way: Vec<(i64, Work)>,
}

/// The disk; clones are the same disk.
#[derive(Clone)]
pub struct SimulatedDisk(Rc<RefCell<State>>);

impl State {
    fn happens(&mut self, chance: impl Fn(&Weather) -> u32) -> bool {
        let chance = chance(&self.weather);
        chance > 0 && self.random.random_range(0..1000) < chance
    }

    fn delay_ms(&mut self) -> i64 {
        if self.happens(|weather| weather.slow) {
            self.random.random_range(500..4000)
        } else {
            self.random.random_range(0..15)
        }
    }

    fn change(&mut self, made: Change) {
        change(&mut self.directory, made);
        self.changes.push(made);
    }

    fn write(&mut self, file: usize, offset: usize, bytes: &[u8]) {
        let node = &mut self.nodes[file];
        apply(&mut node.shown, offset, bytes);
        node.unsynced.push((self.writes, offset, bytes.to_vec()));
        self.writes += 1;
    }

    /// Stores what was written to a file before write `until`, and whatever else happens to be stored.
    fn store(&mut self, file: usize, until: u64) {
        let node = &mut self.nodes[file];
        let random = &mut self.random;
        let (stored, rest) = std::mem::take(&mut node.unsynced)
            .into_iter()
            .partition::<Vec<_>, _>(|(number, _, _)| *number < until || random.random_bool(0.5));
        node.unsynced = rest;
        stored.iter().for_each(|(_, offset, bytes)| apply(&mut node.stored, *offset, bytes));
    }

    /// What may have become of a sync that failed.
    fn fail_to_store(&mut self, file: usize, until: u64) {
        let node = &mut self.nodes[file];
        for (number, offset, bytes) in std::mem::take(&mut node.unsynced) {
            match self.random.random_range(0..3) {
                0 if number < until => apply(&mut node.stored, offset, &bytes),
                1 if number < until => node.has_lost = true,
                _ => node.unsynced.push((number, offset, bytes)),
            }
        }
    }

    fn sync(&mut self, files: &[Handle], until: u64) -> Result<(), DiskError> {
        let mut result = Ok(());
        for file in files {
            let fails = self.happens(|weather| weather.sync_error);
            match *file {
                Handle::File(file) if fails => self.fail_to_store(file, until),
                Handle::File(file) => self.store(file, until),
                Handle::Directory if fails => {}
                Handle::Directory => {
                    for made in std::mem::take(&mut self.changes) {
                        change(&mut self.stored_directory, made);
                    }
                }
            }
            if fails {
                result = Err(DiskError::IO);
            }
        }
        result
    }

    /// Ends what was under way, as a process that dies leaves it to the kernel.
    fn abandon(&mut self) {
        for (_, work) in std::mem::take(&mut self.under_way) {
            if let Work::Write { file, offset, bytes, from } = work {
                let len = self.random.random_range(0..=bytes.len() - from);
                self.write(file, offset, &bytes[from..from + len]);
            }
        }
    }

    fn cut_power(&mut self) {
        self.abandon();
        for node in &mut self.nodes {
            for (_, offset, bytes) in std::mem::take(&mut node.unsynced) {
                let mut at = 0;
                while at < bytes.len() {
                    let len = (PAGE_BYTES - (offset + at) % PAGE_BYTES).min(bytes.len() - at);
                    let kept = match self.random.random_range(0..5) {
                        0 => self.random.random_range(0..=len),
                        1 | 2 => 0,
                        _ => len,
                    };
                    apply(&mut node.stored, offset + at, &bytes[at..at + kept]);
                    at += len;
                }
            }
            node.shown = node.stored.clone();
            node.has_lost = false;
        }
        for made in std::mem::take(&mut self.changes) {
            if self.random.random_bool(0.5) {
                change(&mut self.stored_directory, made);
            }
        }
        self.directory = self.stored_directory.clone();
    }
}

impl SimulatedDisk {
    /// A disk with the empty segment that a log begins with.
    pub fn new(seed: u64) -> SimulatedDisk {
        let directory = BTreeMap::from([(Name::Segment(0), 0)]);
        SimulatedDisk(Rc::new(RefCell::new(State {
            random: SmallRng::seed_from_u64(seed),
            now_ms: 0,
            weather: Weather::default(),
            nodes: vec![Node::default()],
            stored_directory: directory.clone(),
            directory,
            changes: Vec::new(),
            writes: 0,
            under_way: Vec::new(),
        })))
    }

    /// Another disk that holds the same.
    pub fn copy(&self) -> SimulatedDisk {
        let state = self.0.borrow();
        SimulatedDisk(Rc::new(RefCell::new(State {
            random: SmallRng::seed_from_u64(0),
            now_ms: state.now_ms,
            weather: Weather::default(),
            nodes: state.nodes.clone(),
            directory: state.directory.clone(),
            stored_directory: state.stored_directory.clone(),
            changes: state.changes.clone(),
            writes: state.writes,
            under_way: Vec::new(),
        })))
    }

    pub fn set_now(&self, now_ms: i64) {
        self.0.borrow_mut().now_ms = now_ms;
    }

    pub fn set_weather(&self, weather: Weather) {
        self.0.borrow_mut().weather = weather;
    }

    /// The process dies; what it has written is still there.
    pub fn lose_process(&self) {
        self.0.borrow_mut().abandon();
    }

    /// The power is cut.
    pub fn cut_power(&self) {
        self.0.borrow_mut().cut_power();
    }

    /// Whether a failed sync has dropped what is still read.
    pub fn has_lost(&self) -> bool {
        self.0.borrow().nodes.iter().any(|node| node.has_lost)
    }

    pub fn names(&self) -> Vec<Name> {
        self.0.borrow().directory.keys().copied().collect()
    }

    pub fn read(&self, name: Name) -> Vec<u8> {
        let state = self.0.borrow();
        state.nodes[state.directory[&name]].shown.clone()
    }

    pub fn remove(&self, name: Name) {
        let mut state = self.0.borrow_mut();
        if let Some(node) = state.directory.get(&name).copied() {
            state.change(Change::Remove(name, node));
        }
    }

    pub fn rename(&self, from: Name, to: Name) -> Result<(), DiskError> {
        let mut state = self.0.borrow_mut();
        if state.happens(|weather| weather.write_error) {
            return Err(DiskError::IO);
        }
        let node = state.directory[&from];
        state.change(Change::Rename(from, to, node));
        Ok(())
    }

    /// Makes a file with this content.
    pub fn write_file(&self, name: Name, bytes: &[u8]) -> Result<(), DiskError> {
        let mut state = self.0.borrow_mut();
        let file = state.nodes.len();
        state.nodes.push(Node::default());
        state.change(Change::Put(name, file));
        if state.happens(|weather| weather.no_space) {
            let len = state.random.random_range(0..=bytes.len());
            state.write(file, 0, &bytes[..len]);
            return Err(DiskError::NO_SPACE);
        }
        state.write(file, 0, bytes);
        Ok(())
    }

    /// Changes a byte of a file for good.
    pub fn damage(&self, name: Name, at: usize) {
        self.sync_file(name).expect("a disk without weather");
        let mut state = self.0.borrow_mut();
        let file = state.directory[&name];
        state.nodes[file].shown[at] ^= 1;
        state.nodes[file].stored[at] ^= 1;
    }

    /// Makes an empty file.
    pub fn create_file(&self, name: Name) {
        let mut state = self.0.borrow_mut();
        let file = state.nodes.len();
        state.nodes.push(Node::default());
        state.change(Change::Put(name, file));
    }

    /// Writes to a file that is there.
    pub fn write_at(&self, name: Name, offset: usize, bytes: &[u8]) {
        let mut state = self.0.borrow_mut();
        let file = state.directory[&name];
        state.write(file, offset, bytes);
    }

    /// Cuts a file off, and syncs it.
    pub fn cut(&self, name: Name, len: usize) {
        let mut state = self.0.borrow_mut();
        let file = state.directory[&name];
        state.store(file, u64::MAX);
        let node = &mut state.nodes[file];
        node.stored.truncate(len);
        node.shown.clone_from(&node.stored);
    }

    pub fn sync_file(&self, name: Name) -> Result<(), DiskError> {
        let mut state = self.0.borrow_mut();
        let file = Handle::File(state.directory[&name]);
        state.sync(&[file], u64::MAX)
    }

    pub fn sync_directory(&self) -> Result<(), DiskError> {
        self.0.borrow_mut().sync(&[Handle::Directory], u64::MAX)
    }

    /// Has a file be read from stable storage again, but for what is to get there yet.
    pub fn forget_cached(&self, name: Name) {
        let mut state = self.0.borrow_mut();
        let file = state.directory[&name];
        let node = &mut state.nodes[file];
        node.shown.clone_from(&node.stored);
        for (_, offset, bytes) in &node.unsynced {
            apply(&mut node.shown, *offset, bytes);
        }
        node.has_lost = false;
    }
}

impl Disk for SimulatedDisk {
    type File = Handle;

    fn create(&mut self, name: FileName, least: u64, wanted: u64) -> Result<(Handle, u64), DiskError> {
        let mut state = self.0.borrow_mut();
        if state.happens(|weather| weather.no_space) {
            if name == FileName::Reserve
                && let Some(node) = state.directory.get(&Name::Reserve).copied()
            {
                state.change(Change::Remove(Name::Reserve, node));
            }
            return Err(DiskError::NO_SPACE);
        }
        let file = state.nodes.len();
        state.nodes.push(Node::default());
        state.change(Change::Put(name.into(), file));
        let reserved = if state.happens(|weather| weather.no_space) { least } else { wanted };
        Ok((Handle::File(file), reserved))
    }

    fn directory(&mut self) -> Result<Handle, DiskError> {
        let mut state = self.0.borrow_mut();
        if state.happens(|weather| weather.write_error) { Err(DiskError::IO) } else { Ok(Handle::Directory) }
    }

    fn rename(&mut self, from: FileName, to: FileName) -> Result<(), DiskError> {
        SimulatedDisk::rename(self, from.into(), to.into())
    }

    fn write(&mut self, file: &Handle, offset: u64, bytes: Vec<u8>, from: usize) {
        let Handle::File(file) = *file else { panic!("nobody writes to a directory") };
        let mut state = self.0.borrow_mut();
        let due_ms = state.delay_ms() + state.now_ms;
        state.under_way.push((due_ms, Work::Write { file, offset: offset as usize, bytes, from }));
    }

    fn sync(&mut self, files: Vec<Handle>) {
        let mut state = self.0.borrow_mut();
        let (due_ms, until) = (state.delay_ms() + state.now_ms, state.writes);
        state.under_way.push((due_ms, Work::Sync { files, until }));
    }

    fn next_completion(&mut self) -> Option<Completion> {
        let mut state = self.0.borrow_mut();
        let now_ms = state.now_ms;
        // What was begun first need not end first.
        let due: Vec<usize> = (0..state.under_way.len()).filter(|index| state.under_way[*index].0 <= now_ms).collect();
        if due.is_empty() {
            return None;
        }
        let chosen = due[state.random.random_range(0..due.len())];
        Some(match state.under_way.swap_remove(chosen).1 {
            Work::Write { file, offset, bytes, from } => {
                let whole = bytes.len() - from;
                let (written, result) = if state.happens(|weather| weather.write_error) {
                    (state.random.random_range(0..=whole), Err(DiskError::IO))
                } else if state.happens(|weather| weather.no_space) {
                    (0, Err(DiskError::NO_SPACE))
                } else if state.happens(|weather| weather.short) {
                    match state.random.random_range(0..8) {
                        0 => (0, Ok(0)),
                        1 => (0, Err(DiskError::from_code(libc::EAGAIN))),
                        _ => {
                            let len = state.random.random_range(1..=whole);
                            (len, Ok(len))
                        }
                    }
                } else {
                    (whole, Ok(whole))
                };
                state.write(file, offset, &bytes[from..from + written]);
                Completion::Write(bytes, result)
            }
            Work::Sync { files, until } => Completion::Sync(state.sync(&files, until)),
        })
    }

    fn wait(&mut self) -> Result<(), DiskError> {
        let mut state = self.0.borrow_mut();
        let next_ms = state.under_way.iter().map(|(due_ms, _)| *due_ms).min();
        state.now_ms = next_ms.map_or(state.now_ms, |next_ms| state.now_ms.max(next_ms));
        Ok(())
    }
}
