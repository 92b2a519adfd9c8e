//! User interface: terminal, web pages and editors.
//!
//! Everything from a model, a repository or a command reaches the terminal through
//! [`style::StyledLine`], which shows deceptive characters as code points.

pub mod acp;
pub mod ask;
pub mod browse;
pub mod checklist;
pub mod commenting;

pub mod comparison;
pub mod diff;
pub mod draft;
pub mod draw;
pub mod drift;
pub mod editing;
pub mod editor;
pub mod flag_user;
pub mod html;

pub mod key;
pub mod list;
pub mod manual;
pub mod markdown;

pub mod mistakes;
pub mod modify;
pub mod notice;
pub mod overlap;
pub mod pager;
pub mod preview;
pub mod progress;
pub mod prompt;

pub mod race;

pub mod risk;
pub mod setup;
pub mod style;
pub mod summary;
pub mod terminal;
pub mod terminal_user;

pub mod turn_text;
pub mod web;

#[cfg(test)]
mod sample;
