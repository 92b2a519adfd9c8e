//! Objects that stay until a ref reaches them, whatever `git gc --prune=now` does meanwhile.
//!
//! What no ref reaches yet, git may throw away at any moment: a `gc` that has looked at the refs
//! before ours moves prunes after it. So the objects that a ref is about to reach are put into a
//! pack with a `.keep` file first, which no git touches. Once the ref stands the pack is one like
//! any other. These packs are small; so that they do not become many, a new one takes the ones of
//! its size in: their number grows with the logarithm of what was written, up to [`LARGE`].

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use gix::ObjectId;
use gix_pack::index::File as Index;

use super::object::{Commit, CommitId, TreeId};
use super::pack::{LIST, Pack, deflated, is_own};
use super::repository::Repository;

/// Packs of this size are not taken in by newer ones.
const LARGE: u64 = 1024 * 1024;
/// Git itself takes a `gc.pid` that is older for one that a crash left.
const STALE: Duration = Duration::from_secs(12 * 60 * 60);
/// The header of a pack.
const HEADER: usize = 12;

/// What becomes of the small packs that earlier turns made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Older {
    /// They stay.
    Stay,
    /// The new pack takes in those of its size; the caller makes it durable before it settles.
    Join,
}

/// Objects that are kept; [`Repository::settle`] is called once a ref reaches them.
#[derive(Debug, Default)]
#[must_use = "the pack stays kept until it is settled"]
pub struct Held {
    /// The `.keep` files of the packs that have them.
    keeps: Vec<PathBuf>,
    /// Older packs, without their endings, whose objects are in one of these, too.
    replaced: Vec<PathBuf>,
}

impl Repository {
    /// Keeps a commit and its tree, as far as the tree differs from those that refs reach; nothing
    /// where an object is gone already.
    ///
    /// # Errors
    /// Where the object store cannot be written.
    pub fn hold(&self, commits: &[CommitId], whole: &[TreeId], older: Older) -> anyhow::Result<Option<Held>> {
        let mut wanted = Vec::new();
        for &id in commits {
            let Ok(Commit { tree, .. }) = self.commit(id) else { return Ok(None) };
            wanted.push(id.0);
            wanted.extend(self.beyond(tree, whole)?);
        }
        let mut keeps = self.kept(&mut wanted);
        let mut entries = Vec::with_capacity(wanted.len());
        for id in wanted {
            let Ok(object) = self.gix.find_object(id) else { return Ok(None) };
            entries.push((id, deflated(object.kind, &object.data)?));
        }
        let size = entries.iter().map(|(_, entry)| entry.len() as u64).sum::<u64>() + keeps.iter().map(|keep| size_of(keep)).sum::<u64>();
        let is_alone = entries.is_empty();
        let mut replaced = match older {
            Older::Stay => Vec::new(),
            Older::Join => self.take_in(&mut entries, size),
        };
        if is_alone && replaced.len() == 1 {
            // One pack would become itself.
            (entries, replaced) = (Vec::new(), Vec::new());
        }
        if !entries.is_empty() {
            let mut pack = Pack::new(&self.pack_folder())?;
            entries.iter().try_for_each(|(_, entry)| pack.push(entry))?;
            let keep = pack.finish(self)?;
            replaced.retain(|old| *old != keep.with_extension(""));
            keeps.push(keep);
        }
        Ok(Some(Held { keeps, replaced }))
    }

    /// Lets `git gc` have the packs, now that a ref reaches what is in them, and removes those that were taken in.
    ///
    /// # Errors
    /// Where a file cannot be removed.
    pub fn settle(&self, held: &Held) -> anyhow::Result<()> {
        held.keeps.iter().try_for_each(|keep| self.release(keep))?;
        if held.replaced.is_empty() || self.is_gits_to_pack() {
            return Ok(());
        }
        let gone: HashSet<&Path> = held.replaced.iter().map(PathBuf::as_path).collect();
        let listed: Vec<_> = self.small_packs().into_iter().filter(|pack| !gone.contains(pack.as_path())).collect();
        let names: String = listed.iter().filter_map(|pack| Some(format!("{}\n", pack.file_name()?.to_str()?))).collect();
        // The list only saves room: nothing depends on it.
        let _ = crate::host::file::write_atomic(&self.teddy_dir().join(LIST), names.as_bytes());
        for pack in &held.replaced {
            // Without its index a pack is not used any more.
            for ending in ["idx", "pack"] {
                let path = pack.with_extension(ending);
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(error).with_context(|| format!("removing `{}`", path.display()));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Adds what small packs of ours hold, from the smallest, while each is at most twice the size so far; returns them.
    fn take_in(&self, entries: &mut Vec<(ObjectId, Vec<u8>)>, mut size: u64) -> Vec<PathBuf> {
        let mut small: Vec<_> =
            self.small_packs().into_iter().map(|pack| (size_of(&pack), pack)).filter(|(size, _)| *size < LARGE).collect();
        // What somebody keeps is in use; what an index of many packs names is git's to put together.
        small.retain(|(_, pack)| !pack.with_extension("keep").exists());
        if self.is_gits_to_pack() {
            small.clear();
        }
        small.sort();
        let mut inside: HashSet<ObjectId> = entries.iter().map(|(id, _)| *id).collect();
        let mut taken = Vec::new();
        for (length, old) in small {
            if length > 2 * size {
                break;
            }
            // One that cannot be read stays as it is.
            let Some(found) = entries_of(&old, self.gix.object_hash()) else { continue };
            entries.extend(found.into_iter().filter(|(id, _)| inside.insert(*id)));
            size += length;
            taken.push(old);
        }
        taken
    }

    /// Returns whether git puts the packs together itself: a `git gc` that runs has listed them and fails where one
    /// goes, and an index over several packs would name the ones that are taken in.
    fn is_gits_to_pack(&self) -> bool {
        let age = |path: &Path| std::fs::metadata(path).ok()?.modified().ok().map(|time| time.elapsed().unwrap_or_default());
        let runs = age(&self.common_dir().join("gc.pid")).is_some_and(|age| age < STALE);
        runs || ["multi-pack-index", "multi-pack-index.d"].iter().any(|name| self.pack_folder().join(name).exists())
    }

    /// Returns the packs that were made here and are still there, without their endings.
    fn small_packs(&self) -> Vec<PathBuf> {
        self.listed_packs().into_iter().filter(|pack| pack.with_extension("idx").is_file()).collect()
    }

    /// Takes out of `wanted` what a pack has that this process keeps; returns the `.keep` files of these packs.
    ///
    /// What others keep they may let go at any moment.
    fn kept(&self, wanted: &mut Vec<ObjectId>) -> Vec<PathBuf> {
        let mut used = Vec::new();
        for keep in self.keep_files().into_iter().filter(|keep| is_own(keep)) {
            let Ok(index) = Index::at(keep.with_extension("idx"), self.gix.object_hash()) else { continue };
            let before = wanted.len();
            wanted.retain(|id| index.lookup(id).is_none());
            if wanted.len() < before {
                used.push(keep);
            }
        }
        let mut seen = HashSet::new();
        wanted.retain(|id| seen.insert(*id));
        used
    }
}

/// Returns the size of a pack, given by the path of any of its files.
fn size_of(pack: &Path) -> u64 {
    std::fs::metadata(pack.with_extension("pack")).map_or(0, |metadata| metadata.len())
}

/// Returns what is in a pack of ours, as it is stored there; nothing where it cannot be read, is damaged or is not as we
/// write them.
fn entries_of(pack: &Path, hash: gix::hash::Kind) -> Option<Vec<(ObjectId, Vec<u8>)>> {
    let index = Index::at(pack.with_extension("idx"), hash).ok()?;
    let data = std::fs::read(pack.with_extension("pack")).ok()?;
    let end = data.len().checked_sub(hash.len_in_bytes())?;
    // Damage that came in here would stop every turn, or be given a new name and outlive the old one.
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(&data[..end]);
    let sum = hasher.try_finalize().ok()?;
    if sum.as_slice() != &data[end..] || index.pack_checksum() != sum {
        return None;
    }
    let mut starts: Vec<_> = index.iter().map(|entry| (usize::try_from(entry.pack_offset).unwrap_or(usize::MAX), entry.oid)).collect();
    starts.sort();
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([end]);
    let cut = |(start, id): &(usize, ObjectId), end| {
        let entry = data.get(*start..end).filter(|_| *start >= HEADER)?;
        // A whole object: nothing in it points to another place of its pack.
        matches!(entry.first()? >> 4 & 7, 1..=4).then(|| (*id, entry.to_vec()))
    };
    starts.iter().zip(ends).map(|(start, end)| cut(start, end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::object::{Entry, Mode, NewCommit};

    /// Writes a commit with one file.
    fn commit(repository: &Repository, content: &str) -> CommitId {
        let blob = repository.write_blob(content.as_bytes()).unwrap();
        let tree = repository.tree_with(repository.empty_tree(), &[(b"a".to_vec(), Some(Entry { mode: Mode::File, id: blob.0 }))].into());
        let tree = tree.unwrap();
        let time = crate::host::clock::now();
        repository.write_commit(&NewCommit { tree, parents: &[], message: content, time: &time }).unwrap()
    }

    /// Returns whether all of a commit's files are there.
    fn is_whole(repository: &Repository, id: CommitId) -> bool {
        let tree = repository.commit(id).unwrap().tree;
        repository.beyond(tree, &[]).unwrap().into_iter().all(|id| repository.has(id))
    }

    /// Makes a repository.
    fn repository() -> (tempfile::TempDir, Repository) {
        let folder = tempfile::tempdir().unwrap();
        gix::init(folder.path()).unwrap();
        let repository = Repository::open(folder.path()).unwrap();
        std::fs::create_dir_all(repository.teddy_dir()).unwrap();
        (folder, repository)
    }

    /// Removes all loose objects, as `git prune --expire=now` does with those that no ref reaches.
    fn prune(repository: &Repository) {
        for folder in std::fs::read_dir(repository.common_dir().join("objects")).unwrap().flatten() {
            if folder.file_name().len() == 2 {
                std::fs::remove_dir_all(folder.path()).unwrap();
            }
        }
    }

    #[test]
    fn what_is_held_outlives_a_prune() {
        let (folder, repository) = repository();
        let id = commit(&repository, "one");
        let held = repository.hold(&[id], &[], Older::Join).unwrap().expect("all is there");
        prune(&repository);
        let fresh = Repository::open(folder.path()).unwrap();
        assert!(is_whole(&fresh, id));
        assert_eq!(repository.keep_files().len(), 1);
        repository.settle(&held).unwrap();
        assert_eq!(repository.keep_files(), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_is_gone_already_cannot_be_held() {
        let (folder, repository) = repository();
        let id = commit(&repository, "one");
        prune(&repository);
        let fresh = Repository::open(folder.path()).unwrap();
        assert!(fresh.hold(&[id], &[], Older::Join).unwrap().is_none());
        assert!(repository.keep_files().is_empty());
    }

    #[test]
    fn what_is_kept_is_not_kept_twice() {
        let (_folder, repository) = repository();
        let id = commit(&repository, "one");
        let _held = repository.hold(&[id], &[], Older::Join).unwrap().expect("all is there");
        let again = repository.hold(&[id], &[], Older::Join).unwrap().expect("all is there");
        assert_eq!((again.keeps, repository.keep_files().len()), (repository.keep_files(), 1));
    }

    #[test]
    fn a_pack_does_not_take_itself_in() {
        let (folder, repository) = repository();
        let mut ids = Vec::new();
        for n in 0..3 {
            let batch = repository.batch();
            let blob = batch.blob(format!("content {n}").as_bytes()).unwrap();
            let tree = batch.tree_of(&[("a".to_owned(), blob)]).unwrap();
            let time = crate::host::clock::now();
            ids.push(batch.commit(&NewCommit { tree, parents: &[], message: "", time: &time }).unwrap());
            batch.finish().unwrap();
            let held = repository.hold(&[ids[n]], &[], Older::Join).unwrap().expect("all is there");
            repository.settle(&held).unwrap();
            let fresh = Repository::open(folder.path()).unwrap();
            assert!(ids.iter().all(|&id| is_whole(&fresh, id)));
        }
    }

    #[test]
    fn packs_stay_few_and_lose_nothing() {
        let (folder, repository) = repository();
        let mut ids = Vec::new();
        for n in 0..100 {
            ids.push(commit(&repository, &format!("content {n}")));
            let held = repository.hold(&[ids[n]], &[], Older::Join).unwrap().expect("all is there");
            repository.settle(&held).unwrap();
        }
        let packs =
            std::fs::read_dir(repository.pack_folder()).unwrap().flatten().filter(|file| file.path().extension().unwrap() == "pack");
        assert!(packs.count() <= 8);
        prune(&repository);
        let fresh = Repository::open(folder.path()).unwrap();
        for id in ids {
            assert!(is_whole(&fresh, id));
        }
    }

    #[test]
    fn no_pack_goes_while_git_collects() {
        let (_folder, repository) = repository();
        std::fs::write(repository.common_dir().join("gc.pid"), "1 here").unwrap();
        for n in 0..4 {
            let id = commit(&repository, &format!("content {n}"));
            let held = repository.hold(&[id], &[], Older::Join).unwrap().expect("all is there");
            repository.settle(&held).unwrap();
        }
        assert_eq!(repository.small_packs().len(), 4);
    }

    #[test]
    fn a_damaged_pack_is_not_taken_in() {
        let (folder, repository) = repository();
        let first = commit(&repository, "one");
        let held = repository.hold(&[first], &[], Older::Join).unwrap().expect("all is there");
        repository.settle(&held).unwrap();
        let [small] = repository.small_packs().try_into().expect("one pack");
        let (path, mut bytes) = (small.with_extension("pack"), std::fs::read(small.with_extension("pack")).unwrap());
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let second = commit(&repository, "two");
        let held = repository.hold(&[second], &[], Older::Join).unwrap().expect("all is there");
        repository.settle(&held).unwrap();
        assert!(path.is_file());
        prune(&repository);
        assert!(Repository::open(folder.path()).unwrap().commit(second).is_ok());
    }

    #[test]
    fn what_a_crashed_process_of_this_number_kept_is_kept_anew() {
        let (folder, repository) = repository();
        let id = commit(&repository, "one");
        let held = repository.hold(&[id], &[], Older::Stay).unwrap().expect("all is there");
        repository.settle(&held).unwrap();
        let [old] = repository.small_packs().try_into().expect("one pack");
        std::fs::write(old.with_extension("keep"), format!("teddy {}\n", std::process::id())).unwrap();
        let more = commit(&repository, "two");
        let _held = repository.hold(&[id, more], &[], Older::Stay).unwrap().expect("all is there");
        for ending in ["keep", "idx", "pack"] {
            std::fs::remove_file(old.with_extension(ending)).unwrap();
        }
        prune(&repository);
        let fresh = Repository::open(folder.path()).unwrap();
        assert!([id, more].into_iter().all(|id| is_whole(&fresh, id)));
    }
}
