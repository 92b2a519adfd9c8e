//! The workflow `plan`: proposal, challenge, and revisions until a final verdict or the limit; and
//! its steps that write documents.
//!
//! Existing documents are never written again, so an interrupted call continues where it stopped.

use anyhow::Context as _;
use serde::Serialize;

use super::OpenChange;
use super::ask::{Role, RoleQuestion, expand_template};
use super::judge::{Judgement, challenge};
use crate::change::document::{self, Documents};
use crate::change::finding::{Finding, Severity};
use crate::change::id::ChangeId;
use crate::change::phase::{ChangePhase, ChangeStep};
use crate::change::review::{self, Issues, ReviewVerdict};
use crate::change::shape::DocumentKind;
use crate::change::state::{ChangeEntry, StepUsage};
use crate::change::store::{Change, ChangeError, next_step};
use crate::change::{proposal, spec, tasks};
use crate::text::sanitize::sanitize_line;
use crate::workflow::context::message::without_keys;

const AUTHOR: &str = include_str!("../../../prompts/change/author.md");
const PROPOSAL: &str = include_str!("../../../prompts/change/proposal.md");
const SPEC: &str = include_str!("../../../prompts/change/spec.md");
const TASKS: &str = include_str!("../../../prompts/change/tasks.md");
const REVISION: &str = include_str!("../../../prompts/change/revision.md");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanningStep {
    Planned,
    AlreadyComplete,
    /// The change is past planning.
    BeyondPlanning,
}

#[derive(Debug, Clone, Serialize)]
pub struct PlannedChange {
    pub change: ChangeId,
    pub action: PlanningStep,
    pub phase: ChangePhase,
    pub iteration: u32,
    pub written: usize,
    /// In this call.
    pub challenges: u32,
    /// In this call.
    pub reproposals: u32,
    /// In this call.
    pub verdict: Option<ReviewVerdict>,
    pub issues: Issues,
    pub only_minor_issues: bool,
    /// Suggested command.
    pub next: String,
}

pub fn plan(open: &mut OpenChange<'_>) -> anyhow::Result<PlannedChange> {
    let state = &open.change.state;
    let action = match state.phase {
        ChangePhase::Proposed => PlanningStep::Planned,
        ChangePhase::Challenged => PlanningStep::AlreadyComplete,
        ChangePhase::Rejected => {
            return Err(ChangeError::Rejected(open.change.id.clone()).into());
        }
        _ => PlanningStep::BeyondPlanning,
    };
    let mut planned = PlannedChange {
        change: open.change.id.clone(),
        action,
        phase: state.phase,
        iteration: state.iteration,
        written: 0,
        challenges: 0,
        reproposals: 0,
        verdict: None,
        issues: Issues::default(),
        only_minor_issues: false,
        next: String::new(),
    };
    if action == PlanningStep::Planned {
        planned.written = propose(open)?;
        revise_until_final(open, &mut planned)?;
    }

    planned.next = next_step(&planned.change, planned.phase);
    Ok(planned)
}

fn revise_until_final(
    open: &mut OpenChange<'_>,
    planned: &mut PlannedChange,
) -> anyhow::Result<()> {
    loop {
        let judgement = challenge(open)?;
        planned.challenges += 1;
        let Judgement { phase, verdict, .. } = judgement;
        (planned.phase, planned.verdict) = (phase, Some(verdict));
        planned.iteration = judgement.iteration;
        planned.issues = judgement.issues;
        planned.only_minor_issues = judgement.only_minor_issues;
        let most = open.project.settings.change.planning_iterations;
        if verdict != ReviewVerdict::NeedsRevision || planned.reproposals >= most {
            return Ok(());
        }

        revise_as(open, None)?;
        planned.reproposals += 1;
    }
}

/// The step `proposal`: writes proposal.md, then each spec, then tasks.md. Each is one request and
/// one commit. Returns the number of documents written.
pub fn propose(open: &mut OpenChange<'_>) -> anyhow::Result<usize> {
    open.allow(ChangeStep::Proposal)?;
    write_missing_documents(open)
}

fn write_missing_documents(open: &mut OpenChange<'_>) -> anyhow::Result<usize> {
    let mut written = 0;
    while let Some(path) = open.change.documents.missing().into_iter().next() {
        write_document(open, path)?;
        written += 1;
    }
    Ok(written)
}

fn write_document(open: &mut OpenChange<'_>, path: String) -> anyhow::Result<()> {
    let id = open.change.id.clone();
    let kind = DocumentKind::of(&path)
        .with_context(|| format!("`{}` is not a document of a change", sanitize_line(&path)))?;
    let prompt = match kind {
        DocumentKind::Spec => SPEC,
        DocumentKind::Tasks => TASKS,
        DocumentKind::Proposal | DocumentKind::Review => PROPOSAL,
    };
    let spec_id = spec::id_of(&path).unwrap_or_default().to_owned();
    let question = RoleQuestion {
        role: Role::Author,
        about: &path,
        system: format!("{AUTHOR}\n{}", expand_template(prompt, &id, &spec_id)),
        input: open.material()?,
        message: format!("Write `{path}` of the change `{id}` now."),
    };

    let (text, usage) = open.ask(question, &|text| {
        Ok(by_author(&path, read_document(&id, &path, text)?))
    })?;
    open.change.documents.insert(&path, text);
    let (title, lines) = describe_document(&open.change, kind, &spec_id);
    let entry = ChangeEntry {
        about: Some(path),
        usage: Some(usage),
        ..ChangeEntry::default()
    };
    open.save(ChangeStep::Proposal, entry, &title, &lines)
}

fn describe_document(change: &Change, kind: DocumentKind, spec: &str) -> (String, Vec<String>) {
    let documents = &change.documents;
    match kind {
        DocumentKind::Spec => (format!("Specify: {spec}"), Vec::new()),
        DocumentKind::Tasks => {
            let tasks = tasks::read(documents.text(tasks::FILE));
            let lines = tasks
                .iter()
                .map(|task| format!("{} {}", task.number, task.title));
            (format!("List tasks: {}", tasks.len()), lines.collect())
        }
        DocumentKind::Proposal | DocumentKind::Review => {
            let summary = proposal::read(documents.text(proposal::FILE)).summary;
            let description = change.state.description.as_deref().unwrap_or_default();
            let quoted = description.lines().map(|line| format!("> {line}"));
            (format!("Propose: {summary}"), quoted.collect())
        }
    }
}

fn read_document(id: &ChangeId, path: &str, answer: &str) -> Result<String, Vec<String>> {
    // The path can be the model's. Only documents of a change can be written.
    let Some(kind) = DocumentKind::of(path).filter(|kind| kind.is_written()) else {
        return Err(vec![format!(
            "`{}` is not a document of a change: use proposal.md, tasks.md or specs/<id>.md",
            sanitize_line(path)
        )]);
    };
    let mut text = document::unwrap_answer(answer);
    // Authors sometimes copy or invent reviews. Only reviews that we record count.
    if kind == DocumentKind::Proposal {
        text = format!("{}\n", review::split(&text).0.trim_end());
    }

    let mut mistakes: Vec<Finding> = kind.check(id, path, &text);
    mistakes.retain(|finding| finding.severity == Severity::High);
    if mistakes.is_empty() {
        Ok(text)
    } else {
        Err(mistakes.iter().map(ToString::to_string).collect())
    }
}

/// The step `reproposal`: the author revises the documents.
pub fn revise(open: &mut OpenChange<'_>) -> anyhow::Result<()> {
    let message = open.request.message.clone();
    let message = message.map(|text| without_keys(text, open.user));
    revise_as(open, message.as_deref())
}

/// `message` is the user's own request.
fn revise_as(open: &mut OpenChange<'_>, message: Option<&str>) -> anyhow::Result<()> {
    open.allow(ChangeStep::Reproposal)?;
    let id = open.change.id.clone();
    let guidance = message
        .map(|text| format!("\n\nThe user says:\n{}", text.trim()))
        .unwrap_or_default();
    let question = RoleQuestion {
        role: Role::Author,
        about: "documents in `<file>` blocks",
        system: format!("{AUTHOR}\n{}", expand_template(REVISION, &id, "")),
        input: open.material()?,
        message: format!("Revise the change `{id}` now.{guidance}"),
    };
    let (files, usage) = open.ask(question, &|text| parse_revision(&id, text))?;
    replace(open, files, Some(usage))?;

    // The revised proposal can name new specs.
    write_missing_documents(open).map(|_| ())
}

fn parse_revision(id: &ChangeId, text: &str) -> Result<Vec<(String, String)>, Vec<String>> {
    let files = document::files_in_answer(&document::unwrap_answer(text));
    if files.is_empty() {
        return Err(vec!["it has no `<file path=\"...\">` block".to_owned()]);
    }
    let mut documents = read_documents(id, files)?;
    for (path, text) in &mut documents {
        *text = by_author(path, std::mem::take(text));
    }
    Ok(documents)
}

/// Unticks the tasks of the author: one that is ticked would never run.
fn by_author(path: &str, text: String) -> String {
    match DocumentKind::of(path) {
        Some(DocumentKind::Tasks) => tasks::untick(&text, |_| true),
        _ => text,
    }
}

fn read_documents(
    id: &ChangeId,
    files: Vec<(String, String)>,
) -> Result<Vec<(String, String)>, Vec<String>> {
    let (mut documents, mut mistakes) = (Vec::new(), Vec::new());
    for (path, text) in files {
        match read_document(id, &path, &text) {
            Ok(text) => documents.push((path, text)),
            Err(wrong) => mistakes.extend(wrong),
        }
    }

    if mistakes.is_empty() {
        Ok(documents)
    } else {
        Err(mistakes)
    }
}

/// The step `edit`: the user replaces documents. A rejected change becomes proposed again.
pub fn edit(open: &mut OpenChange<'_>, files: Vec<(String, String)>) -> anyhow::Result<()> {
    open.allow(ChangeStep::Edit)?;
    let files = read_documents(&open.change.id, files)
        .map_err(|mistakes| anyhow::anyhow!("nothing was changed:\n{}", mistakes.join("\n")))?;
    replace(open, files, None)
}

/// Without `usage`, the documents are the user's.
fn replace(
    open: &mut OpenChange<'_>,
    files: Vec<(String, String)>,
    usage: Option<StepUsage>,
) -> anyhow::Result<()> {
    let names: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
    let names = names.join(", ");
    let (step, title) = match usage {
        Some(_) => (
            ChangeStep::Reproposal,
            format!("Revise {}: {names}", open.change.state.iteration + 1),
        ),
        None => (ChangeStep::Edit, format!("Edit by hand: {names}")),
    };
    replace_documents(&mut open.change.documents, files);
    let entry = ChangeEntry {
        about: Some(names),
        usage,
        ..ChangeEntry::default()
    };
    open.save(step, entry, &title, &[])
}

/// The proposal keeps its reviews. Specs that it no longer names are dropped.
fn replace_documents(documents: &mut Documents, files: Vec<(String, String)>) {
    let revised = files.iter().any(|(path, _)| path == proposal::FILE);
    let (_, reviews) = review::split(documents.text(proposal::FILE));
    for (path, mut text) in files {
        if path == proposal::FILE && !reviews.is_empty() {
            text = format!("{}\n\n{reviews}", text.trim_end());
        }
        documents.insert(&path, text);
    }

    if revised {
        let named = documents.named_specs();
        let is_spec = |path: &str| spec::id_of(path).is_some();
        documents
            .0
            .retain(|path, _| !is_spec(path) || named.contains(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_keeps_the_reviews_and_drops_specs_that_are_no_longer_named() {
        let mut documents = Documents::default();
        documents.insert("proposal.md", "# Change: a\n\n## Impact\n- Affected specs: `one`, `two`\n\n<review iteration=\"1\" reviewer=\"c\" status=\"needs_revision\">\n\nno\n\n</review>\n");
        documents.insert("specs/one.md", "1");
        documents.insert("specs/two.md", "2");
        documents.insert("tasks.md", "t");
        replace_documents(
            &mut documents,
            vec![(
                "proposal.md".into(),
                "# Change: a\n\n## Impact\n- Affected specs: `two`\n".into(),
            )],
        );
        assert_eq!(
            documents.0.keys().collect::<Vec<_>>(),
            ["proposal.md", "specs/two.md", "tasks.md"]
        );
        assert_eq!(review::read(documents.text("proposal.md")).len(), 1);
    }

    #[test]
    fn t8_the_author_ticks_no_task() {
        let id = ChangeId::parse("a").unwrap();
        let text = "# Tasks: a\n\n## 1. Data\n- [x] 1.1 Say it\n  - Do: Say it.\n";
        let answer = format!("<file path=\"tasks.md\">\n{text}</file>\n");
        let documents = parse_revision(&id, &answer).unwrap();
        let open = text.replace("[x]", "[ ]");
        assert_eq!(documents, [("tasks.md".to_owned(), open)]);
    }

    #[test]
    fn only_documents_of_a_change_are_accepted() {
        let id = ChangeId::parse("a").unwrap();
        let answer = |path: &str| format!("<file path=\"{path}\">\nx\n</file>\n");
        for path in [
            "STATE.yaml",
            "review.md",
            "../x.md",
            "specs/../x.md",
            "specs/A B.md",
            "src/main.rs",
        ] {
            let mistakes = parse_revision(&id, &answer(path)).unwrap_err();
            assert_eq!(
                mistakes,
                [format!(
                    "`{path}` is not a document of a change: use proposal.md, tasks.md or specs/<id>.md"
                )]
            );
        }
        assert_eq!(
            parse_revision(&id, "I would rather not.").unwrap_err(),
            ["it has no `<file path=\"...\">` block"]
        );
    }
}
