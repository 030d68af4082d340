//! Patterns of `SORT`: from an element to another key's value.

use crate::entry::Kind;
use crate::error::CommandError;
use crate::hash::Hash;
use crate::keys::Keys;
use crate::packed::Element;
use crate::slot::key_slot;

/// What `BY` and `GET` name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern<'a> {
    /// `#`: the element itself.
    Element,
    /// A pattern without `*`, which makes no key.
    Constant(&'a [u8]),
    /// `*` stands for the element.
    Key {
        /// What comes before it.
        before: &'a [u8],
        /// What comes after it.
        after: &'a [u8],
        /// The field, where the key is a hash: what follows `->`.
        field: Option<&'a [u8]>,
    },
}

impl<'a> Pattern<'a> {
    /// Reads a pattern.
    pub fn parse(pattern: &'a [u8]) -> Pattern<'a> {
        if pattern == b"#" {
            return Pattern::Element;
        }
        let Some(star) = pattern.iter().position(|&byte| byte == b'*') else { return Pattern::Constant(pattern) };
        let (before, rest) = (&pattern[..star], &pattern[star + 1..]);
        match rest.windows(2).position(|two| two == b"->") {
            // With nothing behind it, the arrow is part of the key.
            Some(arrow) if arrow + 2 < rest.len() => {
                Pattern::Key { before, after: &rest[..arrow], field: Some(&rest[arrow + 2..]) }
            }
            _ => Pattern::Key { before, after: rest, field: None },
        }
    }

    /// Whether it makes keys of elements.
    pub fn makes_keys(&self) -> bool {
        matches!(self, Pattern::Key { .. })
    }

    /// Whether every key that it makes is in the slot of `key`: it has its tag before the `*`.
    pub fn stays_in_slot_of(&self, key: &[u8]) -> bool {
        match self {
            Pattern::Element => true,
            Pattern::Constant(constant) => key_slot(constant) == key_slot(key),
            Pattern::Key { before, .. } => {
                let tagged = before.iter().position(|&byte| byte == b'{').and_then(|open| {
                    let length = before[open + 1..].iter().position(|&byte| byte == b'}')?;
                    (length > 0).then(|| &before[..open + length + 2])
                });
                tagged.is_some_and(|tagged| key_slot(tagged) == key_slot(key))
            }
        }
    }

    /// The value for `element`: of a string, or of a field of a hash. `scratch` is where the key is put together.
    ///
    /// # Errors
    /// [`CommandError::CROSS_SLOT`] for a key that another shard owns.
    pub fn look_up<'v>(
        &self,
        keys: &'v mut Keys,
        element: &'v [u8],
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Element<'v>>, CommandError> {
        let (before, after, field) = match *self {
            Pattern::Element => return Ok(Some(Element::Bytes(element))),
            Pattern::Constant(_) => return Ok(None),
            Pattern::Key { before, after, field } => (before, after, field),
        };
        scratch.clear();
        for part in [before, element, after] {
            scratch.extend_from_slice(part);
        }
        if !keys.owned_slots.contains(&key_slot(scratch)) {
            return Err(CommandError::CROSS_SLOT);
        }
        let now_ms = keys.now_ms();
        let Some(entry) = keys.find(scratch) else { return Ok(None) };
        Ok(match (entry.kind(), field) {
            (Kind::String, None) => Some(match entry.integer() {
                Some(value) => Element::Int(value),
                None => Element::Bytes(entry.payload()),
            }),
            (Kind::Hash, Some(field)) => Hash::of(entry, now_ms).get(field),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_taken_apart_as_redis_does() {
        let key = |before, after, field| Pattern::Key { before, after, field };
        assert_eq!(Pattern::parse(b"#"), Pattern::Element);
        assert_eq!(Pattern::parse(b"nosort"), Pattern::Constant(b"nosort"));
        assert_eq!(Pattern::parse(b"w_*"), key(b"w_", b"", None));
        assert_eq!(Pattern::parse(b"a*b*c"), key(b"a", b"b*c", None));
        assert_eq!(Pattern::parse(b"o_*x->f->g"), key(b"o_", b"x", Some(b"f->g")));
        assert_eq!(Pattern::parse(b"x:*->"), key(b"x:", b"->", None));
        assert_eq!(Pattern::parse(b"a->b*"), key(b"a->b", b"", None));
    }

    #[test]
    fn a_tag_before_the_star_keeps_keys_in_their_slot() {
        let stays = |pattern: &'static [u8], key: &[u8]| Pattern::parse(pattern).stays_in_slot_of(key);
        assert!(stays(b"#", b"list"));
        assert!(stays(b"{a}w*", b"{a}list"));
        assert!(stays(b"x{a}*{b}", b"a"));
        assert!(stays(b"list", b"{list}x"));
        assert!(!stays(b"{b}w*", b"{a}list"));
        assert!(!stays(b"w*{a}", b"{a}list"));
        assert!(!stays(b"{*}", b"a"));
        assert!(!stays(b"{}{a}*", b"a"));
        assert!(!stays(b"w*", b"list"));
    }
}
