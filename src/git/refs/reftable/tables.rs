//! Reads the list of tables and checks each table.
//!
//! git reads an empty table as one without refs, and an empty list as a repository without refs.
//! After power loss that would be "no sessions" with exit code 0. So the header, footer and
//! checksum of each table are verified before git is asked (gitformat-reftable).

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::git::refs::store::DamagedTable;
use crate::host::file::{open_regular, read_regular_text, sync_open_file};

const MAX_LIST: u64 = 1 << 20;
/// Number of attempts: git can compact the tables of a list before we open them.
const MAX_READS: u32 = 5;

const MAGIC: &[u8] = b"REFT";
/// Length of the footer in version 1 and version 2 of the format.
const ENDS: [usize; 2] = [68, 72];

/// Content of `tables.list`: the shared one, and that of this linked worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableLists(Vec<String>);

impl TableLists {
    pub(super) fn read(common: &Path, own: &Path) -> anyhow::Result<TableLists> {
        let git_dirs = [common, own];
        let stacks = &git_dirs[..if common == own { 1 } else { 2 }];
        let lists = stacks.iter().map(|git_dir| {
            let path = tables_dir(git_dir).join("tables.list");
            match read_regular_text(&path, MAX_LIST) {
                Ok(text) if !text.trim().is_empty() => Ok(text),
                Ok(_) => Err(damaged(path, "it names no table")),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Err(damaged(path, "it is missing"))
                }
                Err(error) => {
                    Err(error).with_context(|| format!("cannot read `{}`", path.display()))
                }
            }
        });

        Ok(TableLists(lists.collect::<anyhow::Result<_>>()?))
    }

    /// Returns whether exactly one transaction of the shared tables happened since `before`.
    ///
    /// Each transaction has an update index, one more than the last, and the name of a table
    /// contains its range of indexes. Compaction uses no index.
    pub(super) fn is_next_of(&self, before: &TableLists) -> bool {
        let newest = |lists: &TableLists| {
            let name = lists.0.first()?.lines().last()?;
            let number = name.split('-').nth(1)?.strip_prefix("0x")?;
            u64::from_str_radix(number, 16).ok()
        };
        let (Some(then), Some(now)) = (newest(before), newest(self)) else {
            return false;
        };
        now == then + 1 && self.0[1..] == before.0[1..]
    }

    /// Checks every table and returns the lists that were current then.
    pub(super) fn validate(self, common: &Path, own: &Path) -> anyhow::Result<TableLists> {
        let (mut lists, mut attempts) = (self, 0);
        loop {
            let Err(error) = lists.check(common, own) else {
                return Ok(lists);
            };
            attempts += 1;
            let now = TableLists::read(common, own)?;
            // The list is unchanged, so this is damage and not a compaction in progress.
            if now == lists || attempts == MAX_READS {
                return Err(error);
            }

            lists = now;
        }
    }

    fn check(&self, common: &Path, own: &Path) -> anyhow::Result<()> {
        for (list, git_dir) in self.0.iter().zip([common, own]) {
            for name in list.lines() {
                let path = tables_dir(git_dir).join(name);
                let why = match ends_rightly(&path) {
                    Ok(true) => continue,
                    Ok(false) => "a power cut or the disk took what is in it",
                    Err(error) if error.kind() == ErrorKind::NotFound => "it is missing",
                    Err(error) => {
                        return Err(error)
                            .with_context(|| format!("cannot read `{}`", path.display()));
                    }
                };
                return Err(damaged(path, why));
            }
        }

        Ok(())
    }
}

/// Flushes the tables of a git directory, except those in `synced`.
///
/// The list must not become durable before its tables. git does not flush tables by default, and
/// git 2.47 writes the footer after it flushed the table.
pub(super) fn flush(git_dir: &Path, synced: &mut BTreeSet<String>) -> anyhow::Result<()> {
    let list = || read_regular_text(&tables_dir(git_dir).join("tables.list"), MAX_LIST);
    let mut names = list().context("making refs durable")?;
    for _ in 0..MAX_READS {
        for name in names.lines() {
            let path = tables_dir(git_dir).join(name);
            if synced.contains(name) {
                continue;
            }

            match open_regular(&path).and_then(|table| sync_open_file(&table)) {
                // git compacted it in the meantime; the new list names its replacement.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                flushed => {
                    flushed.with_context(|| format!("making `{}` durable", path.display()))?;
                    synced.insert(name.to_owned());
                }
            }
        }

        let now = list().context("making refs durable")?;
        if now == names {
            break;
        }

        names = now;
    }

    Ok(())
}

pub(super) fn tables_dir(git_dir: &Path) -> PathBuf {
    git_dir.join("reftable")
}

pub(super) fn lock(git_dir: &Path) -> PathBuf {
    tables_dir(git_dir).join("tables.list.lock")
}

fn damaged(path: PathBuf, why: &'static str) -> anyhow::Error {
    DamagedTable { path, why }.into()
}

/// Returns whether header, footer and checksum are valid. The footer repeats the header.
fn ends_rightly(path: &Path) -> std::io::Result<bool> {
    let mut file = open_regular(path)?;
    let mut start = [0; 5];
    if read_all(&mut file, &mut start)?.is_none() || &start[..4] != MAGIC {
        return Ok(false);
    }

    let Some(&length) = ENDS.get(usize::from(start[4]).wrapping_sub(1)) else {
        // A newer version: git decides whether it can read it.
        return Ok(true);
    };

    let size = file.metadata()?.len();
    let Some(from) = size.checked_sub(length as u64) else {
        return Ok(false);
    };
    file.seek(SeekFrom::Start(from))?;
    let mut end = vec![0; length];

    if read_all(&mut file, &mut end)?.is_none() || !end.starts_with(&start) {
        return Ok(false);
    }

    let (body, sum) = end.split_at(length - 4);
    Ok(crc32fast::hash(body).to_be_bytes() == sum)
}

/// Fills a buffer; `None` if the file is too short.
fn read_all(file: &mut std::fs::File, buffer: &mut [u8]) -> std::io::Result<Option<()>> {
    match file.read_exact(buffer) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(shared: &[&str], own: &str) -> TableLists {
        TableLists(vec![shared.join("\n"), own.to_owned()])
    }

    #[test]
    fn one_transaction_is_told_from_none_and_from_two() {
        let before = lists(
            &["0x01-0x0e-aa.ref", "0x0f-0x0f-bb.ref"],
            "0x01-0x02-cc.ref",
        );
        let check = |shared: &[&str], own, expected| {
            assert_eq!(
                lists(shared, own).is_next_of(&before),
                expected,
                "{shared:?}"
            );
        };
        let own = "0x01-0x02-cc.ref";
        check(&["0x01-0x0e-aa.ref", "0x0f-0x10-dd.ref"], own, true);
        check(&["0x01-0x10-dd.ref"], own, true);
        check(&["0x01-0x0f-dd.ref"], own, false);
        check(&["0x01-0x11-dd.ref"], own, false);
        check(&["0x01-0x10-dd.ref"], "0x01-0x03-ee.ref", false);
        check(&["strange"], own, false);
    }
}
