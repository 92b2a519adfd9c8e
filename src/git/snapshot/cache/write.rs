//! A cache being written, record by record.

use std::io::Write as _;
use std::path::Path;

use super::{Basis, CachedFolder, CachedName, HEADER, KINDS, MAGIC};
use crate::git::snapshot::bytes::{checksum, put, put_stat, put_time};

/// A cache in the making: folders in the order of their paths, each followed by its entries.
pub(in crate::git::snapshot) struct Writer {
    /// The folders' records.
    folders: Vec<u8>,
    /// The entries' records.
    entries: Vec<u8>,
    /// Names and paths.
    names: Vec<u8>,
    /// Numbers of folders and entries so far.
    counts: (u32, u32),
}

impl Writer {
    /// Starts a cache.
    pub(in crate::git::snapshot) fn new() -> Writer {
        Writer {
            folders: Vec::new(),
            entries: Vec::new(),
            names: Vec::new(),
            counts: (0, 0),
        }
    }

    /// Adds a folder, whose entries `add` adds.
    pub(in crate::git::snapshot) fn folder(
        &mut self,
        folder: &CachedFolder<'_>,
        add: impl FnOnce(&mut Writer),
    ) {
        let first = self.counts.1;
        add(self);

        let numbers = [
            self.names.len() as u32,
            folder.path.len() as u32,
            folder.parent,
            first,
            self.counts.1 - first,
            folder.marks,
        ];
        self.names.extend_from_slice(folder.path);
        numbers.iter().for_each(|&n| put(&mut self.folders, n));
        [folder.times.mtime, folder.times.ctime]
            .iter()
            .for_each(|time| put_time(&mut self.folders, *time));
        put(&mut self.folders, folder.times.ino);
        self.folders.extend_from_slice(folder.tree.as_slice());

        self.counts.0 += 1;
    }

    /// Adds an entry to the folder that is being added.
    pub(in crate::git::snapshot) fn entry(&mut self, entry: &CachedName<&[u8]>) {
        put(&mut self.entries, self.names.len() as u32);
        self.entries
            .extend_from_slice(&(entry.name.len() as u16).to_le_bytes());
        self.entries.push(
            KINDS
                .iter()
                .position(|&kind| kind == entry.kind)
                .unwrap_or_default() as u8,
        );
        self.entries.push(entry.standing as u8);
        put_stat(&mut self.entries, &entry.stat);
        put(&mut self.entries, entry.basis);
        self.entries.extend_from_slice(entry.id.as_slice());
        self.names.extend_from_slice(entry.name);

        self.counts.1 += 1;
    }

    /// Replaces the file at a path by this cache.
    pub(in crate::git::snapshot) fn save(
        self,
        basis: &Basis,
        mut file: tempfile::NamedTempFile,
        path: &Path,
    ) -> std::io::Result<()> {
        let mut bytes =
            Vec::with_capacity(HEADER + self.folders.len() + self.entries.len() + self.names.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&basis.settings.to_le_bytes());
        put_stat(&mut bytes, &basis.index);
        put_time(&mut bytes, basis.stamp.0);
        let hash = basis.root.as_slice().len() as u32;

        [hash, self.counts.0, self.counts.1, self.names.len() as u32]
            .iter()
            .for_each(|&n| put(&mut bytes, n));
        bytes.extend_from_slice(basis.root.as_slice());
        bytes.resize(116, 0);
        bytes.extend_from_slice(&basis.choice.to_le_bytes());
        bytes.extend_from_slice(&basis.tracking.to_le_bytes());
        bytes.extend_from_slice(&basis.force.to_le_bytes());
        bytes.resize(HEADER, 0);
        [&self.folders, &self.entries, &self.names]
            .iter()
            .for_each(|part| bytes.extend_from_slice(part));

        let sum = checksum(&bytes[16..]);
        bytes[8..16].copy_from_slice(&sum.to_le_bytes());
        file.write_all(&bytes)?;
        file.persist(path)?;
        Ok(())
    }
}
