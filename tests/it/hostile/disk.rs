//! Symlinks, special files and nested repositories that exist in the project.

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
