//! The step `reproposal`: the author revises the documents, or the user replaces them.

use super::ask::{Role, RoleClient, RoleQuestion, expand_template};
use super::proposal::{AUTHOR_PROMPT, read_document, write_missing_documents};
use super::{ChangeOptions, ChangeStep, allow, now};
use crate::change::document::Documents;
use crate::change::id::ChangeId;
use crate::change::phase::ChangeEvent as Happened;
use crate::change::state::ChangeEntry;
use crate::change::store::Change;
use crate::change::{document, proposal, review, spec, tasks};
use crate::project::Project;
use crate::workflow::change;
use crate::workflow::change::ask::render_material;
use crate::workflow::change::open_change;
use crate::workflow::user::User;

const REVISION_PROMPT: &str = include_str!("../../../prompts/change/revision.md");

/// `message` is the user's own request.
pub fn revise_proposal(
    project: &Project,
    id: &ChangeId,
    message: Option<&str>,
    doing: (&ChangeOptions, &mut dyn User),
) -> anyhow::Result<Change> {
    let (options, user) = doing;
    let _lock = change::lock_change(project, id, "reproposal")?;
    project.recover(user)?;
    let mut change = open_change(project, id)?;
    revise_proposal_locked(
        &mut RoleClient {
            project,
            id,
            options,
            user,
        },
        &mut change,
        message,
    )?;

    Ok(change)
}

/// The caller has locked the change.
pub(super) fn revise_proposal_locked(
    client: &mut RoleClient<'_>,
    change: &mut Change,
    message: Option<&str>,
) -> anyhow::Result<()> {
    allow(change, Happened::Repropose, "reproposal")?;
    let id = client.id;
    let input = render_material(
        &client.project.repository,
        change,
        change::files_now(client.project)?,
    )?;
    let guidance = message
        .map(|text| format!("\n\nThe user says:\n{}", text.trim()))
        .unwrap_or_default();
    let message = format!("Revise the change `{id}` now.{guidance}");
    let system = format!(
        "{AUTHOR_PROMPT}\n{}",
        expand_template(REVISION_PROMPT, id, "")
    );
    let question = RoleQuestion {
        role: Role::Author,
        about: "documents in `<file>` blocks",
        system,
        input: &input,
        message,
    };

    let (files, usage) = client.ask(question, &|text| parse_revision(id, text))?;
    let names: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
    replace_documents(&mut change.documents, files);
    let entry = ChangeEntry {
        about: Some(names.join(", ")),
        usage: Some(usage),
        ..ChangeEntry::of("reproposal", &now())
    };

    let title = format!(
        "Revise {}: {}",
        change.state.iteration + 1,
        names.join(", ")
    );
    change::save(
        client.project,
        change,
        ChangeStep {
            event: Happened::Repropose,
            command: "reproposal",
            entry,
            title,
            lines: Vec::new(),
        },
    )?;

    // The revised proposal can name new specs.
    write_missing_documents(client, change).map(|_| ())
}

fn parse_revision(id: &ChangeId, text: &str) -> Result<Vec<(String, String)>, Vec<String>> {
    let files = document::files_in_answer(&document::unwrap_answer(text));
    if files.is_empty() {
        return Err(vec!["it has no `<file path=\"...\">` block".to_owned()]);
    }

    let (mut revised, mut mistakes) = (Vec::new(), Vec::new());
    for (path, text) in files {
        // The path is the model's. Only documents of a change can be written.
        if !is_revisable(&path) {
            mistakes.push(format!(
                "`{}` is not a document of a change",
                crate::text::sanitize::sanitize_line(&path)
            ));
            continue;
        }

        match read_document(id, &path, &text) {
            Ok(text) => revised.push((path, text)),
            Err(wrong) => mistakes.extend(wrong),
        }
    }

    if mistakes.is_empty() {
        Ok(revised)
    } else {
        Err(mistakes)
    }
}

fn is_revisable(path: &str) -> bool {
    matches!(path, proposal::FILE | tasks::FILE)
        || spec::id_of(path).is_some_and(crate::change::id::is_id)
}

/// The proposal keeps its reviews. Specs that it does not name any more are dropped.
fn replace_documents(documents: &mut Documents, files: Vec<(String, String)>) {
    let revised = files.iter().any(|(path, _)| path == proposal::FILE);
    for (path, text) in files {
        let text = if path == proposal::FILE {
            let (_, reviews) = review::split(documents.text(proposal::FILE));
            if reviews.is_empty() {
                text
            } else {
                format!("{}\n\n{}", text.trim_end(), reviews)
            }
        } else {
            text
        };
        documents.insert(&path, text);
    }

    if revised {
        let specs = proposal::read(documents.text(proposal::FILE)).specs;
        let is_named =
            |path: &str| spec::id_of(path).is_none_or(|id| specs.iter().any(|name| name == id));
        documents.0.retain(|path, _| is_named(path));
    }
}

/// A rejected change becomes proposed again.
pub fn edit_documents(
    project: &Project,
    id: &ChangeId,
    files: Vec<(String, String)>,
    user: &mut dyn User,
) -> anyhow::Result<Change> {
    let _lock = change::lock_change(project, id, "reproposal")?;
    project.recover(user)?;
    let mut change = open_change(project, id)?;
    allow(&change, Happened::Edit, "reproposal")?;
    let mut good = Vec::new();

    for (path, text) in files {
        anyhow::ensure!(
            is_revisable(&path),
            "`{path}` is not a document of a change: use proposal.md, tasks.md or specs/<id>.md"
        );
        let text = read_document(id, &path, &text)
            .map_err(|mistakes| anyhow::anyhow!("nothing was changed:\n{}", mistakes.join("\n")))?;
        good.push((path, text));
    }

    let names: Vec<String> = good.iter().map(|(path, _)| path.clone()).collect();
    replace_documents(&mut change.documents, good);
    let entry = ChangeEntry {
        about: Some(names.join(", ")),
        ..ChangeEntry::of("edit", &now())
    };
    let title = format!("Edit by hand: {}", names.join(", "));

    change::save(
        project,
        &mut change,
        ChangeStep {
            event: Happened::Edit,
            command: "reproposal",
            entry,
            title,
            lines: Vec::new(),
        },
    )?;
    Ok(change)
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
    fn only_documents_of_a_change_are_taken() {
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
                [format!("`{path}` is not a document of a change")]
            );
        }
        assert_eq!(
            parse_revision(&id, "I would rather not.").unwrap_err(),
            ["it has no `<file path=\"...\">` block"]
        );
    }
}
