//! Benchmarks commands that read a long session, relative to git on the same commits.
//!
//! `cargo bench --bench history` creates a session of 2,000 turns, prints a table and fails if a
//! required ratio is exceeded. `log` caches facts about turns, so its first run has a separate row
//! without a required ratio.
#![allow(clippy::unwrap_used, reason = "a bench fails where it must")]

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use support::{Row, Workspace, apart, head, median, run, sample, teddy, time};

const TURNS: usize = 2000;
const FILES: usize = 200;
// Per row.
const SAMPLES: usize = 21;
const PLAN: &str = "# Change files\n\n## Rationale\n```text\nA bench.\n```\n\n## Action Plan\n\n### `CREATE`\n- **File Path:** [d0/new.rs](/d0/new.rs)\n- **Description:** Make it.\n\n````\nnew\n````\n";
const SESSION: &str = "refs/teddy/sessions/long";

fn main() {
    let bench = Bench::new();
    let rows = [
        bench.first_log(),
        bench.log("log", &["log"]),
        bench.log("log --json", &["log", "--json"]),
        bench.completion("turns", &["teddy", "show", ""]),
        bench.completion("sessions", &["teddy", "switch", ""]),
    ];
    head("git");
    let missed = rows.into_iter().filter(|row| !row.print()).count();
    assert_eq!(missed, 0, "ratios that must be reached were missed");
}

struct Bench {
    workspace: Workspace,
    home: PathBuf,
}

impl Bench {
    /// Creates one turn with TeDDy, and further commits like it with `git fast-import`.
    fn new() -> Bench {
        let workspace = Workspace::new(FILES);
        let home = workspace.beside("home");
        let bench = Bench { workspace, home };
        let plan = bench.workspace.beside("plan.md");
        std::fs::write(&plan, PLAN).unwrap();
        bench.teddy(&["new", "long"]);
        bench.teddy(&["execute", plan.to_str().unwrap(), "-y"]);
        bench.continue_session();
        bench
    }

    fn continue_session(&self) {
        let first = self.read(&["rev-parse", SESSION]);
        let [workspace, publication] =
            [2, 3].map(|parent| self.read(&["rev-parse", &format!("{first}^{parent}")]));
        let meta = self.read(&["show", &format!("{first}:meta.yaml")]);
        let after = self.import_files(&workspace);
        let publications = self.import_publications(&after, &publication);

        let mut stream = String::new();
        for turn in 2..=TURNS {
            let (before, after) = (&after[turn - 2], &after[turn - 1]);
            let facts = facts(&meta, turn, [before, after]);
            let from = if turn == 2 {
                first.clone()
            } else {
                format!(":{}", turn - 1)
            };
            let message = format!(
                "Change files {turn}\n\n> please change them\n\nCREATE d0/new.rs: done\n1 file changed\n\nTeddy-Session: long\nTeddy-Turn: {turn}\nTeddy-Status: executed\nTeddy-Agent: pathfinder\n"
            );
            stream += &commit(SESSION, turn, &message, &from);
            let publication = &publications[turn - 1];
            write!(stream, "merge {after}\nmerge {publication}\n").unwrap();
            stream += &file("meta.yaml", &facts);
            stream += &file("plan.md", &format!("{PLAN}\n<!-- {turn} -->\n"));
            stream += &file("report.md", &format!("# Report {turn}\n").repeat(20));
        }
        self.import(&stream);
    }

    /// Creates one workspace commit per turn. Returns them after that of the first turn.
    fn import_files(&self, first: &str) -> Vec<String> {
        let mut stream = String::new();
        for turn in 2..=TURNS {
            let from = if turn == 2 {
                first.to_owned()
            } else {
                format!(":{}", turn - 1)
            };
            let message =
                format!("Change files {turn}\n\nTeddy-Session: long\nTeddy-Turn: {turn}\n");
            stream += &commit("refs/heads/files", turn, &message, &from);
            let path = format!("d{}/e{}/made_{}.rs", turn % 13, turn % 5, turn % 40);
            stream += &file(&path, &format!("change {turn}\n"));
        }
        self.take("refs/heads/files", first, &stream)
    }

    /// Creates the publication of each workspace commit but the first, whose one is `first`.
    fn import_publications(&self, after: &[String], first: &str) -> Vec<String> {
        let mut stream = String::new();
        for turn in 2..=TURNS {
            let below = if turn == 2 {
                first.to_owned()
            } else {
                format!(":{}", turn - 1)
            };
            let [from, to] = [&after[turn - 2], &after[turn - 1]];
            // The patch below is found by its parent, as in a session that git has rewritten.
            let message = format!(
                "Files after turn {turn} of long\n\n{{\"schema\":1,\"session\":\"long\",\"turn\":{turn},\"change\":{{\"before\":\"{from}\",\"after\":\"{to}\"}},\"below\":{{\"top\":\"{first}\"}},\"applied\":true}}\n"
            );
            stream += &commit("refs/heads/publications", turn, &message, to);
            writeln!(stream, "merge {below}").unwrap();
        }
        self.take("refs/heads/publications", first, &stream)
    }

    /// Imports commits with the marks from 2 on. Returns their ids after `first`.
    fn take(&self, reference: &str, first: &str, stream: &str) -> Vec<String> {
        self.import(stream);
        let marks = std::fs::read_to_string(self.workspace.beside("marks")).unwrap();
        let marks = marks.lines().map(|line| {
            let (mark, id) = line[1..].split_once(' ').unwrap();
            (mark.parse::<usize>().unwrap(), id.to_owned())
        });
        self.workspace.git(&["update-ref", "-d", reference]);
        let ids = marks.collect::<BTreeMap<_, _>>().into_values();
        [first.to_owned()].into_iter().chain(ids).collect()
    }

    /// Measures `log` without its cache.
    fn first_log(&self) -> Row {
        let remembered = self.workspace.path().join(".git/teddy/log");
        let forget = || {
            let _ = std::fs::remove_dir_all(&remembered);
        };
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            forget();
            ours.push(time(|| self.teddy(&["log"])));
            gits.push(time(|| self.git_log()));
        }
        let times = (median(ours), median(gits));
        self.row("first log", times, (f64::INFINITY, 4.0))
    }

    fn log(&self, name: &str, args: &[&str]) -> Row {
        self.teddy(args);
        let times = sample(SAMPLES, || self.teddy(args), || self.git_log());
        let name = format!("{name} (git log --first-parent)");
        self.row(&name, times, (1.5, 1.5))
    }

    /// Measures shell completion.
    fn completion(&self, name: &str, words: &[&str]) -> Row {
        let index = (words.len() - 1).to_string();
        let ours = || {
            let mut command = self.command(&[&["--"], words].concat());
            command
                .env("TEDDY_COMPLETE", "bash")
                .env("_CLAP_COMPLETE_INDEX", &index)
                .env("_CLAP_IFS", "\n");
            run(&mut command);
        };
        let times = sample(SAMPLES, ours, || self.workspace.git(&["status", "--short"]));
        let name = format!("completion of {name} (git status)");
        self.row(&name, times, (1.5, 1.5))
    }

    fn git_log(&self) {
        self.workspace.git(&["log", "--first-parent", SESSION]);
    }

    fn row(
        &self,
        name: &str,
        (ours, gits): (Duration, Duration),
        (at_first, goal): (f64, f64),
    ) -> Row {
        Row {
            name: format!("{TURNS} turns, {name}"),
            ours,
            gits,
            at_first,
            goal,
        }
    }

    fn teddy(&self, args: &[&str]) {
        run(&mut self.command(args));
    }

    fn command(&self, args: &[&str]) -> Command {
        teddy(&self.workspace.path(), &self.home, args)
    }

    fn git(&self) -> Command {
        apart(&self.workspace.path(), &self.home, "git")
    }

    fn read(&self, args: &[&str]) -> String {
        let output = self.git().args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    fn import(&self, stream: &str) {
        let path = self.workspace.beside("stream");
        std::fs::write(&path, stream).unwrap();
        let input = std::fs::File::open(&path).unwrap();
        let mut command = self.git();
        let marks = format!(
            "--export-marks={}",
            self.workspace.beside("marks").display()
        );
        command.args(["fast-import", "--quiet", "--force", &marks]);
        run(command.stdin(input));
    }
}

fn commit(reference: &str, mark: usize, message: &str, from: &str) -> String {
    format!(
        "commit {reference}\nmark :{mark}\ncommitter TeDDy <teddy@localhost> {} +0000\ndata {}\n{message}\nfrom {from}\n",
        1_790_000_000 + mark,
        message.len()
    )
}

fn file(path: &str, text: &str) -> String {
    format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len())
}

/// Derives the metadata of a turn from that of the first one.
fn facts(first: &str, turn: usize, [before, after]: [&str; 2]) -> String {
    let line = |line: &str| match line.split_once(": ").map(|(key, _)| key) {
        Some("turn_id") => format!("turn_id: 00000000-0000-7000-8000-{turn:012}\n"),
        Some("number") => format!("number: {turn}\n"),
        Some("  before") => format!("  before: {before}\n"),
        Some("  after") => format!("  after: {after}\n"),
        _ => format!("{line}\n"),
    };
    first.lines().map(line).collect()
}
