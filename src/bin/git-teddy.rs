//! The same program as `git teddy`.
fn main() {}
