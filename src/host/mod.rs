//! The machine: one effect per file.

pub mod boot;
pub mod chance;
pub mod clipboard;
pub mod clock;
pub mod descriptors;
pub mod editor;
pub mod env;
pub mod fault;
pub mod file;
pub mod foreground;
pub mod helper;
pub mod http;
pub mod interrupt;
pub mod lease;
pub mod lock;
pub mod pager;
pub mod process;
pub mod raw;
pub mod sandbox;
pub mod screen;
pub mod search;
pub mod shell;
pub mod stdout;
pub mod supervisor;
pub mod sync;
pub mod web;
