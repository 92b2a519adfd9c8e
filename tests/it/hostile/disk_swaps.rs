//! Symlinks, special files and nested repositories that an earlier command of the plan puts in the
//! place of a file.

use super::ground::{Ground, create, edit, plan, read, run};
use crate::support::sample;

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// An action fails. Nothing outside of the project changes.
    Failed,
    /// The plan succeeds.
    Done,
    /// `Failed` or `Done`, depending on the sandbox.
    Either,
}

/// A name, a command that replaces a file, a later action on that file, and the result of the plan.
/// `OUT` is a directory outside of the project.
fn swaps() -> Vec<(&'static str, &'static str, String, End)> {
    use End::{Done, Either, Failed};
    let (c, e, r) = (
        |path: &str| create(&format!("[{path}](/{path})")),
        |path: &str| edit(&format!("[{path}](/{path})")),
        |path: &str| read(&format!("[{path}](/{path})")),
    );
    vec![
        ("a folder becomes a link", "rm -r src; ln -s OUT src", c("src/evil"), Failed),
        ("a new folder is a link", "ln -s OUT new", c("new/evil"), Failed),
        ("a new file is a link", "ln -s OUT/canary new", c("new"), Failed),
        ("a new file is a dangling link", "ln -s OUT/evil new", c("new"), Failed),
        ("a file becomes a link", "ln -sf OUT/shared a.txt", e("a.txt"), Failed),
        ("a file becomes a link that is read", "ln -sf OUT/canary a.txt", r("a.txt"), Failed),
        ("a file becomes a pipe", "rm a.txt; mkfifo a.txt", e("a.txt"), Failed),
        ("a file becomes a pipe that is read", "rm a.txt; mkfifo a.txt", r("a.txt"), Failed),
        ("a file becomes a folder", "rm a.txt; mkdir a.txt", e("a.txt"), Failed),
        ("a folder becomes a repository", "git init -q src", c("src/evil"), Failed),
        ("a new folder is a repository", "git init -q new", c("new/evil"), Failed),
        ("a folder gets a gitfile", "echo 'gitdir: OUT' > src/.git", c("src/evil"), Failed),
        ("a folder is gone", "rm -r src", c("src/evil"), Done),
        ("a file is gone", "rm a.txt", e("a.txt"), Failed),
        ("a file changes", "echo two > a.txt", e("a.txt"), Failed),
        ("a file becomes binary", "printf 'one\\n\\000\\377' > a.txt", e("a.txt"), Failed),
        ("a file is a hard link", "ln -f OUT/shared a.txt; true", e("a.txt"), Done),
        (
            "the folder to run in is a link",
            "ln -s OUT new",
            "### `EXECUTE`\n- **Description:** d\n- **cwd:** [new](/new)\n```shell\ntouch evil\n```\n".to_owned(),
            Failed,
        ),
        ("a parent is a link in a link", "mkdir d; ln -s OUT d/e; ln -s d/e new", c("new/evil"), Failed),
        ("the worktree's gitfile leads elsewhere", "rm -rf .git; echo 'gitdir: OUT' > .git", c("new"), Done),
        ("the worktree's gitfile is gone", "rm -rf .git", c("new"), Done),
        ("the worktree's gitfile is a folder", "rm -rf .git; git init -q .", c("new"), Done),
        ("the worktree's gitfile is a pipe", "rm -rf .git; mkfifo .git", c("new"), Done),
        ("ignore rules are a pipe", "rm .gitignore; mkfifo .gitignore src/.gitignore", c("new"), Failed),
        ("attributes are a pipe", "mkfifo .gitattributes src/.gitattributes", c("new"), Failed),
        ("the index is a pipe", "d=$(git rev-parse --git-dir); rm -f \"$d/index\"; mkfifo \"$d/index\"", c("new"), Done),
        ("HEAD is a pipe", "d=$(git rev-parse --git-dir); rm -f \"$d/HEAD\"; mkfifo \"$d/HEAD\"", c("new"), Done),
        ("commondir leads elsewhere", "echo OUT > \"$(git rev-parse --git-dir)/commondir\"", c("new"), Done),
        ("gitdir is a pipe", "d=$(git rev-parse --git-dir); rm -f \"$d/gitdir\"; mkfifo \"$d/gitdir\"", c("new"), Done),
        (
            "the record is full of links",
            "cd \"$(git rev-parse --git-dir)\"; for f in *; do rm -rf $f; ln -s OUT $f; done",
            c("new"),
            Done,
        ),
        ("the record is gone", "rm -rf \"$(git rev-parse --git-dir)\"; true", c("new"), Done),
        ("commondir is a pipe", "d=$(git rev-parse --git-dir); rm -f \"$d/commondir\"; mkfifo \"$d/commondir\"", c("new"), Done),
        ("a plan after all of that", "true", c("new"), Done),
        ("the worktree is gone", "rm -rf \"$PWD\"; true", c("new"), Either),
        ("the worktree is a link", "d=$PWD; cd ..; mv \"$d\" gone; ln -s OUT \"$d\"; true", c("new"), Either),
    ]
}

/// Runs every row and then an ordinary plan, which must still work.
fn nothing_leads_elsewhere(sandbox: &str) {
    let ground = Ground::new();
    let setting = format!("execute.sandbox={sandbox}");
    std::fs::write(ground.outside().join("shared"), "one\n").unwrap();
    for file in ["a.txt", "src/main.rs"] {
        ground.ok(&["context", "add", file]);
    }
    let mut wrong = Vec::new();
    // In `it`, each row runs either with or without the sandbox.
    let rows = sample(
        swaps().into_iter().enumerate(),
        2,
        usize::from(sandbox == "on"),
    );
    for (number, (name, command, action, end)) in rows {
        // New names for each row: an ignored file that one row leaves behind must not help the next
        // one.
        let fresh = |text: &str| {
            text.replace("new", &format!("n{number}"))
                .replace("OUT", ground.outside().to_str().unwrap())
        };
        let before = ground.others();
        let tried = ground.execute_with(
            plan(&(run(&fresh(command)) + &fresh(&action))),
            &["-c", &setting],
        );
        let right = match end {
            End::Done => tried.code == 0,
            End::Either => matches!(tried.code, 0 | 1),
            _ => tried.code == 1,
        };
        if !right || ground.others() != before {
            wrong.push(format!("{name}: exit code {}, {}", tried.code, tried.words));
        }
        let again = plan(&create(&format!("[after{number}](/after{number})")));
        let again = ground.repo.workflow().execute_text(&again);
        if !again.is_done() {
            wrong.push(format!("after {name}: {again}"));
        }
        ground.repo.git(&["checkout", "-q", "HEAD", "--", "."]);
        ground.repo.git(&["clean", "-qffd"]);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_command_puts_in_the_way_leads_nowhere() {
    nothing_leads_elsewhere("off");
}

#[test]
fn what_a_command_puts_in_the_way_leads_nowhere_in_the_sandbox() {
    nothing_leads_elsewhere("on");
}
