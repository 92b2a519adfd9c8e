//! Chooses, opens and asks the model of a turn, within the cost limit.

pub mod agents;
pub mod budget;
pub mod choose;
pub mod pipelines;
pub mod request;
