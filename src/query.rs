//! Questions about sessions, turns and files. Everything here only reads: it takes no lock, moves no ref,
//! writes no file of the user's, and asks no questions.
//!
//! [`log`] has the row of a turn and [`history`] that of a session; all other lists are made of them.

pub mod blame;
pub mod chains;
pub mod contained;
pub mod find;
pub mod history;
pub mod log;
pub mod paths;
pub mod sum;
pub mod summary;
pub mod view;
