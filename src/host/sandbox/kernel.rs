//! The features of a kernel that the sandbox uses.

use serde::{Deserialize, Serialize};

/// First Landlock ABI that restricts truncation (Linux 6.2).
pub const TRUNCATE_ABI: u8 = 3;
/// First Landlock ABI that restricts signals (Linux 6.12).
pub const SCOPE_ABI: u8 = 6;

/// Features of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Newest Landlock ABI that the kernel and we support, or 0 without Landlock.
    pub landlock: u8,
    /// Reason why system calls cannot be filtered. `None` if they can.
    pub unfiltered: Option<String>,
    /// Whether to try private mount namespaces.
    pub namespaces: bool,
}
