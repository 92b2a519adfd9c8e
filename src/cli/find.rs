//! `teddy find`: searches all recorded turns.

use clap::ValueHint;
use clap::builder::PossibleValue;
use unicode_width::UnicodeWidthStr as _;

use super::app::App;
use super::exit::{self, ExitStatus};
use super::failure::InvalidArgument;
use super::number;
use crate::project::Project;
use crate::query::find::{LinePattern, Match, Query, TurnPart, find};
use crate::text::context_list;
use crate::text::sanitize::sanitize_line;
use crate::ui::style::{StyledLine, Tone, shortened};
use crate::ui::terminal::stdout_width;

/// Search what all sessions recorded, newest turn first
///
/// Prints `session:turn:file:line: text` for each line that matches; at a terminal, each turn is
/// named once, above its lines. The pattern is a regular
/// expression of Rust's `regex` crate, the same as ripgrep's. With `-s`, only that session is
/// searched. Exits with 1 if nothing matches.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy find 'login form'                what was asked, planned, reported and printed\n  teddy find -i todo --in plan\n  teddy find 'fn main' --in code --path 'src/**/*.rs'\n  teddy find panicked --in output -s add-auth --json"
)]
pub(super) struct Args {
    /// What to look for
    pattern: String,
    /// Where to look; repeat it for several places [default: request, plan, report and output]
    #[arg(long = "in", value_name = "PART")]
    parts: Vec<TurnPart>,
    /// Only files whose name matches this pattern: paths of code, names of artifacts
    #[arg(long, value_name = "GLOB", value_hint = ValueHint::FilePath)]
    path: Option<String>,
    /// Ignore the case of letters
    #[arg(short, long)]
    ignore_case: bool,
    /// Take the pattern literally
    #[arg(short = 'F', long)]
    fixed_strings: bool,
    /// Show at most this many matches
    #[arg(short = 'n', long, value_name = "N", value_parser = number::most)]
    max_count: Option<usize>,
}

impl clap::ValueEnum for TurnPart {
    fn value_variants<'a>() -> &'a [TurnPart] {
        use TurnPart::{Code, Input, Output, Plan, Report, Request};
        &[Request, Plan, Report, Output, Input, Code]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            TurnPart::Request => (
                "request",
                "What you asked for, and said about a declined plan",
            ),
            TurnPart::Plan => ("plan", "The plan: as answered, as proposed, and as it ran"),
            TurnPart::Report => ("report", "The report, with the diffs that it names"),
            TurnPart::Output => ("output", "The output of commands"),
            TurnPart::Input => ("input", "What the model got: files, prompts, web pages"),
            TurnPart::Code => (
                "code",
                "The files that the turn changed, as they were after it",
            ),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// Columns for the text of a match, however long the name of its file is.
const MIN_TEXT: usize = 20;

/// Says that sessions of remotes were not searched, if there are any.
fn note_remote_sessions(app: &App, project: &Project) -> anyhow::Result<()> {
    if let Some((fetched, _)) = project.store().remote_sessions(None)?.first() {
        app.note(&format!(
            "Sessions of remotes were not searched; `-s {fetched}` searches one."
        ));
    }
    Ok(())
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let project = app.record()?;
    let pattern =
        LinePattern::new(&args.pattern, args.ignore_case, args.fixed_strings).map_err(|why| {
            InvalidArgument {
                hint: Some("`-F` searches for it literally".to_owned()),
                ..invalid_pattern(&args.pattern, "not a regular expression", why)
            }
        })?;
    let parts = match (args.parts.is_empty(), &args.path) {
        (false, _) => args.parts,
        (true, Some(_)) => vec![TurnPart::Code],
        (true, None) => TurnPart::DEFAULT.to_vec(),
    };

    let path = args.path.as_deref().map(|glob| {
        context_list::matcher(glob).map_err(|why| invalid_pattern(glob, "not a path pattern", why))
    });
    let query = Query {
        pattern,
        parts,
        path: path.transpose()?,
        session: project.named_session(),
    };

    let mut results = find(&project, &query)?;
    results
        .matches
        .truncate(args.max_count.unwrap_or(usize::MAX));
    for skipped in &results.skipped {
        app.warn(&format!("not searched: {skipped}"));
    }
    if results.matches.is_empty() && query.session.is_none() {
        note_remote_sessions(app, &project)?;
    }

    if app.global.json {
        app.print_json(&results.matches)?;
    } else {
        let lines = match stdout_width() {
            Some(width) => fitted(&results.matches, &query.pattern, width),
            None => results
                .matches
                .iter()
                .map(|hit| line(hit, &query.pattern))
                .collect(),
        };
        app.page(&project, &lines)?;
    }

    Ok(exit::success_if(!results.matches.is_empty()))
}

fn invalid_pattern(pattern: &str, problem: &str, why: impl ToString) -> InvalidArgument {
    // A regex error spans several lines; the last one states the problem.
    let why = why.to_string();
    let last = why.lines().last().unwrap_or_default();
    let why = last.strip_prefix("error: ").unwrap_or(last);
    InvalidArgument {
        message: format!("`{pattern}` is {problem}: {why}"),
        hint: None,
    }
}

/// Returns matches for a terminal: each turn is named once, and a long line is cut around what
/// matched.
fn fitted(hits: &[Match], pattern: &LinePattern, width: usize) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for turn in hits.chunk_by(|a, b| a.session == b.session && a.turn == b.turn) {
        let name = format!("{}:{}", turn[0].session, turn[0].turn);
        lines.push(StyledLine::of(Tone::Strong, &name));
        let turn = turn.iter().map(|hit| {
            let start = StyledLine::plain("  ").append(start(hit));
            let available = width.saturating_sub(start.width()).max(MIN_TEXT);
            let text = hit.text.as_deref().unwrap_or_default();
            start.append(matched(&around_match(text, pattern, available), pattern))
        });
        lines.extend(turn.map(|line| line.cut(width)));
    }
    lines
}

/// The part of a line that shows its first match in `width` columns.
fn around_match(text: &str, pattern: &LinePattern, width: usize) -> String {
    let text = sanitize_line(text.trim());
    let end = pattern.match_range(&text).map_or(0, |range| range.end);
    let end = (end..=text.len()).find(|&at| text.is_char_boundary(at));
    if text[..end.unwrap_or(0)].width() < width {
        return shortened(&text, width);
    }

    let words = text.char_indices().filter(|(_, c)| c.is_whitespace());
    let starts = words.map(|(at, _)| &text[at..]);
    let is_shown = |rest: &&str| {
        let dropped = text.len() - rest.len();
        end.is_some_and(|end| dropped < end && text[dropped..end].width() + 2 < width)
    };
    let match_start = pattern.match_range(&text).map_or(0, |range| range.start);
    let rest = starts
        .filter(|rest| text.len() - rest.len() <= match_start)
        .find(is_shown)
        .or_else(|| text.get(match_start..))
        .unwrap_or(&text);
    format!("…{}", shortened(rest, width.saturating_sub(1)))
}

fn line(hit: &Match, pattern: &LinePattern) -> StyledLine {
    let Match { session, turn, .. } = hit;
    let line = StyledLine::of(Tone::Strong, &format!("{session}:{turn}")).with(Tone::Faint, ":");
    let text = hit.text.as_deref().unwrap_or_default();
    line.append(start(hit)).append(matched(text, pattern))
}

/// Returns the file and the number of the line.
fn start(hit: &Match) -> StyledLine {
    let line = StyledLine::plain(&hit.file);
    match hit.line {
        Some(number) => line
            .with(Tone::Faint, ":")
            .with(Tone::Accent, &number.to_string())
            .with(Tone::Faint, ": "),
        None => line.with(Tone::Faint, ": binary file matches"),
    }
}

fn matched(text: &str, pattern: &LinePattern) -> StyledLine {
    match pattern.match_range(text) {
        Some(range) if text.is_char_boundary(range.start) && text.is_char_boundary(range.end) => {
            StyledLine::plain(&text[..range.start])
                .with(Tone::AddedPart, &text[range.clone()])
                .with(Tone::Plain, &text[range.end..])
        }
        _ => StyledLine::plain(text),
    }
}
