//! What a turn gives to the model: the context lists, what stands in them, the message, the input.

pub mod artifacts;
pub mod collect;
pub mod edit;
pub mod input;
pub mod lists;
pub mod message;
pub mod pages;
pub mod requests;
pub mod teddy_files;
