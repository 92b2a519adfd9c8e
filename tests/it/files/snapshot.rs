//! Snapshots compared with `git add -A && git write-tree`: the same tree, and nothing else changes
//! in the repository.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::snapshot_check::{check, check_at, gits_tree, take};
use crate::support::TestRepo;
use teddy::git::keep::pack::keep;
use teddy::git::keep::protect;
use teddy::git::repository::Repository;
use teddy::git::snapshot;

use teddy::git::snapshot::Snapshot;
use teddy::git::snapshot::limits::{CreatedFile, Forced, LeftOut, Reason, SnapshotLimits};

fn left(snapshot: &Snapshot) -> Vec<(&str, &Reason)> {
    snapshot
        .left_out
        .iter()
        .map(|LeftOut { path, reason }| (path.as_str(), reason))
        .collect()
}

fn paths(repo: &TestRepo, snapshot: &Snapshot) -> String {
    repo.git(&["ls-tree", "-r", "--name-only", &snapshot.tree.to_string()])
        .replace('\n', " ")
}

#[test]
fn an_empty_repository_has_the_empty_tree() {
    let repo = TestRepo::new();
    check(&repo);
    std::fs::create_dir_all(repo.path().join("empty/folders")).unwrap();
    check(&repo);
    repo.put("a/b.txt", "x");
    check(&repo);
}

#[test]
fn a_folder_of_very_many_files_is_seen_as_it_is() {
    let repo = TestRepo::new();
    let name = |number: usize| format!("many/file-{number}");
    let count = 1_500;
    for number in 0..count {
        repo.put(name(number), number.to_string());
    }
    repo.commit("all");
    let first = check(&repo);

    // As editors and turns save: the time of the directory changes, its names don't.
    let replace = |at: usize, content: &str| {
        repo.put("new", content);
        std::fs::rename(repo.path().join("new"), repo.path().join(name(at))).unwrap();
    };
    replace(1_321, "other");
    assert_ne!(check(&repo).tree, first.tree);
    replace(1_321, "1321");
    assert_eq!(check(&repo).tree, first.tree);

    replace(count, "one more");
    check(&repo);
    std::fs::remove_file(repo.path().join(name(17))).unwrap();
    check(&repo);
    replace(17, "17");
    std::fs::remove_file(repo.path().join(name(count))).unwrap();
    assert_eq!(check(&repo).tree, first.tree);
    std::fs::remove_file(repo.path().join(name(18))).unwrap();
    repo.put("many/file-18/folder", "now");
    check(&repo);
}

#[test]
fn very_many_folders_are_all_seen() {
    let repo = TestRepo::new();
    for number in 0..600 {
        let (a, b, c) = (number % 7, number % 31, number);
        repo.put(format!("{a}/{b}/{c}/file"), number.to_string());
    }
    check(&repo);
    repo.put("3/10/10/file", "changed")
        .put("3/10/10/other/file", "new");
    std::fs::remove_dir_all(repo.path().join("4/11")).unwrap();
    std::fs::rename(repo.path().join("5/12"), repo.path().join("6/112")).unwrap();
    check(&repo);
}

#[test]
fn ignore_files_are_read_where_they_stand() {
    let repo = TestRepo::new();
    repo.put(".gitignore", "*.log\n/build\nnested/**/deep\n!keep.log\n")
        .put("a.log", "1")
        .put("keep.log", "2")
        .put("build/x", "3");
    repo.put("sub/.gitignore", "!a.log\n*.tmp\n")
        .put("sub/a.log", "4")
        .put("sub/b.tmp", "5")
        .put("sub/build/y", "6");
    repo.put("nested/x/deep/z", "7").put("nested/x/z", "8");
    repo.put("hidden/.gitignore", "*\n").put("hidden/file", "9");
    check(&repo);
    repo.commit("all");
    repo.put("sub/.gitignore", "*.log\n")
        .put("hidden/.gitignore", "*\n!file\n")
        .put("build/.gitignore", "!x\n");
    check(&repo);
    std::fs::remove_file(repo.path().join("hidden/.gitignore")).unwrap();
    check(&repo);
    repo.put(".gitignore", "sub\n");
    check(&repo);
}

#[test]
fn the_users_own_exclude_files_count() {
    let repo = TestRepo::new();
    let global = repo.beside("ignore");
    repo.git(&["config", "core.excludesFile", global.to_str().unwrap()]);
    repo.put("a.o", "1").put("b.swp", "2").put("c", "3");
    check(&repo);
    std::fs::write(&global, "*.swp\n").unwrap();
    check(&repo);
    std::fs::write(repo.path().join(".git/info/exclude"), "*.o\n").unwrap();
    assert_eq!(paths(&repo, &check(&repo)), "c");
}

#[test]
fn ignored_tracked_files_are_included() {
    let repo = TestRepo::new();
    repo.put("gen/a.c", "1")
        .put("gen/sub/b.c", "2")
        .put("top.log", "3")
        .commit("first");
    repo.put(".gitignore", "gen\n*.log\n")
        .put("gen/new.c", "4")
        .put("gen/sub/new.c", "5")
        .put("new.log", "6");
    check(&repo);
    repo.put("gen/a.c", "changed").put("top.log", "changed");
    check(&repo);
    std::fs::remove_file(repo.path().join("gen/a.c")).unwrap();
    std::fs::remove_file(repo.path().join("top.log")).unwrap();
    check(&repo);
}

#[test]
fn what_is_tracked_follows_the_users_index() {
    let repo = TestRepo::new();
    repo.put(".gitignore", "*.txt\n")
        .put("a.rs", "1")
        .commit("first");
    repo.put("ignored.txt", "2").put("dir/deep.txt", "3");
    check(&repo);
    repo.git(&["add", "-f", "ignored.txt", "dir/deep.txt"]);
    assert_eq!(
        paths(&repo, &check(&repo)),
        ".gitignore a.rs dir/deep.txt ignored.txt"
    );
    repo.git(&["rm", "-q", "--cached", "dir/deep.txt", "a.rs"]);
    assert_eq!(paths(&repo, &check(&repo)), ".gitignore a.rs ignored.txt");
    repo.git(&["commit", "-q", "-m", "second"]);
    check(&repo);
    repo.git(&["checkout", "-q", "-f", "-b", "other", "HEAD~1"]);
    check(&repo);
    repo.git(&["reset", "-q", "main"]);
    check(&repo);
}

#[test]
fn the_executable_bit_counts_where_git_says_so() {
    let repo = TestRepo::new();
    repo.put("run", "#!\n").put("data", "x").commit("first");
    let chmod = |name: &str, mode| {
        std::fs::set_permissions(
            repo.path().join(name),
            std::fs::Permissions::from_mode(mode),
        )
        .unwrap()
    };
    chmod("run", 0o755);
    check(&repo);
    repo.commit("second");
    repo.git(&["config", "core.fileMode", "false"]);
    chmod("run", 0o644);
    chmod("data", 0o755);
    repo.put("new", "y");
    chmod("new", 0o755);
    check(&repo);
    repo.put("run", "changed");
    check(&repo);
}

#[test]
fn links_and_changes_of_type_are_recorded() {
    let repo = TestRepo::new();
    repo.put("file", "1")
        .put("dir/a", "2")
        .put("dir/b/c", "3")
        .put("other", "4");
    symlink("file", repo.path().join("link")).unwrap();
    symlink("/nowhere/at/all", repo.path().join("dangling")).unwrap();
    repo.commit("first");
    check(&repo);
    std::fs::remove_file(repo.path().join("link")).unwrap();
    std::fs::remove_dir_all(repo.path().join("dir")).unwrap();
    std::fs::remove_file(repo.path().join("other")).unwrap();
    std::fs::remove_file(repo.path().join("file")).unwrap();
    repo.put("link", "now a file")
        .put("file/is/a/folder", "5")
        .put("dir", "now a file");
    symlink("file/is", repo.path().join("other")).unwrap();
    check(&repo);
    std::fs::remove_file(repo.path().join("dir")).unwrap();
    symlink("file", repo.path().join("dir")).unwrap();
    check(&repo);
}

/// Bug: such a link was in no snapshot, and not named.
#[test]
fn links_are_recorded_although_git_checks_out_none() {
    let repo = TestRepo::new();
    symlink("a", repo.path().join("tracked")).unwrap();
    repo.commit("first");
    repo.git(&["config", "core.symlinks", "false"]);
    symlink("b", repo.path().join("new")).unwrap();
    check(&repo);
    std::fs::remove_file(repo.path().join("tracked")).unwrap();
    repo.put("tracked", "b");
    check(&repo);
    std::fs::remove_file(repo.path().join("tracked")).unwrap();
    symlink("c", repo.path().join("tracked")).unwrap();
    check(&repo);
}

#[test]
fn deleted_files_are_left_out_even_if_ignored() {
    let repo = TestRepo::new();
    repo.put("a", "1")
        .put("b/c", "2")
        .put("b/d", "3")
        .put("x.log", "4")
        .commit("first");
    check(&repo);
    repo.put(".gitignore", "*.log\nb\n");
    for path in ["a", "b/c", "x.log"] {
        std::fs::remove_file(repo.path().join(path)).unwrap();
    }
    check(&repo);
    std::fs::remove_dir_all(repo.path().join("b")).unwrap();
    check(&repo);
    repo.put("x.log", "back");
    check(&repo);
}

#[test]
fn embedded_repositories_are_opaque() {
    let repo = TestRepo::new();
    repo.put("a", "1").put(".gitignore", "skipped\n");
    let inner = repo.path().join("inner");
    let git = |dir: &Path, args: &[&str]| repo.git_in(dir, args);
    for name in ["inner", "skipped"] {
        repo.git(&["init", "-q", name]);
        repo.put(format!("{name}/file"), "in it");
        git(&repo.path().join(name), &["add", "file"]);
        git(&repo.path().join(name), &["commit", "-q", "-m", "one"]);
    }
    check(&repo);
    repo.put("inner/file", "dirty")
        .put("inner/more", "untracked");
    check(&repo);
    git(&inner, &["commit", "-q", "--allow-empty", "-m", "two"]);
    check(&repo);
    repo.git(&["-c", "advice.addEmbeddedRepo=false", "add", "inner"]);
    check(&repo);
    git(&inner, &["commit", "-q", "--allow-empty", "-m", "three"]);
    check(&repo);
    std::fs::remove_dir_all(&inner).unwrap();
    check(&repo);
    std::fs::create_dir(&inner).unwrap();
    check(&repo);
}

#[test]
fn an_embedded_repository_without_a_commit_is_left_out() {
    let repo = TestRepo::new();
    repo.put("a", "1");
    repo.git(&["init", "-q", "sub/inner"]);
    repo.put("sub/inner/file", "x")
        .put("not-a-repo/.git", "words")
        .put("not-a-repo/file", "y");
    for _ in 0..2 {
        let snapshot = take(&repo.path(), &SnapshotLimits::none(), &[]);
        assert_eq!(
            left(&snapshot),
            [("sub/inner", &Reason::EmbeddedWithoutCommit)]
        );
        assert_eq!(paths(&repo, &snapshot), "a not-a-repo/file");
    }
}

#[test]
fn a_submodule_is_recorded_at_its_commit() {
    let source = TestRepo::new();
    source.put("lib", "1").commit("one");
    let repo = TestRepo::new();
    repo.put("a", "1").commit("first");
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        source.path().to_str().unwrap(),
        "dep",
    ]);
    repo.git(&["commit", "-q", "-m", "submodule"]);
    check(&repo);
    repo.put("dep/lib", "dirty").put("dep/new", "untracked");
    check(&repo);
    repo.git_in(
        &repo.path().join("dep"),
        &["commit", "-q", "-a", "-m", "two"],
    );
    check(&repo);
    repo.git(&["submodule", "--quiet", "deinit", "-f", "dep"]);
    check(&repo);
}

#[test]
fn line_ends_are_as_the_settings_say() {
    let repo = TestRepo::new();
    repo.put("crlf.txt", "a\r\nb\r\n")
        .put("mixed.txt", "a\r\nb\n")
        .put("bin", "a\r\n\0")
        .commit("as is");
    repo.git(&["config", "core.autocrlf", "true"]);
    check(&repo);
    repo.put("crlf.txt", "a\r\nb\r\nc\r\n")
        .put("new.txt", "x\r\ny\r\n")
        .put("mixed.txt", "c\r\nd\ne\n");
    check(&repo);
    repo.git(&["rm", "-q", "--cached", "crlf.txt"]);
    check(&repo);
    repo.git(&["config", "core.autocrlf", "input"]);
    check(&repo);
}

#[test]
fn attributes_choose_line_ends_and_encodings() {
    let repo = TestRepo::new();
    repo.put(
        ".gitattributes",
        "*.txt text\n*.bat text eol=crlf\n*.u16 working-tree-encoding=UTF-16LE\n*.id ident\n",
    );
    repo.put("a.txt", "x\r\ny\r\n")
        .put("b.bat", "x\r\n")
        .put("c.u16", b"h\0i\0\n\0")
        .put("d.raw", "x\r\n");
    repo.put("e.id", "$Id: 1234$\n");
    check(&repo);
    repo.commit("first");
    repo.put("sub/.gitattributes", "*.txt -text\n")
        .put("sub/a.txt", "x\r\n");
    check(&repo);
    repo.put("sub/.gitattributes", "*.txt text\n");
    check(&repo);
    repo.put(".gitattributes", "* -text\n");
    check(&repo);
    std::fs::remove_file(repo.path().join("sub/.gitattributes")).unwrap();
    check(&repo);
}

#[test]
fn filters_of_the_users_configuration_run() {
    let repo = TestRepo::new();
    repo.put(
        ".gitattributes",
        "*.up filter=upper\n*.lfs filter=missing\n",
    )
    .put("a.up", "abc")
    .put("b.lfs", "kept");
    check(&repo);
    repo.git(&["config", "filter.upper.clean", "tr a-z A-Z"]);
    let snapshot = check(&repo);
    assert_eq!(
        repo.git(&["cat-file", "-p", &format!("{}:a.up", snapshot.tree)]),
        "ABC"
    );
    repo.put("a.up", "def").put("c.up", "ghi");
    check(&repo);
}

#[test]
fn a_required_filter_that_fails_is_an_error_that_names_the_file() {
    let repo = TestRepo::new();
    repo.put(".gitattributes", "*.x filter=f\n")
        .put("dir/a.x", "abc");
    repo.git(&["config", "filter.f.clean", "false"]);
    check(&repo);
    repo.git(&["config", "filter.f.required", "true"]);
    let opened = Repository::open(&repo.path()).unwrap();
    let error =
        snapshot::take_snapshot(&opened, &repo.beside("index"), &SnapshotLimits::none(), &[])
            .unwrap_err();
    assert!(
        format!("{error:#}").starts_with("cannot record `dir/a.x`: its filter failed"),
        "{error:#}"
    );
    assert!(!repo.beside("index").exists());
}

#[test]
fn names_need_not_be_utf_8() {
    let repo = TestRepo::new();
    let name = |bytes: &'static [u8]| std::ffi::OsStr::from_bytes(bytes);
    repo.put(name(b"caf\xe9"), "1")
        .put(name(b"d\xff/\xfe"), "2")
        .put("tab\there", "3")
        .put("new\nline", "4")
        .put("caf\u{e9}", "5");
    check(&repo);
    repo.commit("first");
    repo.put(name(b"d\xff/\xfe"), "changed")
        .put(name(b"d\xff/more"), "6");
    check(&repo);
}

#[test]
fn what_sparse_checkout_leaves_out_is_not_deleted() {
    let repo = TestRepo::new();
    repo.put("in/a", "1")
        .put("out/b", "2")
        .put("out/deep/c", "3")
        .put("top", "4")
        .commit("first");
    repo.git(&["sparse-checkout", "set", "--no-sparse-index", "in"]);
    assert!(!repo.path().join("out").exists());
    check(&repo);
    repo.put("in/a", "changed").put("in/new", "5");
    check(&repo);
    repo.git(&["sparse-checkout", "disable"]);
    check(&repo);
}

#[test]
fn a_sparse_index_is_read() {
    let repo = TestRepo::new();
    repo.put("in/a", "1")
        .put("out/b", "2")
        .put("out/deep/c", "3")
        .put("top", "4")
        .commit("first");
    repo.git(&["sparse-checkout", "set", "--sparse-index", "in"]);
    check(&repo);
    repo.put("in/a", "changed");
    check(&repo);
}

#[test]
fn marks_in_the_index_are_honoured() {
    let repo = TestRepo::new();
    repo.put("assumed", "1")
        .put("skipped/a", "2")
        .put("skipped/b", "3")
        .put("c", "4")
        .commit("first");
    repo.git(&["update-index", "--assume-unchanged", "assumed"]);
    repo.git(&["update-index", "--skip-worktree", "skipped/a"]);
    repo.put("assumed", "changed");
    std::fs::remove_dir_all(repo.path().join("skipped")).unwrap();
    check(&repo);
    std::fs::remove_file(repo.path().join("assumed")).unwrap();
    repo.put("planned", "5").put("open", "6");
    repo.git(&["add", "-N", "planned", "open"]);
    check(&repo);
    std::fs::remove_file(repo.path().join("open")).unwrap();
    check(&repo);
}

#[test]
fn a_merge_in_progress_is_recorded() {
    let repo = TestRepo::new();
    repo.put("both", "base\n")
        .put("gone", "base\n")
        .put("fine", "x\n")
        .commit("base");
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.put("both", "side\n")
        .put("gone", "side\n")
        .commit("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.put("both", "main\n");
    std::fs::remove_file(repo.path().join("gone")).unwrap();
    repo.commit("main");
    assert!(
        !repo
            .command("git")
            .current_dir(repo.path())
            .args(["merge", "-q", "side"])
            .output()
            .unwrap()
            .status
            .success()
    );
    check(&repo);
    std::fs::remove_file(repo.path().join("both")).unwrap();
    check(&repo);
}

#[test]
fn names_that_git_refuses_are_left_out_and_named() {
    let repo = TestRepo::new();
    repo.put("a", "1")
        .put("git~1/x", "2")
        .put(".git /deep/x", "3")
        .put("sub/.GIT", "4")
        .put("sub/b", "5")
        .put("c/.Git::$DATA/x", "6");
    let snapshot = take(&repo.path(), &SnapshotLimits::default(), &[]);
    assert_eq!(
        left(&snapshot),
        [".git ", "c/.Git::$DATA", "git~1", "sub/.GIT"].map(|path| (path, &Reason::Name))
    );
    assert_eq!(paths(&repo, &snapshot), "a sub/b");
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn special_files_are_left_out_and_named() {
    let repo = TestRepo::new();
    repo.put("a", "1");
    assert!(
        repo.command("mkfifo")
            .arg(repo.path().join("pipe"))
            .status()
            .unwrap()
            .success()
    );
    let _socket = std::os::unix::net::UnixListener::bind(repo.path().join("socket")).unwrap();
    assert_eq!(
        left(&check(&repo)),
        [("pipe", &Reason::Special), ("socket", &Reason::Special)]
    );
    repo.put(".gitignore", "pipe\nsocket\n");
    assert_eq!(left(&check(&repo)), []);
}

#[test]
fn other_forms_of_index_and_head_are_read() {
    let repo = TestRepo::new();
    repo.put("a/b/c", "1").put("d", "2").commit("first");
    repo.git(&["update-index", "--split-index"]);
    repo.put("e", "3");
    repo.git(&["add", "e"]);
    check(&repo);
    repo.git(&["update-index", "--no-split-index", "--index-version", "4"]);
    repo.put("a/b/c", "changed");
    check(&repo);
    repo.git(&["checkout", "-q", "--detach"]);
    check(&repo);
    repo.git(&["update-index", "--untracked-cache"]);
    check(&repo);
}

#[test]
fn a_shallow_clone_is_read() {
    let source = TestRepo::new();
    source.put("a", "1").commit("one");
    source.put("a", "2").commit("two");
    let repo = TestRepo::new();
    let (url, clone) = (
        format!("file://{}", source.path().display()),
        repo.path().join("clone"),
    );
    repo.git(&["clone", "-q", "--depth=1", &url, clone.to_str().unwrap()]);
    std::fs::write(clone.join("b"), "3").unwrap();
    let snapshot = take(&clone, &SnapshotLimits::none(), &[]);
    assert_eq!(snapshot.tree.to_string(), gits_tree(&repo, &clone));
}

#[test]
fn sha256_repositories_are_read() {
    let repo = TestRepo::with(&["--object-format=sha256"]);
    repo.put("a", "1").put("dir/b", "2");
    check(&repo);
    repo.commit("first");
    repo.put("a", "changed");
    check(&repo);
}

#[test]
fn a_linked_worktree_has_a_snapshot_of_its_own() {
    let repo = TestRepo::new();
    repo.put("a", "1").put("dir/b", "2").commit("first");
    let linked = repo.beside("linked");
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        linked.to_str().unwrap(),
    ]);
    std::fs::write(linked.join("dir/b"), "changed").unwrap();
    std::fs::write(linked.join("new"), "3").unwrap();
    let there = check_at(&repo, &linked);
    assert_ne!(there.tree, check(&repo).tree);
}

#[test]
fn untracked_files_over_the_limits_are_left_out_but_not_tracked_ones() {
    let repo = TestRepo::new();
    let limits = SnapshotLimits {
        max_file_size: 4,
        ..SnapshotLimits::default()
    };
    repo.put("tracked", "12345")
        .put(".env", "TRACKED=1")
        .commit("first");
    repo.put("big", "12345")
        .put("small", "1234")
        .put("sub/id_rsa", "k")
        .put("sub/.env.local", "S=1")
        .put("x.key", "k");
    let expected = [
        ("big", &Reason::TooLarge(5)),
        ("sub/.env.local", &Reason::Secret),
        ("sub/id_rsa", &Reason::Secret),
        ("x.key", &Reason::Secret),
    ];
    for _ in 0..2 {
        let snapshot = take(&repo.path(), &limits, &[]);
        assert_eq!(left(&snapshot), expected);
        assert_eq!(paths(&repo, &snapshot), ".env small tracked");
    }
    repo.git(&["add", "big"]);
    assert_eq!(left(&take(&repo.path(), &limits, &[])), expected[1..]);
    assert_eq!(left(&take(&repo.path(), &SnapshotLimits::none(), &[])), []);
}

/// Assembled at run time, so that secret scanners don't find a token in this source.
fn token() -> String {
    format!("token = \"ghp_{}\"\n", "a9Zk3Qx7Lm2Vt8Rb5Nw4".repeat(2))
}

#[test]
fn promise_b7_an_untracked_file_with_a_key_is_left_out_but_not_a_tracked_one() {
    let repo = TestRepo::new();
    repo.put("tracked.py", token()).commit("first");
    repo.put("local.py", token())
        .put("sub/notes.md", "nothing yet\n")
        .put("image.bin", [b"\0", token().as_bytes()].concat());
    let key = Reason::Key("github token");
    for _ in 0..2 {
        let snapshot = take(&repo.path(), &SnapshotLimits::default(), &[]);
        assert_eq!(left(&snapshot), [("local.py", &key)]);
        assert_eq!(paths(&repo, &snapshot), "image.bin sub/notes.md tracked.py");
    }
    // A file with a key is left out even if earlier snapshots have it or if it is forced.
    repo.put("sub/notes.md", token())
        .put("tracked.py", token() + "x");
    for _ in 0..2 {
        let snapshot = take(&repo.path(), &SnapshotLimits::default(), &["local.py"]);
        assert_eq!(
            left(&snapshot),
            [("local.py", &key), ("sub/notes.md", &key)]
        );
        assert_eq!(paths(&repo, &snapshot), "image.bin tracked.py");
    }
    repo.put("sub/notes.md", "harmless again\n");
    repo.git(&["add", "local.py"]);
    let snapshot = take(&repo.path(), &SnapshotLimits::default(), &[]);
    assert_eq!(left(&snapshot), []);
    check(&repo);
}

#[test]
fn promise_b7_what_is_included_is_taken_until_it_is_not() {
    let repo = TestRepo::new();
    repo.put("docs/how.md", token()).put(".env", "A=1\n");
    let with = |include: &[&str]| SnapshotLimits {
        include: include.iter().map(|&pattern| pattern.to_owned()).collect(),
        ..SnapshotLimits::default()
    };
    let all = take(&repo.path(), &with(&["docs/*.md", ".env"]), &[]);
    assert_eq!(
        (left(&all).len(), paths(&repo, &all).as_str()),
        (0, ".env docs/how.md")
    );
    let some = take(&repo.path(), &with(&[".env"]), &[]);
    assert_eq!(left(&some), [("docs/how.md", &Reason::Key("github token"))]);
    assert_eq!(paths(&repo, &some), ".env");
    let none = take(&repo.path(), &SnapshotLimits::default(), &[]);
    assert_eq!(left(&none).len(), 2);
}

#[test]
fn promise_d4_what_a_turn_made_is_taken_with_just_that_content() {
    let repo = TestRepo::new();
    repo.put(".gitignore", "dist\n")
        .put("dist/a", "made\n")
        .put("dist/other", "x\n")
        .put(".env", "A=1\n");
    let limits = SnapshotLimits {
        max_file_size: 8,
        ..SnapshotLimits::default()
    };
    let made = |path: &str, content: &str| Forced {
        path: path.into(),
        created: Some(CreatedFile {
            id: repo.open().blob_id(content.as_bytes()).unwrap(),
            size: content.len() as u64,
        }),
    };
    let index = repo.path().join(".git/teddy/index/main");
    let force = [made("dist/a", "made\n"), made(".env", "A=1\n")];
    let take = || snapshot::take_snapshot(&repo.open(), &index, &limits, &force).unwrap();
    for _ in 0..2 {
        assert_eq!(paths(&repo, &take()), ".env .gitignore dist/a");
    }
    // After an edit by the user, the usual rules for secrets and large files apply again.
    repo.put(".env", "A=2\n").put("dist/a", "mine\n");
    let snapshot = take();
    assert_eq!(left(&snapshot)[0], (".env", &Reason::Secret));
    assert_eq!(paths(&repo, &snapshot), ".gitignore dist/a");
    repo.put("dist/a", "much more of it\n");
    assert_eq!(left(&take())[1], ("dist/a", &Reason::TooLarge(16)));
}

#[test]
fn a_file_that_grows_over_the_limit_is_left_out_from_then_on() {
    let repo = TestRepo::new();
    let limits = SnapshotLimits {
        max_file_size: 4,
        ..SnapshotLimits::default()
    };
    repo.put("log", "1234").put("kept", "1");
    assert_eq!(left(&take(&repo.path(), &limits, &[])), []);
    repo.put("log", "12345");
    assert_eq!(
        left(&take(&repo.path(), &limits, &[])),
        [("log", &Reason::TooLarge(5))]
    );
    repo.put("log", "1");
    assert_eq!(left(&take(&repo.path(), &limits, &[])), []);
}

#[test]
fn a_large_directory_that_is_not_ignored_stops_the_snapshot() {
    let repo = TestRepo::new();
    repo.put("tracked/a", "1")
        .put("tracked/b", "2")
        .put("tracked/c", "3")
        .put("tracked/d", "4")
        .commit("first");
    let limits = SnapshotLimits {
        max_new_files: 2,
        ..SnapshotLimits::default()
    };
    repo.put("tracked/a", "changed")
        .put("modules/a", "1")
        .put("modules/b", "2");
    take(&repo.path(), &limits, &[]);
    // The next snapshot reads files again that were written at the time of this one, and counts
    // them as new until then.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let recorded = take(&repo.path(), &limits, &[]);
    repo.put("modules/c", "3")
        .put("modules/d", "4")
        .put("e", "5");
    let index = repo.path().join(".git/teddy/index/main");
    let error = snapshot::take_snapshot(&repo.open(), &index, &limits, &[]).unwrap_err();
    assert!(
        error.to_string().starts_with("3 untracked files with 3 bytes would be recorded for the first time, most of them in `modules`"),
        "{error}"
    );
    repo.put(".gitignore", "modules/c\nmodules/d\n");
    let after = take(&repo.path(), &limits, &[]);
    assert_eq!(
        paths(&repo, &recorded),
        "modules/a modules/b tracked/a tracked/b tracked/c tracked/d"
    );
    assert_eq!(
        paths(&repo, &after),
        ".gitignore e modules/a modules/b tracked/a tracked/b tracked/c tracked/d"
    );
}

#[test]
fn rules_behind_a_link_do_not_count() {
    let repo = TestRepo::new();
    repo.put("rules", "*.log\n")
        .put("a.log", "1")
        .put("sub/a.log", "2")
        .put("sub/.gitignore/file", "3");
    symlink("rules", repo.path().join(".gitignore")).unwrap();
    check(&repo);
}

#[test]
fn forced_paths_are_taken_though_ignored() {
    let repo = TestRepo::new();
    repo.put(".gitignore", "target\n*.log\n")
        .put("target/a/made", "1")
        .put("target/a/other", "2")
        .put("b.log", "3")
        .put("c.log", "4");
    for _ in 0..2 {
        let snapshot = take(
            &repo.path(),
            &SnapshotLimits::default(),
            &["target/a/made", "b.log", "not/there"],
        );
        assert_eq!(paths(&repo, &snapshot), ".gitignore b.log target/a/made");
    }
    assert_eq!(paths(&repo, &check(&repo)), ".gitignore");
}

#[test]
fn a_private_index_that_is_damaged_or_outlived_by_gc_is_made_anew() {
    let repo = TestRepo::new();
    repo.put("a", "1").put("dir/b", "2").commit("first");
    repo.put("dir/b", "changed").put("new/c", "3");
    let index = repo.path().join(".git/teddy/index/main");
    let tree = check(&repo).tree;
    let whole = std::fs::read(&index).unwrap();
    for damaged in [&[][..], &whole[..whole.len() / 2], b"words"] {
        std::fs::write(&index, damaged).unwrap();
        assert_eq!(check(&repo).tree, tree);
    }
    let mut flipped = whole;
    *flipped.last_mut().unwrap() ^= 1;
    std::fs::write(&index, flipped).unwrap();
    assert_eq!(check(&repo).tree, tree);
    repo.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(check(&repo).tree, tree);
}

#[test]
fn many_new_objects_become_one_kept_pack() {
    let repo = TestRepo::new();
    for n in 0..700 {
        repo.put(format!("d{}/f{n}", n % 7), format!("content {n}\n"));
    }
    // The open repository keeps this process's packs.
    let opened = Repository::open(&repo.path()).unwrap();
    let snapshot = take(&repo.path(), &SnapshotLimits::none(), &[]);
    let keep = snapshot.keep.clone().expect("a pack was written");
    assert!(keep.exists());
    repo.git(&["verify-pack", keep.with_extension("idx").to_str().unwrap()]);
    repo.git(&["fsck", "--strict"]);
    let new = std::fs::metadata(&keep).unwrap().permissions().mode();
    for ending in ["pack", "idx"] {
        let mode = std::fs::metadata(keep.with_extension(ending))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(
            mode & 0o777,
            new & 0o444,
            "others who may read the repository may read what we add to it"
        );
    }
    assert!(repo.git(&["count-objects"]).starts_with("0 objects"));
    assert_eq!(snapshot.tree.to_string(), gits_tree(&repo, &repo.path()));
    assert_eq!(keep::release_all(&opened).unwrap(), 0);
    assert!(keep.exists());
    keep::release(&keep).unwrap();
    assert!(!keep.exists());
}

#[test]
fn a_pack_may_be_read_by_whoever_may_read_gits_own() {
    use std::os::unix::fs::PermissionsExt as _;
    let repo = TestRepo::new();
    repo.put("a", "1").commit("one");
    repo.git(&["repack", "-q", "-ad"]);
    let folder = repo.path().join(".git/objects/pack");
    let packs = || -> Vec<_> {
        std::fs::read_dir(&folder)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect()
    };
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let gits = packs();
    repo.put("b", "2");
    take(&repo.path(), &SnapshotLimits::none(), &[]);
    for ending in ["pack", "idx"] {
        let of = |files: Vec<PathBuf>| {
            files
                .into_iter()
                .find(|path| path.extension().unwrap() == ending)
                .unwrap()
        };
        let ours = of(packs()
            .into_iter()
            .filter(|path| !gits.contains(path))
            .collect());
        assert_eq!(mode(&ours), mode(&of(gits.clone())), "{}", ours.display());
    }
}

#[test]
fn a_few_paths_can_be_read_again() {
    let repo = TestRepo::new();
    repo.put(".gitattributes", "*.txt text\n")
        .put("a.txt", "1\r\n")
        .put("dir/b", "2")
        .put("dir/deep/c", "3")
        .put("was", "4")
        .commit("one");
    let base = take(&repo.path(), &SnapshotLimits::none(), &[]).tree;
    repo.put("a.txt", "changed\r\n")
        .put("dir/new/d", "5")
        .put("not asked for", "6");
    std::fs::remove_file(repo.path().join("dir/deep/c")).unwrap();
    std::fs::remove_file(repo.path().join("was")).unwrap();
    repo.put("was/now", "7");
    symlink("a.txt", repo.path().join("link")).unwrap();
    let opened = Repository::open(&repo.path()).unwrap();
    let paths = [
        "a.txt",
        "dir/new/d",
        "dir/deep/c",
        "was",
        "was/now",
        "link",
        "never/there",
    ];
    let paths: Vec<Vec<u8>> = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
    let snapshot = snapshot::snapshot_paths(&opened, base, &paths).unwrap();
    std::fs::remove_file(repo.path().join("not asked for")).unwrap();
    assert_eq!(snapshot.tree, check(&repo).tree);
}

#[test]
fn what_a_tree_lacks_is_found() {
    let repo = TestRepo::new();
    repo.put("a", "1")
        .put("dir/b", "2")
        .put("dir/c", "3")
        .commit("one");
    let opened = repo.open();
    let whole = teddy::git::refs::head_tree(&opened).unwrap();
    repo.put("dir/b", "changed").put("new/d", "4");
    repo.git(&["add", "-A"]);
    let tree = repo.git(&["write-tree"]).parse().unwrap();
    let missing = || {
        protect::find_new_objects(&opened, tree, &[whole], &HashSet::new())
            .unwrap()
            .present
            .into_iter()
            .filter(|&id| !opened.has(id))
            .collect::<Vec<_>>()
    };
    assert!(missing().is_empty());
    let lost = repo.git(&["rev-parse", &format!("{tree}:dir/b")]);
    std::fs::remove_file(
        repo.path()
            .join(".git/objects")
            .join(&lost[..2])
            .join(&lost[2..]),
    )
    .unwrap();
    assert_eq!(
        missing()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        [lost]
    );
    // Nothing below a missing directory can be listed. Bug: the directory itself was skipped.
    let lost = repo.git(&["rev-parse", &format!("{tree}:new")]);
    let objects = repo.path().join(".git/objects");
    std::fs::remove_file(objects.join(&lost[..2]).join(&lost[2..])).unwrap();
    let beyond = protect::find_new_objects(&repo.open(), tree, &[whole], &HashSet::new());
    let gone = beyond.unwrap().missing;
    let gone: Vec<String> = gone.iter().map(ToString::to_string).collect();
    assert_eq!(gone, [lost]);
}

#[test]
fn what_is_forced_holds_for_its_snapshot_alone() {
    let repo = TestRepo::new();
    repo.put(".gitignore", "out\n*.log\n")
        .put("out/a", "1\n")
        .put("out/deep/b", "2\n")
        .put("src/x.log", "3\n")
        .put("src/kept", "4\n")
        .put("other/kept", "5\n");
    // Directories that changed recently are read again anyway.
    let past = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    for folder in ["out/deep", "out", "src", "other", "."] {
        let folder = std::fs::File::open(repo.path().join(folder)).unwrap();
        folder.set_modified(past).unwrap();
    }

    let always = ".gitignore other/kept src/kept";
    for (force, expected) in [
        (&[][..], always),
        (&["out/a"][..], ".gitignore other/kept out/a src/kept"),
        (&["out/a"][..], ".gitignore other/kept out/a src/kept"),
        (
            &["out/deep/b", "src/x.log"][..],
            ".gitignore other/kept out/deep/b src/kept src/x.log",
        ),
        (&["other/none"][..], always),
        (&[][..], always),
    ] {
        let taken = take(&repo.path(), &SnapshotLimits::default(), force);
        assert_eq!(paths(&repo, &taken), expected, "{force:?}");
    }
}
