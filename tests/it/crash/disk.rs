//! Full and read-only disks: a clear error, no partial changes, and the next command works once
//! there is space. Tests that cannot mount a file system print why and pass.
//!
//! CI also runs this module as root.

use std::path::{Path, PathBuf};
use std::process::Output;

use teddy::host::file::sync_whole;

use crate::killed_repo::{Rig, Saver, said, verdict};
use crate::support::skipped;

/// Unmounts everything below the rig's directory when dropped.
struct Mount {
    below: PathBuf,
}

impl Mount {
    /// Mounts a tmpfs. `None` if this process cannot mount.
    fn small(rig: &Rig, at: &Path, size: &str) -> Option<Mount> {
        std::fs::create_dir_all(at).unwrap();
        Mount::run(
            rig,
            &[
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size}"),
                "tmpfs",
                at.to_str().unwrap(),
            ],
        )
    }

    fn run(rig: &Rig, args: &[&str]) -> Option<Mount> {
        let output = rig.command("mount").args(args).output().ok()?;
        if !output.status.success() {
            let why = said(&output);
            skipped(&format!("nothing can be mounted here: {}", why.trim()));
            return None;
        }
        let below = rig.beside("").components().collect();
        Some(Mount { below })
    }
}

impl Drop for Mount {
    #[expect(clippy::disallowed_methods, reason = "a test starts programs itself")]
    fn drop(&mut self) {
        // The test can have moved a directory together with a mount, so unmount whatever is below.
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        for point in points.filter(|point| Path::new(point).starts_with(&self.below)) {
            let _ = std::process::Command::new("umount")
                .args(["-l", point])
                .status();
        }
    }
}

fn rig() -> Rig {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    begin(&rig);
    rig
}

fn begin(rig: &Rig) {
    rig.must(&["new", "storm"]);
    rig.must(&["execute", &rig.plan("1", &[Rig::file(0)], None), "-y"]);
}

/// Fills a file system except for `leave` bytes. Returns the file.
fn fill(folder: &Path, leave: u64) -> PathBuf {
    let path = folder.join("fill.ignored");
    let file = std::fs::File::create(&path).unwrap();
    let mut size = 0;
    // The space of deleted files becomes free with the journal, or a moment later.
    for _ in 0..10 {
        sync_whole(folder).unwrap();
        let stat = rustix::fs::statvfs(folder).unwrap();
        let free = (stat.f_bavail * stat.f_frsize).saturating_sub(leave);
        if free > 0 {
            size += free;
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    path
}

/// Removes the filler and waits until its space is free, which can take a moment.
fn empty(filler: &Path) {
    let folder = filler.parent().unwrap();
    let held = std::fs::metadata(filler).unwrap().len();
    let free = || {
        rustix::fs::statvfs(folder)
            .map(|stat| stat.f_bavail * stat.f_frsize)
            .unwrap()
    };
    let before = free();
    std::fs::remove_file(filler).unwrap();
    for _ in 0..500 {
        if free() >= before + held / 2 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the room of `{}` did not come free", filler.display());
}

const NOISE: &str = "head -c 300000 /dev/urandom | base64 > noise.dat";

fn large(rig: &Rig) -> String {
    let files: Vec<String> = (0..20)
        .map(Rig::file)
        .chain((0..40).map(|number| format!("more/{number}.txt")))
        .collect();
    rig.plan("large", &files, Some(NOISE))
}

/// Checks that the error names the cause, that nothing is half done, and that the same plan
/// succeeds after `relieve`.
fn check(rig: &Rig, output: &Output, relieve: impl FnOnce()) {
    let text = said(output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let why = [
        "no space left on device",
        "read-only file system",
        "permission denied",
        "operation not permitted",
        "file too large",
    ];
    let lower = text.to_lowercase();
    assert!(
        why.iter().any(|why| lower.contains(why)),
        "the error does not say why: {text}"
    );
    assert!(!text.contains("panicked"), "{text}");
    relieve();
    let state = rig.users_state();
    recover(rig);
    assert_eq!(
        verdict(rig, &Saver::default(), &state),
        [""; 0],
        "after: {text}"
    );
    rig.must(&["execute", &large(rig), "-y"]);
    assert_eq!(
        rig.git(&["rev-parse", "teddy/sessions/storm^2^{tree}"]),
        tree(rig)
    );
}

fn tree(rig: &Rig) -> String {
    let index = rig.beside("index");
    let _ = std::fs::remove_file(&index);
    let run = |args: &[&str]| {
        rig.command("git")
            .env("GIT_INDEX_FILE", &index)
            .args(args)
            .output()
            .unwrap()
    };
    run(&["add", "-A"]);
    String::from_utf8(run(&["write-tree"]).stdout)
        .unwrap()
        .trim()
        .to_owned()
}

/// Moves the repository's git directory to a file system of its own. Returns its path, too.
fn on_small_disk(rig: &Rig, size: &str) -> Option<(Mount, PathBuf)> {
    let (git, aside) = (rig.path().join(".git"), rig.beside("git"));
    std::fs::rename(&git, &aside).unwrap();
    let mount = Mount::small(rig, &git, size)?;
    let copied = rig
        .command("cp")
        .arg("-a")
        .arg(format!("{}/.", aside.display()))
        .arg(&git)
        .status();
    assert!(copied.unwrap().success());
    Some((mount, git))
}

/// Recovers. The disk can still be a problem for `doctor`.
fn recover(rig: &Rig) {
    let text = said(&rig.run(&["doctor", "--fix"]));
    assert!(!text.contains("error:"), "{text}");
}

#[test]
fn a_full_repository_is_an_error_before_the_turn() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    let Some((_mount, git)) = on_small_disk(&rig, "8m") else {
        return;
    };
    begin(&rig);
    let (before, tip) = (tree(&rig), rig.git(&["rev-parse", "teddy/sessions/storm"]));
    for leave in [0, 16 << 10, 48 << 10, 96 << 10, 192 << 10] {
        let filler = fill(&git, leave);
        let output = rig.run(&["execute", &large(&rig), "-y"]);
        empty(&filler);
        assert_eq!(output.status.code(), Some(1), "{leave}: {}", said(&output));
        // There can be space to record the interrupted turn, but not its result.
        let ending = "--format=%(trailers:key=Teddy-Status,valueonly,separator=)";
        assert!(
            rig.git(&["rev-parse", "teddy/sessions/storm"]) == tip
                || rig.git(&["log", "-1", ending, "teddy/sessions/storm"]) == "interrupted",
            "{leave}: {}",
            said(&output)
        );
        assert_eq!(tree(&rig), before, "{leave}: {}", said(&output));
        // Delete what this attempt wrote. Otherwise the next one needs less space.
        rig.run(&["doctor", "--fix"]);
        rig.git(&["gc", "-q", "--prune=now"]);
        let keeps = std::fs::read_dir(git.join("objects/pack"))
            .unwrap()
            .filter(|file| file.as_ref().unwrap().path().extension() == Some("keep".as_ref()));
        assert_eq!(keeps.count(), 0, "{leave}");
    }
    let filler = fill(&git, 0);
    let output = rig.run(&["execute", &large(&rig), "-y"]);
    check(&rig, &output, || std::fs::remove_file(&filler).unwrap());
}

/// Uses up all inodes except `leave`. Returns the directory with the files.
fn exhaust(folder: &Path, leave: u64) -> PathBuf {
    let taken = folder.join("taken");
    std::fs::create_dir(&taken).unwrap();
    let free = rustix::fs::statvfs(folder)
        .unwrap()
        .f_favail
        .saturating_sub(leave);
    (0..free)
        .for_each(|number| drop(std::fs::File::create(taken.join(number.to_string())).unwrap()));
    taken
}

#[test]
fn no_more_inodes_are_an_error_before_the_turn() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    let Some((_mount, git)) = on_small_disk(&rig, "32m,nr_inodes=2000") else {
        return;
    };
    begin(&rig);
    let (before, tip) = (tree(&rig), rig.git(&["rev-parse", "teddy/sessions/storm"]));
    for leave in [0, 1, 2, 4, 7] {
        let taken = exhaust(&git, leave);
        let output = rig.run(&["execute", &large(&rig), "-y"]);
        std::fs::remove_dir_all(&taken).unwrap();
        assert!(
            said(&output)
                .to_lowercase()
                .contains("no space left on device"),
            "{leave}: {}",
            said(&output)
        );
        if rig.git(&["rev-parse", "teddy/sessions/storm"]) == tip {
            assert_eq!(tree(&rig), before, "{leave}: {}", said(&output));
        }
        recover(&rig);
    }
    let taken = exhaust(&git, 0);
    let output = rig.run(&["execute", &large(&rig), "-y"]);
    check(&rig, &output, || std::fs::remove_dir_all(&taken).unwrap());
}

#[test]
fn a_full_workspace_is_brought_along_when_there_is_room() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    let Some(_mount) = Mount::small(&rig, &rig.path().join("more"), "1m") else {
        return;
    };
    rig.write("more/kept.txt", &crate::killed_repo::body("kept"));
    begin(&rig);
    let filler = fill(&rig.path().join("more"), 0);
    let output = rig.run(&["execute", &large(&rig), "-y"]);
    assert!(
        said(&output).contains("teddy doctor --fix"),
        "{}",
        said(&output)
    );
    let again = rig.run(&["undo"]);
    assert!(
        !again.status.success(),
        "what is not finished is not passed over: {}",
        said(&again)
    );
    check(&rig, &output, || std::fs::remove_file(&filler).unwrap());
}

#[test]
fn full_folders_for_worktrees_and_temporary_files_are_errors() {
    let rig = rig();
    for (name, variable) in [("cache", "XDG_CACHE_HOME"), ("tmp", "TMPDIR")] {
        let Some(_mount) = Mount::small(&rig, &rig.beside(name), "64k") else {
            return;
        };
        let _filler = fill(&rig.beside(name), 0);
        let (before, tip) = (tree(&rig), rig.git(&["rev-parse", "teddy/sessions/storm"]));
        let output = rig
            .teddy(&["execute", &large(&rig), "-y"])
            .env(variable, rig.beside(name))
            .output()
            .unwrap();
        if output.status.success() {
            continue;
        }
        assert!(
            said(&output).to_lowercase().contains("no space left")
                || tip != rig.git(&["rev-parse", "teddy/sessions/storm"]),
            "{}",
            said(&output)
        );
        if rig.git(&["rev-parse", "teddy/sessions/storm"]) == tip {
            assert_eq!(tree(&rig), before);
        }
    }
    rig.must(&["execute", &rig.plan("2", &[Rig::file(3)], None), "-y"]);
    assert_eq!(
        verdict(&rig, &Saver::default(), &rig.users_state()),
        [""; 0]
    );
}

#[test]
fn a_repository_that_cannot_be_written_is_an_error() {
    let rig = rig();
    let path = rig.path();
    let top = path.to_str().unwrap();
    let Some(mount) = Mount::run(&rig, &["--bind", top, top]) else {
        return;
    };
    assert!(
        rig.command("mount")
            .args(["-o", "remount,ro,bind", top])
            .current_dir("/")
            .status()
            .unwrap()
            .success()
    );
    let plan = large(&rig);
    let output = rig.run(&["execute", &plan, "-y"]);
    for args in [
        ["log"].as_slice(),
        &["show"],
        &["sessions"],
        &["status"],
        &["diff"],
        &["gc", "-n"],
    ] {
        let read = rig.run(args);
        assert!(read.status.success(), "{args:?}: {}", said(&read));
    }
    check(&rig, &output, || drop(mount));
}

#[test]
fn what_cannot_be_written_stops_the_publication_before_its_first_file_and_nothing_else() {
    for held in ["d00", &Rig::file(1)] {
        let rig = rig();
        let held = rig.path().join(held);
        let immutable = |sign: &str| {
            rig.command("chattr")
                .arg(sign)
                .arg(&held)
                .output()
                .is_ok_and(|output| output.status.success())
        };
        if !immutable("+i") {
            return skipped("`chattr +i` is not possible here");
        }
        let (before, plan) = (tree(&rig), large(&rig));
        // A checkout, because in an overlay the command itself cannot write what the user cannot.
        let output = rig.run(&["execute", &plan, "-y", "-c", "worktree.backend=checkout"]);
        let text = said(&output);
        assert!(
            output.status.code() == Some(4) && text.contains("is read-only"),
            "{text}"
        );
        assert_eq!(tree(&rig), before, "{text}");
        rig.must(&["new", "other"]);
        rig.must(&["switch", "storm"]);
        immutable("-i");
        rig.must(&["restore", "@", "--theirs"]);
        assert_eq!(
            rig.git(&["rev-parse", "teddy/sessions/storm^2^{tree}"]),
            tree(&rig)
        );
        assert_eq!(
            verdict(&rig, &Saver::default(), &rig.users_state()),
            [""; 0]
        );
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let rig = rig();
    let plan = rig.plan("large", &[0, 1, 2].map(Rig::file), Some(NOISE));
    let traps = ["", "trap '' XFSZ; "];
    let cases = traps
        .iter()
        .flat_map(|trap| [0, 1, 4, 40].map(|blocks| (trap, blocks)));
    for (trap, blocks) in cases {
        let script = format!("ulimit -f {blocks}; {trap}exec \"$0\" execute \"$1\" -y");
        let output = rig
            .command("sh")
            .args(["-c", &script])
            .arg(&rig.teddy)
            .arg(&plan)
            .output()
            .unwrap();
        let code = output.status.code();
        assert!(code.is_some_and(|code| code != 101), "{}", said(&output));
        if output.status.success() {
            continue;
        }
        recover(&rig);
        assert_eq!(
            verdict(&rig, &Saver::default(), &rig.users_state()),
            [""; 0],
            "{blocks}: {}",
            said(&output)
        );
    }
    rig.must(&["execute", &plan, "-y"]);
}

#[test]
fn a_mount_in_a_worktree_is_not_emptied_and_blocks_no_command() {
    let rig = rig();
    let docs = rig.beside("docs");
    std::fs::create_dir_all(&docs).unwrap();
    std::fs::write(docs.join("mine"), "mine\n").unwrap();
    let usage: serde_json::Value =
        serde_json::from_slice(&rig.run(&["gc", "-n", "--json"]).stdout).unwrap();
    let worktree = PathBuf::from(usage["usage"]["worktrees"][0]["path"].as_str().unwrap());
    let point = worktree.join("mounted");
    std::fs::create_dir_all(&point).unwrap();
    let from = docs.to_str().unwrap();
    let args = ["--bind", from, point.to_str().unwrap()];
    let Some(mount) = Mount::run(&rig, &args) else {
        return;
    };

    let is_there = || std::fs::read_to_string(docs.join("mine")).is_ok_and(|text| text == "mine\n");
    let turn = |tag: &str| {
        let plan = rig.plan(tag, &[Rig::file(3)], Some("true"));
        rig.run(&["execute", &plan, "-y"])
    };
    type Step<'a> = &'a dyn Fn() -> std::process::Output;
    let steps: [(&str, Step<'_>); 8] = [
        ("a turn", &|| turn("2")),
        ("doctor --fix", &|| rig.run(&["doctor", "--fix"])),
        ("gc", &|| rig.run(&["gc", "--idle-days", "0", "-y"])),
        ("another session", &|| rig.run(&["new", "other"])),
        ("its turn", &|| turn("3")),
        ("switch", &|| rig.run(&["switch", "storm"])),
        ("a later turn", &|| turn("4")),
        ("doctor --fix at the end", &|| rig.run(&["doctor", "--fix"])),
    ];
    for (name, step) in steps {
        let output = step();
        assert!(output.status.success(), "{name}: {}", said(&output));
        assert!(is_there(), "{name} removed what is mounted");
    }
    drop(mount);
    assert_eq!(
        verdict(&rig, &Saver::default(), &rig.users_state()),
        [""; 0]
    );
}

/// HEAD, index and files of a user who has something to land.
#[derive(Debug, PartialEq, Eq)]
struct Landable {
    head: String,
    index: String,
    status: String,
    tree: String,
}

impl Landable {
    /// Edits one file, stages another, and records a turn.
    fn prepare(rig: &Rig, turn: &str) -> Landable {
        rig.write("staged.txt", &crate::killed_repo::body("staged"));
        rig.git(&["add", "staged.txt"]);
        rig.write(&Rig::file(5), &crate::killed_repo::body("mine"));
        rig.must(&["execute", &rig.plan(turn, &[Rig::file(0)], None), "-y"]);
        Landable::read(rig)
    }

    fn read(rig: &Rig) -> Landable {
        Landable {
            head: rig.git(&["rev-parse", "HEAD"]),
            index: rig.git(&["ls-files", "-s"]),
            status: rig.git(&["--no-optional-locks", "status", "--porcelain"]),
            tree: tree(rig),
        }
    }

    /// Checks what a landing left that had too little room. Returns whether it made the commit.
    #[track_caller]
    fn check_landed(&self, rig: &Rig, output: &Output) -> bool {
        let text = said(output);
        assert!(!text.contains("panicked"), "{text}");
        recover(rig);
        let now = Landable::read(rig);
        let is_made = now.head != self.head;
        if is_made {
            assert_eq!(rig.git(&["rev-parse", "HEAD^"]), self.head, "{text}");
            let changed = rig.git(&["show", "--format=", "--name-only", "HEAD"]);
            assert_eq!(changed, Rig::file(0), "{text}");
            assert_eq!(now.tree, self.tree, "{text}");
            assert_eq!(now.status, " M d00/f05.txt\nA  staged.txt", "{text}");
        } else {
            assert_eq!(&now, self, "{text}");
            assert!(!output.status.success(), "{text}");
        }
        assert_eq!(
            verdict(rig, &Saver::default(), &rig.users_state()),
            [""; 0],
            "after: {text}"
        );
        for name in ["index.lock", "HEAD.lock", "teddy-index", "teddy-index.own"] {
            assert!(!rig.path().join(".git").join(name).exists(), "{text}");
        }
        is_made
    }
}

#[test]
fn a_landing_on_a_full_disk_is_nothing_or_whole() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    let Some((_mount, git)) = on_small_disk(&rig, "8m") else {
        return;
    };
    begin(&rig);
    rig.must(&["land", "-m", "Land"]);
    let mut before = Landable::prepare(&rig, "2");
    for leave in [0, 4 << 10, 12 << 10, 24 << 10, 48 << 10, 96 << 10] {
        let filler = fill(&git, leave);
        let output = rig.run(&["land", "-m", "Land"]);
        empty(&filler);
        if before.check_landed(&rig, &output) {
            before = Landable::prepare(&rig, &format!("after {leave}"));
        }
    }
    rig.must(&["land", "-m", "Land"]);

    // The directory of a landing is on another disk.
    let before = Landable::prepare(&rig, "3");
    let cache = rig.beside("home/.cache");
    let Some(_cache) = Mount::small(&rig, &cache, "64k") else {
        return;
    };
    let filler = fill(&cache, 0);
    let output = rig.run(&["land", "-m", "Land"]);
    empty(&filler);
    before.check_landed(&rig, &output);
}

#[test]
fn a_landing_that_must_not_write_large_files_is_nothing_or_whole() {
    let rig = rig();
    rig.must(&["land", "-m", "Land"]);
    let mut before = Landable::prepare(&rig, "2");
    for blocks in [0, 1, 2, 4, 16] {
        let script = format!("ulimit -f {blocks}; trap '' XFSZ; exec \"$0\" land -m Land");
        let mut limited = rig.command("sh");
        let output = limited.args(["-c", &script]).arg(&rig.teddy).output();
        if before.check_landed(&rig, &output.unwrap()) {
            before = Landable::prepare(&rig, &format!("after {blocks}"));
        }
    }
}
