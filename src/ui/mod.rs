//! The terminal: what a person sees of a plan and how the person answers.
//!
//! Whatever comes from a model, a repository or a command reaches the screen through
//! [`style::Line`], which shows every deceptive character as a code point.

pub mod style;

pub mod diff;

pub mod manual;
pub mod markdown;

pub mod risk;

pub mod summary;

pub mod mistakes;
pub mod progress;

pub mod quiet;

pub mod key;

pub mod input;

pub mod terminal;

pub mod ask;

pub mod editor;

pub mod viewer;

pub mod checklist;
pub mod choose;

pub mod draft;

pub mod preview;

pub mod draw;

pub mod reader;

pub mod editing;

pub mod desk;

pub mod modify;

pub mod person;

#[cfg(test)]
mod sample;
