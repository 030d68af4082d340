//! The libraries scripts find as globals: `bit`, `cjson`, `cmsgpack` and `struct`, as Redis's scripts know them.
//!
//! What they return and how they word their errors follows the libraries Redis is built with: Lua BitOp 1.0.2, Lua
//! CJSON 2.1.0, lua-cmsgpack 0.4.0 and the `struct` of Roberto Ierusalimschy. None of them recurses on what a script
//! gives it, and what they build is bounded by the memory limit of the interpreter ([`output`]).

mod bit;
mod call;
mod json;
mod msgpack;
mod number;
mod output;
mod raise;
mod structure;

use mlua::Lua;

/// Sets the globals `bit`, `cjson`, `cmsgpack` and `struct`.
///
/// The base library must be loaded before: its `next` is what tables are walked with. The caller makes the tables
/// read-only.
pub fn install(lua: &Lua) -> mlua::Result<()> {
    let globals = lua.globals();
    globals.raw_set("bit", bit::library(lua)?)?;
    globals.raw_set("cjson", json::library(lua)?)?;
    globals.raw_set("cmsgpack", msgpack::library(lua)?)?;
    globals.raw_set("struct", structure::library(lua)?)
}

/// How many values a function of a library keeps at most, as levels of nesting or as results. Lua gives a C function
/// 8,000 slots, and `mlua` keeps all values that Rust holds in the slots of one such function.
const SLOTS_MAX: usize = 7_800;

#[cfg(test)]
mod tests;
