//! Context lists: one resource a line.

/// Returns the entries of a list, without comments and blank lines.
pub fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}
