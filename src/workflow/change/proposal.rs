//! The step `proposal`: writes proposal.md, then each spec, then tasks.md.
//!
//! Each is one request and one commit. Existing documents are never written again, so an
//! interrupted call continues where it stopped.

use super::ask::{Role, RoleClient, RoleQuestion, expand_template};
use super::{ChangeOptions, ChangeStep, allow, now};
use crate::change::document::{Documents, MissingDocument};
use crate::change::finding::{Finding, Severity};
use crate::change::id::ChangeId;
use crate::change::phase::ChangeEvent as Happened;
use crate::change::state::ChangeEntry;
use crate::change::state::{Base, ChangeState};
use crate::change::store::Change;
use crate::change::store::ChangeError;
use crate::change::{document, proposal, review, spec, tasks};
use crate::git::refs;
use crate::project::Project;
use crate::workflow::change;
use crate::workflow::change::ask::render_material;
use crate::workflow::change::open_change;
use crate::workflow::user::User;

pub(super) const AUTHOR_PROMPT: &str = include_str!("../../../prompts/change/author.md");
const PROPOSAL_PROMPT: &str = include_str!("../../../prompts/change/proposal.md");
const SPEC_PROMPT: &str = include_str!("../../../prompts/change/spec.md");
const TASKS_PROMPT: &str = include_str!("../../../prompts/change/tasks.md");

pub struct Idea<'a> {
    pub id: &'a ChangeId,
    /// Required for a new change, ignored otherwise.
    pub description: Option<&'a str>,
}

/// Also returns the number of documents written.
pub fn write_proposal(
    project: &Project,
    idea: &Idea<'_>,
    options: &ChangeOptions,
    user: &mut dyn User,
) -> anyhow::Result<(Change, usize)> {
    let _lock = change::lock_change(project, idea.id, "proposal")?;
    project.recover(user)?;
    write_proposal_locked(
        &mut RoleClient {
            project,
            id: idea.id,
            options,
            user,
        },
        idea.description,
    )
}

/// The caller has locked the change.
pub(super) fn write_proposal_locked(
    client: &mut RoleClient<'_>,
    description: Option<&str>,
) -> anyhow::Result<(Change, usize)> {
    let mut change = open_or_start_change(client.project, client.id, description)?;
    // A new change has no commit yet, and so no phase to check.
    if change.commit.is_some() {
        allow(&change, Happened::Propose, "proposal")?;
    }
    let written = write_missing_documents(client, &mut change)?;
    Ok((change, written))
}

pub(super) fn write_missing_documents(
    client: &mut RoleClient<'_>,
    change: &mut Change,
) -> anyhow::Result<usize> {
    let mut written = 0;
    while let Some(missing) = change.documents.missing() {
        write_document(client, change, &missing)?;
        written += 1;
    }
    Ok(written)
}

fn open_or_start_change(
    project: &Project,
    id: &ChangeId,
    description: Option<&str>,
) -> anyhow::Result<Change> {
    if refs::read(&project.repository, &id.reference())?.is_some() {
        return open_change(project, id);
    }

    let description = description.map(str::trim).filter(|text| !text.is_empty());
    let description = description.ok_or_else(|| ChangeError::MissingDescription(id.clone()))?;
    let (tree, specs) = change::change_store(project).beginning(change::files_now(project)?)?;
    let base = Base {
        commit: refs::head(&project.repository)?,
        specs,
    };
    let description = crate::text::secret::redact(description);
    let state = ChangeState::new(id, &description, base, &now());

    Ok(Change {
        id: id.clone(),
        commit: None,
        tree,
        state,
        documents: Documents::default(),
    })
}

fn write_document(
    client: &mut RoleClient<'_>,
    change: &mut Change,
    missing: &MissingDocument,
) -> anyhow::Result<()> {
    let id = client.id;
    let (path, prompt) = match missing {
        MissingDocument::Proposal => (
            proposal::FILE.to_owned(),
            expand_template(PROPOSAL_PROMPT, id, ""),
        ),
        MissingDocument::Spec(name) => (spec::path(name), expand_template(SPEC_PROMPT, id, name)),
        MissingDocument::Tasks => (
            tasks::FILE.to_owned(),
            expand_template(TASKS_PROMPT, id, ""),
        ),
    };
    let input = render_material(
        &client.project.repository,
        change,
        change::files_now(client.project)?,
    )?;
    let message = format!("Write `{path}` of the change `{id}` now.");
    let question = RoleQuestion {
        role: Role::Author,
        about: &path,
        system: format!("{AUTHOR_PROMPT}\n{prompt}"),
        input: &input,
        message,
    };

    let (text, usage) = client.ask(question, &|text| read_document(id, &path, text))?;
    change.documents.insert(&path, text);
    let entry = ChangeEntry {
        about: Some(path),
        usage: Some(usage),
        ..ChangeEntry::of("proposal", &now())
    };
    let (title, lines) = describe_document(change, missing);

    change::save(
        client.project,
        change,
        ChangeStep {
            event: Happened::Propose,
            command: "proposal",
            entry,
            title,
            lines,
        },
    )
}

pub(super) fn read_document(
    id: &ChangeId,
    path: &str,
    answer: &str,
) -> Result<String, Vec<String>> {
    let text = document::unwrap_answer(answer);
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

fn describe_document(change: &Change, written: &MissingDocument) -> (String, Vec<String>) {
    match written {
        MissingDocument::Proposal => {
            let parsed = proposal::read(change.documents.text(proposal::FILE));
            let quoted = change
                .state
                .description
                .iter()
                .flat_map(|text| text.lines())
                .map(|line| format!("> {line}"));
            (format!("Propose: {}", parsed.summary), quoted.collect())
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
