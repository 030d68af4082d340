//! The first line of a script or of a library of functions: `#!lua name=… flags=…`.

use crate::args::{ArgRange, Args};
use crate::error::CommandError;
use crate::words;

/// What a script or function says of itself, so that the server knows when it may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptFlags(u8);

impl ScriptFlags {
    /// It writes nothing, so it may run where writing is refused.
    pub const NO_WRITES: ScriptFlags = ScriptFlags(1);
    /// It may run when memory is at its limit.
    pub const ALLOW_OOM: ScriptFlags = ScriptFlags(2);
    /// It may run on a replica whose data is stale.
    pub const ALLOW_STALE: ScriptFlags = ScriptFlags(4);
    /// It must not run in a cluster.
    pub const NO_CLUSTER: ScriptFlags = ScriptFlags(8);
    /// It may touch keys of several slots.
    pub const ALLOW_CROSS_SLOT_KEYS: ScriptFlags = ScriptFlags(16);

    const NAMES: [(ScriptFlags, &'static str); 5] = [
        (Self::NO_WRITES, "no-writes"),
        (Self::ALLOW_OOM, "allow-oom"),
        (Self::ALLOW_STALE, "allow-stale"),
        (Self::NO_CLUSTER, "no-cluster"),
        (Self::ALLOW_CROSS_SLOT_KEYS, "allow-cross-slot-keys"),
    ];

    /// Whether all of `flags` are set.
    pub fn contains(self, flags: ScriptFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Sets `flags` too.
    pub fn insert(&mut self, flags: ScriptFlags) {
        self.0 |= flags.0;
    }

    /// The names of the flags that are set, as they are written in a header.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| name)
    }

    /// The flag of that name, written exactly so.
    pub fn named(name: &[u8]) -> Option<ScriptFlags> {
        Self::NAMES.into_iter().find(|(_, known)| known.as_bytes() == name).map(|(flag, _)| flag)
    }

    /// The flag of that name, in any case: so they are read where functions are registered.
    pub fn named_in_any_case(name: &[u8]) -> Option<ScriptFlags> {
        Self::NAMES.into_iter().find(|(_, known)| known.as_bytes().eq_ignore_ascii_case(name)).map(|(flag, _)| flag)
    }
}

/// What the first line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The library's name; scripts have none.
    pub name: Option<String>,
    /// A script's flags; those of functions are given where they are registered.
    pub flags: ScriptFlags,
    /// Whether there is such a line at all. A script without one follows older rules: what it may do is found out while
    /// it runs.
    pub is_shebang: bool,
    /// Where the code starts: at the line break that ends the header, so that line numbers stay what they are.
    pub body_start: usize,
}

/// Reads the header of a script.
pub fn header(body: &[u8]) -> Result<Header, CommandError> {
    if !body.starts_with(b"#!") {
        return Ok(Header::default());
    }
    let Some(body_start) = body.iter().position(|byte| *byte == b'\n') else {
        return Err(CommandError::new("ERR Invalid script shebang"));
    };
    let invalid = || CommandError::new("ERR Invalid engine in script shebang");
    let (mut out, mut ranges) = Default::default();
    let words = first_line(&body[..body_start], &mut out, &mut ranges).ok_or_else(invalid)?;
    let engine = words.get(0).ok_or_else(invalid)?;
    if engine != b"#!lua" {
        return Err(with_word("ERR Unexpected engine in script shebang: ", engine));
    }
    let mut flags = ScriptFlags::default();
    for option in words.from(1).iter() {
        let Some(names) = option.strip_prefix(b"flags=") else {
            return Err(with_word("ERR Unknown lua shebang option: ", option));
        };
        if names.is_empty() {
            continue;
        }
        for name in names.split(|byte| *byte == b',') {
            let flag = ScriptFlags::named(name);
            flags.insert(flag.ok_or_else(|| with_word("ERR Unexpected flag in script shebang: ", name))?);
        }
    }
    Ok(Header { name: None, flags, is_shebang: true, body_start })
}

/// Reads the header of a library of functions. The name is checked, the engine too.
pub fn library_header(code: &[u8]) -> Result<Header, CommandError> {
    if !code.starts_with(b"#!") {
        return Err(CommandError::new("ERR Missing library metadata"));
    }
    let invalid = || CommandError::new("ERR Invalid library metadata");
    let body_start = code.iter().position(|byte| *byte == b'\n').ok_or_else(invalid)?;
    let (mut out, mut ranges) = Default::default();
    let words = first_line(&code[..body_start], &mut out, &mut ranges).ok_or_else(invalid)?;
    let engine = words.get(0).and_then(|word| word.strip_prefix(b"#!")).ok_or_else(invalid)?;
    let mut name = None;
    for option in words.from(1).iter() {
        match option.split_at_checked(5) {
            Some((key, value)) if key.eq_ignore_ascii_case(b"name=") => {
                if name.replace(value).is_some() {
                    let error = "ERR Invalid metadata value, name argument was given multiple times";
                    return Err(CommandError::new(error));
                }
            }
            _ => return Err(with_word("ERR Invalid metadata value given: ", option)),
        }
    }
    let name = name.ok_or_else(|| CommandError::new("ERR Library name was not given"))?;
    let name = checked_name(name)?;
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(CommandError::new(format!("ERR Engine '{}' not found", String::from_utf8_lossy(engine))));
    }
    Ok(Header { name: Some(name), flags: ScriptFlags::default(), is_shebang: true, body_start })
}

/// The name of a library or function, if it may be one.
pub(super) fn checked_name(name: &[u8]) -> Result<String, CommandError> {
    const ERROR: &str = "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";
    let is_valid = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if !is_valid {
        return Err(CommandError::new(ERROR));
    }
    Ok(name.iter().map(|byte| char::from(*byte)).collect())
}

/// The words of the first line; none when their quotes are unbalanced.
fn first_line<'a>(line: &[u8], out: &'a mut Vec<u8>, ranges: &'a mut Vec<ArgRange>) -> Option<Args<'a>> {
    words::split(line, out, ranges).then(|| Args::new(out, ranges))
}

fn with_word(text: &str, word: &[u8]) -> CommandError {
    CommandError::new(format!("{text}{}", String::from_utf8_lossy(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script_error(body: &str) -> String {
        header(body.as_bytes()).expect_err(body).text().to_owned()
    }

    fn library_error(code: &str) -> String {
        library_header(code.as_bytes()).expect_err(code).text().to_owned()
    }

    #[test]
    fn a_script_needs_no_header() {
        assert_eq!(header(b"return 1"), Ok(Header::default()));
        assert_eq!(header(b""), Ok(Header::default()));
    }

    #[test]
    fn flags_are_read_and_the_line_break_stays() {
        let read = header(b"#!lua \"flags=no-writes,allow-oom\" flags=allow-cross-slot-keys\nreturn 1").expect("valid");
        assert!(read.is_shebang && read.flags.contains(ScriptFlags::NO_WRITES));
        assert_eq!(read.flags.names().collect::<Vec<_>>(), ["no-writes", "allow-oom", "allow-cross-slot-keys"]);
        assert_eq!(read.body_start, 61);
        assert_eq!(header(b"#!lua flags=\r\n").expect("valid").flags, ScriptFlags::default());
    }

    #[test]
    fn wrong_script_headers_are_refused_in_the_words_of_redis() {
        assert_eq!(script_error("#!lua"), "ERR Invalid script shebang");
        assert_eq!(script_error("#!lua \"a\n"), "ERR Invalid engine in script shebang");
        assert_eq!(script_error("#! lua\n"), "ERR Unexpected engine in script shebang: #!");
        assert_eq!(script_error("#!Lua\n"), "ERR Unexpected engine in script shebang: #!Lua");
        assert_eq!(script_error("#!lua name=x\n"), "ERR Unknown lua shebang option: name=x");
        assert_eq!(script_error("#!lua FLAGS=a\n"), "ERR Unknown lua shebang option: FLAGS=a");
        assert_eq!(script_error("#!lua flags=a\n"), "ERR Unexpected flag in script shebang: a");
        assert_eq!(script_error("#!lua flags=no-writes,\n"), "ERR Unexpected flag in script shebang: ");
        assert_eq!(script_error("#!lua flags=No-Writes\n"), "ERR Unexpected flag in script shebang: No-Writes");
    }

    #[test]
    fn a_library_says_its_name() {
        let read = library_header(b"#!Lua NAME=my_lib1\ncode").expect("valid");
        assert_eq!((read.name.as_deref(), read.body_start), (Some("my_lib1"), 18));
    }

    #[test]
    fn wrong_library_headers_are_refused_in_the_words_of_redis() {
        assert_eq!(library_error("x"), "ERR Missing library metadata");
        assert_eq!(library_error("#!lua name=x"), "ERR Invalid library metadata");
        assert_eq!(library_error("#!lua \"name=x\n"), "ERR Invalid library metadata");
        assert_eq!(library_error("#!lua\n"), "ERR Library name was not given");
        assert_eq!(library_error("#! lua name=x\n"), "ERR Invalid metadata value given: lua");
        assert_eq!(library_error("#!lua name=x nam\n"), "ERR Invalid metadata value given: nam");
        assert_eq!(
            library_error("#!lua name=x name=y\n"),
            "ERR Invalid metadata value, name argument was given multiple times"
        );
        assert_eq!(library_error("#!foo name=x\n"), "ERR Engine 'foo' not found");
        for name in ["", "a-b", "é"] {
            assert!(library_error(&format!("#!lua name={name}\n")).starts_with("ERR Library names can only contain"));
        }
    }
}
