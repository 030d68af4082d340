//! TEMP
/// TEMP
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    pattern == text
}
