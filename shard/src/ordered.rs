//! An ordered sequence with ranks.
