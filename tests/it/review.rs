//! The review and the prompt on a pseudo-terminal.

mod comments;
mod edits;
mod keys;
mod loop_prompt;
mod loop_stops;
mod questions;
mod screens;
mod terminal;
mod transcript;
