//! Hides secrets from commands that see the user's files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::LowerFiles;
use crate::git::ignore::TextRules;
use crate::git::repository::Repository;
use crate::git::snapshot::secrets::FoundSecrets;
use crate::host::file::{Root, remove_below};

/// Hides the secrets among `found` in a mounted view of the user's files: all that are not in the
/// tree, except those that `copy` lists in the syntax of `.gitignore`.
pub fn hide_secrets(
    user: &Repository,
    below: &LowerFiles<'_>,
    view: &Root,
    (found, copy): (FoundSecrets, &[String]),
) -> anyhow::Result<()> {
    let mut found = [found.named, found.keyed].concat();
    let shown = TextRules::parse(copy.join("\n").as_bytes());
    found.retain(|path| !shown.excludes(path));

    let asked: BTreeSet<&[u8]> = found.iter().map(Vec::as_slice).collect();
    let known = user.entries_at(below.tree, &asked)?;
    for path in found
        .iter()
        .filter(|path| !known.contains_key(path.as_slice()))
    {
        let at = Path::new(OsStr::from_bytes(path));
        // Skip files that are hidden already or on another file system.
        if let (Some(folder), Some(name)) = (at.parent(), at.file_name())
            && view.kind(at).is_ok_and(|kind| kind.is_some())
        {
            remove_below(&view.folder(folder)?, name)?;
        }
    }

    Ok(())
}
