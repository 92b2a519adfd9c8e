//! What the running kernel can enforce.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::host::fault;

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

impl Kernel {
    /// Returns what the running kernel has, looked up once.
    pub fn running() -> &'static Kernel {
        static RUNNING: OnceLock<Kernel> = OnceLock::new();
        RUNNING.get_or_init(|| {
            let kernel = Kernel::ask();
            // Older than it is, never newer: what is emulated must be enforceable.
            let older = |interface: String| interface.parse().ok();
            let emulated = fault::emulated("landlock").and_then(older);
            Kernel {
                landlock: emulated.map_or(kernel.landlock, |older: u8| older.min(kernel.landlock)),
                unfiltered: fault::emulated("no-seccomp")
                    .map(|_| "kernel without seccomp".to_owned())
                    .or(kernel.unfiltered),
                namespaces: fault::emulated("no-namespaces").is_none(),
            }
        })
    }

    /// Asks the kernel.
    #[cfg(all(target_os = "linux", feature = "sandbox"))]
    fn ask() -> Kernel {
        Kernel {
            landlock: super::files::interface(),
            unfiltered: super::system_calls::check().err(),
            namespaces: true,
        }
    }

    /// There is nothing to ask.
    #[cfg(not(all(target_os = "linux", feature = "sandbox")))]
    fn ask() -> Kernel {
        Kernel {
            landlock: 0,
            unfiltered: Some("no filter of system calls".to_owned()),
            namespaces: false,
        }
    }
}
