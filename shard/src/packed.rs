//! A sequence of small elements in one byte string.
