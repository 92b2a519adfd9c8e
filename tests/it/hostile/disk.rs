//! Symlinks, special files and nested repositories that exist in the project or are created by an
//! earlier command of the plan.

use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::ground::{Ground, create, edit, plan, read, run};

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// Refused before any action runs.
    Rejected,
    /// An action fails. Nothing outside of the project changes.
    Failed,
    /// The plan succeeds.
    Done,
    /// `Failed` or `Done`, depending on the sandbox.
    Either,
}

fn prepare(ground: &Ground) {
    let (repo, outside) = (ground.repo.path(), ground.outside());
    symlink(&outside, repo.join("out")).unwrap();
    symlink(outside.join("canary"), repo.join("canary")).unwrap();
    symlink(outside.join("missing"), repo.join("dangling")).unwrap();
    symlink("src", repo.join("inside")).unwrap();
    symlink("a.txt", repo.join("alias")).unwrap();
    symlink("loop", repo.join("loop")).unwrap();
    symlink(".git", repo.join("dotgit")).unwrap();
    symlink("../outside", repo.join("src/up")).unwrap();
    for (name, kind) in [("pipe", FileType::Fifo), ("socket", FileType::Socket)] {
        mknodat(CWD, repo.join(name), kind, Mode::from_raw_mode(0o600), 0).unwrap();
    }
    ground.repo.git(&["init", "-q", "nested"]);
    ground
        .repo
        .put("nested/a.txt", "one\n")
        .put("gitfile/.git", "gitdir: ../.git\n")
        .put("gitfile/a.txt", "one\n");
    ground
        .repo
        .put(".env", "KEY=one\n")
        .put("ignored", "one\n")
        .put("empty/.keep", "")
        .put("straße/x", "one\n");
    ground.repo.put("caf\u{e9}.txt", "one\n");
    std::fs::write(ground.outside().join("shared"), "one\n").unwrap();
    std::fs::hard_link(ground.outside().join("shared"), repo.join("hard")).unwrap();
}

/// A name, a plan that touches an unusual file, and the expected result.
#[allow(clippy::too_many_lines, reason = "a table")]
fn rows() -> Vec<(&'static str, String, End)> {
    let link = |path: &str| format!("[{path}](/{path})");
    let (c, e, r) = (
        |path: &str| create(&link(path)),
        |path: &str| edit(&link(path)),
        |path: &str| read(&link(path)),
    );
    let cwd = |path: &str| {
        format!(
            "### `EXECUTE`\n- **Description:** d\n- **cwd:** {}\n```shell\ntouch x\n```\n",
            link(path)
        )
    };
    use End::{Done, Rejected};
    vec![
        (
            "create below a link that leads out",
            c("out/evil"),
            Rejected,
        ),
        (
            "edit below a link that leads out",
            e("out/shared"),
            Rejected,
        ),
        (
            "read below a link that leads out",
            r("out/canary"),
            Rejected,
        ),
        ("run below a link that leads out", cwd("out"), Rejected),
        ("create over a link to a file", c("canary"), Rejected),
        ("edit a link to a file", e("canary"), Rejected),
        ("read a link to a file", r("canary"), Rejected),
        ("create over a dangling link", c("dangling"), Rejected),
        (
            "create below a link that stays inside",
            c("inside/evil"),
            Rejected,
        ),
        ("edit a link that stays inside", e("alias"), Rejected),
        ("create below a link to itself", c("loop/evil"), Rejected),
        ("edit a link to itself", e("loop"), Rejected),
        (
            "create below a link to .git",
            c("dotgit/hooks/pre-commit"),
            Rejected,
        ),
        ("edit below a link to .git", e("dotgit/config"), Rejected),
        (
            "create below a link in a folder",
            c("src/up/evil"),
            Rejected,
        ),
        ("run in a link in a folder", cwd("src/up"), Rejected),
        ("edit a pipe", e("pipe"), Rejected),
        ("read a pipe", r("pipe"), Rejected),
        ("create over a pipe", c("pipe"), Rejected),
        ("edit a socket", e("socket"), Rejected),
        ("create below a socket", c("socket/evil"), Rejected),
        (
            "create in a repository of its own",
            c("nested/evil"),
            Rejected,
        ),
        (
            "edit in a repository of its own",
            e("nested/a.txt"),
            Rejected,
        ),
        (
            "create where a gitfile says repository",
            c("gitfile/evil"),
            Rejected,
        ),
        (
            "edit where a gitfile says repository",
            e("gitfile/a.txt"),
            Rejected,
        ),
        ("create over a folder", c("src"), Rejected),
        ("create below a file", c("a.txt/evil"), Rejected),
        ("create over a file", c("a.txt"), Rejected),
        ("create a secret that is there", c(".env"), Rejected),
        ("edit a secret", e(".env"), Rejected),
        ("read a secret", r(".env"), Rejected),
        (
            "create an ignored file that is there",
            c("ignored"),
            Rejected,
        ),
        ("create a twin in another case", c("A.txt"), Rejected),
        (
            "create a twin in another form",
            c("cafe\u{301}.txt"),
            Rejected,
        ),
        ("create a twin of a folder", c("SRC/evil"), Rejected),
        ("create two twins", c("New.txt") + &c("new.txt"), Rejected),
        (
            "create a file twice",
            c("new.txt") + &c("new.txt"),
            Rejected,
        ),
        (
            "create a file below a new file",
            c("new") + &c("new/evil"),
            Rejected,
        ),
        (
            "create a file over a new folder",
            c("new/evil") + &c("new"),
            Rejected,
        ),
        (
            "half of a plan is right",
            c("new.txt") + &c("../evil"),
            Rejected,
        ),
        ("a percent sequence is a name", c("%2e%2e/evil"), Done),
        ("a variable is a name", c("$HOME/evil"), Done),
        ("a leading dash is a name", c("-rf"), Done),
        ("a plan with a command that does nothing", run("true"), Done),
    ]
}

#[test]
fn what_lies_on_disk_leads_nowhere() {
    let ground = Ground::new();
    prepare(&ground);
    let mut wrong = Vec::new();
    for (name, actions, end) in rows() {
        let before = ground.state();
        let tried = ground.execute(plan(&actions));
        let found = match tried.code {
            0 => End::Done,
            1 => End::Failed,
            _ => End::Rejected,
        };
        if found != end || tried.json.is_null() || (end != End::Done && ground.state() != before) {
            wrong.push(format!("{name}: {found:?} {}", tried.words));
        }
        for path in [".env", "canary", "pipe", "out", "nested/a.txt"] {
            assert!(
                ground.repo.path().join(path).symlink_metadata().is_ok(),
                "{name}: `{path}` is gone"
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(ground.repo.read("ignored"), "one\n");
}

#[test]
fn a_hard_link_is_cut_and_its_other_name_stays() {
    let ground = Ground::new();
    prepare(&ground);
    let tried = ground.execute(plan(&edit("[hard](/hard)")));
    // An EDIT needs the file in a context list.
    assert_eq!(tried.code, 3, "{}", tried.words);
    ground.ok(&["context", "add", "hard"]);
    let tried = ground.execute(plan(&edit("[hard](/hard)")));
    assert_eq!(tried.code, 0, "{}", tried.words);
    assert_eq!(
        (
            ground.repo.read("hard"),
            std::fs::read_to_string(ground.outside().join("shared")).unwrap()
        ),
        ("evil\n".into(), "one\n".into())
    );
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
    for (number, (name, command, action, end)) in swaps().into_iter().enumerate() {
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
