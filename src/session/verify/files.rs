//! The files of a turn: how many there can be, what they are, and how large.

use super::TurnCheck;
use crate::git::object::leaves::TreeLimit;
use crate::git::object::{BlobId, EntryMode, Leaf};
use crate::text::path::lossy;

/// A file of a turn has at most so many bytes.
const MAX_ARTIFACT: u64 = 256 << 20;
/// All files of a turn together have at most so many bytes.
const MAX_ARTIFACTS: u64 = 1 << 30;
/// So many files of a turn are named as wrong in one way.
const MAX_NAMED: usize = 10;

impl TurnCheck<'_> {
    /// The tree has files and nothing else, and the state for the next turn.
    pub(super) fn artifacts(&mut self) {
        match self
            .repository
            .leaves_up_to(self.turn.tree, TreeLimit::SMALL)
        {
            Ok(leaves) => {
                let odd = leaves.iter().filter(|leaf| leaf.mode != EntryMode::File);
                for leaf in odd.take(MAX_NAMED) {
                    let name = lossy(&leaf.path);
                    self.fault("T5", format!("`{name}` is not a plain file"));
                }
                self.sizes(&leaves);
            }
            Err(error) => return self.fault("T5", format!("{error:#}")),
        }

        match self.turn.next(self.repository) {
            Ok(next)
                if self.turn.number() == 0 && next.parent_turn_id != self.turn.meta.turn_id =>
            {
                self.fault("T6", "`next/meta.yaml` continues another turn");
            }
            Ok(_) => {}
            Err(error) => self.fault("T6", format!("{error:#}")),
        }
    }

    /// The files are of a size that can be read: a few bytes of a pack can be gigabytes.
    fn sizes(&mut self, leaves: &[Leaf]) {
        let mut all: u64 = 0;
        let mut large = 0;
        for leaf in leaves.iter().filter(|leaf| leaf.mode == EntryMode::File) {
            let size = match self.repository.blob_size(BlobId::of(leaf.id)) {
                Ok(size) => size,
                Err(error) => return self.fault("T5", format!("{error:#}")),
            };
            all = all.saturating_add(size);
            if size > MAX_ARTIFACT && large < MAX_NAMED {
                large += 1;
                let name = lossy(&leaf.path);
                self.fault(
                    "T5",
                    format!("`{name}` has {size} bytes, more than a file of a turn can have"),
                );
            }
        }

        if all > MAX_ARTIFACTS {
            self.fault(
                "T5",
                format!("its files have {all} bytes, more than those of a turn can have"),
            );
        }
    }
}
