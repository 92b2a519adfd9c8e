//! Changes: proposal, challenge, implementation, review and archive.
//!
//! A change is a ref, and each step is a commit whose tree contains the state and the documents.
//! The phase alone decides which step can follow (`phase`), and a table says
//! what a document must contain (`shape`). Everything except the store is pure.

pub mod document;
pub mod finding;
pub mod id;
pub mod phase;
pub mod proposal;
pub mod review;
pub mod section;
pub mod shape;
pub mod spec;
pub mod state;
pub mod store;
pub mod tasks;
