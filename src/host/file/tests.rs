//! Tests on the real file system.

use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use std::path::PathBuf;

use super::*;
use crate::host::file::write::rename_to_free_name_in_steps;

/// A temporary directory with the root `in` and a secret outside of it.
struct Scratch {
    dir: tempfile::TempDir,
    root: Root,
}

impl Scratch {
    fn new() -> Scratch {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("in")).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        let root = Root::open(&dir.path().join("in")).unwrap();
        Scratch { dir, root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("in").join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.path(""))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn check<T: std::fmt::Debug>(result: io::Result<T>, expected: &str) {
    assert_eq!(result.expect_err("this must fail").to_string(), expected);
}

#[test]
fn a_created_file_is_read_back() {
    let s = Scratch::new();
    s.root
        .create_new(Path::new("a/b/c.sh"), b"x", FileMode::Executable)
        .unwrap();
    assert_eq!(s.root.read(Path::new("a/b/c.sh"), 10).unwrap(), b"x");
    assert_eq!(
        s.root.kind(Path::new("a/b/c.sh")).unwrap(),
        Some(FileKind::File(FileMode::Executable))
    );
    assert_eq!(s.root.kind(Path::new("a/b")).unwrap(), Some(FileKind::Dir));

    assert_eq!(s.root.kind(Path::new("a/b/c.sh/d")).unwrap(), None);
}

#[test]
fn create_never_overwrites() {
    let s = Scratch::new();
    symlink("nowhere", s.path("link")).unwrap();
    fs::write(s.path("file"), "old").unwrap();
    check(
        s.root.create_new(Path::new("file"), b"x", FileMode::Plain),
        "cannot create `file`: file exists",
    );
    check(
        s.root.create_new(Path::new("link"), b"x", FileMode::Plain),
        "cannot create `link`: file exists",
    );
    assert_eq!(fs::read(s.path("file")).unwrap(), b"old");

    assert_eq!(s.names(), ["file", "link"]);
}

#[test]
fn a_link_on_the_way_is_named_and_not_followed() {
    let s = Scratch::new();
    symlink("..", s.path("out")).unwrap();
    symlink("../secret", s.path("s")).unwrap();
    check(
        s.root.read(Path::new("out/secret"), 10),
        "cannot read `out/secret`: `out` is a link",
    );
    check(
        s.root.create_new(Path::new("out/x"), b"", FileMode::Plain),
        "cannot create `out/x`: `out` is a link",
    );
    check(
        s.root.kind(Path::new("out/secret")),
        "cannot look at `out/secret`: `out` is a link",
    );
    check(
        s.root.read(Path::new("s"), 10),
        "cannot read `s`: it is not a regular file",
    );
    check(
        s.root.replace(Path::new("s"), b"x"),
        "cannot write `s`: it is not a regular file",
    );

    assert_eq!(fs::read(s.dir.path().join("secret")).unwrap(), b"secret");
}

#[test]
fn a_path_stays_below_the_root() {
    let s = Scratch::new();
    check(
        s.root.read(Path::new("../secret"), 10),
        "cannot read `../secret`: invalid argument",
    );
    check(
        s.root
            .read(&s.dir.path().join("secret"), 10)
            .map_err(|_| io::Error::other("refused")),
        "refused",
    );

    check(
        s.root.read(Path::new(""), 10),
        "cannot read ``: invalid argument",
    );
}

#[test]
fn missing_directories_are_made_behind_no_link() {
    let s = Scratch::new();
    fs::create_dir_all(s.path("a/b")).unwrap();
    symlink("..", s.path("a/out")).unwrap();
    let make = |path: &str| beneath::make_dir(&s.root.dir, Path::new(path)).map(drop);

    assert_eq!(make("a/b"), Ok(()));
    assert_eq!(make("a/out/a"), Err(Errno::LOOP));
    assert_eq!(make("a/c/d"), Ok(()));
    assert!(s.path("a/c/d").is_dir());

    let (top, path) = (s.root.dir.as_fd(), Path::new("a/out/a"));
    let steps = beneath::step_by_step(top, path, OFlags::DIRECTORY, Mounts::Entered);
    assert_eq!(steps.map(drop), Err(Errno::LOOP));
}

#[test]
fn steps_open_what_one_call_opens() {
    let s = Scratch::new();
    fs::create_dir_all(s.path("a/b")).unwrap();
    fs::write(s.path("a/b/file"), "text").unwrap();
    symlink("file", s.path("a/b/link")).unwrap();
    symlink("b", s.path("a/out")).unwrap();
    let is_open = |opened: rustix::io::Result<_>| {
        opened.map(drop).map_err(|error| match error {
            // With `O_DIRECTORY`, `openat2` reports a link at the end as `ENOTDIR`.
            Errno::LOOP | Errno::NOTDIR => "a link",
            Errno::NOENT => "nothing",
            other => panic!("{other}"),
        })
    };

    for (path, expected) in [
        ("", Ok(())),
        ("a/b", Ok(())),
        ("a/b/file", Ok(())),
        ("a/b/link", Err("a link")),
        ("a/out/file", Err("a link")),
        ("a/none/file", Err("nothing")),
    ] {
        let (top, path) = (&s.root.dir, Path::new(path));
        for mounts in [beneath::Mounts::Entered, beneath::Mounts::Refused] {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let at_once = beneath::open_beneath(top, path, flags, mounts);
            assert_eq!(is_open(at_once), expected, "{}", path.display());
            let steps = beneath::step_by_step(top.as_fd(), path, flags | OFlags::NOFOLLOW, mounts);
            assert_eq!(is_open(steps), expected, "{} by steps", path.display());
        }
    }
}

#[test]
fn replace_keeps_permissions_and_breaks_hard_links() {
    let s = Scratch::new();
    fs::write(s.path("a"), "old").unwrap();
    fs::set_permissions(s.path("a"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(s.path("a"), s.path("b")).unwrap();
    assert_eq!(s.root.entry(Path::new("a")).unwrap().unwrap().links, 2);
    s.root.replace(Path::new("a"), b"new").unwrap();
    assert_eq!(fs::read(s.path("b")).unwrap(), b"old");
    assert_eq!(fs::metadata(s.path("a")).unwrap().mode() & 0o777, 0o750);

    assert_eq!(s.names(), ["a", "b"]);
}

#[test]
fn a_fifo_and_a_large_file_are_refused_at_once() {
    let s = Scratch::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, s.path("fifo"), Bits::from_raw_mode(0o600)).unwrap();
    fs::write(s.path("big"), "12345").unwrap();
    check(
        s.root.read(Path::new("fifo"), 10),
        "cannot read `fifo`: it is not a regular file",
    );
    check(
        s.root.read(Path::new("big"), 4),
        "cannot read `big`: it is larger than 4 bytes",
    );

    assert_eq!(s.root.read(Path::new("big"), 5).unwrap(), b"12345");
}

#[test]
fn a_free_name_is_needed_in_one_step_and_in_two() {
    let s = Scratch::new();
    fs::write(s.path("a"), "1").unwrap();
    fs::write(s.path("b"), "2").unwrap();
    let dir = &s.root.dir;
    let once = |from: &str, to: &str| rename_to_free_name(dir, from.as_ref(), dir, to.as_ref());
    let in_steps =
        |from: &str, to: &str| rename_to_free_name_in_steps(dir, from.as_ref(), dir, to.as_ref());

    assert_eq!(once("a", "b"), Err(Errno::EXIST));
    assert_eq!(in_steps("a", "b"), Err(Errno::EXIST));
    in_steps("a", "c").unwrap();
    once("c", "d").unwrap();

    assert_eq!(s.names(), ["b", "d"]);
}

#[test]
fn state_files_are_replaced_whole() {
    let s = Scratch::new();
    let path = s.path("deep/state.json");
    write_atomic(&path, b"1").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    write_atomic(&path, b"2").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read(&path).unwrap(), b"2");
    assert_eq!(fs::read_dir(s.path("deep")).unwrap().count(), 1);
    let error =
        write_atomic(Path::new("/proc/no/state"), b"").expect_err("there is no such directory");

    assert!(
        error
            .to_string()
            .starts_with("cannot write `/proc/no/state`: "),
        "{error}"
    );
}

#[test]
fn names_that_are_not_text_work() {
    use std::os::unix::ffi::OsStrExt as _;

    let s = Scratch::new();
    let path = Path::new(OsStr::from_bytes(b"d\xff/f\xfe"));
    s.root.create_new(path, b"x", FileMode::Plain).unwrap();
    assert_eq!(s.root.read(path, 1).unwrap(), b"x");
    fs::remove_file(s.path("").join(path)).unwrap();
    check(
        s.root.read(path, 1),
        "cannot read `d\\xff/f\\xfe`: no such file or directory",
    );
}

#[test]
fn a_folder_of_any_depth_and_without_permissions_is_removed() {
    let s = Scratch::new();
    let top = s.root.make_dir(Path::new("top")).unwrap();
    let mut dir = top.open_dir(Path::new("")).unwrap();
    for _ in 0..500 {
        dir = dir.make_dir(Path::new(&"d".repeat(20))).unwrap();
    }

    dir.create_new(Path::new("file"), b"x", FileMode::Plain)
        .unwrap();
    for name in ["top/closed/in", "top/read-only/in"] {
        fs::create_dir_all(s.path(name)).unwrap();
    }

    symlink(s.dir.path(), s.path("top/out")).unwrap();
    symlink("../../../secret", s.path("top/closed/in/out")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        s.path("top/pipe"),
        FileType::Fifo,
        Bits::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for (name, bits) in [("top/closed", 0), ("top/read-only", 0o555), ("top", 0)] {
        fs::set_permissions(s.path(name), fs::Permissions::from_mode(bits)).unwrap();
    }

    make_writable(&s.root, OsStr::new("top"));
    s.root
        .move_to(OsStr::new("top"), &s.root, OsStr::new("away"))
        .unwrap();
    remove_below(&s.root, OsStr::new("away")).unwrap();
    remove_below(&s.root, OsStr::new("away")).unwrap();
    assert!(s.names().is_empty());

    assert_eq!(fs::read(s.dir.path().join("secret")).unwrap(), b"secret");
}

#[test]
fn a_link_is_removed_and_not_what_it_leads_to() {
    let s = Scratch::new();
    fs::create_dir(s.dir.path().join("other")).unwrap();
    symlink("../other", s.path("link")).unwrap();
    make_writable(&s.root, OsStr::new("link"));
    remove_below(&s.root, OsStr::new("link")).unwrap();
    assert!(s.names().is_empty() && s.dir.path().join("other").is_dir());
}

#[test]
fn a_name_that_is_taken_is_not_moved_to() {
    let s = Scratch::new();
    let other = s.root.make_dir(Path::new("other")).unwrap();
    for name in ["a", "other/a"] {
        fs::create_dir(s.path(name)).unwrap();
    }

    check(
        s.root.move_to(OsStr::new("a"), &other, OsStr::new("a")),
        "cannot move `a`: file exists",
    );
}

#[test]
fn a_root_is_opened_strictly_without_a_link_anywhere() {
    let s = Scratch::new();
    let top = s.dir.path().canonicalize().unwrap();
    assert!(Root::open_strictly(&top.join("in")).is_ok());
    symlink("in", top.join("link")).unwrap();
    assert!(Root::open_strictly(&top.join("link")).is_err());
    assert!(Root::open_strictly(&top.join("link/x")).is_err());
    assert!(Root::open_strictly(&top.join("in/../in")).is_err());

    assert!(Root::open_strictly(Path::new("in")).is_err());
}
