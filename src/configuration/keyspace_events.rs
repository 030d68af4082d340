//! `notify-keyspace-events`: which keyspace events are published, and on which channels.

use ruvio_shard::changes::Observed;
use ruvio_shard::events::Class;

/// The letters, in the order in which they are shown; the bit of a letter is its place.
const LETTERS: &[u8] = b"g$lshzxetdnKEm";

/// How many of the letters `A` stands for: all classes but new keys and misses.
const IN_ALL: usize = 10;

const fn bit(letter: u8) -> u16 {
    let mut place = 0;
    while LETTERS[place] != letter {
        place += 1;
    }
    1 << place
}

const ALL: u16 = (1 << IN_ALL) - 1;

/// The letters given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceEvents(u16);

impl KeyspaceEvents {
    /// Reads Redis's notation; `None` when a letter means nothing.
    pub fn parse(value: &[u8]) -> Option<KeyspaceEvents> {
        value.iter().try_fold(KeyspaceEvents::default(), |events, &letter| match letter {
            b'A' => Some(KeyspaceEvents(events.0 | ALL)),
            _ => LETTERS.contains(&letter).then(|| KeyspaceEvents(events.0 | bit(letter))),
        })
    }

    /// The letters as Redis shows them: where `A` stands for the classes, new keys go unnamed.
    pub fn show(self) -> String {
        let (mut shown, rest) = if self.0 & ALL == ALL { ("A".to_owned(), IN_ALL + 1) } else { (String::new(), 0) };
        for &letter in &LETTERS[rest..] {
            if self.0 & bit(letter) != 0 {
                shown.push(letter.into());
            }
        }
        shown
    }

    /// Whether events are published on the channel of their key.
    pub fn by_key(self) -> bool {
        self.0 & bit(b'K') != 0
    }

    /// Whether events are published on the channel of their name.
    pub fn by_event(self) -> bool {
        self.0 & bit(b'E') != 0
    }

    /// Whether events of a class are published.
    pub fn includes(self, class: Class) -> bool {
        let letter = match class {
            Class::Generic | Class::Limit => b'g',
            Class::String => b'$',
            Class::List => b'l',
            Class::Set => b's',
            Class::Hash => b'h',
            Class::SortedSet => b'z',
            Class::Expired => b'x',
            Class::Evicted => b'e',
            Class::Miss => b'm',
            Class::New => b'n',
        };
        self.0 & bit(letter) != 0
    }

    /// What a shard must note for it.
    pub fn observed(self) -> Observed {
        let published = self.by_key() || self.by_event();
        Observed {
            changes: published && self.0 & ALL != 0,
            new_keys: published && self.includes(Class::New),
            misses: published && self.includes(Class::Miss),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_and_shown_as_redis_does() {
        for (value, shown) in [
            ("", ""),
            ("KEA", "AKE"),
            ("KEAm", "AKEm"),
            ("E$lshzxegtdmn", "AEm"),
            ("nA", "A"),
            ("Kg$lshzxet", "g$lshzxetK"),
            ("$lshzxeKE", "$lshzxeKE"),
            ("nmKE", "nKEm"),
        ] {
            assert_eq!(KeyspaceEvents::parse(value.as_bytes()).map(KeyspaceEvents::show).as_deref(), Some(shown));
        }
        assert_eq!(KeyspaceEvents::parse(b"Kxq"), None);
    }

    #[test]
    fn only_what_is_published_is_noted() {
        let observed = |value: &[u8]| KeyspaceEvents::parse(value).expect("valid").observed();
        assert_eq!(observed(b"Amn"), Observed::default());
        assert_eq!(observed(b"KA"), Observed { changes: true, ..Observed::default() });
        assert_eq!(observed(b"En"), Observed { new_keys: true, ..Observed::default() });
        assert_eq!(observed(b"EKm"), Observed { misses: true, ..Observed::default() });
        let all = KeyspaceEvents::parse(b"KEA").expect("valid");
        assert!(all.includes(Class::Limit) && all.includes(Class::Expired));
        assert!(!all.includes(Class::New) && !all.includes(Class::Miss));
    }
}
