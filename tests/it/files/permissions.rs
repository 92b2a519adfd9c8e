//! Files and directories without read or write permission. TeDDy reports and leaves them, and
//! everything else works.
//!
//! Permissions don't apply to root, so root runs teddy as user `nobody` here.
//!
//! CI also runs this module as root.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::plans::{create, edit, execute, plan};
use crate::support::{Output, TestRepo};

/// User id of `nobody`.
const NOBODY: u32 = 65_534;

/// A project that belongs to `nobody` if the test runs as root. Its session has the files in
/// context. `None` if `nobody` cannot run teddy.
fn project() -> Option<TestRepo> {
    let repo = TestRepo::new()
        .file("a.txt", "a\n")
        .file("dir/b.txt", "b\n")
        .file("dir/c.txt", "c\n");
    repo.commit("init");
    if rustix::process::geteuid().is_root() {
        let top = repo.beside("");
        chmod(&top, 0o755);
        give(&top);
    }
    if run(&repo, &["new", "demo"]).is_none_or(|out| out.code != 0) {
        return None;
    }
    run(&repo, &["context", "add", "a.txt", "dir"])?.check(0, &[]);
    Some(repo)
}

/// Changes the owner of everything below a directory to `NOBODY`.
fn give(folder: &Path) {
    std::os::unix::fs::lchown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    if folder.is_dir() && !folder.is_symlink() {
        std::fs::read_dir(folder)
            .unwrap()
            .for_each(|entry| give(&entry.unwrap().path()));
    }
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs teddy as a user to whom permissions apply. `None` if that is not possible.
fn run(repo: &TestRepo, args: &[&str]) -> Option<Output> {
    let own = repo.teddy_command(args);
    if !rustix::process::geteuid().is_root() {
        return Some(repo.teddy(args));
    }
    let mut command = repo.command("setpriv");
    own.get_envs().for_each(|(name, value)| {
        value.map(|value| command.env(name, value));
    });
    let number = NOBODY.to_string();
    command
        .args([
            "--reuid",
            &number,
            "--regid",
            &number,
            "--clear-groups",
            "--",
        ])
        .arg(own.get_program())
        .args(own.get_args());
    let output = command
        .current_dir(repo.path())
        .stdin(std::process::Stdio::null())
        .output()
        .ok()?;
    // `setpriv` is missing, or `nobody` cannot reach the program.
    (!matches!(output.status.code(), Some(126 | 127))).then(|| Output::from(output))
}

/// Runs git in a repository of another user.
fn git(repo: &TestRepo, args: &[&str]) -> String {
    repo.git(&[&["-c", "safe.directory=*"], args].concat())
}

fn tree(repo: &TestRepo) -> String {
    let stash = repo.beside("objects");
    std::fs::create_dir_all(&stash).unwrap();
    let run = |args: &[&str]| {
        let mut command = repo.command("git");
        command
            .env("GIT_INDEX_FILE", repo.beside("index"))
            .env("GIT_OBJECT_DIRECTORY", &stash);
        command.env(
            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
            repo.path().join(".git/objects"),
        );
        Output::of(
            command
                .current_dir(repo.path())
                .args(["-c", "safe.directory=*"])
                .args(args),
        )
        .stdout
    };
    run(&["read-tree", "--empty"]);
    run(&["add", "-A"]);
    run(&["write-tree"]).trim().to_owned()
}

fn run_plan(repo: &TestRepo, text: &str) -> Output {
    let path = repo.beside("plan.md");
    std::fs::write(&path, text).unwrap();
    chmod(&path, 0o644);
    run(repo, &["execute", "../plan.md", "-y"]).unwrap()
}

#[test]
fn what_is_in_a_folder_that_may_not_be_read_counts_as_git_knows_it() {
    let Some(repo) = project() else { return };
    chmod(&repo.path().join("dir"), 0o000);
    for number in 0..3 {
        run_plan(
            &repo,
            &plan("More", &[create(&format!("{number}.txt"), "x\n")]),
        )
        .check(0, &[]);
        run(&repo, &["status"])
            .unwrap()
            .check(0, &["as the newest turn left them"]);
        let named = git(
            &repo,
            &["ls-tree", "-r", "--name-only", "teddy/sessions/demo^2"],
        );
        assert!(named.contains("dir/b.txt\ndir/c.txt"), "{named}");
        assert!(git(&repo, &["show", "teddy/sessions/demo:meta.yaml"]).contains("- path: dir"));
    }
    chmod(&repo.path().join("dir"), 0o755);
    assert_eq!(
        tree(&repo),
        git(&repo, &["rev-parse", "teddy/sessions/demo^2^{tree}"])
    );
}

#[test]
fn nothing_is_changed_beside_a_file_that_may_not_be() {
    let changes = [edit("a.txt", "a", "A"), edit("dir/b.txt", "b", "B")];
    let deletes = [execute("rm dir/b.txt; echo A > a.txt")];
    for (actions, mode) in [
        (&changes[..], 0o555),
        (&deletes, 0o555),
        (&deletes, 0o000),
        (&[create("dir/new/x.txt", "x\n")], 0o555),
    ] {
        let Some(repo) = project() else { return };
        // A checkout, because in an overlay the command itself cannot write what the user cannot.
        repo.configure("worktree: { backend: checkout }\n");
        let before = tree(&repo);
        chmod(&repo.path().join("dir"), mode);
        run_plan(&repo, &plan("Change", actions))
            .check(4, &["or its directory is read-only", "restore @ --theirs"]);
        run(&repo, &["new", "other"]).unwrap().check(0, &[]);
        chmod(&repo.path().join("dir"), 0o755);
        assert_eq!(tree(&repo), before);
        run(&repo, &["-s", "demo", "restore", "@", "--theirs"])
            .unwrap()
            .check(0, &[]);
        assert_eq!(
            tree(&repo),
            git(&repo, &["rev-parse", "teddy/sessions/demo^2^{tree}"])
        );
        run(&repo, &["-s", "demo", "undo"]).unwrap().check(0, &[]);
        assert_eq!(tree(&repo), before);
    }
}

#[test]
fn a_file_that_may_not_be_read_is_named_and_stays() {
    let Some(repo) = project() else { return };
    for (path, text) in [("a.txt", "mine\n"), ("secret", "s\n")] {
        repo.write(path, text);
        chmod(&repo.path().join(path), 0o000);
    }
    if rustix::process::geteuid().is_root() {
        give(&repo.path());
    }
    run_plan(&repo, &plan("Change", &[edit("dir/b.txt", "b", "B")])).check(0, &[]);
    let meta = git(&repo, &["show", "teddy/sessions/demo:meta.yaml"]);
    assert!(
        meta.contains("- path: a.txt\n  reason: 'unreadable")
            && meta.contains("- path: secret\n  reason: 'unreadable"),
        "{meta}"
    );
    run_plan(&repo, &plan("Change", &[edit("a.txt", "a", "A")])).check(4, &["`a.txt`"]);
    run(&repo, &["restore", "0"])
        .unwrap()
        .check(0, &["write dir/b.txt"]);
    for (path, text) in [("a.txt", "mine\n"), ("secret", "s\n")] {
        chmod(&repo.path().join(path), 0o644);
        assert_eq!(repo.read(path), text);
    }
}

#[test]
fn a_session_of_somebody_elses_repository_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let Some(repo) = project() else { return };
    std::os::unix::fs::lchown(repo.path().join(".git"), Some(0), Some(0)).unwrap();
    let out = run(&repo, &["status"]).unwrap();
    let top = repo.path().display().to_string();
    out.check(
        1,
        &["belongs to another user", &format!("safe.directory {top}`")],
    );
}

/// Returns the permissions of a file.
fn mode(repo: &TestRepo, name: &str) -> u32 {
    let found = repo.path().join(name).metadata().unwrap();
    found.permissions().mode() & 0o777
}

#[test]
fn a_file_that_a_command_closed_to_others_stays_closed() {
    for backend in ["overlay", "checkout"] {
        if backend == "overlay" && !crate::support::overlay::overlays() {
            continue;
        }
        let repo = TestRepo::new().file("a.txt", "a\n");
        repo.commit("init");
        repo.done(&["new", "demo"]);
        let script = "umask 022; mkdir d; echo p > plain; echo k > d/secret; chmod 600 d/secret; \
                      echo t > tool; chmod 700 tool";
        let plan = plan("Make files", &[execute(script)]);
        let setting = format!("worktree.backend={backend}");
        repo.teddy_reads(&["execute", "-", "-y", "-c", &setting], plan)
            .check(0, &[]);
        let modes = || ["plain", "d/secret", "tool"].map(|name| mode(&repo, name));
        assert_eq!(modes(), [0o644, 0o600, 0o700], "{backend}");
        repo.done(&["undo"]);
        assert!(!repo.path().join("d").exists());
        repo.done(&["redo"]);
        assert_eq!(modes(), [0o644, 0o600, 0o700], "{backend}, after a redo");

        // The user opens one and closes the other.
        chmod(&repo.path().join("d/secret"), 0o644);
        chmod(&repo.path().join("plain"), 0o600);
        repo.done(&["undo"]);
        repo.done(&["restore", "1"]);
        assert_eq!(modes(), [0o600, 0o644, 0o700], "{backend}, after a restore");
    }
}

#[test]
fn a_private_file_of_the_users_comes_back_private() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    let repo = repo.file("mine.txt", "mine\n");
    chmod(&repo.path().join("mine.txt"), 0o600);
    repo.run_plan(&plan("Remove it", &[execute("rm mine.txt")]));
    assert!(!repo.path().join("mine.txt").exists());
    repo.done(&["undo"]);
    assert_eq!(mode(&repo, "mine.txt"), 0o600);
}
