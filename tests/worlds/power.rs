//! Power cuts: everything a command has completed is on disk. The next command repairs what a cut
//! left behind, so that all git commands work.
//!
//! The repository is on an ext4 file system in an image file. The image contains exactly what would
//! survive a cut now, so a cut mounts a copy of it instead. Needs the right to mount. Without it,
//! the tests print why and pass.
//!
//! CI also runs this module as root.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::plans::{create, edit, execute, plan};
use crate::support::{Output, TestRepo, skipped};

/// A disk whose power can be cut.
struct Disk {
    /// Contains the images and the mount point.
    folder: tempfile::TempDir,
    cuts: usize,
}

impl Disk {
    /// `None` if this process cannot mount.
    fn new() -> Option<Disk> {
        let disk = Disk {
            folder: tempfile::tempdir().unwrap(),
            cuts: 0,
        };
        std::fs::create_dir(disk.mount_point()).unwrap();
        let image = std::fs::File::create(disk.image()).unwrap();
        image.set_len(64 << 20).unwrap();

        let made = run("mkfs.ext4", &["-q".as_ref(), disk.image().as_ref()]) && disk.mount();
        if !made {
            skipped("no disk can be made and mounted here");
        }
        made.then_some(disk)
    }

    /// `commit=600` keeps the kernel from writing on its own during a test.
    fn mount(&self) -> bool {
        let options = "loop,commit=600,noinit_itable";
        let (image, point) = (self.image(), self.mount_point());
        run(
            "mount",
            &[
                "-o".as_ref(),
                options.as_ref(),
                image.as_ref(),
                point.as_ref(),
            ],
        )
    }

    /// Cuts the power and remounts. Everything that was not on disk is lost.
    ///
    /// An `fsync` of an unrelated file comes just before. It commits ext4's journal with all names,
    /// but not the data of new files.
    #[expect(clippy::disallowed_methods, reason = "it stands for another program")]
    fn cut(&mut self, repo: &TestRepo) {
        let elsewhere = std::fs::File::create(self.mount_point().join("elsewhere")).unwrap();
        elsewhere.sync_all().unwrap();
        self.cut_at_once(repo);
    }

    /// Like [`Disk::cut`] without the `fsync`: names that were not synced are lost.
    fn cut_at_once(&mut self, repo: &TestRepo) {
        let before = self.image();
        self.cuts += 1;
        let copied = run(
            "cp",
            &[
                "--sparse=always".as_ref(),
                before.as_ref(),
                self.image().as_ref(),
            ],
        );
        assert!(copied && run("umount", &["-l".as_ref(), self.mount_point().as_ref()]));
        std::fs::remove_file(before).unwrap();
        assert!(self.mount(), "the disk cannot be mounted after the cut");

        // The test cannot reboot, so it changes the boot id by which TeDDy detects a reboot.
        let boot = repo.path().join(".git/teddy/boot");
        if boot.exists() {
            std::fs::write(boot, "an earlier start").unwrap();
        }
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join(format!("disk-{}", self.cuts))
    }

    fn mount_point(&self) -> PathBuf {
        self.folder.path().join("mount")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &["-l".as_ref(), self.mount_point().as_ref()]);
    }
}

#[expect(clippy::disallowed_methods, reason = "a test starts programs itself")]
fn run(program: &str, args: &[&Path]) -> bool {
    Command::new(program)
        .args(args)
        .output()
        .is_ok_and(|output| output.status.success())
}

/// A project with a session of one turn, synced to disk.
fn project(disk: &Disk) -> TestRepo {
    let repo = TestRepo::below(&disk.mount_point(), &[]);
    if repo.path().join(".git/reftable").exists() {
        // By default git does not sync a reftable, so a cut soon after any commit by git would lose
        // all refs.
        repo.git(&["config", "core.fsync", "committed,reference"]);
    }
    first_turn(&repo, disk);
    repo
}

/// Creates a session of one turn and syncs it to disk.
fn first_turn(repo: &TestRepo, disk: &Disk) {
    repo.put("a.txt", "one\n").put("b.txt", "two\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "b.txt", "--session"]);
    repo.run_plan(&plan("First", &[create("first.txt", "1\n")]));
    assert!(run("sync", &["-f".as_ref(), disk.mount_point().as_ref()]));
}

/// Checks that TeDDy and git work after a cut. Returns the output of the
/// recovery.
#[track_caller]
fn works(repo: &TestRepo, what: &str) -> Output {
    let recovered = repo.teddy(&["doctor", "--fix"]);
    // The disk is small, which is a problem that it names.
    let problems = recovered.stdout.matches("  problem ").count();
    let is_full = recovered.stdout.contains("MiB free for the repository");
    assert_eq!(problems, usize::from(is_full), "{what}: {recovered}");
    assert!(!recovered.stderr.contains("error:"), "{what}: {recovered}");

    for args in [
        &["rev-list", "--objects", "--all", "--quiet"][..],
        &["log", "--all", "--oneline"],
        &["fetch", "-q", "."],
        &["gc", "-q"],
    ] {
        let output = repo
            .command("git")
            .current_dir(repo.path())
            .args(args)
            .output()
            .unwrap();
        let output = Output::from(output);
        assert_eq!(output.code, 0, "{what}: git {args:?}: {output}");
    }

    repo.run_plan(&plan("After the cut", &[create("after.txt", "after\n")]));
    assert_eq!(repo.read("after.txt"), "after\n", "{what}");
    recovered
}

/// Failpoints: Linux with all features, and a system without `syncfs`.
const SYSTEMS: [&str; 2] = ["", "no-syncfs=return"];

/// Runs a command, which must succeed, cuts the power, and checks the result, on each system.
fn check(args: &[&str], promised: impl Fn(&TestRepo)) {
    for system in SYSTEMS {
        check_on(system, args, &promised);
    }
}

fn teddy_on(system: &str, repo: &TestRepo, args: &[&str]) -> Output {
    let mut command = repo.teddy_command(args);
    command.current_dir(repo.path()).env("FAILPOINTS", system);
    Output::of(&mut command)
}

/// Like [`check`], on one system.
fn check_on(system: &str, args: &[&str], promised: impl Fn(&TestRepo)) {
    let Some(mut disk) = Disk::new() else { return };
    let repo = project(&disk);
    repo.write("a.txt", "the user's\n");
    // git does not sync the objects of its commits, and TeDDy's snapshots refer to them.
    repo.write("c.txt", "three\n");
    repo.git(&["add", "c.txt"]);
    repo.git(&["commit", "-qm", "a moment ago"]);
    std::fs::write(
        repo.beside("plan.md"),
        plan(
            "Second",
            &[create("second.txt", "2\n"), edit("b.txt", "two", "2")],
        ),
    )
    .unwrap();

    let out = teddy_on(system, &repo, args);
    assert_eq!(out.code, 0, "{system} {args:?}: {out}");
    disk.cut(&repo);

    promised(&repo);
    works(&repo, &format!("{system} {args:?}"));
    repo.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn attack_4_a_cut_after_context_leaves_nothing_that_dangles() {
    check(&["context"], |_| ());
}

#[test]
fn attack_4_a_cut_after_plan_keeps_the_answer() {
    check(&["plan", "-m", "go", "--from", "../plan.md"], |repo| {
        let status = repo.json(&["status"], 0);
        assert_eq!(
            (&status["state"], &status["draft"]["title"]),
            (&"planned".into(), &"Second".into())
        );
    });
}

#[test]
fn a_cut_after_execute_keeps_the_turn_and_the_files() {
    check(&["execute", "../plan.md", "-y"], |repo| {
        assert_eq!(repo.json(&["status"], 0)["turn"], 2);
        assert_eq!(repo.read("second.txt"), "2\n");
        assert_eq!(repo.read("b.txt"), "2\n");
    });
}

#[test]
fn a_cut_right_after_a_turn_of_few_files_or_many_keeps_all_of_them() {
    let all = SYSTEMS.map(|system| [1, 3, 8, 9, 30].map(|count| (system, count)));
    for (system, count) in all.into_iter().flatten() {
        let Some(mut disk) = Disk::new() else { return };
        let repo = project(&disk);
        let path = |number| format!("d{}/e/{number}.txt", number % 3);
        let mut actions = vec![edit("b.txt", "two", "2")];
        actions.extend((1..count).map(|number| create(&path(number), "new\n")));
        std::fs::write(repo.beside("plan.md"), plan("Second", &actions)).unwrap();
        let is_there = |repo: &TestRepo| {
            assert_eq!(repo.json(&["status"], 0)["turn"], 2, "{count}");
            assert_eq!(repo.read("b.txt"), "2\n", "{count}");
            (1..count).for_each(|number| assert_eq!(repo.read(&path(number)), "new\n"));
            assert_eq!(repo.git(&["status", "--short", "--", "a.txt"]), "");
        };
        teddy_on(system, &repo, &["execute", "../plan.md", "-y"]).check(0, &[]);
        disk.cut_at_once(&repo);
        is_there(&repo);

        teddy_on(system, &repo, &["undo"]).check(0, &[]);
        disk.cut_at_once(&repo);
        assert_eq!(repo.read("b.txt"), "two\n", "{count}");
        assert!((0..3).all(|folder| !repo.path().join(format!("d{folder}")).exists()));
        works(&repo, &format!("{system} {count} files"));
    }
}

/// Bug: without `syncfs`, the turn flushed only its objects, and its overlay flushes nothing.
#[test]
fn a_power_cut_after_a_turn_keeps_the_ignored_files_of_its_commands() {
    for system in SYSTEMS {
        let Some(mut disk) = Disk::new() else { return };
        let repo = project(&disk);
        repo.put(".gitignore", "target/\n");
        repo.commit("ignore");
        let script = "mkdir target && echo flushed > target/built";
        std::fs::write(repo.beside("plan.md"), plan("Build", &[execute(script)])).unwrap();
        let overlay = "worktree.backend=overlay";
        let args = ["execute", "../plan.md", "-y", "-c", overlay];
        teddy_on(system, &repo, &args).check(0, &[]);
        disk.cut_at_once(&repo);
        let home = repo.beside("home");
        let found = ["-rqx".as_ref(), "flushed".as_ref(), home.as_path()];
        assert!(run("grep", &found), "{system}");
    }
}

#[test]
fn a_cut_after_a_turn_keeps_every_ref_of_a_reftable() {
    for args in [
        &["execute", "../plan.md", "-y"][..],
        &["undo"],
        &["branch", "1", "other"],
    ] {
        let Some(mut disk) = Disk::new() else { return };
        let version = TestRepo::new().git(&["version"]);
        let numbers = version
            .split([' ', '.'])
            .filter_map(|part| part.parse::<u32>().ok());
        if numbers.lt([2, 45]) {
            return;
        }
        let repo = TestRepo::below(&disk.mount_point(), &["--ref-format=reftable"]);
        first_turn(&repo, &disk);
        let text = plan(
            "Second",
            &[create("second.txt", "2\n"), edit("b.txt", "two", "2")],
        );
        std::fs::write(repo.beside("plan.md"), text).unwrap();
        // git syncs neither this commit nor the reftable with its ref, and the turn depends on
        // both.
        repo.write("c.txt", "three\n");
        let commit = repo.commit("a moment ago");
        repo.done(args);
        let tip = repo.git(&["for-each-ref", "refs/teddy/sessions"]);
        disk.cut(&repo);

        assert_eq!(repo.git(&["rev-parse", "main"]), commit, "{args:?}");
        assert_eq!(
            repo.git(&["for-each-ref", "refs/teddy/sessions"]),
            tip,
            "{args:?}"
        );
        works(&repo, &format!("{args:?}"));
        repo.git(&["fsck", "--strict", "--no-dangling"]);
    }
}

#[test]
fn a_cut_after_undo_and_restore_keeps_the_turn_and_the_files() {
    for args in [&["undo"][..], &["restore", "0", "-y"]] {
        check(args, |repo| {
            assert_eq!(repo.json(&["status"], 0)["turn"], 2);
            assert!(!repo.path().join("first.txt").exists());
        });
    }
}

#[test]
fn a_cut_after_branch_keeps_the_session() {
    check(&["branch", "1", "other"], |repo| {
        let sessions = repo.json(&["sessions"], 0);
        assert_eq!(sessions.as_array().unwrap().len(), 2);
    });
}

#[test]
fn a_cut_after_gc_keeps_every_turn() {
    check(&["gc"], |repo| {
        assert_eq!(repo.json(&["log"], 0).as_array().unwrap().len(), 2);
    });
}

#[test]
fn a_cut_after_a_step_of_a_change_keeps_its_documents() {
    let answers = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/change");
    let model = format!("recorded: {{ kind: replay, path: {answers} }}");
    let models = [
        "-c",
        "model=recorded",
        "-c",
        &format!("models={{ {model} }}"),
    ];
    let id = "greet-by-name";
    check(
        &[&models[..], &["change", "plan", id, "Greet people by name"]].concat(),
        |repo| {
            let status = repo.json(&["change", "status", id], 0);
            assert_eq!(status["phase"], "challenged", "{status}");
            repo.git(&[
                "cat-file",
                "-e",
                &format!("refs/teddy/changes/{id}:proposal.md"),
            ]);
        },
    );
}

#[test]
fn a_cut_at_any_point_of_a_turn_is_recovered_from() {
    for point in [
        "after-snapshot-ref",
        "after-run-snapshot",
        "before-objects-sync",
        "after-intent",
        "after-ref-before-sync",
        "publish-after-exchange",
        "before-clear",
    ] {
        let Some(mut disk) = Disk::new() else { return };
        let repo = project(&disk);
        repo.write("a.txt", "the user's\n");
        let text = plan(
            "Second",
            &[create("second.txt", "2\n"), edit("b.txt", "two", "2")],
        );
        std::fs::write(repo.beside("plan.md"), text).unwrap();
        let mut killed = repo.teddy_command(&["execute", "../plan.md", "-y"]);
        killed
            .current_dir(repo.path())
            .env("FAILPOINTS", format!("{point}=1*return(kill)"));
        assert_eq!(Output::of(&mut killed).code, -1, "{point} is not passed");

        disk.cut(&repo);

        works(&repo, point);
        repo.git(&["fsck", "--strict", "--no-dangling"]);
        assert_eq!(repo.read("first.txt"), "1\n", "{point}");
        let all = repo.path().join("second.txt").exists();
        let expected = if all { "2\n" } else { "two\n" };
        assert_eq!(repo.read("b.txt"), expected, "{point}: half a plan");
    }
}

/// Truncates a loose object.
fn empty(repo: &TestRepo, id: &str) {
    let path = repo
        .path()
        .join(".git/objects")
        .join(&id[..2])
        .join(&id[2..]);
    let mut permissions = path.metadata().unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    std::fs::set_permissions(&path, permissions).unwrap();
    std::fs::write(path, "").unwrap();
}

/// Unpacks all objects.
fn unpack(repo: &TestRepo) {
    let packs = repo.path().join(".git/objects/pack");
    let aside = repo.beside("packs");
    std::fs::rename(&packs, &aside).unwrap();
    std::fs::create_dir(&packs).unwrap();
    for file in std::fs::read_dir(aside).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "pack") {
            let output = repo
                .command("git")
                .current_dir(repo.path())
                .args(["unpack-objects", "-q"])
                .stdin(std::fs::File::open(path).unwrap())
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    }
}

/// A session of two turns, with loose objects only.
fn loose_session() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.run_plan(&plan("First", &[create("first.txt", "1\n")]));
    repo.run_plan(&plan("Second", &[create("second.txt", "2\n")]));
    unpack(&repo);
    repo
}

#[test]
fn a_tip_without_its_bytes_gives_way_to_the_turn_before() {
    let repo = loose_session();
    let tip = [
        "refs/teddy/sessions/demo",
        "refs/teddy/sessions/demo^{tree}",
    ]
    .map(|object| repo.git(&["rev-parse", object]));
    tip.iter().for_each(|object| empty(&repo, object));

    let recovered = works(&repo, "an empty tip");
    recovered.check(
        0,
        &[
            "damaged objects",
            "is at turn 1 (",
            "turns after it, if there were any, are lost",
        ],
    );
    assert_eq!(repo.json(&["status"], 0)["turn"], 2);
}

#[test]
fn a_file_of_a_turn_without_its_bytes_is_found_by_recover() {
    let repo = loose_session();
    empty(
        &repo,
        &repo.git(&["rev-parse", "refs/teddy/sessions/demo^2:second.txt"]),
    );
    std::fs::remove_file(repo.path().join("second.txt")).unwrap();

    let recovered = works(&repo, "an empty file of a turn");
    recovered.check(0, &["1 damaged object ", "is at turn 1 ("]);
}

#[test]
fn an_empty_object_that_the_files_still_have_is_written_again() {
    let repo = loose_session();
    let blob = repo.git(&["rev-parse", "refs/teddy/sessions/demo^2:second.txt"]);
    empty(&repo, &blob);
    std::fs::write(repo.path().join(".git/teddy/boot"), "an earlier start").unwrap();

    repo.run_plan(&plan("Third", &[create("third.txt", "3\n")]));
    assert_eq!(repo.git(&["cat-file", "-p", &blob]), "2");
    assert_eq!(repo.git(&["fsck", "--strict", "--no-dangling"]), "");
}
