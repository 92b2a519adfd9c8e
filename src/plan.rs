//! The plan: a model's proposal for one turn.
//!
//! `parse -> validate -> (review) -> run`, each a function on these values. A mistake in a plan is
//! a [`diagnostic::Diagnostic`], never an `Err`.

pub mod action;
pub mod damage;
pub mod diagnostic;
pub mod difference;
mod document;
pub mod field;
pub mod line;
pub mod memo;
pub mod parse;
pub mod reading;
pub mod render;
pub mod repair;
pub mod run;
#[cfg(test)]
pub mod samples;
pub mod spelling;
pub mod state;
pub mod validate;

pub use document::{Plan, PlanStatus};
pub use field::Field;
pub use parse::parse;
pub use render::render;
