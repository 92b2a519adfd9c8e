//! The repository lock, and the locks of sessions: an exclusive `flock` on a file `lock`.
//!
//! The kernel releases it when the holder ends, so a crashed process never blocks the next one. The
//! file contains the holder's name. It is emptied on release, so a file that is not empty shows
//! that the previous holder crashed. Readers do not take a lock.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::host::file::{foreign_owner, open_own, open_regular, read_regular_text};
use crate::host::interrupt;
use crate::host::process::is_alive;

/// Default time to wait for a lock.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// In seconds.
const PATIENCE_VARIABLE: &str = "TEDDY_LOCK_TIMEOUT";
/// Pauses between two attempts double from the first to the last: most holders need few milliseconds.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(25);
/// TeDDy reports the holder of the lock after this time.
const SILENCE: Duration = Duration::from_secs(1);
static WAIT_REPORTER: OnceLock<fn(&str)> = OnceLock::new();
/// Holder reported by [`Lock::wait_released`]. Supervisors do not write their name.
const KILLED: &str = "a command of a turn that was killed";
const MAX_HOLDER: u64 = 400;

/// A lock. Dropping it releases the lock.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// The previous holder crashed: it did not release the lock.
    pub holder_crashed: bool,
}

/// Returns how long to wait for a lock: `TEDDY_LOCK_TIMEOUT`, else [`PATIENCE`].
pub fn patience() -> Duration {
    let seconds = super::env::var(PATIENCE_VARIABLE).and_then(|text| text.parse().ok());
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(PATIENCE)
}

/// Sets the function that reports waiting. It gets the holder's name. Later calls have no effect.
pub fn report_waits(reporter: fn(&str)) {
    let _ = WAIT_REPORTER.set(reporter);
}

/// Returns the id of the process that holds the lock of a directory, or crashed while holding it.
pub fn holder_of(dir: &Path) -> Option<u32> {
    let text = read_regular_text(&dir.join("lock"), MAX_HOLDER).ok()?;
    Some(parse_holder(&text)?.0)
}

/// Process and command of a holder's name.
fn parse_holder(name: &str) -> Option<(u32, &str)> {
    let (process, command) = name.strip_prefix("process ")?.split_once(' ')?;
    Some((process.parse().ok()?, command))
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LockHolder {
    pub process: u32,
    /// Its own description of its work.
    pub command: String,
    /// How long it has done that, in seconds.
    pub seconds: u64,
    /// Stopped by a signal, such as ctrl-z. It continues only on SIGCONT.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// Returns the living process that holds the lock of a directory, unless it is this one. Reads its
/// note and takes no lock, which could block another command.
pub fn living_holder(dir: &Path) -> Option<LockHolder> {
    let path = dir.join("lock");
    let text = read_regular_text(&path, MAX_HOLDER).ok()?;
    let (process, command) = parse_holder(&text)?;
    let command = command.strip_prefix('(')?;
    if !is_alive(process) || process == std::process::id() {
        return None;
    }

    let since = path.metadata().and_then(|metadata| metadata.modified());
    let elapsed = since.ok().and_then(|since| since.elapsed().ok());
    Some(LockHolder {
        process,
        command: command.strip_suffix(')').unwrap_or(command).to_owned(),
        seconds: elapsed.unwrap_or_default().as_secs(),
        stopped: is_stopped(process),
    })
}

/// Returns the process of a holder's name if it is stopped.
pub fn stopped_process(holder: &str) -> Option<u32> {
    let (process, _) = parse_holder(holder)?;
    is_stopped(process).then_some(process)
}

/// Only Linux tells; elsewhere a stopped process counts as running.
fn is_stopped(process: u32) -> bool {
    let line = std::fs::read(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses can contain parentheses itself. The state follows it.
    let end = line.iter().rposition(|&byte| byte == b')');
    end.is_some_and(|end| line.get(end + 2) == Some(&b'T'))
}

/// Notes what this process does while it holds the lock of a directory. Ignores errors: only the
/// message of another process depends on the note.
pub fn note_activity(dir: &Path, command: &str) {
    if holder_of(dir) != Some(std::process::id()) {
        return;
    }
    if let Ok(file) = open_own(&dir.join("lock"), OFlags::RDWR) {
        sign(&file, &holder_text(command));
    }
}

fn holder_text(command: &str) -> String {
    format!("process {} ({command})", std::process::id())
}

fn sign(mut file: &File, holder: &str) {
    let _ = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| file.write_all(holder.as_bytes()));
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it. Exit code 75.
    #[error("busy: {holder} is at work in this repository")]
    Busy {
        /// Process id and command of the holder.
        holder: String,
    },
    #[error("interrupted")]
    Interrupted,
    #[error("cannot lock `{0}`: {1}")]
    Unusable(std::path::PathBuf, std::io::Error),
}

impl Lock {
    /// Takes the lock `dir/lock`, waiting up to `patience` or until an interrupt. Creates the
    /// directory. Other processes see `command` as the holder.
    pub fn take(dir: &Path, command: &str, patience: Duration) -> Result<Lock, LockError> {
        Lock::wait(dir, command, patience, Interrupts::End)
    }

    /// Like [`Lock::take`], but an interrupt does not end the wait. For the middle of an operation.
    pub fn take_uninterrupted(
        dir: &Path,
        command: &str,
        patience: Duration,
    ) -> Result<Lock, LockError> {
        Lock::wait(dir, command, patience, Interrupts::Wait)
    }

    /// Waits up to `patience` until no process holds a lock on the file `path`, such as the
    /// commands of a killed process. Succeeds if the file does not exist.
    pub fn wait_released(path: &Path, patience: Duration) -> Result<(), LockError> {
        // Opening a FIFO would block.
        let file = match open_regular(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(LockError::Unusable(path.to_owned(), error)),
        };
        wait(&file, path, patience, Interrupts::End, || KILLED.to_owned())
    }

    /// Returns the lock file for a stream of a child process, which then holds the lock as well:
    /// the lock outlives this process if it is killed.
    pub fn share(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    fn wait(
        dir: &Path,
        command: &str,
        patience: Duration,
        interrupts: Interrupts,
    ) -> Result<Lock, LockError> {
        let path = dir.join("lock");
        let opened = Lock::open(dir, &path).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => foreign_owner(&path).map_or(error, |owner| {
                std::io::Error::new(ErrorKind::PermissionDenied, owner)
            }),
            _ => error,
        });
        let file = opened.map_err(|error| LockError::Unusable(path.clone(), error))?;
        wait(&file, &path, patience, interrupts, || holder(&file))?;

        // On release the holder empties the file. Content means that it crashed.
        let holder_crashed = file.metadata().is_ok_and(|metadata| metadata.len() > 0);
        sign(&file, &holder_text(command));
        Ok(Lock {
            file,
            holder_crashed,
        })
    }

    fn open(dir: &Path, path: &Path) -> std::io::Result<File> {
        super::file::make_dirs(dir)?;
        // Private: otherwise another user could lock it and block every command.
        open_own(path, OFlags::RDWR)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Emptied before the unlock: afterwards the file belongs to the next holder.
        sign(&self.file, "");
        let _ = self.file.unlock();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interrupts {
    /// Ends the wait, unless it arrived before the wait began: the work that it ended still has to
    /// be recorded.
    End,
    Wait,
}

fn wait(
    file: &File,
    path: &Path,
    patience: Duration,
    interrupts: Interrupts,
    holder: impl Fn() -> String,
) -> Result<(), LockError> {
    let started = Instant::now();
    let ignores_interrupts = interrupts == Interrupts::Wait || interrupt::requested();
    let mut is_silent = true;
    let mut pause = FIRST_PAUSE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => {
                return Err(LockError::Unusable(path.to_owned(), error));
            }
            Err(TryLockError::WouldBlock) => {}
        }
        if !ignores_interrupts && interrupt::requested() {
            return Err(LockError::Interrupted);
        }
        if started.elapsed() >= patience {
            return Err(LockError::Busy { holder: holder() });
        }
        if is_silent && started.elapsed() >= SILENCE {
            is_silent = false;
            WAIT_REPORTER.get().inspect(|report| report(&holder()));
        }
        std::thread::sleep(pause);
        pause = LAST_PAUSE.min(pause * 2);
    }
}

fn holder(mut file: &File) -> String {
    let mut bytes = Vec::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(MAX_HOLDER).read_to_end(&mut bytes));
    match read {
        Ok(length) if length > 0 => {
            crate::text::sanitize::sanitize_line(&String::from_utf8_lossy(&bytes)).into_owned()
        }
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_is_told_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path(), "teddy execute", Duration::ZERO).unwrap();
        let error = Lock::take(dir.path(), "teddy new", Duration::ZERO).unwrap_err();
        let holder = format!(
            "busy: process {} (teddy execute) is at work in this repository",
            std::process::id()
        );
        assert_eq!(error.to_string(), holder);
        drop(lock);
        Lock::take(dir.path(), "teddy new", Duration::ZERO).unwrap();
    }

    #[test]
    fn a_waiting_taker_gets_it_when_the_holder_ends() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path(), "first", Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| Lock::take(dir.path(), "second", PATIENCE));
            drop(lock);
            second.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_command_waits_for_half_a_minute_unless_it_is_told_otherwise() {
        assert_eq!(patience(), Duration::from_secs(30));
    }

    #[test]
    fn a_holder_that_crashed_is_noticed_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("lock"), "process 4000000 (execute)").unwrap();
        assert_eq!(holder_of(dir.path()), Some(4_000_000));
        assert!(
            Lock::take(dir.path(), "first", Duration::ZERO)
                .unwrap()
                .holder_crashed
        );
        assert!(
            !Lock::take(dir.path(), "second", Duration::ZERO)
                .unwrap()
                .holder_crashed
        );
        assert_eq!(holder_of(dir.path()), None);
    }

    #[test]
    fn a_living_holder_is_another_process_that_has_not_ended() {
        let dir = tempfile::tempdir().unwrap();
        let write = |text: String| std::fs::write(dir.path().join("lock"), text).unwrap();
        write(format!("process {} (execute)", std::process::id()));
        assert_eq!(living_holder(dir.path()), None);
        write("process 4000000 (execute)".to_owned());
        assert_eq!(living_holder(dir.path()), None);
        write("process 1 (execute: run)".to_owned());
        let holder = living_holder(dir.path()).unwrap();
        assert_eq!(
            (holder.process, holder.command.as_str()),
            (1, "execute: run")
        );
    }

    #[test]
    fn a_holder_says_what_it_does_now() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path(), "execute", Duration::ZERO).unwrap();
        note_activity(dir.path(), "execute: run");
        let text = std::fs::read_to_string(dir.path().join("lock")).unwrap();
        assert_eq!(text, holder_text("execute: run"));
        drop(lock);
        note_activity(dir.path(), "execute: run");
        assert_eq!(holder_of(dir.path()), None);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let error = Lock::take(&dir.path().join("file"), "x", Duration::ZERO).unwrap_err();
        assert!(error.to_string().starts_with("cannot lock `"), "{error}");
    }
}
