//! Asks the kernel whether any process has a file open for writing, with a read lease.
//!
//! The kernel grants a read lease only if no process has the file open for writing. A process that
//! opens it for writing later waits until the lease is released, or for
//! `/proc/sys/fs/lease-break-time`. No safe crate offers these commands of `fcntl`, so this file
//! contains unsafe code (docs/decisions/0012-late-writes.md).

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// Milliseconds to wait before each attempt.
const WAITS: [u64; 6] = [0, 1, 2, 4, 8, 16];

/// Whether a process has a file open for writing.
#[derive(Debug)]
pub enum Writers {
    /// No process has, and none can get write access until the lease is dropped.
    Absent(Lease),
    /// Some process has.
    Present,
    /// The kernel cannot say: another user's file, a network file system, or not Linux.
    Unknown,
}

/// A read lease. Dropping it releases the lease.
#[derive(Debug)]
pub struct Lease {
    /// The kernel releases the lease when the last descriptor is closed.
    file: Arc<File>,
}

impl Writers {
    /// Checks an open file. The result keeps it open.
    pub fn of(file: Arc<File>) -> Writers {
        // Between fork and exec, a new process has all descriptors of its parent. Such a writer
        // disappears within milliseconds.
        for wait in WAITS {
            std::thread::sleep(Duration::from_millis(wait));
            match system::take(&file) {
                Ok(true) => return Writers::Absent(Lease { file }),
                Ok(false) => {}
                Err(_) => return Writers::Unknown,
            }
        }
        Writers::Present
    }

    /// Returns `true` if a process has the file open for writing, or is waiting for that.
    pub fn are_present(&self) -> bool {
        match self {
            Writers::Absent(lease) => system::is_wanted(&lease.file),
            Writers::Present => true,
            Writers::Unknown => false,
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd as _;

    // Selects the signal for a broken lease. libc lacks the constant.
    const F_SETSIG: libc::c_int = 10;

    /// Takes a read lease. `false` if a process has the file open for writing.
    pub(super) fn take(file: &File) -> io::Result<bool> {
        // By default the kernel sends SIGIO when another process wants the lease, which would kill
        // TeDDy. SIGURG is ignored by default.
        control(file, F_SETSIG, libc::SIGURG)?;
        match control(file, libc::F_SETLEASE, libc::F_RDLCK) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn is_wanted(file: &File) -> bool {
        // If another process waits, the kernel reports the type that the lease must change to.
        control(file, libc::F_GETLEASE, 0).is_ok_and(|lease| lease != libc::F_RDLCK)
    }

    #[expect(unsafe_code, reason = "no safe crate has these commands of fcntl")]
    fn control(
        file: &File,
        command: libc::c_int,
        argument: libc::c_int,
    ) -> io::Result<libc::c_int> {
        // SAFETY: the descriptor stays open while `file` is borrowed, and these commands take a
        // number, not a pointer.
        let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
        if answer < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(answer)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;

    pub(super) fn take(_file: &File) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

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
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let writer = File::create(&path).unwrap();
        assert!(matches!(
            Writers::of(Arc::new(File::open(&path).unwrap())),
            Writers::Present
        ));
        drop(writer);
        let writers = Writers::of(Arc::new(File::open(&path).unwrap()));
        assert!(matches!(writers, Writers::Absent(_)) && !writers.are_present());
    }

    #[test]
    fn what_a_process_inherits_until_it_has_started_is_no_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = crate::host::process::command("true").status();
                }
            });
            let mut writers = 0;
            for _ in 0..500 {
                std::fs::write(&path, "x").unwrap();
                let of = Writers::of(Arc::new(File::open(&path).unwrap()));
                writers += usize::from(of.are_present());
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(writers, 0);
        });
    }

    #[test]
    fn who_wants_to_write_waits_for_the_lease_and_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "x").unwrap();
        let writers = Writers::of(Arc::new(File::open(&path).unwrap()));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| OpenOptions::new().append(true).open(&path));
            while !writers.are_present() {
                assert!(!writer.is_finished(), "it did not wait");
                std::thread::yield_now();
            }
            drop(writers);
            writer.join().unwrap().unwrap();
        });
    }
}
