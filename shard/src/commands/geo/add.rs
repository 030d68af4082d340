//! GEOADD

use super::options::place_at;
use crate::args::Args;
use crate::commands::sorted_set::add::{Conditions, add_many, add_one};
use crate::context::Context;
use crate::error::{CommandError, CommandResult};
use crate::sorted_set::Effect;

pub(super) fn geoadd(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut conditions = Conditions::default();
    let mut count_changed = false;
    let mut first = 2;
    loop {
        if args.is(first, "nx") {
            conditions.only_new = true;
        } else if args.is(first, "xx") {
            conditions.only_present = true;
        } else if args.is(first, "ch") {
            count_changed = true;
        } else {
            break;
        }
        first += 1;
    }
    let places = args.from(first);
    if places.is_empty() || !places.len().is_multiple_of(3) || conditions.only_new && conditions.only_present {
        return Err(CommandError::SYNTAX);
    }
    let (key, members) = (args.at(1), places.iter().skip(2).step_by(3));
    let (added, changed) = if places.len() == 3 {
        let score = place_at(places, 0)?.to_score();
        match add_one(context, key, places.at(2), score, conditions, None)?.map(|updated| updated.effect) {
            Some(Effect::Added) => (1, 0),
            Some(Effect::Changed) => (0, 1),
            _ => (0, 0),
        }
    } else {
        let scores = (0..places.len()).step_by(3).map(|index| Ok(place_at(places, index)?.to_score()));
        let scores: Vec<f64> = scores.collect::<Result<_, CommandError>>()?;
        add_many(context, key, members, &scores, conditions)?
    };
    context.reply.count(if count_changed { added + changed } else { added });
    Ok(())
}
