//! What happens to keys, in the classes of Redis's keyspace notifications.

/// The class of a keyspace event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `g`: commands on keys of any type.
    Generic,
    /// `$`: strings.
    String,
    /// `l`: lists.
    List,
    /// `s`: sets.
    Set,
    /// `h`: hashes.
    Hash,
    /// `z`: sorted sets.
    SortedSet,
    /// `x`: expired.
    Expired,
    /// `e`: evicted.
    Evicted,
    /// `m`: a look-up that found nothing.
    Miss,
    /// `n`: a new key.
    New,
    /// Rate limits (Ruvio's own; `g` for those who filter).
    Limit,
}
