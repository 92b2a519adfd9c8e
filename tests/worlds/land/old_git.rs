//! `land` and `blame` with an older git. `TEDDY_OLD_GIT` names its program; otherwise the machine is
//! searched for one from 2.32 to 2.42.

use std::path::{Path, PathBuf};

use crate::plans::{create, edit, execute, plan};
use crate::support::landing::{check_clean, hook, status, three_turns};
use crate::support::{Output, TestRepo, skipped};

const PLACES: [&str; 3] = ["/usr/bin/git", "/usr/local/bin/git", "/opt/git/bin/git"];

/// A directory for PATH with an older git.
struct OldGit {
    path: String,
    program: PathBuf,
    _dir: tempfile::TempDir,
}

impl OldGit {
    fn find(repo: &TestRepo) -> Option<OldGit> {
        let named = teddy::host::env::var_os("TEDDY_OLD_GIT").map(PathBuf::from);
        let found = match named {
            Some(named) => Some(named),
            None => PLACES
                .iter()
                .map(PathBuf::from)
                .find(|git| minor(repo, git).is_some_and(|minor| (32..=42).contains(&minor))),
        };
        let Some(program) = found else {
            skipped("there is no git from 2.32 to 2.42; `TEDDY_OLD_GIT` can name one");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(&program, dir.path().join("git")).unwrap();
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        Some(OldGit {
            path,
            program,
            _dir: dir,
        })
    }

    fn teddy(&self, repo: &TestRepo, args: &[&str]) -> Output {
        let mut command = repo.teddy_command(args);
        Output::of(command.current_dir(repo.path()).env("PATH", &self.path))
    }

    #[track_caller]
    fn done(&self, repo: &TestRepo, args: &[&str]) {
        self.teddy(repo, args).check(0, &[]);
    }
}

/// Returns 39 of 2.39.5.
fn minor(repo: &TestRepo, git: &Path) -> Option<u32> {
    let output = repo.command(git.to_str()?).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let version = text.trim().strip_prefix("git version 2.")?;
    version.split('.').next()?.parse().ok()
}

/// A repository without a commit, with a turn in it.
fn unborn() -> TestRepo {
    let repo = TestRepo::new();
    repo.done(&["new", "demo"]);
    repo.run_plan(&plan("First", &[create("a.txt", "a\n")]));
    repo
}

#[test]
fn the_first_commit() {
    let repo = unborn();
    let Some(git) = OldGit::find(&repo) else {
        return;
    };
    hook(&repo, "pre-commit", "exit 0");
    git.done(&repo, &["land", "-m", "First"]);
    assert_eq!(repo.git(&["log", "--format=%s", "main"]), "First");
    assert_eq!(status(&repo), "");
    check_clean(&repo);

    let repo = unborn();
    git.done(&repo, &["land", "-m", "First", "--branch", "other"]);
    assert_eq!(repo.git(&["log", "--format=%s", "other"]), "First");
    check_clean(&repo);
}

#[test]
fn every_way_to_land() {
    let repo = three_turns();
    let Some(git) = OldGit::find(&repo) else {
        return;
    };
    repo.write("own.txt", "own\n");
    repo.git(&["add", "own.txt"]);
    hook(
        &repo,
        "pre-commit",
        "git diff --cached --quiet && exit 1; exit 0",
    );
    git.done(&repo, &["land", "..2", "--each"]);
    assert_eq!(repo.git(&["rev-list", "--count", "main"]), "3");
    git.done(&repo, &["land", "-m", "Third", "--branch", "new"]);
    assert_eq!(repo.git(&["rev-list", "--count", "new"]), "4");

    // In a separate directory, and with what a hook repairs.
    repo.run_plan(&plan("Four", &[execute("echo raw >> a.txt")]));
    let edited = format!("mine\n{}", repo.read("a.txt"));
    repo.write("a.txt", edited);
    let repair = "grep -q raw a.txt || exit 0; sed -i s/raw/fixed/ a.txt; exit 1";
    hook(&repo, "pre-commit", repair);
    let message = ["land", "-m", "Fourth"];
    git.teddy(&repo, &message)
        .check(1, &["a hook changed `a.txt`"]);
    git.done(&repo, &[&message[..], &["--with-repairs"]].concat());
    assert!(repo.git(&["show", "HEAD:a.txt"]).ends_with("fixed"));
    assert!(repo.read("a.txt").starts_with("mine\n"));
    // The third turn is on the other branch.
    assert_eq!(status(&repo), " M a.txt\n D c.txt\nA  own.txt");
    check_clean(&repo);
}

#[test]
fn blame_tells_the_same() {
    let repo = three_turns();
    let Some(git) = OldGit::find(&repo) else {
        return;
    };
    repo.done(&["land", "--each"]);
    repo.done(&["context", "add", "a.txt"]);
    repo.run_plan(&plan("Edit", &[edit("a.txt", "5", "five")]));
    let edited = repo.read("a.txt").replace("8", "mine");
    repo.write("a.txt", edited);
    repo.write(
        "ignored-revisions",
        repo.git(&["rev-parse", "HEAD~2"]) + "\n",
    );
    for settings in [&[][..], &["ignored-revisions"], &["ignored-revisions", ""]] {
        let _ = repo
            .command("git")
            .current_dir(repo.path())
            .args(["config", "--unset-all", "blame.ignoreRevsFile"])
            .output();
        for file in settings {
            repo.git(&["config", "--add", "blame.ignoreRevsFile", file]);
        }
        let args = ["--json", "blame", "a.txt"];
        let expected = repo.teddy(&args);
        let found = git.teddy(&repo, &args);
        assert_eq!(
            found.stdout,
            expected.stdout,
            "{}: {found}",
            git.program.display()
        );
        assert_eq!(found.code, 0, "{found}");
    }
}
