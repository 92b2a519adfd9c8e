//! What keeps objects: they stay until a ref reaches them, and are on the disk before one does.
//!
//! After a crash, what a power cut or another program left of them is found and put aside here.

pub mod corrupt;
pub mod damaged;
pub mod durable;
pub(in crate::git) mod fresh;
pub mod hold;
pub mod missing;
pub mod pack;
pub mod put_back;
pub mod store_access;
pub mod torn_packs;
