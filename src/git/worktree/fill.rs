//! Reports progress while a worktree is filled, starting after one second.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use gix::progress::Count;

use crate::host::threads::beside;
use crate::host::{fault, interrupt};

const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// Progress of filling a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// Number of files written.
    pub files: usize,
    /// Total number of files.
    pub of: usize,
}

/// Callback for progress. Called with `None` once at the end, if it was called before.
pub type FillWatch<'a> = &'a dyn Fn(Option<Filled>);

/// A worktree that is being filled. Dropping it makes the last call of the callback.
pub(super) struct Filling<'a> {
    watch: FillWatch<'a>,
    of: usize,
    done: Arc<AtomicUsize>,
    /// Time of the next report.
    due: Cell<Instant>,
    told: Cell<bool>,
}

impl<'a> Filling<'a> {
    pub(super) fn begin(watch: FillWatch<'a>, of: usize) -> Filling<'a> {
        let patience = match fault::emulated("no-patience") {
            Some(_) => Duration::ZERO,
            None => PATIENCE,
        };
        Filling {
            watch,
            of,
            done: Arc::default(),
            due: Cell::new(Instant::now() + patience),
            told: Cell::new(false),
        }
    }

    pub(super) fn counter(&self) -> FileCounter {
        FileCounter(Arc::clone(&self.done))
    }

    /// Counts one file. Fails if the user pressed ctrl-c.
    pub(super) fn one_more(&self) -> anyhow::Result<()> {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.look(Instant::now());
        self.is_on()
    }

    /// Runs `work` in another thread and reports progress from this one.
    pub(super) fn during<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let (sender, receiver) = mpsc::channel();
        let other = move || {
            // Closing the channel, also by a panic, ends the loop below.
            let _sender: mpsc::Sender<()> = sender;
            work()
        };
        let look = || {
            while receiver.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                self.look(Instant::now());
            }
        };
        beside(other, look).0
    }

    /// Fails if the user pressed ctrl-c.
    pub(super) fn is_on(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            !interrupt::requested(),
            "interrupted while the files of a worktree were written"
        );
        Ok(())
    }

    fn look(&self, now: Instant) {
        if now < self.due.get() {
            return;
        }

        self.due.set(now + TICK);
        self.told.set(true);
        // gix also counts attribute files that exist already.
        let files = self.done.load(Ordering::Relaxed).min(self.of);
        (self.watch)(Some(Filled { files, of: self.of }));
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        if self.told.get() {
            (self.watch)(None);
        }
    }
}

pub(super) struct FileCounter(Arc<AtomicUsize>);

impl Count for FileCounter {
    fn set(&self, step: usize) {
        self.0.store(step, Ordering::Relaxed);
    }

    fn step(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn inc_by(&self, step: usize) {
        self.0.fetch_add(step, Ordering::Relaxed);
    }

    fn counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn nothing_is_told_of_what_takes_no_second_and_the_end_of_all_that_was() {
        let told = RefCell::new(Vec::new());
        let watch = |filled| told.borrow_mut().push(filled);
        let filling = Filling::begin(&watch, 3);
        let began = Instant::now();
        let after = |milliseconds| filling.look(began + Duration::from_millis(milliseconds));
        filling.one_more().unwrap();
        after(900);
        assert_eq!(*told.borrow(), []);

        after(1100);
        after(1150);
        filling.counter().inc_by(4);
        after(1200);
        drop(filling);
        let at = |files| Some(Filled { files, of: 3 });
        assert_eq!(*told.borrow(), [at(1), at(3), None]);

        told.borrow_mut().clear();
        drop(Filling::begin(&watch, 9));
        assert_eq!(*told.borrow(), []);
    }

    #[test]
    fn work_in_another_thread_comes_back_with_its_result() {
        let filling = Filling::begin(&|_| (), 1);
        assert_eq!(filling.during(|| 7), 7);
    }
}
