//! `teddy restore`: restores the files to a turn. Also output and options of undo and redo.

use std::collections::HashSet;
use std::path::Path;

use super::app::App;
use super::exit::{self, ExitStatus};
use super::{complete, number};
use crate::project::Project;
use crate::query::history;
use crate::text::sanitize::sanitize_line;
use crate::text::{counted, ranges};
use crate::ui::drift::{describe_missing, exact_restore_command};
use crate::ui::notice::restore_note;
use crate::workflow::restore::outcome::RestoreNote;
use crate::workflow::restore::outcome::{PassedOver, WhyPassedOver};
use crate::workflow::restore::{OnOverlap, RestoreOptions, RestoreResult, restore};
use crate::workflow::user::User;
use crate::workspace::drift::{MissingChange, WhyMissing};

/// Restore your files to their state after a turn
///
/// Undoes what later turns did and keeps your own later edits. The restore is itself a turn, so it
/// can be undone. Ignored files are never touched.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy restore 2\n  teddy restore 2 src/           only what is below src/\n  teddy restore 2 -n             show what would change\n  teddy restore 2 --exact        make the files equal to the snapshot"
)]
pub(super) struct Args {
    /// The turn: a number, `@`, `@~1`, `<session>:<turn>`, or anything that `git rev-parse` accepts
    #[arg(add = complete::with(complete::turns))]
    turn: String,
    /// Restore only these files and directories
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    paths: Vec<String>,
    #[command(flatten)]
    how: RestoreFlags,
    /// Leave the context lists as they are, as with PATH
    #[arg(long)]
    files_only: bool,
}

/// How a restore, an undo and a redo go about it.
#[derive(clap::Args)]
pub(super) struct RestoreFlags {
    /// Show what would change without changing anything
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Make the files identical to the snapshot, discarding your own later edits (they are recorded
    /// first)
    #[arg(long, group = "overlap")]
    exact: bool,
    #[command(flatten)]
    overlap: OverlapFlags,
    /// Don't ask before `--exact` discards your own edits
    #[arg(short, long)]
    yes: bool,
}

/// What happens to files that the user has edited, too.
#[derive(clap::Args)]
pub(super) struct OverlapFlags {
    /// If edits overlap, keep yours
    #[arg(long, group = "overlap")]
    ours: bool,
    /// If edits overlap, take the turn's
    #[arg(long, group = "overlap")]
    theirs: bool,
    /// If edits overlap, write conflict markers
    #[arg(long, group = "overlap")]
    markers: bool,
}

impl OverlapFlags {
    pub(super) fn to_option(&self) -> OnOverlap {
        match self {
            OverlapFlags { ours: true, .. } => OnOverlap::Ours,
            OverlapFlags { theirs: true, .. } => OnOverlap::Theirs,
            OverlapFlags { markers: true, .. } => OnOverlap::Markers,
            _ => OnOverlap::Stop,
        }
    }
}

impl RestoreFlags {
    fn to_options(&self) -> RestoreOptions {
        let on_overlap = match self.exact {
            true => OnOverlap::Exact,
            false => self.overlap.to_option(),
        };
        RestoreOptions {
            on_overlap,
            dry_run: self.dry_run,
            ..RestoreOptions::default()
        }
    }
}

/// How far an undo or a redo goes, and how.
#[derive(clap::Args)]
pub(super) struct UndoArgs {
    /// How many turns
    #[arg(value_name = "N", default_value_t = 1, value_parser = number::turns::<u64>)]
    turns: u64,
    #[command(flatten)]
    how: RestoreFlags,
}

impl UndoArgs {
    pub(super) fn run(
        &self,
        operation: UndoOperation,
        app: &mut App,
    ) -> anyhow::Result<ExitStatus> {
        let project = app.project()?;
        let act = |options: &RestoreOptions, user: &mut dyn User| {
            operation(&project, self.turns, options, user)
        };
        carry_out(app, &project, &self.how, self.how.to_options(), None, &act)
    }
}

type UndoOperation =
    fn(&Project, u64, &RestoreOptions, &mut dyn User) -> anyhow::Result<RestoreResult>;

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let project = app.project()?;
    let paths = crate::query::paths::resolve_paths(&project.repository, &app.dir()?, &args.paths)?;
    let options = RestoreOptions {
        paths,
        files_only: args.files_only,
        ..args.how.to_options()
    };

    // `@~1` is less informative than the resolved number. A bare number would look like a turn of
    // this session.
    let given_name = Some(args.turn.as_str()).filter(|turn| !turn.starts_with('@'));
    carry_out(
        app,
        &project,
        &args.how,
        options,
        given_name,
        &|options, user| restore(&project, &args.turn, options, user),
    )
}

/// Runs a restore and reports the changes. Asks first if it would discard the user's edits.
///
/// `given_name` is what the user called the turn, if not by its number.
fn carry_out(
    app: &App,
    project: &Project,
    how: &RestoreFlags,
    options: RestoreOptions,
    given_name: Option<&str>,
    act: &dyn Fn(&RestoreOptions, &mut dyn User) -> anyhow::Result<RestoreResult>,
) -> anyhow::Result<ExitStatus> {
    if let Ok(session) = project.session()
        && history::is_rewritten(project, &session)
    {
        app.warn(history::REWRITTEN);
    }

    let name = |result: &RestoreResult| {
        given_name.map_or_else(
            || result.turn.to_string(),
            |name| sanitize_line(name).into_owned(),
        )
    };
    if how.exact && !how.yes && !how.dry_run {
        let preview = act(
            &RestoreOptions {
                dry_run: true,
                ..options.clone()
            },
            app.user(project, true).as_mut(),
        )?;
        let changed = preview.written.len() + preview.deleted.len();
        let question = format!(
            "Make {} equal to turn {}?",
            counted(changed, "file"),
            name(&preview)
        );

        if changed > 0 && !app.user(project, false).confirm(&question, "-y")? {
            app.note("Nothing was changed.");
            return Ok(exit::FAILED);
        }
    }

    // Before it acts: it can delete the current directory.
    let dir = app.dir_in(project)?;
    let result = act(&options, app.user(project, true).as_mut())?;
    show(app, &result, &name(&result), &options, &dir)
}

fn show(
    app: &App,
    result: &RestoreResult,
    name: &str,
    options: &RestoreOptions,
    dir: &Path,
) -> anyhow::Result<ExitStatus> {
    if app.global.json {
        app.print_json_with_notes(result, result.notes.iter().map(restore_note))?;
    } else {
        app.print(changes(result))?;
        let notes = result.notes.iter().map(restore_note);
        notes.for_each(|note| app.warn(&note));
        for path in &result.conflicts {
            app.warn(&format!(
                "`{}` has conflict markers now; resolve them, or `{}` takes the turn's version",
                sanitize_line(path),
                exact_restore_command(name, &[path.as_str()], dir)
            ));
        }
        if result.overlaps.is_empty() {
            app.note(&outcome(result, name, options));
            describe_missing(&result.missing, &name_compared(result, name), dir)
                .iter()
                .for_each(|line| app.note(line));
        } else if result.commit.is_some() {
            let count = counted(result.overlaps.len(), "file");
            let others = match result.is_applied() {
                true => format!("the rest matches turn {name}"),
                false => "so nothing was changed; `teddy status` says how to continue".to_owned(),
            };
            app.warn(&format!("{count} could not be changed; {others}"));
        } else if !result.notes.iter().any(RestoreNote::explains_overlap) {
            app.warn("your own edits overlap with what the turns did; use --ours, --theirs, --markers or --exact");
        }

        passed_over(&result.passed_over)
            .iter()
            .for_each(|line| app.note(line));
    }

    Ok(exit::success_or(result.overlaps.is_empty(), exit::OVERLAP))
}

/// Names the turn that the files were compared with as the user named the restored one.
fn name_compared(result: &RestoreResult, name: &str) -> String {
    match (name.rsplit_once(':'), result.compared == result.turn) {
        (_, true) => name.to_owned(),
        (Some((session, _)), false) => format!("{session}:{}", result.compared),
        (None, false) => result.compared.to_string(),
    }
}

fn changes(result: &RestoreResult) -> String {
    let mut text = String::new();
    let preserved: HashSet<&String> = result.kept.iter().collect();
    let merged: HashSet<&String> = result
        .written
        .iter()
        .filter(|path| preserved.contains(path))
        .collect();
    let is_merged = |path: &String| merged.contains(path);
    let is_deleted = |missing: &&MissingChange| {
        let is_gone = WhyMissing::Repository { commit: None };
        missing.why == WhyMissing::Deleted
            || missing.why == is_gone
            || matches!(missing.why, WhyMissing::Blocked { .. })
    };
    let removed: HashSet<&String> = result
        .missing
        .iter()
        .filter(is_deleted)
        .map(|missing| &missing.path)
        .collect();

    // After recording, an overlapping file is one that could not be written.
    let refused: HashSet<&String> = match result.commit {
        Some(_) => result.overlaps.iter().collect(),
        None => HashSet::new(),
    };
    let overlap = if refused.is_empty() {
        "overlap"
    } else {
        "blocked"
    };

    for (word, paths) in [
        ("write", &result.written),
        ("delete", &result.deleted),
        ("keep", &result.kept),
        (overlap, &result.overlaps),
    ] {
        for path in paths
            .iter()
            .filter(|path| word == overlap || !refused.contains(path))
            .filter(|path| word != "keep" || !(is_merged(path) || removed.contains(path)))
        {
            let word = if result.conflicts.contains(path) {
                "conflict"
            } else if is_merged(path) {
                "merge"
            } else {
                word
            };
            text.push_str(&format!("{word} {}\n", sanitize_line(path)));
        }
    }

    text
}

/// Describes the state of the files after the restore.
fn outcome(result: &RestoreResult, name: &str, options: &RestoreOptions) -> String {
    let changed = counted(result.written.len() + result.deleted.len(), "file");
    let preserved = match result.kept.len() {
        count if count > 0 && !options.dry_run => format!(", {count} of your own kept"),
        _ => String::new(),
    };
    let effect = match result.same_turns || result.over.is_empty() {
        true => matching(result, name, options),
        false => moved(result, options.dry_run),
    };
    format!("{effect}: {changed} changed{preserved}.")
}

/// Says which turn the files match now.
fn matching(result: &RestoreResult, name: &str, options: &RestoreOptions) -> String {
    let subject = if options.paths.is_empty() {
        "Your files".to_owned()
    } else {
        options.paths.join(", ")
    };
    let matches = match options.dry_run {
        true => "would match",
        false if options.paths.len() != 1 => "match",
        false => "matches",
    };
    let except = match result.same_turns {
        true if result.missing.is_empty() => String::new(),
        true => format!(" except for {}", counted(result.missing.len(), "file")),
        false => " except where your side was kept".to_owned(),
    };
    format!("{subject} {matches} turn {name}{except}")
}

/// Says which turns are undone or redone.
fn moved(result: &RestoreResult, is_dry_run: bool) -> String {
    let turns: Vec<String> = result.over.iter().map(u64::to_string).collect();
    let (noun, are) = match (turns.len(), is_dry_run) {
        (1, true) => ("Turn", "would be"),
        (1, false) => ("Turn", "is"),
        (_, true) => ("Turns", "would be"),
        (_, false) => ("Turns", "are"),
    };
    let except = match result.is_partial {
        true => " except where your side was kept",
        false => "",
    };
    // A redo goes to the newest turn that it goes over, or to one behind it that it passes over.
    let how = if result.over.iter().any(|over| *over <= result.turn) {
        "redone"
    } else {
        "undone"
    };

    format!("{noun} {} {are} {how}{except}", turns.join(", "))
}

/// Explains why turns were skipped: a line for each reason.
fn passed_over(passed: &[PassedOver]) -> Vec<String> {
    let reasons = [
        (WhyPassedOver::Unchanged, "no files changed"),
        (WhyPassedOver::Landed, "a landing; its commits stay"),
        (WhyPassedOver::NotBrought, "never written to your files"),
        (WhyPassedOver::TakenBack, "no longer in your files"),
    ];
    let line = |(why, reason): (WhyPassedOver, &str)| {
        let turns = passed.iter().filter(|passed| passed.why == why);
        let mut numbers: Vec<u64> = turns.map(|passed| passed.turn).collect();
        numbers.sort_unstable();
        let noun = match numbers.as_slice() {
            [] => return None,
            [_] => "turn",
            _ => "turns",
        };
        Some(format!("Skipped {noun} {} ({reason}).", ranges(&numbers)))
    };
    reasons.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_turns_are_listed_by_reason() {
        let passed = |turn, why| PassedOver { turn, why };
        let lines = passed_over(&[
            passed(12, WhyPassedOver::Unchanged),
            passed(10, WhyPassedOver::Landed),
            passed(7, WhyPassedOver::Unchanged),
            passed(6, WhyPassedOver::Unchanged),
        ]);
        assert_eq!(
            lines,
            [
                "Skipped turns 6-7, 12 (no files changed).",
                "Skipped turn 10 (a landing; its commits stay).",
            ]
        );
    }
}
