//! Glob patterns, as `KEYS`, `SCAN … MATCH` and `PSUBSCRIBE` take them.
//!
//! `*` stands for any bytes, `?` for one, `[…]` for one of a class (with `^` first: one outside of it; `a-z` is a range)
//! and `\` takes the meaning from the byte behind it. Patterns that are cut short have a meaning too: an open class ends
//! with the pattern, and a `\` at the end is a byte like any other. An empty string matches nothing but an empty pattern.

/// A pattern with more stars apart than this matches nothing, as in Redis; a star at its end is not counted.
const MAX_STARS: u32 = 1000;

/// Whether the whole of `text` matches `pattern`.
///
/// Takes time in proportion to the product of both lengths at most, whatever the pattern: where a match fails, only the
/// last `*` is tried again, which is enough since it can take up what any earlier one could.
#[inline]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_folded::<false>(pattern, text)
}

/// The same, where upper and lower case of ASCII letters are equal.
#[inline]
pub fn matches_ignoring_case(pattern: &[u8], text: &[u8]) -> bool {
    matches_folded::<true>(pattern, text)
}

fn matches_folded<const IGNORE_CASE: bool>(pattern: &[u8], text: &[u8]) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut rest, mut left) = (pattern, text);
    // `left` is never empty where the loop begins. For the last `*`: the pattern behind it, and where in the text that
    // pattern was last tried.
    let mut retry: Option<(&[u8], &[u8])> = None;
    let mut stars = 0;
    loop {
        if let [b'*', behind @ ..] = rest {
            if behind.is_empty() {
                return true;
            }
            rest = behind;
            if behind.starts_with(b"*") {
                continue;
            }
            stars += 1;
            if stars > MAX_STARS {
                return false;
            }
            retry = Some((behind, left));
            continue;
        }
        if let [byte, following @ ..] = left
            && let Some((true, behind)) = match_one::<IGNORE_CASE>(rest, *byte)
        {
            (rest, left) = (behind, following);
            if !left.is_empty() {
                continue;
            }
            if rest.iter().all(|&byte| byte == b'*') {
                return true;
            }
        }
        let Some((behind, [_, following @ ..])) = retry else { return false };
        if following.is_empty() {
            return false;
        }
        retry = Some((behind, following));
        (rest, left) = (behind, following);
    }
}

/// Matches one byte against the pattern's beginning, which is no `*`: whether it matches, and the pattern behind. `None`
/// at the pattern's end.
#[inline]
fn match_one<const IGNORE_CASE: bool>(pattern: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (&first, behind) = pattern.split_first()?;
    Some(match (first, behind) {
        (b'?', _) => (true, behind),
        (b'[', _) => match_class::<IGNORE_CASE>(behind, byte),
        (b'\\', [escaped, behind @ ..]) => (fold::<IGNORE_CASE>(*escaped) == fold::<IGNORE_CASE>(byte), behind),
        _ => (fold::<IGNORE_CASE>(first) == fold::<IGNORE_CASE>(byte), behind),
    })
}

/// Matches one byte against the class whose `[` lies before `class`.
fn match_class<const IGNORE_CASE: bool>(class: &[u8], byte: u8) -> (bool, &[u8]) {
    let byte = fold::<IGNORE_CASE>(byte);
    let (negated, mut class) = match class {
        [b'^', behind @ ..] => (true, behind),
        _ => (false, class),
    };
    let mut found = false;
    loop {
        class = match class {
            [] => break,
            [b'\\', escaped, behind @ ..] => {
                found |= *escaped == byte;
                behind
            }
            [b']', behind @ ..] => {
                class = behind;
                break;
            }
            [from, b'-', to, behind @ ..] => {
                let (from, to) = (fold::<IGNORE_CASE>(*from), fold::<IGNORE_CASE>(*to));
                found |= (from.min(to)..=from.max(to)).contains(&byte);
                behind
            }
            [single, behind @ ..] => {
                found |= fold::<IGNORE_CASE>(*single) == byte;
                behind
            }
        };
    }
    (found != negated, class)
}

#[inline]
fn fold<const IGNORE_CASE: bool>(byte: u8) -> u8 {
    if IGNORE_CASE { byte.to_ascii_lowercase() } else { byte }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pattern_with_too_many_stars_matches_nothing() {
        let text = vec![b'a'; 2000];
        assert!(matches(&b"*a".repeat(MAX_STARS as usize), &text));
        assert!(matches(&[b"*a".repeat(MAX_STARS as usize), b"**".to_vec()].concat(), &text));
        assert!(!matches(&b"*a".repeat(MAX_STARS as usize + 1), &text));
        assert!(matches(&[b"*".repeat(MAX_STARS as usize + 2), b"a".to_vec()].concat(), &text));
    }

    #[test]
    fn real_patterns_match_as_the_reference_server_has_them() {
        let yes: [(&str, &str); 24] = [
            ("", ""),
            ("*", "x"),
            ("h?llo", "hello"),
            ("h*llo", "heeello"),
            ("h*llo", "hllo"),
            ("a**", "a"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-c]llo", "hbllo"),
            ("h[c-a]llo", "hbllo"),
            ("[a-]", "]"),
            ("[abc", "b"),
            ("[^", "a"),
            ("[^]", "a"),
            ("[\\]]", "]"),
            ("[\\", "\\"),
            ("\\*", "*"),
            ("\\a", "a"),
            ("a\\", "a\\"),
            ("*\\", "a\\"),
            ("*b*d", "abcbd"),
            ("user:*:[0-9]", "user:7:name:5"),
            ("**a*?", "bab"),
            ("[a-z]*", "key"),
        ];
        let no: [(&str, &str); 14] = [
            ("*", ""),
            ("**", ""),
            ("", "x"),
            ("?", ""),
            ("h?llo", "hllo"),
            ("h[^e]llo", "hello"),
            ("[]", "]"),
            ("[", "["),
            ("\\*", "a"),
            ("*b", "abc"),
            ("a*", "ba"),
            ("ABC", "abc"),
            ("*?", ""),
            ("a*b*c", "acb"),
        ];
        for (pattern, text) in yes {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in no {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn case_is_ignored_only_where_asked() {
        for pattern in ["MaxMemory*", "maxmemory-[P]olicy", "[M-m]axmemory*", "\\Maxmemory?POLICY"] {
            assert!(matches_ignoring_case(pattern.as_bytes(), b"maxmemory-policy"), "{pattern}");
            assert!(!matches(b"MAX*", b"maxmemory-policy"));
        }
    }

    #[test]
    fn patterns_of_many_stars_take_bounded_time() {
        let pattern = b"a*".repeat(900);
        let text = b"a".repeat(20_000);
        assert!(matches(&pattern, &text));
        let mut unmatched = pattern.clone();
        unmatched.push(b'b');
        assert!(!matches(&unmatched, &text));
    }

    /// The definition: a star stands for any bytes, tried from none on.
    fn defined(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', behind @ ..], []) => defined(behind, text),
            ([b'*', behind @ ..], [_, following @ ..]) => defined(behind, text) || defined(pattern, following),
            (_, []) => false,
            (_, [byte, following @ ..]) => {
                matches!(match_one::<false>(pattern, *byte), Some((true, behind)) if defined(behind, following))
            }
        }
    }

    proptest! {
        #[test]
        fn the_last_star_is_enough(
            pattern in prop::collection::vec(prop::sample::select(b"ab*?[]^-\\".to_vec()), 0..10),
            text in prop::collection::vec(prop::sample::select(b"ab]".to_vec()), 1..10),
        ) {
            prop_assert_eq!(matches(&pattern, &text), defined(&pattern, &text));
        }
    }
}
