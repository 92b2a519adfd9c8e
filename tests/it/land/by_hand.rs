//! A landing against `git commit` made by hand on a copy: random edits of the user's, staged or not,
//! hooks and message settings, and a turn in other files. Tree, message, index, files and stash must
//! be the same.

use std::path::{Path, PathBuf};

use crate::plans::{create, edit, execute, plan};
use crate::random_kills::Dice;
use crate::support::landing::hook;
use crate::support::{Output, TestRepo, seeds};

/// Hooks, each with whether it stages files itself.
const HOOKS: [(&str, &str, bool); 10] = [
    ("pre-commit", "exit 0", false),
    ("pre-commit", "echo no >&2; exit 1", false),
    // Repairs and refuses, as most hooks of `pre-commit` do.
    (
        "pre-commit",
        "bad=; for f in $(git diff --cached --name-only --diff-filter=d); do\n\
         grep -q 'raw' $f && sed -i 's/raw/fixed/' $f && bad=1; done; test -z \"$bad\"",
        false,
    ),
    // Repairs and stages, as lint-staged does.
    (
        "pre-commit",
        "for f in $(git diff --cached --name-only --diff-filter=d); do\n\
         sed -i 's/raw/fixed/' $f && git add $f; done",
        true,
    ),
    (
        "pre-commit",
        "git diff --quiet || git stash -q -k; git stash pop -q; exit 0",
        false,
    ),
    ("pre-commit", "git stash -q -k; exit 1", false),
    ("pre-commit", "rm -f own1.txt", false),
    ("pre-commit", "git checkout -q -- own2.txt", false),
    (
        "commit-msg",
        "printf '\\n# hook\\n  x  \\n\\n\\n' >> \"$1\"",
        false,
    ),
    ("commit-msg", "grep -q '^fix: ' \"$1\"", false),
];

/// Messages of the user's.
const MESSAGES: [&str; 4] = [
    "fix: one",
    "#42 two\n\n# three\n\n\n  four  ",
    "Five\nsix\n\nSigned-off-by: A <a@b>",
    "fix:   seven  \n\n; eight",
];

/// What a commit leaves.
#[derive(Debug, PartialEq, Eq)]
struct State {
    is_made: bool,
    tree: String,
    message: String,
    index: String,
    stash: String,
    files: String,
}

fn state(repo: &TestRepo, at: &Path, before: &str) -> State {
    let git = |args: &[&str]| repo.git_in(at, args);
    let is_made = git(&["rev-parse", "HEAD"]) != before;
    State {
        is_made,
        tree: git(&["rev-parse", "HEAD^{tree}"]),
        message: git(&["log", "-1", "--format=%B"]),
        index: git(&["ls-files", "-s"]),
        stash: git(&["stash", "list", "--format=%gs"]),
        files: repo.tree_in(at),
    }
}

/// Makes the same commit by hand, in a copy.
fn by_hand(repo: &TestRepo, copy: &Path, paths: &[&str], message: &str) {
    let git = |args: &[&str]| {
        let mut git = repo.command("git");
        Output::of(git.current_dir(copy).args(args))
    };
    let file = repo.beside("message");
    std::fs::write(&file, message).unwrap();
    let (file, index) = (file.to_str().unwrap(), copy.join(".git/index"));
    let others = git(&["diff", "--cached", "--name-only"]).stdout;
    let kept = std::fs::read(&index).unwrap();
    if others.is_empty() {
        git(&[&["add", "-A", "--"], paths].concat()).check(0, &[]);
        let out = git(&["commit", "-q", "-F", file]);
        if out.code != 0 {
            // By hand, the user would unstage what did not land.
            git(&[&["reset", "-q", "--"], paths].concat());
        }
        return;
    }

    git(&[&["add", "--intent-to-add", "--ignore-removal", "--"], paths].concat());
    let out = git(&[&["commit", "-q", "-F", file, "--only", "--"], paths].concat());
    if out.code == 0 {
        // With `--only`, git leaves what a hook staged out of the index.
        git(&[&["reset", "-q", "--"], paths].concat());
    } else {
        std::fs::write(&index, kept).unwrap();
    }
}

fn copy_of(repo: &TestRepo) -> PathBuf {
    let copy = repo.beside("copy");
    let _ = std::fs::remove_dir_all(&copy);
    let mut cp = repo.command("cp");
    Output::of(cp.arg("-a").arg(repo.path()).arg(&copy)).check(0, &[]);
    // The copies have other inodes.
    let mut git = repo.command("git");
    Output::of(
        git.current_dir(&copy)
            .args(["update-index", "-q", "--refresh"]),
    );
    copy
}

fn play(seed: u64) {
    let mut dice = Dice(seed);
    let repo = TestRepo::new()
        .file("a.txt", "raw\n1\n")
        .file("gone.txt", "gone\n")
        .file("own1.txt", "1\n")
        .file("own2.txt", "1\n")
        .file("dir/own3.txt", "1\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "a.txt"]);
    if dice.below(3) == 0 {
        repo.write("own2.txt", "stashed\n");
        repo.git(&["stash", "-q", "-m", "mine"]);
    }

    let mut actions = vec![edit("a.txt", "1", "raw 2")];
    let mut paths = vec!["a.txt"];
    if dice.below(2) == 0 {
        actions.push(create("new/b.txt", "raw b\n"));
        paths.push("new/b.txt");
    }
    if dice.below(2) == 0 {
        actions.push(execute("rm gone.txt; chmod +x a.txt"));
        paths.push("gone.txt");
    }
    repo.run_plan(&plan("Turn", &actions));

    for (at, name) in ["own1.txt", "own2.txt", "dir/own3.txt", "own4.txt"]
        .iter()
        .enumerate()
    {
        match dice.below(4) {
            0 => repo.write(name, format!("raw {at}\n")),
            1 => {
                repo.write(name, format!("staged {at}\n"));
                repo.git(&["add", name]);
            }
            2 if at != 3 => {
                repo.write(name, format!("staged {at}\n"));
                repo.git(&["add", name]);
                repo.write(name, format!("staged {at}\nmore\n"));
            }
            _ => {}
        }
    }
    let (name, script, _) = HOOKS[dice.below(HOOKS.len())];
    hook(&repo, name, script);
    let cleanup = ["default", "strip", "whitespace", "verbatim", "scissors"][dice.below(5)];
    repo.git(&["config", "commit.cleanup", cleanup]);
    let comment = ["#", ";", "auto"][dice.below(3)];
    repo.git(&["config", "core.commentChar", comment]);
    let message = MESSAGES[dice.below(MESSAGES.len())];

    let case = format!("seed {seed}: {name} {script:?}, {cleanup}, {comment}, {message:?}");
    let shown = repo.json(&["land", "-n", "-m", message], 0);
    let text = shown["commits"][0]["message"].as_str().unwrap();
    let before = repo.git(&["rev-parse", "HEAD"]);
    let copy = copy_of(&repo);
    by_hand(&repo, &copy, &paths, text);
    let out = repo.teddy(&["land", "-m", message]);

    let (ours, theirs) = (
        state(&repo, &repo.path(), &before),
        state(&repo, &copy, &before),
    );
    assert_eq!(ours, theirs, "{case}: {out}");
    assert_eq!(out.code == 0, ours.is_made, "{case}: {out}");
    let log = repo.json(&["log"], 0);
    assert_eq!(log[0]["status"] == "landed", ours.is_made, "{case}");
}

/// All cases are played, also after one that fails.
#[test]
fn a_landing_equals_a_git_commit() {
    let failed = seeds(3, 12).filter(|seed| std::panic::catch_unwind(|| play(*seed)).is_err());
    assert_eq!(failed.collect::<Vec<_>>(), [0; 0]);
}
