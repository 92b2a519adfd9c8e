//! Compresses large new objects in background threads.

use std::cell::RefCell;
use std::collections::HashMap;
use std::thread::JoinHandle;

use gix::ObjectId;

type Compressed = anyhow::Result<Vec<u8>>;

#[derive(Default)]
pub(in crate::git) struct Compressing(RefCell<HashMap<ObjectId, JoinHandle<Compressed>>>);

impl Compressing {
    /// Starts to compress an object. Without a new thread, it is compressed later.
    pub(super) fn begin(&self, id: ObjectId, work: impl FnOnce() -> Compressed + Send + 'static) {
        if let Ok(thread) = std::thread::Builder::new().spawn(work) {
            self.0.borrow_mut().insert(id, thread);
        }
    }

    /// Takes over the objects that another handle has started to compress.
    pub(super) fn absorb(&self, others: &Compressing) {
        let threads = others.0.take();
        self.0.borrow_mut().extend(threads);
    }

    /// Waits for an object; `None` if it was not started.
    pub(super) fn end(&self, id: &ObjectId) -> Option<Compressed> {
        let thread = self.0.borrow_mut().remove(id)?;
        thread.join().ok()
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.borrow().len()
    }
}
