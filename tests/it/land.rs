//! `land`: commits on the user's branch.

mod by_hand;
mod checkout;
pub mod commits;
mod faults;
mod random;
mod refused;
mod tools;
mod unusual_repositories;
