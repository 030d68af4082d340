//! Scripts: Lua, and the libraries it comes with.

pub mod libraries;
