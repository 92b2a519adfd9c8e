//! Turns as commits: the values of a session, and where they are stored.
//!
//! Everything that a turn was made of is a file of its commit; the refs that keep it are moved by
//! `store` alone, and `journal` finishes what a crash left between the ref and the user's files.

pub mod artifact;
pub mod draft;
pub mod feedback;
pub mod input;
pub mod journal;
pub mod limited;
pub mod message;
pub mod meta;
pub mod name;
pub mod publication;
pub mod record;
pub mod report;
pub mod requests;
pub mod signature;
pub mod store;
pub mod transition;
pub mod turn;
pub mod verify;
