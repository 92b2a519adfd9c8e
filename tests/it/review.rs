//! The review and the prompt at a pseudo-terminal.

mod edits;
mod keys;
mod loop_prompt;
mod questions;
mod screens;
mod terminal;
