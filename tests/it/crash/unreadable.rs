//! Objects and refs that are temporarily unreadable: the command names the file, nothing counts as
//! lost, and everything works once the file is readable again. Data that recovery has set aside can
//! be restored.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::plans::{create, execute, plan};
use crate::support::TestRepo;

/// Commands that start with a recovery or validate sessions.
const COMMANDS: [&[&str]; 6] = [
    &["new", "other"],
    &["doctor", "--fix"],
    &["verify"],
    &["gc"],
    &["gc", "demo", "-y"],
    &["-s", "demo", "log"],
];

/// A project with a session of two turns. All objects are in packs.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    for name in ["one", "two"] {
        repo.run_plan(&plan(name, &[create(name, "x\n")]));
    }
    repo
}

fn refs(repo: &TestRepo) -> String {
    repo.git(&["for-each-ref"])
}

fn objects(repo: &TestRepo) -> PathBuf {
    repo.path().join(".git/objects")
}

/// Returns the files in `objects/pack`.
fn packs(repo: &TestRepo) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(objects(repo).join("pack")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Makes something unreadable, tries every command, then makes it readable again.
#[track_caller]
fn check(names: &str, hide: impl Fn(&TestRepo), show: impl Fn(&TestRepo)) {
    let repo = project();
    let before = refs(&repo);
    hide(&repo);
    for args in COMMANDS {
        repo.teddy(args)
            .check(1, &[names, "cannot be read", "nothing was changed"]);
    }
    let doctor = repo.teddy(&["doctor"]);
    assert!(
        doctor.stdout.contains("cannot be read"),
        "{names}: {doctor}"
    );

    show(&repo);
    assert_eq!(refs(&repo), before, "{names}");
    repo.done(&["doctor", "--fix"]);
    assert_eq!(refs(&repo), before, "{names}");
    assert_eq!(repo.json(&["verify", "demo"], 0)[0]["turns"], 3, "{names}");
    assert!(!repo.path().join(".git/teddy/undo/refs").exists());
}

/// Moves a file next to the repository and replaces it by a symlink to that place.
fn move_away(repo: &TestRepo, file: &Path, target: &str) {
    let aside = repo.beside("disk");
    std::fs::create_dir_all(&aside).unwrap();
    let name = file.file_name().unwrap();
    std::fs::rename(file, aside.join(name)).unwrap();
    let target = match target {
        "mounted" => aside.join(name),
        _ => repo.beside("not-mounted").join(name),
    };
    symlink(target, file).unwrap();
}

fn bring_back(repo: &TestRepo, file: &Path) {
    std::fs::remove_file(file).unwrap();
    std::fs::rename(repo.beside("disk").join(file.file_name().unwrap()), file).unwrap();
}

#[test]
fn packs_behind_links_to_a_disk_that_is_not_mounted_are_not_lost() {
    let each = |repo: &TestRepo, act: &dyn Fn(&Path)| packs(repo).iter().for_each(|file| act(file));
    check(
        "pack-",
        |repo| each(repo, &|file| move_away(repo, file, "gone")),
        |repo| each(repo, &|file| bring_back(repo, file)),
    );
}

#[test]
fn packs_behind_links_are_not_lost() {
    let each = |repo: &TestRepo, act: &dyn Fn(&Path)| packs(repo).iter().for_each(|file| act(file));
    check(
        "it is a symbolic link",
        |repo| each(repo, &|file| move_away(repo, file, "mounted")),
        |repo| each(repo, &|file| bring_back(repo, file)),
    );
}

#[test]
fn a_directory_of_packs_that_is_not_mounted_is_not_lost() {
    check(
        "objects/pack",
        |repo| move_away(repo, &objects(repo).join("pack"), "gone"),
        |repo| bring_back(repo, &objects(repo).join("pack")),
    );
}

#[test]
fn an_alternate_that_is_not_mounted_is_not_lost() {
    for is_empty_dir in [false, true] {
        let alternate = |repo: &TestRepo| repo.beside("alternate");
        check(
            "alternate",
            |repo| {
                let (from, to) = (objects(repo), alternate(repo));
                std::fs::create_dir_all(to.join("elsewhere")).unwrap();
                std::fs::rename(from.join("pack"), to.join("elsewhere/pack")).unwrap();
                std::fs::create_dir(from.join("pack")).unwrap();
                let line = format!("{}\n", to.join("objects").display());
                std::fs::create_dir_all(from.join("info")).unwrap();
                std::fs::write(from.join("info/alternates"), line).unwrap();
                if is_empty_dir {
                    std::fs::create_dir(to.join("objects")).unwrap();
                }
            },
            |repo| {
                let to = alternate(repo);
                let _ = std::fs::remove_dir(to.join("objects"));
                std::fs::rename(to.join("elsewhere"), to.join("objects")).unwrap();
            },
        );
    }
}

/// Bug: its sessions were taken away, because no commit of them was left.
#[test]
fn a_pack_that_lost_only_its_index_gets_another() {
    let repo = project();
    let before = refs(&repo);
    for file in packs(&repo) {
        if file.extension().is_some_and(|ending| ending == "idx") {
            let length = file.metadata().unwrap().len();
            std::fs::remove_file(&file).unwrap();
            std::fs::write(file, vec![0; length.try_into().unwrap()]).unwrap();
        }
    }
    let fixed = repo.teddy(&["doctor", "--fix"]);
    fixed.check(0, &[]);
    assert!(!fixed.stdout.contains("taken away"), "{fixed}");
    assert_eq!(refs(&repo), before);
    assert_eq!(repo.json(&["verify", "demo"], 0)[0]["turns"], 3);
    repo.git(&["fsck", "--strict", "--no-dangling"]);
}

/// A truncated pack can be read and is wrong, so it counts as damaged.
#[test]
fn what_was_read_and_is_wrong_is_set_aside_and_comes_back() {
    let repo = project();
    let before = refs(&repo);
    let copies: Vec<(PathBuf, Vec<u8>)> = packs(&repo)
        .into_iter()
        .map(|file| (file.clone(), std::fs::read(file).unwrap()))
        .collect();
    for (file, bytes) in &copies {
        if file.extension().is_some_and(|ending| ending == "pack") {
            std::fs::remove_file(file).unwrap();
            std::fs::write(file, &bytes[..bytes.len() - 20]).unwrap();
        }
    }
    repo.teddy(&["doctor", "--fix"]).check(
        0,
        &["which a power cut left without its bytes", "was taken away"],
    );
    assert_ne!(refs(&repo), before);
    let doctor = repo.teddy(&["doctor"]);
    doctor.check(
        0,
        &["recovery quarantined", "teddy doctor --fix --put-back"],
    );

    // Data that is still damaged stays set aside.
    repo.teddy(&["doctor", "--fix", "--put-back"]).check(
        0,
        &["stays in quarantine: it is damaged", "is still missing"],
    );

    // For example, the user restores the packs from a backup.
    for (file, bytes) in &copies {
        let aside = repo.path().join(".git/teddy/undo/packs");
        let damaged = aside.join(file.file_name().unwrap());
        // Packs are read-only.
        let _ = std::fs::remove_file(&damaged);
        std::fs::write(damaged, bytes).unwrap();
    }
    repo.teddy(&["doctor", "--fix", "--put-back"])
        .check(0, &["Put back `refs/teddy/sessions/demo`"]);
    assert_eq!(refs(&repo), before);
    assert_eq!(repo.json(&["verify", "demo"], 0)[0]["turns"], 3);
    repo.git(&["fsck", "--strict", "--no-dangling"]);
    let left = repo.json(&["doctor", "--fix", "--put-back"], 0);
    assert_eq!(left["recovery"]["put_back"], serde_json::json!([]));
}

#[test]
fn a_ref_that_went_on_is_not_put_back() {
    let repo = project();
    let old = repo.git(&["rev-parse", "teddy/sessions/demo"]);
    repo.done(&["undo"]);
    let before = refs(&repo);
    let aside = repo.path().join(".git/teddy/undo/refs");
    std::fs::create_dir_all(&aside).unwrap();
    let file = aside.join("refs:teddy:sessions:demo");
    std::fs::write(&file, format!("{old}\n")).unwrap();
    repo.teddy(&["doctor", "--fix", "--put-back"])
        .check(0, &["has moved on since", &old]);
    assert_eq!(refs(&repo), before);
    assert!(file.exists());
}

/// Bug: TeDDy took a worktree whose record it could not read for a deleted one. A loop of symlinks
/// is the only thing that root cannot read.
#[test]
fn an_unreadable_linked_worktree_does_not_count_as_deleted() {
    let repo = project();
    repo.git(&["worktree", "add", "-q", "../linked"]);
    let linked = repo.beside("linked");
    repo.teddy_in(&linked, &["-s", "demo", "restore", "1", "-y"]);
    let published = "refs/teddy/published/linked-linked";
    assert!(refs(&repo).contains(published));

    let records = repo.path().join(".git/worktrees");
    let aside = repo.beside("records");
    std::fs::rename(&records, &aside).unwrap();
    symlink("worktrees", &records).unwrap();
    repo.teddy(&["gc"]).check(1, &["cannot read"]);
    std::fs::remove_file(&records).unwrap();
    std::fs::rename(&aside, &records).unwrap();
    assert!(refs(&repo).contains(published));
}

/// Bug: the objects that could not be read any more counted as missing.
#[test]
fn a_linked_worktree_that_is_removed_during_its_turn_is_named() {
    let repo = project();
    repo.git(&["worktree", "add", "-q", "../linked"]);
    let linked = repo.beside("linked");
    let remove = format!(
        "git --git-dir={}/.git worktree remove --force {}",
        repo.path().display(),
        linked.display()
    );
    let file = repo.beside("plan.md");
    std::fs::write(&file, plan("three", &[execute(&remove)])).unwrap();
    let args = [
        "-s",
        "demo",
        "-c",
        "execute.sandbox=off",
        "execute",
        "../plan.md",
        "-y",
    ];
    let out = repo.teddy_in(&linked, &args);
    let gone = format!(
        "the git directory `{}/.git/worktrees/linked` is gone",
        repo.path().display()
    );
    out.check(1, &[&gone]);
    repo.teddy(&["-s", "demo", "status"])
        .check(0, &["A plan is waiting for turn 3"]);
}

/// Interrupts a turn of a linked worktree, which is then moved away, so that its intent is put aside.
/// Returns where the worktree was and where it is.
fn intent_without_checkout(repo: &TestRepo) -> (PathBuf, PathBuf) {
    repo.git(&["worktree", "add", "-q", "../linked"]);
    let (linked, away) = (repo.beside("linked"), repo.beside("away"));
    let file = repo.beside("plan.md");
    std::fs::write(&file, plan("three", &[create("three", "x\n")])).unwrap();
    let mut command = repo.teddy_command(&["-s", "demo", "execute", "../plan.md", "-y"]);
    command
        .current_dir(&linked)
        .env("FAILPOINTS", "after-ref=return");
    let out = crate::support::Output::of(&mut command);
    out.check(1, &["the turn is recorded as"]);

    std::fs::rename(&linked, &away).unwrap();
    repo.teddy(&["doctor", "--fix"])
        .check(0, &["pending.json.bad-1"]);
    (linked, away)
}

/// A linked worktree on a disk that is not mounted: its turn is finished once it is there again.
#[test]
fn an_intent_that_was_put_aside_is_carried_out_once_its_checkout_is_back() {
    let repo = project();
    let (linked, away) = intent_without_checkout(&repo);
    repo.teddy(&["doctor"]).check(0, &["pending.json.bad-1"]);
    std::fs::rename(&away, &linked).unwrap();
    repo.teddy(&["doctor", "--fix", "--put-back"])
        .check(0, &["Put back `pending.json.bad-1`"]);
    assert!(linked.join("three").exists());
}

#[test]
fn an_intent_is_not_put_back_once_its_session_went_on() {
    let repo = project();
    let (linked, away) = intent_without_checkout(&repo);
    std::fs::write(
        repo.beside("plan.md"),
        plan("four", &[create("four", "x\n")]),
    )
    .unwrap();
    repo.done(&["-s", "demo", "execute", "../plan.md", "-y"]);
    std::fs::rename(&away, &linked).unwrap();
    repo.teddy(&["doctor", "--fix", "--put-back"])
        .check(0, &["its turn is no longer the newest of its session"]);
    assert!(!linked.join("three").exists());
}

#[test]
fn an_object_that_is_not_what_its_name_says_is_not_put_back() {
    let repo = project();
    for name in ["right", "other"] {
        std::fs::write(repo.beside(name), name).unwrap();
    }
    let right = repo.git(&["hash-object", "-w", "../right"]);
    let other = repo.git(&["hash-object", "../other"]);
    let path = |id: &str| objects(&repo).join(&id[..2]).join(&id[2..]);
    let aside = repo.path().join(".git/teddy/undo/objects");
    std::fs::create_dir_all(&aside).unwrap();
    std::fs::copy(path(&right), aside.join(&other)).unwrap();
    std::fs::rename(path(&right), aside.join(&right)).unwrap();

    let out = repo.teddy(&["doctor", "--fix", "--put-back"]);
    let stays = format!("`{other}` stays in quarantine: it is damaged");
    out.check(0, &[&stays, &format!("Put back `{right}`")]);
    assert!(path(&right).exists() && !path(&other).exists());
}
