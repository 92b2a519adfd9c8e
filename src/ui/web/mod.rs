//! Sessions in a browser: who may look, which page an address means, and what is on it.

pub mod address;
pub mod files;
pub mod guard;
pub mod pages;
pub mod site;
