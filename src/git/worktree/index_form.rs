//! Layout of git's index file, as far as we read or write it (`gitformat-index`).

pub(super) const INDEX_MAGIC: &[u8] = b"DIRC";
/// Offset of the version.
pub(super) const VERSION_OFFSET: usize = 4;
/// Offset of the number of entries.
pub(super) const COUNT_OFFSET: usize = 8;
/// Offset of the first entry.
pub(super) const HEADER_LEN: usize = 12;
/// Bytes of an entry before its id.
pub(super) const STAT_LEN: usize = 40;
/// Length of the flags after the id.
pub(super) const FLAGS_LEN: usize = 2;
/// Flag: two more bytes of flags follow.
pub(super) const EXTENDED_FLAG: u16 = 0x4000;
/// Entries are padded with at least one NUL to a multiple of this, except in version 4.
pub(super) const ENTRY_ALIGNMENT: usize = 8;
