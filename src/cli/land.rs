//! `teddy land`: commits the changes of turns to the user's branch.

use std::path::Path;

use super::app::App;
use super::complete;
use super::difference::STAT_WIDTH;
use super::exit::{self, ExitStatus};
use crate::git::diff::render_diffstat;
use crate::project::Project;
use crate::query::paths::seen_from;
use crate::text::counted;
use crate::text::hint::error_with_hint;
use crate::text::sanitize::{sanitize_block, sanitize_line};
use crate::text::shell_word::{shell_operands, shell_word};
use crate::ui::notice;
use crate::workflow::land::{
    Committed, LandOptions, LandResult, MessageSource, TakenBackFile, land, turns,
};
use crate::workflow::user::NobodyToAsk;

/// Commit the changes of the turns to your branch
///
/// Takes the changes of all turns in effect that have not landed yet, without your own edits, and
/// lets git commit them: with your identity, signature and hooks. What you have staged stays
/// staged, what you have edited stays as it is.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy land                        edit the message, then commit\n  teddy land -m 'Add a login form'\n  teddy land -n                     show the message and the files\n  teddy land 3                      only turn 3\n  teddy land 2..4 --each            a commit for each of the turns 2 to 4\n  teddy land --branch login         commit to a new branch"
)]
pub(super) struct Args {
    /// A turn, or a range such as `2..4`, both ends included; all that have not landed if omitted
    #[arg(value_name = "TURN|A..B", add = complete::with(complete::numbers))]
    turns: Option<String>,
    /// The message; several become paragraphs
    #[arg(short, long, value_name = "TEXT", conflicts_with_all = ["each", "no_edit"])]
    message: Vec<String>,
    /// Make a commit for each turn, with its title
    #[arg(long)]
    each: bool,
    /// Take the message made of the turns' titles and requests as it is
    #[arg(long)]
    no_edit: bool,
    /// Commit to a new branch that starts at HEAD, without switching to it
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Show what would be committed without committing it
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Skip the pre-commit and commit-msg hooks
    #[arg(long)]
    no_verify: bool,
    /// If a hook changes files and refuses, commit again with its changes
    #[arg(long)]
    with_repairs: bool,
    /// Land what your files lack because you took it back
    #[arg(long)]
    anyway: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let project = app.project()?;
    let anyway = anyway(&args);
    let mut options = LandOptions {
        message: MessageSource::Draft,
        range: args.turns,
        each: args.each,
        branch: args.branch,
        dry_run: args.dry_run,
        no_verify: args.no_verify,
        with_repairs: args.with_repairs,
        anyway: args.anyway,
    };
    if !args.message.is_empty() {
        options.message = given_message(&args.message)?;
    } else if !(args.each || args.no_edit || args.dry_run) {
        options.message = edited_message(app, &project, &options)?;
    }

    let dir = app.dir_in(&project)?;
    let result = land(&project, &options, app.user(&project, true).as_mut())?;
    if app.global.json {
        app.print_json_with_notes(&result, result.obstacles.iter().map(notice::obstacle))?;
    } else if options.dry_run && result.overlapping.is_none() {
        app.print(preview(&project, &result)?)?;
        remarks(app, &result);
        report_lacking(app, &result.lacking, &anyway)?;
    } else {
        report(app, &result, &dir, &anyway)?;
    }

    // At a terminal, `land` asks about what is lacking.
    let asks = options.dry_run && app.is_attended();
    let is_landed = result.overlaps.is_empty() && (result.lacking.is_empty() || asks);
    Ok(exit::success_or(is_landed, exit::OVERLAP))
}

/// The same command with `--anyway`.
fn anyway(args: &Args) -> String {
    let mut words = vec!["teddy", "land"];
    words.extend(args.turns.as_deref());
    words.extend(args.each.then_some("--each"));
    if let Some(branch) = &args.branch {
        words.extend(["--branch", branch]);
    }
    for paragraph in &args.message {
        words.extend(["-m", paragraph]);
    }
    words.extend(args.no_edit.then_some("--no-edit"));
    words.push("--anyway");
    words.iter().map(shell_word).collect::<Vec<_>>().join(" ")
}

fn given_message(paragraphs: &[String]) -> anyhow::Result<MessageSource> {
    let text = paragraphs.join("\n\n");
    if text.trim().is_empty() {
        return Err(error_with_hint(
            "the message is empty",
            "`-m '<message>'` gives one",
        ));
    }
    Ok(MessageSource::Given(text))
}

/// The user edits the message. Fails without a terminal.
fn edited_message(
    app: &App,
    project: &Project,
    options: &LandOptions,
) -> anyhow::Result<MessageSource> {
    if app.is_attended() {
        return Ok(MessageSource::Edited);
    }

    // Check which turns would land before asking for a message.
    let preview = LandOptions {
        dry_run: true,
        ..options.clone()
    };
    land(project, &preview, app.user(project, true).as_mut())?;
    let hint = "`-m '<message>'` gives it; `--no-edit` takes one made of the turns' titles and \
                requests";
    Err(NobodyToAsk::new("the commit needs a message", hint).into())
}

/// Returns message and files of the commits to be made.
fn preview(project: &Project, result: &LandResult) -> anyhow::Result<String> {
    let mut text = String::new();
    for commit in &result.commits {
        if !text.is_empty() {
            text.push('\n');
        }

        let turns = turns(&commit.turns);
        text.push_str(&format!("{turns} on {}\n\n", sanitize_line(&result.branch)));
        for line in sanitize_block(&commit.message).lines() {
            text.push_str(format!("    {line}").trim_end());
            text.push('\n');
        }

        let [from, to] = commit.trees;
        let stat = render_diffstat(&project.repository, from, to, STAT_WIDTH, &[])?;
        text.push_str(&format!("\n{}", sanitize_block(&stat)));
    }

    Ok(text)
}

fn report_overlap(app: &App, result: &LandResult, turn: u64, dir: &Path) -> anyhow::Result<()> {
    app.print(lines("overlap ", result.overlaps.iter()))?;
    if let [.., last] = result.builds_on.as_slice() {
        let below = turns(&result.builds_on);
        app.warn(&format!(
            "turn {turn} overlaps with what HEAD has there, and builds on {below}, which HEAD \
             lacks; nothing was changed"
        ));
        if let Some(remote) = &result.builds_on_remote {
            let remote = sanitize_line(remote);
            app.note(&format!(
                "hint: `{remote}` has it; `git pull` takes it here"
            ));
            return Ok(());
        }
        let range = if result.builds_on.len() == 1 {
            format!("{last}..{turn}")
        } else {
            format!("..{turn}")
        };
        app.note(&format!("hint: `teddy land {range}` lands them together"));
        return Ok(());
    }
    app.warn(&format!(
        "turn {turn} overlaps with what HEAD has there, or builds on edits of yours that are \
         not committed; nothing was changed"
    ));
    app.note(&format!("hint: {}", way_out(result, turn, dir)));
    Ok(())
}

/// Reports the commits, or why there are none.
fn report(app: &App, result: &LandResult, dir: &Path, anyway: &str) -> anyhow::Result<()> {
    if let Some(turn) = result.overlapping {
        return report_overlap(app, result, turn, dir);
    }
    if !result.lacking.is_empty() {
        return report_lacking(app, &result.lacking, anyway);
    }

    for commit in &result.commits {
        app.print(line(commit))?;
    }

    let numbers: Vec<u64> = result
        .commits
        .iter()
        .flat_map(|commit| commit.turns.iter().copied())
        .collect();
    let commits = counted(result.commits.len(), "commit");
    let (turns, branch) = (turns(&numbers), sanitize_line(&result.branch));
    app.note(&format!("Landed {turns} on {branch}: {commits}."));
    remarks(app, result);

    Ok(())
}

fn report_lacking(app: &App, lacking: &[TakenBackFile], anyway: &str) -> anyhow::Result<()> {
    if lacking.is_empty() {
        return Ok(());
    }
    for TakenBackFile { path, turn, .. } in lacking {
        app.print(format!("lacks turn {turn}: {}\n", sanitize_line(path)))?;
    }
    app.warn("these files no longer have what would be committed; nothing was changed");
    let way_back = match lacking.iter().all(|file| file.is_whole) {
        true => {
            "`teddy status` says what restores it if you took it back, else `teddy restore <turn> --exact <file>` takes a turn's version"
        }
        false => "`teddy restore <turn> --exact <file>` takes the turn's version of a file",
    };
    app.note(&format!("hint: `{anyway}` commits it anyway; {way_back}"));
    Ok(())
}

/// Explains how to land a turn that overlaps with the user's edits, as it is typed in `dir`.
fn way_out(result: &LandResult, turn: u64, dir: &Path) -> String {
    // The files contain the turn's result, so `git commit -p` would not show the edits separately:
    // first take the turn out of the files. That takes out later turns, which can have landed, so
    // only these files are committed.
    let before = turn.saturating_sub(1);
    let paths: Vec<String> = result
        .overlaps
        .iter()
        .map(|path| seen_from(dir, path))
        .collect();
    let operands = shell_operands(&paths);
    let mut hint = format!(
        "if these are edits of yours: `teddy restore {before}` takes the turn and all later ones out of your files, \
         `git commit {operands}` then commits only the edits, `teddy undo` puts the turns back, and `teddy land` lands them"
    );
    match &result.uncommitted {
        Some(paths) if *paths == result.overlaps => {
            hint = format!("`git commit {operands}` commits them as they are; {hint}");
        }
        Some(paths) if paths.is_empty() => {
            hint = format!(
                "`teddy restore {turn} --exact {operands}` takes the turn's version; if you renamed one, \
                 `git commit` of its new name commits the turn's lines"
            );
        }
        _ => {}
    }
    if result.has_others {
        hint.push_str("; `teddy land <turn>` lands another turn alone");
    }
    hint
}

/// Returns a commit as a line: short id, subject, files.
fn line(commit: &Committed) -> String {
    let id = commit.commit.map(|id| format!("{id:.8}"));
    let id = id.unwrap_or_default();
    let files = counted(commit.files.len(), "file");
    format!("{id} {} ({files})\n", sanitize_line(&commit.title))
}

fn remarks(app: &App, result: &LandResult) {
    if result.turn.is_none() && !result.by_commands.is_empty() {
        app.note("Only a command made these new files:");
        app.note(lines("  ", result.by_commands.iter()).trim_end());
    }

    if !result.formatted.is_empty() {
        app.note("Hooks changed these files; your copies were updated:");
        app.note(lines("  ", result.formatted.iter()).trim_end());
    }

    if result.overlapping.is_none() && !result.overlaps.is_empty() {
        app.warn(
            "what hooks changed in these files overlaps with your own edits, which stay; `git diff` \
             shows the difference:",
        );
        app.note(lines("overlap ", result.overlaps.iter()).trim_end());
    }

    if !result.staged.is_empty() {
        app.warn(
            "the staged version of these files overlaps with what landed and stays as it is; \
             committing it takes that back, `git add <file>` stages the file as it is now:",
        );
        app.note(lines("staged ", result.staged.iter()).trim_end());
    }

    for path in &result.ignored {
        let path = sanitize_line(path);
        app.note(&format!("git ignores `{path}`: it was left out."));
    }

    for path in &result.repositories {
        let path = sanitize_line(path);
        app.note(&format!(
            "`{path}` is a repository of its own and no submodule: it was left out."
        ));
    }

    let notes = result.obstacles.iter().map(notice::obstacle);
    notes.for_each(|note| app.warn(&note));
}

fn lines<'a>(word: &str, paths: impl Iterator<Item = &'a String>) -> String {
    paths
        .map(|path| format!("{word}{}\n", sanitize_line(path)))
        .collect()
}
