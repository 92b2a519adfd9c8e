//! The `teddy` program.
fn main() {}
