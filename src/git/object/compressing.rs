//! Large new objects that are compressed in threads of their own while the work goes on.

use std::cell::RefCell;
use std::collections::HashMap;
use std::thread::JoinHandle;

use gix::ObjectId;

/// An object as a pack stores it, or why it cannot be compressed.
type Compressed = anyhow::Result<Vec<u8>>;

/// Objects that are being compressed.
#[derive(Default)]
pub(in crate::git) struct Compressing(RefCell<HashMap<ObjectId, JoinHandle<Compressed>>>);

impl Compressing {
    /// Begins with one. Where there is no thread for it, it is not among them.
    pub(super) fn begin(&self, id: ObjectId, work: impl FnOnce() -> Compressed + Send + 'static) {
        if let Ok(begun) = std::thread::Builder::new().spawn(work) {
            self.0.borrow_mut().insert(id, begun);
        }
    }

    /// Takes what others have begun with, which may be these.
    pub(super) fn take_over(&self, others: &Compressing) {
        let begun = others.0.take();
        self.0.borrow_mut().extend(begun);
    }

    /// Waits for one and returns it; nothing if it is not among them.
    pub(super) fn end(&self, id: &ObjectId) -> Option<Compressed> {
        let begun = self.0.borrow_mut().remove(id)?;
        begun.join().ok()
    }

    /// Returns how many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.borrow().len()
    }
}
