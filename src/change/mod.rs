//! A change: from proposal through challenge to implementation, review and archive.
//!
//! Everything but the store is pure. A change is a ref, each step a commit whose tree has the
//! state and the documents; what may happen next is decided by one field, the phase.

pub mod answer;
pub mod document;
pub mod entry;
pub mod error;
pub mod finding;
pub mod id;
pub mod message;
pub mod phase;
pub mod proposal;
pub mod review;
pub mod section;
pub mod spec;
pub mod state;
pub mod store;
pub mod tasks;
pub mod usage;
pub mod verdict;
