//! Long random landings, and every fault in one.

#[path = "../it/land/faults.rs"]
mod faults;
#[path = "../it/land/random.rs"]
mod random;
