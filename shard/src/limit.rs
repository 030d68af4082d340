//! The state of rate limiters.

/// Bytes of a fixed-window limiter's state.
pub const FIXED_BYTES: usize = 8;
/// Bytes of a sliding-window limiter's state.
pub const SLIDING_BYTES: usize = 24;
/// Bytes of a token bucket's state.
pub const TOKEN_BYTES: usize = 24;
