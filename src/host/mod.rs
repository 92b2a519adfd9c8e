//! The machine: one effect per file.
