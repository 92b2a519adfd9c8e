//! Web server and HTML export of sessions: access control, addresses, pages.

pub mod address;
pub mod files;
pub mod guard;
pub mod pages;
pub mod site;
