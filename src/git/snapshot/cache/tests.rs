//! Round trips of the private index, and damaged files.

use super::*;

fn id(byte: u8) -> ObjectId {
    ObjectId::from_bytes_or_panic(&[byte; 20])
}

fn entry(name: &[u8], kind: EntryKind, origin: CacheOrigin) -> CachedName<&[u8]> {
    let time = Time { secs: 5, nsecs: 6 };
    let stat = Stat {
        mtime: time,
        ctime: Time { secs: 7, nsecs: 8 },
        dev: 1,
        ino: 2,
        uid: 3,
        gid: 4,
        size: 9,
    };
    CachedName {
        name,
        kind,
        id: id(name[0]),
        stat,
        basis: 77,
        origin,
    }
}

fn saved(dir: &Path) -> std::path::PathBuf {
    let mut writer = CacheWriter::new(20);
    let times = Times {
        mtime: Time { secs: 1, nsecs: 2 },
        ctime: Time { secs: 3, nsecs: 4 },
        ino: 5,
    };
    let dir_at = |path, parent, marks| CachedDir {
        path,
        parent,
        entries: 0..0,
        marks,
        times,
        tree: id(9),
    };

    let first = [
        entry(b"a", EntryKind::Blob, CacheOrigin::Scanned),
        entry(b"z\xff", EntryKind::Link, CacheOrigin::Inherited),
    ];
    writer.dir(&dir_at(b"", 0, 0), |writer| {
        first.iter().for_each(|entry| writer.entry(entry));
    });
    writer.dir(&dir_at(b"b", 0, mark::RELIST), |writer| {
        writer.entry(&entry(b"x", EntryKind::Commit, CacheOrigin::Watched));
    });
    writer.dir(&dir_at(b"b/c", 1, mark::RULES), |_| ());
    let basis = Basis {
        settings: 1,
        choice: 2,
        force: 7,
        index: Stat::default(),
        tracking: 6,
        stamp: Stamp(Time { secs: 3, nsecs: 4 }),
        root: id(1),
    };

    let path = dir.join("index");
    let file = tempfile::NamedTempFile::new_in(dir).unwrap();
    let cache = writer.finish(&basis).unwrap();
    cache.save(file, &path).unwrap();
    path
}

#[test]
fn what_is_saved_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::load(&saved(dir.path()), gix::hash::Kind::Sha1).unwrap();
    assert_eq!(
        (cache.basis.settings, cache.basis.choice, cache.basis.root),
        (1, 2, id(1))
    );
    assert_eq!((cache.basis.tracking, cache.basis.force), (6, 7));
    assert_eq!(cache.basis.stamp, Stamp(Time { secs: 3, nsecs: 4 }));
    assert_eq!(
        (cache.children(0), cache.children(1), cache.children(2)),
        (&[1][..], &[2][..], &[][..])
    );
    let top = cache.dir(cache.find_dir(b"").unwrap());

    assert_eq!(
        cache.find_entry(&top, b"z\xff"),
        Some(entry(b"z\xff", EntryKind::Link, CacheOrigin::Inherited))
    );
    assert_eq!(cache.find_entry(&top, b"x"), None);
    let mut next = 0;
    let mut find = |name| {
        cache
            .find_next(&top, name, &mut next)
            .map(|cached| cached.name)
    };
    assert_eq!(find(b"Z"), None);
    assert_eq!(find(b"a"), Some(&b"a"[..]));
    assert_eq!(find(b"b"), None);
    assert_eq!(find(b"z\xff"), Some(&b"z\xff"[..]));
    assert_eq!(find(b"zz\xff"), None);
    let inner = cache.dir(cache.find_dir(b"b").unwrap());
    assert_eq!(
        cache.entry(inner.entries.start),
        entry(b"x", EntryKind::Commit, CacheOrigin::Watched)
    );

    assert_eq!(
        (inner.marks, inner.parent, inner.tree, inner.times.ino),
        (mark::RELIST, 0, id(9), 5)
    );
}

#[test]
fn a_file_that_was_changed_anywhere_is_no_cache() {
    let dir = tempfile::tempdir().unwrap();
    let path = saved(dir.path());
    let full = std::fs::read(&path).unwrap();
    for at in 0..full.len() {
        let mut damaged = full.clone();
        damaged[at] ^= 0x40;
        std::fs::write(&path, damaged).unwrap();
        assert!(
            Cache::load(&path, gix::hash::Kind::Sha1).is_none(),
            "byte {at}"
        );
    }

    std::fs::write(&path, &full[..full.len() - 1]).unwrap();
    assert!(Cache::load(&path, gix::hash::Kind::Sha1).is_none());
    std::fs::write(&path, &full).unwrap();
    assert!(Cache::load(&path, gix::hash::Kind::Sha256).is_none());
}

#[test]
fn a_file_of_another_length_than_its_header_says_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = saved(dir.path());
    let full = std::fs::read(&path).unwrap();
    assert_eq!(read_file(&path), Some(full.clone()));

    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for length in [1 << 40, full.len() as u64 + 1, full.len() as u64 - 1, 10, 0] {
        file.set_len(length).unwrap();
        assert_eq!(read_file(&path), None, "{length}");
    }
}
