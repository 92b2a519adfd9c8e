//! `land`: commits on the user's branch.

pub mod commits;
mod faults;
mod random;
mod refused;
mod unusual_repositories;
