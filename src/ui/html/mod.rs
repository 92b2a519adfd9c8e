//! Renders sessions and turns as HTML, for the local server and for export.
//!
//! Pure: functions from data to markup. `maud` escapes everything that comes from a model, a
//! repository or a command, and invisible characters appear as code points. No page has inline
//! scripts or styles, so its policy can forbid them.

pub mod changes;
pub mod chart;
pub mod compare;
pub mod forest;
pub mod fragments;
pub mod graph;
pub mod layout;
pub mod prose;
pub mod search;
pub mod session;
pub mod sessions;
pub mod turn;
