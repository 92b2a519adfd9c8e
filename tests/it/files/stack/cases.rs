//! Hand-picked cases: which turns TeDDy believes to be in the files, across sessions, git
//! operations, undo and redo.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::plans::{chat, create, edit, plan};
use crate::support::TestRepo;

/// A project with a session in which all files can be edited.
pub fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "1\n2\n3\n4\n5\n")
        .file(".gitignore", ".teddy/\n");
    repo.commit("init");
    repo.write(".teddy/global.context", "**\n");
    repo.workflow().new_session("one").done();
    repo
}

fn files(repo: &TestRepo) -> String {
    let listed = repo.git(&["ls-files", "-co", "--exclude-standard", "--deduplicate"]);
    let mut names: Vec<&str> = listed
        .lines()
        .filter(|name| repo.path().join(name).exists())
        .collect();
    names.sort_unstable();
    names.join(" ")
}

#[test]
fn promise_b1_a_branch_undoes_later_turns_and_keeps_what_lay_between_them() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.write("between.txt", "mine\n");
    repo.write("a.txt", "1\n2\n3\n4\nfive\n");
    repo.workflow()
        .run_plan(&plan("Two", &[edit("a.txt", "2", "two")]));
    repo.workflow().branch("1", "alt").done();
    repo.workflow().restore("@").done();
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\nfive\n");
    assert_eq!(repo.read("between.txt"), "mine\n");
    assert!(repo.path().join("one.txt").exists());
}

#[test]
fn promise_b1_two_sessions_take_each_others_turns_out_and_bring_them_back() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.workflow().new_session("two").done();
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    repo.write("mine.txt", "mine\n");

    repo.workflow().switch("one").done();
    insta::assert_snapshot!(repo.workflow().restore("@").done(), @"
    at turn 1
      delete two.txt
      keep mine.txt
      your files no longer contain turn 1 of two; `teddy pick two:1` applies only it, `teddy switch two` and `teddy restore @` restore all that was below as well
    ");
    assert_eq!(files(&repo), ".gitignore a.txt mine.txt one.txt");
    repo.workflow().switch("two").done();
    repo.workflow().restore("@").done();
    assert_eq!(files(&repo), ".gitignore a.txt mine.txt one.txt two.txt");
    repo.workflow().restore("0").done();
    assert_eq!(files(&repo), ".gitignore a.txt mine.txt one.txt");
}

#[test]
fn promise_b1_a_fetched_session_brings_what_its_turns_stand_on() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.workflow().new_session("two").done();
    repo.workflow()
        .run_plan(&plan("Two", &[edit("one.txt", "1", "one")]));
    let (clone, from) = (repo.beside("clone"), repo.path());
    let clone_name = clone.to_str().unwrap();
    repo.git(&["clone", "-q", from.to_str().unwrap(), clone_name]);
    let sessions = "refs/teddy/sessions/two:refs/teddy/sessions/two";
    repo.git_in(&clone, &["fetch", "-q", "origin", sessions]);
    std::fs::write(clone.join("mine.txt"), "mine\n").unwrap();

    // TeDDy knows that it has published nothing to the clone's files.
    repo.done(&["-C", clone_name, "switch", "two"]);
    let files = repo.json(&["-C", clone_name, "status"], 0)["workspace"].clone();
    assert_eq!(
        (&files["same_turns"], &files["no_record"]),
        (&json!(false), &json!(null))
    );
    repo.done(&["-C", clone_name, "restore", "@"]);
    assert_eq!(
        std::fs::read_to_string(clone.join("one.txt")).unwrap(),
        "one\n"
    );
    repo.done(&["-C", clone_name, "undo"]);
    assert!(
        !clone.join("one.txt").exists(),
        "an undo takes a restore back"
    );
    assert!(clone.join("mine.txt").exists());
}

#[test]
fn promise_b1_turns_of_a_deleted_session_can_be_undone() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.workflow().new_session("two").done();
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    repo.workflow().switch("one").done();
    repo.git(&["update-ref", "-d", "refs/teddy/sessions/two"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.workflow().restore("@").done();
    assert_eq!(files(&repo), ".gitignore a.txt one.txt");
}

#[test]
fn promise_b1_gc_forgets_a_deleted_checkout() {
    let repo = project();
    let other = repo.beside("other");
    let name = other.to_str().unwrap();
    repo.git(&["worktree", "add", "-q", "--detach", name]);
    for folder in [name, "."] {
        repo.done(&["-C", folder, "switch", "one"]);
        let written = plan("One", &[create("one.txt", "1\n")]);
        let out = repo.teddy_reads(&["-C", folder, "execute", "-", "-y"], written);
        assert_eq!(out.code, 0, "{out}");
        repo.done(&["-C", folder, "undo"]);
    }
    let refs = [
        "for-each-ref",
        "--format=%(refname)",
        "refs/teddy/published",
    ];
    assert_eq!(
        repo.git(&refs),
        "refs/teddy/published/linked-other\nrefs/teddy/published/main"
    );
    assert_eq!(repo.json(&["gc"], 0)["checkouts"], json!([]));
    repo.git(&["worktree", "remove", "--force", name]);
    assert_eq!(repo.json(&["gc"], 0)["checkouts"], json!(["other"]));
    assert_eq!(repo.git(&refs), "refs/teddy/published/main");
}

#[test]
fn promise_b1_kept_sides_and_single_paths_are_remembered() {
    let repo = project();
    repo.workflow().run_plan(&plan(
        "One",
        &[edit("a.txt", "2", "two"), create("one.txt", "1\n")],
    ));
    repo.write("a.txt", "1\nmine\n3\n4\n5\n");
    repo.done(&["restore", "0", "--ours"]);
    assert_eq!(
        (files(&repo).as_str(), repo.read("a.txt").as_str()),
        (".gitignore a.txt", "1\nmine\n3\n4\n5\n")
    );
    // The turn is still in a.txt, so `restore 0` still has to revert it there.
    insta::assert_snapshot!(repo.printed(&["restore", "0"]), @"
    overlap a.txt
    --- stderr
    warning: your own edits overlap with what the turns did; use --ours, --theirs, --markers or --exact
    exit code 4
    ");
    repo.done(&["restore", "0", "--theirs"]);
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\n5\n");

    repo.done(&["restore", "1", "one.txt"]);
    assert_eq!(
        repo.json(&["restore", "0"], 0)["deleted"],
        json!(["one.txt"])
    );
}

#[test]
fn promise_b1_conflict_markers_are_brought_back_as_they_were_recorded() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "2", "two")]));
    repo.write("a.txt", "1\nmine\n3\n4\n5\n");
    repo.done(&["restore", "0", "--markers"]);
    let marked = repo.read("a.txt");
    assert!(marked.contains("<<<<<<< yours\nmine\n"), "{marked}");
    repo.write("a.txt", "1\nsettled\n3\n4\n5\n");
    repo.done(&["restore", "2", "--exact", "-y"]);
    assert_eq!(repo.read("a.txt"), marked);
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("a.txt"), "1\nsettled\n3\n4\n5\n");
}

#[test]
fn promise_b1_where_a_file_is_kept_no_folder_takes_its_place() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("x/y.txt", "1\n")]));
    repo.workflow().undo(1).done();
    repo.write("x", "mine\n");
    insta::assert_snapshot!(repo.printed(&["redo"]), @"
    overlap x
    overlap x/y.txt
    --- stderr
    warning: your own edits overlap with what the turns did; use --ours, --theirs, --markers or --exact
    exit code 4
    ");
    repo.done(&["redo", "--ours"]);
    assert_eq!(repo.read("x"), "mine\n");
    repo.remove("x");
    assert_eq!(
        repo.json(&["restore", "1"], 0)["written"],
        json!(["x/y.txt"])
    );
}

#[test]
fn promise_b2_changes_removed_by_git_or_the_user_are_reported() {
    let repo = project();
    repo.workflow().run_plan(&plan(
        "One",
        &[create("f1.txt", "1\n"), edit("a.txt", "2", "two")],
    ));
    repo.git(&["reset", "-q", "--hard"]);
    repo.remove("f1.txt");
    insta::assert_snapshot!(repo.printed(&["restore", "@"]), @"
    keep a.txt
    --- stderr
    Your files match turn 1 except for 2 files: 0 files changed, 2 of your own kept.
    a.txt: what turn 1 of one changed was taken back since; `teddy restore 1 --exact a.txt` restores it
    f1.txt: deleted since by you; `teddy restore 1 --exact f1.txt` restores it
    exit code 0
    ");
    assert_eq!(
        repo.json(&["restore", "1", "-n"], 0)["missing"],
        json!([
            { "path": "a.txt", "why": "taken-back", "session": "one", "turn": 1 },
            { "path": "f1.txt", "why": "deleted" },
        ])
    );
    repo.done(&["restore", "1", "--exact", "-y", "f1.txt"]);
    assert_eq!(repo.read("f1.txt"), "1\n");
}

#[test]
fn promise_b5_undo_goes_back_over_turns_that_changed_files() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    let out = repo.teddy_reads(&["execute", "-", "-y"], plan("Ask", &[chat("Well?")]));
    assert!([0, 5].contains(&out.code), "{out}");
    insta::assert_snapshot!(repo.printed(&["undo"]), @"
    delete two.txt
    --- stderr
    Your files match turn 1: 1 file changed.
    Skipped turn 3 (no files changed).
    exit code 0
    ");
    repo.done(&["redo"]);
    assert_eq!(files(&repo), ".gitignore a.txt one.txt two.txt");
    repo.done(&["undo", "2"]);
    insta::assert_snapshot!(repo.printed(&["undo"]), @"
    --- stderr
    error: nothing to undo
    hint: `teddy log` lists the turns; `teddy restore <turn>` goes back to one
    exit code 1
    ");
    repo.workflow().restore("2").done();
    let titles: Vec<String> = repo.json(&["log"], 0).as_array().unwrap()[..4]
        .iter()
        .map(|row| row["title"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        titles,
        ["Restore 2: Two", "Undo 2, 1", "Redo 2: Two", "Undo 2: Two"]
    );
}

#[test]
fn promise_b5_a_turn_that_was_not_brought_is_passed_over() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    overlapping_turn(&repo);
    insta::assert_snapshot!(repo.workflow().undo(1).done(), @"
    at turn 0
      over [1]
      passed over 2: NotBrought
      delete one.txt
      keep a.txt
    ");
    assert_eq!(repo.read("a.txt"), "mine\n");
}

/// Runs a turn whose publication conflicts with a save by the user.
pub fn overlapping_turn(repo: &TestRepo) {
    let script = repo.beside("save");
    let save = format!("echo mine > {}\n", repo.path().join("a.txt").display());
    std::fs::write(&script, save).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(
        repo.beside("plan.md"),
        plan(
            "Meet",
            &[edit("a.txt", "2", "two"), create("new.txt", "n\n")],
        ),
    )
    .unwrap();
    let mut command = repo.teddy_command(&["execute", "../plan.md", "-y"]);
    let armed = format!("after-run=1*return(sh:{})", script.display());
    let out = crate::support::Output::of(command.current_dir(repo.path()).env("FAILPOINTS", armed));
    assert_eq!(out.code, 4, "{out}");
}
