//! Hash slots, as Redis Cluster defines them.

use crc::{CRC_16_XMODEM, Crc, Table};

/// CRC16/XMODEM, 16 bytes a step: most keys are one.
static CRC: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_XMODEM);

/// Number of hash slots.
pub const SLOTS: usize = 16_384;

/// The slot of a key: CRC16/XMODEM of its tag, or of the whole key where it has none.
#[inline]
pub fn key_slot(key: &[u8]) -> u16 {
    CRC.checksum(tag(key)) & (SLOTS as u16 - 1)
}

/// What lies between the first `{` and the next `}`, if that is not empty; else the key.
#[inline]
fn tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|&byte| byte == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|&byte| byte == b'}') {
        Some(length) if length > 0 => &rest[..length],
        _ => key,
    }
}

/// The slots that shard `shard` of `shards` owns: an even share, in order.
pub fn shard_slots(shard: usize, shards: usize) -> std::ops::RangeInclusive<u16> {
    let start = shard * SLOTS / shards;
    let end = (shard + 1) * SLOTS / shards;
    start as u16..=(end - 1) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis_cluster() {
        assert_eq!(key_slot(b"123456789"), 0x31c3);
        assert_eq!(key_slot(b"foo"), 12_182);
        assert_eq!(key_slot(b""), 0);
        assert_eq!(key_slot(b"{user1000}.following"), key_slot(b"{user1000}.followers"));
        assert_eq!(key_slot(b"foo{}{bar}"), CRC.checksum(b"foo{}{bar}") & 16_383);
        assert_eq!(key_slot(b"foo{{bar}}zap"), key_slot(b"{bar"));
        assert_eq!(key_slot(b"foo{bar}{zap}"), key_slot(b"bar"));
    }

    #[test]
    fn shards_share_all_slots_without_overlap() {
        for shards in 1..=64 {
            let mut next = 0u32;
            for shard in 0..shards {
                let slots = shard_slots(shard, shards);
                assert_eq!(u32::from(*slots.start()), next);
                next = u32::from(*slots.end()) + 1;
            }
            assert_eq!(next, SLOTS as u32);
        }
    }
}
