//! Empty directories, which git does not track.

use std::io;

use rustix::fs::FileType;

use super::PathHandle;

/// Limit, because each directory is open while its contents are checked.
const MAX_EMPTY_DIRS: usize = 256;

impl PathHandle {
    /// Removes the directory and its subdirectories if they contain no file. Otherwise `false`, and
    /// all of them stay.
    pub(in crate::git) fn remove_empty_dirs(&self) -> io::Result<bool> {
        // An empty directory need not be opened, which its permissions could forbid.
        if self.remove_empty_dir()? {
            return Ok(true);
        }

        let mut entries = vec![self.sibling(&self.name)];
        let mut next = 0;
        while next < entries.len() {
            if entries[next].file_type()? != Some(FileType::Directory)
                || entries.len() > MAX_EMPTY_DIRS
            {
                return Ok(false);
            }
            let Ok(Some(inside)) = entries[next].child(b".") else {
                return Ok(false);
            };
            let names = inside.siblings()?;
            entries.extend(names.iter().map(|name| inside.sibling(name)));
            next += 1;
        }

        for dir in entries.iter().rev() {
            if !dir.remove_empty_dir()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
