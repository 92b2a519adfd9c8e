//! `teddy status`: shows the state of the session and the files.

use std::borrow::Cow;
use std::path::Path;

use super::app::App;
use crate::git::refs;
use crate::host::lock::LockHolder;
use crate::project::{Project, describe_activity, is_in_review, is_running};
use crate::query::history::{self, LatestLanding, REWRITTEN, SessionStatus};
use crate::session::meta::NotCaptured;
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::ui::drift;
use crate::ui::overlap::status_lines;
use crate::ui::style::{StyledLine, Tone, shortened};
use crate::ui::terminal::stdout_width;
use crate::workflow::hooks::{hooks_dir, read_errors};
use crate::workflow::land::turns;
use crate::workflow::overlap::overlap_in_use;
use crate::workspace::changed::Changed;

/// Show the session, the pending plan and your own changes
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy status\n  teddy status --json")]
pub(super) struct Args {}

const MAX_LEFT_OUT: usize = 10;

pub(super) fn run(_args: Args, app: &mut App) -> anyhow::Result<()> {
    show(app, &app.project_for_reading()?)
}

pub(super) fn show(app: &App, project: &Project) -> anyhow::Result<()> {
    let hook_troubles = read_errors(&hooks_dir(&project.repository.teddy_dir()));
    let mut status = history::session_status(project, hook_troubles, overlap_in_use)?;
    if app.global.json {
        return app.print_json(&status);
    }

    report_troubles(app, &status.hook_troubles);
    if status.rewritten {
        app.warn(REWRITTEN);
    }
    let (Some(session), Some(turn)) = (status.session.clone(), status.turn) else {
        app.print("No session is in use here.\n")?;
        app.note("`teddy start '<what you want>'` starts one; `teddy sessions` lists them.");
        return Ok(());
    };

    let mut lines = vec![heading(project, &session, turn)];
    if let Some(model) = &status.model {
        let line = format!("Model of this session: {}", sanitize_line(model));
        lines.push(StyledLine::plain(&line));
    }
    if let Some(width) = stdout_width() {
        // `A plan is waiting for turn 12: ... (3 actions)`
        let available = width.saturating_sub(45).max(15);
        if let Some(draft) = &mut status.draft {
            draft.title = shortened(&draft.title, available);
        }
        if let Some(message) = &mut status.message {
            let first = message.trim().lines().next().unwrap_or_default();
            *message = shortened(first, available);
        }
    }
    let dir = app.dir_in(project)?;
    lines.extend(state_lines(&status, turn, &dir));
    app.print_lines(lines)?;
    app.note(&next_step(&status));
    Ok(())
}

fn next_step(status: &SessionStatus) -> Cow<'static, str> {
    let step = match &status.at_work {
        Some(LockHolder {
            stopped: true,
            process,
            ..
        }) => {
            return format!(
                "Next: continue it, with `fg` in its terminal or `kill -CONT {process}`"
            )
            .into();
        }
        Some(holder) if is_in_review(holder) => "Next: decide in the review there",
        Some(_) => "Next: wait until it has ended",
        None if status.draft.as_ref().is_some_and(|draft| draft.is_foreign) => {
            let session = status.session.as_deref().unwrap_or_default();
            return format!("Next: teddy switch --adopt {session}").into();
        }
        None if status.draft.is_some() => "Next: teddy execute",
        None if status.message.is_some() => "Next: teddy plan",
        None if status.question.is_some() => "Next: teddy resume -m '<answer>'",
        None => "Next: teddy '<what you want>'",
    };
    step.into()
}

/// Reports failures of agents' hooks, whose output goes nowhere else.
fn report_troubles(app: &App, troubles: &[String]) {
    let Some(last) = troubles.last() else { return };
    let more = match troubles.len() {
        1 => String::new(),
        all => format!(" (the last of {all}: `teddy hooks status`)"),
    };
    app.warn(&format!(
        "an agent's prompt may be in no turn: {}{more}",
        sanitize_line(last)
    ));
}

/// Returns session, turn, and the user's branch if known.
fn heading(project: &Project, session: &str, turn: u64) -> StyledLine {
    let line = StyledLine::plain("Session ")
        .with(Tone::Strong, session)
        .with(Tone::Plain, &format!(", turn {turn}"));
    match refs::branch(&project.repository) {
        Ok(Some(branch)) => line
            .with(Tone::Plain, ", on branch ")
            .with(Tone::Accent, &branch),
        Ok(None) => line.with(Tone::Warning, ", on no branch"),
        Err(_) => line,
    }
}

fn state_lines(status: &SessionStatus, turn: u64, dir: &Path) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    if let Some(holder) = &status.at_work {
        lines.push(StyledLine::of(Tone::Warning, &at_work(holder)));
    }
    // A draft is not waiting while it runs.
    if status.draft.is_none() || !status.at_work.as_ref().is_some_and(is_running) {
        lines.push(next_turn(status, turn + 1));
    }
    lines.extend(status.overlap.iter().flat_map(status_lines));
    lines.extend(messages(status));
    if let Some(landed) = &status.landed {
        lines.push(StyledLine::plain(&landing(landed)));
    }
    if let Some(why) = &status.workspace.unknown {
        let text = format!("Your files cannot be compared: {}", sanitize_line(why));
        lines.push(StyledLine::plain(&text));
        return lines;
    }

    lines.extend(files(&status.workspace, turn, dir));
    lines.extend(left_out(&status.workspace.not_captured));
    lines
}

/// Returns what waits for the next turn.
fn next_turn(status: &SessionStatus, next: u64) -> StyledLine {
    match &status.draft {
        Some(draft) if draft.title.is_empty() => StyledLine::plain(&format!(
            "An answer that is not a plan is waiting for turn {next}"
        )),
        Some(draft) => {
            let title = sanitize_line(&draft.title);
            let actions = counted(draft.actions, "action");
            let text = format!("A plan is waiting for turn {next}: {title} ({actions})");
            StyledLine::of(Tone::Added, &text)
        }
        None => StyledLine::plain(&format!("Ready for turn {next}")),
    }
}

/// Returns the user's waiting message, and what the model said last.
fn messages(status: &SessionStatus) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    let mut add = |tone: Tone, text: &str| lines.push(StyledLine::of(tone, text));
    if let Some(message) = &status.message {
        let first = message.trim().lines().next().unwrap_or_default();
        let text = format!("Your message is waiting: {}", sanitize_line(first));
        add(Tone::Plain, &text);
    }
    if let Some(question) = &status.question {
        add(Tone::Warning, "The model waits for your answer:");
        indented(question).for_each(|line| add(Tone::Plain, &line));
    }
    if let Some(conclusion) = &status.conclusion {
        add(Tone::Plain, "The work is done, says the model:");
        indented(conclusion).for_each(|line| add(Tone::Plain, &line));
    }
    if let Some(failure) = &status.failure {
        let text = format!("No plan from the model: {}", sanitize_line(failure));
        add(Tone::Removed, &text);
    }
    lines
}

/// Returns what another process does in the session, as a line.
pub(super) fn at_work(holder: &LockHolder) -> String {
    let LockHolder {
        process, seconds, ..
    } = holder;
    let state = match holder.stopped {
        true => "In progress",
        false => "At work",
    };
    let activity = describe_activity(holder);
    format!("{state}: {activity} (process {process}, {seconds} s)")
}

/// Describes the newest landing.
fn landing(landed: &LatestLanding) -> String {
    let (landed_turns, branch) = (turns(&landed.turns), sanitize_line(&landed.branch));
    let last = landed.commits.last();
    let id = last.map_or_else(|| "nothing".to_owned(), |id| format!("{id:.8}"));
    let text = match (landed.on_branch, landed.now.last()) {
        (true, _) => format!("Landed on {branch}: {landed_turns} ({id})"),
        (false, Some(now)) => {
            let here = landed.here.as_ref();
            let here = here.map(|here| format!(" on {}", sanitize_line(here)));
            let here = here.unwrap_or_default();
            format!("Landed on {branch}: {landed_turns}, now {now:.8}{here}")
        }
        (false, None) => {
            let place = match &landed.remote {
                Some(remote) if landed.gone => {
                    format!("on {}; your {branch} is gone", sanitize_line(remote))
                }
                None if landed.gone => format!("{branch} is gone"),
                Some(remote) => format!(
                    "on {} but not on your {branch}; `git pull` takes it there",
                    sanitize_line(remote)
                ),
                None => format!("which your {branch} does not have"),
            };
            format!("Landed on {branch}: {landed_turns} ({id}, {place})")
        }
    };

    match landed.waiting.as_slice() {
        [] => text,
        waiting => format!("{text}; not yet: {}", turns(waiting)),
    }
}

fn files(workspace: &Changed, turn: u64, dir: &Path) -> Vec<StyledLine> {
    let Changed { changed, drift, .. } = workspace;
    let drifted = drift::lines(drift, turn, dir).into_iter();
    let mut lines: Vec<StyledLine> = drifted.map(|line| StyledLine::plain(&line)).collect();
    let is_told = |path: &String| drift.missing.iter().any(|missing| missing.path == *path);
    let open: Vec<&String> = changed.iter().filter(|path| !is_told(path)).collect();

    if changed.is_empty() && drift.is_as_left() {
        lines.push(StyledLine::plain(match workspace.is_since_head {
            true => "No file changed since HEAD",
            false => "Your files are as the newest turn left them",
        }));
    } else if !open.is_empty() {
        // The edits can be older than the session.
        let since = match workspace.is_since_head {
            true => "changed since HEAD",
            false => "changed since",
        };
        let heading = format!("{} {since}:", counted(open.len(), "file"));
        lines.push(StyledLine::plain(&heading));
        let path = |path: &&String| format!("  {}", sanitize_line(path));
        lines.extend(
            open.iter()
                .map(|it| StyledLine::of(Tone::Removed, &path(it))),
        );
    }

    lines
}

/// Lists the files that are in no snapshot.
fn left_out(files: &[NotCaptured]) -> Vec<StyledLine> {
    if files.is_empty() {
        return Vec::new();
    }

    let mut lines = vec![StyledLine::plain("In no snapshot, left as they are:")];
    let mut add = |text: &str| lines.push(StyledLine::of(Tone::Faint, text));
    for file in files.iter().take(MAX_LEFT_OUT) {
        let (path, why) = (sanitize_line(&file.path), sanitize_line(&file.reason));
        add(&format!("  {path}: {why}"));
    }
    let more = files.len().saturating_sub(MAX_LEFT_OUT);
    if more > 0 {
        add(&format!("  ... and {more} more; `--json` lists them all"));
    }
    lines
}

/// Indents a text of the model by two spaces.
fn indented(text: &str) -> impl Iterator<Item = String> {
    let lines = text.trim_end().lines();
    lines.map(|line| format!("  {}", sanitize_line(line)).trim_end().to_owned())
}
