//! Reads HEAD and the refs of an untrusted git directory.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice;
use gix::refs::FullName;

use crate::git::object::CommitId;
use crate::host::file::{FileKind, Root};

const MAX_REF: u64 = 8 * 1024;
const MAX_PACKED_REFS: u64 = 64 << 20;
/// Maximum depth of symbolic refs.
const MAX_SYMBOLIC_DEPTH: usize = 5;
/// Maximum number of directory entries that are checked.
const MAX_LISTED_ENTRIES: usize = 1000;

pub(super) fn read_head(git: &Root, hash: gix::hash::Kind) -> Option<CommitId> {
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
pub(super) fn loose_refs(git: &Root) -> Vec<Vec<u8>> {
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
