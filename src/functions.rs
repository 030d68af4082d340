//! The libraries of functions that the process knows (`FUNCTION LOAD`), and the file that they are kept in.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use ruvio_shard::args::Args;
use ruvio_shard::error::CommandError;
use ruvio_shard::reply::{Protocol, Reply};
use ruvio_shard::script::{self, Engine, FunctionInfo, Host, Limits, LogLevel, Pulse, ScriptFlags};

pub mod payload;

/// The engine that all libraries are written for.
pub const ENGINE: &str = "LUA";

/// How long the code of a library may run when it is loaded, as in Redis.
const LOADING_TIME: Duration = Duration::from_millis(500);

/// A library.
pub struct Library {
    /// Its name.
    pub name: String,
    /// Its text.
    pub code: Box<[u8]>,
    /// What it registers.
    pub functions: Vec<FunctionInfo>,
}

impl Library {
    /// Reads a library; it is run once, apart from all others.
    pub fn new(code: &[u8], limits: Limits) -> Result<Library, CommandError> {
        let name = script::library_header(code)?.name.unwrap_or_default();
        let functions = Engine::new(limits)?.load_library(&name, code, &mut LoadingHost::default())?;
        Ok(Library { name, code: code.into(), functions })
    }
}

/// What the code of a library reaches while it is loaded: nothing, and for a limited time.
pub struct LoadingHost {
    until: Instant,
}

impl Default for LoadingHost {
    fn default() -> LoadingHost {
        LoadingHost { until: Instant::now() + LOADING_TIME }
    }
}

impl Host for LoadingHost {
    fn call(&mut self, _: Args<'_>, protocol: Protocol, reply: &mut Vec<u8>) {
        Reply::new(reply, protocol).error(&CommandError::NOT_FROM_SCRIPTS);
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn may_run(&mut self, _: Args<'_>) -> Result<bool, CommandError> {
        Ok(false)
    }

    fn pulse(&mut self) -> Pulse {
        if Instant::now() < self.until { Pulse::GoOn } else { Pulse::Kill }
    }
}

/// A state of the libraries.
#[derive(Clone, Default)]
pub struct LibrarySet {
    /// Rises with every change.
    pub version: u64,
    by_name: BTreeMap<String, Arc<Library>>,
    /// By their names in lower case: calls may write them in any.
    functions: HashMap<Vec<u8>, (String, ScriptFlags)>,
}

fn key_of(function: &str) -> Vec<u8> {
    function.to_ascii_lowercase().into_bytes()
}

/// What becomes of libraries that are there already when others are restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// All of them go.
    Flush,
    /// A library of the same name is an error.
    Append,
    /// A library of the same name is replaced.
    Replace,
}

impl LibrarySet {
    /// Every library, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Library>> {
        self.by_name.values()
    }

    /// How many functions there are.
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// How many libraries there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// A function that is called so: its name as it was registered, and its flags.
    pub fn find(&self, called: &[u8]) -> Option<(&str, ScriptFlags)> {
        let (name, flags) = self.functions.get(&called.to_ascii_lowercase())?;
        Some((name, *flags))
    }

    /// Bytes of the texts.
    pub fn bytes(&self) -> usize {
        self.all().map(|library| library.code.len()).sum()
    }

    /// Adds a library.
    pub fn add(&mut self, library: Library, replace: bool) -> Result<(), CommandError> {
        let earlier = self.by_name.get(&library.name);
        if earlier.is_some() && !replace {
            return Err(CommandError::new(format!("ERR Library '{}' already exists", library.name)));
        }
        let own = |name: &str| {
            earlier.is_some_and(|library| {
                library.functions.iter().any(|function| function.name.eq_ignore_ascii_case(name))
            })
        };
        let taken = library
            .functions
            .iter()
            .find(|function| self.functions.contains_key(&key_of(&function.name)) && !own(&function.name));
        if let Some(function) = taken {
            return Err(CommandError::new(format!("ERR Function {} already exists", function.name)));
        }
        self.remove(&library.name.clone());
        for function in &library.functions {
            self.functions.insert(key_of(&function.name), (function.name.clone(), function.flags));
        }
        self.by_name.insert(library.name.clone(), Arc::new(library));
        Ok(())
    }

    /// Removes a library; whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(library) = self.by_name.remove(name) else { return false };
        for function in &library.functions {
            self.functions.remove(&key_of(&function.name));
        }
        true
    }

    /// Removes every library.
    pub fn clear(&mut self) {
        self.by_name.clear();
        self.functions.clear();
    }

    /// Adds several libraries, or none.
    pub fn restore(&mut self, libraries: Vec<Library>, how: Restored) -> Result<(), CommandError> {
        if how == Restored::Flush {
            self.clear();
        }
        for library in libraries {
            if how == Restored::Append && self.by_name.contains_key(&library.name) {
                return Err(CommandError::new(format!("ERR Library {} already exists", library.name)));
            }
            self.add(library, true)?;
        }
        Ok(())
    }
}

/// The libraries of the process. A state is never changed but replaced as a whole.
#[derive(Default)]
pub struct Libraries {
    current: RwLock<Arc<LibrarySet>>,
}

impl Libraries {
    /// The libraries as they are.
    pub fn current(&self) -> Arc<LibrarySet> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the libraries; `keep` is given the new state before it holds, and can refuse it.
    pub fn change(
        &self,
        change: impl FnOnce(&mut LibrarySet) -> Result<(), CommandError>,
        keep: impl FnOnce(&LibrarySet) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = LibrarySet::clone(&current);
        next.version += 1;
        change(&mut next)?;
        keep(&next)?;
        *current = Arc::new(next);
        Ok(())
    }
}
