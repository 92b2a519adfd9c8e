//! Turns on other file systems. With reflinks, worktrees share blocks with the user's files, and
//! never content that a checkout would not write. Others ignore case, or keep open files.
//!
//! The tests mount a file system image. If that is not possible, they are skipped.
//!
//! CI also runs this module as root.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::plans::{create, execute, plan};
use crate::support::{TestRepo, skipped};
use teddy::git::worktree;
use teddy::git::worktree::{Extent, WorktreeTarget};

/// Size of the large file.
const LARGE: usize = 32 << 20;

struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    /// Runs `mkfs.<kind>` and mounts the result. `None` if that is not possible.
    fn new(kind: &str) -> Option<Disk> {
        Disk::with(kind, &[], &["-o", "loop"])
    }

    fn with(kind: &str, format: &[&str], options: &[&str]) -> Option<Disk> {
        let disk = Disk {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(disk.mount_point()).unwrap();
        let image = disk.folder.path().join("image");
        std::fs::File::create(&image)
            .unwrap()
            .set_len(320 << 20)
            .unwrap();
        let (image, point) = (image.to_str().unwrap(), disk.mount_point());
        let made = run(
            &format!("mkfs.{kind}"),
            &[&["-q"], format, &[image]].concat(),
        ) && run(
            "mount",
            &[options, &[image, point.to_str().unwrap()]].concat(),
        );
        if !made {
            skipped(&format!("no {kind} can be made and mounted here"));
        }
        made.then_some(disk)
    }

    /// Mounts an overlay, as the own files of a container are one. `None` if that is not possible.
    fn overlay() -> Option<Disk> {
        let disk = Disk {
            folder: tempfile::tempdir().unwrap(),
        };
        let make = |name: &str| {
            let dir = disk.folder.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            dir.display().to_string()
        };
        let [lower, upper, work, mount] = ["lower", "upper", "work", "mount"].map(make);
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        let made = run(
            "mount",
            &["-t", "overlay", "overlay", "-o", &options, &mount],
        );
        if !made {
            skipped("no overlay can be mounted here");
        }
        made.then_some(disk)
    }

    /// Returns the used space after a sync.
    fn used(&self) -> u64 {
        assert!(run("sync", &["-f", self.mount_point().to_str().unwrap()]));
        let told = rustix::fs::statvfs(self.mount_point()).unwrap();
        (told.f_blocks - told.f_bfree) * told.f_frsize
    }

    fn mount_point(&self) -> PathBuf {
        self.folder.path().join("mount")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &["-l", self.mount_point().to_str().unwrap()]);
    }
}

#[expect(clippy::disallowed_methods, reason = "a test starts programs itself")]
fn run(program: &str, args: &[&str]) -> bool {
    let output = Command::new(program).args(args).output();
    output.is_ok_and(|output| output.status.success())
}

fn worktree(repo: &TestRepo, at: &str) -> PathBuf {
    let (user, commit) = (repo.open(), at.parse().unwrap());
    let root = repo.beside("worktrees");
    let aim = WorktreeTarget::unwatched(commit, Extent::All);
    let made = worktree::session_worktree(&user, &root, "demo", aim);
    let made = made.and_then(|made| made.make_git_dir(&user, commit));
    made.unwrap_or_else(|error| panic!("{error:#}"));
    root.join("demo")
}

/// Highly compressible text: small in git, full size on disk.
fn lines(letter: char, bytes: usize) -> String {
    let line: String = std::iter::repeat_n(letter, 63).chain(['\n']).collect();
    line.repeat(bytes / line.len())
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Checks the disk usage of a worktree, and that writes to it don't reach the user's file.
fn check_costs_no_second_copy(kind: &str) {
    let Some(disk) = Disk::new(kind) else {
        return;
    };
    let repo = TestRepo::below(&disk.mount_point(), &[]);
    repo.write("large.txt", lines('a', LARGE));
    repo.write("d/small.txt", "1\n");
    let one = repo.commit("one");
    let before = disk.used();
    let place = worktree(&repo, &one);
    let cost = disk.used() - before;
    assert!(cost < (LARGE / 8) as u64, "{kind}: {cost} bytes");
    assert_eq!(
        repo.tree_in(&place),
        repo.git(&["rev-parse", "HEAD^{tree}"])
    );

    let large = place.join("large.txt");
    let mut changed = read(&large);
    changed.replace_range(..1, "b");
    std::fs::write(&large, &changed).unwrap();
    assert!(read(&repo.path().join("large.txt")) == lines('a', LARGE));

    // An update of the worktree shares blocks too, and does not use a file that the user has
    // changed.
    repo.write("large.txt", lines('c', LARGE));
    assert!(read(&worktree(&repo, &one).join("large.txt")) == lines('a', LARGE));
    assert!(read(&repo.path().join("large.txt")) == lines('c', LARGE));
    let two = repo.commit("two");
    let before = disk.used();
    assert!(read(&worktree(&repo, &two).join("large.txt")) == lines('c', LARGE));
    assert!(
        disk.used() <= before,
        "{kind}: the old file is gone, the new one is shared"
    );
}

/// Checks that files match a checkout even if the user's file of the same size differs.
fn check_what_a_checkout_writes(kind: &str) {
    let Some(disk) = Disk::new(kind) else {
        return;
    };
    let repo = TestRepo::below(&disk.mount_point(), &[]);
    let text = lines('a', 64 << 10);
    for name in ["run", "plain", "link", "crlf.txt", "folder"] {
        repo.write(name, &text);
    }
    repo.write(".gitattributes", "*.txt text eol=crlf\n");
    let is_executable = |path: &Path, set: Option<bool>| {
        use std::os::unix::fs::PermissionsExt as _;
        if let Some(set) = set {
            let mode = std::fs::Permissions::from_mode(if set { 0o755 } else { 0o644 });
            std::fs::set_permissions(path, mode).unwrap();
        }
        std::fs::metadata(path).unwrap().permissions().mode() & 0o111 != 0
    };
    is_executable(&repo.path().join("run"), Some(true));
    let one = repo.commit("one");

    // The content is the same, but the user's permissions and symlinks must not be copied.
    is_executable(&repo.path().join("run"), Some(false));
    is_executable(&repo.path().join("plain"), Some(true));
    repo.remove("link");
    std::fs::write(repo.beside("elsewhere"), lines('b', 64 << 10)).unwrap();
    std::os::unix::fs::symlink(repo.beside("elsewhere"), repo.path().join("link")).unwrap();
    repo.remove("folder");
    std::fs::create_dir(repo.path().join("folder")).unwrap();

    let place = worktree(&repo, &one);
    let tree = repo.git(&["rev-parse", &format!("{one}^{{tree}}")]);
    assert_eq!(repo.tree_in(&place), tree, "{kind}");
    assert!(read(&place.join("crlf.txt")) == text.replace('\n', "\r\n"));
    assert!(is_executable(&place.join("run"), None));
    assert!(!is_executable(&place.join("plain"), None));
}

#[test]
fn promise_d8_a_worktree_on_btrfs_costs_no_second_copy() {
    check_costs_no_second_copy("btrfs");
}

#[test]
fn promise_d8_a_worktree_on_xfs_costs_no_second_copy() {
    check_costs_no_second_copy("xfs");
}

#[test]
fn promise_d8_a_shared_file_is_what_a_checkout_writes() {
    check_what_a_checkout_writes("btrfs");
    check_what_a_checkout_writes("xfs");
}

/// Bug: with NFS and FUSE, a file that is still open keeps its directory from being removed, and
/// the turn failed. A spelling in another case was said to be a secret or too large.
#[test]
fn a_file_system_that_keeps_open_files_and_ignores_case_has_turns() {
    let options = ["-t", "lowntfs-3g", "-o", "loop,ignore_case"];
    let Some(disk) = Disk::with("ntfs", &["-F", "-Q"], &options) else {
        return;
    };
    let repo = TestRepo::below(&disk.mount_point(), &["--quiet"]);
    repo.write("readme.txt", "a\n");
    repo.commit("one");

    let twin = plan("Twin", &[create("README.txt", "b\n")]);
    let out = repo.reads(repo.teddy_command(&["execute", "-", "-y"]), &twin);
    insta::assert_snapshot!(out.shown(&repo), @"
    turn 1 rejected [id]
    --- stderr
    Started session twin.
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE README.txt: `README.txt` is the same name as `readme.txt` for some file systems
        hint: choose another name
    `teddy show 1 report.md` says what is wrong.
    exit code 3
    ");
    let work = plan(
        "Work",
        &[
            create("d/b.txt", "b\n"),
            execute("echo c > c.txt; rm readme.txt"),
        ],
    );
    repo.reads(repo.teddy_command(&["execute", "-", "-y"]), &work)
        .check(0, &[]);
    assert_eq!(
        repo.git(&["status", "--short"]),
        " D readme.txt\n?? c.txt\n?? d/"
    );
    repo.done(&["undo"]);
    assert_eq!(repo.git(&["status", "--short"]), "");
    repo.done(&["redo"]);
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(repo.git(&["status", "--short"]), "");
    repo.done(&["doctor"]);
}

/// Bug: the remedy was about namespaces, which are allowed here.
#[test]
fn in_a_container_a_volume_is_the_remedy_for_overlays() {
    let Some(disk) = Disk::overlay() else {
        return;
    };
    let repo = TestRepo::below(&disk.mount_point(), &[]).file("a.txt", "a\n");
    repo.commit("one");
    let plan = plan("Work", &[execute("echo b > a.txt")]);
    let out = repo.reads(repo.teddy_command(&["execute", "-", "-y"]), &plan);
    out.check(0, &[]);
    assert_eq!(repo.read("a.txt"), "b\n");
    let found = repo.teddy(&["doctor"]);
    found.check(
        0,
        &[
            "no overlay can be on another one",
            "docker run --volume teddy:",
        ],
    );
}
