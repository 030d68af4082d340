//! An image of a shard: whatever its blocks hold, reading them ends in a refusal or in entries, and what was read makes an
//! image from which the same is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ruvio_shard::image::{Block, Blocks, Image};
use ruvio_shard::keys::{Keys, Walk};
use ruvio_shard::log::{HEADER_BYTES, Refusal};
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

#[path = "stored/empty.rs"]
mod empty;
#[path = "stored/sealed.rs"]
mod sealed;

use empty::{empty_shard, give_back};
use sealed::{HEADER, sealed};

/// Bits of an input's first byte: the rest is a whole file; collections are converted early.
const RAW: u8 = 1;
const EARLY: u8 = 2;

/// Reads an image as far as it can be; whether that was to its end.
fn read(file: &[u8], keys: &mut Keys) -> Result<(), Refusal> {
    let header = file.first_chunk::<HEADER_BYTES>().ok_or("no header")?;
    let mut blocks = Blocks::open(header)?;
    let mut rest = &file[HEADER_BYTES..];
    keys.begin(0, i64::MIN, None);
    loop {
        assert_eq!(blocks.offset() as usize, file.len() - rest.len());
        let head = rest.first_chunk::<{ Blocks::HEAD_BYTES }>().ok_or("no head")?;
        let len = Blocks::HEAD_BYTES + Blocks::body_bytes(head)?;
        let (block, behind) = rest.split_at_checked(len).ok_or("no body")?;
        rest = behind;
        if blocks.add(block, keys)? == Block::End {
            return Ok(());
        }
    }
}

fn save(keys: &Keys) -> Vec<u8> {
    let (mut image, mut walk) = (Image::new(&HEADER), Walk::default());
    while keys.next_slot_of(&mut walk).is_some() {
        keys.save_some(&mut walk, &mut image);
    }
    image.end();
    image.take().1
}

fuzz_target!(|data: &[u8]| {
    let Some((&flags, rest)) = data.split_first() else { return };
    let early = Settings {
        hash_max_listpack_entries: 2,
        set_max_intset_entries: 2,
        set_max_listpack_entries: 2,
        zset_max_listpack_entries: 2,
        list_max_listpack_size: 2,
        ..Settings::default()
    };
    let settings = if flags & EARLY != 0 { early } else { Settings::default() };
    let mut shard = empty_shard(&settings);
    let file = if flags & RAW != 0 {
        rest.to_vec()
    } else {
        let mut file = save(&shard.keys)[..HEADER_BYTES].to_vec();
        sealed(rest, HEADER_BYTES as u64, &mut file);
        file
    };
    // What was read before a refusal is good for the rest, too.
    let _ = read(&file, &mut shard.keys);
    let saved = save(&shard.keys);
    let mut again = empty_shard(&settings);
    assert_eq!(read(&saved, &mut again.keys), Ok(()), "what was saved is read");
    let count = |shard: &Shard| shard.keys.databases().iter().map(|database| database.len()).collect::<Vec<_>>();
    assert_eq!(count(&shard), count(&again));
    give_back(shard);
    give_back(again);
});
