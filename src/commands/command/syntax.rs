//! Reads the notation of a command's syntax into the arguments that `COMMAND DOCS` describes.
//!
//! `[…]` is optional, `<… | …>` a choice, `name [name ...]` repeats, and words in capitals are tokens, which stand for
//! themselves and announce what follows them.

/// What an argument is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value.
    Value,
    /// A token that stands alone.
    PureToken,
    /// One of these.
    OneOf(Vec<Argument>),
    /// All of these, in order.
    Block(Vec<Argument>),
}

/// An argument of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The token before it, or the token itself; empty for none.
    pub token: String,
    /// Whether it may be left out.
    pub optional: bool,
    /// Whether it may come several times.
    pub multiple: bool,
    /// Whether each time has its token.
    pub multiple_token: bool,
    /// Its notation, without brackets around it.
    source: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Word(String),
    Repeat,
    Optional(Vec<Vec<Node>>),
    Choice(Vec<Vec<Node>>),
}

/// The arguments of a syntax.
pub fn parse(syntax: &str) -> Vec<Argument> {
    let spaced: String =
        syntax.chars().flat_map(|c| if "[]<>|".contains(c) { vec![' ', c, ' '] } else { vec![c] }).collect();
    let mut words = spaced.split_whitespace();
    let alternatives = read(&mut words);
    match alternatives.as_slice() {
        [sequence] => arguments(sequence),
        _ => vec![choice(&alternatives)],
    }
}

/// Reads alternatives up to the closing bracket.
fn read<'a>(words: &mut impl Iterator<Item = &'a str>) -> Vec<Vec<Node>> {
    let mut alternatives = vec![Vec::new()];
    while let Some(word) = words.next() {
        let node = match word {
            "]" | ">" => break,
            "|" => {
                alternatives.push(Vec::new());
                continue;
            }
            "[" => Node::Optional(read(words)),
            "<" => Node::Choice(read(words)),
            "..." => Node::Repeat,
            _ => Node::Word(word.to_owned()),
        };
        if let Some(sequence) = alternatives.last_mut() {
            sequence.push(node);
        }
    }
    alternatives
}

fn is_token(word: &str) -> bool {
    !word.contains(|c: char| c.is_ascii_lowercase())
}

fn token_of(node: &Node) -> Option<&str> {
    match node {
        Node::Word(word) if is_token(word) => Some(word),
        Node::Optional(alternatives) => match alternatives.as_slice() {
            [sequence] => sequence.first().and_then(token_of),
            _ => None,
        },
        _ => None,
    }
}

/// The notation of a sequence.
fn source(sequence: &[Node]) -> String {
    let several = |alternatives: &[Vec<Node>]| {
        alternatives.iter().map(|sequence| source(sequence)).collect::<Vec<_>>().join(" | ")
    };
    let parts: Vec<String> = sequence
        .iter()
        .map(|node| match node {
            Node::Word(word) => word.clone(),
            Node::Repeat => "...".into(),
            Node::Optional(alternatives) => format!("[{}]", several(alternatives)),
            Node::Choice(alternatives) => format!("<{}>", several(alternatives)),
        })
        .collect();
    parts.join(" ")
}

fn joined_sources(arguments: &[Argument]) -> String {
    arguments.iter().map(|argument| argument.source.as_str()).collect::<Vec<_>>().join(" ")
}

fn plain(name: &str, kind: Kind, source: String) -> Argument {
    Argument {
        name: name.to_ascii_lowercase().replace('_', "-"),
        kind,
        token: String::new(),
        optional: false,
        multiple: false,
        multiple_token: false,
        source,
    }
}

fn named_after(parts: &[Argument], between: &str) -> String {
    parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>().join(between)
}

/// One argument for all of `parts`.
fn block(mut parts: Vec<Argument>) -> Argument {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let (name, source) = (named_after(&parts, "-"), joined_sources(&parts));
    plain(&name, Kind::Block(parts), source)
}

/// One argument for the choice between `alternatives`.
fn choice(alternatives: &[Vec<Node>]) -> Argument {
    let mut parts: Vec<Argument> = alternatives.iter().map(|sequence| block(arguments(sequence))).collect();
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let name = named_after(&parts, "-or-");
    let source = parts.iter().map(|part| part.source.as_str()).collect::<Vec<_>>().join(" | ");
    plain(&name, Kind::OneOf(parts), format!("<{source}>"))
}

/// The arguments of a sequence.
fn arguments(sequence: &[Node]) -> Vec<Argument> {
    let mut read: Vec<Argument> = Vec::new();
    let mut index = 0;
    while let Some(node) = sequence.get(index) {
        index += 1;
        match node {
            Node::Repeat => {
                if let Some(last) = read.last_mut() {
                    last.multiple = true;
                }
            }
            Node::Choice(alternatives) => read.push(choice(alternatives)),
            Node::Optional(alternatives) => {
                if !repeats(alternatives, &mut read) {
                    read.push(Argument { optional: true, ..choice(alternatives) });
                }
            }
            Node::Word(word) if is_token(word) => {
                // What follows up to the next token belongs to this one.
                let end = sequence[index..].iter().position(|next| token_of(next).is_some_and(|token| token != word));
                let end = end.map_or(sequence.len(), |end| index + end);
                read.push(announced(word, &sequence[index..end]));
                index = end;
            }
            Node::Word(word) => read.push(plain(word, Kind::Value, word.clone())),
        }
    }
    read
}

/// The argument that `token` announces.
fn announced(token: &str, rest: &[Node]) -> Argument {
    let (rest, multiple_token) = match rest.split_last() {
        Some((Node::Optional(alternatives), values))
            if is_repetition(alternatives, &format!("{token} {}", source(values))) =>
        {
            (values, true)
        }
        _ => (rest, false),
    };
    let parts = arguments(rest);
    let text = [token, &source(rest)].join(" ").trim_end().to_owned();
    let argument = if parts.is_empty() { plain(token, Kind::PureToken, String::new()) } else { block(parts) };
    let multiple = argument.multiple || multiple_token;
    Argument { token: token.to_owned(), source: text, multiple, multiple_token, ..argument }
}

/// Whether an optional part says that `repeated` may come again.
fn is_repetition(alternatives: &[Vec<Node>], repeated: &str) -> bool {
    match alternatives {
        [sequence] => matches!(sequence.split_last(), Some((Node::Repeat, again)) if source(again) == repeated),
        _ => false,
    }
}

/// Notes that the latest arguments repeat, where the optional part says so.
fn repeats(alternatives: &[Vec<Node>], read: &mut Vec<Argument>) -> bool {
    for start in (0..read.len()).rev() {
        if is_repetition(alternatives, &joined_sources(&read[start..])) {
            let parts = read.split_off(start);
            read.push(Argument { multiple: true, ..block(parts) });
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows arguments in one line, with the structure that the notation stands for.
    fn show(arguments: &[Argument]) -> String {
        let parts: Vec<String> = arguments
            .iter()
            .map(|argument| {
                let inner = match &argument.kind {
                    Kind::Value => argument.name.clone(),
                    Kind::PureToken => String::new(),
                    Kind::OneOf(parts) => format!("one({})", show(parts)),
                    Kind::Block(parts) => format!("all({})", show(parts)),
                };
                let mut text = [argument.token.as_str(), &inner].join(" ").trim().to_owned();
                for (set, mark) in [(argument.multiple, "+"), (argument.multiple_token, "+"), (argument.optional, "?")]
                {
                    if set {
                        text.push_str(mark);
                    }
                }
                text
            })
            .collect();
        parts.join(", ")
    }

    #[test]
    fn notation_is_read_into_arguments() {
        for (syntax, expected) in [
            ("", ""),
            ("key", "key"),
            ("key [key ...]", "key+"),
            ("key value [key value ...]", "all(key, value)+"),
            ("[message]", "message?"),
            ("[section [section ...]]", "section+?"),
            ("key [NX | XX] [GET]", "key, one(NX, XX)?, GET?"),
            (
                "key value [EX seconds | PX milliseconds | KEEPTTL]",
                "key, value, one(EX seconds, PX milliseconds, KEEPTTL)?",
            ),
            ("key <BEFORE | AFTER> pivot element", "key, one(BEFORE, AFTER), pivot, element"),
            ("numkeys key [key ...] <LEFT | RIGHT> [COUNT count]", "numkeys, key+, one(LEFT, RIGHT), COUNT count?"),
            ("key [LIMIT offset count]", "key, LIMIT all(offset, count)?"),
            ("key [BY pattern] [GET pattern [GET pattern ...]]", "key, BY pattern?, GET pattern++?"),
            ("key [WEIGHTS weight [weight ...]]", "key, WEIGHTS weight+?"),
            (
                "key seconds [NX | XX] FIELDS numfields field [field ...]",
                "key, seconds, one(NX, XX)?, FIELDS all(numfields, field+)",
            ),
            ("key score member [score member ...]", "key, all(score, member)+"),
            ("[FILTERBY <MODULE name | PATTERN pattern>]", "FILTERBY one(MODULE name, PATTERN pattern)?"),
            (
                "key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM> | BYBOX w h>",
                "key, one(FROMMEMBER member, FROMLONLAT all(longitude, latitude)), \
                 one(BYRADIUS all(radius, one(M, KM)), BYBOX all(w, h))",
            ),
        ] {
            assert_eq!(show(&parse(syntax)), expected, "{syntax}");
        }
    }
}
