//! The benchmarks page.

use std::fmt::Write;

use crate::measure::{CLIENTS, Figures, KEYS, Outcome, PIPELINE, REQUESTS, STATE_KEYS};
use crate::server::Programs;
use crate::table::figure;
use crate::{Effort, machine};

/// The file of the plot, beside the page.
pub const PLOT: &str = "native-vs-script.svg";

/// The page in Markdown.
pub fn page(programs: &Programs, effort: Effort, outcomes: &[Outcome]) -> String {
    let mut page = format!(
        "# Native commands against the scripts they replace\n\n\
         Written by `cargo bench --bench native-vs-script`; what the scripts are stands in \
         `benches/native-vs-script/cases.rs`. Every case does the same natively on Ruvio, with `EVALSHA` on Ruvio, and with \
         `EVALSHA` on Redis: one thread each, nothing on disk, {CLIENTS} connections, pipeline {PIPELINE}, {} requests on \
         {KEYS} keys, the median of {} rounds.\n\n- {}\n- {}\n\n![CPU time a request]({PLOT})\n",
        effort.part(REQUESTS),
        effort.rounds,
        machine::line(),
        programs.line(),
    );
    table(
        &mut page,
        "Server CPU time a request, in µs",
        "The ratio is that of the native command to the script on Redis.",
        outcomes,
        |figures| figure(Some(figures.cpu_us), 2),
        |outcome| outcome.redis.map(|redis| outcome.native.cpu_us / redis.cpu_us),
    );
    table(
        &mut page,
        "Thousand requests a second",
        "As many as one `redis-benchmark` thread makes: where the server is faster than that, the figure is its.",
        outcomes,
        |figures| figure(Some(figures.requests_a_second / 1000.0), 0),
        |outcome| outcome.redis.map(|redis| outcome.native.requests_a_second / redis.requests_a_second),
    );
    table(
        &mut page,
        "Latency of a request, p50 / p99 in ms",
        "Of all connections at full load, so mostly waiting in the pipeline.",
        outcomes,
        |figures| format!("{:.2} / {:.2}", figures.median_ms, figures.p99_ms),
        |outcome| outcome.redis.map(|redis| outcome.native.p99_ms / redis.p99_ms),
    );
    let with_state: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.native.bytes_a_key.is_some()).collect();
    table(
        &mut page,
        "Resident bytes a key",
        &format!(
            "Of {} keys, each called once, in a fresh process. A token bucket that is full again is not kept.",
            effort.part(STATE_KEYS)
        ),
        with_state,
        |figures| figure(figures.bytes_a_key, 0),
        |outcome| Some(outcome.native.bytes_a_key? / outcome.redis?.bytes_a_key?),
    );
    page
}

fn table<'o>(
    page: &mut String,
    title: &str,
    note: &str,
    outcomes: impl IntoIterator<Item = &'o Outcome>,
    cell: impl Fn(&Figures) -> String,
    ratio: impl Fn(&Outcome) -> Option<f64>,
) {
    // Writing to a string does not fail.
    let _ =
        write!(page, "\n## {title}\n\n{note}\n\n| command | native | script on Ruvio | script on Redis | ratio |\n");
    page.push_str("| --- | ---: | ---: | ---: | ---: |\n");
    for outcome in outcomes {
        let redis = outcome.redis.as_ref().map_or_else(|| "–".to_owned(), &cell);
        let ratio = figure(ratio(outcome), 2);
        let (native, script) = (cell(&outcome.native), cell(&outcome.script));
        let _ = writeln!(page, "| {} | {native} | {script} | {redis} | {ratio} |", outcome.name);
    }
}
