//! `teddy gc`: frees disk space.

use std::path::Path;

use super::app::App;
use super::exit::{self, ExitStatus};
use super::{complete, number};
use crate::project::Project;
use crate::session::name::{SESSIONS, SessionName};
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_word;
use crate::text::{counted, sized};
use crate::ui::style::shortened;
use crate::ui::terminal::stdout_width;

use crate::workflow::gc::{ArchivedSession, GcOptions, GcResult, du, gc, plan};

/// Free disk space: idle worktrees, caches, old undo data
///
/// Worktrees, and the caches that commands fill, are recreated when they are needed. Undo data is
/// copies of overwritten files, and snapshots of your files that belong to no turn. Loose objects are
/// packed.
///
/// A session is deleted only if you name it, along with everything that only it refers to. It goes
/// into a bundle first, which stays in `.git/teddy/archive` until you remove it; `teddy fetch`
/// restores the session. Only then can you undo those of its turns that are in your files. Of a
/// session of a remote, only what was fetched is deleted, and without a bundle.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy gc                      idle worktrees and caches, old undo data, packing\n  teddy gc -n                   what uses space, and what would go\n  teddy gc --idle-days 0        every worktree that is not in use\n  teddy gc old-session -y       delete a session; a bundle of it stays"
)]
pub(super) struct Args {
    /// Sessions to delete
    #[arg(value_name = "SESSION", add = complete::with(complete::all_sessions))]
    sessions: Vec<String>,
    /// Say what uses space and what would be removed, and do nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Remove worktrees and caches not used for this many days
    #[arg(long, value_name = "DAYS", default_value_t = 14, value_parser = number::days)]
    idle_days: u32,
    /// Remove undo data older than this many days
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = number::days)]
    undo_days: u32,
    /// Delete sessions for good, without a bundle
    #[arg(long, requires = "sessions")]
    no_bundle: bool,
    /// Don't ask before deleting a session
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let project = app.project()?;
    let sessions = args
        .sessions
        .iter()
        .map(|name| SessionName::from_address(name))
        .collect::<Result<Vec<_>, _>>()?;
    sessions
        .iter()
        .try_for_each(|session| project.store().tip_id(session).map(drop))?;
    let question = question(&args);
    let asks = !sessions.is_empty() && !args.yes && !args.dry_run;
    if asks && !app.user(&project, false).confirm(&question, "-y")? {
        app.note("Nothing was changed.");
        return Ok(exit::FAILED);
    }

    let (fetched, sessions) = sessions
        .into_iter()
        .partition(|session| session.remote().is_some());
    let options = GcOptions {
        sessions,
        fetched,
        idle_days: args.idle_days,
        undo_days: args.undo_days,
        no_bundle: args.no_bundle,
    };
    let result = match args.dry_run {
        true => plan(&project, &options)?,
        false => gc(&project, &options, app.user(&project, args.yes).as_mut())?,
    };
    if app.global.json {
        let mut value = serde_json::to_value(&result)?;
        value["dry_run"] = args.dry_run.into();
        value["usage"] = match args.dry_run {
            true => serde_json::to_value(du(&project.repository)?)?,
            false => serde_json::Value::Null,
        };
        app.print_json(&value)?;
        return Ok(exit::SUCCESS);
    }

    if args.dry_run && args.sessions.is_empty() {
        show_usage(app, &project)?;
    }
    app.print(listed(&result))?;
    report(app, &result, args.dry_run)?;
    Ok(exit::SUCCESS)
}

/// Shows the disk space that TeDDy uses.
fn show_usage(app: &App, project: &Project) -> anyhow::Result<()> {
    let usage = du(&project.repository)?;
    let archive = project.repository.teddy_dir().join("archive");
    let line = |bytes: u64, what: &str| format!("{:>9}  {what}\n", sized(bytes));
    let mut text = line(usage.objects, "objects that only TeDDy's refs reach");
    for worktree in &usage.worktrees {
        let path = sanitize_line(&worktree.path);
        let what = format!("worktree {} {path}", worktree.session);
        text.push_str(&line(worktree.bytes, &what));
    }

    text.push_str(&line(usage.undo, "undo data"));
    text.push_str(&line(usage.state, "state and caches"));
    if usage.archives > 0 {
        let archive = archive.display().to_string();
        let what = format!(
            "bundles of deleted sessions, in {}",
            sanitize_line(&archive)
        );
        text.push_str(&line(usage.archives, &what));
    }

    if let Some(width) = stdout_width() {
        let lines = text.lines().map(|line| shortened(line, width) + "\n");
        text = lines.collect();
    }
    app.print(text)?;
    for path in &usage.rescued {
        app.warn(&format!("a file that you saved is kept in: {path}"));
    }
    Ok(())
}

/// Returns the question before sessions are deleted.
fn question(args: &Args) -> String {
    let names = args.sessions.join(", ");
    match args.no_bundle {
        true => format!("Delete session {names} and all of its turns for good?"),
        false => format!("Delete session {names} and all of its turns?"),
    }
}

/// Lists the named results, one per line.
fn listed(result: &GcResult) -> String {
    let mut text = String::new();
    for name in &result.sessions {
        text.push_str(&format!("session {name}\n"));
    }
    for name in &result.worktrees {
        text.push_str(&format!("worktree {name}\n"));
    }
    if result.caches {
        text.push_str("caches of commands\n");
    }
    for name in &result.checkouts {
        text.push_str(&format!("checkout {}\n", sanitize_line(name)));
    }

    text
}

/// Summarizes the other results, and explains how to restore sessions.
pub(super) fn report(app: &App, result: &GcResult, is_plan: bool) -> anyhow::Result<()> {
    let counts = [
        (result.undo_files, "undo file"),
        (result.snapshots, "old snapshot"),
    ];
    let removed: Vec<String> = counts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, noun)| counted(*number, noun))
        .collect();
    let verb = if is_plan { "Would remove" } else { "Removed" };
    if !removed.is_empty() {
        app.note(&format!("{verb} {}.", removed.join(" and ")));
    }

    let dir = app.dir()?;
    for archived in &result.archived {
        app.note(&restore_hint(archived, &dir, is_plan));
    }

    for name in &result.held_by {
        app.warn(&still_held(name));
    }

    let size = sized(result.bytes);
    match is_plan {
        true => app.note(&format!(
            "{size} of files would be removed, and loose objects would be packed. Nothing was changed."
        )),
        false => app.note("Loose objects are packed."),
    }
    Ok(())
}

/// Says that a ref still reaches what is deleted, and how it goes.
fn still_held(name: &str) -> String {
    let session = name.strip_prefix(SESSIONS);
    let session = session.and_then(|name| SessionName::from_ref(name).ok());
    let (delete, name) = (shell_word(name), sanitize_line(name));
    let hint = match session {
        Some(session) => format!("`teddy gc {session} --no-bundle` deletes that session, too"),
        None if name.starts_with("refs/teddy/published/") => format!(
            "it says which turns are in your files, and `undo` in other sessions needs it; `git update-ref -d {delete}` deletes it"
        ),
        None if name.starts_with("refs/teddy/snapshots/") => {
            format!("it keeps the snapshots of your files; `git update-ref -d {delete}` deletes it")
        }
        None if name.starts_with("refs/teddy/") || name.starts_with("refs/original/") => {
            format!("`git update-ref -d {delete}` deletes it")
        }
        None => "it is your own, so it stays".to_owned(),
    };
    format!("`{name}` still has some of it: {hint}")
}

/// Says where a session is now, and how it comes back.
fn restore_hint(archived: &ArchivedSession, dir: &Path, is_plan: bool) -> String {
    let file = archived.file.strip_prefix(dir).unwrap_or(&archived.file);
    let file = shell_word(file.as_os_str().as_encoded_bytes());
    let (session, bytes) = (&archived.session, sized(archived.bytes));
    match (&archived.fault, is_plan) {
        (None, true) => format!("Session {session} would go into {file}."),
        (Some(fault), true) => {
            format!("Session {session} would go into {file}, which `teddy fetch` refuses: {fault}.")
        }
        (None, false) => format!(
            "`teddy fetch {file}` restores session {session} ({bytes}). Its turns cannot be undone without that."
        ),
        (Some(fault), false) => format!(
            "`git fetch {file} 'refs/teddy/*:refs/teddy/*'` restores session {session} ({bytes}); \
             `teddy fetch` refuses it: {fault}."
        ),
    }
}
