//! Data for displaying sessions and turns, in the terminal or a browser. Everything is bounded.
//! Unreadable parts are named and do not hide the rest.

pub mod plain;
pub mod session_page;
pub mod timeline;
pub mod turn_page;
