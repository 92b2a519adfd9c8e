//! `teddy blame`: shows the turn that each line of a file comes from.

use clap::ValueHint;
use unicode_width::UnicodeWidthStr as _;

use super::app::App;
use super::failure::InvalidArgument;
use super::request::is_file;
use super::source;
use crate::project::Project;
use crate::query::blame::{Blamed, LineSource, blamed, request};
use crate::query::paths;
use crate::text::hint::with_hint;
use crate::text::ranges;
use crate::text::sanitize::sanitize_line;
use crate::ui::style::{StyledLine, Tone, block, shortened};
use crate::ui::terminal::stdout_width;

/// Show which turn each line of a file comes from
///
/// Lines of landed commits are traced back to their turns, also after a rebase, an amendment or a
/// cherry-pick, as long as the trailers are in the message. Other lines have the user's own commit,
/// or are not committed.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy blame src/login.rs\n  teddy blame src/login.rs:10\n  teddy blame src/login.rs:10,20\n  teddy blame --prompt src/login.rs      with what was asked for\n  git blame src/login.rs"
)]
pub(super) struct Args {
    /// Only these lines: `10,20`, `10,+5`, or anything else that `git blame -L` takes
    #[arg(short = 'L', value_name = "RANGE")]
    range: Option<String>,
    /// Before the lines of a turn, show what was asked for
    #[arg(long, conflicts_with = "json")]
    prompt: bool,
    /// The file, and a line or lines of it
    #[arg(value_name = "FILE[:LINE]", value_hint = ValueHint::FilePath)]
    file: String,
}

/// Columns for the origin of a line and its number, at a terminal.
const MOST_LEFT: usize = 29;
/// Fewer columns than this show nothing of a title.
const MIN_TITLE: usize = 6;
/// Lines shown of a request.
const MOST_LINES: usize = 12;

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    if let Some(range) = args.range.as_deref().filter(|range| !is_range(range)) {
        let message = format!(
            "`{}` is not a range of lines, such as `10,20`",
            sanitize_line(range)
        );
        let hint = "`-L` takes what `git blame -L` takes";
        return Err(InvalidArgument::error(message, hint));
    }

    let project = app.project_for_reading()?;
    let (file, range) = match args.range {
        Some(range) => (args.file, Some(range)),
        None => file_and_lines(app, &project, args.file),
    };
    let exists = app.dir()?.join(&file).exists();
    let near = source::near(app, &file).filter(|_| !exists);
    let files = paths::resolve_paths(&project.repository, &app.dir()?, &[file])?;
    let path = files.first().map_or("", String::as_str);
    let lines = blamed(&project, path, range.as_deref()).map_err(|error| match near {
        Some(near) => with_hint(error, format!("did you mean `{near}`?")),
        None => error,
    })?;
    if app.global.json {
        return app.print_json(&lines);
    }

    app.page(&project, &render(&project, &lines, args.prompt)?)
}

/// Returns the lines of the file, each with its source; with `shows_requests`, also the request of
/// each turn above its lines.
fn render(
    project: &Project,
    lines: &[Blamed],
    shows_requests: bool,
) -> anyhow::Result<Vec<StyledLine>> {
    let digits = lines.last().map_or(1, |line| line.line.to_string().len());
    let max_name = stdout_width().map(|_| MOST_LEFT.saturating_sub(digits + 3));
    let name = |line: &Blamed| match max_name {
        Some(width) => short_name(&line.source, width),
        None => name(&line.source),
    };
    let names: Vec<String> = lines.iter().map(name).collect();
    let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let mut rendered = Vec::new();
    for (at, (line, name)) in lines.iter().zip(&names).enumerate() {
        if shows_requests && (at == 0 || lines[at - 1].source != line.source) {
            rendered.extend(asked(project, line)?);
        }

        let blanks = width - name.width();
        let tone = match line.source {
            LineSource::Turn { .. } => Tone::Accent,
            LineSource::Commit { .. } => Tone::Plain,
            LineSource::Uncommitted => Tone::Faint,
        };
        rendered.push(
            StyledLine::of(tone, name)
                .blanks(blanks)
                .with(Tone::Faint, &format!(" {:>digits$}) ", line.line))
                .with(Tone::Plain, &line.text),
        );
    }

    Ok(rendered)
}

/// Returns whether git would accept a text as a range of lines: numbers, or something to search
/// for.
fn is_range(text: &str) -> bool {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_search = text.starts_with([':', '^']) || text.contains('/');
    let (start, end) = text.split_once(',').unwrap_or((text, ""));
    let is_numbers = is_number(start) && is_number(end.trim_start_matches(['+', '-']));
    is_search || (is_numbers && !text.is_empty())
}

/// Splits `src/login.rs:10` or `src/login.rs:10,20`, unless there is a file of that name.
fn file_and_lines(app: &App, project: &Project, word: String) -> (String, Option<String>) {
    let Some((file, lines)) = word.rsplit_once(':') else {
        return (word, None);
    };
    let is_range = !lines.is_empty() && lines.bytes().all(|b| b.is_ascii_digit() || b == b',');
    if !is_range || is_file(app, project, &word) {
        return (word, None);
    }

    // For git, one number is a range to the end of the file.
    let range = match lines.contains(',') {
        true => lines.to_owned(),
        false => format!("{lines},{lines}"),
    };
    (file.to_owned(), Some(range))
}

/// Returns the request that led to a line, as a quotation.
fn asked(project: &Project, line: &Blamed) -> anyhow::Result<Vec<StyledLine>> {
    let LineSource::Turn {
        session,
        commit: Some(commit),
        ..
    } = &line.source
    else {
        return Ok(Vec::new());
    };

    let request = request(project, session, *commit)?;
    let lines = request.trim().lines().take(MOST_LINES);
    Ok(lines
        .flat_map(|line| block(Tone::Faint, &format!("> {line}")))
        .collect())
}

/// Returns the origin of a line in at most `width` columns: the turn, and what fits of its title.
fn short_name(source: &LineSource, width: usize) -> String {
    let (start, title) = match source {
        LineSource::Turn {
            session,
            turns,
            title,
            ..
        } => {
            let turn = format!(":{}", ranges(turns));
            let session = shortened(session.as_str(), width.saturating_sub(turn.len()));
            (session + &turn, title.as_deref().unwrap_or_default())
        }
        LineSource::Commit { commit, title, .. } => (format!("{commit:.8}"), title.as_str()),
        LineSource::Uncommitted => return "not committed".to_owned(),
    };
    let available = width.saturating_sub(start.width() + 1);
    match available < MIN_TITLE {
        true => start,
        false => format!("{start} {}", shortened(&sanitize_line(title), available)),
    }
}

/// Returns the origin of a line in full.
fn name(source: &LineSource) -> String {
    match source {
        LineSource::Turn {
            session,
            turns,
            commit: None,
            ..
        } => format!("{session}:{} (not here)", ranges(turns)),
        LineSource::Turn {
            session,
            turns,
            title,
            model,
            ..
        } => {
            let turn = ranges(turns);
            let title = title.as_deref().unwrap_or_default();
            match model {
                Some(model) => format!("{session}:{turn} ({model}) {title}"),
                None => format!("{session}:{turn} {title}"),
            }
        }
        LineSource::Commit {
            commit,
            title,
            author,
            ..
        } => format!("{commit:.8} ({author}) {title}"),
        LineSource::Uncommitted => "not committed".to_owned(),
    }
}
