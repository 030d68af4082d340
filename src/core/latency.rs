//! Latency events: what took longer than `latency-monitor-threshold`, for `LATENCY`.

use std::collections::{BTreeMap, VecDeque};

/// Samples kept of an event, as in Redis.
const MAX_SAMPLES: usize = 160;

/// The latest samples of an event, a second each, and the worst of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyEvent {
    /// When (in seconds since the epoch), and how long the worst of that second took, in ms; earliest first.
    pub samples: VecDeque<(i64, u64)>,
    /// How long the worst took, in ms.
    pub worst_ms: u64,
}

impl LatencyEvent {
    fn record(&mut self, time_s: i64, duration_ms: u64) {
        self.worst_ms = self.worst_ms.max(duration_ms);
        if let Some((latest_s, worst_ms)) = self.samples.back_mut()
            && *latest_s == time_s
        {
            *worst_ms = (*worst_ms).max(duration_ms);
            return;
        }
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back((time_s, duration_ms));
    }

    /// Adds another core's samples of the same event.
    pub fn merge(&mut self, other: &LatencyEvent) {
        let mut seconds: BTreeMap<i64, u64> = self.samples.iter().copied().collect();
        for &(time_s, duration_ms) in &other.samples {
            let worst_ms = seconds.entry(time_s).or_default();
            *worst_ms = (*worst_ms).max(duration_ms);
        }
        let surplus = seconds.len().saturating_sub(MAX_SAMPLES);
        self.samples = seconds.into_iter().skip(surplus).collect();
        self.worst_ms = self.worst_ms.max(other.worst_ms);
    }
}

/// The events of a core, by name.
#[derive(Clone, Debug, Default)]
pub struct LatencyEvents(BTreeMap<&'static str, LatencyEvent>);

impl LatencyEvents {
    /// Notes that something took this long.
    #[cold]
    pub fn record(&mut self, name: &'static str, time_s: i64, duration_ms: u64) {
        self.0.entry(name).or_default().record(time_s, duration_ms);
    }

    /// The event with this name.
    pub fn get(&self, name: &[u8]) -> Option<&LatencyEvent> {
        self.0.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes())).map(|(_, event)| event)
    }

    /// Every event with its name, in the order of the names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, &LatencyEvent)> {
        self.0.iter().map(|(name, event)| (*name, event))
    }

    /// Forgets the events that `chosen` holds for; returns their names.
    pub fn forget(&mut self, chosen: impl Fn(&str) -> bool) -> Vec<&'static str> {
        let names: Vec<&'static str> = self.0.keys().copied().filter(|name| chosen(name)).collect();
        for name in &names {
            self.0.remove(name);
        }
        names
    }

    /// Adds another core's events.
    pub fn merge(&mut self, other: &LatencyEvents) {
        for (name, event) in other.iter() {
            self.0.entry(name).or_default().merge(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_keeps_its_worst_sample_across_cores() {
        let (mut one, mut other) = (LatencyEvents::default(), LatencyEvents::default());
        for (time_s, duration_ms) in [(10, 5), (10, 9), (11, 3)] {
            one.record("command", time_s, duration_ms);
        }
        for (time_s, duration_ms) in [(9, 1), (11, 7)] {
            other.record("command", time_s, duration_ms);
        }
        other.record("fast-command", 9, 2);
        one.merge(&other);
        let command = one.get(b"COMMAND").expect("recorded");
        assert_eq!(command.samples, [(9, 1), (10, 9), (11, 7)]);
        assert_eq!(command.worst_ms, 9);
        assert_eq!(one.forget(|name| name == "command"), ["command"]);
        assert_eq!(one.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["fast-command"]);
    }

    #[test]
    fn only_the_latest_samples_are_kept() {
        let mut events = LatencyEvents::default();
        for time_s in 0..1000 {
            events.record("command", time_s, if time_s == 0 { 50 } else { 1 });
        }
        let mut event = events.get(b"command").expect("recorded").clone();
        event.merge(&LatencyEvent { samples: [(1000, 2)].into(), worst_ms: 2 });
        assert_eq!(event.samples.len(), MAX_SAMPLES);
        assert_eq!(event.samples.back(), Some(&(1000, 2)));
        assert_eq!(event.worst_ms, 50);
    }
}
