//! `pick`: applies the changes of turns of other sessions to the current session, each as a turn of
//! its own.

use serde::Serialize;

use crate::git::diff;
use crate::git::merge::merge_trees;
use crate::git::object::{CommitId, TreeId};
use crate::git::publish::Published;
use crate::host::interrupt;
use crate::project::Project;
use crate::session::meta::{Picked, Status};
use crate::session::turn::Turn;
use crate::text::path::{lossy, lossy_paths};
use crate::text::sanitize::sanitize_line;
use crate::workflow::open_session::EnteredSession;
use crate::workflow::restore::OnOverlap;
use crate::workflow::user::User;
use crate::workspace::complete::{Completed, SessionMove};
use crate::workspace::draft_transfer;
use crate::workspace::file_move::{FileMove, trees_of};
use crate::workspace::files_turn::FilesTurn;
use crate::workspace::notice::{FileObstacle, obstacles};
use crate::workspace::snapshot::RecordedFiles;
use crate::workspace::stack::is_patch;
use crate::workspace::stack::record::publish_turn;

#[derive(Debug, Clone, Default)]
pub struct PickOptions {
    pub on_overlap: OnOverlap,
    /// Only shows what would change.
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct PickResult {
    pub session: String,
    pub picked: Vec<PickedTurn>,
    /// Left as they are.
    pub overlaps: Vec<String>,
    /// Other than conflicts.
    #[serde(skip)]
    pub obstacles: Vec<FileObstacle>,
}

#[derive(Debug, Clone, Serialize)]
pub struct PickedTurn {
    pub session: String,
    pub turn: u64,
    /// Number of the turn that records it; `None` after a dry run.
    pub recorded: Option<u64>,
    /// The turn that records it.
    pub commit: Option<CommitId>,
    pub written: Vec<String>,
    pub deleted: Vec<String>,
}

struct Fitted {
    source: Turn,
    files: FileMove,
    met: Vec<Vec<u8>>,
}

/// Picks all turns or none. All merges are tried in memory first; then each pick takes a new
/// snapshot and merges again, so that edits during the command are kept.
pub fn pick(
    project: &Project,
    names: &[String],
    options: &PickOptions,
    user: &mut dyn User,
) -> anyhow::Result<PickResult> {
    let session = project.session()?;
    let entered = EnteredSession::enter(project, &session, "pick", user)?;
    let EnteredSession {
        tip, transaction, ..
    } = &entered;
    let recorded = transaction.record(&project.checkout(), tip, &[])?;
    let mut result = PickResult {
        session: session.to_string(),
        ..PickResult::default()
    };

    let mut steps = Vec::new();
    let mut now = recorded.tree;
    for name in names {
        let step = plan(project, tip, name, now, options.on_overlap)?;
        now = step.files.to;
        result.overlaps.extend(lossy_paths(&step.met));
        steps.push(step);
    }

    result.overlaps.sort();
    result.overlaps.dedup();
    // All or nothing: no turn is recorded before all merges are known to work.
    if options.on_overlap == OnOverlap::Stop && !result.overlaps.is_empty() {
        return Ok(result);
    }

    result.overlaps.clear();
    if options.dry_run {
        let rows = steps.iter().map(|step| row(project, step));
        result.picked = rows.collect::<anyhow::Result<_>>()?;
        return Ok(result);
    }

    let waiting = draft_transfer::waiting(&project.checkout(), tip)?;
    for name in names {
        anyhow::ensure!(!interrupt::requested(), "interrupted between two turns");
        let (turn, published) = carry_out(&entered, name, options.on_overlap)?;
        result
            .overlaps
            .extend(lossy_paths(&published.conflict_paths()));
        result.obstacles.extend(obstacles(&published));
        result.picked.push(turn);
    }

    entered.carry(waiting, user);
    Ok(result)
}

fn plan(
    project: &Project,
    tip: &Turn,
    name: &str,
    now: TreeId,
    on_overlap: OnOverlap,
) -> anyhow::Result<Fitted> {
    let source = project.store().turn(&tip.session, name)?;
    let name = sanitize_line(name);
    let workspace = source.meta.workspace.as_ref().filter(|_| is_patch(&source));
    let Some(workspace) = workspace else {
        anyhow::ensure!(
            !source.without_code,
            "the files of turn `{name}` were not pushed, so there is nothing of it to pick"
        );
        anyhow::bail!("turn `{name}` changed no file, so there is nothing of it to pick");
    };
    let [before, after] = trees_of(&project.repository, workspace.change())?;
    let merged = merge_trees(&project.repository, before, now, after)?;
    let to = on_overlap.resolve(&merged);
    anyhow::ensure!(
        to != now || !merged.is_clean(),
        "what turn `{name}` did is already in your files"
    );
    Ok(Fitted {
        source,
        files: FileMove { from: now, to },
        met: merged.paths,
    })
}

fn carry_out(
    entered: &EnteredSession<'_>,
    name: &str,
    on_overlap: OnOverlap,
) -> anyhow::Result<(PickedTurn, Published)> {
    let (project, transaction) = (entered.project, &entered.transaction);
    let checkout = project.checkout();
    let tip = project.store().tip(&entered.tip.session)?;
    let recorded = transaction.record(&checkout, &tip, &[])?;
    let step = plan(project, &tip, name, recorded.tree, on_overlap)?;
    anyhow::ensure!(
        on_overlap != OnOverlap::Stop || step.met.is_empty(),
        "your files changed while turns were picked; what is left was not"
    );
    let next = SessionMove {
        overwrite: on_overlap.replaces(),
        ..write(project, &tip, &step, &recorded)?
    };
    let Completed {
        commit, published, ..
    } = transaction.complete(&checkout, &tip.session, &next, Some(&step.files))?;

    let turn = PickedTurn {
        recorded: Some(tip.number() + 1),
        commit: Some(commit),
        ..row(project, &step)?
    };
    Ok((turn, published))
}

fn write(
    project: &Project,
    tip: &Turn,
    step: &Fitted,
    recorded: &RecordedFiles,
) -> anyhow::Result<SessionMove> {
    let (repository, source) = (&project.repository, &step.source);
    let name = format!("{}:{}", source.session, source.number());
    let title = format!("Pick {name}: {}", source.title);
    let mut turn = FilesTurn::begin(repository, tip, Status::Picked, recorded)?;
    let workspace = turn.set_files(&title, recorded.commit, step.files.to)?;
    turn.meta.picked = Some(Picked {
        session: source.session.to_string(),
        turn: source.number(),
        turn_id: source.meta.turn_id,
        commit: source.commit,
        title: source.title.clone(),
    });
    let lines = step.files.lines(repository)?;
    turn.continue_from(tip)?;
    turn.keep_context_edits();

    let published = publish_turn(repository, tip, &workspace, Some(step.files.to), &step.met)?;
    turn.finish(&title, &lines, published, format!("teddy: pick {name}"))
}

fn row(project: &Project, step: &Fitted) -> anyhow::Result<PickedTurn> {
    let mut row = PickedTurn {
        session: step.source.session.to_string(),
        turn: step.source.number(),
        recorded: None,
        commit: None,
        written: Vec::new(),
        deleted: Vec::new(),
    };
    let files = &step.files;
    for change in diff::changes(&project.repository, files.from, files.to)? {
        match change.new {
            Some(_) => row.written.push(lossy(&change.path)),
            None => row.deleted.push(lossy(&change.path)),
        }
    }

    Ok(row)
}
