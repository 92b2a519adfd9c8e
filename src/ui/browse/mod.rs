//! `teddy browse`: sessions and turns on a full screen, or line by line.
//!
//! [`browser`] is what is shown and what keys make of it, without a terminal; [`draw`] puts it on
//! a screen; [`source`] reads in threads of its own; [`screen`] connects them. What changes
//! something is done by whoever started it ([`deed`]), with the previews and questions of the
//! commands.

pub mod browser;
pub mod deed;
pub mod detail;
pub mod draw;
pub mod keys;
pub mod linear;
mod panes;
mod rows;
pub mod screen;
pub mod sheet;
pub mod source;
pub mod tabs;
pub mod tree;

#[cfg(test)]
mod sample;
