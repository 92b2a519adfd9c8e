//! Whole turns with a model that answers at once, against what they may cost.
#![allow(clippy::print_stdout, reason = "a bench reports on stdout")]

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support::model::Model;
use crate::support::{self, Workspace, median, peak, run, sample, teddy, time};

/// How often each is measured.
const SAMPLES: usize = 15;
/// How many turns an old session has.
const TURNS: usize = 2_000;
/// How many undos and redos a session has that has many.
const UNDOS: usize = 100;
/// How many files a folder has that has many.
const FLAT: usize = 50_000;
/// How many sessions a repository has that has many.
const SESSIONS: usize = 1_000;
/// How many files the model is shown.
const SHOWN: usize = 10;
/// A plan with the one command whose time is nothing.
const COMMAND: &str = "# Run a command\n\n## Rationale\n```text\nA bench.\n```\n\n## Action Plan\n\n### `EXECUTE`\n- **Description:** Run it.\n- **Expected Outcome:** It works.\n\n````shell\ntrue\n````\n";

/// What something may cost.
#[derive(Clone, Copy)]
enum Limit {
    /// So many milliseconds.
    Time(u64),
    /// So many times what the other side takes.
    Ratio(f64),
    /// So many megabytes.
    Memory(f64),
    /// Nothing is said.
    None,
}

/// A line of the table.
struct Line {
    /// What is measured.
    name: String,
    /// Our time, or our memory.
    ours: String,
    /// The time of the other side, if there is one, and ours as a multiple of it.
    theirs: Option<(Duration, f64)>,
    /// What it may cost.
    limit: Limit,
    /// Whether it costs no more.
    is_met: bool,
}

/// A tree, its model, and the session that goes on.
struct Turns {
    /// The tree.
    workspace: Workspace,
    /// The home folder.
    home: PathBuf,
    /// Who plans.
    model: Model,
    /// The number of the next plan.
    plan: u64,
}

/// Measures trees of these sizes and prints the table.
pub fn table(sizes: &[usize]) {
    head();
    for &files in sizes {
        let mut turns = Turns::new(Workspace::new(files).settled());
        // Each turn removes some files, which makes the next one's dearer; see [`support::settle`].
        // What removes the fewest comes first.
        turns.undo().print();
        turns.execute().print();
        turns.resume().print();
        turns.memory().print();
        turns.start().print();
        // The sessions that this leaves have no files that a plan could change.
        turns.command().print();
        if files < 10_000 {
            ages(files).iter().for_each(Line::print);
        }
    }

    // A folder is read, sorted and written as a whole: what that takes shows where it is large.
    let mut turns = Turns::new(Workspace::flat(FLAT).settled());
    turns.undo().print();
    turns.execute().print();
    turns.resume().print();
}

/// Returns the lines that compare an old session, and one among many, with a young one alone.
fn ages(files: usize) -> Vec<Line> {
    let mut young = Turns::new(Workspace::new(files));
    let mut among = Turns::new(Workspace::new(files));
    among.multiply();
    let mut old = Turns::new(Workspace::new(files));
    for _ in 0..TURNS {
        old.execute_once();
    }

    // Each turn frees a dozen files: what is to be seen here is the age of the session.
    support::settle();

    let mut lines = vec![
        old.against(&mut young, &format!("turn {TURNS} (turn 10)")),
        among.against(&mut young, &format!("turn among {SESSIONS} sessions (one)")),
    ];
    (0..UNDOS).for_each(|n| old.undo_once(n));
    support::settle();
    lines.push(old.undo_against(&young, &format!("undo {UNDOS} (undo 1)")));
    lines
}

impl Turns {
    /// Makes a session with a turn in it in a tree.
    fn new(workspace: Workspace) -> Turns {
        let home = workspace.beside("home");
        let model = Model::start();
        let settings = home.join(".config/teddy");
        std::fs::create_dir_all(&settings).unwrap();
        std::fs::write(settings.join("config.yaml"), model.settings()).unwrap();

        let mut turns = Turns {
            workspace,
            home,
            model,
            plan: 0,
        };
        turns.start_once("first");
        turns
    }

    /// Measures the first turn of a session.
    fn start(&mut self) -> Line {
        let mut n = 0;
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            n += 1;
            ours.push(self.start_once(&format!("s-{n}")));
            gits.push(self.status());
        }

        let limit = self.by_size(Limit::Time(90), Limit::Ratio(3.5), Limit::Ratio(1.5));
        self.row("start -m", (median(ours), median(gits)), limit)
    }

    /// Measures a further turn.
    fn resume(&mut self) -> Line {
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            ours.push(self.resume_once());
            gits.push(self.status());
        }

        let limit = self.by_size(Limit::Time(60), Limit::Ratio(2.5), Limit::Ratio(1.2));
        self.row("resume -m", (median(ours), median(gits)), limit)
    }

    /// Measures a plan that somebody else made.
    fn execute(&mut self) -> Line {
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            ours.push(self.execute_once());
            gits.push(self.status());
        }

        let limit = self.by_size(Limit::None, Limit::Ratio(1.5), Limit::Ratio(0.8));
        self.row("execute", (median(ours), median(gits)), limit)
    }

    /// Measures undoing a turn and redoing it.
    fn undo(&mut self) -> Line {
        let mut n = 0;
        let ours = || {
            self.undo_once(n);
            n += 1;
        };
        let times = sample(SAMPLES - 1, ours, || {
            self.workspace.git(&["status", "--short"]);
        });
        let limit = self.by_size(Limit::None, Limit::Ratio(0.9), Limit::Ratio(0.4));
        self.row("undo", times, limit)
    }

    /// Measures undoing a turn and redoing it against the same in another tree.
    fn undo_against(&self, other: &Turns, name: &str) -> Line {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for n in 0..SAMPLES - 1 {
            ours.push(time(|| self.undo_once(n)));
            theirs.push(time(|| other.undo_once(n)));
        }
        self.row(name, (median(ours), median(theirs)), Limit::Ratio(1.1))
    }

    /// Measures what the first command of a session costs over the first edit of one.
    fn command(&mut self) -> Line {
        // What an edit leaves, the next session records, whatever it does.
        let edits = (0..5)
            .map(|n| self.start_once(&format!("edit-{n}")))
            .collect();
        self.model.says(COMMAND);
        let commands = (0..5).map(|n| self.started(&format!("command-{n}"), "run it"));
        let commands = commands.collect();
        let over = median(commands).saturating_sub(median(edits));
        self.row("first command", (over, Duration::ZERO), Limit::Time(40))
    }

    /// Measures how much memory a further turn takes.
    fn memory(&mut self) -> Line {
        let peaks = (0..5).map(|_| {
            let text = self.next_plan();
            self.model.says(&text);
            peak(&mut self.resuming(&text))
        });
        let most = peaks.max().unwrap() as f64 / 1e6;
        let limit = self.by_size(25.0, 30.0, 60.0);
        Line {
            name: format!("{} files, peak of resume -m", self.workspace.files),
            ours: format!("{most:.1} MB"),
            theirs: None,
            limit: Limit::Memory(limit),
            is_met: most <= limit,
        }
    }

    /// Measures a further turn of ours against one of another tree.
    fn against(&mut self, other: &mut Turns, name: &str) -> Line {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            ours.push(self.resume_once());
            theirs.push(other.resume_once());
        }
        self.row(name, (median(ours), median(theirs)), Limit::Ratio(1.1))
    }

    /// Returns a line about times: ours, and the other side's.
    fn row(&self, name: &str, (ours, theirs): (Duration, Duration), limit: Limit) -> Line {
        let limit = if self.workspace.is_flat {
            Limit::Ratio(1.5)
        } else {
            limit
        };
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        let is_met = match limit {
            Limit::Time(most) => ours <= Duration::from_millis(most),
            Limit::Ratio(most) => ratio <= most,
            Limit::Memory(_) | Limit::None => true,
        };
        let place = if self.workspace.is_flat {
            " in one folder"
        } else {
            ""
        };
        Line {
            name: format!("{} files{place}, {name}", self.workspace.files),
            ours: milliseconds(ours),
            theirs: (theirs > Duration::ZERO).then_some((theirs, ratio)),
            limit,
            is_met,
        }
    }

    /// Returns what holds for a tree of this size.
    fn by_size<T>(&self, small: T, middle: T, large: T) -> T {
        match self.workspace.files {
            0..10_000 => small,
            10_000..80_000 => middle,
            _ => large,
        }
    }

    /// Gives the repository many sessions, each with a commit of its own.
    fn multiply(&self) {
        self.workspace.multiply(SESSIONS);
    }

    /// Returns how long git looks at the files.
    fn status(&self) -> Duration {
        time(|| self.workspace.git(&["status", "--short"]))
    }

    /// Returns TeDDy in the tree, with its session.
    fn command_of(&self, args: &[&str]) -> Command {
        teddy(&self.workspace.path(), &self.home, args)
    }

    /// Runs TeDDy in the tree.
    fn teddy(&self, args: &[&str]) {
        run(&mut self.command_of(args));
    }

    /// Undoes the last turn, or redoes it, by turns.
    fn undo_once(&self, n: usize) {
        self.teddy(&[if n.is_multiple_of(2) { "undo" } else { "redo" }]);
    }

    /// Starts a session whose first turn changes a file; returns how long it took.
    fn start_once(&mut self, name: &str) -> Duration {
        let text = self.next_plan();
        self.model.says(&text);
        self.started(name, &format!("please make change {}", self.plan))
    }

    /// Begins a session with a message and the files that are shown; returns how long it took.
    fn started(&self, name: &str, message: &str) -> Duration {
        let shown: Vec<String> = (0..SHOWN).map(|n| self.shown(n)).collect();
        let mut args = vec!["start", name, "-m", message, "-y"];
        args.extend(shown.iter().map(String::as_str));
        time(|| self.teddy(&args))
    }

    /// Makes a further turn; returns how long it took.
    fn resume_once(&mut self) -> Duration {
        let text = self.next_plan();
        self.model.says(&text);
        let mut command = self.resuming(&text);
        time(|| run(&mut command))
    }

    /// Returns the command of a further turn.
    fn resuming(&self, text: &str) -> Command {
        let message = format!("what about this?\n{text}");
        self.command_of(&["resume", "-m", &message, "-y"])
    }

    /// Runs a plan from a file; returns how long it took.
    fn execute_once(&mut self) -> Duration {
        let path = self.workspace.beside("plan.md");
        std::fs::write(&path, self.next_plan()).unwrap();
        time(|| self.teddy(&["execute", path.to_str().unwrap(), "-y"]))
    }

    /// Returns a plan that changes the first line of a file that the model sees.
    fn next_plan(&mut self) -> String {
        self.plan += 1;
        let n = usize::try_from(self.plan).unwrap() % SHOWN;
        let path = self.shown(n);
        let text = std::fs::read_to_string(self.workspace.file(n)).unwrap();
        let first = text.lines().next().unwrap();
        let changed = format!("let changed = {};", self.plan);
        [
            super::HEAD,
            &format!(
                "### `EDIT`\n- **File Path:** [{path}](/{path})\n- **Description:** Change it.\n\n"
            ),
            &format!("`FIND:`\n````\n{first}\n````\n`REPLACE:`\n````\n{changed}\n````\n"),
        ]
        .concat()
    }

    /// Returns the path of a file as plans have it.
    fn shown(&self, n: usize) -> String {
        let path = self.workspace.file(n);
        let path = path.strip_prefix(self.workspace.path()).unwrap();
        path.display().to_string()
    }
}

/// Prints the head of the table.
fn head() {
    println!(
        "\n{:<40} {:>9} {:>12} {:>6} {:>9}",
        "whole turns", "ours", "git, or one", "ratio", "limit"
    );
}

impl Line {
    /// Prints the line.
    fn print(&self) {
        let (theirs, ratio) = self.theirs.map_or_else(Default::default, |(time, ratio)| {
            (milliseconds(time), format!("{ratio:.2}"))
        });
        let limit = match self.limit {
            Limit::Time(most) => format!("{most} ms"),
            Limit::Ratio(most) => format!("{most:.1} x"),
            Limit::Memory(most) => format!("{most:.0} MB"),
            Limit::None => String::new(),
        };
        let verdict = if self.is_met { "" } else { "missed" };
        let Line { name, ours, .. } = self;
        println!("{name:<40} {ours:>9} {theirs:>12} {ratio:>6} {limit:>9} {verdict}");
    }
}

/// Shows a time.
fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
