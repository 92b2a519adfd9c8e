//! Empty directories, which git does not track.

use std::io;

use rustix::fs::FileType;

use super::Place;

/// Limit, because each directory is open while its contents are checked.
const MOST_EMPTY: usize = 256;

impl Place {
    /// Removes the directory and its subdirectories if they contain no file. Otherwise `false`, and
    /// all of them stay.
    pub(in crate::git) fn remove_empty_folders(&self) -> io::Result<bool> {
        // An empty directory need not be opened, which its permissions could forbid.
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
