//! Long random exchanges of sessions.

#[path = "../it/share/random.rs"]
mod random;
