//! Benchmarks a repository with thousands of sessions: lists relative to `git for-each-ref`, and
//! steps of a turn relative to a repository with one session.
//!
//! `cargo bench --bench sessions` creates 10,000 sessions, prints a table for loose and packed
//! refs, and fails if a required ratio is exceeded. A list can take twice as long as git, or 100
//! ms. `GIT_DEFAULT_REF_FORMAT=reftable` measures the other ref store.
#![allow(clippy::unwrap_used, reason = "a bench fails where it must")]

mod support;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use support::{Row, Workspace, apart, head, run, sample, teddy};

const SESSIONS: usize = 10_000;
const FILES: usize = 200;
const SAMPLES: usize = 11;
// Minimum for git's time. With a ratio of 2, a list can always take 100 ms.
const FREE: Duration = Duration::from_millis(50);
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

/// Prints the rows for one state of the refs. Returns the number of exceeded ratios.
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

struct Bench {
    workspace: Workspace,
    home: PathBuf,
}

impl Bench {
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

    fn list(&self, name: &str, args: &[&str]) -> Row {
        self.against_git(name, || run(&mut self.teddy(args)))
    }

    /// Measures shell completion.
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

    /// Measures the error for a missing session, which suggests a similar name.
    fn missing(&self) -> Row {
        self.against_git("no such session", || {
            let output = self.teddy(&["-s", "fist", "show"]).output().unwrap();
            assert!(!output.status.success());
        })
    }

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

    fn teddy(&self, args: &[&str]) -> Command {
        teddy(&self.workspace.path(), &self.home, args)
    }

    fn git(&self, args: &[&str]) -> Command {
        let mut command = apart(&self.workspace.path(), &self.home, "git");
        command.args(args);
        command
    }
}
