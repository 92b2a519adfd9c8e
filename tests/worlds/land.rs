//! Long random landings, and all faults during a landing.

#[path = "../it/land/faults.rs"]
mod faults;
#[path = "../it/land/random.rs"]
mod random;
