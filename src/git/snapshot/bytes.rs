//! Fixed-size encoding of the private index: numbers, times, stats, and a checksum.
//!
//! The readers are `#[inline(always)]` because every snapshot decodes megabytes with them, also in
//! debug builds.

use gix::index::entry::Stat;
use gix::index::entry::stat::Time;

pub(super) fn checksum(bytes: &[u8]) -> u64 {
    u64::from(crc32fast::hash(bytes))
}

pub(super) fn put_u32(to: &mut Vec<u8>, number: u32) {
    to.extend_from_slice(&number.to_le_bytes());
}

pub(super) fn put_time(to: &mut Vec<u8>, time: Time) {
    put_u32(to, time.secs);
    put_u32(to, time.nsecs);
}

pub(super) fn put_stat(to: &mut Vec<u8>, s: &Stat) {
    put_time(to, s.mtime);
    put_time(to, s.ctime);
    [s.dev, s.ino, s.uid, s.gid, s.size]
        .iter()
        .for_each(|&n| put_u32(to, n));
}

#[inline(always)]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(
        bytes[at..at + 4]
            .try_into()
            .expect("four bytes are four bytes"),
    )
}

#[inline(always)]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(
        bytes[at..at + 8]
            .try_into()
            .expect("eight bytes are eight bytes"),
    )
}

#[inline(always)]
pub(super) fn time_at(bytes: &[u8], at: usize) -> Time {
    Time {
        secs: u32_at(bytes, at),
        nsecs: u32_at(bytes, at + 4),
    }
}

#[inline(always)]
pub(super) fn stat_at(bytes: &[u8], at: usize) -> Stat {
    let n = |offset| u32_at(bytes, at + offset);
    Stat {
        mtime: time_at(bytes, at),
        ctime: time_at(bytes, at + 8),
        dev: n(16),
        ino: n(20),
        uid: n(24),
        gid: n(28),
        size: n(32),
    }
}
