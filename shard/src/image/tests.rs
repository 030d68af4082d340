//! Promises of images: what is read back is what was there when the image began, whatever happened meanwhile.

use proptest::prelude::*;

use super::{Block, Blocks};
use crate::histories::{NOW_MS, content, line, run, shard};
use crate::keys::{Keys, Walk};
use crate::log::{HEADER_BYTES, Header, Refusal};

const HEADER: Header = Header { shard: 0, shards: 1, generation: 3, position: 77 };

fn read(bytes: &[u8], keys: &mut Keys) -> Result<(), Refusal> {
    let header = bytes.first_chunk::<HEADER_BYTES>().ok_or("no header")?;
    let mut blocks = Blocks::open(header)?;
    let mut rest = &bytes[HEADER_BYTES..];
    keys.begin(0, NOW_MS, None);
    loop {
        let head = rest.first_chunk::<{ Blocks::HEAD_BYTES }>().ok_or("no head")?;
        let len = Blocks::HEAD_BYTES + Blocks::body_bytes(head)?;
        let (block, behind) = rest.split_at_checked(len).ok_or("no body")?;
        rest = behind;
        if blocks.add(block, keys)? == Block::End {
            return if rest.is_empty() { Ok(()) } else { Err("something follows".into()) };
        }
    }
}

proptest! {
    #[test]
    fn an_image_is_of_the_moment_it_was_begun(
        before in prop::collection::vec(line(), 0..120),
        during in prop::collection::vec((line(), 0..40_usize), 0..120),
        in_parts_from in prop::sample::select(vec![1, 4, 9, super::parts::IN_PARTS_FROM]),
    ) {
        let mut shard = shard();
        before.iter().for_each(|(database, line)| drop(run(&mut shard, *database, NOW_MS, line)));
        for _ in 0..2 {
            let expected = content(&mut shard, NOW_MS);
            prop_assert!(shard.keys.begin_image(&HEADER));
            shard.keys.image().expect("just begun").in_parts_from = in_parts_from;
            let mut file = Vec::new();
            let mut done = false;
            for ((database, line), budget) in &during {
                run(&mut shard, *database, NOW_MS, line);
                if *budget > 20 && !done {
                    done = shard.keys.advance_image(*budget - 20);
                }
                if let Some(image) = shard.keys.image() {
                    file.extend(image.take().1);
                }
            }
            while !done {
                done = shard.keys.advance_image(1);
            }
            let mut image = shard.keys.end_image().expect("an image");
            prop_assert!(!image.is_abandoned());
            file.extend(image.take().1);
            let mut other = self::shard();
            read(&file, &mut other.keys).expect("an image that can be read");
            prop_assert_eq!(content(&mut other, NOW_MS), expected);
        }
    }

    #[test]
    fn an_image_that_is_cut_or_changed_is_refused(before in prop::collection::vec(line(), 0..10), flip in 1..=255_u8) {
        let mut shard = shard();
        before.iter().for_each(|(database, line)| drop(run(&mut shard, *database, NOW_MS, line)));
        shard.keys.begin_image(&HEADER);
        shard.keys.image().expect("just begun").in_parts_from = 2;
        while !shard.keys.advance_image(usize::MAX) {}
        let file = shard.keys.end_image().expect("an image").take().1;
        prop_assert!(read(&file, &mut self::shard().keys).is_ok());
        for at in 0..file.len() {
            prop_assert!(read(&file[..at], &mut self::shard().keys).is_err());
            let mut changed = file.clone();
            changed[at] ^= flip;
            prop_assert!(read(&changed, &mut self::shard().keys).is_err(), "byte {}", at);
        }
    }
}

proptest! {
    #[test]
    fn an_image_made_in_one_go_holds_the_same(
        lines in prop::collection::vec(line(), 0..120),
        in_parts_from in 1..8_usize,
    ) {
        let mut shard = shard();
        lines.iter().for_each(|(database, line)| drop(run(&mut shard, *database, NOW_MS, line)));
        let (mut image, mut walk) = (super::Image::new(&HEADER), Walk::default());
        image.in_parts_from = in_parts_from;
        while shard.keys.next_slot_of(&mut walk).is_some() {
            shard.keys.save_some(&mut walk, &mut image);
        }
        image.end();
        let mut other = self::shard();
        read(&image.take().1, &mut other.keys).expect("an image that can be read");
        prop_assert_eq!(content(&mut other, NOW_MS), content(&mut shard, NOW_MS));
    }
}

#[test]
fn a_flush_gives_the_image_up_and_the_next_one_is_whole() {
    let mut shard = shard();
    (0..500).for_each(|number| drop(run(&mut shard, 0, NOW_MS, &format!("SET key:{number} v"))));
    shard.keys.begin_image(&HEADER);
    assert!(!shard.keys.advance_image(100));
    shard.keys.flush(0);
    (0..300).for_each(|number| drop(run(&mut shard, 0, NOW_MS, &format!("SET key:{number} w"))));
    while !shard.keys.advance_image(100) {}
    assert!(shard.keys.end_image().expect("an image").is_abandoned());
    let expected = content(&mut shard, NOW_MS);
    shard.keys.begin_image(&HEADER);
    run(&mut shard, 0, NOW_MS, "SET key:5 x");
    while !shard.keys.advance_image(100) {}
    let file = shard.keys.end_image().expect("an image").take().1;
    let mut other = self::shard();
    read(&file, &mut other.keys).expect("an image that can be read");
    assert_eq!(content(&mut other, NOW_MS), expected);
}
