//! Checks the types, number and sizes of a turn's files.

use super::TurnCheck;
use crate::git::object::leaves::TreeLimit;
use crate::git::object::{BlobId, EntryMode, Leaf};
use crate::session::artifact::{self, MAX_MODEL_MESSAGE, MAX_REPORT};
use crate::session::turn::in_next;
use crate::text::path::lossy;

// In bytes, per file.
const MAX_ARTIFACT: u64 = 256 << 20;
// In bytes, for all files together.
const MAX_ARTIFACTS: u64 = 1 << 30;
// Maximum number of files that are reported for one kind of fault.
const MAX_NAMED_ARTIFACTS: usize = 10;

impl TurnCheck<'_> {
    /// Checks the tree and `next/meta.yaml`. Returns `false` if the files are too large to be read.
    pub(super) fn artifacts(&mut self) -> bool {
        let are_readable = match self
            .repository
            .leaves_up_to(self.turn.tree, TreeLimit::SMALL)
        {
            Ok(leaves) => {
                let odd = leaves.iter().filter(|leaf| leaf.mode != EntryMode::File);
                for leaf in odd.take(MAX_NAMED_ARTIFACTS) {
                    let name = lossy(&leaf.path);
                    self.fault("T5", format!("`{name}` is not a plain file"));
                }
                self.sizes(&leaves)
            }
            Err(error) => {
                self.fault("T5", format!("{error:#}"));
                return false;
            }
        };

        match self.turn.next(self.repository) {
            Ok(next)
                if self.turn.number() == 0 && next.parent_turn_id != self.turn.meta.turn_id =>
            {
                self.fault("T6", "`next/meta.yaml` continues another turn");
            }
            Ok(_) => {}
            Err(error) => self.fault("T6", format!("{error:#}")),
        }

        are_readable
    }

    /// Returns `false` if a file is too large to be read.
    fn sizes(&mut self, leaves: &[Leaf]) -> bool {
        let mut all: u64 = 0;
        let mut large = 0;
        for leaf in leaves.iter().filter(|leaf| leaf.mode == EntryMode::File) {
            // Compare sizes before reading any content: a small pack can expand to gigabytes.
            let size = match self.repository.blob_size(BlobId::of(leaf.id)) {
                Ok(size) => size,
                Err(error) => {
                    self.fault("T5", format!("{error:#}"));
                    return false;
                }
            };
            all = all.saturating_add(size);
            let name = lossy(&leaf.path);
            let most = max_artifact_size(&name);
            if size > most && large < MAX_NAMED_ARTIFACTS {
                large += 1;
                self.fault(
                    "T5",
                    format!("`{name}` has {size} bytes, and at most {most} are read of it"),
                );
            }
        }

        if all > MAX_ARTIFACTS {
            self.fault(
                "T5",
                format!("its files have {all} bytes, more than those of a turn can have"),
            );
        }

        large == 0 && all <= MAX_ARTIFACTS
    }
}

fn max_artifact_size(name: &str) -> u64 {
    let messages = [artifact::QUESTION, artifact::CONCLUSION].map(in_next);
    match name {
        artifact::REPORT => MAX_REPORT as u64,
        name if messages.iter().any(|message| message == name) => MAX_MODEL_MESSAGE as u64,
        _ => MAX_ARTIFACT,
    }
}
