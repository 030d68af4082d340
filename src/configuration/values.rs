//! Reading and showing the values of parameters, with Redis's error texts.

use ruvio_shard::settings::EvictionPolicy;

use super::{Hears, OutputLimit};
use crate::options::parse_memory;

/// Client classes of `client-output-buffer-limit`, in the order of [`super::Configuration`]; the second has two names.
const CLIENT_CLASSES: [&[&str]; 3] = [&["normal"], &["slave", "replica"], &["pubsub"]];

/// The policies in the order in which Redis lists them.
const POLICIES: [EvictionPolicy; 8] = [
    EvictionPolicy::VolatileLru,
    EvictionPolicy::VolatileLfu,
    EvictionPolicy::VolatileRandom,
    EvictionPolicy::VolatileTtl,
    EvictionPolicy::AllKeysLru,
    EvictionPolicy::AllKeysLfu,
    EvictionPolicy::AllKeysRandom,
    EvictionPolicy::NoEviction,
];

fn text(value: &[u8]) -> &str {
    std::str::from_utf8(value).unwrap_or_default()
}

fn check_range(value: i64, (least, greatest): (i64, i64)) -> Result<i64, String> {
    if (least..=greatest).contains(&value) {
        Ok(value)
    } else {
        Err(format!("argument must be between {least} and {greatest} inclusive"))
    }
}

/// An integer within `range`.
pub fn integer(value: &[u8], range: (i64, i64)) -> Result<i64, String> {
    let value = ruvio_shard::number::parse_i64(value).ok_or("argument couldn't be parsed into an integer")?;
    check_range(value, range)
}

/// A number of bytes within `range`; units may follow.
pub fn memory(value: &[u8], range: (i64, i64)) -> Result<i64, String> {
    let bytes = parse_memory(text(value)).and_then(|bytes| i64::try_from(bytes).ok());
    check_range(bytes.ok_or("argument must be a memory value")?, range)
}

/// A number of bytes, or a percentage of `maxmemory`: the number.
pub fn memory_or_percentage(value: &[u8]) -> Result<i64, String> {
    let Some(digits) = value.strip_suffix(b"%") else { return memory(value, (0, i64::MAX)) };
    match ruvio_shard::number::parse_i64(digits).filter(|percentage| *percentage >= 0) {
        None => Err("argument must be a memory or percent value".into()),
        Some(percentage) if percentage > 100 => Err("percentage argument must be less or equal to 100".into()),
        Some(percentage) => Ok(percentage),
    }
}

/// `yes` or `no`.
pub fn boolean(value: &[u8]) -> Result<bool, String> {
    match text(value).to_ascii_lowercase().as_str() {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".into()),
    }
}

/// The word for a boolean.
pub fn yes_or_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// One of some words, whatever the case of its letters.
pub fn one_of<'a>(value: &[u8], words: &[&'a str]) -> Result<&'a str, String> {
    let found = words.iter().find(|word| value.eq_ignore_ascii_case(word.as_bytes()));
    found.copied().ok_or_else(|| format!("argument(s) must be one of the following: {}", words.join(", ")))
}

/// The word of an eviction policy.
pub fn policy(value: &[u8]) -> Result<EvictionPolicy, String> {
    let words = POLICIES.map(EvictionPolicy::name);
    let word = one_of(value, &words)?;
    Ok(POLICIES.into_iter().find(|policy| policy.name() == word).unwrap_or_default())
}

/// The word of a level of messages.
pub fn log_level(value: &[u8]) -> Result<Hears, String> {
    let words = Hears::ALL.map(Hears::name);
    let word = one_of(value, &words)?;
    Ok(Hears::ALL.into_iter().find(|level| level.name() == word).unwrap_or(Hears::Notice))
}

/// Percentiles, separated by spaces.
pub fn percentiles(value: &[u8]) -> Result<Vec<f64>, String> {
    let mut percentiles = Vec::new();
    for word in text(value).split_ascii_whitespace() {
        let percentile: f64 = match word.parse() {
            Ok(percentile) if !f64::is_nan(percentile) => percentile,
            _ => return Err("Invalid latency-tracking-info-percentiles parameters".into()),
        };
        if !(0.0..=100.0).contains(&percentile) {
            return Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".into());
        }
        percentiles.push(percentile);
    }
    Ok(percentiles)
}

/// How percentiles are shown.
pub fn show_percentiles(percentiles: &[f64]) -> String {
    percentiles.iter().map(f64::to_string).collect::<Vec<_>>().join(" ")
}

/// Changes the limits that `value` names: a class, its hard and soft limit and the seconds of the latter, repeatedly.
/// That of replicas holds for monitors.
pub fn change_output_limits(value: &[u8], limits: &mut [OutputLimit; 3]) -> Result<(), String> {
    let words: Vec<&str> = text(value).split_ascii_whitespace().collect();
    if !words.len().is_multiple_of(4) || (words.is_empty() && !value.is_empty()) {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    }
    for group in words.chunks_exact(4) {
        let class = CLIENT_CLASSES
            .iter()
            .position(|names| names.iter().any(|name| name.eq_ignore_ascii_case(group[0])))
            .ok_or("Invalid client class specified in buffer limit configuration.")?;
        let limit = output_limit(&group[1..])
            .ok_or("Error in hard, soft or soft_seconds setting in buffer limit configuration.")?;
        limits[class] = limit;
    }
    Ok(())
}

fn output_limit(words: &[&str]) -> Option<OutputLimit> {
    let [hard, soft, seconds] = words else { return None };
    let soft_seconds = seconds.parse().ok().filter(|&seconds| seconds <= i32::MAX as u64)?;
    Some(OutputLimit { hard_bytes: parse_memory(hard)?, soft_bytes: parse_memory(soft)?, soft_seconds })
}

/// How limits are shown.
pub fn show_output_limits(limits: &[OutputLimit; 3]) -> String {
    let groups: Vec<String> = CLIENT_CLASSES
        .iter()
        .zip(limits)
        .map(|(names, limit)| format!("{} {} {} {}", names[0], limit.hard_bytes, limit.soft_bytes, limit.soft_seconds))
        .collect();
    groups.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_name_class_hard_soft_and_seconds() {
        let mut limits = [OutputLimit::default(); 3];
        change_output_limits(b"normal 2mb 1kb 10 replica 3 2 1 pubsub 6 5 4", &mut limits).expect("valid");
        assert_eq!(limits[0], OutputLimit { hard_bytes: 2 << 20, soft_bytes: 1 << 10, soft_seconds: 10 });
        assert_eq!(show_output_limits(&limits), "normal 2097152 1024 10 slave 3 2 1 pubsub 6 5 4");
        for (value, part) in [
            (&b"normal 1 2"[..], "Wrong number"),
            (b" ", "Wrong number"),
            (b"other 1 2 3", "Invalid client class"),
            (b"normal -1 2 3", "Error in hard"),
            (b"normal 1 2 99999999999999", "Error in hard"),
        ] {
            let error = change_output_limits(value, &mut limits).expect_err("refused");
            assert!(error.starts_with(part) || error.contains(part), "{error}");
        }
    }

    #[test]
    fn percentiles_are_shown_as_they_were_given() {
        assert_eq!(show_percentiles(&percentiles(b"50 99 99.9").expect("valid")), "50 99 99.9");
        assert_eq!(percentiles(b"").expect("none"), Vec::<f64>::new());
        assert!(percentiles(b"nan").is_err() && percentiles(b"100.1").is_err());
    }
}
