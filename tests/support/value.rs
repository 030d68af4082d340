//! A reply, in every type of RESP2 and RESP3.

use std::fmt;

/// One reply. Doubles and big numbers keep the digits the server sent, so that tests compare those.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// `+`
    Simple(String),
    /// `-`, or `!` of RESP3
    Error(String),
    /// `:`
    Integer(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `$-1` of RESP2 and `_` of RESP3
    Null,
    /// `*-1` of RESP2
    NullArray,
    /// `*`
    Array(Vec<Value>),
    /// `#`
    Boolean(bool),
    /// `,`
    Double(String),
    /// `(`
    BigNumber(String),
    /// `=`: the three-letter format and the text
    Verbatim(String, Vec<u8>),
    /// `%`
    Map(Vec<(Value, Value)>),
    /// `~`
    Set(Vec<Value>),
    /// `>`
    Push(Vec<Value>),
}

impl Value {
    /// The integer of an integer reply.
    #[track_caller]
    pub fn integer(&self) -> i64 {
        match self {
            Value::Integer(integer) => *integer,
            other => panic!("an integer was expected, not {other:?}"),
        }
    }

    /// The bytes of a bulk, verbatim or simple string.
    #[track_caller]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Value::Bulk(bytes) | Value::Verbatim(_, bytes) => bytes,
            Value::Simple(text) => text.as_bytes(),
            other => panic!("a string was expected, not {other:?}"),
        }
    }

    /// The text of a bulk, verbatim or simple string.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.bytes()).expect("a reply in UTF-8")
    }

    /// The elements of an array, set or push.
    #[track_caller]
    pub fn elements(&self) -> &[Value] {
        match self {
            Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => elements,
            other => panic!("an array was expected, not {other:?}"),
        }
    }

    /// The text of an error reply.
    #[track_caller]
    pub fn error(&self) -> &str {
        match self {
            Value::Error(text) => text,
            other => panic!("an error was expected, not {other:?}"),
        }
    }

    /// Whether this is a null of either protocol, scalar or array.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null | Value::NullArray)
    }

    /// The value under `name` in a map, or in a flat array of names and values as RESP2 sends a map.
    #[track_caller]
    pub fn field(&self, name: &str) -> &Value {
        let found = match self {
            Value::Map(pairs) => pairs.iter().find(|(key, _)| key.text() == name).map(|(_, value)| value),
            other => other.elements().chunks(2).find(|pair| pair[0].text() == name).map(|pair| &pair[1]),
        };
        found.unwrap_or_else(|| panic!("no field {name} in {self:?}"))
    }

    /// The same reply with the elements of its outermost array, set or map in sorted order.
    pub fn sorted(mut self) -> Value {
        match &mut self {
            Value::Array(elements) | Value::Set(elements) => elements.sort(),
            Value::Map(pairs) => pairs.sort(),
            _ => {}
        }
        self
    }

    /// The same reply with the pairs of a flat array in sorted order.
    pub fn sorted_pairs(self) -> Value {
        match self {
            Value::Array(elements) if elements.len().is_multiple_of(2) => {
                let mut pairs: Vec<Vec<Value>> = elements.chunks(2).map(<[Value]>::to_vec).collect();
                pairs.sort();
                Value::Array(pairs.concat())
            }
            other => other.sorted(),
        }
    }
}

/// Writes the notation that scripts use (see `notation.rs`).
impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Simple(text) => write!(formatter, "+{text}"),
            Value::Error(text) => write!(formatter, "-{text}"),
            Value::Integer(integer) => write!(formatter, ":{integer}"),
            Value::Bulk(bytes) => write!(formatter, "\"{}\"", bytes.escape_ascii()),
            Value::Null => write!(formatter, "nil"),
            Value::NullArray => write!(formatter, "nil-array"),
            Value::Boolean(truth) => write!(formatter, "{}", if *truth { "#t" } else { "#f" }),
            Value::Double(digits) => write!(formatter, ",{digits}"),
            Value::BigNumber(digits) => write!(formatter, "({digits}"),
            Value::Verbatim(format, text) => write!(formatter, "={format}:\"{}\"", text.escape_ascii()),
            Value::Array(elements) => write_elements(formatter, "[", elements, "]"),
            Value::Set(elements) => write_elements(formatter, "~[", elements, "]"),
            Value::Push(elements) => write_elements(formatter, ">[", elements, "]"),
            Value::Map(pairs) => {
                let flat: Vec<&Value> = pairs.iter().flat_map(|(key, value)| [key, value]).collect();
                write_elements(formatter, "%[", &flat, "]")
            }
        }
    }
}

fn write_elements<V: fmt::Debug>(
    formatter: &mut fmt::Formatter<'_>,
    open: &str,
    elements: &[V],
    close: &str,
) -> fmt::Result {
    formatter.write_str(open)?;
    for (index, element) in elements.iter().enumerate() {
        let space = if index == 0 { "" } else { " " };
        write!(formatter, "{space}{element:?}")?;
    }
    formatter.write_str(close)
}
