//! `teddy gc`.

use crate::killed_repo::{Rig, said};

/// Returns a rig with sessions `one` and `two`, each with a worktree.
fn rig() -> Rig {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 20);
    for session in ["one", "two"] {
        rig.must(&["new", session]);
        rig.must(&["execute", &rig.plan(session, &[Rig::file(0)], None), "-y"]);
    }
    rig
}

/// Returns the disk space that is used.
fn usage(rig: &Rig) -> serde_json::Value {
    let listed: serde_json::Value =
        serde_json::from_str(&rig.must(&["gc", "-n", "--json"])).unwrap();
    listed["usage"].clone()
}

fn worktrees(rig: &Rig) -> usize {
    let usage = usage(rig);
    usage["worktrees"].as_array().unwrap().len()
}

#[test]
fn idle_worktrees_go_and_come_back() {
    let rig = rig();
    assert_eq!(rig.must(&["gc"]), "", "nothing is idle yet");
    assert_eq!(
        rig.must(&["gc", "--idle-days", "0"]),
        "worktree one\nworktree two"
    );
    assert_eq!(worktrees(&rig), 0);
    rig.must(&["execute", &rig.plan("again", &[Rig::file(1)], None), "-y"]);
    assert_eq!(worktrees(&rig), 1);
    assert_eq!(rig.git(&["fsck", "--strict", "--no-dangling"]), "");
}

#[test]
fn only_a_named_session_is_deleted() {
    let rig = rig();
    rig.must(&["gc", "--idle-days", "0", "--undo-days", "0"]);
    assert_eq!(
        rig.git(&["for-each-ref", "--format=%(refname)", "refs/teddy/sessions"])
            .lines()
            .count(),
        2
    );
    let output = rig.run(&["gc", "one", "nobody"]);
    assert!(
        said(&output).contains("there is no session `nobody`"),
        "nothing is asked about a session that is not there: {}",
        said(&output)
    );
    let output = rig.run(&["gc", "one"]);
    assert!(
        !output.status.success() && said(&output).contains("-y"),
        "{}",
        said(&output)
    );
    assert_eq!(rig.must(&["gc", "one", "-y"]), "session one");
    assert_eq!(
        rig.git(&["for-each-ref", "--format=%(refname)", "refs/teddy/sessions"]),
        "refs/teddy/sessions/two"
    );
    let output = rig.run(&["gc", "one", "-y"]);
    assert!(
        said(&output).contains("there is no session `one`"),
        "{}",
        said(&output)
    );
    assert!(said(&rig.run(&["doctor", "--fix"])).contains("nothing to recover"));
}

#[test]
fn the_worktree_of_a_change_is_its_sessions() {
    let rig = rig();
    let add = |from: &str| {
        rig.git(&[
            "update-ref",
            "refs/teddy/sessions/change/x",
            &format!("refs/teddy/sessions/{from}"),
        ]);
        rig.must(&[
            "-s",
            "change/x",
            "execute",
            &rig.plan("x", &[Rig::file(2)], None),
            "-y",
        ]);
    };
    add("one");
    assert_eq!(rig.must(&["gc"]), "", "it is in use");
    let lock = std::fs::File::options()
        .write(true)
        .open(rig.path().join(".git/teddy/locks/change/x/lock"))
        .unwrap();
    lock.lock().unwrap();
    assert_eq!(
        rig.must(&["gc", "--idle-days", "0"]),
        "worktree one\nworktree two",
        "somebody works in it, and with the caches"
    );
    drop(lock);
    assert_eq!(rig.must(&["gc", "change/x", "-y"]), "session change/x");
    assert_eq!(worktrees(&rig), 0);
}

#[test]
fn a_running_turn_of_a_session_to_delete_can_end() {
    let rig = rig();
    let folder = rig.path().join(".git/teddy/locks/one");
    let lock = std::fs::File::options()
        .write(true)
        .open(folder.join("lock"))
        .unwrap();
    lock.lock().unwrap();
    let gc = rig
        .teddy(&["gc", "one", "-y"])
        .env("TEDDY_LOCK_TIMEOUT", "60")
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // `gc` waits without the repository's lock.
    rig.must(&[
        "-s",
        "two",
        "execute",
        &rig.plan("b", &[Rig::file(3)], None),
        "-y",
    ]);
    drop(lock);
    let output = gc.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn promise_d8_large_files_are_packed_without_a_look_for_what_they_share() {
    let rig = rig();
    let mut state = 1_u64;
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 32) as u32
    };
    let mut bytes: Vec<u8> = (0..9 << 18).map(next).flat_map(u32::to_le_bytes).collect();
    let mut blobs = Vec::new();
    for change in 0..2 {
        bytes[0] = change;
        std::fs::write(rig.path().join("large.bin"), &bytes).unwrap();
        rig.git(&["add", "large.bin"]);
        rig.git(&["commit", "-q", "-m", "large"]);
        blobs.push(rig.git(&["rev-parse", "HEAD:large.bin"]));
    }
    rig.must(&["gc"]);

    let packs = std::fs::read_dir(rig.path().join(".git/objects/pack")).unwrap();
    let indexes = packs
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "idx"));
    let listed: Vec<String> = indexes
        .map(|path| rig.git(&["verify-pack", "-v", path.to_str().unwrap()]))
        .collect();
    for blob in blobs {
        let lines = listed.iter().flat_map(|text| text.lines());
        let found = lines
            .filter(|line| line.starts_with(&blob))
            .map(|line| line.split_whitespace().count());
        // `verify-pack` prints two more columns for a delta: depth and base.
        assert_eq!(found.collect::<Vec<_>>(), [5], "{blob}");
    }
}

#[test]
fn promise_d8_a_worktree_with_folders_without_end_goes() {
    let rig = rig();
    let usage = usage(&rig);
    let worktree = usage["worktrees"][0]["path"].as_str().unwrap().to_owned();
    let nest = "n=$(printf 'd%.0s' $(seq 200)); for i in $(seq 60); do mkdir $n && cd -P $n || exit 1; done";
    let alias = format!("alias.nest=!cd '{worktree}' && {nest}");
    rig.git(&["-c", &alias, "nest"]);
    rig.must(&["gc", "--idle-days", "0"]);
    assert!(!std::path::Path::new(&worktree).exists());
}

#[test]
fn a_partial_clone_is_packed_too() {
    let rig = rig();
    rig.git(&["config", "uploadpack.allowFilter", "true"]);
    let (clone, from) = (
        rig.beside("clone"),
        format!("file://{}", rig.path().display()),
    );
    let clone = clone.to_str().unwrap();
    rig.git(&["clone", "-q", "--filter=blob:none", &from, clone]);
    rig.must(&["-C", clone, "new", "here"]);
    rig.must(&[
        "-C",
        clone,
        "execute",
        &rig.plan("c", &[Rig::file(3)], None),
        "-y",
    ]);
    rig.must(&["-C", clone, "gc"]);
    assert_eq!(
        rig.git(&["-C", clone, "fsck", "--strict", "--no-dangling"]),
        ""
    );
}

#[test]
fn old_snapshots_are_deleted_except_the_newest() {
    let rig = rig();
    for number in 0..3 {
        rig.write("mine.txt", format!("{number}\n").as_bytes());
        rig.must(&["context"]);
    }
    let chain = || {
        rig.git(&[
            "rev-list",
            "--count",
            "--grep=Snapshots of the workspace",
            "refs/teddy/snapshots/main",
        ])
    };
    let newest = rig.git(&["rev-parse", "refs/teddy/snapshots/main^{tree}"]);
    let left = [
        "teddy/tips/.teddy-tmp-1-one",
        "teddy/index/tmp-index-x",
        "objects/.tmpAbCdEf",
    ]
    .map(|name| rig.path().join(".git").join(name));
    left.iter()
        .for_each(|path| std::fs::write(path, "").unwrap());
    assert_ne!(chain(), "0");
    let output = rig.must(&["gc", "--json"]);
    assert!(
        output.contains("\"snapshots\": 0") && left.iter().all(|path| path.exists()),
        "{output}"
    );
    let command = rig
        .teddy(&["gc", "--json"])
        .env("TEDDY_NOW", "2040-01-01T00:00:00Z")
        .output()
        .unwrap();
    assert!(command.status.success(), "{}", said(&command));
    assert_eq!(chain(), "0");
    assert!(!left.iter().any(|path| path.exists()));
    assert_eq!(
        rig.git(&["rev-parse", "refs/teddy/snapshots/main^{tree}"]),
        newest
    );
}

#[test]
fn kept_snapshots_survive_a_prune_while_others_are_deleted() {
    let rig = rig();
    for (number, now) in [
        (0, "2001-01-01T00:00:00Z"),
        (1, "2039-01-01T00:00:00Z"),
        (2, "2039-01-01T00:00:01Z"),
    ] {
        rig.write("mine.txt", format!("{number}\n").as_bytes());
        let output = rig
            .teddy(&["context"])
            .env("TEDDY_NOW", now)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    let script = rig.path().with_file_name("prune.sh");
    std::fs::write(
        &script,
        format!("git -C '{}' prune --expire=now\n", rig.path().display()),
    )
    .unwrap();
    let prune = format!("before-snapshot-ref=return(sh:{})", script.display());
    let command = rig
        .teddy(&["gc", "--json"])
        .env("TEDDY_NOW", "2039-01-01T00:00:02Z")
        .env("FAILPOINTS", prune)
        .output()
        .unwrap();
    assert!(command.status.success(), "{}", said(&command));
    assert!(
        !said(&command).contains("\"snapshots\": 0"),
        "{}",
        said(&command)
    );
    assert_eq!(rig.git(&["fsck", "--strict", "--no-dangling"]), "");
    assert_eq!(
        rig.git(&["show", "refs/teddy/snapshots/main:mine.txt"]),
        "2"
    );
}

#[test]
fn packs_in_a_multi_pack_index_are_kept() {
    let rig = rig();
    rig.git(&["multi-pack-index", "write"]);
    for number in 0..3 {
        rig.must(&[
            "execute",
            &rig.plan(&format!("more-{number}"), &[Rig::file(0)], None),
            "-y",
        ]);
    }
    rig.git(&["multi-pack-index", "verify"]);
    assert_eq!(rig.git(&["fsck", "--strict", "--no-dangling"]), "");
}

#[test]
fn room_is_measured_and_saves_that_were_set_aside_are_named() {
    let rig = rig();
    let rescued = rig.path().join(".git/teddy/undo/rescued");
    std::fs::create_dir_all(&rescued).unwrap();
    std::fs::write(rescued.join("1-a.txt"), "mine").unwrap();
    let output = rig.run(&["gc", "-n"]);
    assert!(
        said(&output).contains("worktree two") && said(&output).contains("1-a.txt"),
        "{}",
        said(&output)
    );
    let usage = usage(&rig);
    assert!(
        usage["objects"].as_u64() > Some(500) && usage["undo"].as_u64() >= Some(4),
        "{usage}"
    );
}

#[test]
fn a_session_called_as_a_temporary_file_keeps_its_second_copy() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 10);
    for name in ["moment-of-truth", "tmp-index-one"] {
        rig.must(&["new", name]);
        let command = rig
            .teddy(&["gc", "--json"])
            .env("TEDDY_NOW", "2040-01-01T00:00:00Z")
            .output()
            .unwrap();
        assert!(command.status.success(), "{}", said(&command));
        assert!(
            rig.path().join(".git/teddy/tips").join(name).exists(),
            "{name}"
        );
    }
}

/// Returns the JSON of `gc` without fields that depend on `-n`. The clock is fixed, because
/// ages are counted in seconds.
fn told(rig: &Rig, args: &[&str]) -> serde_json::Value {
    let output = rig
        .teddy(&[&["gc", "--json"], args].concat())
        .env("TEDDY_NOW", "2040-01-01T00:00:00Z")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let mut value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let fields = value.as_object_mut().unwrap();
    let is_dry_run = fields.remove("dry_run").unwrap();
    assert_eq!(is_dry_run, args.contains(&"-n"));
    assert_eq!(
        fields.remove("usage").unwrap().is_null(),
        is_dry_run == false
    );
    // The size of a bundle is known only once it is written.
    for archived in value["archived"].as_array_mut().unwrap() {
        archived.as_object_mut().unwrap().remove("bytes");
    }
    value
}

#[test]
fn a_plan_says_what_goes_and_does_nothing() {
    let rig = rig();
    let rescued = rig.path().join(".git/teddy/undo/rescued");
    std::fs::create_dir_all(&rescued).unwrap();
    std::fs::write(rescued.join("1-a.txt"), "mine").unwrap();
    // `-n` does not list the repairs that every command makes first, so make them now.
    rig.must(&["doctor", "--fix"]);
    let state = || {
        (
            rig.git(&["for-each-ref"]),
            rig.users_state(),
            worktrees(&rig),
        )
    };
    let before = state();
    let args = ["one", "-y", "--idle-days", "0", "--undo-days", "0"];
    let planned = told(&rig, &[&args[..], &["-n"]].concat());
    assert_eq!(state(), before);
    assert!(!rig.path().join(".git/teddy/archive").exists());
    assert!(rescued.join("1-a.txt").exists());
    assert_eq!(planned["sessions"], serde_json::json!(["one"]));
    assert_eq!(planned["worktrees"], serde_json::json!(["two"]));
    assert!(planned["bytes"].as_u64() > Some(1000), "{planned}");

    let words = said(&rig.run(&[&["gc", "-n"], &args[..]].concat()));
    assert!(words.contains("Nothing was changed."), "{words}");
    assert!(words.contains("Session one would go into .git/teddy/archive/one-"));
    assert_eq!(told(&rig, &args), planned, "the plan was right");
}

#[test]
fn b9_a_deleted_session_comes_back_as_it_was() {
    let rig = rig();
    let bare = "refs/teddy/bare/one";
    rig.git(&["update-ref", bare, "teddy/sessions/one"]);
    let tip = rig.git(&["rev-parse", "teddy/sessions/one"]);
    let words = said(&rig.run(&["gc", "one", "-y"]));
    let (_, rest) = words
        .split_once("`teddy fetch ")
        .expect("how it comes back");
    let file = rest.split_once('`').unwrap().0;
    assert!(file.starts_with(".git/teddy/archive/one-"), "{words}");
    let left = rig.git(&["for-each-ref", "refs/teddy/sessions/one", bare]);
    assert_eq!(left, "");
    rig.git(&["reflog", "expire", "--expire=now", "--all"]);
    rig.git(&["update-ref", "-d", "refs/teddy/published/main"]);
    rig.git(&["gc", "-q", "--prune=now"]);

    let usage = usage(&rig);
    let size = rig.path().join(file).metadata().unwrap().len();
    assert_eq!(usage["archives"], size);
    assert!(said(&rig.run(&["gc", "-n"])).contains("bundles of deleted sessions"));
    rig.must(&["fetch", file]);
    assert_eq!(rig.git(&["rev-parse", "teddy/sessions/one"]), tip);
    rig.must(&["verify", "one"]);

    // A second bundle of the session does not replace the first.
    let words = said(&rig.run(&["gc", "one", "-y"]));
    assert!(words.contains("-2.bundle"), "{words}");
}

#[test]
fn b9_nothing_is_deleted_that_could_not_be_archived() {
    let rig = rig();
    std::fs::write(rig.path().join(".git/teddy/archive"), "in the way").unwrap();
    let output = rig.run(&["gc", "one", "two", "-y"]);
    let words = said(&output);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains("session `one` was not deleted"), "{words}");
    assert!(words.contains("`teddy gc one --no-bundle`"), "{words}");
    rig.git(&["rev-parse", "teddy/sessions/one", "teddy/sessions/two"]);

    let words = said(&rig.run(&["gc", "one", "--no-bundle", "-y"]));
    assert!(!words.contains("teddy fetch"), "{words}");
    rig.git(&["rev-parse", "teddy/sessions/two"]);
    assert!(said(&rig.run(&["gc", "--no-bundle"])).contains("<SESSION>"));
}

#[test]
fn b9_no_bundle_is_ever_removed_because_it_is_old() {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 10);
    // Names with the prefixes of our temporary files.
    for name in ["moment-of-truth", "tmp-index-one"] {
        rig.must(&["new", name]);
        rig.must(&["gc", name, "-y"]);
    }
    let bundles = || {
        let folder = rig.path().join(".git/teddy/archive");
        std::fs::read_dir(folder).unwrap().count()
    };
    assert_eq!(bundles(), 2);
    let command = rig
        .teddy(&["gc", "--idle-days", "0", "--undo-days", "0"])
        .env("TEDDY_NOW", "2040-01-01T00:00:00Z")
        .output()
        .unwrap();
    assert!(command.status.success(), "{}", said(&command));
    assert_eq!(bundles(), 2);
}
