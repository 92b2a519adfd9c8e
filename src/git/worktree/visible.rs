//! The object store from which the commands' git directory borrows.
//!
//! The user's own store also has what no ref reaches, for example a secret that was staged once.
//! Commands get links instead: to every pack except cruft packs, and to those loose objects that
//! the refs they see, HEAD or an object of those packs reach. A link keeps the data of a pack that
//! `git gc` replaces meanwhile. The links exist only while commands run.

mod pack_links;
mod packs;
mod reach;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gix::ObjectId;
use gix::objs::Kind;
use gix::zlib::Compression;
use gix::zlib::stream::deflate;

use self::packs::Packs;
use self::reach::{HiddenObjects, Place, reached_objects};
use crate::git::During as _;
use crate::git::repository::Repository;
use crate::host::file::{Root, make_dirs, remove_below};

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
        remove_visible_store(dir).with_context(during)?;
        make_dirs(&objects.join("pack")).with_context(during)?;
        let packs = Packs::list(user).with_context(during)?;
        let filled = fill(user, &objects, &packs, roots);
        // A concurrent `git gc` moves objects between the packs.
        let is_settled = Packs::list(user).is_ok_and(|now| now.names() == packs.names());
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

/// Removes the store. The user's objects keep their other names.
pub(super) fn remove_visible_store(dir: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else {
        return Ok(());
    };
    match Root::open(parent) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        root => remove_below(&root?, name),
    }
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
    for pack in packs.visible() {
        link_pack(pack, &dir.join("pack"))?;
    }

    let hidden = HiddenObjects::list(packs)?;
    if hidden.is_empty() {
        return Ok(());
    }
    let mut roots = roots.clone();
    roots.extend(pack_links::linked_from_packs(user, packs, &hidden)?);
    for (id, place) in reached_objects(user, &hidden, roots)? {
        let hex = id.to_hex().to_string();
        let file = Path::new(&hex[..2]).join(&hex[2..]);
        match place {
            Place::Loose => link_object(&packs.objects().join(&file), &dir.join(&file)),
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
