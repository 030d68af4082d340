//! Changes of keys, told to those who observe them: what a core makes of them (watched keys, waiting clients,
//! notifications, cached reads) it does after the command that made them.

use crate::events::Class;

/// What is observed. Nothing is noted of what nobody observes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Changes of keys.
    pub changes: bool,
    /// Keys that were not there before, as [`Class::New`].
    pub new_keys: bool,
    /// Look-ups that found nothing, as [`Class::Miss`].
    pub misses: bool,
}

/// Something that happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The database of the key.
    pub database: usize,
    /// What kind of event it is.
    pub class: Class,
    /// Redis's name of the event.
    pub event: &'static str,
    /// The key.
    pub key: Box<[u8]>,
}
