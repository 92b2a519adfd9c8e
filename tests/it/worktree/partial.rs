//! Partial worktrees, for sessions whose plans run no command. They contain only what the plans
//! name, are never taken for complete ones, and give the same results.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::plans::{create, edit, execute, plan, read, replace};
use crate::support::TestRepo;
use crate::support::names;
use teddy::git::worktree;
use teddy::git::worktree::{Extent, WorktreeTarget};

/// Returns the disk usage of everything below a directory.
fn room(folder: &Path) -> u64 {
    let blocks = |path: PathBuf| std::fs::symlink_metadata(path).unwrap().blocks() * 512;
    let below = names(folder).into_iter().map(|name| folder.join(name));
    below.map(blocks).sum()
}

fn place(repo: &TestRepo) -> PathBuf {
    let worktrees = worktree::session_worktrees(&repo.open()).into_iter();
    let mut of_demo = worktrees.filter(|listed| listed.session == "demo");
    of_demo.next().unwrap().path
}

fn begin(repo: &TestRepo) {
    repo.done(&["new", "demo"]);
}

/// Executes a plan of these actions, which must succeed.
fn turn(repo: &TestRepo, actions: &[String]) {
    repo.run_plan(&plan("Work", actions));
}

/// Returns the names in the worktree, without the file that leads to git's record of it.
fn files(repo: &TestRepo) -> Vec<String> {
    let mut all = names(&place(repo));
    all.retain(|name| name != ".git");
    all
}

#[test]
fn promise_d8_sessions_without_commands_cost_no_copy_of_the_project() {
    let repo = TestRepo::new();
    for number in 0..200 {
        repo.write(&format!("d{}/f{number}", number % 10), "x".repeat(5_000));
    }
    repo.commit("one");
    let cache = repo.beside("home/cache");
    let text = plan("Work", &[create("d1/new", "1\n"), replace("d2/f2", "2\n")]);
    for number in 0..10 {
        repo.done(&["new", &format!("s{number}")]);
        let out = repo.teddy_reads(&["execute", "-", "-y"], &text);
        assert_eq!(out.code, 0, "{out}");
        repo.git(&["checkout", "-q", "--", "."]);
        repo.remove("d1/new");
    }
    assert_eq!(worktree::session_worktrees(&repo.open()).len(), 10);
    let each = room(&cache) / 10;
    assert!(each < 64 << 10, "a session takes {each} bytes");
}

#[test]
fn an_index_that_a_power_cut_emptied_counts_for_nothing() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("one");
    begin(&repo);
    turn(&repo, &[replace("a.txt", "b\n")]);

    let records = repo.path().join(".git/teddy/worktrees");
    let indexes: Vec<String> = names(&records)
        .into_iter()
        .filter(|name| name.ends_with("/index"))
        .collect();
    assert_eq!(indexes.len(), 1, "{indexes:?}");
    std::fs::write(records.join(&indexes[0]), "").unwrap();

    // The plan names no existing file, so TeDDy has no reason to write the index again.
    turn(&repo, &[create("two.txt", "2\n")]);
    assert_eq!(repo.read("two.txt"), "2\n");
}

#[test]
fn a_part_has_what_the_plan_names_and_the_first_command_finds_everything() {
    let repo = TestRepo::new()
        .file("a", "1\n")
        .file("d/.gitattributes", "* text\n")
        .file("d/e/f", "1\n")
        .file("d/e/other", "1\n")
        .file("run/deep/x", "1\n");
    repo.commit("one");
    begin(&repo);
    // A checkout, because an overlay is always complete.
    repo.configure("worktree: { backend: checkout }\n");
    turn(&repo, &[replace("d/e/f", "2\n"), read("run/deep")]);
    let part = [
        "d/",
        "d/.gitattributes",
        "d/e/",
        "d/e/f",
        "run/",
        "run/deep/",
    ];
    assert_eq!(files(&repo), part);

    turn(&repo, &[create("new/file", "1\n")]);
    let more = [&part[..4], &["new/", "new/file"], &part[4..]].concat();
    assert_eq!(files(&repo), more);
    assert_eq!(repo.git(&["status", "--porcelain"]), " M d/e/f\n?? new/");

    repo.write("a", "by the user\n");
    turn(
        &repo,
        &[execute(
            "git status --porcelain -uno > seen; cat a d/e/other >> seen",
        )],
    );
    assert_eq!(repo.read("seen"), "by the user\n1\n");
    assert_eq!(
        repo.git(&["status", "--porcelain"]),
        " M a\n M d/e/f\n?? new/\n?? seen"
    );
    // The worktree is complete now, and changes by the user are copied to it.
    repo.write("run/deep/x", "2\n");
    turn(&repo, &[create("last", "1\n")]);
    let there = place(&repo).join("run/deep/x");
    assert_eq!(std::fs::read_to_string(there).unwrap(), "2\n");
}

#[test]
fn what_is_in_the_way_in_the_project_is_in_the_way_of_a_plan() {
    let repo = TestRepo::new().file("file", "1\n").file("folder/x", "1\n");
    symlink("folder", repo.path().join("link")).unwrap();
    symlink("nowhere", repo.path().join("dangling")).unwrap();
    repo.commit("one");
    begin(&repo);
    turn(&repo, &[create("first", "1\n")]);
    for path in [
        "file/x",
        "link/x",
        "link/new",
        "dangling/x",
        "folder",
        "link",
    ] {
        let text = plan("Work", &[create(path, "2\n")]);
        let out = repo.teddy_reads(&["execute", "-", "-y"], text);
        assert_ne!(out.code, 0, "{path}: {out}");
        assert_eq!(repo.git(&["status", "--porcelain"]), "?? first", "{path}");
    }
}

#[test]
fn files_of_a_part_go_through_the_filters_of_the_project() {
    let repo = TestRepo::new();
    repo.git(&["config", "filter.swap.clean", "tr ab ba"]);
    repo.git(&["config", "filter.swap.smudge", "tr ab ba"]);
    repo.write(".gitattributes", "*.txt text eol=crlf\n");
    repo.write("d/.gitattributes", "*.swap filter=swap\n");
    repo.write("d/e/f.swap", "aab\n");
    repo.write("d/e/f.txt", "1\r\n2\r\n");
    repo.write("other.txt", "1\r\n");
    repo.commit("one");
    begin(&repo);
    turn(&repo, &[read("d/e/f.swap"), read("d/e/f.txt")]);
    turn(
        &repo,
        &[
            edit("d/e/f.swap", "aab", "aaab"),
            edit("d/e/f.txt", "2", "3"),
            create("d/g.swap", "bb\n"),
            create("g.txt", "1\n"),
        ],
    );
    let blob = |path: &str| {
        let tip = repo.git(&["rev-parse", "refs/teddy/sessions/demo^2"]);
        repo.git(&["cat-file", "-p", &format!("{tip}:{path}")])
    };
    assert_eq!(blob("d/e/f.swap"), "bbba");
    assert_eq!(blob("d/e/f.txt"), "1\n3");
    assert_eq!((blob("d/g.swap"), blob("g.txt")), ("aa".into(), "1".into()));
    assert_eq!(repo.read("d/e/f.swap"), "aaab\n");
    assert_eq!(repo.read("d/e/f.txt"), "1\r\n3\r\n");
    assert!(!place(&repo).join("other.txt").exists());
}

#[test]
fn a_set_up_runs_with_the_first_command_in_everything() {
    let repo = TestRepo::new()
        .file("a", "1\n")
        .file("b", "1\n")
        .file(".gitignore", "*.o\n");
    repo.commit("one");
    repo.configure("worktree:\n  setup: cat a b > made.o\n");
    begin(&repo);
    turn(&repo, &[replace("a", "2\n")]);
    assert_eq!(files(&repo), [".gitignore", "a"]);
    turn(&repo, &[execute("cp made.o seen")]);
    assert_eq!(repo.read("seen"), "2\n1\n");
}

#[test]
fn a_sparse_checkout_leaves_out_of_a_part_what_it_leaves_out() {
    let repo = TestRepo::new().file("in/a", "1\n").file("out/b", "1\n");
    repo.commit("one");
    repo.git(&["sparse-checkout", "set", "in"]);
    begin(&repo);
    turn(&repo, &[create("in/new", "1\n")]);
    let sees = |path: &str| {
        let user = repo.open();
        let commit = repo.git(&["rev-parse", "HEAD"]).parse().unwrap();
        let paths = [path.as_bytes().to_vec()];
        let root = repo.beside("worktrees");
        let aim = WorktreeTarget::unwatched(commit, Extent::Paths(&paths));
        worktree::session_worktree(&user, &root, "demo", aim).unwrap();
        names(&root.join("demo"))
    };
    assert_eq!(sees("out/b"), [""; 0]);
    assert_eq!(sees("out"), [""; 0]);
    assert_eq!(sees("in/a"), ["in/", "in/a"]);
}
