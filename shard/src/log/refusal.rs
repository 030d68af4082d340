//! Why what a file holds is not taken over.

use std::fmt;

use super::VERSION;

/// Why what a file holds is not taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not what was written; the text says what is wrong.
    Damaged(String),
    /// The file has another version of the format.
    Version(u32),
    /// It has keys in this database, and there are not so many.
    Database(usize),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Damaged(problem) => formatter.write_str(problem),
            Refusal::Version(version) => {
                write!(formatter, "its format has version {version}; this program reads version {VERSION}")
            }
            Refusal::Database(database) => {
                write!(formatter, "it has keys in database {database}; start with more than {database} --databases")
            }
        }
    }
}

impl From<String> for Refusal {
    fn from(problem: String) -> Refusal {
        Refusal::Damaged(problem)
    }
}

impl From<&str> for Refusal {
    fn from(problem: &str) -> Refusal {
        Refusal::Damaged(problem.to_owned())
    }
}
