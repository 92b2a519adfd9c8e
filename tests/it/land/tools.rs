//! `land` with the hook managers, filters and signing programs that real repositories use. What a
//! machine lacks is skipped and named. `TEDDY_NODE_MODULES` names a `node_modules` with husky,
//! lint-staged, commitlint and its conventional configuration.

use std::path::PathBuf;

use crate::plans::{create, execute, plan};
use crate::support::landing::{check_clean, status};
use crate::support::{Output, TestRepo, skipped};

/// Returns whether a program is installed; says so if it is not.
fn has(repo: &TestRepo, program: &str) -> bool {
    let mut command = repo.command(program);
    let found = command.arg("--version").output();
    let is_there = found.is_ok_and(|out| out.status.success());
    if !is_there {
        skipped(&format!("`{program}` is not installed"));
    }
    is_there
}

fn run(repo: &TestRepo, program: &str, args: &[&str]) {
    let mut command = repo.command(program);
    Output::of(command.current_dir(repo.path()).args(args)).check(0, &[]);
}

/// A project with edits of the user's, staged or not, beside a turn that changes `a.txt` and makes
/// `new.txt`.
fn project(files: &[(&str, &str)]) -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "raw\n")
        .file("own.txt", "own\n")
        .file(".gitignore", "node_modules\n");
    for (name, content) in files {
        repo.write(name, content);
    }
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.write("own.txt", "own\nraw mine\n");
    repo.write("staged.txt", "raw staged\n");
    repo.git(&["add", "staged.txt"]);
    repo
}

fn turn(repo: &TestRepo) {
    let actions = [execute("echo raw2 >> a.txt"), create("new.txt", "raw3\n")];
    repo.run_plan(&plan("Work", &actions));
}

/// Checks that the landing has what a formatter made, and that the user's edits are untouched.
#[track_caller]
fn check_formatted(repo: &TestRepo) {
    assert_eq!(repo.git(&["show", "HEAD:a.txt"]), "FIXED\nFIXED2");
    assert_eq!(repo.git(&["show", "HEAD:new.txt"]), "FIXED3");
    assert_eq!(repo.read("a.txt"), "FIXED\nFIXED2\n");
    assert_eq!(repo.read("own.txt"), "own\nraw mine\n");
    assert_eq!(status(repo), " M own.txt\nA  staged.txt");
    assert_eq!(repo.git(&["stash", "list"]), "");
    check_clean(repo);
}

#[test]
fn pre_commit() {
    const CONFIG: &str = "repos:\n- repo: local\n  hooks:\n  - {id: fix, name: fix, \
                          entry: sed -i s/raw/FIXED/, language: system, files: txt$}\n";
    let repo = project(&[(".pre-commit-config.yaml", CONFIG)]);
    if !has(&repo, "pre-commit") {
        return;
    }
    run(&repo, "pre-commit", &["install"]);
    turn(&repo);
    let out = repo.teddy(&["land", "-m", "Land"]);
    out.check(1, &["before it refused, a hook changed `a.txt`, `new.txt`"]);
    repo.done(&["land", "-m", "Land", "--with-repairs"]);
    check_formatted(&repo);
}

#[test]
fn lefthook() {
    const CONFIG: &str = "pre-commit:\n  commands:\n    fix:\n      run: sed -i s/raw/FIXED/ {staged_files}\n      \
                          stage_fixed: true\n      glob: '*.txt'\n";
    let repo = project(&[("lefthook.yml", CONFIG)]);
    if !has(&repo, "lefthook") {
        return;
    }
    run(&repo, "lefthook", &["install"]);
    turn(&repo);
    repo.done(&["land", "-m", "Land"]);
    check_formatted(&repo);
}

#[test]
fn husky_with_lint_staged_and_commitlint() {
    let Some(modules) = teddy::host::env::var_os("TEDDY_NODE_MODULES").map(PathBuf::from) else {
        skipped("`TEDDY_NODE_MODULES` names no directory");
        return;
    };
    const PACKAGE: &str = r#"{"name": "x", "type": "module",
        "lint-staged": {"*.txt": ["sed -i s/raw/FIXED/"]},
        "commitlint": {"extends": ["@commitlint/config-conventional"]}}"#;
    let repo = project(&[
        ("package.json", PACKAGE),
        (".husky/pre-commit", "npx lint-staged\n"),
        (
            ".husky/commit-msg",
            "npx --no-install commitlint --edit \"$1\"\n",
        ),
    ]);
    std::os::unix::fs::symlink(modules, repo.path().join("node_modules")).unwrap();
    run(&repo, "npx", &["husky"]);
    turn(&repo);
    repo.teddy(&["land", "-m", "no type"])
        .check(1, &["type may not be empty"]);
    repo.done(&["land", "-m", "feat: work"]);
    check_formatted(&repo);

    // Both run in the separate directory, too.
    repo.run_plan(&plan("More", &[execute("echo raw4 >> a.txt")]));
    let edited = format!("mine\n{}", repo.read("a.txt"));
    repo.write("a.txt", edited);
    repo.done(&["land", "-m", "fix: more"]);
    assert!(repo.git(&["show", "HEAD:a.txt"]).ends_with("FIXED4"));
    assert_eq!(repo.git(&["stash", "list"]), "");
    check_clean(&repo);
}

#[test]
fn git_lfs() {
    let repo = project(&[(
        ".gitattributes",
        "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    )]);
    if !has(&repo, "git-lfs") {
        return;
    }
    run(&repo, "git", &["lfs", "install", "--local"]);
    repo.run_plan(&plan(
        "Work",
        &[execute("head -c 100000 /dev/zero > x.bin")],
    ));
    repo.done(&["land", "-m", "Land"]);
    assert!(
        repo.git(&["show", "HEAD:x.bin"])
            .starts_with("version https://git-lfs")
    );
    assert_eq!(status(&repo), " M own.txt\nA  staged.txt");
}

#[test]
fn git_crypt() {
    let repo = TestRepo::new().file(".gitattributes", "*.sec filter=git-crypt diff=git-crypt\n");
    if !has(&repo, "git-crypt") {
        return;
    }
    run(&repo, "git-crypt", &["init"]);
    repo.write("a.sec", "secret\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    for is_separate in [false, true] {
        repo.run_plan(&plan("Work", &[execute("echo more >> a.sec; echo x >> b")]));
        if is_separate {
            let edited = format!("mine\n{}", repo.read("b"));
            repo.write("b", edited);
        }
        repo.done(&["land", "-m", "Land"]);
        let mut git = repo.command("git");
        let git = git.current_dir(repo.path());
        let stored = git
            .args(["cat-file", "blob", "HEAD:a.sec"])
            .output()
            .unwrap();
        assert!(stored.stdout.starts_with(b"\0GITCRYPT"), "{stored:?}");
    }
}

#[test]
fn gpg() {
    let repo = project(&[]);
    if !has(&repo, "gpg") {
        return;
    }
    let home = repo.beside("gnupg");
    std::fs::create_dir_all(&home).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&home, mode).unwrap();
    let gpg = |args: &[&str]| {
        let mut gpg = repo.command("gpg");
        Output::of(gpg.env("GNUPGHOME", &home).args(args))
    };
    let key = [
        "--batch",
        "--passphrase",
        "",
        "--quick-gen-key",
        "Test <test@localhost>",
    ];
    if gpg(&key).code != 0 {
        skipped("gpg makes no key here");
        return;
    }
    repo.git(&["config", "commit.gpgSign", "true"]);
    turn(&repo);
    let mut command = repo.teddy_command(&["land", "-m", "Land"]);
    Output::of(command.current_dir(repo.path()).env("GNUPGHOME", &home)).check(0, &[]);
    let mut verify = repo.command("git");
    let verify = verify.current_dir(repo.path()).env("GNUPGHOME", &home);
    Output::of(verify.args(["verify-commit", "HEAD"])).check(0, &[]);
    let mut kill = repo.command("gpgconf");
    let _ = kill
        .env("GNUPGHOME", &home)
        .args(["--kill", "all"])
        .output();
}
