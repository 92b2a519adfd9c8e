//! Who is writing: asks the kernel whether a program has a file open for writing.
//!
//! A read lease is granted only while nobody has, and whoever wants to write after that waits until
//! the lease is given back. Neither the standard library nor rustix has the call, which makes this
//! a file with unsafe code, as `descriptors` is (docs/decisions/0012-late-writes.md).

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// So many milliseconds are waited for a writer to be gone, before each time that it is looked for.
const WAITS: [u64; 6] = [0, 1, 2, 4, 8, 16];

/// Whether a program has a file open for writing.
#[derive(Debug)]
pub enum Writers {
    /// Nobody has, and nobody will as long as the lease is held.
    Nobody(Lease),
    /// Somebody has.
    Somebody,
    /// The system does not tell: another user's file, a network file system, no Linux.
    Unknown,
}

/// A lease on a file, given back when this is dropped.
#[derive(Debug)]
pub struct Lease {
    /// The file.
    file: Arc<File>,
}

impl Writers {
    /// Asks about an open file; the answer keeps it open.
    pub fn of(file: Arc<File>) -> Writers {
        // A process that is just being started has all descriptors of the one that starts it, until
        // its program runs: such a writer is gone in a moment.
        for wait in WAITS {
            std::thread::sleep(Duration::from_millis(wait));
            match system::take(&file) {
                Ok(true) => return Writers::Nobody(Lease { file }),
                Ok(false) => {}
                Err(_) => return Writers::Unknown,
            }
        }
        Writers::Somebody
    }

    /// Returns whether somebody is known to write, or waits to.
    pub fn are_there(&self) -> bool {
        match self {
            Writers::Nobody(lease) => system::is_wanted(&lease.file),
            Writers::Somebody => true,
            Writers::Unknown => false,
        }
    }
}

/// The calls on Linux.
#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd as _;

    /// Chooses the signal of a lease; the crate has no name for it.
    const F_SETSIG: libc::c_int = 10;

    /// Takes a read lease; false where somebody has the file open for writing.
    pub(super) fn take(file: &File) -> io::Result<bool> {
        // By default the kernel tells with SIGIO that somebody waits, which would end the process.
        control(file, F_SETSIG, libc::SIGURG)?;
        match control(file, libc::F_SETLEASE, libc::F_RDLCK) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns whether somebody waits for the lease to end.
    pub(super) fn is_wanted(file: &File) -> bool {
        control(file, libc::F_GETLEASE, 0).is_ok_and(|lease| lease != libc::F_RDLCK)
    }

    /// Calls `fcntl` with a number.
    #[expect(unsafe_code, reason = "no safe crate has these commands of fcntl")]
    fn control(
        file: &File,
        command: libc::c_int,
        argument: libc::c_int,
    ) -> io::Result<libc::c_int> {
        // SAFETY: the descriptor is open as long as `file` is borrowed, and the commands that are
        // given here take a number and no pointer.
        let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
        if answer < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(answer)
        }
    }
}

/// The calls elsewhere: there are none.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;

    /// Says that there is no such call.
    pub(super) fn take(_file: &File) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns false: no lease was taken.
    pub(super) fn is_wanted(_file: &File) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn a_file_that_is_open_for_writing_has_a_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let writer = File::create(&path).unwrap();
        assert!(matches!(
            Writers::of(Arc::new(File::open(&path).unwrap())),
            Writers::Somebody
        ));
        drop(writer);
        let quiet = Writers::of(Arc::new(File::open(&path).unwrap()));
        assert!(matches!(quiet, Writers::Nobody(_)) && !quiet.are_there());
    }

    #[test]
    fn what_a_process_inherits_until_it_has_started_is_no_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = crate::host::process::command("true").status();
                }
            });
            let mut writers = 0;
            for _ in 0..2000 {
                std::fs::write(&path, "x").unwrap();
                let of = Writers::of(Arc::new(File::open(&path).unwrap()));
                writers += usize::from(of.are_there());
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(writers, 0);
        });
    }

    #[test]
    fn who_wants_to_write_waits_for_the_lease_and_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "x").unwrap();
        let quiet = Writers::of(Arc::new(File::open(&path).unwrap()));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| OpenOptions::new().append(true).open(&path));
            while !quiet.are_there() {
                assert!(!writer.is_finished(), "it did not wait");
                std::thread::yield_now();
            }
            drop(quiet);
            writer.join().unwrap().unwrap();
        });
    }
}
