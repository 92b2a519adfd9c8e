//! Text as values: paths, fences, Markdown structure, edits, differences.
//!
//! Pure: nothing here reads a file, a clock or an environment.

pub mod diff;
pub mod edit;
pub mod fence;
pub mod link;
pub mod markdown;
pub mod path;
pub mod redact;

pub mod resource;
pub mod visible;
