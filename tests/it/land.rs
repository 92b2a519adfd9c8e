//! `land`: commits on the user's branch.

mod by_hand;
mod checkout;
pub mod commits;
mod faults;
mod ignore_case;
mod random;
mod refused;
mod unusual_repositories;
