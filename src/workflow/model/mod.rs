//! The model of a turn: chosen, opened, paid for and asked.

pub mod agents;
pub mod budget;
pub mod choose;
pub mod pipelines;
pub mod request;
pub mod source;
pub mod spent;
pub mod touched;
