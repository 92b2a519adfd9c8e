//! `teddy find`: searches all recorded turns.

use std::process::ExitCode;

use clap::ValueHint;

use super::app::App;
use super::exit;
use super::failure::InvalidPattern;
use super::number;
use crate::text::context_list;
use crate::ui::style::{StyledLine, Tone};
use crate::workflow::find::{LinePattern, Match, Query, TurnPart, find};

/// Search what all sessions recorded, newest turn first
///
/// Prints `session:turn:file:line: text` for each line that matches. The pattern is a regular
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
    parts: Vec<SearchIn>,
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

/// Where to look.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum SearchIn {
    /// What you asked for, and said about a declined plan
    Request,
    /// The plan: as answered, as proposed, and as it ran
    Plan,
    /// The report, with the diffs that it names
    Report,
    /// The output of commands
    Output,
    /// What the model got: files, prompts, web pages
    Input,
    /// The files that the turn changed, as they were after it
    Code,
}

impl From<SearchIn> for TurnPart {
    fn from(part: SearchIn) -> TurnPart {
        match part {
            SearchIn::Request => TurnPart::Request,
            SearchIn::Plan => TurnPart::Plan,
            SearchIn::Report => TurnPart::Report,
            SearchIn::Output => TurnPart::Output,
            SearchIn::Input => TurnPart::Input,
            SearchIn::Code => TurnPart::Code,
        }
    }
}

/// Parts searched by default: the user's and the model's texts, and the results. The input is left
/// out because it repeats all of these.
const DEFAULT: [TurnPart; 4] = [
    TurnPart::Request,
    TurnPart::Plan,
    TurnPart::Report,
    TurnPart::Output,
];
/// Columns shown of a line at a terminal.
const MOST_COLUMNS: usize = 500;

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.record()?;
    let pattern = LinePattern::new(&args.pattern, args.ignore_case, args.fixed_strings)
        .map_err(|why| invalid_pattern(&args.pattern, "not a regular expression", why))?;
    let parts = match (args.parts.is_empty(), &args.path) {
        (false, _) => args.parts.into_iter().map(TurnPart::from).collect(),
        (true, Some(_)) => vec![TurnPart::Code],
        (true, None) => DEFAULT.to_vec(),
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

    if app.global.json {
        app.print_json(&results.matches)?;
    } else {
        let lines: Vec<_> = results
            .matches
            .iter()
            .map(|hit| line(hit, &query.pattern))
            .collect();
        app.page(&project, &lines)?;
    }

    Ok(if results.matches.is_empty() {
        exit::FAILED.into()
    } else {
        exit::SUCCESS.into()
    })
}

fn invalid_pattern(pattern: &str, problem: &'static str, why: impl ToString) -> InvalidPattern {
    // A regex error spans several lines; the last one states the problem.
    let why = why.to_string();
    let last = why.lines().last().unwrap_or_default();
    InvalidPattern {
        pattern: pattern.to_owned(),
        problem,
        why: last.strip_prefix("error: ").unwrap_or(last).to_owned(),
    }
}

fn line(hit: &Match, pattern: &LinePattern) -> StyledLine {
    let Match { session, turn, .. } = hit;
    let line = StyledLine::of(Tone::Strong, &format!("{session}:{turn}"))
        .with(Tone::Faint, ":")
        .with(Tone::Plain, &hit.file);
    let (Some(number), Some(text)) = (hit.line, &hit.text) else {
        return line.with(Tone::Faint, ": binary file matches");
    };
    let line = line
        .with(Tone::Faint, ":")
        .with(Tone::Accent, &number.to_string())
        .with(Tone::Faint, ": ");
    let text: String = text.chars().take(MOST_COLUMNS).collect();

    match pattern.match_range(&text) {
        Some(range) if text.is_char_boundary(range.start) && text.is_char_boundary(range.end) => {
            line.with(Tone::Plain, &text[..range.start])
                .with(Tone::AddedPart, &text[range.clone()])
                .with(Tone::Plain, &text[range.end..])
        }
        _ => line.with(Tone::Plain, &text),
    }
}
