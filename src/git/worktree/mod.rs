//! Session worktrees: folders in which plans run, apart from the user's files.
//!
//! One per session, outside the repository, kept between turns: a switch writes only what differs,
//! and what is ignored (a build's caches) stays. Until a command needs it, it has only a part of
//! the files. One that is lost or damaged is made anew. Where
//! none can be made that is an error, and never a reason to run in the user's files.
//!
//! git does not know them: what is remembered of one lies in `.git/teddy/worktrees`, where no
//! command can write, and only while commands run has it a `.git` of its own ([`private`]). What a
//! command could write decides nothing but what the plan's result is.

pub mod bring;
pub mod fill;
pub mod former;
mod glance;
mod index;
mod index_form;
mod judge;
pub mod layer;
mod leftovers;
pub mod moved;
mod part;
mod path;
pub mod private;
mod record;
mod root;
mod share;
mod sparse;
mod survey;
mod switch;
mod to_commit;
pub mod unstored;

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;

use self::fill::FillWatch;
use self::layer::index::LayerIndex;
use self::record::WorktreeRecord;
use self::root::{WorktreeRoot, is_plain};
use super::repository::Repository;
use crate::git::object::{CommitId, TreeId};
use crate::host::file::{FileKind, Root, read_regular};
use crate::host::interrupt;

/// More bytes than this of an index are not read.
const MAX_INDEX: u64 = 256 << 20;

/// How much of a worktree must be as its commit says.
#[derive(Debug, Clone, Copy)]
pub enum Extent<'a> {
    /// Everything: a command sees every file.
    Whole,
    /// These paths: nothing else is looked at, and nothing else is brought to a worktree that is
    /// not whole. One that is stays so: what differs from the commit before is brought.
    Paths(&'a [Vec<u8>]),
}

/// What a worktree is brought to.
#[derive(Clone, Copy)]
pub struct WorktreeAim<'a> {
    /// The commit.
    pub at: CommitId,
    /// How much of it must be there.
    pub extent: Extent<'a>,
    /// Who hears how far it is.
    pub watch: FillWatch<'a>,
}

impl<'a> WorktreeAim<'a> {
    /// Returns an aim that nobody waits for.
    pub fn unwatched(at: CommitId, extent: Extent<'a>) -> WorktreeAim<'a> {
        let watch: FillWatch<'_> = &|_| ();
        WorktreeAim { at, extent, watch }
    }
}

/// A worktree in which the plans of a session run.
pub struct SessionWorktree {
    /// The repository, with this as its worktree and an index of its own.
    pub repository: Repository,
    /// Its top, as commands see it.
    pub path: PathBuf,
    /// Where its files lie: the same, or the layer that takes what commands change.
    files: PathBuf,
    /// What these are a layer over, where they are one.
    below: Option<Below>,
    /// Whether it was made just now, so that nothing ignored is in it.
    pub fresh: bool,
    /// The name of the session's folder.
    session: String,
    /// The folder in which it is.
    root: WorktreeRoot,
    /// What is remembered of it.
    record: WorktreeRecord,
}

/// The user's files, which commands see below a layer.
struct Below {
    /// Their folder.
    files: PathBuf,
    /// The index that commands begin with.
    index: Arc<LayerIndex>,
}

/// A worktree that is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedWorktree {
    /// The session.
    pub session: String,
    /// Its top, which may be lost.
    pub path: PathBuf,
    /// The session's layer, which may not be there.
    pub layer: PathBuf,
    /// The file that was written when it was used.
    pub used: PathBuf,
}

/// Returns the session's worktree below `root`, as far as `aim` says with the files of its commit
/// and nothing else that is not ignored; makes it where there is none. The caller holds the
/// session's lock.
///
/// # Errors
/// Where something else is in its place, or a file cannot be read or written.
pub fn session_worktree(
    repository: &Repository,
    root: &Path,
    session: &str,
    aim: WorktreeAim<'_>,
) -> anyhow::Result<SessionWorktree> {
    is_plain_session(session)?;
    let root = WorktreeRoot::make(root, &repository.common_dir())?;
    let path = root.place(session);
    let during = || {
        format!(
            "the worktree of session `{session}` at `{}`",
            path.display()
        )
    };

    former::take_over(repository, &root, session).with_context(during)?;
    let record = record::worktree_record(repository, session);
    remove_unknown(&root, &record, session).with_context(during)?;
    let found = make_room(&root, session)?;
    root.clear(session).with_context(during)?;

    // A git directory of a run that was cut short.
    root.remove_git_dir(session).with_context(during)?;
    root.worktree(session).with_context(during)?;
    record.check_index();
    let mut worktree = SessionWorktree {
        repository: repository.with_worktree(&path, &record.index())?,
        record,
        fresh: found == AtPlace::Nothing,
        session: session.to_owned(),
        path: path.clone(),
        files: path.clone(),
        below: None,
        root,
    };

    worktree.bring_to(repository, aim).with_context(during)?;
    Ok(worktree)
}

/// Returns the worktrees of sessions that are remembered, sorted by session.
pub fn session_worktrees(repository: &Repository) -> Vec<RememberedWorktree> {
    let listed = |session: String| {
        let record = record::worktree_record(repository, &session);
        let root = record.root()?;
        Some(RememberedWorktree {
            path: root.join(&session),
            layer: root::layer_place(&root, &session),
            used: record.used(),
            session,
        })
    };
    let sessions = record::recorded_worktrees(repository).into_iter();
    sessions.filter_map(listed).collect()
}

/// Removes the worktree of a session, and what is remembered of it; false where there is none.
/// The caller holds the session's lock.
///
/// # Errors
/// Where it cannot be moved out of the way.
pub fn remove_session_worktree(repository: &Repository, session: &str) -> anyhow::Result<bool> {
    let record = record::worktree_record(repository, session);
    let Some(path) = record.root() else {
        return Ok(false);
    };

    // What was made for another repository, such as the one that this is a copy of, is not ours
    // to remove.
    let root = own_root(repository, &path).filter(|root| root.is_ours(session));
    if let Some(root) = root {
        let during = || format!("removing `{}`", root.place(session).display());
        root.remove_worktree(session).with_context(during)?;
        match root.forget(session) {
            // What is mounted in it is not ours to remove, and stops nobody: tried again later.
            Err(error) if error.kind() == ErrorKind::CrossesDevices => return Ok(true),
            forgotten => forgotten.with_context(during)?,
        }
    }

    record.remove()?;
    Ok(true)
}

/// Puts right what a command or a crash left in a session's worktree, and returns whether
/// anything was. The caller holds the session's lock.
///
/// # Errors
/// Where something cannot be moved out of the way.
pub fn tidy_session_worktree(repository: &Repository, session: &str) -> anyhow::Result<bool> {
    let record = record::worktree_record(repository, session);
    let root = record.root().and_then(|path| own_root(repository, &path));
    let Some(root) = root.filter(|root| root.is_ours(session)) else {
        return Ok(false);
    };
    let left = root.has_leftovers(session);

    if left {
        root.remove_git_dir(session)?;
        root.clear(session)?;
    }

    Ok(left)
}

/// Makes sure that a session's name can be that of a folder.
fn is_plain_session(session: &str) -> anyhow::Result<()> {
    anyhow::ensure!(is_plain(session), "`{session}` cannot name a worktree");
    Ok(())
}

/// Opens the folder of worktrees at a path that was noted.
fn own_root(repository: &Repository, path: &Path) -> Option<WorktreeRoot> {
    WorktreeRoot::open(path, &repository.common_dir())
}

/// Removes a worktree and a layer that are of a repository at this path, and not known to this one:
/// of one that was here before, and had a session of the same name. What git ignores in them is
/// another project's.
fn remove_unknown(
    root: &WorktreeRoot,
    record: &WorktreeRecord,
    session: &str,
) -> anyhow::Result<()> {
    let is_known = record.root().as_deref() == Some(root.path());
    if root.is_ours(session) && !is_known {
        root.remove_worktree(session)?;
        root.remove_layer(session)?;
        record.forget_layer();
    }
    Ok(())
}

/// What is at the place of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtPlace {
    /// Nothing, or an empty folder.
    Nothing,
    /// The worktree.
    Worktree,
}

/// Makes room for a session's worktree, where what is in its place is ours.
fn make_room(root: &WorktreeRoot, session: &str) -> anyhow::Result<AtPlace> {
    let (kind, ours) = (root.look(session)?, root.is_ours(session));
    let foreign = match kind {
        None => return Ok(AtPlace::Nothing),
        Some(FileKind::Folder) if ours => return Ok(AtPlace::Worktree),
        // A folder cannot become anything else but by a command that was not confined.
        Some(_) if ours => {
            root.remove_worktree(session)?;
            return Ok(AtPlace::Nothing);
        }
        Some(FileKind::Folder) if root.worktree(session)?.names()?.is_empty() => {
            return Ok(AtPlace::Nothing);
        }
        Some(FileKind::Folder) => "it is not a worktree of this repository",
        Some(_) => "it is not a directory",
    };
    anyhow::bail!(
        "`{}` is in the way: {foreign}; move it away, or set `worktree.root`",
        root.place(session).display()
    )
}

impl SessionWorktree {
    /// Brings it to a commit; where it resists, as one does that is damaged, it is made anew.
    fn bring_to(&mut self, user: &Repository, aim: WorktreeAim<'_>) -> anyhow::Result<()> {
        self.keep_record()?;
        if self.fresh {
            self.record.forget_files();
            return to_commit::switch(self, user, aim);
        }

        match to_commit::switch(self, user, aim) {
            Ok(()) => Ok(()),
            Err(error) if interrupt::requested() => Err(error),
            Err(_) => self.make_anew(user, aim),
        }
    }

    /// Removes what there is and makes it anew.
    ///
    /// # Errors
    /// Where a file cannot be written, or what there is cannot be moved away.
    pub fn make_anew(&mut self, user: &Repository, aim: WorktreeAim<'_>) -> anyhow::Result<()> {
        self.root.remove_worktree(&self.session)?;
        self.record.forget_files();
        self.root.worktree(&self.session)?;
        self.keep_record()?;
        self.fresh = true;
        to_commit::switch(self, user, aim)
    }

    /// Puts the files right that a set-up changed.
    ///
    /// # Errors
    /// Where a file cannot be read or written.
    pub fn put_right(&self, user: &Repository, aim: WorktreeAim<'_>) -> anyhow::Result<()> {
        to_commit::switch(self, user, aim)
    }

    /// Returns whether its files are a layer over the user's.
    pub fn is_layered(&self) -> bool {
        self.below.is_some()
    }

    /// Returns whether a set-up has run in it.
    pub fn is_set_up(&self, setup: &str) -> bool {
        self.record.setup(self.is_layered()).as_deref() == Some(setup)
    }

    /// Notes that a set-up has run in it.
    ///
    /// # Errors
    /// Where the note cannot be written.
    pub fn keep_setup(&self, setup: &str) -> anyhow::Result<()> {
        Ok(self.record.keep_setup(self.is_layered(), setup)?)
    }

    /// Notes that a turn was recorded, from its files as they were to what the turn made of them.
    /// What is in these is no build's file: it is gone here once it is gone from the user's files,
    /// even if git ignores it by then.
    ///
    /// # Errors
    /// Where the note cannot be written.
    pub fn keep_recorded(&self, [before, after]: [TreeId; 2]) -> anyhow::Result<()> {
        let layered = self.is_layered();
        // A copy has an index, which knows what the turn began with.
        let trees = if layered {
            &[after, before][..]
        } else {
            &[after]
        };
        Ok(self.record.keep_recorded(layered, trees)?)
    }

    /// Returns the trees of the last turn that was recorded here, without `now` and without any
    /// that a run which was killed did not store.
    fn recorded(&self, now: TreeId) -> Vec<TreeId> {
        let mut trees = self.record.recorded(self.is_layered());
        trees.retain(|tree| *tree != now && self.repository.has(tree.0));
        trees
    }

    /// Opens the folder in which its files lie.
    fn top(&self) -> std::io::Result<Root> {
        match self.is_layered() {
            true => Root::open_strictly(&self.files),
            false => self.root.worktree(&self.session),
        }
    }

    /// Returns the index that commands begin with.
    fn index(&self) -> std::io::Result<Cow<'_, [u8]>> {
        match &self.below {
            Some(below) => Ok(Cow::Borrowed(&below.index.bytes)),
            None => read_regular(&self.record.index(), MAX_INDEX).map(Cow::Owned),
        }
    }

    /// Notes that it is ours and used.
    fn keep_record(&self) -> anyhow::Result<()> {
        Ok(self.record.keep_root(self.root.path())?)
    }
}
