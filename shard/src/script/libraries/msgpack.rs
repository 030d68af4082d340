//! `cmsgpack`: MessagePack.

mod pack;
mod unpack;

use mlua::{Lua, Table};

use super::call::function;

pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    library.raw_set("pack", function(lua, pack::pack)?)?;
    library.raw_set("unpack", function(lua, unpack::unpack)?)?;
    library.raw_set("unpack_one", function(lua, unpack::unpack_one)?)?;
    library.raw_set("unpack_limit", function(lua, unpack::unpack_limit)?)?;
    library.raw_set("_NAME", "cmsgpack")?;
    library.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    library.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    library.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    Ok(library)
}
