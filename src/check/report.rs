//! What a check has found, for people.

use std::fmt::Write;
use std::path::Path;

use super::{Found, Verdict, leftovers};
use crate::core::log::recovery::Failure;
use crate::data::Manifest;

/// Adds a line.
macro_rules! line {
    ($text:expr, $($words:tt)*) => {{
        // Writing to a string does not fail.
        let _ = writeln!($text, $($words)*);
    }};
}

/// What the directory as a whole is.
pub fn heading(path: &Path, manifest: &Manifest) -> String {
    let mut text = String::new();
    line!(text, "{}: generation {}, {} shards", path.display(), manifest.generation, manifest.shards);
    for folder in leftovers(path, manifest) {
        line!(text, "  {} is left over from another division into shards; the next start removes it", name(&folder));
    }
    text
}

/// What a shard's files hold.
pub fn shard(found: &Found) -> String {
    let mut text = format!("shard {}: ", found.shard);
    let Some(read) = &found.read else {
        failure(&mut text, found);
        return text;
    };
    match &found.failure {
        None => line!(text, "{} keys", found.keys),
        Some(_) => line!(text, "{} keys before the damage", found.keys),
    }
    if let Some(checkpoint) = &read.checkpoint {
        line!(
            text,
            "  {}: position {}, {} keys, {} bytes, whole",
            name(&checkpoint.path),
            checkpoint.position,
            checkpoint.keys,
            checkpoint.bytes
        );
    }
    for segment in &read.segments {
        let last = segment.last_ms.map_or_else(String::new, |last_ms| format!(", the last of {}", time(last_ms)));
        line!(
            text,
            "  {}: position {}, {} records{last}, {} bytes",
            name(&segment.path),
            segment.position,
            segment.records,
            segment.bytes
        );
    }
    if let Some(tail) = read.tail.as_ref().filter(|tail| tail.bytes > 0) {
        line!(text, "  from offset {} of {} on, {}", tail.offset, name(&tail.path), tail.describe("will be cut off"));
    }
    if found.failure.is_some() {
        text.push_str("  ");
        failure(&mut text, found);
    }
    text
}

fn failure(text: &mut String, found: &Found) {
    match &found.failure {
        None => {}
        Some(Failure::Unreadable(problem)) => {
            line!(text, "{problem}");
        }
        Some(Failure::Damaged(damage)) => {
            line!(text, "{}", damage.describe());
            match &damage.loss {
                Some(loss) => {
                    line!(text, "  --repair ends the log there, and drops {}", loss.describe());
                }
                None => {
                    line!(text, "  a checkpoint cannot be repaired: restore a backup");
                }
            }
        }
    }
}

/// What it comes to.
pub fn end(path: &Path, verdict: Verdict, repair: bool) -> String {
    match verdict {
        Verdict::Whole => "whole: a server can start with it\n".to_owned(),
        Verdict::Damaged if !repair => {
            format!("damaged: no server starts with it before `ruvio check {} --repair`\n", path.display())
        }
        Verdict::Damaged => "damaged\n".to_owned(),
        Verdict::Unreadable => "unreadable: no server starts with it\n".to_owned(),
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A time in ms since the epoch, as a date and a time of day in UTC.
fn time(ms: i64) -> String {
    let (days, ms_of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    // Years that begin in March, so that the day that is not always there comes last; 400 of them have 146097 days.
    let days = days + 719_468;
    let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_cycle = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);
    let seconds = ms_of_day / 1000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day_of_month:02} {hour:02}:{minute:02}:{second:02}.{:03} UTC", ms_of_day % 1000)
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_are_dates() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00.000 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00.000 UTC"),
            (951_868_799_999, "2000-02-29 23:59:59.999 UTC"),
            (1_735_689_599_001, "2024-12-31 23:59:59.001 UTC"),
            (1_709_251_200_000, "2024-03-01 00:00:00.000 UTC"),
            (-1, "1969-12-31 23:59:59.999 UTC"),
        ] {
            assert_eq!(time(ms), text);
        }
    }
}
