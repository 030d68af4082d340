//! The plot: bars of CPU time a request, three a case.

use std::fmt::Write;

use crate::measure::Outcome;

const LABELS: f64 = 190.0;
const BARS: f64 = 560.0;
const VALUES: f64 = 70.0;
const TOP: f64 = 64.0;
const BAR: f64 = 9.0;
const GAP: f64 = 11.0;
const BOTTOM: f64 = 16.0;

const SERIES: [(&str, &str); 3] =
    [("native on Ruvio", "#1b7f5c"), ("script on Ruvio", "#7fb8a4"), ("script on Redis", "#b5b5b5")];

/// An SVG picture of the outcomes.
pub fn svg(outcomes: &[Outcome]) -> String {
    let most = outcomes.iter().flat_map(figures).flatten().fold(0.0_f64, f64::max).max(f64::MIN_POSITIVE);
    let case = 3.0 * BAR + GAP;
    let (width, height) = (LABELS + BARS + VALUES, TOP + outcomes.len() as f64 * case + BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"8\" y=\"20\" font-size=\"14\">Server CPU time a request, in µs (less is better)</text>\n"
    );
    // Writing to a string does not fail.
    for (number, (name, colour)) in SERIES.iter().enumerate() {
        let x = LABELS + number as f64 * 150.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"34\" width=\"11\" height=\"11\" fill=\"{colour}\"/><text x=\"{}\" y=\"44\">{name}</text>",
            x + 16.0
        );
    }
    for (number, outcome) in outcomes.iter().enumerate() {
        let top = TOP + number as f64 * case;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            LABELS - 8.0,
            top + 1.5 * BAR + 4.0,
            outcome.name
        );
        for (bar, (figure, (_, colour))) in figures(outcome).into_iter().zip(SERIES).enumerate() {
            let Some(figure) = figure else { continue };
            let (y, length) = (top + bar as f64 * BAR, figure / most * BARS);
            let _ = writeln!(
                svg,
                "<rect x=\"{LABELS}\" y=\"{y}\" width=\"{length:.1}\" height=\"{}\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{}\" font-size=\"9\">{figure:.2}</text>",
                BAR - 1.0,
                LABELS + length + 4.0,
                y + BAR - 2.0
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn figures(outcome: &Outcome) -> [Option<f64>; 3] {
    [Some(outcome.native.cpu_us), Some(outcome.script.cpu_us), outcome.redis.map(|redis| redis.cpu_us)]
}
