//! Places, units and areas as clients write them, and the options of a search.

use crate::args::Args;
use crate::commands::options::integer_at;
use crate::error::CommandError;
use crate::geo::{Area, Place, Shape};
use crate::number::parse_f64;
use crate::slot::key_slot;
use crate::sorted_set::SortedSetRef;

/// The place whose longitude and latitude are at word `index`, which must be there, and the one behind it.
pub(super) fn place_at(args: Args<'_>, index: usize) -> Result<Place, CommandError> {
    let longitude = parse_f64(args.at(index)).ok_or(CommandError::NOT_A_FLOAT)?;
    let latitude = parse_f64(args.at(index + 1)).ok_or(CommandError::NOT_A_FLOAT)?;
    Place::new(longitude, latitude)
        .ok_or_else(|| CommandError::new(format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}")))
}

/// The unit that a word names, in metres.
pub(super) fn unit_m(word: &[u8]) -> Result<f64, CommandError> {
    const UNITS: [(&str, f64); 4] = [("m", 1.0), ("km", 1000.0), ("ft", 0.3048), ("mi", 1609.34)];
    let known = UNITS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
    known.map(|(_, metres)| *metres).ok_or(CommandError::new("ERR unsupported unit provided. please use M, KM, FT, MI"))
}

/// A length at word `index`, which must be there.
fn length_at(args: Args<'_>, index: usize, name: &str) -> Result<f64, CommandError> {
    parse_f64(args.at(index)).ok_or_else(|| CommandError::new(format!("ERR need numeric {name}")))
}

/// The circle and the unit, in metres, that are at word `index` and the one behind it.
pub(super) fn circle_at(args: Args<'_>, index: usize) -> Result<(Shape, f64), CommandError> {
    let radius = length_at(args, index, "radius")?;
    if radius < 0.0 {
        return Err(CommandError::new("ERR radius cannot be negative"));
    }
    Ok((Shape::Circle { radius }, unit_m(args.at(index + 1))?))
}

/// The box and the unit, in metres, that are at word `index` and the two behind it.
fn box_at(args: Args<'_>, index: usize) -> Result<(Shape, f64), CommandError> {
    let (width, height) = (length_at(args, index, "width")?, length_at(args, index + 1, "height")?);
    if width < 0.0 || height < 0.0 {
        return Err(CommandError::new("ERR height or width cannot be negative"));
    }
    Ok((Shape::Box { width, height }, unit_m(args.at(index + 2))?))
}

/// The place of a member to search around.
pub(super) fn place_of(set: SortedSetRef<'_>, member: &[u8]) -> Result<Place, CommandError> {
    let score = set.score(member).ok_or(CommandError::new("ERR could not decode requested zset member"))?;
    Ok(Place::from_score(score))
}

/// In which order members are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The nearest first.
    Ascending,
    /// The farthest first.
    Descending,
}

/// The commands that search, by what their options are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// GEOSEARCH
    Search,
    /// GEOSEARCHSTORE
    SearchAndStore,
    /// GEORADIUS and GEORADIUSBYMEMBER
    Radius,
    /// The same, which only read.
    ReadOnlyRadius,
}

impl Syntax {
    fn has_area(self) -> bool {
        matches!(self, Syntax::Search | Syntax::SearchAndStore)
    }
}

/// The options of a search.
#[derive(Clone, Copy)]
pub(super) struct Options<'a> {
    /// Where it is around; `None` where it is around a member of a set that is missing.
    pub centre: Option<Place>,
    /// What it is within, and the unit in metres.
    pub shape: Option<(Shape, f64)>,
    /// The order of the members.
    pub order: Option<Order>,
    /// The most members; 0 for all.
    pub count: usize,
    /// Whether any members will do.
    pub any: bool,
    /// Whether distances are replied.
    pub with_distance: bool,
    /// Whether scores are replied.
    pub with_score: bool,
    /// Whether places are replied.
    pub with_place: bool,
    /// Where the members are stored.
    pub destination: Option<&'a [u8]>,
    /// Whether their distances are stored as their scores.
    pub store_distance: bool,
    from_member: bool,
    from_place: bool,
}

impl<'a> Options<'a> {
    /// The options of a search with this centre and shape as far as they are known, before any word of them is read.
    pub fn new(centre: Option<Place>, shape: Option<(Shape, f64)>, destination: Option<&'a [u8]>) -> Options<'a> {
        Options {
            centre,
            shape,
            order: None,
            count: 0,
            any: false,
            with_distance: false,
            with_score: false,
            with_place: false,
            destination,
            store_distance: false,
            from_member: false,
            from_place: false,
        }
    }

    /// Reads the options from word `start` on. `set` is what is searched, if it is there.
    pub fn parse(
        mut self,
        args: Args<'a>,
        start: usize,
        syntax: Syntax,
        set: Option<SortedSetRef<'_>>,
    ) -> Result<Options<'a>, CommandError> {
        let mut index = start;
        while index < args.len() {
            index += match self.take_common(args, index)? {
                0 => self.take_special(args, index, syntax, set)?,
                words => words,
            };
        }
        self.check(args, syntax)?;
        Ok(self)
    }

    /// Reads an option that all of the commands have; returns the number of its words, 0 for none of these options.
    fn take_common(&mut self, args: Args<'a>, index: usize) -> Result<usize, CommandError> {
        if args.is(index, "withdist") {
            self.with_distance = true;
        } else if args.is(index, "withhash") {
            self.with_score = true;
        } else if args.is(index, "withcoord") {
            self.with_place = true;
        } else if args.is(index, "any") {
            self.any = true;
        } else if args.is(index, "asc") {
            self.order = Some(Order::Ascending);
        } else if args.is(index, "desc") {
            self.order = Some(Order::Descending);
        } else if args.is(index, "count") && index + 1 < args.len() {
            let count = integer_at(args, index + 1)?;
            let count = usize::try_from(count).ok().filter(|count| *count > 0);
            self.count = count.ok_or(CommandError::new("ERR COUNT must be > 0"))?;
            return Ok(2);
        } else {
            return Ok(0);
        }
        Ok(1)
    }

    /// Reads an option that only some of the commands have; returns the number of its words.
    fn take_special(
        &mut self,
        args: Args<'a>,
        index: usize,
        syntax: Syntax,
        set: Option<SortedSetRef<'_>>,
    ) -> Result<usize, CommandError> {
        let left = args.len() - index - 1;
        let stores = args.is(index, "store") || args.is(index, "storedist");
        if stores && syntax == Syntax::Radius && left >= 1 {
            let destination = args.at(index + 1);
            // The last one counts, but only the first behind each word was known when the slots of keys were compared.
            if self.destination.is_some_and(|first| key_slot(first) != key_slot(destination)) {
                return Err(CommandError::CROSS_SLOT);
            }
            self.destination = Some(destination);
            self.store_distance = args.is(index, "storedist");
            return Ok(2);
        }
        if args.is(index, "storedist") && syntax == Syntax::SearchAndStore {
            self.store_distance = true;
            return Ok(1);
        }
        if !syntax.has_area() {
            return Err(CommandError::SYNTAX);
        }
        if args.is(index, "frommember") && left >= 1 && !self.from_place {
            self.from_member = true;
            if let Some(set) = set {
                self.centre = Some(place_of(set, args.at(index + 1))?);
            }
            return Ok(2);
        }
        if args.is(index, "fromlonlat") && left >= 2 && !self.from_member {
            self.from_place = true;
            self.centre = Some(place_at(args, index + 1)?);
            return Ok(3);
        }
        let is_box = matches!(self.shape, Some((Shape::Box { .. }, _)));
        if args.is(index, "byradius") && left >= 2 && !is_box {
            self.shape = Some(circle_at(args, index + 1)?);
            return Ok(3);
        }
        let is_circle = matches!(self.shape, Some((Shape::Circle { .. }, _)));
        if args.is(index, "bybox") && left >= 3 && !is_circle {
            self.shape = Some(box_at(args, index + 1)?);
            return Ok(4);
        }
        Err(CommandError::SYNTAX)
    }

    /// Whether the options go together.
    fn check(&self, args: Args<'_>, syntax: Syntax) -> Result<(), CommandError> {
        let error = |text: String| Err(CommandError::new(format!("ERR {text}")));
        if self.destination.is_some() && (self.with_distance || self.with_score || self.with_place) {
            let what = if syntax == Syntax::SearchAndStore { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            return error(format!("{what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"));
        }
        let name = || String::from_utf8_lossy(args.at(0));
        if syntax.has_area() && !self.from_member && !self.from_place {
            return error(format!("exactly one of FROMMEMBER or FROMLONLAT can be specified for {}", name()));
        }
        if syntax.has_area() && self.shape.is_none() {
            return error(format!("exactly one of BYRADIUS and BYBOX can be specified for {}", name()));
        }
        if self.any && self.count == 0 {
            return error("the ANY argument requires COUNT argument".to_owned());
        }
        Ok(())
    }

    /// The area to search, where both its centre and its shape are known.
    pub fn area(&self) -> Option<Area> {
        let (shape, unit_m) = self.shape?;
        Some(Area { centre: self.centre?, shape, unit_m })
    }
}
