//! Sessions: turns as commits, and their storage.
//!
//! Everything about a turn is a file in its commit. `store` writes turns and drafts. `journal`
//! records an operation between the session's ref and the user's files, so that recovery can
//! complete it.

pub mod artifact;
pub mod comments;
pub mod draft;
pub mod feedback;
pub mod input;
pub mod journal;
pub mod limited;

pub mod bare;
pub mod meta;
pub mod name;
pub mod publication;
pub mod report;
pub mod requests;
pub mod signature;
pub mod store;
pub mod transition;
pub mod turn;
pub mod verify;
