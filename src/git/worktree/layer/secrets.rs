//! Files of the user's that commands are not to see although they see the others: secrets by name.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::LowerFiles;
use crate::git::ignore::TextRules;
use crate::git::repository::Repository;
use crate::host::file::{Root, remove_below};

/// Hides secrets that were found among the user's files in a view of these, open at its top: all
/// that are not in the tree, but for those that `copy` names in the syntax of `.gitignore`.
///
/// # Errors
/// Where the tree cannot be read, or a file cannot be hidden.
pub fn hide_secrets(
    user: &Repository,
    below: &LowerFiles<'_>,
    view: &Root,
    (mut found, copy): (Vec<Vec<u8>>, &[String]),
) -> anyhow::Result<()> {
    let shown = TextRules::parse(copy.join("\n").as_bytes());
    found.retain(|path| !shown.excludes(path));

    let asked: BTreeSet<&[u8]> = found.iter().map(Vec::as_slice).collect();
    let known = user.entries_at(below.tree, &asked)?;
    for path in found
        .iter()
        .filter(|path| !known.contains_key(path.as_slice()))
    {
        let at = Path::new(OsStr::from_bytes(path));
        // What is hidden already, or lies on another file system, is not seen.
        if let (Some(folder), Some(name)) = (at.parent(), at.file_name())
            && view.kind(at).is_ok_and(|kind| kind.is_some())
        {
            remove_below(&view.folder(folder)?, name)?;
        }
    }

    Ok(())
}
