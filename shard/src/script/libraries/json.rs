//! `cjson`: JSON.

mod decode;
mod encode;
mod settings;

use std::rc::Rc;

use mlua::{Function, Lua, Table, Value};

use self::settings::Settings;
use super::call::function;

pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let next: Function = lua.globals().raw_get("next")?;
    module(lua, &next)
}

/// A module with settings of its own, as `cjson.new` makes them.
fn module(lua: &Lua, next: &Function) -> mlua::Result<Table> {
    let module = lua.create_table()?;
    let settings = Rc::new(Settings::default());
    let with = |name, body: fn(&Settings, &Lua, &super::call::Arguments<'_>) -> settings::Outcome| {
        let settings = settings.clone();
        module.raw_set(name, function(lua, move |lua, arguments| body(&settings, lua, arguments))?)
    };
    with("encode_sparse_array", Settings::encode_sparse_array)?;
    with("encode_max_depth", Settings::encode_max_depth)?;
    with("decode_max_depth", Settings::decode_max_depth)?;
    with("encode_number_precision", Settings::encode_number_precision)?;
    with("encode_keep_buffer", Settings::encode_keep_buffer)?;
    with("encode_invalid_numbers", Settings::encode_invalid_numbers)?;
    with("decode_invalid_numbers", Settings::decode_invalid_numbers)?;
    with("decode", decode::decode)?;
    let (encode_settings, encode_next) = (settings.clone(), next.clone());
    let encode = move |lua: &Lua, arguments: &super::call::Arguments<'_>| {
        encode::encode(&encode_settings, &encode_next, lua, arguments)
    };
    module.raw_set("encode", function(lua, encode)?)?;
    let new_next = next.clone();
    module.raw_set("new", function(lua, move |lua, _| Ok(self::module(lua, &new_next)?))?)?;
    module.raw_set("null", Value::NULL)?;
    module.raw_set("_NAME", "cjson")?;
    module.raw_set("_VERSION", "2.1.0")?;
    Ok(module)
}
