//! The machine: one effect per file.

pub mod clock;
pub mod env;
pub mod file;
pub mod interrupt;
pub mod process;
pub mod shell;
