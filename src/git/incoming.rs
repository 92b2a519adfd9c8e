//! Imports commits that commands made in a repository of their own, treating them like an untrusted
//! push.
//!
//! Nothing in that repository is trusted: no pack index, no alternates, and no object id before the
//! object was hashed. The new objects go into one pack. git checks it, and that no object is
//! missing below HEAD, before it is renamed into place. If a check fails, no commit is imported.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::objs::{CommitRef, Exists as _, Find as _, FindHeader as _, Kind, TagRef, TreeRefIter};
use gix::refs::FullName;
use gix::zlib::Decompress;
use gix::zlib::stream::inflate;

use crate::git::intake::{self, MAX_OBJECT};
use crate::git::keep::pack::{Pack, Sealed, deflated, keep};
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::git::{history, refs};
use crate::host::file::{FileKind, Root};

const MAX_NAMED_REFS: usize = 5;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The newest commit, a descendant of the one that the commands started with.
    pub commit: Option<CommitId>,
    /// What was not imported, and why.
    pub remarks: Vec<String>,
}

/// `visible` are the object stores that the commands could read.
pub(in crate::git) fn receive(
    repository: &Repository,
    git: &Root,
    before: CommitId,
    visible: Vec<gix::OdbHandle>,
) -> anyhow::Result<Received> {
    let mut received = Received {
        commit: None,
        remarks: refs_remark(repository, git)?.into_iter().collect(),
    };
    let Some(head) = read_head(git, repository.gix.object_hash()) else {
        let message =
            "HEAD of the commands' repository names no commit; what they committed was not taken";
        received.remarks.push(message.to_owned());
        return Ok(received);
    };

    if head == before {
        return Ok(received);
    }

    match import_head(repository, git, head, before, visible) {
        Ok(true) => received.commit = Some(head),
        Ok(false) => {}
        Err(error) => match error.downcast::<UnsoundCommit>() {
            Ok(why) => received.remarks.push(format!(
                "commit {head} of the commands was not taken: {why}"
            )),
            Err(error) => return Err(error),
        },
    }

    Ok(received)
}

/// Imports a commit and everything it reaches. `false` if it contains nothing new and does not
/// descend from `before`.
fn import_head(
    repository: &Repository,
    git: &Root,
    head: CommitId,
    before: CommitId,
    visible: Vec<gix::OdbHandle>,
) -> anyhow::Result<bool> {
    let quarantine = Quarantine::new(repository)?;
    let store = ForeignStore::new(repository, git, &quarantine);
    let Collected { new, edges, pack } = collect_objects(repository, store, visible, head)?;
    let follows = edges.iter().any(|&edge| {
        edge == before || history::is_ancestor(repository, before, edge).unwrap_or(false)
    });

    if !follows {
        anyhow::ensure!(
            new == 0,
            UnsoundCommit("it does not follow the commit that the plan began with".to_owned())
        );
        return Ok(false);
    }

    let sealed = pack.map(|pack| pack.seal(repository)).transpose()?;
    if let Some(sealed) = &sealed {
        quarantine.expose_pack(sealed)?;
        quarantine.check_rules(repository, sealed)?;
    }

    quarantine.check_links(repository, head, before)?;
    // The pack is kept until this process ends. By then a ref reaches it, or it is not needed.
    sealed.map(|sealed| sealed.finish(repository)).transpose()?;
    Ok(true)
}

/// Reports refs that commands created. They are lost with the repository. The user's branch is that
/// of HEAD.
fn refs_remark(repository: &Repository, git: &Root) -> anyhow::Result<Option<String>> {
    let mut created = loose_refs(git);
    let branch = refs::branch_or_head(repository)?;
    created.retain(|name| name.strip_prefix(b"refs/heads/") != Some(branch.as_bytes()));
    let listed: Vec<_> = created
        .iter()
        .take(MAX_NAMED_REFS)
        .map(|name| format!("`{}`", String::from_utf8_lossy(name)))
        .collect();
    let more = created.len().saturating_sub(MAX_NAMED_REFS);
    let more = if more > 0 {
        format!(" and {}", crate::text::counted(more, "more ref"))
    } else {
        String::new()
    };

    Ok((!listed.is_empty()).then(|| {
        format!(
            "{}{more} made by the commands: refs of their own repository are not taken over",
            listed.join(", ")
        )
    }))
}

const MAX_REF: u64 = 8 * 1024;
const MAX_PACKED_REFS: u64 = 64 << 20;

const MAX_SYMBOLIC_DEPTH: usize = 5;

const MAX_LISTED_ENTRIES: usize = 1000;

fn read_head(git: &Root, hash: gix::hash::Kind) -> Option<CommitId> {
    let mut name = FullName::try_from("HEAD").ok()?;
    for _ in 0..MAX_SYMBOLIC_DEPTH {
        let path = Path::new(OsStr::from_bytes(name.as_bstr()));
        let Ok(text) = git.read(path, MAX_REF) else {
            return read_packed_ref(git, &name, hash);
        };
        let text = text.trim();
        let Some(target) = text.strip_prefix(b"ref:") else {
            return parse_id(text, hash);
        };

        name = FullName::try_from(target.trim().as_bstr()).ok()?;
        // Another name would read any file of the untrusted directory.
        if !name.as_bstr().starts_with(b"refs/") {
            return None;
        }
    }

    None
}

fn read_packed_ref(git: &Root, name: &FullName, hash: gix::hash::Kind) -> Option<CommitId> {
    let text = git.read(Path::new("packed-refs"), MAX_PACKED_REFS).ok()?;
    let hex = text.lines().find_map(|line| {
        let (target, of) = line.split_once_str(" ")?;
        (of == name.as_bstr().as_bytes()).then_some(target)
    });
    parse_id(hex?, hash)
}

fn parse_id(text: &[u8], hash: gix::hash::Kind) -> Option<CommitId> {
    let text = text.to_str().ok()?;
    (text.len() == hash.len_in_hex()).then(|| text.parse().ok())?
}

/// Returns the names of loose refs that are not symbolic, sorted. All copied refs were packed, so
/// these are the ones that commands created or updated.
fn loose_refs(git: &Root) -> Vec<Vec<u8>> {
    let (mut loose, mut dirs, mut visited) = (Vec::new(), vec![PathBuf::from("refs")], 0);
    while let Some(dir) = dirs.pop() {
        let names = git.open_dir(&dir).and_then(|dir| dir.names());
        for name in names.unwrap_or_default() {
            visited += 1;
            if visited > MAX_LISTED_ENTRIES {
                dirs.clear();
                break;
            }

            let path = dir.join(name);
            match git.kind(&path) {
                Ok(Some(FileKind::Dir)) => dirs.push(path),
                Ok(Some(FileKind::File(_))) if is_direct_ref(git, &path) => {
                    loose.push(path.into_os_string().into_vec());
                }
                _ => {}
            }
        }
    }

    loose.sort();
    loose
}

fn is_direct_ref(git: &Root, path: &Path) -> bool {
    git.read(path, MAX_REF)
        .is_ok_and(|text| text.first().is_some_and(u8::is_ascii_hexdigit))
}

// Packs the objects that an untrusted HEAD reaches and that the commands did not borrow. What they could
// not read, such as a secret that was staged once, they cannot make reachable by naming its id.
//
// Fails if there are too many objects, or if their total size is too large.

const MAX_OBJECTS: usize = 500_000;
const MAX_BYTES: u64 = 2 << 30;

struct Collected {
    new: usize,
    /// Commits that the commands could read and that are parents of new ones.
    edges: Vec<CommitId>,
    /// The new objects; `None` if there are none.
    pack: Option<Pack>,
}

struct CollectWalk<'a> {
    repository: &'a Repository,
    visible: Vec<gix::OdbHandle>,
    store: ForeignStore<'a>,
    visited: HashSet<ObjectId>,
    bytes: u64,
    collected: Collected,
}

fn collect_objects(
    repository: &Repository,
    store: ForeignStore<'_>,
    visible: Vec<gix::OdbHandle>,
    head: CommitId,
) -> anyhow::Result<Collected> {
    let mut walk = CollectWalk {
        repository,
        visible,
        store,
        visited: HashSet::new(),
        bytes: 0,
        collected: Collected {
            new: 0,
            edges: Vec::new(),
            pack: None,
        },
    };

    let mut next = vec![(head.0, Kind::Commit)];
    while let Some((id, kind)) = next.pop() {
        if walk.visited.insert(id) {
            walk.visit(id, kind, &mut next)?;
        }
    }

    Ok(walk.collected)
}

impl CollectWalk<'_> {
    fn visit(
        &mut self,
        id: ObjectId,
        kind: Kind,
        next: &mut Vec<(ObjectId, Kind)>,
    ) -> anyhow::Result<()> {
        let hash = self.repository.gix.object_hash();
        let is_visible = self.visible.iter().any(|store| store.exists(&id));
        if id == ObjectId::empty_tree(hash) || is_visible {
            if kind == Kind::Commit {
                self.collected.edges.push(CommitId(id));
            }
            return Ok(());
        }

        let Some((is, data)) = self.store.read(id)? else {
            // In a partial clone, the server can have this object. git's connectivity check decides
            // whether it was promised.
            let may_be_promised = self.repository.is_partial()
                && kind != Kind::Commit
                && !self.repository.gix.objects.exists(&id);
            anyhow::ensure!(
                may_be_promised,
                UnsoundCommit(format!("object {id} is missing"))
            );
            return Ok(());
        };

        anyhow::ensure!(
            is == kind,
            UnsoundCommit(format!("object {id} is a {is} and named as a {kind}"))
        );
        self.collected.new += 1;
        self.bytes += data.len() as u64;
        anyhow::ensure!(
            self.collected.new <= MAX_OBJECTS && self.bytes <= MAX_BYTES,
            UnsoundCommit("it has more new objects than are taken at once".to_owned())
        );
        let links = links(kind, &data, hash);

        next.extend(links.ok_or_else(|| UnsoundCommit(format!("{kind} {id} is malformed")))?);
        let pack = match &mut self.collected.pack {
            Some(pack) => pack,
            none => none.insert(Pack::new(&keep::pack_dir(self.repository))?.for_everybody()),
        };
        pack.push(id, &deflated(kind, &data)?)
    }
}

/// Returns the objects that an object refers to; `None` if it is malformed.
pub(in crate::git) fn links(
    kind: Kind,
    data: &[u8],
    hash: gix::hash::Kind,
) -> Option<Vec<(ObjectId, Kind)>> {
    match kind {
        Kind::Commit => {
            let commit = CommitRef::from_bytes(data, hash).ok()?;
            let parents = commit.parents().map(|parent| (parent, Kind::Commit));
            Some(
                [(commit.tree(), Kind::Tree)]
                    .into_iter()
                    .chain(parents)
                    .collect(),
            )
        }
        Kind::Tree => {
            let mut links = Vec::new();
            for entry in TreeRefIter::from_bytes(data, hash) {
                let entry = entry.ok()?;
                let kind = match entry.mode.kind() {
                    gix::objs::tree::EntryKind::Tree => Kind::Tree,
                    // A submodule's commit is in another repository.
                    gix::objs::tree::EntryKind::Commit => continue,
                    _ => Kind::Blob,
                };
                links.push((entry.oid.to_owned(), kind));
            }

            Some(links)
        }
        Kind::Tag => {
            let tag = TagRef::from_bytes(data, hash).ok()?;
            Some(vec![(tag.target(), tag.target_kind)])
        }
        Kind::Blob => Some(Vec::new()),
    }
}

const MAX_OBJECT_HEADER: usize = 32;

struct ForeignStore<'a> {
    repository: &'a Repository,
    /// The untrusted git directory.
    git: &'a Root,
    quarantine: &'a Quarantine,
    /// Its packs with our own indexes, loaded on first use. Inner `None` if there are none.
    packs: Option<Option<gix::OdbHandle>>,
}

impl<'a> ForeignStore<'a> {
    fn new(
        repository: &'a Repository,
        git: &'a Root,
        quarantine: &'a Quarantine,
    ) -> ForeignStore<'a> {
        ForeignStore {
            repository,
            git,
            quarantine,
            packs: None,
        }
    }

    /// Reads an object and verifies its hash; `None` if it does not exist.
    fn read(&mut self, id: ObjectId) -> anyhow::Result<Option<(Kind, Vec<u8>)>> {
        let object = match self.loose(id)? {
            Some(object) => Some(object),
            None => self.packed(id)?,
        };
        let Some((kind, data)) = object else {
            return Ok(None);
        };
        let hashed = gix::objs::compute_hash(self.repository.gix.object_hash(), kind, &data);
        anyhow::ensure!(
            hashed.is_ok_and(|hashed| hashed == id),
            UnsoundCommit(format!("object {id} is not what its name says"))
        );

        Ok(Some((kind, data)))
    }

    fn loose(&self, id: ObjectId) -> anyhow::Result<Option<(Kind, Vec<u8>)>> {
        let hex = id.to_hex().to_string();
        let path = PathBuf::from(format!("objects/{}/{}", &hex[..2], &hex[2..]));
        match self.git.read(&path, MAX_OBJECT) {
            Ok(packed) => match inflate_object(&packed, MAX_OBJECT) {
                Ok(object) => Ok(Some(object)),
                Err(why) => anyhow::bail!(UnsoundCommit(format!("object {id} {why}"))),
            },
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                anyhow::bail!(UnsoundCommit(format!("object {id} is too large")))
            }
            // Whatever the error, the object can still be in a pack.
            Err(_) => Ok(None),
        }
    }

    fn packed(&mut self, id: ObjectId) -> anyhow::Result<Option<(Kind, Vec<u8>)>> {
        if self.packs.is_none() {
            self.packs = Some(self.quarantine.copy_packs(self.repository, self.git)?);
        }

        let Some(packs) = self.packs.as_ref().and_then(Option::as_ref) else {
            return Ok(None);
        };
        let damaged = |_| UnsoundCommit(format!("object {id} cannot be read"));
        let Some(header) = packs.try_header(&id).map_err(damaged)? else {
            return Ok(None);
        };
        anyhow::ensure!(
            header.size <= MAX_OBJECT,
            UnsoundCommit(format!("object {id} is too large"))
        );
        let mut buffer = Vec::new();
        let object = packs.try_find(&id, &mut buffer).map_err(damaged)?;

        Ok(object.map(|data| (data.kind, data.data.to_vec())))
    }
}

/// Inflates and parses a loose object, or returns the reason why it is invalid.
fn inflate_object(packed: &[u8], limit: u64) -> Result<(Kind, Vec<u8>), &'static str> {
    let (mut source, mut state) = (packed, Decompress::new());
    let mut head = [0; MAX_OBJECT_HEADER];
    let length = inflate::read(&mut source, &mut state, &mut head).map_err(|_| DAMAGED_OBJECT)?;
    let header = gix::objs::decode::loose_header(&head[..length]);
    let (kind, size, start) = header.map_err(|_| DAMAGED_OBJECT)?;
    if size > limit {
        return Err("is too large");
    }

    let (size, begin) = (size as usize, &head[start..length]);
    // One more byte: the data can expand far beyond the announced size.
    let mut data = vec![0; (size + 1).max(begin.len())];
    let (first, rest) = data.split_at_mut(begin.len());
    first.copy_from_slice(begin);
    let read = inflate::read(&mut source, &mut state, rest).map_err(|_| DAMAGED_OBJECT)?;
    data.truncate(begin.len() + read);
    match data.len() == size {
        true => Ok((kind, data)),
        false => Err(DAMAGED_OBJECT),
    }
}

const DAMAGED_OBJECT: &str = "is damaged";

// Holds objects of commands while git checks them.
//
// The untrusted packs are limited in size, and each check in time.

/// Maximum total size of the untrusted packs in bytes.
const MAX_PACKS: u64 = 512 << 20;

const CHECK_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UnsoundCommit(String);

/// A temporary object directory. Dropping it deletes it.
struct Quarantine {
    dir: tempfile::TempDir,
}

impl Quarantine {
    fn new(repository: &Repository) -> anyhow::Result<Quarantine> {
        let dir = intake::scratch_dir(&intake::incoming_dir(repository))?;
        for name in ["ours/pack", "theirs/pack"] {
            std::fs::create_dir_all(dir.path().join(name))?;
        }

        Ok(Quarantine { dir })
    }

    fn own_dir(&self) -> PathBuf {
        self.dir.path().join("ours")
    }

    /// Makes a pack visible to git's checks only.
    fn expose_pack(&self, sealed: &Sealed) -> anyhow::Result<()> {
        for (ending, file) in [("pack", sealed.stream()), ("idx", sealed.index())] {
            // git finds a pack only under its usual name, which it does not have yet.
            std::os::unix::fs::symlink(file, self.pack_path(sealed).with_extension(ending))?;
        }
        Ok(())
    }

    fn pack_path(&self, sealed: &Sealed) -> PathBuf {
        self.own_dir().join(format!("pack/pack-{}", sealed.name()))
    }

    /// Checks a pack with the rules for pushes: well-formed objects, no forbidden names, no missing
    /// references.
    fn check_rules(&self, repository: &Repository, sealed: &Sealed) -> anyhow::Result<()> {
        // `--strict` also requires every referenced object, and in a partial clone the server has
        // some of them.
        let rules = if repository.is_partial() {
            "--fsck-objects"
        } else {
            "--strict"
        };

        let mut command = self.git(repository)?;
        command
            .args(["index-pack", "--verify", rules])
            .arg(self.pack_path(sealed).with_extension("pack"));
        ensure_sound(command)
    }

    /// Checks that no object is missing below a commit, except those that the user's refs reach.
    fn check_links(
        &self,
        repository: &Repository,
        head: CommitId,
        before: CommitId,
    ) -> anyhow::Result<()> {
        let (git, patience) = (self.git(repository)?, Some(CHECK_TIMEOUT));
        sound(intake::check_links(
            git,
            repository,
            [head],
            Some(before),
            patience,
        )?)
    }

    /// Copies the untrusted packs and indexes them again. `None` if there are none.
    fn copy_packs(
        &self,
        repository: &Repository,
        git: &Root,
    ) -> anyhow::Result<Option<gix::OdbHandle>> {
        let Ok(pack_dir) = git.open_dir(Path::new("objects/pack")) else {
            return Ok(None);
        };
        let objects = self.dir.path().join("theirs");
        let (mut number, mut bytes) = (0, 0);

        for name in pack_dir.names().unwrap_or_default() {
            if !name.as_bytes().ends_with(b".pack") {
                continue;
            }

            let Ok(pack) = pack_dir.read(Path::new(&name), MAX_PACKS) else {
                continue;
            };
            bytes += pack.len() as u64;
            anyhow::ensure!(
                bytes <= MAX_PACKS,
                UnsoundCommit("the packs that they made are too large".to_owned())
            );
            number += 1;
            // The untrusted name is not used.
            let copy = objects.join(format!("pack/pack-{number:040x}.pack"));

            File::create_new(&copy)?.write_all(&pack)?;
            let mut command = self.git(repository)?;
            command
                .args(["index-pack", "-o"])
                .args([copy.with_extension("idx"), copy]);
            ensure_sound(command)?;
        }

        if number == 0 {
            return Ok(None);
        }

        Ok(Some(
            gix::odb::at(objects, repository.gix.object_hash())?.into(),
        ))
    }

    /// Returns a git command in the user's repository that also sees the collected pack.
    fn git(&self, repository: &Repository) -> anyhow::Result<Command> {
        // Commits of a plan on a machine without git cannot be checked, so they are not imported.
        let git = intake::checking_git(repository, &self.own_dir());
        let mut command = git.map_err(|error| UnsoundCommit(format!("{error:#}")))?;
        command.args(["-c", "pack.writeReverseIndex=false", "-c", "pack.threads=1"]);
        intake::limit_memory(&mut command);
        Ok(command)
    }
}

fn ensure_sound(command: Command) -> anyhow::Result<()> {
    sound(intake::run_check(
        command,
        Stdio::null(),
        Some(CHECK_TIMEOUT),
    )?)
}

fn sound(problem: Option<String>) -> anyhow::Result<()> {
    match problem {
        None => Ok(()),
        Some(why) => anyhow::bail!(UnsoundCommit(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        use std::io::Write as _;
        let level = gix::zlib::Compression::BEST_SPEED;
        let mut stream = gix::zlib::stream::deflate::Write::new(Vec::new(), level);
        stream.write_all(bytes).unwrap();
        stream.flush().unwrap();
        stream.into_inner()
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<(Kind, &[u8]), &str>) {
        let actual = inflate_object(&deflated(bytes), 1000);
        let actual = actual.as_ref().map(|(kind, data)| (*kind, data.as_slice()));
        assert_eq!(actual.map_err(|why| *why), expected);
    }

    #[test]
    fn an_object_is_its_head_and_as_many_bytes_as_that_says() {
        check(b"blob 0\0", Ok((Kind::Blob, b"")));
        check(b"tree 3\0abc", Ok((Kind::Tree, b"abc")));
        let long = "x".repeat(999);
        check(
            format!("commit 999\0{long}").as_bytes(),
            Ok((Kind::Commit, long.as_bytes())),
        );
    }

    #[test]
    fn an_object_that_is_none_is_refused() {
        for bytes in [
            &b""[..],
            b"blob",
            b"blob 3",
            b"blob 3\0ab",
            b"blob 3\0abcd",
            b"blob -1\0",
            b"blob 3 \0abc",
            b"thing 3\0abc",
            b"blob 00000000000000000000000000000003\0abc",
        ] {
            check(bytes, Err("is damaged"));
        }
        check(b"blob 1001\0", Err("is too large"));
        check(b"blob 99999999999999999999999\0", Err("is damaged"));
        assert_eq!(inflate_object(b"garbage", 1000), Err("is damaged"));
    }
}
