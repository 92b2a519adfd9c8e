//! Commands that only read.

mod bisect_and_compare;
mod blame;
mod browse;
mod find;
mod history;
mod json;
mod log_drawing;
mod overlap;
mod summary;
mod timeline;
mod users_edits;
mod verify;
pub mod web;
mod web_files;
mod widths;
