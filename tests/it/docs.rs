//! The documentation shows what the program does.

mod agents_walkthrough;
pub mod archive_walkthrough;
mod ci;
mod copied_commands;
mod data;
pub mod land_walkthrough;
mod looking_walkthrough;
mod prompts;
mod sharing_walkthrough;
mod week_walkthrough;
