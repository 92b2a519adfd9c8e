//! Renders sessions and turns as HTML, for the local server and for export.
//!
//! Pure: functions from data to markup. `maud` escapes everything that comes from a model, a
//! repository or a command, and invisible characters appear as code points. No page has inline
//! scripts or styles, so its policy can forbid them.

pub mod changes;

pub mod layout;

pub mod served;
pub mod session;
pub mod sessions;
pub mod turn;
