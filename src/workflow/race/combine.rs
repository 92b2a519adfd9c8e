//! Two plans of a race together: their changes merged, and the commands of both, as the plan of a
//! session of its own.

use std::ops::Range;

use super::FinishedLane;
use crate::git::merge::merge_in_memory;
use crate::git::object::{BlobId, CommitId, TreeId};
use crate::git::repository::Repository;
use crate::plan::Plan;
use crate::plan::difference::AgentText;
use crate::plan::render::render;
use crate::project::Project;
use crate::session::draft::Draft;
use crate::session::meta::Acted;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::diff::changed;
use crate::text::hint::error_with_hint;
use crate::text::path::lossy;
use crate::text::sanitize::sanitize_line;
use crate::workflow::act::difference::plan_between;
use crate::workflow::dry_run::reading_of;
use crate::workflow::open_session::OpenSession;
use crate::workflow::overlap::PlanChange;
use crate::workflow::plan::{PlanOptions, plan_turn};
use crate::workflow::race::{RaceOptions, begin_lane};
use crate::workflow::user::User;

/// Places that a refusal lists.
const MAX_PLACES: usize = 10;

struct LaneChange {
    model: String,
    tip: Turn,
    draft: Draft,
    plan: Plan,
    change: PlanChange,
}

/// Makes one plan of two, in a new session. Fails without any change if both change the same lines.
pub fn combine(
    project: &Project,
    options: &RaceOptions,
    one: &FinishedLane,
    other: &FinishedLane,
    user: &mut dyn User,
) -> anyhow::Result<SessionName> {
    let before = snapshot_of(project, one)?;
    let tree = project.repository.commit(before)?.tree;
    let one = LaneChange::of(project, one, tree)?;
    let other = LaneChange::of(project, other, tree)?;
    let text = combined_text(&project.repository, tree, &one, &other)?;

    let models = format!("{} and {}", one.model, other.model);
    let session = project.session()?;
    let start = Turn::read(&project.repository, &session, one.tip.commit)?;
    let lock = project.enter("race", user)?;
    let name = begin_lane(project, &start, &models, &one.draft)?;
    drop(lock);

    let plan_options = PlanOptions {
        message: Some(options.message.clone()),
        from: Some(text),
        depth: options.depth,
        snapshot: Some(before),
        // Validation is less strict with the files of an agent.
        is_made: one.draft.meta.made || other.draft.meta.made,
        ..PlanOptions::default()
    };
    let session = OpenSession::open(project, &name, "race", user)?;
    plan_turn(session, &plan_options, user)?;
    keep_stop(project, &name, &[one, other])?;
    Ok(name)
}

/// Part of the plan is as incomplete as that of an agent that stopped early.
fn keep_stop(project: &Project, name: &SessionName, lanes: &[LaneChange]) -> anyhow::Result<()> {
    let mut stops = lanes.iter().filter_map(|lane| lane.draft.meta.agent_stop());
    let Some(stop) = stops.next() else {
        return Ok(());
    };
    let (tip, mut draft) = project.in_progress(name)?;
    draft.meta.acted = Some(Acted {
        stop: Some(stop.to_owned()),
        ..Acted::default()
    });
    project.store().save_draft(&tip, &mut draft)
}

/// The files from which all lanes began.
fn snapshot_of(project: &Project, lane: &FinishedLane) -> anyhow::Result<CommitId> {
    let (_, draft) = project.in_progress(&lane.session)?;
    draft.meta.planned_on.ok_or_else(|| {
        anyhow::anyhow!("the files on which `{}` was made are unknown", lane.session)
    })
}

impl LaneChange {
    fn of(project: &Project, lane: &FinishedLane, tree: TreeId) -> anyhow::Result<LaneChange> {
        let (tip, draft) = project.in_progress(&lane.session)?;
        let change = PlanChange::of(project, &tip, &draft, tree)?;
        Ok(LaneChange {
            model: lane.model.clone(),
            plan: reading_of(&tip, &draft)?.plan,
            tip,
            draft,
            change,
        })
    }

    /// The model and its session.
    fn name(&self) -> String {
        let model = sanitize_line(&self.model);
        format!("`{model}` (session {})", self.tip.session)
    }
}

fn combined_text(
    repository: &Repository,
    tree: TreeId,
    one: &LaneChange,
    other: &LaneChange,
) -> anyhow::Result<String> {
    for lane in [one, other] {
        if let Some(skipped) = lane.change.overlap.not_compared.first() {
            let path = skipped.path.as_deref().unwrap_or("its files");
            return Err(refused(
                one,
                other,
                &format!("{}: {}", sanitize_line(path), skipped.reason),
            ));
        }
    }
    let merged = merge_in_memory(repository, tree, one.change.after, other.change.after)?;
    if !merged.is_clean() {
        let (mut places, paths) = (Vec::new(), merged.paths);
        for path in paths.iter().take(MAX_PLACES) {
            places.push(place(repository, path, tree, one, other)?);
        }
        if paths.len() > MAX_PLACES {
            places.push(format!("and {} more", paths.len() - MAX_PLACES));
        }
        return Err(refused(one, other, &places.join("; ")));
    }

    let title = format!("{}, and {}", one.plan.title, other.plan.title);
    let rationale = format!(
        "TeDDy merged the changes of two plans that {} and {} wrote in a race. Their commands follow the changes; other actions are left out.",
        one.name(),
        other.name()
    );
    let author = AgentText {
        title: &title,
        rationale: &rationale,
    };
    let written = plan_between(repository, tree, merged.ours, &author)?;
    if let Some((path, why)) = written.left_out.first() {
        let problem = format!("{}: {why}", sanitize_line(&lossy(path)));
        return Err(refused(one, other, &problem));
    }
    with_commands(&written.text, one, other)
}

/// Adds the commands of both plans to a plan that has the changes of both.
fn with_commands(changes: &str, one: &LaneChange, other: &LaneChange) -> anyhow::Result<String> {
    let (mut plan, _) = crate::plan::parse(changes);
    // A plan that comes from text has no artifacts.
    let plans = [&one.plan, &other.plan, &plan];
    let taken = plans
        .iter()
        .flat_map(|plan| &plan.actions)
        .find(|action| action.kind.artifact().is_some());
    if let Some(taken) = taken {
        let path = taken.kind.target();
        let problem = format!(
            "one of them changes the encoding, mode or binary content of {}",
            sanitize_line(&path)
        );
        return Err(refused(one, other, &problem));
    }
    // A plan without changes of files has a message instead.
    plan.actions.retain(|action| action.kind.path().is_some());
    let commands = [one, other].into_iter().flat_map(|lane| &lane.plan.actions);
    let commands = commands.filter(|action| action.kind.command().is_some());
    plan.actions.extend(commands.cloned());
    Ok(render(&plan))
}

fn refused(one: &LaneChange, other: &LaneChange, problem: &str) -> anyhow::Error {
    error_with_hint(
        format!(
            "the plans of {} and {} cannot be combined: {problem}",
            one.name(),
            other.name()
        ),
        format!(
            "`teddy --session {} execute` reviews one of them",
            one.tip.session
        ),
    )
}

/// The lines of a file that both plans change, counted in the user's file.
fn place(
    repository: &Repository,
    path: &[u8],
    tree: TreeId,
    one: &LaneChange,
    other: &LaneChange,
) -> anyhow::Result<String> {
    let name = sanitize_line(&lossy(path)).into_owned();
    let mut texts = Vec::new();
    for version in [tree, one.change.after, other.change.after] {
        let entry = repository.entry(version, path)?;
        let Some(entry) = entry.filter(|entry| entry.is_file()) else {
            return Ok(format!("both change `{name}`"));
        };
        let bytes = repository.blob(BlobId::of(entry.id))?;
        texts.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    let lines: Vec<Vec<&str>> = texts.iter().map(|text| text.lines().collect()).collect();
    let [ours, theirs] = [1, 2].map(|side| changed(&lines[0], &lines[side]));
    let ours = ours.iter().map(|(old, _)| old);
    let meeting = ours.flat_map(|old| {
        let theirs = theirs.iter().map(|(other, _)| other);
        // Changes that touch each other cannot be merged, either.
        let theirs = theirs.filter(|other| old.start <= other.end && other.start <= old.end);
        theirs.map(|other| old.start.min(other.start)..old.end.max(other.end))
    });
    let places = meeting.map(|lines| name_lines(&name, &lines));
    let places: Vec<String> = places.take(MAX_PLACES).collect();
    Ok(match places.is_empty() {
        true => format!("both change `{name}`"),
        false => format!("both change {}", places.join("; ")),
    })
}

fn name_lines(file: &str, lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{file}, after line {}", lines.start),
        1 => format!("{file}, line {}", lines.start + 1),
        _ => format!("{file}, lines {} to {}", lines.start + 1, lines.end),
    }
}
