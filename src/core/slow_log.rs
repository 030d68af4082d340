//! The slow log: the latest commands that took long, of all cores.

use std::collections::VecDeque;

/// Words kept of a command, and bytes kept of a word, as in Redis.
const MAX_WORDS: usize = 32;
const MAX_WORD_BYTES: usize = 128;

/// A command that was slow.
#[derive(Clone, Debug)]
pub struct SlowEntry {
    /// Numbered in the order of logging.
    pub id: u64,
    /// When it ended, in seconds since the epoch.
    pub time_s: i64,
    /// How long it took, in µs.
    pub duration_us: u64,
    /// Its words, shortened.
    pub words: Vec<Vec<u8>>,
    /// The client's address.
    pub client: String,
    /// The client's name.
    pub client_name: Vec<u8>,
}

impl SlowEntry {
    /// An entry without its number and its client.
    pub fn new<'a>(time_s: i64, duration_us: u64, all: impl ExactSizeIterator<Item = &'a [u8]>) -> SlowEntry {
        let len = all.len();
        let kept = if len > MAX_WORDS { MAX_WORDS - 1 } else { len };
        let mut words: Vec<Vec<u8>> = all.take(kept).map(shortened).collect();
        if len > kept {
            words.push(format!("... ({} more arguments)", len - kept).into_bytes());
        }
        SlowEntry { id: 0, time_s, duration_us, words, client: String::new(), client_name: Vec::new() }
    }
}

fn shortened(word: &[u8]) -> Vec<u8> {
    if word.len() <= MAX_WORD_BYTES {
        return word.to_vec();
    }
    let mut text = word[..MAX_WORD_BYTES].to_vec();
    text.extend_from_slice(format!("... ({} more bytes)", word.len() - MAX_WORD_BYTES).as_bytes());
    text
}

/// The log, latest first.
#[derive(Debug, Default)]
pub struct SlowLog {
    entries: VecDeque<SlowEntry>,
    max_len: usize,
    next_id: u64,
}

impl SlowLog {
    /// An empty log of up to `max_len` entries.
    pub fn new(max_len: usize) -> SlowLog {
        SlowLog { entries: VecDeque::new(), max_len, next_id: 0 }
    }

    /// Adds an entry and gives it its number.
    pub fn push(&mut self, mut entry: SlowEntry) {
        entry.id = self.next_id;
        self.next_id += 1;
        self.entries.push_front(entry);
        self.entries.truncate(self.max_len);
    }

    /// Changes how many entries are kept.
    pub fn set_max_len(&mut self, max_len: usize) {
        self.max_len = max_len;
        self.entries.truncate(max_len);
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The entries, latest first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &SlowEntry> {
        self.entries.iter()
    }
}
