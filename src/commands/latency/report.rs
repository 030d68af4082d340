//! `LATENCY DOCTOR` and `LATENCY GRAPH`: what was recorded, in words and as a chart.

use std::fmt::Write;

use crate::core::latency::{LatencyEvent, LatencyEvents};

/// Lines of a chart.
const CHART_LINES: u64 = 4;

/// A rule below the title of a chart.
const RULE_WIDTH: usize = 80;

/// What the samples of an event say together.
#[derive(Debug, PartialEq)]
struct Summary {
    samples: usize,
    lowest_ms: u64,
    highest_ms: u64,
    mean_ms: f64,
    /// The mean of the differences from the mean, in ms.
    deviation_ms: f64,
    /// Seconds between samples, on average.
    period_s: f64,
}

impl Summary {
    /// `None` without samples.
    fn of(event: &LatencyEvent, now_s: i64) -> Option<Summary> {
        let (first_s, _) = *event.samples.front()?;
        let durations = || event.samples.iter().map(|(_, duration_ms)| *duration_ms);
        let samples = event.samples.len();
        let mean_ms = durations().sum::<u64>() as f64 / samples as f64;
        Some(Summary {
            samples,
            lowest_ms: durations().min()?,
            highest_ms: durations().max()?,
            mean_ms,
            deviation_ms: durations().map(|duration_ms| (duration_ms as f64 - mean_ms).abs()).sum::<f64>()
                / samples as f64,
            period_s: (now_s - first_s).max(1) as f64 / samples as f64,
        })
    }
}

/// What to look at where an event is frequent.
fn advice(event: &str) -> &'static str {
    match event {
        "command" => {
            "Commands whose time depends on their arguments took long: see which with SLOWLOG GET, and prefer the SCAN \
             family, ranges and counts to whole values and KEYS."
        }
        "fast-command" => {
            "Commands that take constant time took long, so the process itself was held up: look for other programs on \
             its cores, swapping, or a virtual machine that is not given its time."
        }
        _ => "See LATENCY HISTORY for when it happened.",
    }
}

/// What the events say, and what to look at. `threshold_ms` is what is recorded from.
pub fn doctor(events: &LatencyEvents, threshold_ms: u64, now_s: i64) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut line = |words: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{words}");
    };
    if threshold_ms == 0 {
        line(format_args!(
            "Nothing is recorded, because latency-monitor-threshold is 0. CONFIG SET latency-monitor-threshold \
             <milliseconds> has everything recorded that takes at least that long."
        ));
    }
    let summaries: Vec<_> = events
        .iter()
        .filter_map(|(name, event)| Summary::of(event, now_s).map(|summary| (name, event, summary)))
        .collect();
    if summaries.is_empty() {
        if threshold_ms > 0 {
            line(format_args!("Nothing took {threshold_ms} ms or longer so far."));
        }
        return text;
    }
    for (name, event, summary) in &summaries {
        line(format_args!(
            "{name}: {} samples, every {:.2} s on average, of {:.0} ms (mean deviation {:.0} ms); the longest ever took \
             {} ms.",
            summary.samples, summary.period_s, summary.mean_ms, summary.deviation_ms, event.worst_ms
        ));
        line(format_args!("  {}", advice(name)));
    }
    text
}

/// How long ago, in the greatest unit that fits.
fn age(elapsed_s: i64) -> String {
    match elapsed_s.max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// The samples of an event as columns, earliest first, each with how long ago it was; `None` without samples.
pub fn graph(name: &str, event: &LatencyEvent, now_s: i64) -> Option<String> {
    let summary = Summary::of(event, now_s)?;
    let mut text = format!(
        "{name} - high {} ms, low {} ms (all time high {} ms)\n{}\n",
        summary.highest_ms,
        summary.lowest_ms,
        event.worst_ms,
        "-".repeat(RULE_WIDTH)
    );
    // In halves of a line, at least one.
    let halves = |duration_ms: u64| (duration_ms * 2 * CHART_LINES).div_ceil(summary.highest_ms.max(1)).max(1);
    let mut push_line = |symbol: &mut dyn FnMut(i64, u64) -> char| {
        let line: String = event.samples.iter().map(|&(time_s, duration_ms)| symbol(time_s, duration_ms)).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    };
    for below in (0..CHART_LINES).rev().map(|line| 2 * line) {
        push_line(&mut |_, duration_ms| match halves(duration_ms).saturating_sub(below) {
            0 => ' ',
            1 => '_',
            _ => '#',
        });
    }
    push_line(&mut |_, _| ' ');
    let labels = event.samples.iter().map(|(time_s, _)| age(now_s - time_s).len()).max().unwrap_or_default();
    for place in 0..labels {
        push_line(&mut |time_s, _| age(now_s - time_s).chars().nth(place).unwrap_or(' '));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(samples: &[(i64, u64)]) -> LatencyEvent {
        LatencyEvent { samples: samples.iter().copied().collect(), worst_ms: 90 }
    }

    #[test]
    fn a_graph_has_a_column_for_each_sample() {
        let text = graph("command", &event(&[(1000, 80), (4000, 40), (4590, 10)]), 4600).expect("samples");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "command - high 80 ms, low 10 ms (all time high 90 ms)");
        assert_eq!(&lines[2..], ["#", "#", "##", "##_", "", "111", "h00", " ms"]);
        assert_eq!(graph("command", &event(&[]), 4600), None);
    }

    #[test]
    fn a_summary_has_mean_and_deviation() {
        let summary = Summary::of(&event(&[(100, 10), (110, 20), (115, 60)]), 130).expect("samples");
        assert_eq!((summary.samples, summary.lowest_ms, summary.highest_ms), (3, 10, 60));
        assert_eq!((summary.mean_ms, summary.deviation_ms, summary.period_s), (30.0, 20.0, 10.0));
    }
}
