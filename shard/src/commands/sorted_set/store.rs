//! Storing a result under a destination key.

use crate::context::Context;
use crate::entry::Entry;
use crate::events::Class;

/// Puts a result that is not empty in the place of whatever its key held, and replies its number of members.
pub(in crate::commands) fn store(context: &mut Context<'_>, result: Entry, event: &'static str, members: usize) {
    let key: Box<[u8]> = result.view().key().into();
    context.keys.put(result);
    context.keys.changed(Class::SortedSet, event, &key);
    context.reply.count(members);
}

/// Removes the destination of a result that is empty, and replies 0.
pub(in crate::commands) fn remove_destination(context: &mut Context<'_>, key: &[u8]) {
    if context.keys.remove(key) {
        context.keys.changed(Class::Generic, "del", key);
    }
    context.reply.integer(0);
}
