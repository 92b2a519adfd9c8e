//! The commands of a change that only read: `show`, `log`, `diff`, `status`, `list` and `validate`.

use anyhow::Context as _;

use super::super::app::App;
use super::super::difference::{self, ShownAs};
use super::super::exit::{self, ExitStatus};
use super::super::{complete, number};
use crate::change::finding::is_usable;
use crate::change::id::ChangeId;
use crate::change::shape::DocumentKind;
use crate::change::store::{Change, StepRow};
use crate::change::{proposal, review, state};
use crate::git::object::CommitId;
use crate::git::refs;
use crate::project::Project;
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::ui::drift;
use crate::ui::style::{StyledLine, Tone};
use crate::workflow::change::status::{self, ChangeListRow, ChangeStatus};
use crate::workflow::change::{change_store, judge, open_change};

/// Show the documents of a change
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change show add-auth\n  teddy change show add-auth tasks.md\n  teddy change show add-auth review             the latest review\n  teddy change show add-auth proposal.md --at 1\n  git show refs/teddy/changes/add-auth:STATE.yaml"
)]
pub(super) struct ShowArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// proposal.md, specs/<id>.md, tasks.md, review.md, STATE.yaml, or `review`; everything if left
    /// out
    what: Option<String>,
    /// As it was after this step: its number in `teddy change log`, or anything that `git
    /// rev-parse` takes
    #[arg(long, value_name = "STEP")]
    at: Option<String>,
}

pub(super) fn show(args: ShowArgs, app: &mut App) -> anyhow::Result<()> {
    let id = ChangeId::parse(&args.id)?;
    let project = app.project_for_reading()?;
    let mut change = open_change(&project, &id)?;
    if let Some(at) = &args.at {
        change = change_store(&project).at(&id, resolve_step(&project, &id, at)?)?;
    }

    if app.global.json {
        return app.print_json(&serde_json::json!({ "change": id, "state": change.state, "documents": change.documents.0 }));
    }

    let text = match args.what.as_deref() {
        None => everything(&change),
        Some("review") => latest(&change).context("there is no review yet")?,
        Some(state::FILE) => state::write(&change.state),
        Some(name) => change.documents.0.get(name).cloned().with_context(|| {
            let names: Vec<&str> = change.documents.0.keys().map(String::as_str).collect();
            format!(
                "the change has no `{name}`; it has {}, {}",
                names.join(", "),
                state::FILE
            )
        })?,
    };
    app.page_markdown(&project, text.as_bytes())
}

/// Returns the latest review: of the implementation if there is one, else of the proposal.
fn latest(change: &Change) -> Option<String> {
    let newest = [review::FILE, proposal::FILE].iter().find_map(|name| {
        let reviews = review::read(change.documents.text(name));
        review::latest(&reviews).cloned()
    });
    newest.map(|review| review.render())
}

/// Returns all documents, the proposal first.
pub(super) fn everything(change: &Change) -> String {
    let first = change.documents.0.get(proposal::FILE);
    let others = change
        .documents
        .0
        .iter()
        .filter(|(name, _)| *name != proposal::FILE)
        .map(|(_, text)| text);
    first
        .into_iter()
        .chain(others)
        .map(|text| format!("{}\n\n", text.trim_end()))
        .collect()
}

/// List the steps of a change, newest first
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change log add-auth\n  git log refs/teddy/changes/add-auth"
)]
pub(super) struct LogArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// Show at most this many steps
    #[arg(short = 'n', long, value_name = "N", value_parser = number::most)]
    max_count: Option<usize>,
}

pub(super) fn log(args: LogArgs, app: &mut App) -> anyhow::Result<()> {
    let project = app.project_for_reading()?;
    let change = open_change(&project, &ChangeId::parse(&args.id)?)?;
    let mut rows = change
        .commit
        .map(|commit| change_store(&project).steps(commit))
        .transpose()?
        .unwrap_or_default();
    let all = rows.len();

    rows.truncate(args.max_count.unwrap_or(usize::MAX));
    if app.global.json {
        return app.print_json(&rows);
    }

    let line = |(index, row): (usize, &StepRow)| {
        StyledLine::of(Tone::Strong, &format!("{:>4} ", all - index))
            .with(Tone::Accent, &format!("{:.8} ", row.commit))
            .with(Tone::Faint, &format!("{:12} ", row.phase))
            .with(Tone::Plain, &row.title)
    };
    app.page(
        &project,
        &rows.iter().enumerate().map(line).collect::<Vec<_>>(),
    )
}

/// Returns the commit of a step, given its number or a git revision.
fn resolve_step(project: &Project, id: &ChangeId, name: &str) -> anyhow::Result<CommitId> {
    let Ok(number) = name.parse::<usize>() else {
        return refs::resolve(&project.repository, name);
    };
    let newest = open_change(project, id)?
        .commit
        .context("the change has no step")?;
    let rows = change_store(project).steps(newest)?;
    let row = rows
        .len()
        .checked_sub(number)
        .filter(|_| number > 0)
        .and_then(|at| rows.get(at));

    Ok(row
        .with_context(|| {
            format!(
                "`{id}` has no step {number}; its steps are 1 to {}",
                rows.len()
            )
        })?
        .commit)
}

/// Show what a change did to the code, or how its documents differ between two steps
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change diff add-auth          what implementing it changed in the code\n  teddy change diff add-auth 3        its documents from step 3 to now\n  teddy change diff add-auth 3 5      from step 3 to step 5"
)]
pub(super) struct DiffArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// A step: its number in `teddy change log`, or anything that `git rev-parse` takes
    from: Option<String>,
    /// Another step, the newest one if left out
    to: Option<String>,
}

pub(super) fn diff(args: DiffArgs, app: &mut App) -> anyhow::Result<()> {
    let id = ChangeId::parse(&args.id)?;
    let project = app.project_for_reading()?;
    let change = open_change(&project, &id)?;
    let sides = match &args.from {
        None => judge::span_of(&project, &change)?
            .with_context(|| format!("nothing of `{id}` is implemented yet; `teddy change diff {id} 1` compares its documents"))?,
        Some(from) => {
            let old = project.repository.commit(resolve_step(&project, &id, from)?)?.tree;
            let new = args.to.as_ref().map(|to| project.repository.commit(resolve_step(&project, &id, to)?).map(|commit| commit.tree)).transpose()?;
            (old, new.unwrap_or(change.tree))
        }
    };

    let filter = if args.from.is_some() {
        |path: &str| DocumentKind::of(path).is_some()
    } else {
        |_: &str| true
    };

    difference::show(app, &project, sides.0, sides.1, ShownAs::Patch, &filter)?;
    Ok(())
}

/// Show the state of a change; without an id, list the changes
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change status\n  teddy change status add-auth\n  teddy change status add-auth --json"
)]
pub(super) struct StatusArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: Option<String>,
}

/// List the changes
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change list\n  teddy change list --archived --json\n  git for-each-ref refs/teddy/changes"
)]
pub(super) struct ListArgs {
    /// Archived ones too
    #[arg(long)]
    archived: bool,
}

/// Check the documents of a change; report every mistake with its line
#[derive(clap::Args)]
#[command(after_help = "Example:\n  teddy change validate add-auth")]
pub(super) struct ValidateArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
}

pub(super) fn status(args: StatusArgs, app: &mut App) -> anyhow::Result<()> {
    let Some(id) = &args.id else {
        return list(ListArgs { archived: false }, app);
    };
    let status = status::change_status(&app.project_for_reading()?, &ChangeId::parse(id)?)?;
    if app.global.json {
        return app.print_json(&status);
    }

    app.print(render(&status))?;
    if let (Some(session), false) = (&status.session, status.lacking.is_empty()) {
        app.warn(&drift::lacking(session, &status.lacking, status.is_exact));
    }
    app.note(&format!("Next: {}", status.next));
    Ok(())
}

fn render(status: &ChangeStatus) -> String {
    let row = &status.row;
    let mut text = format!("Change {}: {}\n", row.change, sanitize_line(&row.title));
    text.push_str(&format!(
        "Phase {}, iteration {}, {} of {} done\n",
        row.phase.word(),
        row.iteration,
        row.done,
        counted(row.tasks, "task")
    ));

    if let Some(verdict) = &status.verdict {
        text.push_str(&format!(
            "Latest review: {} ({})\n",
            sanitize_line(verdict),
            status.issues.describe()
        ));
    }

    if !status.undone.is_empty() {
        let numbers: Vec<String> = status.undone.iter().map(u64::to_string).collect();
        let turns = if numbers.len() == 1 { "turn" } else { "turns" };
        text.push_str(&format!("Undone since: {turns} {}\n", numbers.join(", ")));
    }

    if !status.stale.is_empty() {
        text.push_str(&format!(
            "Edited since it was challenged: {}\n",
            sanitize_line(&status.stale.join(", "))
        ));
    }

    if status.findings > 0 {
        text.push_str(&format!(
            "The documents have {}; `teddy change validate {}` lists them\n",
            counted(status.findings, "mistake"),
            row.change
        ));
    }

    if let Some(session) = &status.session {
        text.push_str(&format!("Session {session}\n"));
    }

    text.push_str(&format!("{}\n", status.usage.describe()));
    text
}

pub(super) fn list(args: ListArgs, app: &mut App) -> anyhow::Result<()> {
    let project = app.project_for_reading()?;
    let (rows, damaged) = status::change_rows(&project, args.archived)?;
    damaged
        .iter()
        .for_each(|change| app.warn(&format!("cannot be read: {change}")));

    if app.global.json {
        return app.print_json(&rows);
    }

    let width = rows
        .iter()
        .map(|row| row.change.as_str().len())
        .max()
        .unwrap_or(0);
    let line = |row: &ChangeListRow| {
        let tasks = format!("{}/{}", row.done, row.tasks);
        format!(
            "{:width$}  {:12}  {tasks:>5}  {}\n",
            row.change.as_str(),
            row.phase.word(),
            sanitize_line(&row.title)
        )
    };

    app.print(rows.iter().map(line).collect::<String>())?;
    if rows.is_empty() && !args.archived && !status::change_rows(&project, true)?.0.is_empty() {
        app.note("All changes are archived; `teddy change list --archived` lists them.");
    } else if rows.is_empty() && damaged.is_empty() {
        app.note("There are no changes; `teddy change plan <id> '<description>'` starts one.");
    }

    Ok(())
}

pub(super) fn validate(args: ValidateArgs, app: &mut App) -> anyhow::Result<ExitStatus> {
    let id = ChangeId::parse(&args.id)?;
    let change = open_change(&app.project_for_reading()?, &id)?;
    let findings = change.documents.check(&id);
    if app.global.json {
        app.print_json(&findings)?;
    } else {
        app.print(
            findings
                .iter()
                .map(|finding| format!("{}\n", sanitize_line(&finding.to_string())))
                .collect::<String>(),
        )?;
        app.note(&format!("{}.", counted(findings.len(), "mistake")));
    }

    Ok(exit::success_if(is_usable(&findings)))
}
