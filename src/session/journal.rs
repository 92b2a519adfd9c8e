//! The journal: a durable record of a pending operation, so that the next command can complete what
//! a crash interrupted.
//!
//! There is at most one intent in a repository, under its lock. The journal also has second copies
//! of tips, and which drafts and turns the user made or accepted here. All of it is untrusted:
//! names are validated before they become paths or refs.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::draft::Draft;
use super::name::SessionName;
use crate::git::object::{CommitId, TreeId};
use crate::git::refs;
use crate::host::file::{
    is_out_of_reach, read_regular, read_regular_text, sync_open_file, write_atomic, write_cache,
};

pub const SCHEMA: u32 = 1;
/// A journal has a few hundred bytes.
const MAX_BYTES: u64 = 64 * 1024;
const MAX_ID: u64 = 1024;

// Not `drafts`: git resolves `teddy/drafts/<session>` as a file in its directory before it looks
// for a ref.
const OWN_DRAFTS: &str = "own-drafts";
// Each turn from elsewhere is an empty file in this directory.
const ADOPTED: &str = "adopted";
// The user's choice of a model, by session. Fetched sessions and clones have none.
const MODELS: &str = "models";
const FOREIGN_CONTEXT: &str = "foreign-context";

/// An intent to move a session's ref and then update the user's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    pub schema: u32,
    /// Operation id: part of the names of temporary files.
    pub operation: String,
    pub session: String,
    pub commit: CommitId,
    pub workspace: PathBuf,
    /// Name of the checkout among the repository's worktrees. It stays the same if the checkout
    /// moves.
    #[serde(default)]
    pub worktree: String,
    /// The new publication.
    #[serde(default)]
    pub published: Option<CommitId>,
    pub from: TreeId,
    pub to: TreeId,
}

impl Pending {
    // Names become parts of paths and refs.
    fn is_valid(&self) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        SessionName::from_ref(&self.session).is_ok()
            && self.operation.bytes().all(plain)
            && (self.worktree.is_empty()
                || refs::is_name(&format!("refs/teddy/published/{}", self.worktree)))
    }
}

/// A turn that the user made, or accepted as the newest one of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnTip {
    pub turn: CommitId,
    /// The newest turn before it that another user made and this one did not accept. This user did
    /// not accept the turns before that one, either.
    pub foreign: Option<CommitId>,
    /// The context list can have entries from another user's draft.
    pub has_foreign_context: bool,
}

impl OwnTip {
    pub fn of(turn: CommitId) -> OwnTip {
        OwnTip {
            turn,
            foreign: None,
            has_foreign_context: false,
        }
    }

    fn parse(line: &str) -> Option<OwnTip> {
        let mut words = line.split(' ');
        let mut own = OwnTip::of(words.next()?.parse().ok()?);
        for word in words {
            match word {
                FOREIGN_CONTEXT => own.has_foreign_context = true,
                id => own.foreign = Some(id.parse().ok()?),
            }
        }
        Some(own)
    }
}

impl std::fmt::Display for OwnTip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.turn)?;
        if let Some(foreign) = self.foreign {
            write!(f, " {foreign}")?;
        }
        match self.has_foreign_context {
            true => write!(f, " {FOREIGN_CONTEXT}"),
            false => Ok(()),
        }
    }
}

pub struct Journal {
    dir: PathBuf,
}

#[derive(Debug)]
pub enum JournalState {
    None,
    Pending(Box<Pending>),
    /// The file is not a valid journal and was renamed to this path.
    Damaged(PathBuf),
}

impl Journal {
    pub fn new(teddy_dir: &Path) -> Journal {
        Journal {
            dir: teddy_dir.to_owned(),
        }
    }

    /// Returns `true` if an operation is or might be pending.
    pub fn has_intent(&self) -> bool {
        // Any error but `NotFound` counts as pending: an intent must never be missed.
        let metadata = self.pending().symlink_metadata();
        !metadata.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    }

    /// Renames a damaged file, so it is reported only once.
    pub fn read(&self) -> std::io::Result<JournalState> {
        let path = self.pending();
        let length = match std::fs::symlink_metadata(&path) {
            Ok(metadata) => {
                if metadata.is_file() {
                    metadata.len()
                } else {
                    // A directory or special file counts as damaged.
                    u64::MAX
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(JournalState::None);
            }
            Err(error) => return Err(error),
        };

        // A valid intent has a few hundred bytes; more is damage and is not read.
        if length <= MAX_BYTES
            && let Ok(pending) = serde_json::from_slice::<Pending>(&read_regular(&path, MAX_BYTES)?)
            && pending.is_valid()
        {
            return Ok(JournalState::Pending(Box::new(pending)));
        }
        Ok(JournalState::Damaged(self.quarantine()?))
    }

    /// Renames the journal, so it no longer blocks operations, and returns the new path.
    pub fn quarantine(&self) -> std::io::Result<PathBuf> {
        // Earlier ones stay: `teddy doctor --fix --put-back` can restore them.
        let free = (1..)
            .map(|number| self.dir.join(format!("pending.json.bad-{number}")))
            .find(|path| path.symlink_metadata().is_err());
        let quarantined = free.unwrap_or_else(|| self.dir.join("pending.json.bad"));
        std::fs::rename(self.pending(), &quarantined)?;
        Ok(quarantined)
    }

    /// `None` if it is damaged.
    pub fn read_quarantined(&self, path: &Path) -> std::io::Result<Option<Pending>> {
        let bytes = match read_regular(path, MAX_BYTES) {
            Err(error) if is_out_of_reach(&error) => return Err(error),
            bytes => bytes.unwrap_or_default(),
        };
        let pending = serde_json::from_slice::<Pending>(&bytes).ok();
        Ok(pending.filter(Pending::is_valid))
    }

    /// The caller knows that no intent is pending.
    pub fn restore_quarantined(&self, path: &Path) -> std::io::Result<()> {
        std::fs::rename(path, self.pending())
    }

    /// Records an intent durably. Fails if another one is pending.
    pub fn begin(&self, pending: &Pending) -> std::io::Result<()> {
        if self.pending().symlink_metadata().is_ok() {
            return Err(std::io::Error::new(
                std::io::ErrorKind::AlreadyExists,
                "an interrupted turn is not finished yet",
            ));
        }

        write_atomic(&self.pending(), &serde_json::to_vec_pretty(pending)?)
    }

    /// Removes the intent durably.
    pub fn finish(&self) -> std::io::Result<()> {
        match std::fs::remove_file(self.pending()) {
            // Without the flush a power cut could restore the intent, and recovery would apply it
            // again over the user's later edits.
            Ok(()) => sync_open_file(&std::fs::File::open(&self.dir)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Records which turns at the tip of a session are the user's. Recovery repairs a damaged ref
    /// from this record.
    pub fn record_tips(&self, session: &SessionName, tips: &[OwnTip]) -> std::io::Result<()> {
        let path = self.tip_path(session.as_str());
        let text: String = tips.iter().map(|tip| format!("{tip}\n")).collect();
        write_atomic(&path, text.as_bytes())
    }

    /// No effect if `tip` has no record.
    pub fn record_foreign_context(
        &self,
        session: &SessionName,
        tip: CommitId,
    ) -> std::io::Result<()> {
        let mut tips = self.read_tips(session)?;
        let Some(own) = tips.iter_mut().find(|own| own.turn == tip) else {
            return Ok(());
        };
        own.has_foreign_context = true;
        self.record_tips(session, &tips)
    }

    /// Records that a turn and its ancestors were made elsewhere, so they were never applied to
    /// files of this repository, even if their worktree has the same name.
    pub fn record_adopted(&self, turn: CommitId) -> std::io::Result<()> {
        // Not flushed: if it is lost, `status` only says that there is no record of the turns.
        write_cache(&self.dir.join(ADOPTED).join(turn.to_string()), b"")
    }

    pub fn is_adopted(&self, turn: CommitId) -> bool {
        self.dir.join(ADOPTED).join(turn.to_string()).exists()
    }

    pub fn record_draft(
        &self,
        session: &SessionName,
        draft: CommitId,
        before: Option<CommitId>,
    ) -> std::io::Result<()> {
        let path = self.dir.join(OWN_DRAFTS).join(session.as_str());
        // Until the ref has moved, `before` is still the current draft. A crash must not make it
        // look like someone else's.
        let before = before.filter(|id| self.own_drafts(session).contains(id));
        let lines: String = [draft]
            .into_iter()
            .chain(before)
            .map(|id| format!("{id}\n"))
            .collect();

        // Not flushed: the flush of the draft's objects, which comes before its ref, covers this
        // file.
        write_cache(&path, lines.as_bytes())
    }

    /// A failure is harmless: the remaining ids are unreachable.
    pub fn forget_draft(&self, session: &SessionName) {
        let _ = std::fs::remove_file(self.dir.join(OWN_DRAFTS).join(session.as_str()));
    }

    /// Only the user's own choice goes here: it can name a program to run.
    pub fn record_model(&self, session: &SessionName, model: &str) -> std::io::Result<()> {
        let path = self.dir.join(MODELS).join(session.as_str());
        write_cache(&path, model.as_bytes())
    }

    pub fn model(&self, session: &SessionName) -> Option<String> {
        read_regular_text(&self.dir.join(MODELS).join(session.as_str()), MAX_ID)
            .ok()
            .filter(|model| !model.is_empty())
    }

    pub fn forget_model(&self, session: &SessionName) {
        let _ = std::fs::remove_file(self.dir.join(MODELS).join(session.as_str()));
    }

    /// Whether the user made or accepted the draft of a session. Nobody else can have one that was
    /// never saved.
    pub fn owns_draft(&self, session: &SessionName, draft: &Draft) -> bool {
        let saved = draft.commit;
        saved.is_none_or(|commit| self.own_drafts(session).contains(&commit))
    }

    /// Newest first.
    pub fn own_drafts(&self, session: &SessionName) -> Vec<CommitId> {
        let path = self.dir.join(OWN_DRAFTS).join(session.as_str());
        let text = read_regular_text(&path, MAX_ID).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.trim().parse().ok())
            .collect()
    }

    pub fn forget_tip(&self, session: &SessionName) -> std::io::Result<()> {
        match std::fs::remove_file(self.tip_path(session.as_str())) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// `None` if another user made the newest turn of the session, `tip`.
    pub fn own_tip(&self, session: &SessionName, tip: CommitId) -> Option<OwnTip> {
        let tips = self.read_tips(session).ok()?;
        tips.into_iter().find(|own| own.turn == tip)
    }

    /// Newest first. Fails if the record exists and cannot be read.
    pub fn read_tips(&self, session: &SessionName) -> std::io::Result<Vec<OwnTip>> {
        let text = match read_regular_text(&self.tip_path(session.as_str()), MAX_ID) {
            Err(error) if is_out_of_reach(&error) => return Err(error),
            text => text.unwrap_or_default(),
        };
        let tips: Option<Vec<OwnTip>> = text.lines().map(OwnTip::parse).collect();
        Ok(tips.unwrap_or_default())
    }

    fn tip_path(&self, session: &str) -> PathBuf {
        self.dir.join("tips").join(session)
    }

    fn pending(&self) -> PathBuf {
        self.dir.join("pending.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(workspace: &Path, operation: &str) -> Pending {
        let id = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let (commit, tree) = (id.parse().expect("an id"), id.parse().expect("an id"));
        Pending {
            schema: SCHEMA,
            operation: operation.to_owned(),
            session: "a".to_owned(),
            commit,
            workspace: workspace.to_owned(),
            worktree: "main".to_owned(),
            published: None,
            from: tree,
            to: tree,
        }
    }

    /// Regression: such names made every writing command fail.
    #[test]
    fn a_journal_with_names_that_nobody_writes_is_damaged() {
        let valid = intent(Path::new("/w"), "one-2");
        let check = |change: &dyn Fn(&mut Pending), expected: bool| {
            let mut pending = valid.clone();
            change(&mut pending);
            assert_eq!(pending.is_valid(), expected, "{pending:?}");
        };
        check(&|_| (), true);
        check(&|pending| pending.worktree.clear(), true);
        check(&|pending| pending.operation = "../x".to_owned(), false);
        check(&|pending| pending.session = "../x".to_owned(), false);
        check(&|pending| pending.worktree = "../x".to_owned(), false);
    }

    #[test]
    fn an_intent_is_not_written_over_another() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let journal = Journal::new(dir.path());
        let pending = |operation: &str| intent(dir.path(), operation);
        journal
            .begin(&pending("one"))
            .expect("nothing is under way");
        assert!(journal.begin(&pending("two")).is_err());
        assert!(
            matches!(journal.read(), Ok(JournalState::Pending(under_way)) if under_way.operation == "one")
        );
        journal.finish().expect("it is done");
        journal
            .begin(&pending("two"))
            .expect("nothing is under way");
    }

    #[test]
    fn a_damaged_journal_is_put_aside_once() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let journal = Journal::new(dir.path());
        assert!(matches!(journal.read(), Ok(JournalState::None)));
        std::fs::write(dir.path().join("pending.json"), "{\"schema\":").expect("a writable folder");
        assert!(matches!(journal.read(), Ok(JournalState::Damaged(_))));
        assert!(matches!(journal.read(), Ok(JournalState::None)));
    }
}
