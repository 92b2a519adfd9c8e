//! Speed, as ratios against git.
fn main() {}
