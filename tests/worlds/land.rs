//! Long random landings, all faults during a landing, and landings with other programs.

#[path = "../it/land/by_hand.rs"]
mod by_hand;
#[path = "../it/land/faults.rs"]
mod faults;
mod old_git;
#[path = "../it/land/random.rs"]
mod random;
mod tools;
