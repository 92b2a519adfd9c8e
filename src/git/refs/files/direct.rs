//! Reads one ref with as few system calls as git: its own file, then `packed-refs`.
//!
//! gix maps `packed-refs` again for every ref that it reads, and a turn reads dozens of refs.

use std::cell::{Cell, RefCell};
use std::fs::{File, FileType};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gix::index::entry::Stat;
use gix::refs::FullName;
use rustix::io::Errno;

use crate::git::During as _;
use crate::git::object::id::CommitId;
use crate::git::stat::NameStat;
use crate::host::file::{is_out_of_reach, read_regular_text, uninterrupted};

pub(super) const MAX_REF: u64 = 8 << 10;
/// Listing does not report a longer file as a damaged ref but fails: gix would read all of it.
pub(super) const MAX_DAMAGED: u64 = 1 << 20;
/// Number of attempts while git packs a ref concurrently.
const MAX_READS: u32 = 5;
/// Refs that each linked worktree has for itself.
const OF_WORKTREES: [&str; 3] = ["refs/worktree/", "refs/bisect/", "refs/rewritten/"];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Direct {
    /// This id, or no such ref.
    Target(Option<CommitId>),
    /// A symbolic ref, a damaged or unreadable one, or one of a single worktree. gix must read it.
    Unclear,
}

pub(in crate::git) struct FileRefs {
    pub(super) gix: gix::Repository,
    /// The common git directory, canonical.
    pub(super) common: PathBuf,
    packed: Cell<Option<Stat>>,
    /// Directories whose entry in their parent this process has flushed. They are open, so that no
    /// other directory gets their inode.
    pub(super) flushed: RefCell<Vec<File>>,
}

impl FileRefs {
    pub(in crate::git) fn of(gix: gix::Repository, common: PathBuf) -> FileRefs {
        FileRefs {
            gix,
            common,
            packed: Cell::default(),
            flushed: RefCell::default(),
        }
    }

    /// Reads the file of a ref, then `packed-refs`, then the file again.
    ///
    /// The order matters: `git pack-refs` writes `packed-refs` before it deletes the file, so the
    /// ref is always in one of them. If the file exists on the second read, the ref moved in
    /// between and the loop starts over.
    pub(super) fn read_directly(&self, name: &str) -> anyhow::Result<Direct> {
        let is_shared =
            name.starts_with("refs/") && OF_WORKTREES.iter().all(|one| !name.starts_with(one));
        let Ok(full) = FullName::try_from(name) else {
            return Ok(Direct::Unclear);
        };
        if !is_shared {
            return Ok(Direct::Unclear);
        }

        let path = self.common.join(name);
        for _ in 0..MAX_READS {
            let own = loose(&path);
            if own != Direct::Target(None) {
                return Ok(own);
            }

            let packed = self.packed_directly(&full)?;
            if loose(&path) == own {
                return Ok(Direct::Target(packed));
            }
        }

        Ok(Direct::Unclear)
    }

    /// Fails if a ref's own file below a prefix cannot be read.
    pub(super) fn refuse_unreadable(&self, prefix: &str) -> anyhow::Result<()> {
        self.each_file(prefix, |path, _| match read_regular_text(path, MAX_REF) {
            Err(error) if is_out_of_reach(&error) => Err(error.into()),
            _ => Ok(()),
        })
    }

    /// Calls `work` with each file below a prefix. Fails if a directory cannot be listed: gix lists
    /// nothing then, as if there were no refs.
    pub(super) fn each_file(
        &self,
        prefix: &str,
        mut work: impl FnMut(&Path, FileType) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut dirs = vec![self.common.join(prefix)];
        while let Some(dir) = dirs.pop() {
            let during = || format!("cannot list `{}`", dir.display());
            let entries = match uninterrupted(|| std::fs::read_dir(&dir)) {
                Ok(entries) => entries,
                Err(error) if is_out_of_reach(&error) => return Err(error).with_context(during),
                Err(_) => continue,
            };
            for entry in entries {
                let entry = entry.with_context(during)?;
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => dirs.push(entry.path()),
                    Ok(kind) => work(&entry.path(), kind)?,
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Returns what `packed-refs` has for a ref. It is read anew if it is another file than before.
    pub(super) fn packed_directly(&self, name: &FullName) -> anyhow::Result<Option<CommitId>> {
        let now = stat_of(&self.common.join("packed-refs"))?;
        if now.is_none() || self.packed.get() != now {
            // Ignore the error: the file can be missing. gix itself compares only the mtime, and
            // would miss the second of two writes within one clock tick.
            let _ = self.gix.refs.force_refresh_packed_buffer();
            self.packed.set(now);
        }
        if now.is_none() {
            return Ok(None);
        }

        let buffer = self.gix.refs.cached_packed_buffer();
        let Some(packed) = buffer.during("reading `packed-refs`")? else {
            return Ok(None);
        };
        let reference = packed.try_find(name.as_ref());
        let reference = reference.during("reading `packed-refs`")?;
        Ok(reference.map(|reference| CommitId(reference.target())))
    }
}

/// Rejects a ref whose file is too long, before gix reads it whole.
pub(super) fn no_longer(path: &Path, most: u64) -> anyhow::Result<()> {
    let size = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file);
    let size = size.map_or(0, |file| file.len());
    anyhow::ensure!(
        size <= most,
        "`{}` has {size} bytes, which no ref has; move it away",
        path.display()
    );
    Ok(())
}

/// Reads the file of a ref.
fn loose(path: &Path) -> Direct {
    // git creates symlinks there only with `core.preferSymlinkRefs`; gix handles them.
    if path.is_symlink() {
        return Direct::Unclear;
    }
    match read_regular_text(path, MAX_REF) {
        Ok(text) => match text.strip_suffix('\n').unwrap_or(&text).parse() {
            Ok(id) => Direct::Target(Some(id)),
            Err(_) => Direct::Unclear,
        },
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Direct::Target(None),
            _ => Direct::Unclear,
        },
    }
}

fn stat_of(path: &Path) -> anyhow::Result<Option<Stat>> {
    match rustix::fs::stat(path) {
        Ok(raw) => Ok(Some(NameStat::from(raw).stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno).with_context(|| format!("cannot read `{}`", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::refs;
    use crate::git::sample;

    const NAME: &str = "refs/teddy/sessions/x";

    #[test]
    fn a_ref_is_read_from_its_own_file_or_from_packed_refs_however_often_they_change() {
        let (dir, repository) = sample::repository();
        let git = dir.path().join(".git");
        let id = |digit: &str| digit.repeat(40);
        let own = |text: Option<&str>| {
            let path = git.join(NAME);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            match text {
                Some(text) => std::fs::write(path, text).unwrap(),
                None => std::fs::remove_file(path).unwrap_or_default(),
            }
        };
        let packed = |digit: &str| {
            let text = format!(
                "# pack-refs with: peeled fully-peeled sorted\n{} {NAME}\n",
                id(digit)
            );
            let new = git.join("packed-refs.new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, git.join("packed-refs")).unwrap();
        };
        let check = |expected: Option<&str>| {
            let actual = refs::read_unpeeled(&repository, NAME).unwrap();
            assert_eq!(actual.map(|id| id.to_string()), expected.map(id));
        };

        check(None);
        own(Some(&format!("{}\n", id("1"))));
        check(Some("1"));
        packed("2");
        check(Some("1"));
        own(None);
        check(Some("2"));
        packed("3");
        check(Some("3"));
        own(Some(&id("4")));
        check(Some("4"));
        own(None);
        std::fs::remove_file(git.join("packed-refs")).unwrap();
        check(None);
    }

    #[test]
    fn a_file_that_is_longer_than_a_ref_is_not_read() {
        let (dir, repository) = sample::repository();
        let path = dir.path().join(".git").join(NAME);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = std::fs::File::create(&path).unwrap();
        let check = |length: u64, is_read: [bool; 3]| {
            file.set_len(length).unwrap();
            let message = format!("has {length} bytes, which no ref has");
            let actual = [
                refs::read_unpeeled(&repository, NAME).err(),
                refs::read(&repository, NAME).err(),
                refs::list(&repository, "refs/teddy/").err(),
            ];
            let actual =
                actual.map(|error| !error.is_some_and(|it| it.to_string().contains(&message)));
            assert_eq!(actual, is_read, "{length}");
        };
        check(8 << 10, [true; 3]);
        check((8 << 10) + 1, [false, false, true]);
        check(1 << 40, [false; 3]);
    }

    #[test]
    fn what_is_not_plainly_an_id_is_left_to_gix() {
        let dir = tempfile::tempdir().unwrap();
        let check = |bytes: &[u8], is_plain: bool| {
            let path = dir.path().join("ref");
            std::fs::write(&path, bytes).unwrap();
            let actual = loose(&path);
            assert_eq!(matches!(actual, Direct::Target(Some(_))), is_plain);
            assert_eq!(actual == Direct::Unclear, !is_plain);
        };
        check("1".repeat(40).as_bytes(), true);
        check(format!("{}\n", "1".repeat(64)).as_bytes(), true);
        check(b"ref: refs/heads/main\n", false);
        check(b"", false);
        check(&[0; 41], false);

        let link = dir.path().join("link");
        std::os::unix::fs::symlink("ref", &link).unwrap();
        assert_eq!(loose(&link), Direct::Unclear);
        assert_eq!(loose(dir.path()), Direct::Unclear);
        assert_eq!(loose(&dir.path().join("gone")), Direct::Target(None));
    }
}
