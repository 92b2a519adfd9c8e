//! Sharing sessions: names, bundles, remotes and signatures.

pub mod bundles;
pub mod fetch;
mod ownership;
mod push;
mod random;
mod real_servers;
mod sessions;
mod sign;
