//! `teddy change proposal`, `challenge`, `reproposal` and `review`: the steps of a change, one at a
//! time.

use std::path::Path;
use std::process::ExitCode;

use super::super::app::App;
use super::super::{complete, exit, source};
use super::ModelFlags;
use crate::change::id::ChangeId;
use crate::change::review::ReviewVerdict;
use crate::change::store::{Change, next_step};
use crate::change::{proposal, spec, tasks};
use crate::text::counted;
use crate::workflow::change::archive::archive;
use crate::workflow::change::challenge::{Judgement, approve};
use crate::workflow::change::proposal::Idea;
use crate::workflow::change::{
    challenge as challenging, proposal as proposing, reproposal as revising, review as reviewing,
};
use crate::workflow::restore::OnOverlap;

/// Write the missing documents of a change: proposal.md, specs/*.md, tasks.md
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change proposal add-auth 'People log in with a password'"
)]
pub(super) struct ProposalArgs {
    /// The change's id: lower-case words joined by hyphens
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// What it is for; needed for a new change, ignored otherwise
    description: Option<String>,
    #[command(flatten)]
    how: ModelFlags,
}

/// Have the documents of a change challenged; the verdict sets its phase
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change challenge add-auth\n  teddy change challenge add-auth --model 'command:claude -p'"
)]
pub(super) struct Challenge {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    #[command(flatten)]
    how: ModelFlags,
}

/// Have the documents of a change revised, or replace them with your own
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change reproposal add-auth -m 'without passwords'\n  teddy change show add-auth proposal.md > proposal.md; $EDITOR proposal.md\n  teddy change reproposal add-auth --from proposal.md"
)]
pub(super) struct Reproposal {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// What you want besides what the challenger found
    #[arg(short, long, value_name = "TEXT", conflicts_with = "from")]
    message: Option<String>,
    /// Take these files as documents: proposal.md and tasks.md by their title or name; any other
    /// `<id>.md` is specs/<id>.md
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = clap::ValueHint::FilePath)]
    from: Vec<String>,
    #[command(flatten)]
    how: ModelFlags,
}

/// Have the implementation of a change reviewed; approval completes it
#[derive(clap::Args)]
#[command(after_help = "Example:\n  teddy change review add-auth")]
pub(super) struct ReviewArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    #[command(flatten)]
    how: ModelFlags,
}

/// Writes the missing documents.
pub(super) fn proposal(args: ProposalArgs, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let project = args.how.project(app)?;
    let mut user = app.user(&project, false);
    let idea = Idea {
        id: &id,
        description: args.description.as_deref(),
    };
    let (change, written) =
        proposing::write_proposal(&project, &idea, &args.how.to_options(), user.as_mut())?;

    drop(user);
    if !app.global.json {
        app.note(&format!("Wrote {}.", counted(written, "document")));
    }

    report_change(app, &change)
}

pub(super) fn challenge(args: Challenge, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let project = args.how.project(app)?;
    let mut user = app.user(&project, false);
    let judgement = challenging::challenge(&project, &id, &args.how.to_options(), user.as_mut())?;
    drop(user);
    report_verdict(app, &judgement)
}

/// Revises the documents.
pub(super) fn reproposal(args: Reproposal, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let project = if args.from.is_empty() {
        args.how.project(app)?
    } else {
        app.project()?
    };
    let mut user = app.user(&project, false);
    let change = if args.from.is_empty() {
        revising::revise_proposal(
            &project,
            &id,
            args.message.as_deref(),
            (&args.how.to_options(), user.as_mut()),
        )?
    } else {
        let read = |path: &String| {
            let text = source::read(app, path, "`teddy change reproposal <id>` asks the author")?;
            anyhow::Ok((document(&id, path, &text), text))
        };
        revising::edit_documents(
            &project,
            &id,
            args.from.iter().map(read).collect::<anyhow::Result<_>>()?,
            user.as_mut(),
        )?
    };

    drop(user);
    report_change(app, &change)
}

/// Returns the document that a file contains, by its title or else by its name.
fn document(id: &ChangeId, path: &str, text: &str) -> String {
    let title = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim_end();
    let name = Path::new(path)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    match () {
        () if title == format!("# Change: {id}") => proposal::FILE.to_owned(),
        () if title == format!("# Tasks: {id}") => tasks::FILE.to_owned(),
        () if matches!(name.as_str(), proposal::FILE | tasks::FILE) => name,
        () => format!("{}{name}", spec::DIR),
    }
}

pub(super) fn review(args: ReviewArgs, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let project = args.how.project(app)?;
    let mut user = app.user(&project, false);
    let judgement = reviewing::review(&project, &id, &args.how.to_options(), user.as_mut())?;
    drop(user);
    report_verdict(app, &judgement)
}

/// Prints the state of a change.
pub(super) fn report_change(app: &App, change: &Change) -> anyhow::Result<ExitCode> {
    let (id, state) = (&change.id, &change.state);
    if app.global.json {
        app.print_json(&serde_json::json!({ "change": id, "phase": state.phase, "iteration": state.iteration, "commit": change.commit }))?;
    } else {
        app.print(format!(
            "{id} {}, iteration {}\n",
            state.phase.word(),
            state.iteration
        ))?;
        app.note(&format!("Next: {}", next_step(id, state.phase)));
    }

    Ok(exit::SUCCESS.into())
}

fn report_verdict(app: &App, judgement: &Judgement) -> anyhow::Result<ExitCode> {
    if app.global.json {
        app.print_json(judgement)?;
    } else {
        let Judgement {
            change,
            phase,
            verdict,
            issues,
            ..
        } = judgement;
        app.print(format!(
            "{change} {}: {} ({})\n",
            phase.word(),
            verdict.word(),
            issues.summary()
        ))?;
        app.note(&format!("Next: {}", next_step(change, *phase)));
    }

    Ok(if judgement.verdict == ReviewVerdict::Rejected {
        exit::FAILED
    } else {
        exit::SUCCESS
    }
    .into())
}

/// Approve a change despite its challenge or review; the reason is recorded
///
/// A proposed or rejected change can be implemented then; one whose tasks are done is complete.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change approve add-auth --reason 'the open point is settled in the next change'"
)]
pub(super) struct ApproveArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(super) fn approve_change(args: ApproveArgs, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let project = app.project()?;
    let mut user = app.user(&project, false);
    let change = approve(&project, &id, &args.reason, user.as_mut())?;
    drop(user);
    report_change(app, &change)
}

/// Merge the specs of a complete change into the project's specs/
///
/// A three-way merge, based on the specs from when the change began. If the same lines have changed
/// since, nothing is written and the exit code is 4, until you choose a side.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change archive add-auth\n  teddy change archive add-auth --markers\n  teddy undo -s change/add-auth"
)]
pub(super) struct ArchiveArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// Keep the project's side where both changed the same lines
    #[arg(long, group = "side")]
    ours: bool,
    /// Take the change's side there
    #[arg(long, group = "side")]
    theirs: bool,
    /// Write conflict markers there
    #[arg(long, group = "side")]
    markers: bool,
}

pub(super) fn archive_change(args: ArchiveArgs, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let on_overlap = match (args.ours, args.theirs, args.markers) {
        (true, ..) => OnOverlap::Ours,
        (_, true, _) => OnOverlap::Theirs,
        (.., true) => OnOverlap::Markers,
        _ => OnOverlap::Stop,
    };
    let mut project = app.project()?;
    let mut user = app.user(&project, false);
    let archived = archive(&mut project, &id, on_overlap, user.as_mut())?;

    drop(user);
    if app.global.json {
        app.print_json(&archived)?;
    } else if archived.conflicts.is_empty() {
        app.print(format!("{id} {}\n", archived.phase.word()))?;
        archived.done.iter().for_each(|line| app.note(line));
    } else if let Some(turn) = archived.turn {
        archived.conflicts.iter().for_each(|path| {
            app.warn(&format!(
                "`{path}` was not written: something in your files is in the way"
            ))
        });
        app.note(&format!(
            "Turn {turn} has the specs, and the change is not archived yet. Make way, then archive it again."
        ));
    } else {
        archived.conflicts.iter().for_each(|path| {
            app.warn(&format!(
                "`{path}` was also changed by another user in the same place"
            ))
        });
        app.note("Nothing was written. `--ours`, `--theirs` or `--markers` says which side counts there.");
    }

    Ok(if archived.conflicts.is_empty() {
        exit::SUCCESS
    } else {
        exit::OVERLAP
    }
    .into())
}
