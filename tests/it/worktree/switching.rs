//! Session worktrees are created, switched and repaired, and never disturb the user.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::TestRepo;
use teddy::git::snapshot::limits::SnapshotLimits;
use teddy::git::worktree;
use teddy::git::worktree::provision;
use teddy::git::worktree::{Extent, SessionWorktree, WorktreeTarget};

/// Opens the session's worktree at a commit.
fn open(repo: &TestRepo, at: &str) -> SessionWorktree {
    try_open(repo, at).unwrap_or_else(|error| panic!("{error:#}"))
}

fn try_open(repo: &TestRepo, at: &str) -> anyhow::Result<SessionWorktree> {
    let (user, commit) = (repo.open(), at.parse().unwrap());
    let root = repo.beside("worktrees");
    let worktree = worktree::session_worktree(
        &user,
        &root,
        "demo",
        WorktreeTarget::unwatched(commit, Extent::All),
    )?;
    worktree.make_git_dir(&user, commit)?;
    Ok(worktree)
}

fn place(repo: &TestRepo) -> PathBuf {
    repo.beside("worktrees").join("demo")
}

/// Checks that the worktree contains exactly the files of a commit.
fn check(repo: &TestRepo, at: &str) {
    let run = |args: &[&str]| repo.git_in(&place(repo), args);
    assert_eq!(run(&["status", "--porcelain"]), "");
    assert_eq!(run(&["rev-parse", "HEAD"]), at);
    // `git status` trusts the times in the index. This reads every file.
    assert_eq!(
        repo.tree_in(&place(repo)),
        run(&["rev-parse", &format!("{at}^{{tree}}")])
    );
}

fn every_kind() -> (TestRepo, String) {
    let repo = TestRepo::new()
        .file("a", "1")
        .file("d/e/f", "1")
        .file("run", "#!/bin/sh\n")
        .file("crlf.txt", "1\r\n2\r\n")
        .file(".gitattributes", "*.txt text eol=crlf\n")
        .file(".gitignore", "/target\n*.o\n");
    std::fs::set_permissions(
        repo.path().join("run"),
        std::fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    symlink("d/e", repo.path().join("link")).unwrap();
    let commit = repo.commit("one");
    (repo, commit)
}

fn read(repo: &TestRepo, path: &str) -> String {
    std::fs::read_to_string(place(repo).join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn write(repo: &TestRepo, path: &str, content: &str) {
    let path = place(repo).join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Captures what must not change in the user's repository.
fn user_state(repo: &TestRepo) -> [String; 4] {
    let index = std::fs::read(repo.path().join(".git/index")).unwrap();
    let config = std::fs::read_to_string(repo.path().join(".git/config")).unwrap();
    [
        format!("{index:?}"),
        config,
        repo.git(&["rev-parse", "HEAD"]),
        repo.git(&["for-each-ref"]),
    ]
}

#[test]
fn a_new_worktree_has_the_files_of_the_commit_and_the_users_git_does_not_know_it() {
    let (repo, commit) = every_kind();
    let before = user_state(&repo);
    assert!(open(&repo, &commit).fresh);
    check(&repo, &commit);
    assert_eq!(read(&repo, "crlf.txt"), "1\r\n2\r\n");
    assert_eq!(
        std::fs::read_link(place(&repo).join("link")).unwrap(),
        Path::new("d/e")
    );
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
    let listed: Vec<_> = worktree::session_worktrees(&repo.open());
    let listed: Vec<_> = listed
        .iter()
        .map(|listed| (listed.session.as_str(), listed.path.clone()))
        .collect();
    assert_eq!(listed, [("demo", place(&repo))]);
    assert_eq!(user_state(&repo), before);
}

/// Bug: commands saw other bytes than the user's git writes.
#[test]
fn a_new_worktree_has_the_bytes_that_git_writes() {
    let repo = TestRepo::new()
        .file(".gitattributes", "*.c ident\n")
        .file("x.c", "$Id$\n");
    let commit = repo.commit("one");
    let blob = repo.git(&["rev-parse", "HEAD:x.c"]);
    open(&repo, &commit);
    assert_eq!(read(&repo, "x.c"), format!("$Id: {blob} $\n"));
}

#[test]
fn a_lost_worktree_is_made_anew() {
    let (repo, commit) = every_kind();
    open(&repo, &commit);
    std::fs::remove_dir_all(place(&repo)).unwrap();
    assert_eq!(worktree::session_worktrees(&repo.open()).len(), 1);
    assert!(open(&repo, &commit).fresh);
    check(&repo, &commit);
}

#[test]
fn a_switch_writes_only_what_differs() {
    let (repo, one) = every_kind();
    open(&repo, &one);
    let inode = |path: &str| {
        let metadata = std::fs::metadata(place(&repo).join(path)).unwrap();
        (metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
    };
    let before = inode("a");
    repo.write("d/e/f", "2");
    repo.write("crlf.txt", "3\r\n");
    repo.write("new/file", "2");
    repo.remove("run");
    let two = repo.commit("two");
    assert!(!open(&repo, &two).fresh);
    check(&repo, &two);
    assert_eq!(
        (read(&repo, "d/e/f"), read(&repo, "crlf.txt")),
        ("2".to_owned(), "3\r\n".to_owned())
    );
    assert_eq!(inode("a"), before);
    open(&repo, &one);
    check(&repo, &one);
    assert!(!place(&repo).join("new").exists(), "an empty folder stayed");
}

#[test]
fn what_a_turn_left_goes_and_what_is_ignored_stays() {
    let (repo, one) = every_kind();
    open(&repo, &one);
    for path in [
        "left",
        "deep/er/left",
        "target/cache",
        "d/e/x.o",
        "own/.gitignore",
    ] {
        write(&repo, path, "*");
    }
    write(&repo, "a", "changed");
    open(&repo, &one);
    check(&repo, &one);
    assert_eq!(read(&repo, "a"), "1");
    assert!(!place(&repo).join("left").exists() && !place(&repo).join("deep").exists());
    for path in ["target/cache", "d/e/x.o", "own/.gitignore"] {
        assert_eq!(read(&repo, path), "*");
    }
}

/// Checks that files which already have the new content keep their times.
fn check_times_stay(bring: impl Fn(&TestRepo, &str) -> SessionWorktree) {
    let (repo, one) = every_kind();
    open(&repo, &one);
    write(&repo, "a", "made by the turn");
    write(&repo, "new/file", "made by the turn");
    let stamp = |path: &str| {
        std::fs::metadata(place(&repo).join(path))
            .unwrap()
            .modified()
            .unwrap()
    };
    let before = [stamp("a"), stamp("new/file")];
    repo.write("a", "made by the turn");
    repo.write("new/file", "made by the turn");
    let two = repo.commit("two");
    bring(&repo, &two);
    check(&repo, &two);
    assert_eq!([stamp("a"), stamp("new/file")], before);
}

/// Opens the worktree at a commit with a check of these paths only.
fn open_at(repo: &TestRepo, at: &str, paths: &[&str]) -> SessionWorktree {
    let paths: Vec<Vec<u8>> = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
    let (user, commit) = (repo.open(), at.parse().unwrap());
    let worktree = worktree::session_worktree(
        &user,
        &repo.beside("worktrees"),
        "demo",
        WorktreeTarget::unwatched(commit, Extent::Paths(&paths)),
    )
    .unwrap();
    worktree.make_git_dir(&user, commit).unwrap();
    worktree
}

#[test]
fn a_file_that_is_right_already_keeps_its_time() {
    check_times_stay(open);
    check_times_stay(|repo, at| open_at(repo, at, &[]));
}

#[test]
fn a_look_at_some_paths_puts_these_right_and_what_differs() {
    let (repo, zero) = every_kind();
    open(&repo, &zero);
    let one = repo.put("a", "1.").commit("one");
    // A second open makes the index newer than all files. A file as new as the index would be read
    // in any case.
    open(&repo, &one);
    repo.write("d/e/f", "2");
    repo.write("new/file", "2");
    repo.remove("run");
    let two = repo.commit("two");
    for (path, content) in [
        ("a", "changed"),
        ("left/here", "x"),
        ("crlf.txt", "y"),
        ("other", "x"),
        ("d/.gitattributes", "* text\n"),
    ] {
        write(&repo, path, content);
    }
    write(&repo, "new", "in the way of a folder");
    write(&repo, "target/cache", "ignored");
    assert!(
        !open_at(
            &repo,
            &two,
            &["a", "left/here", "target/cache", "gone/deep"]
        )
        .fresh
    );
    assert_eq!(
        (
            read(&repo, "a"),
            read(&repo, "d/e/f"),
            read(&repo, "new/file")
        ),
        ("1.".to_owned(), "2".to_owned(), "2".to_owned())
    );
    assert!(!place(&repo).join("left").exists() && !place(&repo).join("run").exists());
    assert_eq!(
        (
            read(&repo, "target/cache"),
            read(&repo, "crlf.txt"),
            read(&repo, "other")
        ),
        ("ignored".into(), "y".into(), "x".into())
    );
    assert_eq!(
        repo.git_in(&place(&repo), &["status", "--porcelain"]),
        " M crlf.txt\n?? other"
    );
    open(&repo, &two);
    check(&repo, &two);
}

#[test]
fn what_a_look_at_some_paths_left_alone_is_found_by_the_next_whole_one() {
    let (repo, one) = every_kind();
    let two = repo.put("d/e/f", "2").commit("two");
    for _ in 0..20 {
        open(&repo, &one);
        write(&repo, "a", "2");
        open_at(&repo, &two, &[]);
        open_at(&repo, &one, &["d/e/f"]);
        open(&repo, &two);
        check(&repo, &two);
    }
}

#[test]
fn what_a_command_writes_to_its_index_is_not_believed() {
    let (repo, one) = every_kind();
    open(&repo, &one);
    write(&repo, "a", "2");
    let run = |args: &[&str]| repo.git_in(&place(&repo), args);
    run(&["add", "a"]);
    run(&["update-index", "--assume-unchanged", "a", "run"]);
    run(&["update-index", "--skip-worktree", "d/e/f"]);
    run(&["rm", "-q", "--cached", "link"]);
    write(&repo, "d/e/f", "2");
    write(&repo, "run", "2");
    open(&repo, &one);
    check(&repo, &one);
}

#[test]
fn a_change_of_the_same_size_in_the_moment_of_the_switch_is_seen() {
    let repo = TestRepo::new().file("a", "one").file("b", "1");
    let one = repo.commit("one");
    let two = repo.put("b", "2").commit("two");
    for round in 0..40 {
        let at = [&one, &two][round % 2];
        open(&repo, at);
        assert_eq!(read(&repo, "a"), "one", "round {round}");
        write(&repo, "a", "two");
    }
}

#[test]
fn a_switch_gets_over_whatever_a_plan_did() {
    let (repo, one) = every_kind();
    open(&repo, &one);
    let outside = repo.beside("outside");
    std::fs::create_dir_all(outside.join("e")).unwrap();
    std::fs::write(outside.join("e/f"), "not ours").unwrap();
    let run = |args: &[&str]| repo.git_in(&place(&repo), args);
    run(&["checkout", "-q", "-b", "plan"]);
    write(&repo, "committed", "x");
    run(&["add", "-A"]);
    run(&["commit", "-q", "-m", "by the plan"]);
    run(&["rm", "-rqf", "d", "a", "run"]);
    symlink(&outside, place(&repo).join("d")).unwrap();
    write(&repo, "a/folder", "x");
    write(&repo, "run/cache.o", "x");
    let git_dir = PathBuf::from(run(&["rev-parse", "--absolute-git-dir"]));
    std::fs::write(git_dir.join("index.lock"), "").unwrap();
    std::fs::write(git_dir.join("MERGE_HEAD"), &one).unwrap();
    let again = open(&repo, &one);
    assert!(!again.fresh);
    check(&repo, &one);
    assert_eq!(
        std::fs::read_to_string(outside.join("e/f")).unwrap(),
        "not ours"
    );
    assert_eq!(repo.git(&["branch", "--list", "plan"]), "");
}

#[test]
fn an_unmerged_index_is_got_over() {
    let (repo, one) = every_kind();
    repo.write("a", "2");
    let two = repo.commit("two");
    open(&repo, &one);
    write(&repo, "a", "3");
    let run = |args: &[&str]| repo.git_in(&place(&repo), args);
    run(&["commit", "-qam", "three"]);
    let mut merge = repo.command("git");
    assert!(
        !merge
            .current_dir(place(&repo))
            .args(["merge", "-q", &two])
            .output()
            .unwrap()
            .status
            .success()
    );
    open(&repo, &one);
    check(&repo, &one);
}

#[test]
fn a_damaged_worktree_is_made_anew() {
    let damages: [fn(&Path, &Path); 9] = [
        |_, record| std::fs::remove_dir_all(record).unwrap(),
        |_, record| std::fs::write(record.join("index"), "garbage").unwrap(),
        |_, record| std::fs::write(record.join("index"), "").unwrap(),
        |_, record| std::fs::write(record.join("tree"), "garbage").unwrap(),
        |_, record| std::fs::write(record.join("root"), "/nowhere").unwrap(),
        |path, _| std::fs::remove_dir_all(path.join(".git")).unwrap(),
        |path, _| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap(),
        |path, _| {
            std::fs::remove_dir_all(path).unwrap();
            symlink("/", path).unwrap();
        },
        |path, _| {
            std::fs::remove_dir_all(path).unwrap();
            std::fs::write(path, "").unwrap();
        },
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let (repo, commit) = every_kind();
        open(&repo, &commit);
        damage(
            &place(&repo),
            &repo.path().join(".git/teddy/worktrees/demo"),
        );
        open(&repo, &commit);
        check(&repo, &commit);
        let listed = worktree::session_worktrees(&repo.open());
        assert_eq!(
            (listed.len(), listed[0].path.clone()),
            (1, place(&repo)),
            "damage {number}"
        );
    }
}

#[test]
fn something_else_in_the_way_is_an_error() {
    let (repo, commit) = every_kind();
    std::fs::create_dir_all(place(&repo)).unwrap();
    std::fs::write(place(&repo).join("mine"), "x").unwrap();
    let error = try_open(&repo, &commit)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    let path = place(&repo).display().to_string();
    assert_eq!(
        error,
        format!(
            "`{path}` is in the way: it is not a worktree of this repository; move it away, or set `worktree.root`"
        )
    );
    assert_eq!(read(&repo, "mine"), "x");
}

#[test]
fn it_works_from_a_linked_worktree_and_is_removed_again() {
    let (repo, commit) = every_kind();
    repo.git(&["worktree", "add", "-q", "../linked"]);
    let linked =
        teddy::git::repository::Repository::discover(&repo.beside("linked"), None).unwrap();
    let worktree = worktree::session_worktree(
        &linked,
        &repo.beside("worktrees"),
        "demo",
        WorktreeTarget::unwatched(commit.parse().unwrap(), Extent::All),
    )
    .unwrap();
    worktree
        .make_git_dir(&linked, commit.parse().unwrap())
        .unwrap();
    check(&repo, &commit);
    assert!(worktree::remove_session_worktree(&linked, "demo").unwrap());
    assert!(!worktree::remove_session_worktree(&linked, "demo").unwrap());
    assert!(!place(&repo).exists());
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 2);
}

#[test]
fn shallow_and_sha256_repositories_have_worktrees_too() {
    let (repo, _) = every_kind();
    repo.write("a", "2");
    let tip = repo.commit("two");
    let from = format!("file://{}", repo.path().display());
    repo.git(&["clone", "-q", "--depth", "1", &from, "../shallow"]);
    repo.git(&["init", "-q", "--object-format=sha256", "../sha256"]);
    std::fs::write(repo.beside("sha256").join("a"), "2").unwrap();
    repo.git_in(&repo.beside("sha256"), &["add", "-A"]);
    repo.git_in(&repo.beside("sha256"), &["commit", "-qm", "one"]);
    let other = repo.git_in(&repo.beside("sha256"), &["rev-parse", "HEAD"]);
    for (name, at) in [("shallow", tip), ("sha256", other)] {
        let repository =
            teddy::git::repository::Repository::discover(&repo.beside(name), None).unwrap();
        for _ in 0..2 {
            let worktree = worktree::session_worktree(
                &repository,
                &repo.beside("worktrees"),
                name,
                WorktreeTarget::unwatched(at.parse().unwrap(), Extent::All),
            )
            .unwrap();
            worktree
                .make_git_dir(&repository, at.parse().unwrap())
                .unwrap();
            let path = repo.beside("worktrees").join(name);
            assert_eq!(repo.git_in(&path, &["status", "--porcelain"]), "");
            assert_eq!(std::fs::read_to_string(path.join("a")).unwrap(), "2");
        }
    }
}

#[test]
fn a_submodule_is_an_empty_folder() {
    let (repo, _) = every_kind();
    let (other, _) = every_kind();
    let from = other.path().display().to_string();
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        &from,
        "sub",
    ]);
    let commit = repo.commit("with a submodule");
    for fresh in [true, false] {
        assert_eq!(open(&repo, &commit).fresh, fresh);
        check(&repo, &commit);
        assert!(place(&repo).join("sub").is_dir());
    }
}

#[test]
fn ignored_files_are_copied_or_linked_and_others_are_not() {
    use teddy::git::worktree::provision::{ProvisionRules, ProvisionedFiles};
    let repo = TestRepo::new()
        .file(".gitignore", ".env*\nnode_modules/\nvendor/\n*.secret\n")
        .file("a", "1");
    repo.write(
        ".worktreeinclude",
        "# what the tests need\n.env\nvendor/keep/\n",
    );
    let commit = repo.commit("one");
    for path in [
        ".env",
        "sub/.env",
        ".env.local",
        "node_modules/x/y",
        "vendor/keep/z",
        "vendor/other",
        "b.secret",
        "untracked",
    ] {
        repo.write(path, path);
    }
    let worktree = open(&repo, &commit);
    let bring = |copy: &[&str], link: &[&str]| {
        let own = |patterns: &[&str]| patterns.iter().map(|&p| p.to_owned()).collect();
        let mut brought = provision::provision_files(
            &worktree,
            &repo.open(),
            &ProvisionRules {
                copy: own(copy),
                link: own(link),
            },
            &SnapshotLimits::none(),
        )
        .unwrap();
        brought.copied.sort();
        brought
    };
    let paths = |paths: &[&str]| {
        paths
            .iter()
            .map(|path| path.as_bytes().to_vec())
            .collect::<Vec<_>>()
    };
    let brought = bring(&["*.secret", "untracked", "a"], &["node_modules"]);
    let expected = ProvisionedFiles {
        copied: paths(&[".env", "b.secret", "sub/.env", "vendor/keep/z"]),
        linked: paths(&["node_modules"]),
        ..ProvisionedFiles::default()
    };
    assert_eq!(brought, expected);
    assert_eq!(read(&repo, "node_modules/x/y"), "node_modules/x/y");
    assert_eq!(
        std::fs::read_link(place(&repo).join("node_modules")).unwrap(),
        repo.path().join("node_modules")
    );
    assert_ne!(
        std::fs::metadata(repo.path().join(".env")).unwrap().ino(),
        std::fs::metadata(place(&repo).join(".env")).unwrap().ino()
    );

    std::fs::set_permissions(
        repo.path().join(".env"),
        std::fs::Permissions::from_mode(0o444),
    )
    .unwrap();
    repo.remove(".env");
    repo.write(".env", "changed");
    std::fs::set_permissions(
        repo.path().join(".env"),
        std::fs::Permissions::from_mode(0o444),
    )
    .unwrap();
    let brought = bring(&[], &["node_modules"]);
    assert_eq!(
        (brought.copied, read(&repo, ".env")),
        (paths(&[".env"]), "changed".to_owned())
    );
    open(&repo, &commit);
    assert_eq!(read(&repo, ".env"), "changed");
    assert_eq!(
        repo.read("node_modules/x/y"),
        "node_modules/x/y",
        "a switch followed the link"
    );
}

#[test]
fn a_list_of_what_to_bring_is_a_file_of_the_project() {
    let repo = TestRepo::new().file("a", "1");
    let commit = repo.commit("one");
    let worktree = open(&repo, &commit);
    assert!(
        repo.command("mkfifo")
            .arg(repo.beside("pipe"))
            .status()
            .unwrap()
            .success()
    );
    std::os::unix::fs::symlink("../pipe", repo.path().join(".worktreeinclude")).unwrap();
    // A read of the pipe would block forever.
    let error = provision::provision_files(
        &worktree,
        &repo.open(),
        &teddy::git::worktree::provision::ProvisionRules::default(),
        &SnapshotLimits::none(),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read `.worktreeinclude`: it is not a regular file"
    );
}

#[test]
fn the_worktrees_are_the_users_alone_to_read() {
    let repo = TestRepo::new().file("a", "1");
    let commit = repo.commit("one");
    worktree::session_worktree(
        &repo.open(),
        &repo.beside("new/root"),
        "s",
        WorktreeTarget::unwatched(commit.parse().unwrap(), Extent::All),
    )
    .unwrap();
    assert_eq!(
        std::fs::metadata(repo.beside("new/root"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
}

#[test]
fn a_long_life_of_switches_and_plans_ends_right_every_time() {
    let (repo, first) = every_kind();
    let mut commits = vec![first];
    let names = ["a", "d/e/f", "d/x", "run", "n/m/o", "n/m", "crlf.txt", "z"];
    for step in 0..6_usize {
        let name = names[(step * 3 + 2) % names.len()];
        let path = repo.path().join(name);
        if path.exists() || path.parent().is_some_and(Path::is_file) {
            repo.remove(if path.exists() { name } else { "n/m" });
        } else {
            repo.write(name, format!("step {step}\r\n"));
        }
        commits.push(repo.commit("step"));
    }
    for step in 0..14_usize {
        let at = &commits[(step * 5 + step / 3) % commits.len()];
        assert_eq!(open(&repo, at).fresh, step == 0, "step {step}");
        check(&repo, at);
        let run = |args: &[&str]| repo.git_in(&place(&repo), args);
        let name = names[(step * 7) % names.len()];
        let path = place(&repo).join(name);
        match step % 4 {
            0 if path.is_file() => write(&repo, name, "by the plan"),
            1 => drop(run(&["add", "-A"])),
            2 if path.is_file() => std::fs::remove_file(path).unwrap(),
            3 => {
                write(&repo, "plan/own", "by the plan");
                run(&["add", "-A"]);
                run(&["commit", "-qm", "by the plan"]);
            }
            _ => {}
        }
    }
}
