//! Refs as files, each with a log, and `packed-refs`: git's format since its beginning, through
//! gix.

mod direct;
mod heal;
mod lock;

use std::cell::Cell;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gix::index::entry::Stat;
use gix::objs::Kind;
use gix::refs::transaction::{Change, PreviousValue, RefEdit, RefLog};
use gix::refs::{FullName, Target};

use self::direct::Direct;
use self::lock::Locked;
use super::store::{All, Expected, HeadTarget, MoveError, RefMove, RefStore, Reference};
use crate::git::During as _;
use crate::git::object::absent;
use crate::git::object::id::CommitId;
use crate::host::clock;
use crate::host::file::{append_regular, is_out_of_reach, make_folders, read_regular};

/// How often a ref is looked up until two looks agree.
const LOOKS: u32 = 5;

/// A log of a million moves is smaller.
const MAX_LOG: u64 = 256 << 20;

/// How many lines of a ref's log are looked at.
const MOST_LINES: usize = 50;

/// The refs of a repository that keeps them as files.
pub(in crate::git) struct FileRefs {
    /// gix's handle.
    gix: gix::Repository,
    /// The git directory that all linked worktrees share, without links.
    common: PathBuf,
    /// The stat of `packed-refs` as it was read last.
    packed: Cell<Option<Stat>>,
}

impl FileRefs {
    /// Takes the refs of a repository.
    pub(in crate::git) fn of(gix: gix::Repository, common: PathBuf) -> FileRefs {
        FileRefs {
            gix,
            common,
            packed: Cell::default(),
        }
    }

    /// Finds a ref, as it is now.
    fn find(&self, name: &str) -> anyhow::Result<Option<gix::Reference<'_>>> {
        // gix tells a new `packed-refs` from the one that it has read by the time alone: of two
        // that git writes within a tick of the clock it would go on with the first, and a turn on
        // an older one would be lost. There may be none.
        let _ = self.gix.refs.force_refresh_packed_buffer();
        self.refuse_endless(name)?;
        self.gix
            .try_find_reference(name)
            .during(format_args!("reading `{name}`"))
    }

    /// Looks once at what a ref holds.
    fn look_at(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        let found = self.find(name)?;
        let id = found.and_then(|reference| Some(reference.target().try_id()?.to_owned()));
        Ok(id.map(CommitId))
    }

    /// Looks a ref up once.
    fn look_up(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        let Some(mut reference) = self.find(name)? else {
            return Ok(None);
        };
        let commit = reference.peel_to_commit();
        let commit = commit.during(format_args!("reading `{name}`"))?;
        Ok(Some(CommitId(commit.id)))
    }

    /// Returns the commit that an object of a ref is or names.
    fn peeled(&self, name: &str, id: CommitId) -> anyhow::Result<CommitId> {
        let during = || format!("reading `{name}`");
        let header = absent::find(|| self.gix.find_header(id.0));
        if header.during(during())?.kind() == Kind::Commit {
            return Ok(id);
        }
        let object = absent::find(|| self.gix.find_object(id.0));
        let commit = object.during(during())?.peel_to_commit();
        Ok(CommitId(commit.during(during())?.id))
    }

    /// Refuses a ref below a link: what lies there is not ours to move.
    fn refuse_links(&self, name: &str) -> anyhow::Result<()> {
        let path = self.common.join(name);
        let folders = path.ancestors().skip(1);
        let ours = self.common.join("refs/teddy");
        let mut folders = folders.take_while(|folder| folder.starts_with(&ours));
        match folders.find(|folder| folder.is_symlink()) {
            Some(link) => anyhow::bail!("`{}` is a symbolic link", link.display()),
            None => Ok(()),
        }
    }

    /// Returns where the log of a ref is.
    fn log_of(&self, name: &str) -> PathBuf {
        self.common.join("logs").join(name)
    }

    /// Adds a line to the log of a ref.
    fn log(
        &self,
        name: &str,
        (old, new): (Option<CommitId>, CommitId),
        message: &str,
    ) -> std::io::Result<()> {
        let path = self.log_of(name);
        make_folders(path.parent().unwrap_or(&path))?;
        let seconds = clock::now().timestamp().as_second();
        let old = old.map_or_else(|| self.gix.object_hash().null(), Into::into);
        let line = format!("{old} {new} TeDDy <teddy@localhost> {seconds} +0000\t{message}\n");
        append_regular(&path, line.as_bytes())
    }
}

impl RefStore for FileRefs {
    fn read(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        if let Direct::Holds(found) = self.read_directly(name)? {
            return found.map(|id| self.peeled(name, id)).transpose();
        }
        let mut found = self.look_up(name)?;

        // While git packs refs, one can leave its own file after `packed-refs` was read and before
        // the file was looked for: it seems to be gone, or older than it is.
        for _ in 0..LOOKS {
            let again = self.look_up(name)?;
            if again == found {
                break;
            }
            found = again;
        }

        Ok(found)
    }

    fn held(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        if let Direct::Holds(found) = self.read_directly(name)? {
            return Ok(found);
        }
        let mut found = self.look_at(name)?;
        // As for `read`.
        for _ in 0..LOOKS {
            let again = self.look_at(name)?;
            if again == found {
                break;
            }
            found = again;
        }

        Ok(found)
    }

    fn list(&self, prefix: &str) -> anyhow::Result<Vec<Reference>> {
        self.refuse_endless_below(prefix)?;
        let platform = self.gix.references().during("listing refs")?;
        let mut found = Vec::new();
        for reference in platform.prefixed(prefix).during("listing refs")? {
            let Ok(reference) = reference else {
                // A damaged ref is left out; one that cannot be read is not damaged.
                self.refuse_unreadable(prefix)?;
                continue;
            };
            if let Some(id) = reference.target().try_id() {
                found.push(Reference {
                    name: reference.name().as_bstr().to_string(),
                    target: CommitId(id.to_owned()),
                });
            }
        }

        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn all(&self) -> anyhow::Result<All> {
        self.refuse_endless_below("refs/")?;
        let platform = self.gix.references().during("listing refs")?;
        let mut all = All::default();
        for reference in platform.all().during("listing refs")? {
            match reference {
                Ok(found) => all
                    .refs
                    .push((found.name().to_owned(), found.target().into_owned())),
                Err(_) => {
                    self.refuse_unreadable("refs/")?;
                    all.damaged = all.damaged.saturating_add(1);
                }
            }
        }

        Ok(all)
    }

    fn head(&self) -> anyhow::Result<HeadTarget> {
        let head = self.gix.head().during("reading HEAD")?;
        Ok(HeadTarget {
            branch: head.referent_name().map(ToOwned::to_owned),
            commit: head.id().map(|id| CommitId(id.detach())),
        })
    }

    fn resolve(&self, expression: &str) -> anyhow::Result<CommitId> {
        let id = self
            .gix
            .rev_parse_single(expression)
            .during(format_args!("`{expression}` names no commit"))?;
        let object = id.object().during(format_args!("reading `{expression}`"))?;
        let commit = object
            .peel_to_commit()
            .during(format_args!("`{expression}` is not a commit"))?;

        Ok(CommitId(commit.id))
    }

    fn apply(&self, moves: &[RefMove<'_>], log: &str) -> Result<(), MoveError> {
        // In one order, so that nobody waits for somebody who waits for them.
        let mut moves: Vec<&RefMove<'_>> = moves.iter().collect();
        moves.sort_by_key(|wish| wish.name);

        let mut locked = Vec::with_capacity(moves.len());
        for wish in moves {
            let during = || format!("cannot write `{}`", wish.name);
            let mut lock = Locked::take(self, wish.name).with_context(during)?;
            let old = lock.now().with_context(during)?;
            if !wish.expected.is_met(old) {
                return Err(MoveError::Moved {
                    name: wish.name.to_owned(),
                });
            }

            lock.write(wish.to).with_context(during)?;
            locked.push((lock, wish, old));
        }

        for (lock, wish, old) in locked {
            // As git does, while the ref is locked. The log tells what was; without a line in it
            // nothing is lost but that.
            let _ = self.log(wish.name, (old, wish.to), log);
            lock.set()
                .with_context(|| format!("cannot write `{}`", wish.name))?;
        }

        Ok(())
    }

    fn delete(&self, name: &str, expected: Expected) -> Result<(), MoveError> {
        let full = FullName::try_from(name)
            .map_err(|e| anyhow::anyhow!("{e}").context(format!("the ref name `{name}`")))?;
        let change = Change::Delete {
            expected: previous(expected),
            log: RefLog::AndReference,
        };
        let Err(error) = self.gix.edit_reference(RefEdit {
            change,
            name: full,
            deref: false,
        }) else {
            return Ok(());
        };

        let now = self.held(name).ok().flatten();
        if matches!(expected, Expected::At(commit) if now != Some(commit)) {
            return Err(MoveError::Moved {
                name: name.to_owned(),
            });
        }

        Err(MoveError::Store(
            anyhow::anyhow!("{error:#}").context(format!("cannot delete `{name}`")),
        ))
    }

    /// A packed ref stays: an older commit would show again if only its file went, one whose
    /// objects may be gone.
    fn discard(&self, name: &str) -> anyhow::Result<bool> {
        let locked = Locked::take(self, name)?;
        if locked.packed()?.is_some() {
            return Ok(false);
        }

        let _ = std::fs::remove_file(self.log_of(name));
        match std::fs::remove_file(locked.path()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("removing `{name}`"))
            }
            _ => Ok(true),
        }
    }

    /// The name of the file, and the folders that were made for it.
    fn sync(&self, name: &str) -> anyhow::Result<()> {
        let path = self.common.join(name);

        for folder in path
            .ancestors()
            .skip(1)
            .take_while(|folder| folder.starts_with(&self.common))
        {
            File::open(folder)
                .and_then(|folder| folder.sync_all())
                .with_context(|| format!("making `{name}` durable"))?;
        }
        Ok(())
    }

    fn logged(&self, name: &str) -> anyhow::Result<Vec<CommitId>> {
        let text = match read_regular(&self.log_of(name), MAX_LOG) {
            // A log that cannot be read may name the commit that is looked for.
            Err(error) if is_out_of_reach(&error) => return Err(error.into()),
            read => read.unwrap_or_default(),
        };
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().rev().take(MOST_LINES);
        Ok(lines
            .filter_map(|line| line.split(' ').nth(1)?.parse().ok())
            .collect())
    }

    fn damaged(&self) -> anyhow::Result<Vec<String>> {
        self.without_id()
    }

    fn mend(
        &self,
        name: &str,
        commit: Option<CommitId>,
        aside: &Path,
        is_there: &dyn Fn(CommitId) -> bool,
    ) -> anyhow::Result<()> {
        self.refuse_links(name)?;
        self.keep(name, aside)?;
        self.trim_log(name, aside, is_there)?;
        match commit {
            Some(commit) => self.put(name, commit),
            None => self.take_away(name, is_there),
        }
    }

    fn remove_stale_locks(&self, is_in_use: &dyn Fn(&str) -> bool) -> anyhow::Result<Vec<String>> {
        self.unlock_stale(is_in_use)
    }

    fn locks(&self) -> Vec<PathBuf> {
        vec![
            self.common.join("packed-refs.lock"),
            self.common.join("HEAD.lock"),
            self.gix.git_dir().join("HEAD.lock"),
        ]
    }

    fn users(&self) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        // Their files are.
        Ok(Vec::new())
    }
}

/// Returns gix's form of an expectation.
fn previous(expected: Expected) -> PreviousValue {
    match expected {
        Expected::Absent => PreviousValue::MustNotExist,
        Expected::At(commit) => PreviousValue::MustExistAndMatch(Target::Object(commit.0)),
        Expected::Any => PreviousValue::Any,
    }
}
