//! Assembles the input for a model: context lists, resources, message, requests.

pub mod edit;
pub mod input;
pub mod lists;
pub mod message;
pub mod pages;
pub mod requests;
