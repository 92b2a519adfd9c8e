//! The step `proposal`: writes proposal.md, then each spec, then tasks.md, one model request and
//! one commit each.
//!
//! Existing documents are never written again, so an interrupted call continues where it stopped.

use super::ask::{Role, RoleClient, RoleQuestion, fill};
use super::{ChangeOptions, ChangeStep, allow, now};
use crate::change::document::{Documents, MissingDocument};
use crate::change::entry::ChangeEntry;
use crate::change::error::ChangeError;
use crate::change::finding::{Finding, Severity};
use crate::change::id::ChangeId;
use crate::change::phase::ChangeEvent as Happened;
use crate::change::state::{Base, ChangeState};
use crate::change::store::Change;
use crate::change::{answer, proposal, review, spec, tasks};
use crate::git::refs;
use crate::workflow::change;
use crate::workflow::change::change;
use crate::workflow::change::material::material;
use crate::workflow::project::Project;
use crate::workflow::user::User;

pub(super) const AUTHOR: &str = include_str!("../../../prompts/change/author.md");
const PROPOSAL: &str = include_str!("../../../prompts/change/proposal.md");
const SPEC: &str = include_str!("../../../prompts/change/spec.md");
const TASKS: &str = include_str!("../../../prompts/change/tasks.md");

/// A change whose documents are to be written.
pub struct Idea<'a> {
    /// Its id.
    pub id: &'a ChangeId,
    /// The user's description. Required for a new change, ignored otherwise.
    pub description: Option<&'a str>,
}

/// Writes the missing documents of a change. Returns the change and the number of documents
/// written.
pub fn proposal(
    project: &Project,
    idea: &Idea<'_>,
    wish: &ChangeOptions,
    user: &mut dyn User,
) -> anyhow::Result<(Change, usize)> {
    let _lock = change::lock_change(project, idea.id, "proposal")?;
    project.recover(user)?;
    propose(
        &mut RoleClient {
            project,
            id: idea.id,
            wish,
            user,
        },
        idea.description,
    )
}

/// Like `proposal`, for a change that the caller has locked.
pub(super) fn propose(
    desk: &mut RoleClient<'_>,
    description: Option<&str>,
) -> anyhow::Result<(Change, usize)> {
    let mut change = open(desk.project, desk.id, description)?;
    // A new change has no commit yet, and so no phase to check.
    if change.commit.is_some() {
        allow(&change, Happened::Propose, "proposal")?;
    }
    let written = complete(desk, &mut change)?;
    Ok((change, written))
}

pub(super) fn complete(desk: &mut RoleClient<'_>, change: &mut Change) -> anyhow::Result<usize> {
    let mut written = 0;
    while let Some(missing) = change.documents.missing() {
        write(desk, change, &missing)?;
        written += 1;
    }
    Ok(written)
}

fn open(project: &Project, id: &ChangeId, description: Option<&str>) -> anyhow::Result<Change> {
    if refs::read(&project.repository, &id.reference())?.is_some() {
        return change(project, id);
    }

    let description = description.map(str::trim).filter(|text| !text.is_empty());
    let description = description.ok_or_else(|| ChangeError::MissingDescription(id.clone()))?;
    let (tree, specs) = change::changes(project).beginning(change::files_now(project)?)?;
    let base = Base {
        commit: refs::head(&project.repository)?,
        specs,
    };
    let description = crate::text::redact::redact(description);
    let state = ChangeState::new(id, &description, base, &now());

    Ok(Change {
        id: id.clone(),
        commit: None,
        tree,
        state,
        documents: Documents::default(),
    })
}

fn write(
    desk: &mut RoleClient<'_>,
    change: &mut Change,
    missing: &MissingDocument,
) -> anyhow::Result<()> {
    let id = desk.id;
    let (path, prompt) = match missing {
        MissingDocument::Proposal => (proposal::FILE.to_owned(), fill(PROPOSAL, id, "")),
        MissingDocument::Spec(name) => (spec::path(name), fill(SPEC, id, name)),
        MissingDocument::Tasks => (tasks::FILE.to_owned(), fill(TASKS, id, "")),
    };
    let input = material(
        &desk.project.repository,
        change,
        change::files_now(desk.project)?,
    )?;
    let message = format!("Write `{path}` of the change `{id}` now.");
    let question = RoleQuestion {
        role: Role::Author,
        about: &path,
        system: format!("{AUTHOR}\n{prompt}"),
        input: &input,
        message,
    };

    let (text, taken) = desk.ask(question, &|text| read(id, &path, text))?;
    change.documents.put(&path, text);
    let entry = ChangeEntry {
        about: Some(path),
        usage: Some(taken),
        ..ChangeEntry::of("proposal", &now())
    };
    let (title, lines) = words(change, missing);

    change::save(
        desk.project,
        change,
        ChangeStep {
            event: Happened::Propose,
            wanted: "proposal",
            entry,
            title,
            lines,
        },
    )
}

pub(super) fn read(id: &ChangeId, path: &str, answer: &str) -> Result<String, Vec<String>> {
    let text = answer::unwrap(answer);
    // Authors sometimes copy or invent reviews. Only reviews that we record count.
    let text = if path == proposal::FILE {
        format!("{}\n", review::split(&text).0.trim_end())
    } else {
        text
    };

    let mistakes: Vec<Finding> = Documents::check_one(id, path, &text)
        .into_iter()
        .filter(|f| f.severity == Severity::High)
        .collect();
    if mistakes.is_empty() {
        Ok(text)
    } else {
        Err(mistakes.iter().map(ToString::to_string).collect())
    }
}

fn words(change: &Change, written: &MissingDocument) -> (String, Vec<String>) {
    match written {
        MissingDocument::Proposal => {
            let found = proposal::read(change.documents.text(proposal::FILE));
            let asked = change
                .state
                .description
                .iter()
                .flat_map(|text| text.lines())
                .map(|line| format!("> {line}"));
            (format!("Propose: {}", found.summary), asked.collect())
        }
        MissingDocument::Spec(name) => (format!("Specify: {name}"), Vec::new()),
        MissingDocument::Tasks => {
            let tasks = tasks::read(change.documents.text(tasks::FILE));
            (
                format!("List tasks: {}", tasks.len()),
                tasks
                    .iter()
                    .map(|task| format!("{} {}", task.number, task.title))
                    .collect(),
            )
        }
    }
}
