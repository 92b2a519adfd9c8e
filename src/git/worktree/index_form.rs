//! The form of git's index file (`gitformat-index`), as far as one is written or read here.

/// How an index begins.
pub(super) const MAGIC: &[u8] = b"DIRC";
/// Where its version stands.
pub(super) const VERSION: usize = 4;
/// Where its number of entries stands.
pub(super) const COUNT: usize = 8;
/// Where the entries begin.
pub(super) const HEADER: usize = 12;
/// So many bytes of an entry, in front of its id, are times and numbers.
pub(super) const STAT: usize = 40;
/// The length of the flags behind the id.
pub(super) const FLAGS: usize = 2;
/// The flag that says that as many more follow.
pub(super) const EXTENDED: u16 = 0x4000;
/// An entry's length is a multiple of this, with at least one zero at its end, but in version 4.
pub(super) const ALIGNMENT: usize = 8;
