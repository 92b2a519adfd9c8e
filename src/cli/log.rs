//! `teddy log`: lists the turns of a session.

use clap::ValueHint;
use unicode_width::UnicodeWidthStr as _;

use super::app::App;
use super::difference::{self, ShownAs};
use super::failure::InvalidArgument;
use super::status::at_work;
use super::{complete, number};
use crate::project::{Project, active_process};
use crate::query::log::{ChosenTurns, ListedTurn, LogRow, TurnRow, choose_turns, draw_graph, log};
use crate::query::{history, paths};
use crate::session::name::SessionName;
use crate::text::counted;
use crate::text::shell_word::shell_word;
use crate::ui::style::{StyledLine, Tone, shortened};
use crate::ui::terminal;
use crate::ui::turn_text::{self, LogColumns};

/// List the turns of the session, newest first
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy log\n  teddy log -n 5 --json\n  teddy log origin/add-auth              a session that was fetched\n  teddy log --oneline --reverse\n  teddy log --graph --all                sessions and their branches\n  teddy log -p -- src                    what turns changed below src\n  teddy log --stat --since yesterday\n  git log --first-parent teddy/sessions/add-auth"
)]
pub(super) struct Args {
    /// The session, also one of a remote such as `origin/add-auth`; the one in use if omitted
    #[arg(value_name = "SESSION", conflicts_with = "all", add = complete::with(complete::all_sessions))]
    of: Option<String>,
    /// Show at most this many turns
    #[arg(short = 'n', long, value_name = "N", value_parser = number::most)]
    max_count: Option<usize>,
    /// List the turns of all sessions, each once
    #[arg(long)]
    all: bool,
    /// One short line for each turn: number, id and title
    #[arg(long, conflicts_with = "json")]
    oneline: bool,
    /// List the oldest turn first
    #[arg(long, conflicts_with = "graph")]
    reverse: bool,
    /// Draw the history as `git log --graph` does; with `--all`, sessions with their branches
    #[arg(long, conflicts_with_all = ["json", "since", "paths"])]
    graph: bool,
    /// Also show what each turn changed
    #[arg(short, long, conflicts_with = "json")]
    patch: bool,
    /// Also show how much each turn changed, by file
    #[arg(long, conflicts_with = "json")]
    stat: bool,
    /// Only turns since a time, such as `yesterday` or `2026-11-01`
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only turns that changed one of these files or directories
    #[arg(last = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    let mut project = app.record()?;
    if let Some(name) = &args.of {
        let session = resolve_session(app, &project, name)?;
        project.work_on(&session);
    }

    if let Ok(session) = project.session()
        && history::is_rewritten(&project, &session)
    {
        app.warn(history::REWRITTEN);
    }
    if let Ok(session) = project.session()
        && let Some(holder) = active_process(&project, &session)
    {
        app.note(&at_work(&holder));
    }

    let lines = if args.graph {
        let nodes = draw_graph(&project, args.all, args.max_count)?;
        let turns = nodes.iter().filter_map(|node| node.turn.as_ref());
        let without_code = turns.filter(|turn| turn.row.without_code).count();
        args.warn_without_code(app, without_code);
        drawn(&project, &nodes, &args)?
    } else if args.is_plain() {
        let mut rows = log(&project, args.max_count.unwrap_or(usize::MAX))?;
        if args.reverse {
            rows.reverse();
        }
        if app.global.json {
            return app.print_json(&rows);
        }
        let rows = rows.iter().map(|row| (number(row), row)).collect();
        args.lines(rows, terminal::stdout_width())
    } else {
        let turns = args.choose(app, &project)?;
        if app.global.json {
            let rows: anyhow::Result<Vec<_>> = turns.iter().map(json).collect();
            return app.print_json(&rows?);
        }
        listed(&project, &turns, &args)?
    };

    app.page(&project, &lines)
}

/// Returns the session of a name, or an error that considers that a file was meant.
fn resolve_session(app: &App, project: &Project, name: &str) -> anyhow::Result<SessionName> {
    let session = SessionName::from_address(name).map_err(anyhow::Error::from);
    let session = session.and_then(|session| {
        project.store().tip_id(&session)?;
        Ok(session)
    });
    let is_file = |dir: std::path::PathBuf| dir.join(name).exists();

    session.map_err(|error| match app.dir().is_ok_and(is_file) {
        true => InvalidArgument::error(
            error.to_string(),
            format!(
                "`teddy log -- {}` lists the turns that changed it",
                shell_word(name)
            ),
        ),
        false => error,
    })
}

impl Args {
    /// Returns whether only the newest turns of the session in use are requested.
    fn is_plain(&self) -> bool {
        let is_shaped = self.all || self.patch || self.stat;
        !is_shaped && self.since.is_none() && self.paths.is_empty()
    }

    fn choose(&self, app: &App, project: &Project) -> anyhow::Result<Vec<ListedTurn>> {
        let paths = paths::resolve_paths(&project.repository, &app.dir()?, &self.paths)?;
        let since = self.since.as_deref();
        let ChosenTurns {
            mut turns,
            without_code,
        } = choose_turns(project, self.all, since, &paths, self.max_count)?;
        self.warn_without_code(app, without_code);
        if self.reverse {
            turns.reverse();
        }
        Ok(turns)
    }

    /// Warns of turns that were fetched without their files, if their changes are requested.
    fn warn_without_code(&self, app: &App, count: usize) {
        if count > 0 && (self.patch || self.stat || !self.paths.is_empty()) {
            app.warn(&format!(
                "the files of {} were not pushed, so what these changed is unknown; `teddy push --code` on the other side sends the files",
                counted(count, "turn")
            ));
        }
    }

    /// Returns the changes of a turn in the requested form.
    fn changes(&self, project: &Project, row: &LogRow) -> anyhow::Result<Vec<StyledLine>> {
        let (Some(before), Some(after)) = (row.before, row.after) else {
            return Ok(Vec::new());
        };
        let forms = [(self.stat, ShownAs::Stat), (self.patch, ShownAs::Patch)];
        let mut lines = Vec::new();
        for (_, form) in forms.into_iter().filter(|(is_wanted, _)| *is_wanted) {
            let tree = |commit| project.repository.commit(commit).map(|commit| commit.tree);
            let trees = (tree(before)?, tree(after)?);
            lines.extend(difference::lines(project, trees.0, trees.1, form, &|_| {
                true
            })?);
        }

        Ok(lines)
    }

    /// Returns named turns as lines in the requested form, fitted to a terminal of that
    /// width.
    fn lines(&self, rows: Vec<(String, &LogRow)>, width: Option<usize>) -> Vec<StyledLine> {
        let columns = LogColumns::fitting(&rows, width);
        let line = |(name, row): (String, &LogRow)| match self.oneline {
            true => turn_text::log_oneline(&name, row, width),
            false => turn_text::log_line(&name, row, width, columns),
        };
        rows.into_iter().map(line).collect()
    }
}

fn json(turn: &ListedTurn) -> anyhow::Result<serde_json::Value> {
    let mut row = serde_json::to_value(&turn.row)?;
    row["session"] = serde_json::to_value(&turn.session)?;
    Ok(row)
}

fn number(row: &LogRow) -> String {
    format!("{:>4}", row.number)
}

/// Returns turns as lines, with their changes if requested.
fn listed(project: &Project, turns: &[ListedTurn], args: &Args) -> anyhow::Result<Vec<StyledLine>> {
    let terminal_width = terminal::stdout_width();
    let is_fitted = terminal_width.is_some();
    let name = |turn: &ListedTurn| match args.all && !is_fitted {
        true => format!("{}:{}", turn.session, turn.row.number),
        false => number(&turn.row),
    };
    let width = turns.iter().map(|turn| name(turn).len()).max().unwrap_or(0);
    let rows = turns.iter();
    let rows = rows.map(|turn| (format!("{:width$}", name(turn)), &turn.row));
    let mut lines = Vec::new();

    let mut session = None;
    for (turn, line) in turns.iter().zip(args.lines(rows.collect(), terminal_width)) {
        if args.all && is_fitted && session != Some(&turn.session) {
            session = Some(&turn.session);
            let name = StyledLine::of(Tone::Strong, turn.session.as_str());
            lines.push(name.cut(terminal_width.unwrap_or(usize::MAX)));
        }
        lines.push(line);
        lines.extend(args.changes(project, &turn.row)?);
        if args.stat || args.patch {
            lines.push(StyledLine::default());
        }
    }

    Ok(lines)
}

/// Returns a graph of sessions as lines, with changes next to the edges.
fn drawn(project: &Project, nodes: &[TurnRow], args: &Args) -> anyhow::Result<Vec<StyledLine>> {
    let width = terminal::stdout_width();
    let fitted = |name: &SessionName| match width {
        Some(width) => shortened(name.as_str(), width / 3),
        None => name.to_string(),
    };
    let mut lines = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let drawing = StyledLine::of(Tone::Faint, &node.drawing);
        let Some(turn) = &node.turn else {
            lines.push(drawing);
            continue;
        };
        let name = format!("{}:{}", fitted(&turn.session), turn.row.number);
        let tips = node.tips.iter().map(|tip| format!(" ({})", fitted(tip)));
        let tips: String = tips.collect();
        let remaining = width.map(|width| width.saturating_sub(drawing.width() + tips.width()));
        let line = args.lines(vec![(name, &turn.row)], remaining).remove(0);
        let line = drawing.append(line).with(Tone::Accent, &tips);
        lines.push(line.cut(width.unwrap_or(usize::MAX)));

        let continuation = if at + 1 < nodes.len() { "|" } else { " " };
        let connection = StyledLine::of(Tone::Faint, &node.drawing.replace('*', continuation));
        let changes = args.changes(project, &turn.row)?;
        lines.extend(
            changes
                .into_iter()
                .map(|line| connection.clone().append(line)),
        );
    }

    Ok(lines)
}
