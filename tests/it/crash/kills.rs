//! Kills at random moments, and what they leave behind.

use std::sync::Arc;
use std::time::Duration;

use super::damaged_state::{inside, replace, rig};
use crate::killed_repo::{Rig, Saver, said, verdict};
use crate::plans::{create, edit, plan};
use crate::random_kills::{Plan, storm};
use crate::support::{Output, TestRepo};

#[test]
fn a_short_storm_loses_nothing() {
    let rig = Arc::new(Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 200));
    let tally = storm(
        &rig,
        &Plan {
            kills: 8,
            seed: 5,
            limit: Duration::from_secs(60),
            look_every: 8,
        },
    );
    assert_eq!(tally.wrong, [""; 0], "{tally:#?}");
    assert!(tally.kills > 4 && tally.saves > 0, "{tally:#?}");
}

#[test]
fn a_panic_is_a_crash_that_is_called_a_bug() {
    let rig = rig();
    let mut run = rig.teddy(&["execute", "-y", "-s", "storm"]);
    let output = run.env("FAILPOINTS", "publish-prepared=panic").output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(101), "{}", said(&output));
    let hint = "error: this is a bug in teddy\nhint: the next command puts right what was under way; please report the lines above\n";
    assert!(said(&output).ends_with(hint), "{}", said(&output));

    // The panic did not release the lock, so the next command knows that its holder crashed.
    let holder = std::fs::read_to_string(inside(&rig, "teddy/lock")).unwrap();
    assert!(holder.starts_with("process "), "{holder:?}");
    rig.must(&["doctor", "--fix"]);
    assert_eq!(
        verdict(&rig, &Saver::default(), &rig.users_state()),
        [""; 0]
    );
}

/// Damages a file and checks that the next recovery repairs it.
fn check_healed(rig: &Rig, tip: &str, (name, bytes): (&str, &[u8]), expected: &str) {
    std::fs::write(inside(rig, name), bytes).unwrap();
    let output = rig.run(&["doctor", "--fix"]);
    assert!(
        output.status.success() && said(&output).contains(expected),
        "{name}: {}",
        said(&output)
    );
    assert_eq!(
        rig.git(&["rev-parse", "refs/teddy/sessions/storm"]),
        tip,
        "{name}"
    );
}

/// Damages files one after another, then checks all guarantees, and that a turn follows.
fn check_all_healed(rig: &Rig, cases: &[(&str, &[u8], &str)]) {
    let (state, tip) = (
        rig.users_state(),
        rig.git(&["rev-parse", "refs/teddy/sessions/storm"]),
    );
    for (name, bytes, expected) in cases {
        check_healed(rig, &tip, (name, bytes), expected);
    }
    assert_eq!(verdict(rig, &Saver::default(), &state), [""; 0]);
    rig.must(&["execute", &rig.plan(&tip[..8], &[Rig::file(0)], None), "-y"]);
    let again = rig.run(&["doctor", "--fix"]);
    assert!(
        said(&again).contains("nothing to recover"),
        "{}",
        said(&again)
    );
}

#[test]
fn refs_without_a_commit_get_their_last_one_back() {
    let rig = rig();
    // The draft of the plan that waits: the next turn replaces it.
    let nowhere = b"1234567890123456789012345678901234567890\n";
    let draft = (
        "refs/teddy/drafts/storm",
        nowhere.as_slice(),
        "was damaged and is at",
    );
    check_all_healed(&rig, &[draft]);
    let session = [b"".as_slice(), b"\0\0\0", b"not an id\n", nowhere].map(|bytes| {
        (
            "refs/teddy/sessions/storm",
            bytes,
            "`refs/teddy/sessions/storm` was damaged and is at",
        )
    });
    check_all_healed(&rig, &session);
    let of_files = [("snapshots", b"".as_slice()), ("published", b"x")];
    let of_files = of_files.map(|(name, bytes)| (format!("refs/teddy/{name}/main"), bytes));
    let cases = of_files
        .each_ref()
        .map(|(name, bytes)| (name.as_str(), *bytes, "was damaged and is at"));
    check_all_healed(&rig, &cases);
}

#[test]
fn a_ref_without_a_log_is_repaired_from_its_second_copy() {
    let rig = rig();
    let tip = rig.git(&["rev-parse", "refs/teddy/sessions/storm"]);
    std::fs::remove_dir_all(inside(&rig, "logs/refs/teddy")).unwrap();
    std::fs::write(inside(&rig, "refs/teddy/sessions/storm"), "").unwrap();
    rig.must(&["undo"]);
    assert_eq!(rig.git(&["rev-parse", "refs/teddy/sessions/storm~1"]), tip);
}

#[test]
fn a_lock_of_ours_is_removed_and_one_of_gits_is_only_named() {
    let healed = rig();
    let locks = ["drafts", "sessions"].map(|kind| format!("refs/teddy/{kind}/storm.lock"));
    let cases = locks
        .each_ref()
        .map(|name| (name.as_str(), b"".as_slice(), "removed the lock"));
    check_all_healed(&healed, &cases);
    let rig = rig();
    rig.git(&["pack-refs", "--all"]);
    let locks = ["index.lock", "packed-refs.lock", "refs/heads/main.lock"];
    locks
        .iter()
        .for_each(|name| std::fs::write(inside(&rig, name), "").unwrap());
    let output = rig.run(&["doctor", "--fix"]);
    for lock in locks {
        let named = format!("{lock}` is a lock of git's own");
        assert!(said(&output).contains(&named), "{}", said(&output));
    }
    // TeDDy takes none of these locks: after a kill, git would fail until the user removes them.
    let plan = rig.plan("more", &[Rig::file(1)], None);
    for args in [
        ["new", "other"].as_slice(),
        &["switch", "storm"],
        &["execute", &plan, "-y"],
        &["undo"],
        &["branch", "fork"],
        &["doctor", "--fix"],
    ] {
        rig.must(args);
    }
    for name in locks {
        assert!(inside(&rig, name).exists(), "{name} is not ours");
        std::fs::remove_file(inside(&rig, name)).unwrap();
    }
    // A packed draft must not reappear once its objects are pruned.
    rig.must(&["plan", "--from", &plan]);
    rig.git(&["pack-refs", "--all"]);
    rig.must(&["plan", "--from", &plan]);
    rig.must(&["undo"]);
    rig.git(&[
        "-c",
        "gc.reflogExpireUnreachable=now",
        "gc",
        "-q",
        "--prune=now",
    ]);
    assert_eq!(rig.git(&["fsck", "--strict", "--no-dangling"]), "");
    assert!(
        rig.must(&["status", "-s", "storm"])
            .contains("Ready for turn")
    );
    rig.must(&["redo", "-s", "storm"]);
    assert_eq!(
        rig.git(&[
            "reflog",
            "show",
            "--format=%gs",
            "refs/teddy/sessions/storm"
        ])
        .lines()
        .next(),
        Some("teddy: restore turn 3")
    );
}

#[test]
fn a_session_is_adopted_and_a_message_kept_only_after_a_recovery() {
    for args in [
        ["switch", "--adopt", "storm"].as_slice(),
        &["resume", "-m", "go on", "-s", "other"],
    ] {
        let rig = rig();
        rig.must(&["new", "other"]);
        let output = rig
            .teddy(&["execute", "-y", "-s", "storm"])
            .env("FAILPOINTS", "publish-prepared=return(kill)")
            .output();
        assert!(!output.unwrap().status.success());
        assert!(inside(&rig, "teddy/pending.json").exists());

        // Without a configured model, `resume` fails after it has saved the message.
        let output = rig.run(args);
        let said = said(&output);
        assert!(said.contains("finished an interrupted turn"), "{said}");
        assert!(!inside(&rig, "teddy/pending.json").exists(), "{args:?}");
    }
}

/// Bug: every command that changes something failed, and the error did not name the journal.
#[test]
fn an_intent_for_a_deleted_worktree_is_set_aside_even_if_its_name_is_reused() {
    let repo = crate::support::TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    let linked = repo.beside("linked");
    let path = linked.to_str().unwrap().to_owned();
    repo.git(&["worktree", "add", "-q", "-b", "linked", &path]);
    let plan = crate::plans::plan("One", &[crate::plans::create("b.txt", "b\n")]);
    std::fs::write(repo.beside("plan.md"), plan).unwrap();
    let output = repo
        .teddy_command(&["execute", "../plan.md", "-y", "-s", "demo"])
        .current_dir(&linked)
        .env("FAILPOINTS", "publish-prepared=return(kill)")
        .output();
    assert!(!output.unwrap().status.success());
    let journal = repo.path().join(".git/teddy/pending.json");
    assert!(journal.exists());

    repo.git(&["worktree", "remove", "--force", &path]);
    std::fs::create_dir(&linked).unwrap();
    std::fs::write(linked.join("notes.txt"), "mine\n").unwrap();
    repo.done(&["new", "other"]);
    assert!(!journal.exists());
    repo.done(&["doctor", "--fix"]);
    assert_eq!(std::fs::read(linked.join("notes.txt")).unwrap(), b"mine\n");
    assert_eq!(std::fs::read_dir(&linked).unwrap().count(), 1);
}

/// Bug: the recovery left a ref to a missing object.
#[test]
fn an_intent_with_a_missing_publication_is_set_aside() {
    let rig = rig();
    let output = rig
        .teddy(&["execute", "-y", "-s", "storm"])
        .env("FAILPOINTS", "publish-prepared=return(kill)")
        .output();
    assert!(!output.unwrap().status.success());
    let journal = inside(&rig, "teddy/pending.json");
    let text = std::fs::read_to_string(&journal).unwrap();
    let mut intent: serde_json::Value = serde_json::from_str(&text).unwrap();
    intent["published"] = "1".repeat(40).into();
    std::fs::write(&journal, intent.to_string()).unwrap();
    rig.must(&["doctor", "--fix"]);
    assert!(!journal.exists());
    let refs = rig.git(&["for-each-ref", "refs/teddy/published"]);
    assert!(!refs.contains("1111"), "{refs}");
}

#[test]
fn an_intent_of_a_newer_teddy_is_left_to_that_one() {
    let rig = rig();
    let output = rig
        .teddy(&["execute", "-y", "-s", "storm"])
        .env("FAILPOINTS", "publish-prepared=return(kill)")
        .output();
    assert!(!output.unwrap().status.success());
    let journal = inside(&rig, "teddy/pending.json");
    let text = std::fs::read_to_string(&journal).unwrap();
    let newer = text.replacen("\"schema\": 1", "\"schema\": 2", 1);
    assert_ne!(newer, text);
    std::fs::write(&journal, &newer).unwrap();

    let output = rig.run(&["doctor", "--fix"]);
    assert!(!output.status.success());
    assert!(
        said(&output).contains("a newer TeDDy was interrupted"),
        "{}",
        said(&output)
    );
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), newer);
    std::fs::write(&journal, text).unwrap();
    rig.must(&["doctor", "--fix"]);
    assert!(!journal.exists());
}

#[test]
fn a_damaged_journal_is_put_aside() {
    let cases = [
        b"".as_slice(),
        b"{\"schema\":1",
        b"\xff\xfe",
        b"[]",
        b"{\"schema\":1,\"session\":\"../x\"}",
    ]
    .map(|bytes| {
        (
            "teddy/pending.json",
            bytes,
            "the journal was damaged and is now",
        )
    });
    check_all_healed(&rig(), &cases);
}

#[test]
fn refs_that_are_folders_or_links_are_named() {
    for with in [
        "a folder with a file",
        "a dangling link",
        "a link to itself",
    ] {
        let rig = rig();
        let file = inside(&rig, "refs/teddy/sessions/storm");
        replace(&file, with);
        for args in [
            ["status"].as_slice(),
            &["log"],
            &["sessions"],
            &["doctor", "--fix"],
            &["undo"],
        ] {
            let output = rig.run(args);
            assert!(
                output.status.code().is_some_and(|code| code < 5),
                "{with}: {args:?}: {}",
                said(&output)
            );
        }
        rig.must(&["new", "another"]);
    }
}

#[test]
fn a_turn_with_broken_facts_is_named() {
    let rig = rig();
    let tree = rig.git(&["rev-parse", "teddy/sessions/storm^{tree}"]);
    let index = rig.beside("index");
    let git = |args: &[&str]| {
        let output = rig
            .command("git")
            .env("GIT_INDEX_FILE", &index)
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["read-tree", &tree]);
    rig.write("broken.yaml", b"number: [[[");
    let blob = git(&["hash-object", "-w", "broken.yaml"]);
    git(&[
        "update-index",
        "--cacheinfo",
        &format!("100644,{blob},meta.yaml"),
    ]);
    let (tree, parent) = (
        git(&["write-tree"]),
        git(&["rev-parse", "teddy/sessions/storm"]),
    );
    let commit = git(&["commit-tree", &tree, "-p", &parent, "-m", "Broken"]);
    git(&["update-ref", "refs/teddy/sessions/storm", &commit]);
    for args in [
        ["log"].as_slice(),
        &["undo"],
        &["execute", "-y"],
        &["status"],
    ] {
        let output = rig.run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", said(&output));
        assert!(
            said(&output).contains("meta.yaml"),
            "{args:?}: {}",
            said(&output)
        );
    }
    rig.must(&["new", "another"]);
}

#[test]
fn packs_that_a_power_cut_emptied_are_put_aside_and_written_again() {
    for stay in [0, 40] {
        let rig = rig();
        let files = || {
            let files = std::fs::read_dir(inside(&rig, "objects/pack"))
                .unwrap()
                .map(|file| file.unwrap().path());
            files.collect::<std::collections::BTreeSet<_>>()
        };
        let before = files();
        rig.write("mine.txt", b"mine\n");
        let plan = rig.plan("4", &[Rig::file(0)], None);
        let execute = |armed: &str| {
            rig.teddy(&["execute", &plan, "-y"])
                .env("FAILPOINTS", armed)
                .output()
                .unwrap()
        };
        assert!(!execute("before-snapshot-ref=return(kill)").status.success());
        let new: Vec<_> = files().difference(&before).cloned().collect();
        assert!(new.len() >= 3, "{new:?}");
        for file in &new {
            // Packs are read-only.
            std::fs::remove_file(file).unwrap();
            std::fs::write(file, vec![0; stay]).unwrap();
        }
        let output = execute("");
        assert!(
            output.status.success() && said(&output).contains("a power cut"),
            "{}",
            said(&output)
        );
        assert_eq!(
            rig.git(&["show", "refs/teddy/snapshots/main:mine.txt"]),
            "mine"
        );
        rig.git(&["gc", "-q"]);
        assert_eq!(rig.git(&["fsck", "--strict", "--no-dangling"]), "");
    }
}

#[test]
fn a_pack_is_released_and_an_unfinished_one_removed_when_the_run_that_needs_it_is_over() {
    let rig = rig();
    let pack = inside(&rig, "objects/pack");
    std::fs::create_dir_all(&pack).unwrap();
    // Only the lock on the file counts: process ids are reused, and differ between containers.
    let files = [
        "pack-dead.keep",
        "pack-alive.keep",
        "pack-user.keep",
        ".teddy-4000000-a",
        ".teddy-4000000-b",
    ];
    for (name, text) in files
        .iter()
        .zip(["teddy 1\n", "teddy 4000000\n", "mine\n", "PACK", "PACK"])
    {
        std::fs::write(pack.join(name), text).unwrap();
    }
    let there = || files.map(|name| pack.join(name).exists());
    let needed = ["pack-alive.keep", ".teddy-4000000-b"]
        .map(|name| std::fs::File::open(pack.join(name)).unwrap());
    needed.iter().for_each(|file| file.lock_shared().unwrap());
    rig.must(&["doctor", "--fix"]);
    assert_eq!(there(), [false, true, true, false, true]);
    drop(needed);
    rig.must(&["doctor", "--fix"]);
    assert_eq!(there(), [false, false, true, false, false]);
}

/// Bug: the commit that records unapplied changes was still in memory when its ref, the only one to
/// reach it, moved.
#[test]
fn notes_of_a_recovery_are_written_before_their_ref() {
    let repo = TestRepo::new().file("a.txt", "a\n").file("b.txt", "b\n");
    repo.commit("one");
    repo.done(&["new", "s"]);
    repo.done(&["context", "add", "a.txt", "b.txt"]);
    repo.write(
        ".git/plan.md",
        plan("Both", &[edit("a.txt", "a", "A"), edit("b.txt", "b", "B")]),
    );
    let mut command = repo.teddy_command(&["execute", ".git/plan.md", "-y"]);
    let command = command.env("FAILPOINTS", "after-ref=return(kill)");
    Output::of(command.current_dir(repo.path()));

    let copy = repo.beside("copy");
    let copied = repo
        .command("cp")
        .args(["-a"])
        .args([repo.path(), copy.clone()])
        .status();
    assert!(copied.unwrap().success());
    assert_eq!(repo.teddy_in(&copy, &["doctor", "--fix"]).code, 0);
    std::fs::write(copy.join("p.md"), plan("Next", &[create("c.txt", "c\n")])).unwrap();
    assert_eq!(repo.teddy_in(&copy, &["execute", "p.md", "-y"]).code, 0);

    repo.write("a.txt", "mine\n");
    let same = "refs/teddy/sessions/s:refs/teddy/sessions/s";
    repo.git(&["fetch", "-q", copy.to_str().unwrap(), same]);
    repo.done(&["doctor", "--fix"]);
    assert_eq!(
        repo.git(&["cat-file", "-t", "refs/teddy/published/main"]),
        "commit"
    );
    repo.git(&["fsck", "--strict"]);
    assert_eq!([repo.read("a.txt"), repo.read("b.txt")], ["mine\n", "B\n"]);
}

#[test]
fn an_undo_passes_over_what_a_killed_restore_could_not_apply() {
    let repo = TestRepo::new().file("a.txt", "a\n").file("b.txt", "b\n");
    repo.commit("one");
    repo.done(&["new", "s"]);
    repo.done(&["context", "add", "a.txt", "b.txt"]);
    repo.write(
        ".git/plan.md",
        plan("Both", &[edit("a.txt", "a", "A"), edit("b.txt", "b", "B")]),
    );
    repo.done(&["execute", ".git/plan.md", "-y"]);
    let mut command = repo.teddy_command(&["restore", "0"]);
    let command = command.env("FAILPOINTS", "after-ref=return(kill)");
    Output::of(command.current_dir(repo.path()));

    repo.write("b.txt", "mine\n");
    repo.done(&["doctor", "--fix"]);
    assert_eq!([repo.read("a.txt"), repo.read("b.txt")], ["a\n", "mine\n"]);
    repo.done(&["undo"]);
    assert_eq!([repo.read("a.txt"), repo.read("b.txt")], ["A\n", "mine\n"]);
}
