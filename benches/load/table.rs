//! Tables in Markdown, aligned, so that they can be read here and pasted into a document.

/// A table that prints its rows when all are there.
pub struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column names.
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Table {
        Table { title: title.into(), rows: vec![columns.iter().map(|&name| name.to_owned()).collect()] }
    }

    /// Adds a row, as many cells as there are columns.
    pub fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        assert_eq!(COLUMNS, self.rows[0].len(), "a cell a column");
        self.rows.push(cells.into());
    }

    /// Prints it.
    pub fn print(&self) {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        println!("\n{}\n", self.title);
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
            println!("| {} |", cells.join(" | "));
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
                println!("| {} |", rules.join(" | "));
            }
        }
    }
}

/// What a figure should be.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
    /// No target.
    None,
}

impl Target {
    /// Two cells: the target, and whether `figure` meets it.
    pub fn cells(self, figure: Option<f64>) -> (String, String) {
        let (text, met) = match self {
            Target::AtMost(most) => (format!("≤ {most}"), figure.map(|figure| figure <= most)),
            Target::AtLeast(least) => (format!("≥ {least}"), figure.map(|figure| figure >= least)),
            Target::None => (String::new(), None),
        };
        let met = met.map_or("", |met| if met { "yes" } else { "no" });
        (text, met.to_owned())
    }
}

/// A cell for a figure that may be missing.
pub fn figure(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

/// The median; `None` of nothing.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        len if len % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}
