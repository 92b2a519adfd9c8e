//! Exports and imports sessions as git bundles with a manifest (`docs/formats/bundle.md`).

pub mod export;
pub mod import;
pub mod manifest;
mod select;
