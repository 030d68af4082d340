//! Functions of the libraries as scripts call them: arguments converted and errors worded as `lauxlib` does.

use mlua::{Function, IntoLuaMulti, Lua, LuaString, MultiValue, Value};

use super::number::to_long;
use super::raise::raising;

/// Why a function of a library fails.
#[derive(Debug)]
pub(super) enum Failure {
    /// A message of the library's own, which begins with the caller's line.
    Message(Vec<u8>),
    /// An argument, by its position from 1, and what is wrong with it.
    Argument(usize, Vec<u8>),
    /// A message of Lua's core, which tells no line when it comes from a C function.
    Core(&'static str),
    /// What `mlua` failed with.
    Lua(mlua::Error),
}

impl Failure {
    pub fn message(text: impl Into<Vec<u8>>) -> Failure {
        Failure::Message(text.into())
    }

    pub fn argument(position: usize, text: impl Into<Vec<u8>>) -> Failure {
        Failure::Argument(position, text.into())
    }

    /// The interpreter's stack has no room for more; `what` says for what.
    pub fn stack(what: &str) -> Failure {
        Failure::message(format!("stack overflow ({what})"))
    }

    pub fn memory() -> Failure {
        Failure::Lua(mlua::Error::MemoryError("not enough memory".into()))
    }
}

impl From<mlua::Error> for Failure {
    fn from(error: mlua::Error) -> Failure {
        Failure::Lua(error)
    }
}

/// Makes a function scripts can call. Its failures are raised as strings.
pub(super) fn function<F, R>(lua: &Lua, body: F) -> mlua::Result<Function>
where
    F: Fn(&Lua, &Arguments<'_>) -> Result<R, Failure> + 'static,
    R: IntoLuaMulti,
{
    // Made before memory runs out, as Lua does it.
    let out_of_memory = lua.create_string("not enough memory")?;
    let inner = lua.create_function(move |lua, values: MultiValue| {
        let results = body(lua, &Arguments { lua, values }).and_then(|results| Ok(results.into_lua_multi(lua)?));
        let (mut results, succeeded) = match results {
            Ok(results) => (results, true),
            Err(failure) => {
                let message = message_of(lua, failure).unwrap_or_else(|_| out_of_memory.clone());
                (MultiValue::from_iter([Value::String(message)]), false)
            }
        };
        results.push_back(Value::Boolean(succeeded));
        Ok(results)
    })?;
    raising(lua, inner)
}

/// Levels of the stack when a function of a library runs: 0 is the Rust function, 1 the one that raises for it, 2 the
/// script.
const LEVEL_FUNCTION: usize = 1;
const LEVEL_CALLER: usize = 2;

/// The string to raise. An error means that there is no memory for it, or that this is the failure.
fn message_of(lua: &Lua, failure: Failure) -> mlua::Result<LuaString> {
    let text = match failure {
        Failure::Core(text) => return lua.create_string(text),
        Failure::Lua(memory @ mlua::Error::MemoryError(_)) => return Err(memory),
        Failure::Lua(mlua::Error::RuntimeError(text)) => return lua.create_string(text),
        Failure::Lua(error) => return lua.create_string(error.to_string()),
        Failure::Message(text) => text,
        Failure::Argument(position, text) => {
            let (name, is_method) = called_as(lua);
            let start = match (is_method, position) {
                (true, 0 | 1) => format!("calling '{name}' on bad self"),
                (true, _) => format!("bad argument #{} to '{name}'", position - 1),
                (false, _) => format!("bad argument #{position} to '{name}'"),
            };
            [start.as_bytes(), b" (", &text, b")"].concat()
        }
    };
    let mut message = caller_line(lua);
    message.extend(text);
    lua.create_string(message)
}

/// The name the running function was called by, and whether it was called with a colon.
fn called_as(lua: &Lua) -> (String, bool) {
    lua.inspect_stack(LEVEL_FUNCTION, |function| {
        let names = function.names();
        let name = names.name.map_or_else(|| "?".to_owned(), |name| name.into_owned());
        (name, names.name_what == Some("method"))
    })
    .unwrap_or_else(|| ("?".to_owned(), false))
}

/// `chunk:line: ` of the Lua code that called the running function; empty if it was called by C code, as by `pcall`.
fn caller_line(lua: &Lua) -> Vec<u8> {
    lua.inspect_stack(LEVEL_CALLER, |caller| {
        let line = caller.current_line().filter(|&line| line > 0)?;
        Some(format!("{}:{line}: ", caller.source().short_src?).into_bytes())
    })
    .flatten()
    .unwrap_or_default()
}

/// The arguments of a call, by their position from 1.
pub(super) struct Arguments<'a> {
    lua: &'a Lua,
    values: MultiValue,
}

impl Arguments<'_> {
    pub fn count(&self) -> usize {
        self.values.len()
    }

    pub fn get(&self, position: usize) -> Option<&Value> {
        self.values.get(position.checked_sub(1)?)
    }

    /// The argument, nil if there is none.
    pub fn value(&self, position: usize) -> Value {
        self.get(position).cloned().unwrap_or(Value::Nil)
    }

    pub fn is_nil(&self, position: usize) -> bool {
        matches!(self.get(position), None | Some(Value::Nil))
    }

    /// A number, or a string that reads as one.
    pub fn as_number(&self, position: usize) -> Result<Option<f64>, Failure> {
        match self.get(position) {
            Some(Value::Number(number)) => Ok(Some(*number)),
            Some(Value::Integer(integer)) => Ok(Some(*integer as f64)),
            Some(Value::String(string)) => Ok(self.lua.coerce_number(Value::String(string.clone()))?),
            _ => Ok(None),
        }
    }

    pub fn number(&self, position: usize) -> Result<f64, Failure> {
        self.as_number(position)?.ok_or_else(|| self.wrong_type(position, "number"))
    }

    /// A number, cut to an integer.
    pub fn integer(&self, position: usize) -> Result<i64, Failure> {
        Ok(to_long(self.number(position)?))
    }

    pub fn integer_or(&self, position: usize, default: i64) -> Result<i64, Failure> {
        if self.is_nil(position) { Ok(default) } else { self.integer(position) }
    }

    /// A string, or a number as Lua writes it.
    pub fn string(&self, position: usize) -> Result<LuaString, Failure> {
        match self.get(position) {
            Some(Value::String(string)) => Ok(string.clone()),
            Some(number @ (Value::Number(_) | Value::Integer(_))) => {
                self.lua.coerce_string(number.clone())?.ok_or_else(|| self.wrong_type(position, "string"))
            }
            _ => Err(self.wrong_type(position, "string")),
        }
    }

    pub fn wrong_type(&self, position: usize, wanted: &str) -> Failure {
        let given = self.get(position).map_or("no value", type_name);
        Failure::argument(position, format!("{wanted} expected, got {given}"))
    }
}

/// The name Lua has for the type of a value.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}
