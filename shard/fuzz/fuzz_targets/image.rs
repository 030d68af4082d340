//! An image of a shard: whatever its blocks hold, reading them ends in a refusal or in entries, and what was read makes an
//! image from which the same is read again; and of a large collection, which is saved in parts while it changes, what was
//! there at the beginning.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ruvio_shard::image::{Block, Blocks, Image};
use ruvio_shard::keys::{Keys, Walk};
use ruvio_shard::log::{HEADER_BYTES, Refusal};
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

#[path = "stored/empty.rs"]
mod empty;
#[path = "stored/large.rs"]
mod large;
#[path = "stored/sealed.rs"]
mod sealed;

use empty::{empty_shard, give_back};
use large::{Form, IN_PARTS_FROM, content};
use sealed::{HEADER, sealed};

/// Bits of an input's first byte: the rest is a whole file; collections are converted early; the rest is what is done to a large
/// collection.
const RAW: u8 = 1;
const EARLY: u8 = 2;
const LARGE: u8 = 4;

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

/// Saves a large collection while it changes. `input` chooses its form, its length, and how many changes come before; then
/// it has two bytes for each change, or a zero and how much is saved at once.
fn save_while_it_changes(input: &[u8], shard: &mut Shard) -> Option<(Vec<u8>, Vec<String>)> {
    let (&[form, length, before], changes) = input.split_first_chunk::<3>()?;
    let form = Form::of(form);
    form.fill(shard, IN_PARTS_FROM + usize::from(length) * 4);
    let mut changes = changes.chunks_exact(2);
    changes.by_ref().take(before.into()).for_each(|change| form.change(shard, change[0], change[1]));
    let expected = content(shard);
    assert!(shard.keys.begin_image(&HEADER));
    let mut file = Vec::new();
    let mut is_done = false;
    for change in changes {
        match *change {
            [0, budget] if !is_done => is_done = shard.keys.advance_image(usize::from(budget) + 1),
            [how, which] => form.change(shard, how, which),
            _ => {}
        }
        file.extend(shard.keys.image().expect("the image").take().1);
    }
    while !is_done {
        is_done = shard.keys.advance_image(100);
    }
    let mut image = shard.keys.end_image().expect("the image");
    assert!(!image.is_abandoned());
    file.extend(image.take().1);
    Some((file, expected))
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
    if flags & LARGE != 0 {
        if let Some((file, expected)) = save_while_it_changes(rest, &mut shard) {
            let mut again = empty_shard(&settings);
            assert_eq!(read(&file, &mut again.keys), Ok(()), "what was saved is read");
            assert_eq!(content(&mut again), expected);
            give_back(again);
        }
        return give_back(shard);
    }
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
