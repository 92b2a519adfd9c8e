//! Keeps objects: protects them until a ref reaches them, and flushes them before.
//!
//! After a crash, damaged objects are moved away.

pub mod damaged;
pub mod durable;

pub mod pack;
pub mod protect;

pub mod store_access;
