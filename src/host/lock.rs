//! The repository lock, and the locks of sessions: an exclusive `flock` on a file `lock`.
//!
//! The kernel releases it when the holder ends, so a crashed process never blocks the next one. The
//! file contains the holder's name. It is emptied on release, so a file that is not empty shows
//! that the previous holder crashed. Readers do not take a lock.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::host::file::{open_own, open_regular, read_regular_text};
use crate::host::interrupt;

/// Default time to wait for a lock.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// In seconds.
const PATIENCE_VARIABLE: &str = "TEDDY_LOCK_TIMEOUT";
const PAUSE: Duration = Duration::from_millis(25);
/// TeDDy reports the holder of the lock after this time.
const SILENCE: Duration = Duration::from_secs(1);
static TELLER: OnceLock<fn(&str)> = OnceLock::new();
/// Holder reported by [`Lock::outlast`]. Supervisors do not write their name.
const KILLED: &str = "a command of a turn that was killed";
const MAX_HOLDER: u64 = 400;

/// A lock. Dropping it releases the lock.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// The previous holder crashed: it did not release the lock.
    pub abandoned: bool,
}

/// Returns how long to wait for a lock: `TEDDY_LOCK_TIMEOUT`, else [`PATIENCE`].
pub fn patience() -> Duration {
    let seconds = super::env::var(PATIENCE_VARIABLE).and_then(|text| text.parse().ok());
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(PATIENCE)
}

/// Sets the function that reports waiting. It gets the holder's name. Later calls have no effect.
pub fn tell_waits(teller: fn(&str)) {
    let _ = TELLER.set(teller);
}

/// Returns the id of the process that holds the lock of a directory, or crashed while holding it.
pub fn holder_of(folder: &Path) -> Option<u32> {
    let text = read_regular_text(&folder.join("lock"), MAX_HOLDER).ok()?;
    text.strip_prefix("process ")?
        .split_once(' ')?
        .0
        .parse()
        .ok()
}

/// Another process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LockHolder {
    /// Its id.
    pub process: u32,
    /// What it says that it does.
    pub command: String,
    /// For how many seconds it has done that.
    pub seconds: u64,
}

/// Returns the other process that holds the lock of a directory and lives. Reads what the holder wrote
/// and takes no lock, which could keep a command from its own.
pub fn living_holder(folder: &Path) -> Option<LockHolder> {
    let path = folder.join("lock");
    let text = read_regular_text(&path, MAX_HOLDER).ok()?;
    let (process, command) = text.strip_prefix("process ")?.split_once(" (")?;
    let process: u32 = process.parse().ok()?;
    let id = rustix::process::Pid::from_raw(i32::try_from(process).ok()?)?;
    let lives = match rustix::process::test_kill_process(id) {
        Ok(()) => true,
        // It is another user's.
        Err(error) => error == rustix::io::Errno::PERM,
    };
    if !lives || process == std::process::id() {
        return None;
    }

    let since = path.metadata().and_then(|metadata| metadata.modified());
    let elapsed = since.ok().and_then(|since| since.elapsed().ok());
    Some(LockHolder {
        process,
        command: command.strip_suffix(')').unwrap_or(command).to_owned(),
        seconds: elapsed.unwrap_or_default().as_secs(),
    })
}

/// Says what this process does now, which holds the lock of a directory. A failure costs only the words
/// in the message of another process.
pub fn note_activity(folder: &Path, command: &str) {
    if holder_of(folder) != Some(std::process::id()) {
        return;
    }
    if let Ok(file) = open_own(&folder.join("lock"), OFlags::RDWR) {
        sign(&file, &holder_text(command));
    }
}

/// Returns what the holder of a lock writes into its file.
fn holder_text(command: &str) -> String {
    format!("process {} ({command})", std::process::id())
}

/// Writes who holds a lock into its file.
fn sign(mut file: &File, holder: &str) {
    let _ = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| file.write_all(holder.as_bytes()));
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it. Exit code 75.
    #[error("busy: {holder} is at work in this repository")]
    Busy {
        /// Process id and command of the holder.
        holder: String,
    },
    /// The user interrupted the wait.
    #[error("interrupted")]
    Interrupted,
    /// The lock file could not be opened or locked.
    #[error("cannot lock `{0}`: {1}")]
    Unusable(std::path::PathBuf, std::io::Error),
}

impl Lock {
    /// Takes the lock `folder/lock`, waiting up to `patience` or until an interrupt. Creates the
    /// directory. Other processes see `command` as the holder.
    pub fn take(folder: &Path, command: &str, patience: Duration) -> Result<Lock, LockError> {
        Lock::wait(folder, command, (patience, Interrupts::End))
    }

    /// Like [`Lock::take`], but an interrupt does not end the wait. For the middle of an operation.
    pub fn insist(folder: &Path, command: &str, patience: Duration) -> Result<Lock, LockError> {
        Lock::wait(folder, command, (patience, Interrupts::Wait))
    }

    /// Waits up to `patience` until no process holds a lock on the file `path`, such as the
    /// commands of a killed process. Succeeds if the file does not exist.
    pub fn outlast(path: &Path, patience: Duration) -> Result<(), LockError> {
        let unusable = |error| LockError::Unusable(path.to_owned(), error);
        // Opening a FIFO would block.
        let file = match open_regular(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unusable(error)),
        };
        wait(&file, (patience, Interrupts::End), || KILLED.to_owned())
            .map_err(|refusal| refusal.about(path))
    }

    /// Returns the lock file for a stream of a child process, which then holds the lock as well:
    /// the lock outlives this process if it is killed.
    pub fn share(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    fn wait(folder: &Path, command: &str, how: (Duration, Interrupts)) -> Result<Lock, LockError> {
        let path = folder.join("lock");
        let file = Lock::open(folder, &path).map_err(|error| Refusal::Io(error).about(&path))?;
        wait(&file, how, || holder(&file)).map_err(|refusal| refusal.about(&path))?;

        // On release the holder empties the file. Content means that it crashed.
        let abandoned = file.metadata().is_ok_and(|metadata| metadata.len() > 0);
        sign(&file, &holder_text(command));
        Ok(Lock { file, abandoned })
    }

    fn open(folder: &Path, path: &Path) -> std::io::Result<File> {
        super::file::make_folders(folder)?;
        open_own(path, OFlags::RDWR)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
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
    (patience, interrupts): (Duration, Interrupts),
    holder: impl Fn() -> String,
) -> Result<(), Refusal> {
    let started = Instant::now();
    let is_deaf = interrupts == Interrupts::Wait || interrupt::requested();
    let mut is_silent = true;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(Refusal::Io(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if !is_deaf && interrupt::requested() {
            return Err(Refusal::Interrupted);
        }
        if started.elapsed() >= patience {
            return Err(Refusal::Busy(holder()));
        }
        if is_silent && started.elapsed() >= SILENCE {
            is_silent = false;
            TELLER.get().inspect(|tell| tell(&holder()));
        }
        std::thread::sleep(PAUSE);
    }
}

enum Refusal {
    Busy(String),
    Interrupted,
    Io(std::io::Error),
}

impl Refusal {
    fn about(self, path: &Path) -> LockError {
        match self {
            Refusal::Busy(holder) => LockError::Busy { holder },
            Refusal::Interrupted => LockError::Interrupted,
            Refusal::Io(error) => LockError::Unusable(path.to_owned(), error),
        }
    }
}

fn holder(mut file: &File) -> String {
    let mut bytes = Vec::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(MAX_HOLDER).read_to_end(&mut bytes));
    match read {
        Ok(length) if length > 0 => {
            crate::text::visible::visible(&String::from_utf8_lossy(&bytes)).into_owned()
        }
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_is_told_who_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let held = Lock::take(folder.path(), "teddy execute", Duration::ZERO).unwrap();
        let error = Lock::take(folder.path(), "teddy new", Duration::ZERO).unwrap_err();
        let holder = format!(
            "busy: process {} (teddy execute) is at work in this repository",
            std::process::id()
        );
        assert_eq!(error.to_string(), holder);
        drop(held);
        Lock::take(folder.path(), "teddy new", Duration::ZERO).unwrap();
    }

    #[test]
    fn a_waiting_taker_gets_it_when_the_holder_ends() {
        let folder = tempfile::tempdir().unwrap();
        let held = Lock::take(folder.path(), "first", Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| Lock::take(folder.path(), "second", PATIENCE));
            drop(held);
            second.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_command_waits_for_half_a_minute_unless_it_is_told_otherwise() {
        assert_eq!(patience(), Duration::from_secs(30));
    }

    #[test]
    fn a_holder_that_crashed_is_noticed_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("lock"), "process 4000000 (execute)").unwrap();
        assert_eq!(holder_of(folder.path()), Some(4_000_000));
        assert!(
            Lock::take(folder.path(), "first", Duration::ZERO)
                .unwrap()
                .abandoned
        );
        assert!(
            !Lock::take(folder.path(), "second", Duration::ZERO)
                .unwrap()
                .abandoned
        );
        assert_eq!(holder_of(folder.path()), None);
    }

    #[test]
    fn a_living_holder_is_another_process_that_has_not_ended() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: String| std::fs::write(folder.path().join("lock"), text).unwrap();
        write(format!("process {} (execute)", std::process::id()));
        assert_eq!(living_holder(folder.path()), None);
        write("process 4000000 (execute)".to_owned());
        assert_eq!(living_holder(folder.path()), None);
        write("process 1 (execute: run)".to_owned());
        let holder = living_holder(folder.path()).unwrap();
        assert_eq!(
            (holder.process, holder.command.as_str()),
            (1, "execute: run")
        );
    }

    #[test]
    fn a_holder_says_what_it_does_now() {
        let folder = tempfile::tempdir().unwrap();
        let held = Lock::take(folder.path(), "execute", Duration::ZERO).unwrap();
        note_activity(folder.path(), "execute: run");
        let text = std::fs::read_to_string(folder.path().join("lock")).unwrap();
        assert_eq!(text, holder_text("execute: run"));
        drop(held);
        note_activity(folder.path(), "execute: run");
        assert_eq!(holder_of(folder.path()), None);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let error = Lock::take(&folder.path().join("file"), "x", Duration::ZERO).unwrap_err();
        assert!(error.to_string().starts_with("cannot lock `"), "{error}");
    }
}
