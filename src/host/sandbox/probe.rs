//! The running kernel, asked once for what it can enforce.

use std::sync::OnceLock;

use super::kernel::Kernel;
use crate::host::fault;

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
