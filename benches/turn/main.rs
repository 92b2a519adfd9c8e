//! Benchmarks commands on generated trees, relative to git on the same files.
//!
//! `cargo bench --bench turn [-- SIZE...]` prints two tables and fails if a limit was missed.
//! The first one times commands as processes, including start-up. The second one compares whole
//! turns, with a model on loopback, to their limits, and ends with the number of those that were
//! missed. With the argument `whole` it is the only table.
//!
//! `TEDDY_BENCH_PROGRAM` selects another build of the program, and `TMPDIR` the file system. Other
//! writers on the same disk distort the results.
#![allow(clippy::unwrap_used, reason = "a bench fails where it must")]

#[path = "../support/mod.rs"]
mod support;
mod whole;

use std::path::PathBuf;
use std::time::Duration;

use support::{Row, Workspace, git_in, head, median, run, sample, sizes, teddy, time};

use teddy::git::object::CommitId;
use teddy::git::publish;
use teddy::git::publish::Guard;
use teddy::git::repository::Repository;
use teddy::git::snapshot;
use teddy::git::snapshot::limits::SnapshotLimits;

const SAMPLES: usize = 15;
const CHANGED: usize = 20;
const HEAD: &str = "# Change files\n\n## Rationale\n```text\nA bench.\n```\n\n## Action Plan\n\n";
const TURNS: usize = 300;
const RESOURCES: usize = 200;

fn main() {
    let missed = if std::env::args().any(|arg| arg == "whole") {
        0
    } else {
        commands()
    };
    let missed = missed + whole::table(&sizes());
    assert_eq!(missed, 0, "limits that must be kept were missed");
}

/// Prints the table of commands. Returns the number of exceeded ratios.
fn commands() -> usize {
    let mut rows = vec![start_up()];
    for files in sizes() {
        let mut bench = Bench::new(files);
        rows.extend([
            bench.sync(),
            bench.turn(),
            bench.restore(),
            bench.input(),
            bench.durability(),
        ]);
        if files < 10_000 {
            rows.push(bench.age());
        }
    }

    head("git");
    rows.into_iter().filter(|row| !row.print()).count()
}

fn start_up() -> Row {
    let home = tempfile::tempdir().unwrap();
    let ours = || run(&mut teddy(home.path(), home.path(), &["--version"]));
    let (ours, gits) = sample(SAMPLES, ours, || {
        git_in(home.path(), home.path(), &["--version"])
    });
    Row {
        name: "start-up (git --version)".to_owned(),
        ours,
        gits,
        at_first: 3.0,
        goal: 1.5,
    }
}

struct Bench {
    workspace: Workspace,
    home: PathBuf,
    plan: u64,
}

impl Bench {
    fn new(files: usize) -> Bench {
        let workspace = Workspace::new(files);
        let home = workspace.beside("home");
        let bench = Bench {
            workspace,
            home,
            plan: 0,
        };
        bench.teddy(&["new", "bench"]);
        bench
    }

    fn teddy(&self, args: &[&str]) {
        run(&mut teddy(&self.workspace.path(), &self.home, args));
    }

    fn row(
        &self,
        name: &str,
        (ours, gits): (Duration, Duration),
        (at_first, goal): (f64, f64),
    ) -> Row {
        Row {
            name: format!("{} files, {name}", self.workspace.files),
            ours,
            gits,
            at_first,
            goal,
        }
    }

    /// Measures a turn that edits two files and creates one.
    fn turn(&mut self) -> Row {
        self.teddy(&["context", "add", "**/file_1*"]);
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for _ in 0..=SAMPLES {
            let plan = self.write_plan();
            ours.push(time(|| {
                self.teddy(&["execute", plan.to_str().unwrap(), "-y"])
            }));
            gits.push(time(|| self.workspace.git(&["status", "--short"])));
        }
        // The first turn also creates the worktree.
        let times = (median(ours.split_off(1)), median(gits));
        let goals = if self.workspace.files < 10_000 {
            (7.0, 4.0)
        } else {
            (4.0, 2.0)
        };
        self.row("turn (git status)", times, goals)
    }

    /// Writes a plan that applies to the current files.
    fn write_plan(&mut self) -> PathBuf {
        self.plan += 1;
        let mut text = HEAD.to_owned();
        for n in [1, 10 + usize::try_from(self.plan).unwrap() % 10] {
            let file = self.workspace.file(n);
            let first = std::fs::read_to_string(&file)
                .unwrap()
                .lines()
                .next()
                .unwrap()
                .to_owned();
            let path = file
                .strip_prefix(self.workspace.path())
                .unwrap()
                .display()
                .to_string();
            let changed = format!("let changed = {};", self.plan);
            text += &format!(
                "### `EDIT`\n- **File Path:** [{path}](/{path})\n- **Description:** Change it.\n\n"
            );
            text += &format!("`FIND:`\n````\n{first}\n````\n`REPLACE:`\n````\n{changed}\n````\n\n");
        }
        let path = format!("d0/new_{}.rs", self.plan);
        text += &format!(
            "### `CREATE`\n- **File Path:** [{path}](/{path})\n- **Description:** Make it.\n\n````\nnew\n````\n"
        );
        let plan = self.workspace.beside("plan.md");
        std::fs::write(&plan, text).unwrap();
        plan
    }

    /// Measures undo and redo of 20 files.
    fn restore(&mut self) -> Row {
        let shown = |n: usize| {
            self.workspace
                .file(n * 7)
                .strip_prefix(self.workspace.path())
                .unwrap()
                .display()
                .to_string()
        };
        let actions: Vec<String> = (0..CHANGED).map(|n| overwrite(&shown(n))).collect();
        let plan = self.workspace.beside("plan.md");
        std::fs::write(&plan, format!("{HEAD}{}", actions.concat())).unwrap();
        self.teddy(&["execute", plan.to_str().unwrap(), "-y"]);
        let mut n = 0;
        let ours = || {
            n += 1;
            self.teddy(&[if n % 2 == 1 { "undo" } else { "redo" }]);
        };
        let times = sample(SAMPLES, ours, || self.workspace.git(&["status", "--short"]));
        self.row(
            "restore of 20 (git status)",
            times,
            if self.workspace.files < 10_000 {
                (5.0, 3.0)
            } else {
                (1.5, 0.9)
            },
        )
    }

    /// Commits a change of 20 files, and resets to the commit before it. Returns both commits.
    fn two_commits(&mut self) -> [String; 2] {
        let head = |workspace: &Workspace| {
            let packed = std::fs::read_to_string(workspace.path().join(".git/refs/heads/main"));
            packed.map(|id| id.trim().to_owned()).unwrap()
        };
        self.workspace
            .git(&["commit", "-q", "--allow-empty", "-m", "start"]);
        let first = head(&self.workspace);
        self.workspace.rewrite_some(CHANGED);
        self.workspace.git(&["commit", "-q", "-a", "-m", "changed"]);
        let second = head(&self.workspace);
        self.workspace.git(&["reset", "-q", "--hard", &first]);
        [first, second]
    }

    /// Measures a snapshot followed by the publication of 20 files.
    fn sync(&mut self) -> Row {
        let commits = self.two_commits();
        let gix = Repository::open(&self.workspace.path()).unwrap();
        let trees = commits.map(|id| gix.commit(id.parse::<CommitId>().unwrap()).unwrap().tree);
        let top = self.workspace.path();
        let mut n = 0;
        let ours = || {
            let repository = Repository::open(&top).unwrap();
            let index = repository.teddy_dir().join("index/main");
            let now = snapshot::take_snapshot(&repository, &index, &SnapshotLimits::default(), &[])
                .unwrap();
            assert_eq!(now.tree, trees[n % 2]);
            let guard = Guard {
                operation: "bench".to_owned(),
                ..Guard::default()
            };
            publish::publish(&repository, now.tree, trees[(n + 1) % 2], &guard).unwrap();
            n += 1;
        };
        let times = sample(SAMPLES, ours, || self.workspace.git(&["status", "--short"]));
        self.workspace.git(&["reset", "-q", "--hard"]);
        // Writing 20 files has a fixed cost, and `git status` is fast on a small tree.
        let goals = if self.workspace.files < 10_000 {
            (2.5, 1.5)
        } else {
            (1.5, 0.9)
        };
        self.row("snapshot and sync of 20 (git status)", times, goals)
    }

    /// Measures the rendering of the model's input.
    fn input(&mut self) -> Row {
        let shown: Vec<String> = (0..RESOURCES.min(self.workspace.files))
            .map(|n| {
                self.workspace
                    .file(n)
                    .strip_prefix(self.workspace.path())
                    .unwrap()
                    .display()
                    .to_string()
            })
            .collect();
        self.teddy(&["context", "rm", "**/file_1*"]);
        self.teddy(
            &[
                &["context", "add"],
                shown
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .as_slice(),
            ]
            .concat(),
        );
        self.teddy(&["context"]);
        let times = sample(
            SAMPLES,
            || self.teddy(&["context"]),
            || self.workspace.git(&["status", "--short"]),
        );
        let goals = if self.workspace.files < 10_000 {
            (5.0, 4.0)
        } else {
            (2.0, 1.5)
        };
        self.row("input of 200 resources (git status)", times, goals)
    }

    /// Compares the last turns of a session to its first ones.
    fn age(&mut self) -> Row {
        let mut times = Vec::with_capacity(TURNS);
        self.teddy(&["new", "old"]);
        self.teddy(&["context", "add", "**/file_1*"]);
        for _ in 0..TURNS {
            let plan = self.write_plan();
            times.push(time(|| {
                self.teddy(&["execute", plan.to_str().unwrap(), "-y"])
            }));
        }
        let old = times.split_off(TURNS - SAMPLES);
        self.row(
            &format!("turn {TURNS} (turn 10)"),
            (median(old), median(times[1..=SAMPLES].to_vec())),
            (1.5, 1.1),
        )
    }

    /// Measures making objects durable.
    fn durability(&mut self) -> Row {
        let repository = Repository::open(&self.workspace.path()).unwrap();
        let folder = repository.common_dir();
        let mut n = 0;
        let ours = || {
            for _ in 0..10 {
                n += 1;
                repository.write_blob(format!("{n}").as_bytes()).unwrap();
            }
            assert!(teddy::host::file::sync_whole(&folder).unwrap());
        };
        let times = sample(SAMPLES, ours, || self.workspace.git(&["status", "--short"]));
        self.row(
            "ten objects made durable (git status)",
            times,
            (f64::INFINITY, 0.5),
        )
    }
}

fn overwrite(path: &str) -> String {
    format!(
        "### `CREATE`\n- **File Path:** [{path}](/{path})\n- **Description:** Replace it.\n- **Overwrite:** true\n\n````\nfn new() {{}}\n````\n\n"
    )
}
