//! Rules for the source code.

#[path = "house/hermetic.rs"]
mod hermetic;
#[path = "house/import_circles.rs"]
mod import_circles;
#[path = "house/language.rs"]
mod language;
#[path = "house/rules.rs"]
pub mod rules;
