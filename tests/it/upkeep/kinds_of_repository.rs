//! All kinds of repositories and directories in which TeDDy works, and those that it refuses.
//!
//! CI also runs this module as root.

use std::path::Path;

use crate::plans::{create, edit, plan};
use crate::support::{Output, TestRepo};

/// Starts a session in a directory, runs a plan and undoes it.
#[track_caller]
fn round_trip(repo: &TestRepo, folder: &Path) {
    let run = |args: &[&str]| {
        let out = repo.teddy_in(folder, args);
        assert_eq!(out.code, 0, "teddy {args:?}: {out}");
    };
    run(&["new", "demo"]);
    std::fs::write(
        repo.beside("plan.md"),
        plan("Make it", &[create("made/by/plan.txt", "1\n")]),
    )
    .unwrap();
    run(&["execute", repo.beside("plan.md").to_str().unwrap(), "-y"]);
    let top = std::path::PathBuf::from(repo.git_in(folder, &["rev-parse", "--show-toplevel"]));
    assert_eq!(
        std::fs::read_to_string(top.join("made/by/plan.txt")).unwrap(),
        "1\n"
    );
    assert_eq!(
        repo.git_in(folder, &["rev-parse", "teddy/sessions/demo^2^{tree}"]),
        repo.tree_in(&top)
    );
    run(&["undo"]);
    assert!(!top.join("made").exists());
    run(&["redo"]);
    assert!(top.join("made/by/plan.txt").exists());
}

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "a\n")
        .file("sub/b.txt", "b\n");
    repo.commit("init");
    repo
}

#[test]
fn in_a_main_worktree_and_in_a_folder_of_it() {
    let repo = project();
    round_trip(&repo, &repo.path());
    let repo = project();
    round_trip(&repo, &repo.path().join("sub"));
}

#[test]
fn on_an_unborn_branch() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    round_trip(&repo, &repo.path());
    assert_eq!(repo.git(&["for-each-ref", "refs/heads"]), "");
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
}

#[test]
fn on_a_detached_head() {
    let repo = project();
    let head = repo.git(&["rev-parse", "HEAD"]);
    repo.git(&["checkout", "-q", "--detach"]);
    round_trip(&repo, &repo.path());
    assert_eq!(
        std::fs::read_to_string(repo.path().join(".git/HEAD"))
            .unwrap()
            .trim(),
        head
    );
}

#[test]
fn in_a_linked_worktree_apart_from_the_main_one() {
    let repo = project();
    let linked = repo.beside("linked");
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    round_trip(&repo, &linked);
    assert_eq!(
        repo.git(&["status", "--porcelain"]),
        "",
        "the main worktree stays"
    );
    assert_eq!(
        repo.workflow().sessions()[0]["name"],
        "demo",
        "sessions are the repository's"
    );
    repo.workflow().new_session("here").done();
    let there = repo.teddy_in(&linked, &["--json", "status"]);
    assert!(
        there.stdout.contains("\"session\": \"demo\""),
        "each worktree has its own session in use: {there}"
    );
}

#[test]
fn in_a_shallow_clone() {
    let repo = project();
    repo.write("a.txt", "2\n");
    repo.commit("two");
    let clone = repo.beside("clone");
    let source = format!("file://{}", repo.path().display());
    repo.git(&[
        "clone",
        "-q",
        "--depth",
        "1",
        &source,
        clone.to_str().unwrap(),
    ]);
    round_trip(&repo, &clone);
}

#[test]
fn with_sha256_objects() {
    let repo = TestRepo::with(&["--object-format=sha256"]).file("a.txt", "a\n");
    repo.commit("init");
    round_trip(&repo, &repo.path());
    assert_eq!(repo.git(&["rev-parse", "teddy/sessions/demo"]).len(), 64);
    assert_eq!(repo.git(&["fsck", "--strict", "--no-dangling"]), "");
}

#[test]
fn with_file_names_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let repo = project();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    repo.put(name, "x\n");
    round_trip(&repo, &repo.path());
    assert!(repo.path().join(name).exists());
}

#[test]
fn in_another_folder_by_option_and_by_variables() {
    let repo = project();
    let elsewhere = repo.beside("home");
    let at = repo.path();
    assert_eq!(
        repo.teddy_in(&elsewhere, &["-C", at.to_str().unwrap(), "new", "one"])
            .code,
        0
    );
    let mut command = repo.teddy_command(&["new", "two"]);
    command
        .env("GIT_DIR", at.join(".git"))
        .env("GIT_WORK_TREE", &at)
        .current_dir(&elsewhere);
    let out = Output::of(&mut command);
    assert_eq!(out.code, 0, "{out}");
    assert_eq!(repo.workflow().sessions().as_array().unwrap().len(), 2);
    insta::assert_snapshot!(repo.printed(&["-C", "nowhere", "status"]), @"
    --- stderr
    error: `nowhere` is not a directory
    exit code 1
    ");
}

/// git takes the current directory for the files of the repository that `GIT_DIR` names.
#[test]
fn a_repository_named_without_its_files_is_refused_elsewhere() {
    let (repo, other) = (project(), project());
    let mut command = other.teddy_command(&["status"]);
    command
        .env("GIT_DIR", repo.path().join(".git"))
        .current_dir(other.path());
    let shown = Output::of(&mut command).shown(&other);
    let shown = shown.replace(repo.path().to_str().unwrap(), "[named]");
    insta::assert_snapshot!(shown, @"
    --- stderr
    error: `GIT_DIR` names the repository of `[named]`, but for git its files are then in `[dir]/repo`
    hint: set `GIT_WORK_TREE=[named]`, or run TeDDy there
    exit code 1
    ");
    let mut command = repo.teddy_command(&["status"]);
    command
        .env("GIT_DIR", repo.path().join(".git"))
        .current_dir(repo.path());
    assert_eq!(Output::of(&mut command).code, 0);
}

#[test]
fn a_plan_file_is_looked_for_in_the_folder_in_use() {
    let repo = project();
    repo.write("sub/plan.md", plan("Make it", &[create("c.txt", "c\n")]));
    repo.teddy_in(&repo.path().join("sub"), &["execute", "plan.md", "-y"])
        .check(0, &[]);
    assert!(
        repo.path().join("c.txt").exists(),
        "the paths of a plan are relative to the project's root"
    );
}

#[test]
fn what_is_no_fit_repository_is_refused_with_the_reason() {
    let repo = TestRepo::new();
    let refused = |folder: &Path, words: &str| {
        repo.teddy_in(folder, &["new", "x"])
            .check(1, &[words, "hint: "]);
    };
    let plain = repo.beside("plain");
    std::fs::create_dir(&plain).unwrap();
    refused(&plain, "is not in a git repository");
    let bare = repo.beside("bare.git");
    repo.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    refused(&bare, "is a bare repository");
    let future = repo.beside("future");
    repo.git(&["init", "-q", future.to_str().unwrap()]);
    repo.git_in(&future, &["config", "core.repositoryFormatVersion", "1"]);
    std::fs::write(
        future.join(".git/config"),
        "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tmystery = true\n",
    )
    .unwrap();
    refused(&future, "needs the extension `mystery` of git");
    repo.git(&["init", "-q", repo.beside("home").to_str().unwrap()]);
    refused(&repo.beside("home"), "your home directory");
}

/// Bug: its files counted as those of the one before, from which everything was missing.
#[test]
fn pb8_a_linked_worktree_that_was_removed_and_made_again_is_another_one() {
    let repo = project();
    let linked = repo.beside("linked");
    let name = linked.to_str().unwrap();
    repo.git(&["worktree", "add", "-q", "-b", "side", name]);
    repo.teddy_in(&linked, &["new", "demo"]).check(0, &[]);
    let run = |title: &str, file: &str| {
        let plan = plan(title, &[create(file, "1\n")]);
        std::fs::write(repo.beside("plan.md"), plan).unwrap();
        repo.teddy_in(&linked, &["execute", "-y", "../plan.md"])
            .check(0, &[]);
    };
    run("One", "one.txt");

    repo.git(&["worktree", "remove", "--force", name]);
    repo.git(&["worktree", "add", "-q", name, "side"]);
    for _ in 0..2 {
        insta::allow_duplicates! {
            insta::assert_snapshot!(repo.teddy_in(&linked, &["status"]).shown(&repo), @"
            Session demo, turn 1, on branch side
            Ready for turn 2
            TeDDy has not written to these files before, so everything in them counts as your own; `teddy restore @` restores them to turn 1.
            1 file changed since:
              one.txt
            --- stderr
            Next: teddy '<what you want>'
            exit code 0
            ");
        }
        repo.done(&["gc"]);
    }
    repo.teddy_in(&linked, &["undo"])
        .check(1, &["nothing to undo"]);
    run("Two", "two.txt");
    repo.git(&[
        "worktree",
        "move",
        name,
        repo.beside("moved").to_str().unwrap(),
    ]);
    let moved = repo.beside("moved");
    repo.teddy_in(&moved, &["undo"])
        .check(0, &["delete two.txt"]);
    assert!(!moved.join("two.txt").exists());
    repo.git(&["worktree", "remove", "--force", moved.to_str().unwrap()]);
}

/// Bug: `status` said that the user had taken the turn back, and `restore` wrote nothing.
#[test]
fn pb8_what_plain_git_fetched_says_nothing_about_the_files_here() {
    let repo = project();
    repo.teddy(&["new", "demo"]).check(0, &[]);
    let plan = plan("One", &[create("one.txt", "1\n")]);
    std::fs::write(repo.beside("plan.md"), plan).unwrap();
    repo.teddy(&["execute", "-y", "../plan.md"]).check(0, &[]);

    let clone = repo.beside("clone");
    let path = repo.path();
    let [from, to] = [&path, &clone].map(|path| path.to_str().unwrap());
    repo.git(&["clone", "-q", from, to]);
    let all = "refs/teddy/*:refs/teddy/*";
    repo.git(&["-C", to, "fetch", "-q", "origin", all]);

    repo.teddy_in(&clone, &["switch", "demo", "--adopt"])
        .check(0, &[]);
    insta::assert_snapshot!(repo.teddy_in(&clone, &["status"]).shown(&repo), @"
    Session demo, turn 1, on branch main
    Ready for turn 2
    TeDDy has not written to these files before, so everything in them counts as your own; `teddy restore @` restores them to turn 1.
    1 file changed since:
      one.txt
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
    repo.teddy_in(&clone, &["restore", "@", "-y"])
        .check(0, &["write one.txt"]);
    repo.teddy_in(&clone, &["undo", "-y"])
        .check(0, &["delete one.txt"]);
}

#[test]
fn a_worktree_that_leads_to_no_git_directory_says_where_it_leads() {
    let repo = project();
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    std::fs::rename(repo.path(), repo.beside("elsewhere")).unwrap();
    let status = repo
        .teddy_command(&["-C", linked.to_str().unwrap(), "status"])
        .current_dir(repo.beside(""))
        .output()
        .unwrap();
    std::fs::rename(repo.beside("elsewhere"), repo.path()).unwrap();
    let message = repo.plain(&String::from_utf8_lossy(&status.stderr));
    insta::assert_snapshot!(message, @"
    error: `[dir]/linked/.git` leads to the git directory `[dir]/repo/.git/worktrees/linked`, which does not exist
    hint: if the repository was moved: run `git worktree repair [dir]/linked` in it, or write the new path into the file
    ");
}

#[test]
fn a_repository_within_and_a_submodule_stay_as_they_are() {
    let repo = project();
    let inner = repo.path().join("inner");
    repo.git(&["init", "-q", "-b", "main", inner.to_str().unwrap()]);
    repo.write("inner/own.txt", "own\n");
    repo.git_in(&inner, &["add", "-A"]);
    repo.git_in(&inner, &["commit", "-q", "-m", "inner"]);
    repo.write("inner/own.txt", "changed\n");
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.done(&["restore", "0", "--exact", "-y"]);
    assert_eq!(repo.read("inner/own.txt"), "changed\n");
    let shown = repo
        .teddy_reads(
            &["execute", "-", "-y"],
            plan("Into", &[create("inner/x.txt", "x\n")]),
        )
        .shown(&repo);
    insta::assert_snapshot!(shown, @"
    turn 3 rejected [id]
    --- stderr
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE inner/x.txt: `inner/x.txt` is below `inner`, which is a repository of its own
        hint: choose another path
    `teddy show 3 report.md` says what is wrong.
    exit code 3
    ");
}

#[test]
fn line_ends_are_those_of_the_users_checkout() {
    let repo = TestRepo::new();
    repo.git(&["config", "core.autocrlf", "true"]);
    repo.write("a.txt", "one\r\ntwo\r\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow()
        .run_plan(&plan("Change", &[edit("a.txt", "two", "2")]));
    assert_eq!(repo.read("a.txt"), "one\r\n2\r\n");
    assert_eq!(
        repo.git(&["rev-parse", "teddy/sessions/demo^2^{tree}"]),
        repo.tree()
    );
}

#[test]
fn attack_11_a_core_worktree_outside_is_refused() {
    let repo = project();
    let elsewhere = repo.beside("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    repo.git(&["config", "core.worktree", elsewhere.to_str().unwrap()]);

    insta::assert_snapshot!(repo.workflow().new_session("demo").refused(), @"
    error: `[dir]/repo/.git` has its files in `[dir]/elsewhere` (`core.worktree` in `[dir]/repo/.git/config`), and nothing there leads back to it
    hint: `git config --file [dir]/repo/.git/config --unset core.worktree`, or set `GIT_WORK_TREE` to the directory
    exit code 1
    ");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn attack_11_a_file_that_its_encoding_does_not_fit_is_left_out() {
    let repo = project();
    repo.write(".gitattributes", "*.txt working-tree-encoding=UTF-16LE\n");
    repo.put("c.txt", b"odd\xd8");
    repo.workflow()
        .run_plan(&plan("Make it", &[create("made.md", "1\n")]));

    let status = repo.workflow().status();
    assert!(status.to_string().contains("c.txt"), "{status}");
    let tree = repo.git(&["ls-tree", "-r", "--name-only", "teddy/sessions/make-it^2"]);
    assert_eq!(tree, ".gitattributes\na.txt\nmade.md\nsub/b.txt");

    repo.workflow().undo(1).done();
    assert_eq!(
        std::fs::read(repo.path().join("c.txt")).unwrap(),
        b"odd\xd8"
    );
}

#[test]
fn a_path_that_is_not_utf_8_is_refused_before_a_session_begins() {
    use std::os::unix::ffi::OsStrExt as _;

    let repo = TestRepo::new();
    let dir = repo
        .beside("odd")
        .join(std::ffi::OsStr::from_bytes(b"\xff"));
    std::fs::create_dir_all(&dir).unwrap();
    let in_dir = |program: &str, arguments: &[&str]| {
        let mut command = repo.command(program);
        command.args(arguments).current_dir(&dir).output().unwrap()
    };
    assert!(in_dir("git", &["init", "-q"]).status.success());
    let refused = in_dir(env!("CARGO_BIN_EXE_teddy"), &["new", "s"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("is not valid UTF-8"), "{said}");
}
