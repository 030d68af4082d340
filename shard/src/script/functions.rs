//! Libraries of functions, in an interpreter of their own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;

use mlua::ffi;

use super::failure::{self, raise};
use super::header::checked_name;
use super::interpreter::{Interpreter, Target};
use super::shared::{self, Name, State, bytes_at};
use super::{Host, Limits, Ran, ScriptCall, ScriptFlags};
use crate::error::CommandError;

/// A function that a library registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// What it is called by.
    pub name: String,
    /// What it is for, in its author's words.
    pub description: Option<String>,
    /// What it says of itself.
    pub flags: ScriptFlags,
}

/// A function and where it is: a reference in the registry.
pub(super) struct Registered {
    info: FunctionInfo,
    function: c_int,
}

/// The functions' interpreter and all that is loaded in it.
pub(super) struct Functions {
    interpreter: Interpreter,
    libraries: RefCell<HashMap<String, Vec<Registered>>>,
    /// Of every function of every library.
    by_name: RefCell<HashMap<Vec<u8>, c_int>>,
}

impl Functions {
    pub fn new(limits: Limits) -> Result<Functions, CommandError> {
        Ok(Functions {
            interpreter: Interpreter::for_functions(limits)?,
            libraries: RefCell::default(),
            by_name: RefCell::default(),
        })
    }

    pub fn set_limits(&self, limits: Limits) {
        self.interpreter.set_limits(limits);
    }

    pub fn used_memory(&self) -> usize {
        self.interpreter.used_memory()
    }

    pub fn load_library(
        &self,
        name: &str,
        code: &[u8],
        host: &mut dyn Host,
    ) -> Result<Vec<FunctionInfo>, CommandError> {
        let start = match code.iter().position(|byte| *byte == b'\n') {
            Some(end) if code.starts_with(b"#!") => end,
            _ => 0,
        };
        let (registered, loaded) = self.interpreter.load_library(&code[start..], host);
        if let Err(error) = loaded.and_then(|()| self.check(name, &registered)) {
            self.release(&registered);
            return Err(error);
        }
        self.delete_library(name);
        let functions = registered.iter().map(|function| function.info.clone()).collect();
        let mut by_name = self.by_name.borrow_mut();
        for function in &registered {
            by_name.insert(function.info.name.clone().into_bytes(), function.function);
        }
        self.libraries.borrow_mut().insert(name.to_owned(), registered);
        Ok(functions)
    }

    /// Whether the functions of a library may be kept: there are some, and no other library has one of that name.
    fn check(&self, name: &str, registered: &[Registered]) -> Result<(), CommandError> {
        if registered.is_empty() {
            return Err(CommandError::new("ERR No functions registered"));
        }
        let libraries = self.libraries.borrow();
        let others = || libraries.iter().filter(|(other, _)| *other != name).flat_map(|(_, functions)| functions);
        match registered.iter().find(|function| others().any(|other| other.info.name == function.info.name)) {
            Some(function) => Err(CommandError::new(format!("ERR Function {} already exists", function.info.name))),
            None => Ok(()),
        }
    }

    pub fn delete_library(&self, name: &str) -> bool {
        let Some(functions) = self.libraries.borrow_mut().remove(name) else { return false };
        let mut by_name = self.by_name.borrow_mut();
        for function in &functions {
            by_name.remove(function.info.name.as_bytes());
        }
        self.release(&functions);
        true
    }

    fn release(&self, functions: &[Registered]) {
        for function in functions {
            self.interpreter.release(function.function);
        }
    }

    pub fn run_function(&self, name: &[u8], call: &ScriptCall<'_>, host: &mut dyn Host, reply: &mut Vec<u8>) -> Ran {
        let function = self.by_name.borrow().get(name).copied();
        match function {
            Some(function) => self.interpreter.run(Target { function, name: Name::Function(name) }, call, host, reply),
            None => Ran::refused(CommandError::new("ERR Function not found"), call.protocol, reply),
        }
    }
}

/// What a call of `redis.register_function` said, before anything is taken from Lua.
#[derive(Default)]
struct Given {
    /// Slots of the stack; 0 is none.
    name: c_int,
    description: c_int,
    callback: c_int,
    flags: ScriptFlags,
}

/// `redis.register_function(name, callback)` or `redis.register_function{…}`
pub(super) unsafe extern "C-unwind" fn register_function(state: State) -> c_int {
    // SAFETY: called by Lua only, with the upvalue of set-up. Until the last call that may raise an error, nothing has a
    // destructor: what was given is known by slots of the stack.
    unsafe {
        let shared = shared::of(state);
        if (*shared).registered.is_none() {
            raise(state, b"ERR redis.register_function can only be called on FUNCTION LOAD command");
        }
        let given = match ffi::lua_gettop(state) {
            1 => named_arguments(state),
            2 => positional_arguments(state),
            _ => Err(&b"ERR wrong number of arguments to redis.register_function"[..]),
        };
        let given = match given {
            Ok(given) => given,
            Err(message) => raise(state, message),
        };
        ffi::lua_pushvalue(state, given.callback);
        let function = ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX);
        if let Err(message) = keep(state, &given, function) {
            ffi::luaL_unref(state, ffi::LUA_REGISTRYINDEX, function);
            raise(state, message);
        }
    }
    0
}

/// Adds a function to those of the library that is being loaded.
///
/// # Safety
///
/// `given` names slots of `state`, whose strings are converted.
unsafe fn keep(state: State, given: &Given, function: c_int) -> Result<(), &'static [u8]> {
    const WRONG_NAME: &[u8] = b"ERR Library names can only contain letters, numbers, or underscores(_) and must be at \
        least one character long";
    // SAFETY: nothing in here raises an error of Lua.
    unsafe {
        let name = checked_name(bytes_at(state, given.name).unwrap_or_default()).map_err(|_| WRONG_NAME)?;
        let description = (given.description != 0)
            .then(|| String::from_utf8_lossy(bytes_at(state, given.description).unwrap_or_default()).into_owned());
        let Some(registered) = (*shared::of(state)).registered.as_mut() else { return Ok(()) };
        if registered.iter().any(|other| other.info.name == name) {
            return Err(b"ERR Function already exists in the library");
        }
        registered.push(Registered { info: FunctionInfo { name, description, flags: given.flags }, function });
    }
    Ok(())
}

/// # Safety
///
/// As [`register_function`].
unsafe fn positional_arguments(state: State) -> Result<Given, &'static [u8]> {
    // SAFETY: the conversion of a number to a string may raise an error; nothing has a destructor.
    unsafe {
        if bytes_at(state, 1).is_none() {
            return Err(b"ERR first argument to redis.register_function must be a string");
        }
        if ffi::lua_type(state, 2) != ffi::LUA_TFUNCTION {
            return Err(b"ERR second argument to redis.register_function must be a function");
        }
    }
    Ok(Given { name: 1, callback: 2, ..Given::default() })
}

/// # Safety
///
/// As [`register_function`].
unsafe fn named_arguments(state: State) -> Result<Given, &'static [u8]> {
    const NAME: c_int = 2;
    const DESCRIPTION: c_int = 3;
    const CALLBACK: c_int = 4;
    const KEY: c_int = 5;
    const VALUE: c_int = 6;
    let mut given = Given::default();
    // SAFETY: each value found is copied to a slot of its own. Keys are only read when they are strings.
    unsafe {
        if ffi::lua_type(state, 1) != ffi::LUA_TTABLE {
            return Err(b"ERR calling redis.register_function with a single argument is only applicable to Lua table \
                (representing named arguments).");
        }
        ffi::lua_settop(state, KEY);
        while ffi::lua_next(state, 1) != 0 {
            let key = match ffi::lua_type(state, KEY) {
                ffi::LUA_TSTRING => bytes_at(state, KEY).unwrap_or_default(),
                // A number could be one, and no argument has such a name.
                ffi::LUA_TNUMBER => b"",
                _ => return Err(b"ERR named argument key given to redis.register_function is not a string"),
            };
            let slot = if key.eq_ignore_ascii_case(b"function_name") {
                if bytes_at(state, VALUE).is_none() {
                    return Err(b"ERR function_name argument given to redis.register_function must be a string");
                }
                given.name = NAME;
                NAME
            } else if key.eq_ignore_ascii_case(b"description") {
                if bytes_at(state, VALUE).is_none() {
                    return Err(b"ERR description argument given to redis.register_function must be a string");
                }
                given.description = DESCRIPTION;
                DESCRIPTION
            } else if key.eq_ignore_ascii_case(b"callback") {
                if ffi::lua_type(state, VALUE) != ffi::LUA_TFUNCTION {
                    return Err(b"ERR callback argument given to redis.register_function must be a function");
                }
                given.callback = CALLBACK;
                CALLBACK
            } else if key.eq_ignore_ascii_case(b"flags") {
                if ffi::lua_type(state, VALUE) != ffi::LUA_TTABLE {
                    return Err(
                        b"ERR flags argument to redis.register_function must be a table representing function \
                        flags",
                    );
                }
                given.flags = flags(state, VALUE)?;
                ffi::lua_settop(state, KEY);
                continue;
            } else {
                return Err(b"ERR unknown argument given to redis.register_function");
            };
            ffi::lua_replace(state, slot);
        }
    }
    if given.name == 0 {
        return Err(b"ERR redis.register_function must get a function name argument");
    }
    if given.callback == 0 {
        return Err(b"ERR redis.register_function must get a callback argument");
    }
    Ok(given)
}

/// The flags in the table at `index`.
///
/// # Safety
///
/// As [`register_function`], with a table at `index`.
unsafe fn flags(state: State, index: c_int) -> Result<ScriptFlags, &'static [u8]> {
    let mut flags = ScriptFlags::default();
    for number in 1.. {
        // SAFETY: one slot is taken and given back.
        unsafe {
            ffi::lua_rawgeti_(state, index, number);
            if ffi::lua_type(state, -1) == ffi::LUA_TNIL {
                break;
            }
            let flag = bytes_at(state, -1).and_then(ScriptFlags::named_in_any_case);
            flags.insert(flag.ok_or(&b"ERR unknown flag given"[..])?);
            ffi::lua_settop(state, -2);
        }
    }
    Ok(flags)
}

/// Compiles the text in `shared.source` and runs it; the fields of `shared` take what it registers. On an error the
/// message is in `shared.failure`.
///
/// Its upvalues are the engine's part and the name of the text.
pub(super) unsafe extern "C-unwind" fn load_library(state: State) -> c_int {
    // SAFETY: called in a protected call while `source` lives.
    unsafe {
        let shared = shared::of(state);
        let source: &[u8] = &*(*shared).source;
        let name = ffi::lua_tolstring(state, ffi::lua_upvalueindex(2), std::ptr::null_mut());
        let start = source.as_ptr().cast();
        if super::base::compile(state, start, source.len(), name) != ffi::LUA_OK {
            let text = bytes_at(state, -1).unwrap_or_default();
            let failure = &mut (*shared).failure;
            failure.clear();
            failure.extend_from_slice(b"ERR Error compiling function: ");
            failure.extend_from_slice(text);
            return 0;
        }
        if ffi::lua_pcall(state, 0, 0, 0) == ffi::LUA_OK {
            (*shared).failure.clear();
            return 0;
        }
        if (*shared).killed {
            (*shared).failure.clear();
            (*shared).failure.extend_from_slice(b"ERR FUNCTION LOAD timeout");
        } else {
            failure::extract(state, -1, shared);
        }
        let failure = &mut (*shared).failure;
        failure.splice(0..0, b"ERR Error registering functions: ".iter().copied());
    }
    0
}
