//! A growing string that counts against the interpreter's memory limit.

use mlua::Lua;

use super::call::Failure;

/// Bytes that are not asked about: less than this is not worth a look at the limit.
const FREE_BYTES: usize = 64 << 10;

/// The longest string made where the interpreter has no limit: what a value can hold by default.
const BYTES_MAX: usize = 512 << 20;

/// A string in the making. It lies outside of the interpreter's memory until it is finished, so its growth is checked
/// against what the interpreter has left.
pub(super) struct Output<'a> {
    lua: &'a Lua,
    bytes: Vec<u8>,
    /// Up to this length it may grow without another look at the limit.
    granted: usize,
}

impl<'a> Output<'a> {
    pub fn new(lua: &'a Lua) -> Output<'a> {
        Output { lua, bytes: Vec::new(), granted: FREE_BYTES }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn push(&mut self, byte: u8) -> Result<(), Failure> {
        self.reserve(1)?;
        self.bytes.push(byte);
        Ok(())
    }

    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    pub fn zeros(&mut self, count: usize) -> Result<(), Failure> {
        self.reserve(count)?;
        self.bytes.resize(self.bytes.len() + count, 0);
        Ok(())
    }

    /// The bytes, to append at most `len` of them.
    pub fn room_for(&mut self, len: usize) -> Result<&mut Vec<u8>, Failure> {
        self.reserve(len)?;
        Ok(&mut self.bytes)
    }

    fn reserve(&mut self, more: usize) -> Result<(), Failure> {
        let end = self.bytes.len().checked_add(more).ok_or_else(Failure::memory)?;
        if end <= self.granted { Ok(()) } else { self.ask(end) }
    }

    #[cold]
    fn ask(&mut self, end: usize) -> Result<(), Failure> {
        let left = match memory_limit(self.lua) {
            0 => BYTES_MAX,
            limit => limit.saturating_sub(self.lua.used_memory()).min(BYTES_MAX),
        };
        if end > left {
            return Err(Failure::memory());
        }
        self.granted = end.saturating_mul(2).min(left);
        Ok(())
    }

    pub fn finish(self) -> mlua::Result<mlua::LuaString> {
        self.lua.create_string(self.bytes)
    }
}

/// The memory limit of the interpreter in bytes, zero if it has none.
fn memory_limit(lua: &Lua) -> usize {
    // There is no other way to read it than to set it.
    lua.set_memory_limit(0).and_then(|limit| lua.set_memory_limit(limit).map(|_| limit)).unwrap_or(0)
}
