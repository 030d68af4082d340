//! How an interpreter is set up: what scripts find there, and what they do not.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use mlua::{Function, IntoLuaMulti, Lua, LuaOptions, Result, StdLib, Table, Value, ffi};

use super::shared::{self, Kind, Shared, State, Stock, registry_key};
use super::{
    Limits, api, base, call, failure, functions, hook, interpreter, libraries, random, tables, text, to_reply,
};

/// What is only in the standard library of programs that scripts do not share a process with, and what Redis has
/// removed since: finalizers and changing environments.
const REMOVED: [&str; 6] = ["dofile", "loadfile", "print", "newproxy", "getfenv", "setfenv"];

/// Messages that Lua makes where no error can be raised. Kept alive, they need no memory when it has run out.
const MESSAGES: [&str; 4] =
    ["error in error handling", "C stack overflow", "cannot resume non-suspended coroutine", "not enough memory"];

/// References of the registry.
pub(super) struct References {
    pub enter: c_int,
    pub note: c_int,
    pub compile: c_int,
    pub collect: c_int,
    pub load_library: c_int,
    /// The tables behind the globals: always, and while a library is loaded.
    pub globals: c_int,
    pub loading: c_int,
    /// The metatable by which the globals lead to one of them.
    pub globals_metatable: c_int,
}

/// An interpreter that is set up.
pub(super) struct Ready {
    pub lua: Lua,
    pub shared: NonNull<Shared>,
    pub state: State,
    pub side: State,
    pub references: References,
}

/// Makes an interpreter. Limits do not hold for what set-up takes.
pub(super) fn interpreter(kind: Kind, limits: Limits) -> Result<Ready> {
    // SAFETY: no library of Lua's own is opened by it. Those opened below give nothing to scripts that is unsafe: `os` is
    // reduced to its clock, and there is neither `debug` nor `package`.
    let lua = unsafe { Lua::unsafe_new_with(StdLib::NONE, LuaOptions::default()) };
    open_libraries(&lua)?;
    libraries::install(&lua)?;
    let globals = lua.globals();
    let protected = lua.create_table()?;
    let stock = stock(&lua, &globals)?;
    let shared = Box::new(Shared::new(kind, limits, stock, reference(&lua, &protected)?));
    let shared = NonNull::from(Box::leak(shared));
    let setup = Setup { lua: &lua, shared };
    match setup.finish(kind, &globals, &protected) {
        Ok((state, side, references)) => Ok(Ready { lua, shared, state, side, references }),
        Err(error) => {
            drop((globals, protected, lua));
            // SAFETY: it came from the box above, and the state that knew it is closed.
            drop(unsafe { Box::from_raw(shared.as_ptr()) });
            Err(error)
        }
    }
}

fn open_libraries(lua: &Lua) -> Result<()> {
    // SAFETY: the functions are Lua's own; they set globals and leave nothing else behind.
    unsafe {
        lua.exec_raw::<()>((), |state| {
            for (name, open) in [
                (c"table", ffi::luaopen_table as ffi::lua_CFunction),
                (c"string", ffi::luaopen_string),
                (c"math", ffi::luaopen_math),
                (c"os", ffi::luaopen_os),
            ] {
                ffi::lua_pushcclosure(state, open, 0);
                ffi::lua_pushstring_(state, name.as_ptr());
                ffi::lua_call(state, 1, 0);
            }
        })?;
    }
    let globals = lua.globals();
    for name in REMOVED {
        globals.raw_set(name, Value::Nil)?;
    }
    let clock: Function = globals.get::<Table>("os")?.get("clock")?;
    let os = lua.create_table()?;
    os.raw_set("clock", clock)?;
    globals.raw_set("os", os)
}

/// The functions that are replaced, while they are still there.
fn stock(lua: &Lua, globals: &Table) -> Result<Stock> {
    let coroutine: Table = globals.get("coroutine")?;
    let string: Table = globals.get("string")?;
    let table: Table = globals.get("table")?;
    let wrap: Function = coroutine.get("wrap")?;
    let some_function = lua.load("return").into_function()?;
    Ok(Stock {
        resume: c_function(lua, coroutine.get("resume")?)?,
        create: c_function(lua, coroutine.get("create")?)?,
        wrapped: c_function(lua, wrap.call(some_function)?)?,
        getmetatable: c_function(lua, globals.get("getmetatable")?)?,
        setmetatable: c_function(lua, globals.get("setmetatable")?)?,
        collectgarbage: c_function(lua, globals.get("collectgarbage")?)?,
        tonumber: c_function(lua, globals.get("tonumber")?)?,
        insert: c_function(lua, table.get("insert")?)?,
        remove: c_function(lua, table.get("remove")?)?,
        sort: c_function(lua, table.get("sort")?)?,
        concat: c_function(lua, table.get("concat")?)?,
        find: c_function(lua, string.get("find")?)?,
        matching: c_function(lua, string.get("match")?)?,
        gmatch: c_function(lua, string.get("gmatch")?)?,
        gsub: c_function(lua, string.get("gsub")?)?,
        rep: c_function(lua, string.get("rep")?)?,
    })
}

fn c_function(lua: &Lua, function: Function) -> Result<ffi::lua_CFunction> {
    let mut found = None;
    // SAFETY: reads the pointer of the only value given.
    unsafe { lua.exec_raw::<()>(function, |state| found = ffi::lua_tocfunction(state, -1))? };
    found.ok_or_else(|| mlua::Error::runtime("a function of the standard library is none of C"))
}

/// Keeps a value in the registry for as long as the interpreter lives.
fn reference(lua: &Lua, value: impl IntoLuaMulti) -> Result<c_int> {
    let mut reference = ffi::LUA_NOREF;
    // SAFETY: takes the only value given.
    unsafe { lua.exec_raw::<()>(value, |state| reference = ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX))? };
    Ok(reference)
}

struct Setup<'a> {
    lua: &'a Lua,
    shared: NonNull<Shared>,
}

impl Setup<'_> {
    fn finish(&self, kind: Kind, globals: &Table, protected: &Table) -> Result<(State, State, References)> {
        let lua = self.lua;
        for message in MESSAGES {
            reference(lua, message)?;
        }
        let shared: *mut c_void = self.shared.as_ptr().cast();
        let mut state: State = std::ptr::null_mut();
        // SAFETY: the pointer outlives the interpreter's code.
        unsafe {
            lua.exec_raw::<()>((), |main| {
                state = main;
                ffi::lua_pushlightuserdata(main, registry_key());
                ffi::lua_pushlightuserdata(main, shared);
                ffi::lua_rawset(main, ffi::LUA_REGISTRYINDEX);
            })?;
        }

        let watch = lua.create_table()?;
        watch.raw_set("__gc", self.closure(hook::on_collected, ())?)?;
        let watch = reference(lua, watch)?;
        // SAFETY: nothing runs yet that reads it.
        unsafe { (*self.shared.as_ptr()).watch = watch };

        self.replace_functions(globals)?;
        let redis = self.redis_table(kind)?;
        globals.raw_set("redis", &redis)?;
        globals.raw_set("server", &redis)?;
        let refuse_read = self.closure(base::refuse_read, ())?;
        let globals_metatable = lua.create_table()?;
        globals_metatable.raw_set("__index", &refuse_read)?;
        globals.set_metatable(Some(globals_metatable.clone()))?;

        let mut protection = Protection { setup: self, protected, made: HashMap::new(), refuse_write: None };
        let string: Table = globals.get("string")?;
        let shown = protection.shown_of(globals)?;
        let shown_metatable = protection.shown_of(&globals_metatable)?;
        let string_metatable = lua.create_table()?;
        string_metatable.raw_set("__index", protection.shown_of(&string)?)?;
        let string_metatable = protection.shown_of(&string_metatable)?;
        let getmetatable = self.closure(base::getmetatable, (&string_metatable, &shown, &shown_metatable))?;
        globals.raw_set("getmetatable", getmetatable)?;
        let library = self.loading_table(&mut protection)?;

        let metatable = shown.metatable().ok_or_else(|| mlua::Error::runtime("globals without a metatable"))?;
        let references = self.references(globals, &metatable, &library)?;
        let mut side: State = std::ptr::null_mut();
        // SAFETY: the globals of the main thread are set before the other thread takes them over. That one is kept by a
        // reference.
        unsafe {
            lua.exec_raw::<()>(&shown, |main| {
                ffi::lua_replace(main, ffi::LUA_GLOBALSINDEX);
                shared::restore_collector(main, self.shared.as_ptr());
                side = ffi::lua_newthread(main);
                ffi::luaL_ref(main, ffi::LUA_REGISTRYINDEX);
            })?;
        }
        Ok((state, side, references))
    }

    fn references(&self, globals: &Table, globals_metatable: &Table, library: &Table) -> Result<References> {
        let lua = self.lua;
        let mut upvalues = vec![
            Value::Table(globals.clone()),
            Value::String(lua.create_string("KEYS")?),
            Value::String(lua.create_string("ARGV")?),
        ];
        for field in to_reply::FIELDS {
            upvalues.push(Value::String(lua.create_string(field)?));
        }
        let upvalues: mlua::MultiValue = upvalues.into_iter().collect();
        // The names of texts are kept alive as upvalues: the compiler does not see to it.
        let script = lua.create_string("@user_script")?;
        let function = lua.create_string("@user_function")?;
        Ok(References {
            enter: reference(lua, self.closure(interpreter::enter, upvalues)?)?,
            note: reference(lua, self.closure(failure::note, ())?)?,
            compile: reference(lua, self.closure(interpreter::compile_script, script)?)?,
            collect: reference(lua, self.closure(interpreter::collect, ())?)?,
            load_library: reference(lua, self.closure(functions::load_library, function)?)?,
            globals: reference(lua, globals)?,
            loading: reference(lua, library)?,
            globals_metatable: reference(lua, globals_metatable)?,
        })
    }

    /// A function whose first upvalue is the engine's part; the others follow.
    fn closure<U: IntoLuaMulti>(&self, function: ffi::lua_CFunction, upvalues: U) -> Result<Function> {
        let shared: *mut c_void = self.shared.as_ptr().cast();
        // SAFETY: the values given are the only ones on the stack, and become the upvalues behind the first.
        unsafe {
            self.lua.exec_raw(upvalues, |state| {
                ffi::lua_pushlightuserdata(state, shared);
                ffi::lua_insert(state, 1);
                ffi::lua_pushcclosure(state, function, ffi::lua_gettop(state));
            })
        }
    }

    fn set(&self, table: &Table, functions: &[(&str, ffi::lua_CFunction)]) -> Result<()> {
        for (name, function) in functions {
            table.raw_set(*name, self.closure(*function, ())?)?;
        }
        Ok(())
    }

    fn replace_functions(&self, globals: &Table) -> Result<()> {
        let next = self.closure(base::next, ())?;
        globals.raw_set("pairs", self.closure(base::pairs, &next)?)?;
        globals.raw_set("next", next)?;
        self.set(
            globals,
            &[
                ("rawget", base::rawget),
                ("rawset", base::rawset),
                ("setmetatable", base::setmetatable),
                ("pcall", base::pcall),
                ("xpcall", base::xpcall),
                ("unpack", base::unpack),
                ("tonumber", base::tonumber),
                ("load", base::load),
                ("loadstring", base::loadstring),
                ("collectgarbage", base::collectgarbage),
                ("__redis__err__handler", failure::error_handler),
            ],
        )?;
        self.set(
            &globals.get("table")?,
            &[
                ("insert", tables::insert),
                ("remove", tables::remove),
                ("sort", tables::sort),
                ("concat", tables::concat),
            ],
        )?;
        self.set(&globals.get("coroutine")?, &[("resume", base::resume), ("wrap", base::wrap)])?;
        self.set(
            &globals.get("string")?,
            &[
                ("find", text::find),
                ("match", text::matching),
                ("gmatch", text::gmatch),
                ("gfind", text::gmatch),
                ("gsub", text::gsub),
                ("rep", text::rep),
            ],
        )?;
        self.set(&globals.get("math")?, &[("random", random::random), ("randomseed", random::randomseed)])
    }

    fn redis_table(&self, kind: Kind) -> Result<Table> {
        let redis = self.lua.create_table()?;
        self.set_log(&redis)?;
        self.set(
            &redis,
            &[
                ("call", call::call),
                ("pcall", call::pcall),
                ("acl_check_cmd", call::acl_check_cmd),
                ("error_reply", api::error_reply),
                ("status_reply", api::status_reply),
                ("sha1hex", api::sha1hex),
                ("setresp", api::setresp),
                ("set_repl", api::set_repl),
            ],
        )?;
        if kind == Kind::Scripts {
            self.set(
                &redis,
                &[
                    ("breakpoint", api::breakpoint),
                    ("debug", api::debug),
                    ("replicate_commands", api::replicate_commands),
                ],
            )?;
        }
        for (name, number) in api::REPLICATION {
            redis.raw_set(name, number)?;
        }
        Ok(redis)
    }

    /// What a table of the interface has in any case: the log and the version.
    fn set_log(&self, redis: &Table) -> Result<()> {
        self.set(redis, &[("log", api::log)])?;
        for (number, (name, _)) in api::LOG_LEVELS.iter().enumerate() {
            redis.raw_set(*name, number)?;
        }
        redis.raw_set("REDIS_VERSION", api::VERSION)?;
        redis.raw_set("REDIS_VERSION_NUM", api::VERSION_NUMBER)
    }

    /// All that the code of a library finds while it is loaded.
    fn loading_table(&self, protection: &mut Protection<'_>) -> Result<Table> {
        let lua = self.lua;
        let refuse_read = self.closure(base::refuse_read, ())?;
        let strict = lua.create_table()?;
        strict.raw_set("__index", refuse_read)?;
        let redis = lua.create_table()?;
        self.set_log(&redis)?;
        self.set(&redis, &[("register_function", functions::register_function)])?;
        redis.set_metatable(Some(strict.clone()))?;
        let library = lua.create_table()?;
        let redis = protection.shown_of(&redis)?;
        library.raw_set("redis", &redis)?;
        library.raw_set("server", &redis)?;
        library.set_metatable(Some(strict))?;
        Ok(library)
    }
}

/// Makes tables read-only: see [`base`].
struct Protection<'a> {
    setup: &'a Setup<'a>,
    /// The table behind, by the one that is shown.
    protected: &'a Table,
    /// The one that is shown, by the address of the table behind and by its own.
    made: HashMap<usize, Table>,
    refuse_write: Option<Function>,
}

impl Protection<'_> {
    /// The table that is shown for `table`. Those in it are replaced by what is shown for them.
    fn shown_of(&mut self, table: &Table) -> Result<Table> {
        let address = table.to_pointer() as usize;
        if let Some(shown) = self.made.get(&address) {
            return Ok(shown.clone());
        }
        let lua = self.setup.lua;
        let refuse_write = match &self.refuse_write {
            Some(function) => function.clone(),
            None => self.refuse_write.insert(self.setup.closure(base::refuse_write, ())?).clone(),
        };
        let metatable = lua.create_table()?;
        metatable.raw_set("__index", table)?;
        metatable.raw_set("__newindex", refuse_write)?;
        let shown = lua.create_table()?;
        shown.set_metatable(Some(metatable))?;
        self.protected.raw_set(&shown, table)?;
        self.made.insert(address, shown.clone());
        // What is shown is shown as it is.
        self.made.insert(shown.to_pointer() as usize, shown.clone());
        let mut inner = Vec::new();
        table.for_each::<Value, Value>(|key, value| {
            if let Value::Table(value) = value {
                inner.push((key, value));
            }
            Ok(())
        })?;
        for (key, value) in inner {
            table.raw_set(key, self.shown_of(&value)?)?;
        }
        Ok(shown)
    }
}
