//! Sessions in a file and back: bundles of git's with a manifest (`docs/formats/bundle.md`).

pub mod export;
pub mod import;
pub mod manifest;
mod select;
