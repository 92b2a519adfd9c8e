//! Stores refs as files with logs and `packed-refs`: git's `files` format. gix reads them;
//! [`LockedRef`] updates them.
//!
//! [`RefStore::apply`] locks and compares all refs before the first rename. If a rename fails, the refs
//! before it are moved back. A crash between two renames leaves the later refs unchanged; recovery
//! completes the turn from its journal.

mod direct;
mod repair;

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use gix::objs::Kind;
use gix::refs::transaction::{Change, PreviousValue, RefEdit, RefLog};
use gix::refs::{FullName, Target, TargetRef};

pub(in crate::git) use self::direct::FileRefs;
use self::direct::{Direct, MAX_DAMAGED, MAX_REF, no_longer};

use super::store::{All, Expected, HeadTarget, MoveError, RefMove, RefStore};
use crate::git::During as _;
use crate::git::object::absent;
use crate::git::object::id::CommitId;
use crate::git::refs::store::RefsLocked;
use crate::git::remove_if_exists;
use crate::host::clock;
use crate::host::file::{
    append_shared, is_out_of_reach, make_shared_dirs, read_regular, read_regular_text,
    sync_open_file, sync_whole,
};

/// Upper bound for reading a ref until two results agree.
const MAX_READS: u32 = 5;

/// As in git.
const MAX_SYMBOLIC: u32 = 5;

/// Larger than the log of a million updates.
const MAX_LOG: u64 = 256 << 20;

const MOST_LINES: usize = 50;

/// Up to this number of refs are flushed one by one; one `syncfs` for more.
const FLUSHED_ALONE: usize = 8;

/// The branch if HEAD is a symbolic link (`core.preferSymlinkRefs`).
fn linked_branch(git_dir: &Path) -> Option<FullName> {
    let target = std::fs::read_link(git_dir.join("HEAD")).ok()?;
    let name = target.to_str().filter(|name| name.starts_with("refs/"))?;
    name.try_into().ok()
}

impl FileRefs {
    fn find(&self, name: &str) -> anyhow::Result<Option<gix::Reference<'_>>> {
        // gix compares only the mtime of `packed-refs`, and would miss the second of two writes
        // within one clock tick. A turn based on the older id would be lost. Ignore the error: the
        // file can be missing.
        let _ = self.gix.refs.force_refresh_packed_buffer();
        no_longer(&self.common.join(name), MAX_REF)?;
        self.gix
            .try_find_reference(name)
            .during(format_args!("reading `{name}`"))
    }

    /// Returns the id of a ref that is not symbolic.
    fn resolve_direct(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        let target = self.find(name)?;
        let id = target.and_then(|reference| Some(reference.target().try_id()?.to_owned()));
        Ok(id.map(CommitId))
    }

    fn resolve_peeled(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        let Some(mut reference) = self.find(name)? else {
            return Ok(None);
        };
        let commit = reference.peel_to_commit();
        let commit = commit.during(format_args!("reading `{name}`"))?;
        Ok(Some(CommitId(commit.id)))
    }

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

    /// Rejects a ref whose path goes through a symlink: it would be repaired outside the
    /// repository.
    fn refuse_links(&self, name: &str) -> anyhow::Result<()> {
        let path = self.common.join(name);
        let dirs = path.ancestors().skip(1);
        let own_refs = self.common.join("refs/teddy");
        let mut dirs = dirs.take_while(|dir| dir.starts_with(&own_refs));
        match dirs.find(|dir| dir.is_symlink()) {
            Some(link) => anyhow::bail!("`{}` is a symbolic link", link.display()),
            None => Ok(()),
        }
    }

    /// Undoes an update of this process. A ref that another process has moved since stays.
    fn move_back(&self, wish: &RefMove<'_>, old: Option<CommitId>) -> anyhow::Result<()> {
        let mut lock = LockedRef::take(self, wish.name)?;
        if lock.now()? != Some(wish.to) {
            return Ok(());
        }
        let Some(old) = old else {
            // It was in no file before, so no packed id can come back.
            let _ = std::fs::remove_file(self.log_of(wish.name));
            return Ok(std::fs::remove_file(lock.path())?);
        };
        let _ = self.log(wish.name, Some(wish.to), old, "teddy: move back");
        // Durable, or a power cut leaves an empty ref.
        lock.write(old, true)?;
        lock.set()
    }

    fn log_of(&self, name: &str) -> PathBuf {
        self.common.join("logs").join(name)
    }

    /// Flushes lock files with one call, or one by one if the system has no such call.
    fn flush_locks<'l>(
        &self,
        mut locks: impl Iterator<Item = &'l LockedRef<'l>>,
    ) -> anyhow::Result<()> {
        let during = "making refs durable";
        if sync_whole(&self.common).context(during)? {
            return Ok(());
        }
        locks.try_for_each(|lock| lock.sync().context(during))
    }

    /// Flushes the names in the first directory, and in each further one the name of the directory
    /// before it.
    fn flush_names<'p>(&self, dirs: impl Iterator<Item = &'p Path>) -> std::io::Result<()> {
        let mut flushed = self.flushed.borrow_mut();
        let mut below: Option<File> = None;
        for dir in dirs {
            let dir = File::open(dir)?;
            if let Some(below) = &below
                && contains_dir(&flushed, below)?
            {
                break;
            }
            sync_open_file(&dir)?;
            flushed.extend(below.replace(dir));
        }
        Ok(())
    }

    fn log(
        &self,
        name: &str,
        old: Option<CommitId>,
        new: CommitId,
        message: &str,
    ) -> std::io::Result<()> {
        let path = self.log_of(name);
        make_shared_dirs(path.parent().unwrap_or(&path))?;
        let seconds = clock::now().timestamp().as_second();
        let old = old.map_or_else(|| self.gix.object_hash().null(), Into::into);
        let line = format!("{old} {new} TeDDy <teddy@localhost> {seconds} +0000\t{message}\n");
        append_shared(&path, line.as_bytes())
    }
}

impl RefStore for FileRefs {
    fn read(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        match self.read_directly(name)? {
            Direct::Target(target) => target.map(|id| self.peeled(name, id)).transpose(),
            Direct::Unclear => read_until_same(|| self.resolve_peeled(name)),
        }
    }

    fn read_unpeeled(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        match self.read_directly(name)? {
            Direct::Target(target) => Ok(target),
            Direct::Unclear => read_until_same(|| self.resolve_direct(name)),
        }
    }

    fn all(&self, prefix: &str) -> anyhow::Result<All> {
        self.each_file(prefix, |path, _| no_longer(path, MAX_DAMAGED))?;
        let platform = self.gix.references().during("listing refs")?;
        let mut all = All::default();
        for reference in platform.prefixed(prefix).during("listing refs")? {
            let Ok(found) = reference else {
                // A damaged ref is left out; one that cannot be read is not damaged.
                self.refuse_unreadable(prefix)?;
                all.damaged = all.damaged.saturating_add(1);
                continue;
            };
            let target = found.target().into_owned();
            all.refs.push((found.name().to_owned(), target));
        }

        Ok(all)
    }

    fn head(&self) -> anyhow::Result<HeadTarget> {
        let head = self.gix.head().during("reading HEAD")?;
        let mut target = HeadTarget {
            branch: head.referent_name().map(ToOwned::to_owned),
            commit: head.id().map(|id| CommitId(id.detach())),
        };
        if target.branch.is_none() {
            target.branch = linked_branch(self.gix.git_dir());
        }
        // A branch that is a symbolic ref is the other branch for git.
        for _ in 0..MAX_SYMBOLIC {
            let Some(name) = target.branch.as_ref().filter(|_| target.commit.is_none()) else {
                break;
            };
            let found = self.gix.try_find_reference(name.as_ref());
            let Some(reference) = found.during("reading HEAD")? else {
                break;
            };
            match reference.target() {
                TargetRef::Symbolic(next) => target.branch = Some(next.to_owned()),
                TargetRef::Object(id) => target.commit = Some(CommitId(id.to_owned())),
            }
        }
        Ok(target)
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
        // All processes lock in the same order, so two of them cannot wait for each other.
        let mut moves: Vec<&RefMove<'_>> = moves.iter().collect();
        moves.sort_by_key(|ref_move| ref_move.name);

        // Flushing thousands of lock files one by one takes minutes.
        let one_by_one = moves.len() <= FLUSHED_ALONE;
        let mut locked = Vec::with_capacity(moves.len());
        for ref_move in moves {
            let during = || format!("cannot write `{}`", ref_move.name);
            let mut lock = LockedRef::take(self, ref_move.name).with_context(during)?;
            let old = lock.now().with_context(during)?;
            if !ref_move.expected.is_met(old) {
                return Err(MoveError::Moved {
                    name: ref_move.name.to_owned(),
                });
            }

            lock.write(ref_move.to, one_by_one).with_context(during)?;
            locked.push((lock, ref_move, old));
        }
        if !one_by_one {
            self.flush_locks(locked.iter().map(|(lock, ..)| lock))?;
        }

        // Only now, with all refs locked and compared: if one has moved, none is changed.
        let mut moved = Vec::with_capacity(locked.len());
        for (lock, ref_move, old) in locked {
            // git also logs while the ref is locked. Ignore errors: a missing log line loses no
            // ref.
            let _ = self.log(ref_move.name, old, ref_move.to, log);
            if let Err(error) = lock.set() {
                let during = format!("cannot write `{}`", ref_move.name);
                for (wish, old) in moved {
                    self.move_back(wish, old).with_context(|| {
                        format!("{during}: {error:#}; moving `{}` back", wish.name)
                    })?;
                }
                return Err(error.context(during).into());
            }
            moved.push((ref_move, old));
        }

        Ok(())
    }

    fn delete(&self, names: &[&str], expected: Expected) -> Result<(), MoveError> {
        let edits = names.iter().map(|name| deletion(name, expected));
        let edits = edits.collect::<anyhow::Result<Vec<_>>>()?;
        match self.gix.edit_references(edits) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.delete_error(names, expected, anyhow::anyhow!("{error:#}"))),
        }
    }

    /// Leaves a packed ref alone. Deleting only its file would reactivate the packed id, which is
    /// older and whose objects can be gone; deleting the packed entry takes git's own lock.
    fn discard(&self, name: &str) -> anyhow::Result<bool> {
        let locked = LockedRef::take(self, name)?;
        if locked.packed()?.is_some() {
            return Ok(false);
        }

        let _ = std::fs::remove_file(self.log_of(name));
        remove_if_exists(locked.path())?;
        Ok(true)
    }

    /// Flushes the ref's name, and those of the directories above it: git does not flush a directory
    /// that it creates. A turn moves several refs, so the latter happens once in a process.
    fn sync(&self, name: &str) -> anyhow::Result<()> {
        let path = self.common.join(name);
        let dirs = path.ancestors().skip(1);
        let dirs = dirs.take_while(|dir| dir.starts_with(&self.common));
        self.flush_names(dirs)
            .with_context(|| format!("making `{name}` durable"))
    }

    fn logged(&self, name: &str) -> anyhow::Result<Vec<CommitId>> {
        let text = match read_regular(&self.log_of(name), MAX_LOG) {
            // The unreadable log might name the commit that the caller needs.
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
        self.unborn_refs()
    }

    fn repair(
        &self,
        name: &str,
        commit: Option<CommitId>,
        backup_dir: &Path,
        is_there: &dyn Fn(CommitId) -> bool,
    ) -> anyhow::Result<()> {
        self.refuse_links(name)?;
        self.back_up(name, backup_dir)?;
        self.trim_log(name, backup_dir, is_there)?;
        match commit {
            Some(commit) => self.write_loose(name, commit),
            None => self.delete_loose(name, is_there),
        }
    }

    fn remove_stale_locks(&self, is_in_use: &dyn Fn(&str) -> bool) -> anyhow::Result<Vec<String>> {
        self.unlock_stale(is_in_use)
    }

    fn locks(&self) -> Vec<PathBuf> {
        let mut locks = vec![
            self.common.join("packed-refs.lock"),
            self.common.join("HEAD.lock"),
            self.gix.git_dir().join("HEAD.lock"),
        ];
        // Landing and committing move the checked-out branch.
        if let Ok(Some(branch)) = self.gix.head_name() {
            locks.push(self.common.join(format!("{branch}.lock")));
        }
        locks
    }

    fn users(&self) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        // HEAD and the stash's log are files, which the caller reads itself.
        Ok(Vec::new())
    }
}

/// `git pack-refs` can delete the ref's file after gix has read `packed-refs` and before it opens
/// the file. The ref then seems missing or outdated, so read until two results agree.
fn read_until_same<T: PartialEq>(read: impl Fn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let mut target = read()?;
    for _ in 0..MAX_READS {
        let again = read()?;
        if again == target {
            break;
        }
        target = again;
    }
    Ok(target)
}

fn contains_dir(dirs: &[File], dir: &File) -> std::io::Result<bool> {
    let id = |file: &File| {
        file.metadata()
            .map(|metadata| (metadata.dev(), metadata.ino()))
    };
    let searched = id(dir)?;
    for known in dirs {
        if id(known)? == searched {
            return Ok(true);
        }
    }
    Ok(false)
}

fn deletion(name: &str, expected: Expected) -> anyhow::Result<RefEdit> {
    let full = FullName::try_from(name)
        .map_err(|e| anyhow::anyhow!("{e}").context(format!("the ref name `{name}`")))?;
    let expected = match expected {
        Expected::Absent => PreviousValue::MustNotExist,
        Expected::At(commit) => PreviousValue::MustExistAndMatch(Target::Object(commit.0)),
        Expected::Any => PreviousValue::Any,
    };
    Ok(RefEdit {
        change: Change::Delete {
            expected,
            log: RefLog::AndReference,
        },
        name: full,
        deref: false,
    })
}

// Updates one ref as git does: its own lock file, its own file, a line in its log. `packed-refs`
// and its lock are never touched.
//
// gix locks `packed-refs` for every update if that file exists, as it does in every clone. A
// process killed at that moment leaves git's own lock behind: the user's git can then neither
// delete nor pack a ref, and nothing tells whose lock it is. A lock of one of TeDDy's refs is ours
// to remove.

const MAX_LOCKED_REF: u64 = 8 << 10;
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const LOCK_POLL: Duration = Duration::from_millis(10);

/// A locked ref. Dropping it removes the lock file.
struct LockedRef<'a> {
    files: &'a FileRefs,
    name: gix::refs::FullName,
    path: PathBuf,
    /// The lock file. `None` once it was renamed to the ref's file.
    lock: Option<PathBuf>,
    /// `None` once the id was written: thousands of refs can be locked at once.
    file: Option<File>,
}

impl<'a> LockedRef<'a> {
    /// Locks a ref with the lock file that git and gix use too. Fails with [`RefsLocked`] after
    /// `LOCK_TIMEOUT`.
    fn take(files: &'a FileRefs, name: &str) -> anyhow::Result<LockedRef<'a>> {
        let full =
            gix::refs::FullName::try_from(name).map_err(|error| anyhow::anyhow!("{error}"))?;
        let path = files.common.join(name);
        let lock = files.common.join(format!("{name}.lock"));
        let file = match create_lock(&lock) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let is_there = lock.symlink_metadata().is_ok();
                anyhow::ensure!(!is_there, RefsLocked { lock });
                anyhow::bail!("a ref exists at the start of its name");
            }
            created => {
                created.with_context(|| format!("cannot make the lock `{}`", lock.display()))?
            }
        };

        Ok(LockedRef {
            files,
            name: full,
            path,
            lock: Some(lock),
            file: Some(file),
        })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the ref's current id; `None` if it does not exist.
    fn now(&self) -> anyhow::Result<Option<CommitId>> {
        match read_regular_text(&self.path, MAX_LOCKED_REF) {
            Ok(text) => text.trim_end().parse().map(Some),
            // git leaves empty directories behind after it deletes refs.
            Err(error) if error.kind() == ErrorKind::NotFound || self.path.is_dir() => {
                self.packed()
            }
            Err(error) => Err(error.into()),
        }
    }

    fn packed(&self) -> anyhow::Result<Option<CommitId>> {
        self.files.packed_directly(&self.name)
    }

    /// Writes the new id to the lock file. It takes effect with [`LockedRef::set`]. It must be durable
    /// by then: otherwise a power cut after the rename leaves an empty ref.
    fn write(&mut self, new: CommitId, durable: bool) -> anyhow::Result<()> {
        let Some(mut file) = self.file.take() else {
            anyhow::bail!("the lock has its id already");
        };
        file.write_all(format!("{new}\n").as_bytes())?;
        if durable {
            file.sync_data()?;
        }
        Ok(())
    }

    fn sync(&self) -> std::io::Result<()> {
        match &self.lock {
            Some(lock) => File::open(lock)?.sync_data(),
            None => Ok(()),
        }
    }

    /// Renames the lock file to the ref's file, so readers see the old id or the new one.
    fn set(mut self) -> anyhow::Result<()> {
        let Some(lock) = &self.lock else {
            return Ok(());
        };
        match std::fs::rename(lock, &self.path) {
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                remove_empty_dirs(&self.path)?;
                std::fs::rename(lock, &self.path)?;
            }
            renamed => renamed?,
        }

        // Another process can lock the ref from now on, and `drop` must not remove its lock file.
        self.lock = None;
        Ok(())
    }
}

impl Drop for LockedRef<'_> {
    fn drop(&mut self) {
        self.lock.as_ref().map(std::fs::remove_file);
    }
}

/// Removes a directory tree that contains no files, as git leaves behind after it deletes refs.
fn remove_empty_dirs(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_empty_dirs(&entry.path())?;
        }
    }
    std::fs::remove_dir(dir)
}

/// Creates a lock file, waiting up to `LOCK_TIMEOUT` for another process to remove its own.
fn create_lock(lock: &Path) -> std::io::Result<File> {
    let started = Instant::now();
    loop {
        let parent_created = lock.parent().map_or(Ok(()), make_shared_dirs);
        match parent_created.and_then(|()| File::options().write(true).create_new(true).open(lock))
        {
            // `git pack-refs` can remove the directory, which is empty, between both calls.
            Err(error)
                if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound)
                    && started.elapsed() < LOCK_TIMEOUT =>
            {
                std::thread::sleep(LOCK_POLL);
            }
            opened => return opened,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::refs;
    use crate::git::repository::Repository;

    #[test]
    fn if_one_of_several_refs_cannot_be_written_none_has_moved() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init(folder.path(), None).unwrap();
        let ids: [CommitId; 2] = ["1", "2"].map(|digit| digit.repeat(40).parse().unwrap());
        let to = |name, expected, to| RefMove { name, expected, to };
        let (old, new, blocked) = ("refs/teddy/a", "refs/teddy/b", "refs/teddy/c");
        refs::apply(&repository, &[to(old, Expected::Absent, ids[0])], "one").unwrap();
        // A file in the directory of its name is in the way of the last one.
        let dir = folder.path().join(".git").join(blocked);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("note"), "").unwrap();

        let moves = [
            to(old, Expected::At(ids[0]), ids[1]),
            to(new, Expected::Absent, ids[1]),
            to(blocked, Expected::Absent, ids[1]),
        ];
        let error = refs::apply(&repository, &moves, "two").unwrap_err();
        assert!(error.to_string().contains(blocked), "{error}");
        let tip = |name| refs::read_unpeeled(&repository, name).unwrap();
        assert_eq!(tip(old), Some(ids[0]));
        assert_eq!(tip(new), None);
    }

    /// Bug: nothing could be written there, although git can.
    #[test]
    fn empty_directories_make_room_for_a_ref() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init(folder.path(), None).unwrap();
        let to: CommitId = "1".repeat(40).parse().unwrap();
        let (name, expected) = ("refs/teddy/a", Expected::Absent);
        std::fs::create_dir_all(folder.path().join(".git").join(name).join("b/c")).unwrap();
        refs::apply(&repository, &[RefMove { name, expected, to }], "one").unwrap();
        assert_eq!(refs::read_unpeeled(&repository, name).unwrap(), Some(to));
    }
}
