//! The journal: what is under way between a session's ref and the user's files, so that the next
//! call finishes what a crash interrupted.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::name::SessionName;
use crate::git::object::{CommitId, TreeId};
use crate::git::refs;
use crate::host::file::{make_folders, read_regular, read_regular_text, write_atomic, write_cache};

/// The version of the format.
pub const SCHEMA: u32 = 1;
/// A journal is a few hundred bytes; what is longer is none.
const MAX_BYTES: u64 = 64 * 1024;
/// An id and a line end.
const MAX_ID: u64 = 1024;

/// The folder of the notes which turns in progress were made here. It is not called `drafts`: git
/// looks for `teddy/drafts/<session>` below its own folder before it looks for a ref.
const OWN_DRAFTS: &str = "own-drafts";
/// The folder of the notes which turns somebody else made, one empty file for each.
const ADOPTED: &str = "adopted";
/// What that folder was called in earlier versions.
const SHADOWING: &str = "drafts";

/// The intent to move a ref and then bring the user's files along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// The version of the format.
    pub schema: u32,
    /// The operation, a name for its temporary files.
    pub operation: String,
    /// The session, as in its ref.
    pub session: String,
    /// The turn that the ref moves to.
    pub commit: CommitId,
    /// The checkout that is brought along.
    pub workspace: PathBuf,
    /// Its name among its siblings, which it keeps when it is moved.
    #[serde(default)]
    pub worktree: String,
    /// What says which turns are in the files afterwards; a workspace commit if an earlier version
    /// was interrupted.
    #[serde(default)]
    pub published: Option<CommitId>,
    /// Its tree before.
    pub from: TreeId,
    /// Its tree after.
    pub to: TreeId,
}

impl Pending {
    /// Returns whether the names in it are such as are written: what is damaged is put aside, and
    /// is in nobody's way.
    fn is_sound(&self) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        SessionName::from_ref(&self.session).is_ok()
            && self.operation.bytes().all(plain)
            && (self.worktree.is_empty()
                || refs::is_name(&format!("refs/teddy/published/{}", self.worktree)))
    }
}

/// The journal of a repository, below its common git directory.
pub struct Journal {
    /// `<common git directory>/teddy`.
    folder: PathBuf,
}

/// What the journal says.
#[derive(Debug)]
pub enum JournalState {
    /// Nothing is under way.
    None,
    /// This is.
    Pending(Box<Pending>),
    /// The file cannot be read as a journal; it was put aside under this name.
    Damaged(PathBuf),
}

impl Journal {
    /// Opens the journal below `<common git directory>/teddy`.
    pub fn new(teddy_dir: &Path) -> Journal {
        Journal {
            folder: teddy_dir.to_owned(),
        }
    }

    /// Returns whether something is under way, or might be.
    pub fn has_intent(&self) -> bool {
        let found = self.pending().symlink_metadata();
        !found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    }

    /// Returns what is under way. A damaged file is renamed, so that it is reported once.
    ///
    /// # Errors
    /// Where the file cannot be read or renamed.
    pub fn read(&self) -> std::io::Result<JournalState> {
        let path = self.pending();
        let length = match std::fs::symlink_metadata(&path) {
            Ok(metadata) => {
                if metadata.is_file() {
                    metadata.len()
                } else {
                    u64::MAX
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(JournalState::None);
            }
            Err(error) => return Err(error),
        };

        if length <= MAX_BYTES
            && let Ok(pending) = serde_json::from_slice::<Pending>(&read_regular(&path, MAX_BYTES)?)
            && pending.is_sound()
        {
            return Ok(JournalState::Pending(Box::new(pending)));
        }
        Ok(JournalState::Damaged(self.put_aside()?))
    }

    /// Gives the journal another name, so that it is in nobody's way and can be looked at.
    ///
    /// # Errors
    /// Where it cannot be renamed.
    pub fn put_aside(&self) -> std::io::Result<PathBuf> {
        let free = (1..)
            .map(|number| self.folder.join(format!("pending.json.bad-{number}")))
            .find(|path| path.symlink_metadata().is_err());
        let aside = free.unwrap_or_else(|| self.folder.join("pending.json.bad"));
        std::fs::rename(self.pending(), &aside)?;
        Ok(aside)
    }

    /// Writes down what is about to happen, durably.
    ///
    /// # Errors
    /// Where something is under way already, which would be forgotten, or the file cannot be
    /// written.
    pub fn begin(&self, pending: &Pending) -> std::io::Result<()> {
        if self.pending().symlink_metadata().is_ok() {
            return Err(std::io::Error::new(
                std::io::ErrorKind::AlreadyExists,
                "an interrupted turn is not finished yet",
            ));
        }

        make_folders(&self.folder)?;
        write_atomic(&self.pending(), &serde_json::to_vec_pretty(pending)?)
    }

    /// Writes down, durably, that it is done: an intent that came back after a power cut would be
    /// carried out once more, over what the user did since.
    ///
    /// # Errors
    /// Where the file cannot be removed.
    pub fn finish(&self) -> std::io::Result<()> {
        match std::fs::remove_file(self.pending()) {
            Ok(()) => std::fs::File::open(&self.folder)?.sync_all(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Keeps a second copy of a session's tip, for the day on which its ref is damaged.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn keep_tip(&self, session: &SessionName, tip: CommitId) -> std::io::Result<()> {
        let path = self.tip_path(session.as_str());
        make_folders(path.parent().unwrap_or(&self.folder))?;
        write_atomic(&path, format!("{tip}\n").as_bytes())
    }

    /// Notes that somebody else made a turn and those before it: nothing of them was ever brought
    /// to the files of this repository, whatever their worktree is called.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn keep_adopted(&self, turn: CommitId) -> std::io::Result<()> {
        let folder = self.folder.join(ADOPTED);
        make_folders(&folder)?;
        write_cache(&folder.join(turn.to_string()), b"")
    }

    /// Returns whether somebody else made a turn, as far as it was noted when it was adopted.
    pub fn is_adopted(&self, turn: CommitId) -> bool {
        self.folder.join(ADOPTED).join(turn.to_string()).exists()
    }

    /// Notes which turn in progress of a session this user made or accepted. The one `before`,
    /// whose place it takes, stays noted if it was: until the ref has moved it is the one that
    /// waits, and a crash must not make it somebody else's.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn keep_draft(
        &self,
        session: &SessionName,
        draft: CommitId,
        before: Option<CommitId>,
    ) -> std::io::Result<()> {
        let path = self.folder.join(OWN_DRAFTS).join(session.as_str());
        let before = before.filter(|id| self.own_drafts(session).contains(id));
        let lines: String = [draft]
            .into_iter()
            .chain(before)
            .map(|id| format!("{id}\n"))
            .collect();
        make_folders(path.parent().unwrap_or(&self.folder))?;

        // What makes the draft's objects durable, which is before its ref, makes this so, too.
        write_cache(&path, lines.as_bytes())
    }

    /// Forgets which turn in progress of a session was made here, once it is over. What stays names
    /// a commit that no ref leads to any more.
    pub fn forget_draft(&self, session: &SessionName) {
        let _ = std::fs::remove_file(self.folder.join(OWN_DRAFTS).join(session.as_str()));
    }

    /// Moves the notes about turns in progress from where earlier versions had them: there git
    /// takes a file for the ref of the same name.
    pub fn move_old_notes(&self) {
        let (old, new) = (self.folder.join(SHADOWING), self.folder.join(OWN_DRAFTS));
        if std::fs::rename(&old, &new).is_err() {
            // A session that was used meanwhile has a newer note.
            move_below(&old, &new);
        }
    }

    /// Returns the turns in progress that this user made or accepted, the newest first.
    pub fn own_drafts(&self, session: &SessionName) -> Vec<CommitId> {
        let read = |folder: &str| {
            read_regular_text(&self.folder.join(folder).join(session.as_str()), MAX_ID)
        };
        // Where nothing could be written yet the notes are where earlier versions had them.
        let text = read(OWN_DRAFTS).or_else(|_| read(SHADOWING));
        let text = text.unwrap_or_default();

        text.lines()
            .filter_map(|line| line.trim().parse().ok())
            .collect()
    }

    /// Removes the second copy of a session's tip.
    ///
    /// # Errors
    /// Where the file cannot be removed.
    pub fn forget_tip(&self, session: &SessionName) -> std::io::Result<()> {
        match std::fs::remove_file(self.tip_path(session.as_str())) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the second copy of a session's tip.
    pub fn tip(&self, session: &str) -> Option<CommitId> {
        read_regular_text(&self.tip_path(session), MAX_ID)
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    /// Returns the path of a session's second tip.
    fn tip_path(&self, session: &str) -> PathBuf {
        self.folder.join("tips").join(session)
    }

    /// Returns the path of the intent.
    fn pending(&self) -> PathBuf {
        self.folder.join("pending.json")
    }
}

/// Moves the files below a folder to another one, unless they are there already, and removes it.
fn move_below(old: &Path, new: &Path) {
    for entry in std::fs::read_dir(old).into_iter().flatten().flatten() {
        let (from, to) = (entry.path(), new.join(entry.file_name()));
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = std::fs::create_dir(&to);
            move_below(&from, &to);
        } else if to.symlink_metadata().is_ok() {
            let _ = std::fs::remove_file(&from);
        } else {
            let _ = std::fs::rename(&from, &to);
        }
    }

    let _ = std::fs::remove_dir(old);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an intent.
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

    /// Every command that changes something failed with such names, for ever.
    #[test]
    fn a_journal_with_names_that_nobody_writes_is_damaged() {
        let sound = intent(Path::new("/w"), "one-2");
        let check = |change: &dyn Fn(&mut Pending), expected: bool| {
            let mut pending = sound.clone();
            change(&mut pending);
            assert_eq!(pending.is_sound(), expected, "{pending:?}");
        };
        check(&|_| (), true);
        check(&|pending| pending.worktree.clear(), true);
        check(&|pending| pending.operation = "../x".to_owned(), false);
        check(&|pending| pending.session = "../x".to_owned(), false);
        check(&|pending| pending.worktree = "../x".to_owned(), false);
    }

    #[test]
    fn an_intent_is_not_written_over_another() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let journal = Journal::new(folder.path());
        let pending = |operation: &str| intent(folder.path(), operation);
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
        let folder = tempfile::tempdir().expect("a temporary folder");
        let journal = Journal::new(folder.path());
        assert!(matches!(journal.read(), Ok(JournalState::None)));
        std::fs::write(folder.path().join("pending.json"), "{\"schema\":")
            .expect("a writable folder");
        assert!(matches!(journal.read(), Ok(JournalState::Damaged(_))));
        assert!(matches!(journal.read(), Ok(JournalState::None)));
    }
}
