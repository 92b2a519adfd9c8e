//! Sessions and turns as pages of HTML, for a server on this machine and for files alike.
//!
//! Pure: data goes in, markup comes out. Whatever comes from a model, a repository or a command is
//! escaped by `maud`, and what deceives the eye is shown as a code point. No page has a script or a
//! style of its own: both are files beside it, so that a policy can forbid all others.

pub mod changes;
pub mod chart;
pub mod compare;
pub mod forest;
pub mod graph;
pub mod layout;
pub mod prose;
pub mod search;
pub mod session;
pub mod sessions;
pub mod turn;
pub mod words;
