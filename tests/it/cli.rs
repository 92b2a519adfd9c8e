//! The command line: help, messages and first use.

mod catalogue;
pub mod change;
mod completions;
mod demo;
mod first_use;
mod man_pages;
mod tokens;
mod typing_mistakes;
mod user_mistakes;
