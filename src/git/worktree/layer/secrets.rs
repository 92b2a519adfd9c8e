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
    lower: &LowerFiles<'_>,
    merged: &Root,
    (secrets, copy): (FoundSecrets, &[String]),
) -> anyhow::Result<()> {
    let mut hidden = [secrets.by_name, secrets.keyed].concat();
    let explicit = TextRules::parse(copy.join("\n").as_bytes());
    hidden.retain(|path| !explicit.excludes(path));

    let paths: BTreeSet<&[u8]> = hidden.iter().map(Vec::as_slice).collect();
    let tracked = user.entries_at(lower.tree, &paths)?;
    for path in hidden
        .iter()
        .filter(|path| !tracked.contains_key(path.as_slice()))
    {
        let at = Path::new(OsStr::from_bytes(path));
        // Skip files that are hidden already or on another file system.
        if let (Some(dir), Some(name)) = (at.parent(), at.file_name())
            && merged.kind(at).is_ok_and(|kind| kind.is_some())
        {
            remove_below(&merged.open_dir(dir)?, name)?;
        }
    }

    Ok(())
}
