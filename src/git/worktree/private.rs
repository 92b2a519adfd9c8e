//! The commands' git directory: a repository of its own that borrows the user's objects and has a
//! copy of their refs.
//!
//! Nothing of the user's is writable to commands. Their commits, branches, tags, stashes and
//! settings go into this repository. It is prepared where commands cannot write, and renamed into
//! place. Afterwards it is read like an untrusted push ([`crate::git::incoming`]) and deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::config::{File, Source};
use gix::objs::Exists as _;
use gix::refs::Target;

use super::root::GIT;
use super::{MAX_INDEX, SessionWorktree, visible};
use crate::git::ignore::rule_for;
use crate::git::object::CommitId;
use crate::git::repository::{Repository, alternates_line};
use crate::git::{During, diff, history, incoming, refs};
use crate::host::clock;
use crate::host::file::{Root, make_writable, remove_at_path, remove_below};

/// Commits and tracked paths that commands left in the git directory.
#[derive(Debug, Default)]
pub struct ImportedCommits {
    /// Their newest commit, if commits were imported.
    pub commit: Option<CommitId>,
    /// Paths that they added to the index or committed.
    pub tracked: Vec<Vec<u8>>,
    /// What was not imported, and why.
    pub remarks: Vec<String>,
}

/// Name of the directory while it is prepared.
const NEW: &str = "new";

const MAX_COPIED: u64 = 16 << 20;

/// Files of a git directory that change git's behavior, apart from its configuration.
const RULES: [&str; 3] = [EXCLUDE, "info/attributes", "info/grafts"];
const EXCLUDE: &str = "info/exclude";

impl SessionWorktree {
    pub fn make_git_dir(&self, user: &Repository, at: CommitId) -> anyhow::Result<()> {
        let create = || {
            self.remove_git_dir()?;
            let own_dir = self.root.claim(&self.session)?;
            remove_below(&own_dir, OsStr::new(NEW))?;
            self.write_git_dir(&own_dir.make_dir(Path::new(NEW))?, user, at)?;
            // One rename, so no command sees a partial git directory.
            own_dir.move_to(OsStr::new(NEW), &self.top()?, OsStr::new(GIT))?;
            Ok::<_, anyhow::Error>(())
        };
        create().with_context(|| {
            format!(
                "making a git directory for the commands in `{}`",
                self.path.display()
            )
        })
    }

    /// Removes the git directory, whatever commands did to it.
    pub fn remove_git_dir(&self) -> anyhow::Result<()> {
        match self.is_layered() {
            true => self.root.remove_git_dir_of(&self.session, &self.top()?)?,
            false => self.root.remove_git_dir(&self.session)?,
        }
        match remove_at_path(&self.record.visible()) {
            // NFS and FUSE keep a name for each file that is still open, here of packs. The next
            // store replaces them.
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Returns the paths outside the worktree that git needs in the commands' git directory.
    pub fn borrowed_paths(&self) -> Vec<PathBuf> {
        match self.store_at() {
            Some(path) => vec![path.to_owned()],
            None => visible::readable_paths(&self.record.visible()),
        }
    }

    /// Returns the files of the user's git directory to which the store for commands has links.
    pub(super) fn record_links(&self) -> Vec<PathBuf> {
        visible::linked_paths(&self.record.visible())
    }

    /// Returns whether commands borrow objects from another directory in the checkout.
    pub(super) fn borrows_inside(&self, user: &Repository) -> bool {
        let others = user.gix.objects.store_ref().alternate_db_paths();
        let is_inside = |dir: &PathBuf| {
            dir.canonicalize()
                .is_ok_and(|dir| dir.starts_with(&self.path))
        };
        others.is_ok_and(|dirs| dirs.iter().any(is_inside))
    }

    pub fn import(&self, user: &Repository, before: CommitId) -> anyhow::Result<ImportedCommits> {
        let Some(git) = self.open_git_dir() else {
            return Ok(ImportedCommits::default());
        };
        let received = incoming::receive(user, &git, before, self.visible_stores(user)?)?;
        let mut tracked = self.staged(&git, user.gix.object_hash());

        if let Some(commit) = received.commit {
            let (from, to) = (user.commit(before)?.tree, user.commit(commit)?.tree);
            let new = diff::changes(user, from, to)?.into_iter();
            tracked.extend(
                new.filter(|change| change.new.is_some())
                    .map(|change| change.path),
            );
        }

        Ok(ImportedCommits {
            commit: received.commit,
            tracked: tracked.into_iter().collect(),
            remarks: received.remarks,
        })
    }

    /// Opens the object stores from which the commands' git directory borrowed. One that cannot be opened
    /// shows nothing, as in git: an alternate that is gone, or what a command without a sandbox removed.
    fn visible_stores(&self, user: &Repository) -> anyhow::Result<Vec<gix::OdbHandle>> {
        let store = self.record.visible().join(visible::OBJECTS);
        let others = user.gix.objects.store_ref().alternate_db_paths();
        let others = others.during("reading alternates")?;
        let mut stores = Vec::new();
        for dir in [store].into_iter().chain(others) {
            let Ok(store) = gix::odb::at(dir, user.gix.object_hash()) else {
                continue;
            };
            let mut store = gix::OdbHandle::from(store);
            // Nothing is added to them. Looking up a missing object loads all packs.
            store.exists(&user.gix.object_hash().null());
            store.refresh_never();
            stores.push(store);
        }
        Ok(stores)
    }

    /// Opens the git directory that commands left. Its content is untrusted.
    fn open_git_dir(&self) -> Option<Root> {
        let worktree = self.top().ok()?;
        make_writable(&worktree, OsStr::new(GIT));
        worktree.open_dir(Path::new(GIT)).ok()
    }

    /// Returns the paths in the commands' index that are not in ours.
    fn staged(&self, git: &Root, hash: gix::hash::Kind) -> BTreeSet<Vec<u8>> {
        let path = Path::new("index");
        let (Ok(own), Ok(current)) = (self.index(), git.read(path, MAX_INDEX)) else {
            return BTreeSet::new();
        };
        if *own == current {
            return BTreeSet::new();
        }

        let paths = |bytes: &[u8]| read_index_paths(bytes, hash).unwrap_or_default();
        let own = paths(&own);
        let mut current = paths(&current);
        current.retain(|path| !own.contains(path));
        current
    }

    fn write_git_dir(&self, git: &Root, user: &Repository, at: CommitId) -> anyhow::Result<()> {
        let put = |name: &str, bytes: &[u8]| git.create_aside(Path::new(name), bytes);
        // Without `refs` and `objects`, git does not see a repository.
        for dir in ["refs/heads", "refs/tags", "objects/pack", "objects/info"] {
            git.make_dir(Path::new(dir))?;
        }

        let mut refs = copy_refs(user)?;
        let head = match refs.move_branch(user, at)? {
            Some(branch) => format!("ref: {branch}\n"),
            None => format!("{at}\n"),
        };
        put("HEAD", head.as_bytes())?;
        let config = generate_config(user).during("copying git's settings")?;
        put("config", &config)?;
        let roots = roots(user, &refs, at);
        let dir = self.record.visible();
        let store = visible::make_visible_store(user, &dir, &roots)?;
        let store = match self.store_at() {
            Some(path) => {
                visible::make_lfs_mount_point(&dir)?;
                path.join(visible::OBJECTS)
            }
            None => store,
        };
        put("objects/info/alternates", &alternates(user, &store)?)?;
        put("packed-refs", &refs.packed())?;
        for (name, target) in refs.symbolic {
            git.create_aside(Path::new(OsStr::from_bytes(&name)), &target)?;
        }

        self.copy_rules(git, user)?;
        match self.index() {
            Ok(index) => put("index", &index).map_err(Into::into),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Copies what hides or cuts off a part of the repository.
    fn copy_rules(&self, git: &Root, user: &Repository) -> anyhow::Result<()> {
        let common = user.common_dir();
        let rules = RULES.map(|name| (name, common.join(name)));
        let edges = user
            .gix
            .shallow_file()
            .during("finding the shallow edges")?;
        let edges = ("shallow", edges);

        for (name, path) in rules.into_iter().chain([edges]) {
            let mut bytes = copy_file(&path, MAX_COPIED);
            if name == EXCLUDE && !self.linked.is_empty() {
                // A rule has one line.
                let paths = self.linked.iter().filter(|path| !path.contains(&b'\n'));
                let rules = paths.flat_map(|path| rule_for(path));
                bytes.get_or_insert_default().extend(rules);
            }
            if let Some(bytes) = bytes {
                git.create_aside(Path::new(name), &bytes)?;
            }
        }
        Ok(())
    }
}

fn copy_file(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let dir = Root::open(path.parent()?).ok()?;
    dir.read(Path::new(path.file_name()?), limit).ok()
}

/// Returns the objects from which commands can reach others: HEAD, the refs that they see, and the
/// parents in grafts.
fn roots(user: &Repository, refs: &CopiedRefs, at: CommitId) -> BTreeSet<ObjectId> {
    let grafts = user.common_dir().join("info/grafts");
    let grafts = copy_file(&grafts, MAX_COPIED).unwrap_or_default();
    let words = grafts.split(u8::is_ascii_whitespace);
    let grafted = words.filter_map(|word| ObjectId::from_hex(word).ok());
    let ids = refs.direct.values().copied().chain(grafted);
    ids.chain([at.0]).collect()
}

/// Returns the list of borrowed object directories: what commands see of the user's, and their
/// alternates. They are listed one by one because git follows alternates only five levels deep.
fn alternates(user: &Repository, visible: &Path) -> anyhow::Result<Vec<u8>> {
    let store = user.gix.objects.store_ref();
    let others = store.alternate_db_paths().during("reading alternates")?;
    let mut list = Vec::new();
    for dir in [visible.to_owned()].into_iter().chain(others) {
        let dir = dir.canonicalize().unwrap_or(dir);
        list.extend(alternates_line(&dir));
    }

    Ok(list)
}

/// The header does not claim `peeled`, so git peels annotated tags itself.
const PACKED_HEADER: &[u8] = b"# pack-refs with: sorted \n";

/// Refs that are not copied: TeDDy's, the stash, which a careless `git stash pop` would use, and
/// refs of one worktree.
const EXCLUDED_REFS: [&[u8]; 5] = [
    b"refs/teddy/",
    b"refs/stash",
    b"refs/bisect/",
    b"refs/rewritten/",
    b"refs/worktree/",
];

#[derive(Debug, Default)]
struct CopiedRefs {
    direct: BTreeMap<Vec<u8>, ObjectId>,
    /// Symbolic refs, which cannot be packed, as name and file content.
    symbolic: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Copies the user's refs. Unreadable refs are left out.
fn copy_refs(user: &Repository) -> anyhow::Result<CopiedRefs> {
    let mut copied = CopiedRefs::default();
    for (name, target) in user.refs.all("refs/")?.refs {
        let name = name.as_bstr();
        if EXCLUDED_REFS.iter().any(|start| name.starts_with(start)) {
            continue;
        }

        match target {
            Target::Object(id) => {
                copied.direct.insert(name.to_vec(), id);
            }
            Target::Symbolic(target) => {
                let text = format!("ref: {}\n", target.as_bstr()).into_bytes();
                copied.symbolic.push((name.to_vec(), text));
            }
        }
    }

    Ok(copied)
}

impl CopiedRefs {
    /// Moves the user's branch to the commit that the commands begin with, and returns its name. The
    /// commit has the user's edits and untracked files: `git checkout main` would take them back if
    /// `main` were where the user has it.
    ///
    /// `None` if HEAD is detached, if the branch is an alias, or if the commit does not contain it.
    fn move_branch(&mut self, user: &Repository, at: CommitId) -> anyhow::Result<Option<String>> {
        let head = refs::head(user)?;
        let contains_head = match head {
            Some(head) => history::is_ancestor(user, head, at)?,
            None => true,
        };
        let branch = refs::branch(user)?.map(|branch| format!("refs/heads/{branch}"));
        let branch = branch.filter(|branch| {
            let is_copied = self.direct.contains_key(branch.as_bytes());
            contains_head && (is_copied || head.is_none())
        });
        if let Some(branch) = &branch {
            self.direct.insert(branch.clone().into_bytes(), at.0);
        }
        Ok(branch)
    }

    /// The content of `packed-refs`.
    fn packed(&self) -> Vec<u8> {
        let mut packed = PACKED_HEADER.to_vec();
        for (name, id) in &self.direct {
            packed.extend(id.to_hex().to_string().bytes());
            packed.push(b' ');
            packed.extend(name);
            packed.push(b'\n');
        }
        packed
    }
}

// Reads the paths from an index that commands wrote.
//
// A path that a command adds is part of the plan's result even if it is ignored. The index is
// untrusted, so only its names are used, as candidates.

const INDEX_MAGIC: &[u8] = b"DIRC";

const VERSION_OFFSET: usize = 4;

/// Offset of the number of entries.
const COUNT_OFFSET: usize = 8;

/// Offset of the first entry.
const HEADER_LEN: usize = 12;

/// Bytes of an entry before its id.
const STAT_LEN: usize = 40;

/// Length of the flags after the id.
const FLAGS_LEN: usize = 2;

/// Flag: two more bytes of flags follow.
const EXTENDED_FLAG: u16 = 0x4000;

/// Entries are padded with at least one NUL to a multiple of this, except in version 4.
const ENTRY_ALIGNMENT: usize = 8;

const MAX_INDEX_PATH: usize = 4096;

/// Upper bound for the sum of all paths. Version 4 compresses common prefixes, so a small file
/// could expand to more than the memory.
const MAX_INDEX_NAMES: usize = 128 << 20;

/// Returns the paths in an index; `None` if it is invalid.
fn read_index_paths(bytes: &[u8], hash: gix::hash::Kind) -> Option<BTreeSet<Vec<u8>>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if !bytes.starts_with(INDEX_MAGIC) {
        return None;
    }

    let version = number(VERSION_OFFSET).filter(|version| (2..=4).contains(version))?;
    let (mut at, mut paths, mut path) = (HEADER_LEN, BTreeSet::new(), Vec::new());
    let mut names = 0;
    for _ in 0..number(COUNT_OFFSET)? {
        let fixed = STAT_LEN + hash.len_in_bytes();
        let flags = bytes.get(at + fixed..at + fixed + FLAGS_LEN)?;
        let flags = u16::from_be_bytes(flags.try_into().ok()?);
        let extended = flags & EXTENDED_FLAG != 0 && version > 2;
        let mut name = at + fixed + FLAGS_LEN + if extended { FLAGS_LEN } else { 0 };
        if version == 4 {
            let (strip, length) = read_varint(bytes.get(name..)?)?;
            path.truncate(path.len().checked_sub(strip)?);
            name += length;
        } else {
            path.clear();
        }

        let length = bytes.get(name..)?.iter().position(|&byte| byte == 0)?;
        path.extend(&bytes[name..name + length]);
        at = if version == 4 {
            name + length + 1
        } else {
            at + (name + length - at + ENTRY_ALIGNMENT) / ENTRY_ALIGNMENT * ENTRY_ALIGNMENT
        };
        names += path.len();
        if path.len() > MAX_INDEX_PATH || names > MAX_INDEX_NAMES {
            return None;
        }

        paths.insert(path.clone());
    }

    Some(paths)
}

/// Decodes a number as in the offsets of pack deltas; also returns its length.
fn read_varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, &byte) in bytes.iter().take(8).enumerate() {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

// Generates the configuration of the commands' git directory: settings of the user's repository
// that affect files and history, but none that runs a program except filters.
//
// git reads the user's global configuration itself. Filters of the repository, for example LFS,
// are copied because files would have other content without them. They run with the rights of the
// command, and only commands run git in this directory.

/// Sections and the keys to copy. `.*` stands for the subsections.
const HARMLESS_KEYS: [(&str, &str); 18] = [
    (
        "core",
        "abbrev attributesfile autocrlf bigfilethreshold checkstat commentchar commentstring eol \
         excludesfile filemode ignorecase precomposeunicode protecthfs protectntfs quotepath \
         safecrlf symlinks trustctime usereplacerefs whitespace",
    ),
    ("apply", "ignorewhitespace whitespace"),
    ("branch.*", "description merge rebase remote"),
    ("commit", "cleanup status verbose"),
    (
        "diff",
        "algorithm context ignoresubmodules interhunkcontext mnemonicprefix noprefix orderfile \
         renamelimit renames submodule suppressblankempty wordregex",
    ),
    ("diff.*", "binary wordregex xfuncname"),
    ("filter.*", "clean process required smudge"),
    ("i18n", "commitencoding logoutputencoding"),
    ("init", "defaultbranch"),
    ("lfs", "fetchexclude fetchinclude url"),
    ("log", "date decorate follow mailmap"),
    (
        "merge",
        "conflictstyle directoryrenames ff renamelimit renames renormalize",
    ),
    ("pull", "ff rebase"),
    ("rebase", "autosquash autostash updaterefs"),
    ("remote.*", "fetch partialclonefilter promisor tagopt url"),
    (
        "status",
        "relativepaths showuntrackedfiles submodulesummary",
    ),
    ("submodule.*", "active branch url"),
    ("versionsort", "suffix"),
];

/// Settings for commands that override the user's: no hooks, no other programs, no signing because
/// no user can unlock the key, no background maintenance. `alternateRefsCommand` keeps `git fetch`
/// from listing the refs of the repository whose objects are borrowed: commands cannot open it, and
/// have a copy of its refs.
const FIXED_SETTINGS: &str = "\
[core]
\tbare = false
\tlogAllRefUpdates = true
\thooksPath = /dev/null
\talternateRefsCommand = true
\tfsmonitor = false
\tuntrackedCache = false
[commit]
\tgpgSign = false
[tag]
\tgpgSign = false
[push]
\tgpgSign = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[index]
\tsparse = false
[advice]
\tdetachedHead = false
";

fn generate_config(user: &Repository) -> Result<Vec<u8>, gix::Error> {
    let mut config = File::default();
    push_format(user, &mut config)?;
    let snapshot = user.gix.config_snapshot();
    for section in snapshot.plumbing().sections() {
        let local = matches!(section.meta().source, Source::Local | Source::Worktree);
        let header = section.header();
        let (name, subsection) = (header.name().to_str_lossy(), header.subsection_name());
        let body = section.body();
        let mut names: Vec<String> = body.value_names().collect();

        names.dedup();
        names.retain(|key| local && is_harmless(&name, subsection.is_some(), key));
        if names.is_empty() {
            continue;
        }

        let mut copy = config.new_section(&*name, subsection.map(ToOwned::to_owned))?;
        for key in names {
            if body.value_implicit(&key) == Some(None) {
                copy.push(&key, None::<&BStr>)?;
                continue;
            }
            for value in body.values(&key) {
                // git does not allow NUL, and gix would end the value there.
                let value = without_password(&value).replace(b"\0", b"");
                copy.push(&key, value.as_bstr())?;
            }
        }
    }

    let (author, _) = user.signatures(gix::date::Time {
        seconds: clock::now().timestamp().as_second(),
        offset: 0,
    });
    let mut identity = config.new_section("user", None)?;
    identity.push("name", author.name)?;
    identity.push("email", author.email)?;

    Ok([&config.to_bstring()[..], FIXED_SETTINGS.as_bytes()].concat())
}

/// Adds the repository format, which must come first.
fn push_format(user: &Repository, config: &mut File) -> Result<(), gix::Error> {
    let hash = user.gix.object_hash();
    let hash = (hash != gix::hash::Kind::Sha1).then(|| hash.to_string());
    let promisor = user.config("extensions.partialClone");
    let extensions = [("objectFormat", hash), ("partialClone", promisor)];
    let is_extended = extensions.iter().any(|(_, value)| value.is_some());
    let version = if is_extended { "1" } else { "0" };
    config
        .new_section("core", None)?
        .push("repositoryFormatVersion", version)?;
    for (key, value) in extensions {
        if let Some(value) = value {
            config
                .section_mut_or_create_new("extensions", None)?
                .push(key, value)?;
        }
    }
    Ok(())
}

fn is_harmless(section: &str, has_subsection: bool, key: &str) -> bool {
    let section = section.to_ascii_lowercase() + if has_subsection { ".*" } else { "" };
    let keys = HARMLESS_KEYS.iter().find(|(name, _)| *name == section);
    let key = key.to_ascii_lowercase();
    keys.is_some_and(|(_, keys)| keys.split(' ').any(|harmless| harmless == key))
}

/// Removes the password or token from a URL.
fn without_password(value: &BString) -> BString {
    let Some((scheme, address)) = value.split_once_str("://") else {
        return value.clone();
    };
    let host = address.find_byte(b'/').unwrap_or(address.len());
    let Some(at) = address[..host].rfind_byte(b'@') else {
        return value.clone();
    };
    let user = &address[..at];

    // `git` in `ssh://git@host` is a user name, but `https://token@host` contains a token.
    let keeps = !user.contains(&b':') && scheme.eq_ignore_ascii_case(b"ssh");
    if keeps {
        return value.clone();
    }

    [scheme, b"://", &address[at + 1..]].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(version: u32, names: &[&str]) -> Vec<u8> {
        let mut bytes = [INDEX_MAGIC, &version.to_be_bytes()].concat();
        bytes.extend(u32::try_from(names.len()).unwrap().to_be_bytes());
        let mut last = 0;
        for name in names {
            let start = bytes.len();
            bytes.extend([0; STAT_LEN + 20]);
            let flags = if version == 3 { EXTENDED_FLAG } else { 0 };
            bytes.extend(flags.to_be_bytes());
            if version == 3 {
                bytes.extend([0, 0]);
            }
            if version == 4 {
                bytes.push(last);
                last = u8::try_from(name.len()).unwrap();
            }
            bytes.extend(name.bytes());
            bytes.push(0);
            while version < 4 && (bytes.len() - start) % ENTRY_ALIGNMENT != 0 {
                bytes.push(0);
            }
        }
        bytes
    }

    #[test]
    fn the_paths_of_every_version_are_read() {
        let names = ["a", "d/e/f", "d/e/long-name-of-a-file", "z"];
        let expected: BTreeSet<Vec<u8>> =
            names.iter().map(|name| name.as_bytes().to_vec()).collect();
        for version in 2..=4 {
            let actual = read_index_paths(&index(version, &names), gix::hash::Kind::Sha1);
            assert_eq!(actual.as_ref(), Some(&expected), "version {version}");
        }
    }

    #[test]
    fn what_is_no_index_has_no_paths() {
        let full = index(2, &["a", "b"]);
        for length in 0..full.len() - 7 {
            assert_eq!(
                read_index_paths(&full[..length], gix::hash::Kind::Sha1),
                None,
                "{length}"
            );
        }
        assert_eq!(
            read_index_paths(&index(5, &["a"]), gix::hash::Kind::Sha1),
            None
        );
        let mut many = index(4, &["a"]);
        many[8..12].fill(0xff);
        assert_eq!(read_index_paths(&many, gix::hash::Kind::Sha1), None);
        // Each path extends the previous one by a letter.
        let path_count = |count: usize| {
            let mut bytes = index(4, &vec!["a"; count]);
            let entry = STAT_LEN + 20 + FLAGS_LEN + 3;
            (0..count).for_each(|at| bytes[HEADER_LEN + at * entry + entry - 3] = 0);
            read_index_paths(&bytes, gix::hash::Kind::Sha1).map(|paths| paths.len())
        };
        assert_eq!(path_count(MAX_INDEX_PATH), Some(MAX_INDEX_PATH));
        assert_eq!(path_count(MAX_INDEX_PATH + 1), None);
        // An entry removes more bytes than the previous path has.
        let mut cut = index(4, &["a"]);
        cut[HEADER_LEN + STAT_LEN + 20 + FLAGS_LEN] = 0x7f;
        assert_eq!(read_index_paths(&cut, gix::hash::Kind::Sha1), None);
    }
}

#[cfg(test)]
mod config_tests {
    use super::*;

    #[track_caller]
    fn check_address(address: &str, expected: &str) {
        assert_eq!(without_password(&address.into()), expected);
    }

    #[test]
    fn the_password_of_an_address_is_not_copied() {
        check_address("https://u:secret@host/x", "https://host/x");
        check_address("https://token@host", "https://host");
        check_address("https://host/a@b", "https://host/a@b");
        check_address("ssh://git@host/x", "ssh://git@host/x");
        check_address("git@host:x", "git@host:x");
        check_address("/a/path", "/a/path");
    }

    #[test]
    fn what_runs_a_program_is_not_copied() {
        for (section, has_subsection, key) in [
            ("core", false, "fsmonitor"),
            ("core", false, "hookspath"),
            ("core", false, "sshcommand"),
            ("core", false, "pager"),
            ("core", false, "editor"),
            ("core", false, "worktree"),
            ("core", false, "gitproxy"),
            ("diff", false, "external"),
            ("diff", true, "textconv"),
            ("diff", true, "command"),
            ("merge", true, "driver"),
            ("submodule", true, "update"),
            ("remote", true, "uploadpack"),
            ("remote", true, "vcs"),
            ("alias", false, "x"),
            ("credential", false, "helper"),
            ("gpg", false, "program"),
            ("include", false, "path"),
            ("http", false, "extraheader"),
            ("url", true, "insteadof"),
        ] {
            let is_copied = is_harmless(section, has_subsection, key);
            assert!(!is_copied, "{section}.{key}");
        }
        assert!(is_harmless("CORE", false, "AutoCRLF"));
    }
}
