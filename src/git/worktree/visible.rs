//! The object store from which the commands' git directory borrows.
//!
//! The user's own store also has what no ref reaches, for example a secret that was staged once.
//! Commands get links instead: to every pack except cruft packs, and to those loose objects that
//! the refs they see, HEAD or an object of those packs reach. A link keeps the data of a pack that
//! `git gc` replaces meanwhile. The links exist only while commands run.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gix::ObjectId;
use gix::objs::Kind;
use gix::zlib::Compression;
use gix::zlib::stream::deflate;
use gix_pack::data::entry::Header;
use gix_pack::index::File as Index;

use crate::git::During as _;
use crate::git::incoming::links;
use crate::git::keep::pack::keep;
use crate::git::repository::Repository;
use crate::host::file::{make_dirs, read_regular_text, remove_at_path, write_cache};

/// Number of attempts to get a store in which no pack was replaced while it was made.
const ATTEMPTS: u32 = 4;
/// Files of a pack that commands need: data, index, reverse index, and the mark of a pack from the
/// server of a partial clone.
const PACK_FILES: [&str; 4] = ["pack", "rev", "promisor", "idx"];

/// Object directory of the store.
pub(super) const OBJECTS: &str = "objects";
/// Git LFS searches for files here: next to an object directory from which a repository borrows.
pub(super) const LFS: &str = "lfs";

/// Creates the store in `dir`, with what `roots` reach. Returns its object directory.
pub(super) fn make_visible_store(
    user: &Repository,
    dir: &Path,
    roots: &BTreeSet<ObjectId>,
) -> anyhow::Result<PathBuf> {
    let objects = dir.join(OBJECTS);
    let during = || {
        format!(
            "making the object store for commands in `{}`",
            dir.display()
        )
    };
    let mut attempt = 1;
    loop {
        // The user's objects keep their other names.
        remove_at_path(dir).with_context(during)?;
        make_dirs(&objects.join("pack")).with_context(during)?;
        let packs = Packs::list(user).with_context(during)?;
        let filled = fill(user, &objects, &packs, roots);
        // A concurrent `git gc` moves objects between the packs.
        let is_settled = Packs::list(user).is_ok_and(|now| now == packs);
        if is_settled || attempt == ATTEMPTS {
            filled.with_context(during)?;
            break;
        }
        attempt += 1;
    }

    let lfs = user.common_dir().join(LFS);
    std::os::unix::fs::symlink(lfs, dir.join(LFS)).with_context(during)?;
    Ok(objects)
}

/// Returns what commands must be able to read: the store, and the packs that it names by symbolic
/// links because hard links are impossible.
pub(super) fn readable_paths(dir: &Path) -> Vec<PathBuf> {
    let objects = dir.join(OBJECTS);
    [objects].into_iter().chain(linked_paths(dir)).collect()
}

/// Returns the packs that the store names by symbolic links.
pub(super) fn linked_paths(dir: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(dir.join(OBJECTS).join("pack"));
    let names = names.into_iter().flatten();
    names
        .filter_map(|name| fs::read_link(name.ok()?.path()).ok())
        .collect()
}

/// Replaces the link to the user's LFS files, which an overlay covers, by a directory to mount them
/// on.
pub(super) fn make_lfs_mount_point(dir: &Path) -> anyhow::Result<()> {
    let lfs = dir.join(LFS);
    let made = fs::remove_file(&lfs).and_then(|()| fs::create_dir(&lfs));
    made.with_context(|| format!("making `{}`", lfs.display()))
}

fn fill(
    user: &Repository,
    dir: &Path,
    packs: &Packs,
    roots: &BTreeSet<ObjectId>,
) -> anyhow::Result<()> {
    for pack in &packs.visible {
        link_pack(pack, &dir.join("pack"))?;
    }

    let hidden = HiddenObjects::list(user, packs)?;
    if hidden.is_empty() {
        return Ok(());
    }
    let mut roots = roots.clone();
    roots.extend(linked_from_packs(user, packs, &hidden));
    let objects = user.gix.objects.store_ref().path();
    for (id, place) in reached_objects(user, &hidden, roots) {
        let hex = id.to_hex().to_string();
        let file = Path::new(&hex[..2]).join(&hex[2..]);
        match place {
            Place::Loose => link_object(&objects.join(&file), &dir.join(&file)),
            Place::Cruft => write_object(user, id, &dir.join(&file)),
        }
        .with_context(|| format!("object {id}"))?;
    }

    Ok(())
}

fn link_pack(pack: &Path, dir: &Path) -> anyhow::Result<()> {
    for ending in PACK_FILES {
        let file = pack.with_extension(ending);
        let to = dir.join(file.file_name().unwrap_or_default());
        // Also resolves a symbolic link, which a hard link would only copy.
        let linked = fs::canonicalize(&file).and_then(|from| match fs::hard_link(&from, &to) {
            Err(error) if is_refused(&error) => std::os::unix::fs::symlink(&from, &to),
            linked => linked,
        });
        match linked {
            // It was replaced, or the file is optional.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            linked => linked.with_context(|| format!("linking `{}`", file.display()))?,
        }
    }

    Ok(())
}

fn link_object(from: &Path, to: &Path) -> anyhow::Result<()> {
    let link = || match fs::hard_link(from, to) {
        Err(error) if is_refused(&error) => fs::copy(from, to).map(drop),
        linked => linked,
    };
    let linked = match link() {
        // The directory does not exist yet.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make_parent(to)?;
            link()
        }
        linked => linked,
    };
    match linked {
        // `git gc` moved it into a pack, or it exists already.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) => {
            Ok(())
        }
        linked => Ok(linked?),
    }
}

/// Writes an object as a loose one. Linking the cruft pack would show all of its objects.
fn write_object(user: &Repository, id: ObjectId, to: &Path) -> anyhow::Result<()> {
    let object = user.gix.find_object(id).during("reading a cruft pack")?;
    let kind: Kind = object.kind;
    let header = gix::objs::encode::loose_header(kind, object.data.len() as u64);
    make_parent(to)?;
    let mut file = deflate::Write::new(fs::File::create_new(to)?, Compression::BEST_SPEED);
    file.write_all(&header)?;
    file.write_all(&object.data)?;
    Ok(file.flush()?)
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), make_dirs)
}

/// Returns whether the file system or the kernel refuses a hard link: the store is on another disk,
/// or the file belongs to another user (`fs.protected_hardlinks`).
fn is_refused(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::CrossesDevices
            | ErrorKind::PermissionDenied
            | ErrorKind::TooManyLinks
            | ErrorKind::Unsupported
    )
}

/// The packs of the user's object directory.
#[derive(PartialEq, Eq)]
struct Packs {
    /// Packs with an index, without extension.
    visible: Vec<PathBuf>,
    /// Packs of unreachable objects that `git gc` keeps for a while.
    cruft: Vec<PathBuf>,
}

impl Packs {
    fn list(user: &Repository) -> anyhow::Result<Packs> {
        let files = keep::pack_files(user)?;
        let has = |pack: &Path, ending| files.contains(&pack.with_extension(ending));
        let is_index = |file: &&PathBuf| file.extension().is_some_and(|ending| ending == "idx");
        let packs = files.iter().filter(is_index);
        let packs = packs.map(|index| index.with_extension(""));
        let packs = packs.filter(|pack| has(pack, "pack"));
        let (cruft, visible) = packs.partition(|pack| has(pack, "mtimes"));
        Ok(Packs { visible, cruft })
    }
}

/// Opens the index of a pack. `None` if it is damaged, or was just replaced.
fn open_index(user: &Repository, pack: &Path) -> Option<Index> {
    Index::at(pack.with_extension("idx"), user.gix.object_hash()).ok()
}

fn have(indexes: &[Index], id: &ObjectId) -> bool {
    indexes.iter().any(|index| index.lookup(id).is_some())
}

// Finds which of the objects that can be unreachable are reached.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Loose,
    /// In a cruft pack: nothing reached it when git made the pack, but a ref can since then.
    Cruft,
}

/// Objects that are only loose or in cruft packs. Commands do not see them unless they are reached.
struct HiddenObjects {
    loose: HashSet<ObjectId>,
    packed: Vec<Index>,
    cruft: Vec<Index>,
}

impl HiddenObjects {
    fn list(user: &Repository, packs: &Packs) -> anyhow::Result<HiddenObjects> {
        let open = |packs: &[PathBuf]| {
            let opened = packs.iter().filter_map(|pack| open_index(user, pack));
            opened.collect()
        };
        Ok(HiddenObjects {
            loose: list_loose(user.gix.objects.store_ref().path())?,
            packed: open(&packs.visible),
            cruft: open(&packs.cruft),
        })
    }

    fn is_empty(&self) -> bool {
        self.loose.is_empty() && self.cruft.is_empty()
    }

    /// Returns where a hidden object is; `None` if commands see it anyway or it does not exist here.
    fn place(&self, id: &ObjectId) -> Option<Place> {
        let place = match () {
            () if self.loose.contains(id) => Place::Loose,
            () if have(&self.cruft, id) => Place::Cruft,
            () => return None,
        };
        (!have(&self.packed, id)).then_some(place)
    }
}

/// Returns the hidden objects that `roots` reach through hidden objects.
fn reached_objects(
    user: &Repository,
    hidden: &HiddenObjects,
    roots: BTreeSet<ObjectId>,
) -> HashMap<ObjectId, Place> {
    let hash = user.gix.object_hash();
    let mut reached = HashMap::new();
    // The kind of a root is unknown until it is read.
    let mut next: Vec<(ObjectId, Option<Kind>)> =
        roots.into_iter().map(|root| (root, None)).collect();
    while let Some((id, kind)) = next.pop() {
        if reached.contains_key(&id) {
            continue;
        }
        let Some(place) = hidden.place(&id) else {
            continue;
        };
        reached.insert(id, place);
        if kind == Some(Kind::Blob) {
            continue;
        }

        // A damaged object reaches nothing, and commands see that it is damaged.
        let Ok(object) = user.gix.find_object(id) else {
            continue;
        };
        let found = links(object.kind, &object.data, hash).unwrap_or_default();
        next.extend(found.into_iter().map(|(id, kind)| (id, Some(kind))));
    }

    reached
}

fn list_loose(objects: &Path) -> anyhow::Result<HashSet<ObjectId>> {
    let mut loose = HashSet::new();
    for first in 0..=u8::MAX {
        let name = format!("{first:02x}");
        let dir = objects.join(&name);
        let files = match fs::read_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            files => files.with_context(|| format!("cannot list `{}`", dir.display()))?,
        };
        for file in files {
            let hex = [name.as_bytes(), file?.file_name().as_encoded_bytes()].concat();
            loose.extend(ObjectId::from_hex(&hex));
        }
    }

    Ok(loose)
}

// Which hidden objects the objects of a pack refer to.
//
// The packs of `git gc` and of a clone are closed: they have everything that they refer to. Those
// of a fetch are not, because the fetching side had some objects already, and neither are ours. A
// pack never changes, so each is read once, and the result is noted.

/// File below `teddy/` with one line for each pack: its name and the ids.
const NOTE: &str = "pack-links";
const MAX_NOTE: u64 = 16 << 20;
/// Up to this number of objects, trees are read, too. In a larger pack a commit of the fetch has the
/// user's commits as parents, and these reach the rest.
const MAX_WITH_TREES: u32 = 20_000;
/// Above this number of objects, a pack counts as closed.
const MAX_OBJECTS: u32 = 1_000_000;

type Links = BTreeMap<String, BTreeSet<ObjectId>>;

/// Returns the hidden objects to which objects of packs refer.
fn linked_from_packs(
    user: &Repository,
    packs: &Packs,
    hidden: &HiddenObjects,
) -> BTreeSet<ObjectId> {
    let note = user.teddy_dir().join(NOTE);
    let noted = read_note(&note);
    let mut current = Links::new();
    for pack in &packs.visible {
        let name = pack.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let links = match noted.get(&name) {
            Some(links) => Some(links.clone()),
            None => links_of(user, pack, hidden),
        };
        current.extend(links.map(|links| (name, links)));
    }

    if current != noted {
        // Without a note the packs are read again.
        let _ = write_note(&note, &current);
    }
    current.into_values().flatten().collect()
}

/// Reads a pack. `None` if it was replaced meanwhile.
fn links_of(user: &Repository, pack: &Path, hidden: &HiddenObjects) -> Option<BTreeSet<ObjectId>> {
    let index = open_index(user, pack)?;
    let count = index.num_objects();
    let mut outside = BTreeSet::new();
    if count > MAX_OBJECTS {
        return Some(outside);
    }
    let hash = user.gix.object_hash();
    let data = gix_pack::data::File::at(pack.with_extension("pack"), hash).ok()?;

    let mut entries: Vec<_> = index.iter().collect();
    // Deltas are close to their bases.
    entries.sort_unstable_by_key(|entry| entry.pack_offset);
    for entry in entries {
        let kind = kind_at(&data, &index, entry.pack_offset);
        let is_read = match kind {
            Some(Kind::Commit | Kind::Tag) => true,
            Some(Kind::Tree) => count <= MAX_WITH_TREES,
            Some(Kind::Blob) | None => false,
        };
        if !is_read {
            continue;
        }
        let Ok(object) = user.gix.find_object(entry.oid) else {
            continue;
        };
        let found = links(object.kind, &object.data, hash).unwrap_or_default();
        let found = found.into_iter().map(|(id, _)| id);
        outside.extend(found.filter(|id| hidden.place(id).is_some()));
    }

    Some(outside)
}

/// Returns the kind of an entry. A delta has that of its base.
fn kind_at(data: &gix_pack::data::File, index: &Index, mut offset: u64) -> Option<Kind> {
    // In a damaged pack, deltas can have each other as base.
    for _ in 0..index.num_objects() {
        let entry = data.entry(offset).ok()?;
        offset = match entry.header {
            Header::OfsDelta { base_distance } => {
                Header::verified_base_pack_offset(offset, base_distance)?
            }
            Header::RefDelta { base_id } => index.pack_offset_at_index(index.lookup(base_id)?),
            header => return header.as_kind(),
        };
    }
    None
}

fn read_note(path: &Path) -> Links {
    let text = read_regular_text(path, MAX_NOTE).unwrap_or_default();
    text.lines().filter_map(parse_line).collect()
}

/// Parses a line. A damaged one is ignored, so its pack is read again.
fn parse_line(line: &str) -> Option<(String, BTreeSet<ObjectId>)> {
    // The dot at the end shows that the line is complete.
    let mut words = line.strip_suffix(" .")?.split(' ');
    let name = words.next()?.to_owned();
    let ids = words.map(|word| ObjectId::from_hex(word.as_bytes()).ok());
    Some((name, ids.collect::<Option<_>>()?))
}

fn write_note(path: &Path, links: &Links) -> io::Result<()> {
    let mut text = String::new();
    for (name, ids) in links {
        text.push_str(name);
        for id in ids {
            let _ = write!(text, " {id}");
        }
        text.push_str(" .\n");
    }
    write_cache(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bug: two deltas with each other as base were followed without end.
    #[test]
    fn deltas_without_a_base_have_no_kind() {
        const REF_DELTA: u8 = 7 << 4;
        let (dir, ids) = (tempfile::tempdir().unwrap(), [[1; 20], [2; 20]]);
        let mut pack = b"PACK\0\0\0\x02\0\0\0\x02".to_vec();
        let mut offsets = Vec::new();
        for base in [ids[1], ids[0]] {
            offsets.push(u32::try_from(pack.len()).unwrap());
            pack.push(REF_DELTA);
            pack.extend(base);
            pack.extend([0; 8]);
        }
        pack.extend([0; 20]);
        let mut index = b"\xfftOc\0\0\0\x02".to_vec();
        (0..256_u32).for_each(|first| index.extend(first.min(2).to_be_bytes()));
        index.extend(ids.concat());
        index.extend([0; 8]);
        offsets
            .iter()
            .for_each(|offset| index.extend(offset.to_be_bytes()));
        index.extend([0; 40]);
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("a.pack"), pack).unwrap();
        std::fs::write(path("a.idx"), index).unwrap();

        let hash = gix::hash::Kind::Sha1;
        let data = gix_pack::data::File::at(path("a.pack"), hash).unwrap();
        let index = Index::at(path("a.idx"), hash).unwrap();
        assert_eq!(index.num_objects(), 2);
        assert_eq!(kind_at(&data, &index, u64::from(offsets[0])), None);
    }

    #[test]
    fn a_note_is_read_as_it_was_written_and_a_damaged_line_is_ignored() {
        let id = ObjectId::empty_tree(gix::hash::Kind::Sha1);
        let links = Links::from([
            ("pack-1".to_owned(), BTreeSet::new()),
            ("pack-2".to_owned(), BTreeSet::from([id])),
        ]);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("note");
        write_note(&file, &links).unwrap();
        assert_eq!(read_note(&file), links);

        for damaged in ["pack-1", "pack-1 .x", "pack-1 zz .", "pack-1 4b825dc ."] {
            assert_eq!(parse_line(damaged), None, "{damaged}");
        }
    }
}
