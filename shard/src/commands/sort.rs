//! `SORT` and `SORT_RO`.

mod options;
mod pattern;

use std::cmp::Ordering;
use std::ops::Range;

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::context::Context;
use crate::entry::{EntryRef, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::keys::Keys;
use crate::list::{self, End, ListMut, ListRef};
use crate::number::{IntBuffer, parse_f64};
use crate::packed::Element;
use crate::set::SetRef;
use crate::sorted_set::SortedSetRef;

use options::Options;

const READ: KeyFlags = KeyFlags::READ.and(KeyFlags::ACCESS);
const CATEGORIES: Categories =
    Categories::SET.and(Categories::SORTED_SET).and(Categories::LIST).and(Categories::DANGEROUS);

/// What both specifications have in common.
const SORT_READ_ONLY: Spec = Spec {
    name: "sort_ro",
    arity: -2,
    flags: Flags::READ_ONLY,
    keys: &[KeySpec::one(1, READ), KeySpec::unknown(|_, _| {}, READ)],
    categories: CATEGORIES,
    group: Group::Generic,
    since: "7.0.0",
    complexity: "O(N*log(N)+M) where N is the number of elements and M the number of those returned; O(M) unsorted",
    summary: "Returns the elements of a list, a set or a sorted set in order.",
    syntax: "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]",
};

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    Command {
        spec: Spec {
            name: "sort",
            flags: Flags::WRITE.and(Flags::DENY_OOM),
            keys: &[
                KeySpec::one(1, READ),
                KeySpec::unknown(|_, _| {}, READ),
                KeySpec::unknown(options::visit_destination, KeyFlags::OVERWRITE.and(KeyFlags::UPDATE)),
            ],
            since: "1.0.0",
            summary: "Returns the elements of a list, a set or a sorted set in order, or stores them as a list.",
            syntax: "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] [STORE destination]",
            ..SORT_READ_ONLY
        },
        run: |context, args| sort(context, args, true),
    },
    Command { spec: SORT_READ_ONLY, run: |context, args| sort(context, args, false) },
];

/// Elements, and what they are sorted by.
#[derive(Default)]
struct Elements {
    items: Vec<Item>,
    /// The elements, one behind the other.
    bytes: Vec<u8>,
    /// Their weights, where those are strings of other keys.
    weights: Vec<u8>,
}

/// An element to be sorted.
struct Item {
    element: Range<usize>,
    /// What it weighs where weights are numbers.
    score: f64,
    /// What it weighs where weights are strings; none without `BY`, and where the key is missing.
    weight: Option<Range<usize>>,
}

impl Elements {
    fn push(&mut self, element: Element<'_>) {
        let element = append(element, &mut self.bytes);
        self.items.push(Item { element, score: 0.0, weight: None });
    }

    fn compare(&self, one: &Item, other: &Item, options: &Options<'_>) -> Ordering {
        let by_element = || self.bytes[one.element.clone()].cmp(&self.bytes[other.element.clone()]);
        let weight = |item: &Item| item.weight.as_ref().map(|range| &self.weights[range.clone()]);
        let order = if !options.alpha {
            one.score.partial_cmp(&other.score).unwrap_or(Ordering::Equal).then_with(by_element)
        } else if options.by.is_some() {
            weight(one).cmp(&weight(other))
        } else {
            by_element()
        };
        if options.descending { order.reverse() } else { order }
    }
}

/// Appends an element's string; returns where it is.
fn append(element: Element<'_>, bytes: &mut Vec<u8>) -> Range<usize> {
    let start = bytes.len();
    element.write_to(bytes);
    start..bytes.len()
}

/// The number that a weight stands for, as C's `strtod` reads it: nothing is zero, white space before it does not count,
/// and a zero byte ends it.
fn score_of(weight: Element<'_>) -> Option<f64> {
    match weight {
        Element::Int(value) => Some(value as f64),
        Element::Bytes(bytes) => {
            let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            if text.is_empty() {
                return Some(0.0);
            }
            let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
            let start = text.iter().position(|byte| !is_space(byte))?;
            parse_f64(&text[start..])
        }
    }
}

fn sort(context: &mut Context<'_>, args: Args<'_>, may_store: bool) -> CommandResult {
    let key = args.at(1);
    let mut options = Options::parse(args, may_store, context.keys.settings.cross_slot)?;
    let mut elements = Elements::default();
    let in_script = context.keys.in_script;
    let mut range = 0..0;
    if let Some(entry) = context.keys.find(key) {
        range = collect(entry, in_script, &mut options, &mut elements)?;
    }
    if options.reads_keys() {
        // The keys that patterns make lie in slots of their own.
        context.keys.begin(context.keys.selected(), context.keys.now_ms(), None);
    }
    if !options.unsorted {
        weigh(context.keys, &options, &mut elements)?;
        let mut items = std::mem::take(&mut elements.items);
        items.sort_by(|one, other| elements.compare(one, other, &options));
        elements.items = items;
    }
    let chosen = elements.items.get(range).unwrap_or(&[]);
    let chosen = chosen.iter().map(|item| &elements.bytes[item.element.clone()]);
    match options.store {
        None => reply(context, chosen, &options),
        Some(destination) => store(context, destination, chosen, &options),
    }
}

/// Takes in the elements to be sorted; returns the range of them that is wanted, once they are. Of what is not sorted
/// only those in the range are taken in.
fn collect(
    entry: EntryRef<'_>,
    in_script: bool,
    options: &mut Options<'_>,
    elements: &mut Elements,
) -> Result<Range<usize>, CommandError> {
    match entry.kind() {
        Kind::List => {
            let list = ListRef::of(entry);
            let range = options.range(list.len());
            if options.unsorted {
                list.walk(End::Left, range.start).take(range.len()).for_each(|element| elements.push(element));
                return Ok(0..range.len());
            }
            list.walk(End::Left, 0).for_each(|element| elements.push(element));
            Ok(range)
        }
        Kind::Set => {
            let set = SetRef::new(entry).ok_or(CommandError::WRONG_TYPE)?;
            if options.unsorted && (options.store.is_some() || in_script) {
                // What is stored, and what a script does, must not depend on the order of a table.
                options.unsorted = false;
                options.alpha = true;
                options.by = None;
            }
            set.iter().for_each(|member| elements.push(member));
            Ok(options.range(elements.items.len()))
        }
        Kind::SortedSet => {
            let set = SortedSetRef::of(entry);
            let len = set.len();
            let range = options.range(len);
            if !options.unsorted {
                set.all().for_each(|(member, _)| elements.push(member));
                return Ok(range);
            }
            if options.descending {
                set.members(len - range.end..len - range.start).rev().for_each(|(member, _)| elements.push(member));
            } else {
                set.members(range.clone()).for_each(|(member, _)| elements.push(member));
            }
            Ok(0..range.len())
        }
        Kind::String | Kind::Hash | Kind::Limit => Err(CommandError::WRONG_TYPE),
    }
}

/// Finds out what each element is sorted by.
fn weigh(keys: &mut Keys, options: &Options<'_>, elements: &mut Elements) -> CommandResult {
    if options.alpha && options.by.is_none() {
        return Ok(());
    }
    let mut scratch = Vec::new();
    let mut is_number = true;
    let Elements { items, bytes, weights } = elements;
    for item in items {
        let element = &bytes[item.element.clone()];
        let weight = match &options.by {
            None => Some(Element::Bytes(element)),
            Some(pattern) => pattern.look_up(keys, element, &mut scratch)?,
        };
        let Some(weight) = weight else { continue };
        if options.alpha {
            item.weight = Some(append(weight, weights));
        } else {
            let score = score_of(weight);
            is_number &= score.is_some();
            item.score = score.unwrap_or_default();
        }
    }
    if is_number { Ok(()) } else { Err(CommandError::new("ERR One or more scores can't be converted into double")) }
}

fn reply<'e>(
    context: &mut Context<'_>,
    chosen: impl ExactSizeIterator<Item = &'e [u8]>,
    options: &Options<'_>,
) -> CommandResult {
    context.reply.array(chosen.len() * options.gets.len().max(1));
    let mut scratch = Vec::new();
    for element in chosen {
        if options.gets.is_empty() {
            context.reply.bulk(element);
        }
        for pattern in &options.gets {
            match pattern.look_up(context.keys, element, &mut scratch)? {
                Some(Element::Bytes(bytes)) => context.reply.bulk(bytes),
                Some(Element::Int(value)) => context.reply.bulk_integer(value),
                None => context.reply.null(),
            }
        }
    }
    Ok(())
}

fn store<'e>(
    context: &mut Context<'_>,
    destination: &[u8],
    chosen: impl ExactSizeIterator<Item = &'e [u8]>,
    options: &Options<'_>,
) -> CommandResult {
    let keys = &mut *context.keys;
    let limit = list::Limit::of(&keys.settings);
    let header = Header { key: destination, access: keys.new_access(), ..Header::default() };
    let mut entry = list::new_entry(header, limit, End::Right, [].into_iter());
    let mut len = 0;
    let mut push = |element: &[u8]| len = ListMut::new(&mut entry, limit).push(End::Right, [element].into_iter());
    let mut scratch = Vec::new();
    let mut number = IntBuffer::new();
    for element in chosen {
        if options.gets.is_empty() {
            push(element);
        }
        for pattern in &options.gets {
            let value = pattern.look_up(keys, element, &mut scratch)?;
            push(value.map_or(b"", |value| value.as_bytes(&mut number)));
        }
    }
    if len > 0 {
        keys.put(entry);
        keys.changed(Class::List, "sortstore", destination);
    } else if keys.remove(destination) {
        keys.changed(Class::Generic, "del", destination);
    }
    context.reply.count(len);
    Ok(())
}
