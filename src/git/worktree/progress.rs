//! Reports progress while a worktree is filled, starting after one second.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::host::threads::join_both;
use crate::host::{fault, interrupt};

const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteCount {
    pub files: usize,
    pub total: usize,
}

/// Callback for progress. Called with `None` once at the end, if it was called before.
pub type ProgressWatch<'a> = &'a dyn Fn(Option<WriteCount>);

/// A worktree that is being filled. Dropping it makes the last call of the callback.
pub(super) struct WriteProgress<'a> {
    watch: ProgressWatch<'a>,
    total: usize,
    pub(super) written: FileCounter,
    /// Time of the next report.
    due: Cell<Instant>,
    is_reported: Cell<bool>,
}

impl<'a> WriteProgress<'a> {
    pub(super) fn begin(watch: ProgressWatch<'a>, of: usize) -> WriteProgress<'a> {
        let patience = match fault::emulated("no-patience") {
            Some(_) => Duration::ZERO,
            None => PATIENCE,
        };
        WriteProgress {
            watch,
            total: of,
            written: FileCounter::default(),
            due: Cell::new(Instant::now() + patience),
            is_reported: Cell::new(false),
        }
    }

    /// Counts one file. Fails if the user pressed ctrl-c.
    pub(super) fn one_more(&self) -> anyhow::Result<()> {
        let counted = self.written.one_more();
        self.report(Instant::now());
        counted
    }

    /// Runs `work` in another thread and reports progress from this one.
    pub(super) fn during<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let (sender, receiver) = mpsc::channel();
        let other = move || {
            // Closing the channel, also by a panic, ends the loop below.
            let _sender: mpsc::Sender<()> = sender;
            work()
        };
        let poll = || {
            while receiver.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                self.report(Instant::now());
            }
        };
        join_both(other, poll).0
    }

    fn report(&self, now: Instant) {
        if now < self.due.get() {
            return;
        }

        self.due.set(now + TICK);
        self.is_reported.set(true);
        let files = self.written.0.load(Ordering::Relaxed);
        (self.watch)(Some(WriteCount {
            files,
            total: self.total,
        }));
    }
}

impl Drop for WriteProgress<'_> {
    fn drop(&mut self) {
        if self.is_reported.get() {
            (self.watch)(None);
        }
    }
}

/// Number of written files, for several threads.
#[derive(Default)]
pub(super) struct FileCounter(AtomicUsize);

impl FileCounter {
    /// Counts one file. Fails if the user pressed ctrl-c.
    pub(super) fn one_more(&self) -> anyhow::Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        anyhow::ensure!(
            !interrupt::requested(),
            "interrupted while the files of a worktree were written"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn nothing_is_told_of_what_takes_no_second_and_the_end_of_all_that_was() {
        let reported = RefCell::new(Vec::new());
        let watch = |filled| reported.borrow_mut().push(filled);
        let progress = WriteProgress::begin(&watch, 3);
        let began = Instant::now();
        let after = |milliseconds| progress.report(began + Duration::from_millis(milliseconds));
        progress.one_more().unwrap();
        after(900);
        assert_eq!(*reported.borrow(), []);

        after(1100);
        after(1150);
        progress.written.one_more().unwrap();
        progress.written.one_more().unwrap();
        after(1200);
        drop(progress);
        let at = |files| Some(WriteCount { files, total: 3 });
        assert_eq!(*reported.borrow(), [at(1), at(3), None]);

        reported.borrow_mut().clear();
        drop(WriteProgress::begin(&watch, 9));
        assert_eq!(*reported.borrow(), []);
    }

    #[test]
    fn work_in_another_thread_comes_back_with_its_result() {
        let progress = WriteProgress::begin(&|_| (), 1);
        assert_eq!(progress.during(|| 7), 7);
    }
}
