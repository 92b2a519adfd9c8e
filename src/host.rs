//! Access to the machine: files, processes, terminal, network. One effect per file.

pub mod clipboard;
pub mod clock;
pub mod dialogue;
pub mod editor;
pub mod env;
pub mod fault;
pub mod file;
pub mod foreground;
pub mod helper;
pub mod http;
pub mod inherited;
pub mod interrupt;

pub mod lease;
pub mod lock;
pub mod machine;

pub mod output;
pub mod overlay;
pub mod panic;

pub mod process;
pub mod raw;
pub mod sandbox;
pub mod screen;
pub mod search;
pub mod serve;
pub mod shell;

pub mod supervisor;

pub mod threads;

pub mod web;
