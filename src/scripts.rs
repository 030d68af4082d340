//! The scripts that the process knows, by digest: what `SCRIPT LOAD` and `EVAL` leave behind.
//!
//! Every core compiles a script when it first runs it. What was loaded with `SCRIPT LOAD` stays until `SCRIPT FLUSH`; of what
//! `EVAL` was called with, only the scripts used last stay.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ruvio_shard::error::CommandError;
use ruvio_shard::script::{self, Digest, ScriptFlags};

/// Scripts that came with `EVAL` and are kept, as in Redis.
const MOST_EVALUATED: usize = 500;

/// A script.
pub struct Script {
    /// Its name.
    pub digest: Digest,
    /// Its text.
    pub body: Box<[u8]>,
    /// What its first line says of it.
    pub flags: ScriptFlags,
    /// Whether its first line says anything (`#!lua`).
    pub has_flags: bool,
    stays: AtomicBool,
    /// The reading of the cores' clock: many scripts are used in one millisecond.
    last_used: AtomicU64,
    forgotten: AtomicBool,
}

impl Script {
    /// Whether the process knows it no longer.
    #[inline]
    pub fn is_forgotten(&self) -> bool {
        self.forgotten.load(Ordering::Relaxed)
    }

    /// Notes that it is used now, by the reading of a core's clock.
    #[inline]
    pub fn note_use(&self, now: u64) {
        self.last_used.store(now, Ordering::Relaxed);
    }
}

/// The scripts of the process.
#[derive(Default)]
pub struct ScriptCache {
    by_digest: Mutex<HashMap<Digest, Arc<Script>>>,
    /// How many of them may be forgotten.
    evaluated: AtomicUsize,
    bytes: AtomicUsize,
    evicted: AtomicU64,
}

impl ScriptCache {
    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Arc<Script>>> {
        self.by_digest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The script with this digest.
    pub fn get(&self, digest: &Digest) -> Option<Arc<Script>> {
        self.lock().get(digest).cloned()
    }

    /// Adds a script that compiles. One that does not stay may push out the one that was not used for longest.
    pub fn add(&self, digest: Digest, body: &[u8], stays: bool, now: u64) -> Result<Arc<Script>, CommandError> {
        let header = script::header(body)?;
        let mut scripts = self.lock();
        if let Some(script) = scripts.get(&digest) {
            let script = Arc::clone(script);
            if stays {
                self.make_stay(&script);
            }
            return Ok(script);
        }
        let script = Arc::new(Script {
            digest,
            body: body.into(),
            flags: header.flags,
            has_flags: header.is_shebang,
            stays: AtomicBool::new(stays),
            last_used: AtomicU64::new(now),
            forgotten: AtomicBool::new(false),
        });
        if !stays && self.evaluated.fetch_add(1, Ordering::Relaxed) >= MOST_EVALUATED {
            self.evict(&mut scripts);
        }
        self.bytes.fetch_add(body.len(), Ordering::Relaxed);
        scripts.insert(digest, Arc::clone(&script));
        Ok(script)
    }

    fn evict(&self, scripts: &mut HashMap<Digest, Arc<Script>>) {
        let oldest = scripts
            .values()
            .filter(|script| !script.stays.load(Ordering::Relaxed))
            .min_by_key(|script| script.last_used.load(Ordering::Relaxed))
            .map(|script| script.digest);
        if let Some(script) = oldest.and_then(|digest| scripts.remove(&digest)) {
            script.forgotten.store(true, Ordering::Relaxed);
            self.bytes.fetch_sub(script.body.len(), Ordering::Relaxed);
            self.evaluated.fetch_sub(1, Ordering::Relaxed);
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Has a script stay that came with `EVAL`.
    pub fn keep(&self, script: &Script) {
        let _scripts = self.lock();
        self.make_stay(script);
    }

    fn make_stay(&self, script: &Script) {
        if !script.stays.swap(true, Ordering::Relaxed) {
            self.evaluated.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Forgets all.
    pub fn flush(&self) {
        let mut scripts = self.lock();
        for script in scripts.values() {
            script.forgotten.store(true, Ordering::Relaxed);
        }
        scripts.clear();
        self.evaluated.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Bytes of their texts.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts anew those that are forgotten to make room.
    pub fn reset_evicted(&self) {
        self.evicted.store(0, Ordering::Relaxed);
    }

    /// How many were forgotten to make room.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_evaluated_scripts_used_last_stay() {
        let cache = ScriptCache::default();
        let body = |number: usize| format!("return {number}").into_bytes();
        let add = |number: usize, stays: bool| {
            cache.add(Digest::of(&body(number)), &body(number), stays, number as u64).expect("a script without header")
        };
        add(0, true);
        let first = add(1, false);
        let second = add(2, false);
        first.note_use(1_000_000);
        (3..=MOST_EVALUATED + 1).for_each(|number| {
            add(number, false);
        });
        assert!(second.is_forgotten());
        assert!(!first.is_forgotten());
        assert!(cache.get(&Digest::of(&body(0))).is_some());
        assert!(cache.get(&Digest::of(&body(2))).is_none());
        assert_eq!((cache.len(), cache.evicted()), (MOST_EVALUATED + 1, 1));
        cache.flush();
        assert_eq!((cache.len(), cache.bytes()), (0, 0));
        assert!(first.is_forgotten());
    }
}
