//! Folders with nothing in them, which git does not know.

use std::io;

use rustix::fs::FileType;

use super::Place;

/// More empty folders than these stay: each is open while it is looked at.
const MOST_EMPTY: usize = 256;

impl Place {
    /// Removes the folder here, and the folders in it, if nothing is in any of them: for git they
    /// are not there. False where something is, which stays with all of them.
    pub(in crate::git) fn remove_empty_folders(&self) -> io::Result<bool> {
        // One that is empty itself need not be opened, which its permissions may forbid.
        if self.remove_empty_folder()? {
            return Ok(true);
        }

        let mut found = vec![self.sibling(&self.name)];
        let mut next = 0;
        while next < found.len() {
            if found[next].look_kind()? != Some(FileType::Directory) || found.len() > MOST_EMPTY {
                return Ok(false);
            }
            let Ok(Some(inside)) = found[next].child(b".") else {
                return Ok(false);
            };
            let names = inside.siblings()?;
            found.extend(names.iter().map(|name| inside.sibling(name)));
            next += 1;
        }

        for folder in found.iter().rev() {
            if !folder.remove_empty_folder()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
