//! Unusual files, directories and paths that exist in a repository or are created by a command.
//! TeDDy must keep working and lose nothing.

use super::ground::{Ground, create, everything_works, plan, run};
use crate::support::TestRepo;

/// Nests directories deeper than `PATH_MAX`, which `mkdir -p` refuses.
const NEST: &str =
    "n=$(printf 'd%.0s' $(seq 200)); for i in $(seq 60); do mkdir $n && cd -P $n || exit 1; done";

#[test]
fn attack_11_folders_without_end_are_left_out_and_stop_nobody() {
    let ground = Ground::new();
    let tried = ground.execute(plan(&(run(NEST) + &create("made.txt"))));
    assert_eq!(tried.code, 0, "{}", tried.words);
    assert!(
        tried.words.contains("too deep in other folders"),
        "{}",
        tried.words
    );
    assert!(ground.repo.path().join("made.txt").exists());
    ground.repo.remove("made.txt");
    everything_works(&ground, "folders without end");
}

#[test]
fn attack_11_folders_below_each_other_do_not_slow_the_next_turn() {
    let ground = Ground::new();
    let deep = "for i in $(seq 400); do mkdir d && cd -P d || exit 1; done; echo x > x";
    for command in [deep, "test ! -e d", "test -f a.txt"] {
        let tried = ground.execute(plan(&run(command)));
        assert_eq!(tried.code, 0, "{command}: {}", tried.words);
        ground.ok(&["restore", "0", "-y"]);
    }
}

#[test]
fn a_turn_with_a_command_runs_in_a_project_whose_path_has_4000_bytes() {
    let top = tempfile::tempdir().unwrap();
    let mut folder = top.path().canonicalize().unwrap();
    let home = folder.join("home");
    std::fs::create_dir(&home).unwrap();
    // `TestRepo` adds a temporary directory with a ten-letter name, and `repo` in it.
    let most = 4_000 - 16;
    while folder.as_os_str().len() < most - 1 {
        let room = most - 1 - folder.as_os_str().len();
        folder.push("x".repeat(room.min(200)));
    }
    std::fs::create_dir_all(&folder).unwrap();
    let ground = Ground {
        repo: TestRepo::below(&folder, &[]).file("a.txt", "one\n"),
    };
    assert_eq!(ground.repo.path().as_os_str().len(), 4_000);
    ground.repo.commit("one");

    let file = ground.repo.beside("plan.md");
    std::fs::write(&file, plan(&(create("made.txt") + &run("echo x > x")))).unwrap();
    for args in [
        &["new", "s"][..],
        &["execute", "../plan.md", "-y", "--no-replan"],
        &["undo", "-y"],
        &["redo", "-y"],
    ] {
        let output = ground.teddy_with(args, &[("HOME", home.to_str().unwrap())]);
        let words = super::ground::words(&output);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {words}");
    }
    assert_eq!(ground.repo.read("x"), "x\n");
    assert!(ground.repo.path().join("made.txt").exists());
}

#[test]
fn attack_11_a_filter_that_fails_and_is_not_required_costs_no_byte() {
    let ground = Ground::new();
    ground.repo.put("f.odd", "first\n");
    ground.repo.put(".gitattributes", "*.odd filter=odd\n");
    ground.repo.commit("odd");
    for side in ["clean", "smudge"] {
        ground
            .repo
            .git(&["config", &format!("filter.odd.{side}"), "exit 1"]);
    }
    ground.repo.put("f.odd", "mine\n");
    let tried = ground.execute(plan(&run(
        "test \"$(cat f.odd)\" = mine && echo plan >> f.odd",
    )));
    assert_eq!(tried.code, 0, "{}", tried.words);
    assert_eq!(ground.repo.read("f.odd"), "mine\nplan\n");
    ground.ok(&["undo", "-y"]);
    assert_eq!(ground.repo.read("f.odd"), "mine\n");
}

#[test]
fn attack_11_a_name_with_a_carriage_return_is_a_name() {
    let ground = Ground::new();
    ground.repo.put("a\rb.txt", "mine\n");
    let command = "printf 'plan\\n' >> \"$(printf 'a\\rb.txt')\"; : > \"$(printf 'new\\r')\"";
    let tried = ground.execute(plan(&run(command)));
    assert_eq!(tried.code, 0, "{}", tried.words);
    assert_eq!(ground.repo.read("a\rb.txt"), "mine\nplan\n");
    assert!(ground.repo.path().join("new\r").exists());
    let shown = ground.ok(&["diff", "1"]);
    assert!(
        !shown.contains('\r') && shown.contains("a\\u{d}b.txt"),
        "{shown}"
    );
    ground.ok(&["undo", "-y"]);
    assert_eq!(ground.repo.read("a\rb.txt"), "mine\n");
    assert!(!ground.repo.path().join("new\r").exists());
}

#[test]
fn attack_11_a_git_directory_that_is_moved_away_meanwhile_is_not_made_anew() {
    let ground = Ground::new();
    for (number, point) in [
        "before-snapshot-ref",
        "before-worktree",
        "before-action",
        "after-run",
        "after-run-snapshot",
        "before-intent",
    ]
    .into_iter()
    .enumerate()
    {
        let file = ground.repo.beside("plan.md");
        let (made, x) = (format!("made{number}.txt"), format!("x{number}"));
        let text = plan(&(create(&made) + &run(&format!("echo x > {x}"))));
        std::fs::write(&file, text).unwrap();
        let arguments = ["execute", "../plan.md", "-y", "--no-replan"];
        let git = ground.repo.path().join(".git");
        let script = ground.repo.beside("away.sh");
        let (from, to) = (git.display(), ground.repo.beside("away"));
        std::fs::write(&script, format!("mv {from} {}\n", to.display())).unwrap();
        let away = format!("{point}=1*return(sh:{})", script.display());
        let output = ground.teddy_with(&arguments, &[("FAILPOINTS", &away)]);
        let words = super::ground::words(&output);
        assert!(!git.exists(), "{point}: {words}");
        assert_eq!(output.status.code(), Some(1), "{point}: {words}");

        std::fs::rename(ground.repo.beside("away"), &git).unwrap();
        ground.ok(&["doctor", "--fix"]);
        ground.repo.git(&["fsck", "--strict"]);
        if !ground.repo.path().join(made).exists() {
            ground.ok(&arguments);
        }
        assert_eq!(ground.repo.read(&x), "x\n", "{point}");
    }
    everything_works(&ground, "a git directory that is moved away");
}

#[test]
fn attack_11_gc_removes_what_killed_processes_took_in_and_caches_that_nobody_uses() {
    let ground = Ground::new();
    let tried = ground.execute(plan(&run("mkdir -p \"$XDG_CACHE_HOME/mine\"")));
    assert_eq!(tried.code, 0, "{}", tried.words);
    let incoming = ground.repo.path().join(".git/teddy/incoming/left/ours");
    std::fs::create_dir_all(&incoming).unwrap();
    std::os::unix::fs::symlink(ground.outside(), incoming.join("pack")).unwrap();

    let said = ground.ok(&["gc", "--idle-days", "14", "--json"]);
    assert!(
        said.contains("\"caches\": false") && incoming.exists(),
        "{said}"
    );

    let output = ground.teddy_with(
        &["gc", "--idle-days", "14", "--json"],
        &[("TEDDY_NOW", "2040-01-01T00:00:00Z")],
    );
    let later = super::ground::words(&output);
    assert!(later.contains("\"caches\": true"), "{later}");
    assert!(!incoming.exists());
    assert!(ground.outside().join("canary").exists());
}

#[test]
fn attack_11_an_ignored_file_that_overlaps_leaves_the_three_ways_out() {
    for (way, expected) in [
        ("--ours", "mine\n"),
        ("--theirs", "plan\n"),
        (
            "--markers",
            "<<<<<<< yours\nmine\n=======\nplan\n>>>>>>> turn\n",
        ),
    ] {
        let ground = Ground::new();
        ground.repo.put("ignored", "mine\n");
        let command = "echo plan > ignored; git add -f ignored; git commit -qm it; echo x > x";
        let tried = ground.execute(plan(&run(command)));
        assert_eq!(tried.code, 4, "{}", tried.words);
        assert_eq!(ground.repo.read("ignored"), "mine\n");

        ground.ok(&["restore", "@", way, "-y"]);
        assert_eq!(ground.repo.read("ignored"), expected, "{way}");
        assert_eq!(ground.repo.read("x"), "x\n", "{way}");
        ground.ok(&["undo", "-y"]);
        assert_eq!(ground.repo.read("ignored"), "mine\n", "undo after {way}");
        assert!(!ground.repo.path().join("x").exists(), "{way}");
    }
}
