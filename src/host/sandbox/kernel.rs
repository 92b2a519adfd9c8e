//! What a kernel can enforce.

use serde::{Deserialize, Serialize};

/// The interface of Landlock from which on files cannot be emptied past it.
pub const TRUNCATE: u8 = 3;
/// The interface from which on signals stay inside.
pub const SCOPE: u8 = 6;

/// What a kernel has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// The newest interface of Landlock that it and we know; 0 without Landlock.
    pub landlock: u8,
    /// Why system calls cannot be filtered.
    pub unfiltered: Option<String>,
    /// Whether a private view of folders is tried.
    pub namespaces: bool,
}
