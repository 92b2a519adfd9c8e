//! Which hidden objects the objects of a pack refer to.
//!
//! The packs of `git gc` and of a clone are closed: they have everything that they refer to. Those
//! of a fetch are not, because the fetching side had some objects already, and neither are ours. A
//! pack never changes, so each is read once, and the result is noted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use gix::ObjectId;
use gix::objs::Kind;
use gix_pack::data::entry::Header;
use gix_pack::index::File as Index;

use super::packs::Packs;
use super::reach::HiddenObjects;
use crate::git::incoming::collect::links;
use crate::git::repository::Repository;
use crate::host::file::{read_regular_text, write_cache};

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
pub(super) fn linked_from_packs(
    user: &Repository,
    packs: &Packs,
    hidden: &HiddenObjects,
) -> anyhow::Result<BTreeSet<ObjectId>> {
    let note = user.teddy_dir().join(NOTE);
    let noted = read_note(&note);
    let mut current = Links::new();
    for pack in packs.visible() {
        let name = pack.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let links = match noted.get(&name) {
            Some(links) => Some(links.clone()),
            None => links_of(user, packs, pack, hidden),
        };
        current.extend(links.map(|links| (name, links)));
    }

    if current != noted {
        // Without a note the packs are read again.
        let _ = write_note(&note, &current);
    }
    Ok(current.into_values().flatten().collect())
}

/// Reads a pack. `None` if it was replaced meanwhile.
fn links_of(
    user: &Repository,
    packs: &Packs,
    pack: &Path,
    hidden: &HiddenObjects,
) -> Option<BTreeSet<ObjectId>> {
    let index = packs.open_index(pack)?;
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
    loop {
        let entry = data.entry(offset).ok()?;
        offset = match entry.header {
            Header::OfsDelta { base_distance } => {
                Header::verified_base_pack_offset(offset, base_distance)?
            }
            Header::RefDelta { base_id } => index.pack_offset_at_index(index.lookup(base_id)?),
            header => return header.as_kind(),
        };
    }
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

fn write_note(path: &Path, links: &Links) -> std::io::Result<()> {
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
