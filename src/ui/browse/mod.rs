//! `teddy browse`: sessions and turns on a full screen or line by line.
//!
//! [`browser`] holds the state and reacts to keys, without a terminal. [`draw`] renders it,
//! [`source`] reads the repository in two threads, and [`screen`] connects the three. Actions that
//! change something ([`action`]) are run by the caller, with the same previews and questions as the
//! commands.

pub mod action;
pub mod browser;
pub mod detail;
pub mod draw;
pub mod keys;
pub mod linear;
mod panes;
mod rows;
pub mod screen;
pub mod source;
pub mod tabs;
pub mod tree;
pub mod turn_view;

#[cfg(test)]
mod sample;
