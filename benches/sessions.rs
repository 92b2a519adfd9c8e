//! What thousands of sessions cost: lists of them against `git for-each-ref` over the same refs, and
//! the steps of a turn against the same steps where there is one session.
//!
//! `cargo bench --bench sessions` makes 10,000 sessions, prints a table for refs as git has left
//! them and for packed ones, and fails where a ratio that must be reached is not. A list may take
//! twice as long as git, or a tenth of a second. `GIT_DEFAULT_REF_FORMAT=reftable` measures the
//! other store of refs.
#![allow(clippy::unwrap_used, reason = "a bench fails where it must")]

mod support;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use support::{Row, Workspace, apart, head, run, sample, teddy};

/// How many sessions there are.
const SESSIONS: usize = 10_000;
/// How many files the tree has.
const FILES: usize = 200;
/// How often each is measured.
const SAMPLES: usize = 11;
/// What a list may take besides: half of a tenth of a second, as it may take twice git's time.
const FREE: Duration = Duration::from_millis(50);
/// The plan of the first turn.
const PLAN: &str = "# Change files\n\n## Rationale\n```text\nA bench.\n```\n\n## Action Plan\n\n### `CREATE`\n- **File Path:** [d0/new.rs](/d0/new.rs)\n- **Description:** Make it.\n\n````\nnew\n````\n";

fn main() {
    let (many, one) = (Bench::new(), Bench::new());
    many.workspace.multiply(SESSIONS);
    head("git, or one");
    let mut missed = measure(&many, &one, "loose");
    many.workspace.git(&["pack-refs", "--all"]);
    missed += measure(&many, &one, "packed");
    assert_eq!(missed, 0, "ratios that must be reached were missed");
}

/// Prints the rows of one state of the refs; returns how many ratios were missed.
fn measure(many: &Bench, one: &Bench, refs: &str) -> usize {
    let lists = [
        many.list("sessions", &["sessions"]),
        many.list("status", &["status"]),
        many.list("switch first", &["switch", "first"]),
        many.completion("switch ''", ""),
        many.completion("switch s-77", "s-77"),
        many.missing(),
    ];
    let steps = [
        many.step(one, &["log"]),
        many.step(one, &["diff"]),
        many.step(one, &["plan", "--from", "../next.md"]),
        many.step(one, &["undo", "-n"]),
        many.step(one, &["restore", "0", "-n"]),
    ];

    let rows = lists.into_iter().chain(steps);
    let named = rows.map(|row| Row {
        name: format!("{refs}: {}", row.name),
        ..row
    });
    named.filter(|row| !row.print()).count()
}

/// A tree with a session of one turn.
struct Bench {
    /// The tree.
    workspace: Workspace,
    /// The home folder.
    home: PathBuf,
}

impl Bench {
    /// Makes the tree and its session.
    fn new() -> Bench {
        let workspace = Workspace::new(FILES);
        let home = workspace.beside("home");
        let bench = Bench { workspace, home };
        std::fs::write(bench.workspace.beside("plan.md"), PLAN).unwrap();
        let next = PLAN.replace("new.rs", "next.rs");
        std::fs::write(bench.workspace.beside("next.md"), next).unwrap();
        run(&mut bench.teddy(&["new", "first"]));
        run(&mut bench.teddy(&["execute", "../plan.md", "-y"]));
        bench
    }

    /// Measures a command against git's list of the same refs.
    fn list(&self, name: &str, args: &[&str]) -> Row {
        self.against_git(name, || run(&mut self.teddy(args)))
    }

    /// Measures what a shell waits for after the tab key.
    fn completion(&self, name: &str, word: &str) -> Row {
        self.against_git(&format!("completion of {name}"), || {
            let mut command = self.teddy(&["--", "teddy", "switch", word]);
            command
                .env("TEDDY_COMPLETE", "bash")
                .env("_CLAP_COMPLETE_INDEX", "2")
                .env("_CLAP_IFS", "\n");
            run(&mut command);
        })
    }

    /// Measures how long it takes to say that there is no such session, and which may be meant.
    fn missing(&self) -> Row {
        self.against_git("no such session", || {
            let output = self.teddy(&["-s", "fist", "show"]).output().unwrap();
            assert!(!output.status.success());
        })
    }

    /// Measures something against git's list of the same refs.
    fn against_git(&self, name: &str, ours: impl FnMut()) -> Row {
        let list = || run(&mut self.git(&["for-each-ref", "refs/teddy/sessions"]));
        let (ours, gits) = sample(SAMPLES, ours, list);
        Row {
            name: name.to_owned(),
            ours,
            gits: gits.max(FREE),
            at_first: 2.0,
            goal: 2.0,
        }
    }

    /// Measures a step of a turn against the same step where there is one session.
    fn step(&self, one: &Bench, args: &[&str]) -> Row {
        let many = || run(&mut self.teddy(args));
        let (ours, gits) = sample(SAMPLES, many, || run(&mut one.teddy(args)));
        Row {
            name: args[..1].concat(),
            ours,
            gits,
            at_first: f64::INFINITY,
            goal: 1.2,
        }
    }

    /// Returns TeDDy in the tree, with its session.
    fn teddy(&self, args: &[&str]) -> Command {
        teddy(&self.workspace.path(), &self.home, args)
    }

    /// Returns git in the tree.
    fn git(&self, args: &[&str]) -> Command {
        let mut command = apart(&self.workspace.path(), &self.home, "git");
        command.args(args);
        command
    }
}
