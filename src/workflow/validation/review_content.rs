//! Renders what the user changed in a plan: diffs against the proposal, and the plan that ran.

use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId, read};
use crate::git::repository::Repository;
use crate::plan::action::{Action, ActionKind};
use crate::plan::run::file_difference;
use crate::plan::validate::{Simulation, Step};
use crate::plan::{Plan, render};
use crate::project::Project;
use crate::session::artifact::{self, Artifacts};
use crate::session::report::Modification;
use crate::session::turn::Turn;
use crate::text::diff::unified;
use crate::text::digest;
use crate::text::resource::Resource;
use crate::workflow::context::lists;
use crate::workflow::user::{Approved, ResourceContent};

/// By index of the action: the proposed change of the file if both versions write the same one,
/// else a diff of the two actions.
pub fn modifications(
    proposed: &Plan,
    approved: &Approved,
    simulation: &Simulation,
) -> Vec<(usize, Modification)> {
    let pairs = proposed
        .actions
        .iter()
        .zip(&approved.plan.actions)
        .enumerate();
    let changed = pairs.filter(|(_, (before, after))| before != after);
    changed
        .map(|(index, (before, after))| {
            let same_file = before.kind.target() == after.kind.target();
            let file = proposed_file(&before.kind, simulation.step(index)).filter(|_| same_file);
            let action = || Modification::Action(diff_action(&proposed.actions, approved, index));
            (index, file.map_or_else(action, Modification::File))
        })
        .collect()
}

fn proposed_file(kind: &ActionKind, step: &Step) -> Option<String> {
    let path = kind.path()?;
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let (before, after) = (step.before.as_ref().map(text), text(step.after.as_ref()?));
    let change = file_difference(path, before.as_deref(), Some(&after));
    (!step.provisional && !change.is_empty()).then_some(change)
}

fn diff_action(proposed: &[Action], approved: &Approved, index: usize) -> String {
    let alone = |actions: &[Action]| {
        render(&Plan {
            actions: vec![actions[index].clone()],
            memos: Vec::new(),
            ..approved.plan.clone()
        })
    };
    unified(
        &alone(proposed),
        &alone(&approved.plan.actions),
        ("proposed", "as run"),
    )
}

/// `None` if the complete proposal runs.
pub fn render_as_run(proposed: &Plan, approved: &Approved) -> Option<String> {
    if *approved == Approved::all(proposed) {
        return None;
    }

    Some(render(&Plan {
        actions: approved.running().cloned().collect(),
        memos: approved.memos().cloned().collect(),
        ..approved.plan.clone()
    }))
}

const MAX_RESOURCE: u64 = 16 << 20;

pub struct ResourceScope<'a> {
    pub tip: &'a Turn,
    /// With web pages.
    pub artifacts: &'a Artifacts,
    pub tree: TreeId,
}

pub fn read_resource(
    project: &Project,
    scope: &ResourceScope<'_>,
    resource: &Resource,
) -> anyhow::Result<ResourceContent> {
    match resource {
        Resource::File(path) => read_file(project, scope.tree, path.as_str()),
        Resource::Url(url) => read_page(project, scope, url),
        Resource::Artifact(artifact) => {
            let bytes = lists::read_artifact(project, scope.tip, artifact)?;
            Ok(bytes.map_or(
                ResourceContent::Nothing("no turn has it"),
                ResourceContent::Content,
            ))
        }
    }
}

fn read_file(project: &Project, tree: TreeId, path: &str) -> anyhow::Result<ResourceContent> {
    let entry = project.repository.entry(tree, path.as_bytes())?;
    Ok(match entry.as_ref().map(|entry| entry.mode) {
        Some(EntryMode::Blob | EntryMode::BlobExecutable) => {
            if is_large(&project.repository, entry.as_ref())? {
                return Ok(ResourceContent::Nothing("it is too large to be shown"));
            }
            ResourceContent::Content(read::checked_out(&project.repository, tree, path)?)
        }
        Some(EntryMode::Tree) => {
            let prefix = format!("{path}/");
            let leaves = project.repository.leaves(tree)?;
            let inside = leaves
                .iter()
                // With the slash, so that `src` does not match `src2`.
                .filter(|leaf| leaf.path.starts_with(prefix.as_bytes()));
            ResourceContent::Dir(
                inside
                    .map(|leaf| String::from_utf8_lossy(&leaf.path).into_owned())
                    .collect(),
            )
        }
        Some(EntryMode::Link) => ResourceContent::Nothing("it is a link"),
        Some(EntryMode::Commit) => ResourceContent::Nothing("it is a repository of its own"),
        None => ResourceContent::Nothing("it is not in the snapshot of your files"),
    })
}

fn is_large(repository: &Repository, entry: Option<&TreeEntry>) -> anyhow::Result<bool> {
    let size = entry.map(|entry| repository.blob_size(BlobId::of(entry.id)));
    Ok(size.transpose()?.is_some_and(|size| size > MAX_RESOURCE))
}

fn read_page(
    project: &Project,
    scope: &ResourceScope<'_>,
    url: &str,
) -> anyhow::Result<ResourceContent> {
    let name = format!("{}{}.md", artifact::PAGES, digest(url));
    let stored = match scope.artifacts.text(&name) {
        Some(text) => Some(text),
        None => project
            .repository
            .file(scope.tip.tree, &name)?
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    };

    let page = stored.as_deref().and_then(|text| text.split_once("\n\n"));
    Ok(page.map_or(
        ResourceContent::Nothing("it is fetched when the plan runs"),
        |(_, page)| ResourceContent::Content(page.as_bytes().to_vec()),
    ))
}
