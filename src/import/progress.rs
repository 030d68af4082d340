//! How far the reading is: a bar on standard error, where that is a terminal.

use std::cell::Cell;
use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Bytes between two changes of the bar.
const STEP_BYTES: u64 = 1 << 20;

/// Prints a line on standard output. The import goes on where nobody reads it.
pub fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// A bar. It draws nothing where standard error is no terminal, and goes when this value does.
pub struct Progress {
    bar: ProgressBar,
    shown: Cell<u64>,
}

impl Progress {
    /// A bar for `len` bytes.
    pub fn new(len: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress { bar, shown: Cell::new(0) }
    }

    /// So many bytes are read.
    pub fn at(&self, offset: u64) {
        if offset - self.shown.get() >= STEP_BYTES {
            self.shown.set(offset);
            self.bar.set_position(offset);
        }
    }

    /// Prints a line on standard output, which stays above the bar.
    pub fn line(&self, text: &str) {
        self.bar.suspend(|| say(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
