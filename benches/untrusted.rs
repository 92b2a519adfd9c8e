//! Benchmarks what others can make slow: the output of commands, relative to a shell, and long lines and
//! remotes with many sessions, relative to git.
//!
//! `cargo bench --bench untrusted` prints a table and fails if a required ratio is exceeded.
//! `TEDDY_BENCH_PROGRAM` selects another build of the program.
#![allow(clippy::unwrap_used, reason = "a bench fails where it must")]

mod support;

use std::path::PathBuf;

use support::{Row, Workspace, apart, git_in, head, run, sample, teddy};

const SAMPLES: usize = 5;
const FILES: usize = 200;
/// Of a minified file, in bytes.
const LINE: usize = 3_000_000;
/// Of the lines of a command, in bytes.
const OUTPUT: usize = 100_000_000;
/// The most that a fetch takes.
const SESSIONS: usize = 10_000;
const TOO_MANY: usize = 20_000;
const REFSPEC: &str = "+refs/teddy/sessions/*:refs/teddy/remotes/origin/*";

fn main() {
    head("git, or a shell");
    let rows = [output(), difference(), fetch(), refusal()];
    let missed = rows.into_iter().filter(|row| !row.print()).count();
    assert_eq!(missed, 0, "ratios that must be reached were missed");
}

/// Measures a turn whose command prints short lines.
fn output() -> Row {
    let workspace = project();
    let (path, home) = (workspace.path(), workspace.beside("home"));
    let flood = format!("yes | head -c {OUTPUT}");
    let action = format!("### `EXECUTE`\n- **Description:** Print.\n```shell\n{flood}\n```\n");
    let into_file = format!("{flood} > ../output");
    let ours = || execute(&workspace, &action);
    let (ours, gits) = sample(SAMPLES, ours, || {
        run(apart(&path, &home, "sh").args(["-c", &into_file]));
    });
    Row {
        name: "100 MB of short lines (a shell into a file)".to_owned(),
        ours,
        gits,
        at_first: 3.0,
        goal: 3.0,
    }
}

/// Measures the difference of a file that is one line.
fn difference() -> Row {
    let workspace = project();
    let (path, home) = (workspace.path(), workspace.beside("home"));
    let write = |last: &str| {
        let statement = "var a=b(c);";
        let line = statement.repeat(LINE / statement.len());
        std::fs::write(path.join("min.js"), format!("{line}{last}\n")).unwrap();
    };
    write("one()");
    run(&mut teddy(&path, &home, &["record", "one"]));
    workspace.git(&["add", "min.js"]);
    write("two()");
    run(&mut teddy(&path, &home, &["record", "two"]));
    let ours = || run(&mut teddy(&path, &home, &["diff"]));
    let (ours, gits) = sample(SAMPLES, ours, || {
        git_in(&path, &home, &["diff", "min.js"]);
    });
    Row {
        name: "a line of 3 MB (git diff)".to_owned(),
        ours,
        gits,
        at_first: 3.0,
        goal: 3.0,
    }
}

/// Measures the first fetch of as many sessions as are taken.
fn fetch() -> Row {
    let remote = Remote::new(SESSIONS);
    let clones = |first: usize| {
        let numbers = first..first + SAMPLES;
        let clones: Vec<_> = numbers.map(|number| remote.clone(number)).collect();
        clones.into_iter()
    };
    let (mut for_us, mut for_git) = (clones(0), clones(SAMPLES));
    let home = remote.workspace.beside("home");
    let ours = || run(&mut teddy(&for_us.next().unwrap(), &home, &["fetch"]));
    let (ours, gits) = sample(SAMPLES, ours, || {
        git_in(
            &for_git.next().unwrap(),
            &home,
            &["fetch", "-q", "origin", REFSPEC],
        );
    });
    Row {
        name: format!("fetch of {SESSIONS} sessions (git fetch)"),
        ours,
        gits,
        at_first: 5.0,
        goal: 3.0,
    }
}

/// Measures the answer to a remote with more sessions than are taken.
fn refusal() -> Row {
    let remote = Remote::new(TOO_MANY);
    let clones: Vec<_> = (0..=SAMPLES).map(|number| remote.clone(number)).collect();
    let home = remote.workspace.beside("home");
    let ours = || {
        let output = teddy(&clones[SAMPLES], &home, &["fetch"]).output().unwrap();
        assert!(!output.status.success());
    };
    let mut for_git = clones[..SAMPLES].iter();
    let (ours, gits) = sample(SAMPLES, ours, || {
        git_in(
            for_git.next().unwrap(),
            &home,
            &["fetch", "-q", "origin", REFSPEC],
        );
    });
    Row {
        name: format!("fetch of {TOO_MANY} sessions, refused (git fetch)"),
        ours,
        gits,
        at_first: 3.0,
        goal: 2.0,
    }
}

/// Returns a repository with a session of one turn.
fn project() -> Workspace {
    let workspace = Workspace::new(FILES);
    let (path, home) = (workspace.path(), workspace.beside("home"));
    run(&mut teddy(&path, &home, &["new", "first"]));
    execute(
        &workspace,
        "### `CREATE`\n- **File Path:** [d0/new.rs](/d0/new.rs)\n- **Description:** Make it.\n\n````\nnew\n````\n",
    );
    workspace
}

fn execute(workspace: &Workspace, action: &str) {
    let head = "# Bench\n\n## Rationale\n```text\nA bench.\n```\n\n## Action Plan\n\n";
    std::fs::write(workspace.beside("plan.md"), format!("{head}{action}")).unwrap();
    let (path, home) = (workspace.path(), workspace.beside("home"));
    run(&mut teddy(&path, &home, &["execute", "../plan.md", "-y"]));
}

/// A repository with sessions, from which others fetch.
struct Remote {
    workspace: Workspace,
}

impl Remote {
    fn new(sessions: usize) -> Remote {
        let workspace = project();
        workspace.multiply(sessions - 1);
        workspace.git(&["pack-refs", "--all"]);
        Remote { workspace }
    }

    /// Returns the path of a clone without sessions.
    fn clone(&self, number: usize) -> PathBuf {
        let path = self.workspace.beside(&format!("clone-{number}"));
        let name = path.to_str().unwrap();
        self.workspace.git(&["clone", "-q", ".", name]);
        path
    }
}
