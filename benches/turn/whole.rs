//! Benchmarks whole turns, with a model that answers immediately, against their limits.
#![allow(clippy::print_stdout, reason = "a bench reports on stdout")]

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support::model::Model;
use crate::support::{self, Workspace, fastest, median, peak, run, teddy, time};

const SAMPLES: usize = 15;
/// Number of turns in an old session.
const TURNS: usize = 2_000;
const UNDOS: usize = 100;
/// Number of files in a large directory.
const FLAT: usize = 50_000;
const SESSIONS: usize = 1_000;
/// Number of files in the model's input.
const SHOWN: usize = 10;
/// Number of files in the tree of a race.
const RACED: usize = 10_000;
/// An agent that takes no time, and creates one file.
const AGENT: &str = "  instant: { kind: agent, run: [sh, -c, 'echo x > made.txt'] }\n";
/// An agent of the Agent Client Protocol that takes no time, and changes one file.
const ACP: &str = r#"  talks:
    kind: acp
    run:
      - sh
      - -c
      - |
        while read -r line; do
          id=${line#*\"id\":}
          id=${id%%[,\}]*}
          result='{}'
          case $line in
          *'"method":"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}' ;;
          *'"method":"session/new"'*) result='{"sessionId":"s-1"}' ;;
          *'"method":"session/prompt"'*) echo x >> said.txt; result='{"stopReason":"end_turn"}' ;;
          esac
          printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
        done
"#;
/// A plan with a command that takes no time.
const COMMAND: &str = "# Run a command\n\n## Rationale\n```text\nA bench.\n```\n\n## Action Plan\n\n### `EXECUTE`\n- **Description:** Run it.\n- **Expected Outcome:** It works.\n\n````shell\ntrue\n````\n";

#[derive(Clone, Copy)]
enum Limit {
    /// In milliseconds.
    Time(u64),
    /// As a multiple of the time of git or of the other tree.
    Ratio(f64),
    /// In megabytes.
    Memory(f64),
    None,
}

struct Line {
    name: String,
    /// TeDDy's time or memory.
    ours: String,
    /// The time of git or of the other tree, and TeDDy's as a multiple of it.
    theirs: Option<(Duration, f64)>,
    limit: Limit,
    is_met: bool,
}

struct Turns {
    workspace: Workspace,
    home: PathBuf,
    model: Model,
    plan: u64,
}

/// Measures trees of these sizes and prints the table. Returns the number of missed limits.
pub fn table(sizes: &[usize]) -> usize {
    head();
    let mut missed = 0;
    let mut print = |line: Line| missed += usize::from(!line.print());
    for &files in sizes {
        let mut turns = Turns::new(Workspace::new(files).settled());
        // Turns remove files, which slows down the following ones, see `support::settle`. So cases
        // that remove the fewest files come first.
        print(turns.undo());
        print(turns.execute());
        print(turns.resume());
        print(turns.memory());
        print(turns.start());
        print(turns.first_start());
        // Last, because the other cases could not edit files in the sessions that this creates.
        print(turns.command());
        print(turns.agent());
        if files == RACED {
            print(turns.resumed_agent());
            print(turns.race());
        }
        if files >= RACED {
            let mut turns = Turns::new(Workspace::new(files).loosened().settled());
            print(turns.first_start());
        }
        if files < 10_000 {
            ages(files).into_iter().for_each(&mut print);
        }
    }

    // A directory is read, sorted and written as a whole, so a large one shows the cost.
    let mut turns = Turns::new(Workspace::flat(FLAT).settled());
    print(turns.undo());
    print(turns.execute());
    print(turns.resume());

    println!("\n{missed} limits were missed");
    missed
}

/// Compares an old session, and one among many, to a young session on its own.
fn ages(files: usize) -> Vec<Line> {
    let mut young = Turns::new(Workspace::new(files));
    let mut among = Turns::new(Workspace::new(files));
    among.multiply();
    let mut old = Turns::new(Workspace::new(files));
    for _ in 0..TURNS {
        old.execute_once();
    }

    // Each turn removes a dozen files. Wait, so that only the age of the session counts.
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
    fn new(workspace: Workspace) -> Turns {
        let home = workspace.beside("home");
        let model = Model::start();
        let settings = home.join(".config/teddy");
        std::fs::create_dir_all(&settings).unwrap();
        let configured = format!("{}{AGENT}{ACP}", model.settings());
        std::fs::write(settings.join("config.yaml"), configured).unwrap();

        let mut turns = Turns {
            workspace,
            home,
            model,
            plan: 0,
        };
        turns.start_once("first");
        turns
    }

    fn start(&mut self) -> Line {
        let mut n = 0;
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            n += 1;
            ours.push(self.start_once(&format!("s-{n}")));
            gits.push(self.status());
        }

        let limit = self.by_size(Limit::Time(90), Limit::Ratio(3.5), Limit::Ratio(1.5));
        self.row("start -m", (fastest(ours), fastest(gits)), limit)
    }

    /// Measures the first session in a repository: no index of TeDDy's, no worktree.
    fn first_start(&mut self) -> Line {
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            self.workspace.forget_sessions();
            ours.push(self.start_once("first"));
            gits.push(self.status());
        }

        let limit = self.by_size(Limit::None, Limit::Ratio(3.0), Limit::Ratio(2.2));
        let name = if self.workspace.is_loose {
            "first start -m, loose objects"
        } else {
            "first start -m"
        };
        self.row(name, (fastest(ours), fastest(gits)), limit)
    }

    fn resume(&mut self) -> Line {
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            ours.push(self.resume_once());
            gits.push(self.status());
        }

        let limit = self.by_size(Limit::Time(60), Limit::Ratio(2.5), Limit::Ratio(1.2));
        self.row("resume -m", (fastest(ours), fastest(gits)), limit)
    }

    fn execute(&mut self) -> Line {
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            ours.push(self.execute_once());
            gits.push(self.status());
        }

        let limit = self.by_size(Limit::None, Limit::Ratio(1.5), Limit::Ratio(0.8));
        self.row("execute", (fastest(ours), fastest(gits)), limit)
    }

    fn undo(&mut self) -> Line {
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for n in 0..SAMPLES - 1 {
            ours.push(time(|| self.undo_once(n)));
            gits.push(self.status());
        }

        let limit = self.by_size(Limit::None, Limit::Ratio(0.9), Limit::Ratio(0.4));
        self.row("undo", (fastest(ours), fastest(gits)), limit)
    }

    /// Measures undo and redo, relative to another tree.
    fn undo_against(&self, other: &Turns, name: &str) -> Line {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for n in 0..SAMPLES - 1 {
            ours.push(time(|| self.undo_once(n)));
            theirs.push(time(|| other.undo_once(n)));
        }
        self.row(name, (median(ours), median(theirs)), Limit::Ratio(1.1))
    }

    /// Measures the extra cost of a first turn with a command over one with an edit.
    fn command(&mut self) -> Line {
        // Edits come first: each leaves a change that the next session has to record in either
        // case.
        let edits = (0..5)
            .map(|n| self.start_once(&format!("edit-{n}")))
            .collect();
        self.model.says(COMMAND);
        let commands = (0..5).map(|n| self.started(&format!("command-{n}"), "run it"));
        let commands = commands.collect();
        let over = median(commands).saturating_sub(median(edits));
        self.row("first command", (over, Duration::ZERO), Limit::Time(40))
    }

    /// Measures the extra cost of asking an agent, with its view of the files and the plan of what it
    /// did, over asking a model for a plan.
    fn agent(&mut self) -> Line {
        let ask = |turns: &Turns, name: &str, model: &str| {
            turns.teddy(&["new", name]);
            let request = ["plan", "-m", "make it", "--model", model];
            time(|| turns.teddy(&request))
        };
        self.model.says(COMMAND);
        let plans = (0..5).map(|n| ask(self, &format!("asked-{n}"), "loopback"));
        let plans = median(plans.collect());
        let agents = (0..5).map(|n| ask(self, &format!("agent-{n}"), "instant"));
        let over = median(agents.collect()).saturating_sub(plans);
        self.row("first agent", (over, Duration::ZERO), Limit::Time(40))
    }

    /// Measures a further turn of an agent that takes no time, without running its plan.
    fn resumed_agent(&mut self) -> Line {
        self.teddy(&["new", "talk"]);
        let plan = ["plan", "-m", "say it", "--model", "talks"];
        let mut times = Vec::new();
        for _ in 0..6 {
            times.push(time(|| self.teddy(&plan)));
            self.teddy(&["execute", "-y"]);
        }
        // The first one starts the conversation.
        let resumed = median(times.split_off(1));
        self.row("resumed agent", (resumed, Duration::ZERO), Limit::Time(150))
    }

    /// Measures a race of three agents that take no time.
    fn race(&self) -> Line {
        let with = ["--with", "instant,instant,instant", "--json"];
        let race = |_| time(|| self.teddy(&[&["race", "make it"], &with[..]].concat()));
        let all = median((0..5).map(race).collect());
        self.row("race of three", (all, Duration::ZERO), Limit::Time(150))
    }

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

    /// Measures further turns, relative to another tree.
    fn against(&mut self, other: &mut Turns, name: &str) -> Line {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            ours.push(self.resume_once());
            theirs.push(other.resume_once());
        }
        self.row(name, (median(ours), median(theirs)), Limit::Ratio(1.1))
    }

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

    /// Selects a limit by the number of files.
    fn by_size<T>(&self, small: T, middle: T, large: T) -> T {
        match self.workspace.files {
            0..10_000 => small,
            10_000..80_000 => middle,
            _ => large,
        }
    }

    fn multiply(&self) {
        self.workspace.multiply(SESSIONS);
    }

    fn status(&self) -> Duration {
        time(|| self.workspace.git(&["status", "--short"]))
    }

    fn command_of(&self, args: &[&str]) -> Command {
        teddy(&self.workspace.path(), &self.home, args)
    }

    fn teddy(&self, args: &[&str]) {
        run(&mut self.command_of(args));
    }

    /// Undoes or redoes the last turn, alternately.
    fn undo_once(&self, n: usize) {
        self.teddy(&[if n.is_multiple_of(2) { "undo" } else { "redo" }]);
    }

    /// Starts a session with an edit. Returns the duration.
    fn start_once(&mut self, name: &str) -> Duration {
        let text = self.next_plan();
        self.model.says(&text);
        self.started(name, &format!("please make change {}", self.plan))
    }

    /// Starts a session with a message and [`SHOWN`] files. Returns the duration.
    fn started(&self, name: &str, message: &str) -> Duration {
        let shown: Vec<String> = (0..SHOWN).map(|n| self.shown(n)).collect();
        let mut args = vec!["start", "--name", name, "-m", message, "-y"];
        args.extend(shown.iter().map(String::as_str));
        time(|| self.teddy(&args))
    }

    fn resume_once(&mut self) -> Duration {
        let text = self.next_plan();
        self.model.says(&text);
        let mut command = self.resuming(&text);
        time(|| run(&mut command))
    }

    fn resuming(&self, text: &str) -> Command {
        let message = format!("what about this?\n{text}");
        self.command_of(&["resume", "-m", &message, "-y"])
    }

    /// Runs a plan from a file. Returns the duration.
    fn execute_once(&mut self) -> Duration {
        let path = self.workspace.beside("plan.md");
        std::fs::write(&path, self.next_plan()).unwrap();
        time(|| self.teddy(&["execute", path.to_str().unwrap(), "-y"]))
    }

    /// Returns a plan that edits the first line of a file in the model's input.
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

    /// Returns the path of a file relative to the worktree.
    fn shown(&self, n: usize) -> String {
        let path = self.workspace.file(n);
        let path = path.strip_prefix(self.workspace.path()).unwrap();
        path.display().to_string()
    }
}

fn head() {
    println!(
        "\n{:<40} {:>9} {:>12} {:>6} {:>9}",
        "whole turns", "ours", "git, or one", "ratio", "limit"
    );
}

impl Line {
    /// Prints the line. Returns `false` if the limit is exceeded.
    fn print(&self) -> bool {
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
        self.is_met
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
