//! `teddy diff`: shows the changes of turns.

use clap::ValueHint;

use super::app::App;
use super::complete;
use super::difference::{ShownAs, ViewArgs, show};
use crate::git::object::TreeId;
use crate::project::Project;
use crate::query::history::start_tree;
use crate::query::paths;
use crate::query::sum::{LastTurn, sum};
use crate::session::store::StoreError;
use crate::session::turn::Turn;
use crate::text::counted;
use crate::text::hint::{error_with_hint, with_hint};
use crate::text::shell_word::shell_word;
use crate::ui::diff::{FileVersions, counted as counted_lines, counts, unified};
use crate::ui::mistakes;
use crate::ui::style::StyledLine;
use crate::workflow::dry_run::{Rewrite, dry_run};
use crate::workspace::file_move::PathChange;

/// Show what a turn changed, or how two turns differ
///
/// Turn 0 is the start of the session: the files before turn 1. For the turn in progress (`draft`,
/// or its number), shows what the waiting plan would change.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy diff                        what the newest turn changed\n  teddy diff 3                      what turn 3 changed\n  teddy diff draft                  what the plan that waits would change\n  teddy diff 1 3                    from after turn 1 to after turn 3\n  teddy diff --session              what the session changed, without your own edits\n  teddy diff 0 @ --stat -- src      the same, by file, below src\n  git show teddy/sessions/add-auth^2"
)]
pub(super) struct Args {
    /// A turn; the newest one if omitted
    #[arg(add = complete::with(complete::turns_and_draft))]
    turn: Option<String>,
    /// Another turn
    #[arg(add = complete::with(complete::turns))]
    other: Option<String>,
    /// What the turns of the session changed, without your own edits; `--session` without a name is
    /// the same
    #[arg(long, conflicts_with = "turn")]
    whole: bool,
    /// How it is shown.
    #[command(flatten)]
    view: ViewArgs,
    /// Only these files or directories
    #[arg(last = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    let operands: Vec<String> = args.turn.iter().chain(&args.other).cloned().collect();
    show_diff(args, app).map_err(|error| {
        let Some(StoreError::NoTurn { turn, .. }) = error.downcast_ref() else {
            return error;
        };
        let range = turn.split_once("..").map(|(from, to)| between(from, to));
        let files = operands.iter().find(|word| is_file(app, word));
        let about =
            files.map(|file| format!("`teddy diff -- {}` is about the file", shell_word(file)));
        match about.or(range) {
            Some(hint) => with_hint(error, hint),
            None => error,
        }
    })
}

/// Explains how to compare two turns that were written as a git range.
fn between(from: &str, to: &str) -> String {
    let from = if from.is_empty() { "@" } else { from };
    let to = if to.is_empty() { "@" } else { to };
    let (from, to) = (shell_word(from), shell_word(to));
    format!("`teddy diff {from} {to}` shows how the files after these two turns differ")
}

fn is_file(app: &App, word: &str) -> bool {
    app.dir().is_ok_and(|dir| dir.join(word).exists())
}

fn show_diff(args: Args, app: &App) -> anyhow::Result<()> {
    let project = app.project_for_reading()?;
    let store = project.store();
    let paths = paths::resolve_paths(&project.repository, &app.dir()?, &args.paths)?;
    let name = args.turn.as_deref().unwrap_or("@");
    let session = project.session_of(name)?;
    let is_one = args.other.is_none() && !args.whole;
    if is_one && store.turn_or_draft(&session, name)?.is_draft() {
        show_draft(app, &project, name, &args.view, &paths)?;
    } else {
        let sides = trees(&project, &args)?;
        if is_one && sides.0 == sides.1 {
            let turn = store.turn(&session, name)?.number();
            app.note(&format!("Turn {turn} changed no file."));
        }
        let is_selected = |path: &str| paths::is_below(path, &paths);
        show(
            app,
            &project,
            sides.0,
            sides.1,
            args.view.shown_as(),
            &is_selected,
        )?;
    }

    Ok(())
}

/// Prints the changes of the waiting plan.
fn show_draft(
    app: &App,
    project: &Project,
    name: &str,
    view_args: &ViewArgs,
    paths: &[String],
) -> anyhow::Result<()> {
    let store = project.store();
    let session = store
        .turn_or_draft(&project.session_of(name)?, name)?
        .session;
    let tip = store.tip(&session)?;
    let run = dry_run(project, &tip, &store.draft(&tip)?)?;
    if !run.diagnostics.is_empty() {
        app.eprint_lines(&mistakes::rejected(None, &run.diagnostics));
    }

    if run.commands > 0 {
        let commands = counted(run.commands, "command");
        app.note(&format!(
            "What {commands} of the plan would change is unknown before the run."
        ));
    }

    let files = run.files.iter();
    let selected = files.filter(|(path, _)| paths::is_below(path, paths));
    if app.global.json {
        let row = |(path, file): (&String, &Rewrite)| {
            let change = PathChange::of(&file.before, &file.after);
            serde_json::json!({ "path": path, "change": change })
        };
        return app.print_json(&selected.map(row).collect::<Vec<_>>());
    }

    let lines = selected.flat_map(|(path, file)| draft_lines(path, file, view_args.shown_as()));
    app.page(project, &lines.collect::<Vec<_>>())
}

/// Returns the change of a file by the waiting plan as lines.
fn draft_lines(path: &str, file: &Rewrite, shown_as: ShownAs) -> Vec<StyledLine> {
    let versions = FileVersions {
        path,
        before: file.before.as_deref(),
        after: file.after.as_deref(),
    };
    match shown_as {
        ShownAs::Patch => unified(&versions),
        ShownAs::NameOnly => vec![StyledLine::plain(path)],
        ShownAs::Stat => {
            let line = StyledLine::plain(&format!(" {path} | "));
            vec![line.append(counted_lines(counts(&versions)))]
        }
    }
}

/// Returns the two trees to compare.
fn trees(project: &Project, args: &Args) -> anyhow::Result<(TreeId, TreeId)> {
    let store = project.store();
    let tree = |commit| project.repository.commit(commit).map(|commit| commit.tree);
    let after = |name: &str| -> anyhow::Result<TreeId> {
        let turn = store.turn(&project.session_of(name)?, name)?;
        match turn.workspace {
            _ if turn.without_code => Err(without_code(&turn)),
            Some(commit) => tree(commit),
            None => start_tree(project, &turn.session),
        }
    };

    if args.whole {
        let session = project.session()?;
        let turns = store.turns(&session)?;
        return match sum(&project.repository, None, &turns, LastTurn::AsItRan)? {
            Some(sum) => Ok((sum.before, sum.after)),
            None => Ok((start_tree(project, &session)?, after("@")?)),
        };
    }

    if let (Some(old), Some(new)) = (&args.turn, &args.other) {
        return Ok((after(old)?, after(new)?));
    }

    let name = args.turn.as_deref().unwrap_or("@");
    let turn = store.turn(&project.session_of(name)?, name)?;
    match &turn.meta.workspace {
        Some(workspace) => Ok((tree(workspace.before)?, tree(workspace.after)?)),
        None if turn.without_code => Err(without_code(&turn)),
        None => {
            let message = format!(
                "turn {} changed no code: it is the session's start",
                turn.number()
            );
            Err(match store.draft(&turn)?.is_planned() {
                true => error_with_hint(
                    message,
                    "`teddy diff draft` shows what the waiting plan changes",
                ),
                false => anyhow::anyhow!(message),
            })
        }
    }
}

fn without_code(turn: &Turn) -> anyhow::Error {
    let message = format!(
        "the files of turn {} of `{}` were not pushed",
        turn.number(),
        turn.session
    );
    let hint = format!(
        "`teddy show {}:{}` has its report; `teddy push --code` on the other side sends files too",
        turn.session,
        turn.number()
    );
    error_with_hint(message, hint)
}
