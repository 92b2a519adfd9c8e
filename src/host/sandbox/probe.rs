//! Detects the features of the running kernel.

use std::sync::OnceLock;

use super::kernel::Kernel;
use crate::host::fault;

impl Kernel {
    /// Returns the features of the running kernel, detected once.
    pub fn running() -> &'static Kernel {
        static RUNNING: OnceLock<Kernel> = OnceLock::new();

        RUNNING.get_or_init(|| {
            let kernel = Kernel::ask();
            // An emulated version can only be older: every reported feature must be enforceable.
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

    #[cfg(all(target_os = "linux", feature = "sandbox"))]
    fn ask() -> Kernel {
        Kernel {
            landlock: super::files::interface(),
            unfiltered: super::system_calls::check().err(),
            namespaces: true,
        }
    }

    #[cfg(not(all(target_os = "linux", feature = "sandbox")))]
    fn ask() -> Kernel {
        Kernel {
            landlock: 0,
            unfiltered: Some("no filter of system calls".to_owned()),
            namespaces: false,
        }
    }
}
