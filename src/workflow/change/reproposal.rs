//! The step `reproposal`: the author revises the documents, or the user replaces them.

use super::ask::{Role, RoleClient, RoleQuestion, fill};
use super::proposal::{AUTHOR, complete, read as read_document};
use super::{ChangeOptions, ChangeStep, allow, now};
use crate::change::document::Documents;
use crate::change::entry::ChangeEntry;
use crate::change::id::ChangeId;
use crate::change::phase::ChangeEvent as Happened;
use crate::change::store::Change;
use crate::change::{answer, proposal, review, spec, tasks};
use crate::workflow::change;
use crate::workflow::change::change;
use crate::workflow::change::material::material;
use crate::workflow::project::Project;
use crate::workflow::user::User;

const REVISION: &str = include_str!("../../../prompts/change/revision.md");

/// Asks the author to revise the documents after a challenge. `message` is the user's own request.
pub fn reproposal(
    project: &Project,
    id: &ChangeId,
    message: Option<&str>,
    desk: (&ChangeOptions, &mut dyn User),
) -> anyhow::Result<Change> {
    let (wish, user) = desk;
    let _lock = change::lock_change(project, id, "reproposal")?;
    project.recover(user)?;
    let mut change = change(project, id)?;
    revise(
        &mut RoleClient {
            project,
            id,
            wish,
            user,
        },
        &mut change,
        message,
    )?;

    Ok(change)
}

/// Like `reproposal`, for a change that the caller has locked.
pub(super) fn revise(
    desk: &mut RoleClient<'_>,
    change: &mut Change,
    message: Option<&str>,
) -> anyhow::Result<()> {
    allow(change, Happened::Repropose, "reproposal")?;
    let id = desk.id;
    let input = material(
        &desk.project.repository,
        change,
        change::files_now(desk.project)?,
    )?;
    let wanted = message
        .map(|text| format!("\n\nThe user says:\n{}", text.trim()))
        .unwrap_or_default();
    let message = format!("Revise the change `{id}` now.{wanted}");
    let system = format!("{AUTHOR}\n{}", fill(REVISION, id, ""));
    let question = RoleQuestion {
        role: Role::Author,
        about: "documents in `<file>` blocks",
        system,
        input: &input,
        message,
    };

    let (files, taken) = desk.ask(question, &|text| read(id, text))?;
    let names: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
    put(&mut change.documents, files);
    let entry = ChangeEntry {
        about: Some(names.join(", ")),
        usage: Some(taken),
        ..ChangeEntry::of("reproposal", &now())
    };

    let title = format!(
        "Revise {}: {}",
        change.state.iteration + 1,
        names.join(", ")
    );
    change::save(
        desk.project,
        change,
        ChangeStep {
            event: Happened::Repropose,
            wanted: "reproposal",
            entry,
            title,
            lines: Vec::new(),
        },
    )?;

    // The revised proposal can name new specs.
    complete(desk, change).map(|_| ())
}

fn read(id: &ChangeId, text: &str) -> Result<Vec<(String, String)>, Vec<String>> {
    let files = answer::files(&answer::unwrap(text));
    if files.is_empty() {
        return Err(vec!["it has no `<file path=\"...\">` block".to_owned()]);
    }

    let (mut found, mut mistakes) = (Vec::new(), Vec::new());
    for (path, text) in files {
        // The path is the model's. Only documents of a change can be written.
        if !can_be_revised(&path) {
            mistakes.push(format!(
                "`{}` is not a document of a change",
                crate::text::visible::visible(&path)
            ));
            continue;
        }

        match read_document(id, &path, &text) {
            Ok(text) => found.push((path, text)),
            Err(wrong) => mistakes.extend(wrong),
        }
    }

    if mistakes.is_empty() {
        Ok(found)
    } else {
        Err(mistakes)
    }
}

fn can_be_revised(path: &str) -> bool {
    matches!(path, proposal::FILE | tasks::FILE)
        || spec::id_of(path).is_some_and(crate::change::id::is_id)
}

/// Replaces documents. The proposal keeps its reviews; specs that it does not name any more are
/// dropped.
fn put(documents: &mut Documents, files: Vec<(String, String)>) {
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
        documents.put(&path, text);
    }

    if revised {
        let named = proposal::read(documents.text(proposal::FILE)).specs;
        let is_named =
            |path: &str| spec::id_of(path).is_none_or(|id| named.iter().any(|name| name == id));
        documents.0.retain(|path, _| is_named(path));
    }
}

/// Replaces documents by the user's own. A rejected change becomes proposed again.
pub fn edit(
    project: &Project,
    id: &ChangeId,
    files: Vec<(String, String)>,
    user: &mut dyn User,
) -> anyhow::Result<Change> {
    let _lock = change::lock_change(project, id, "reproposal")?;
    project.recover(user)?;
    let mut change = change(project, id)?;
    allow(&change, Happened::Edit, "reproposal")?;
    let mut good = Vec::new();

    for (path, text) in files {
        anyhow::ensure!(
            can_be_revised(&path),
            "`{path}` is not a document of a change: use proposal.md, tasks.md or specs/<id>.md"
        );
        let text = read_document(id, &path, &text)
            .map_err(|mistakes| anyhow::anyhow!("nothing was changed:\n{}", mistakes.join("\n")))?;
        good.push((path, text));
    }

    let names: Vec<String> = good.iter().map(|(path, _)| path.clone()).collect();
    put(&mut change.documents, good);
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
            wanted: "reproposal",
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
        documents.put("proposal.md", "# Change: a\n\n## Impact\n- Affected specs: `one`, `two`\n\n<review iteration=\"1\" reviewer=\"c\" status=\"needs_revision\">\n\nno\n\n</review>\n");
        documents.put("specs/one.md", "1");
        documents.put("specs/two.md", "2");
        documents.put("tasks.md", "t");
        put(
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
            let mistakes = read(&id, &answer(path)).unwrap_err();
            assert_eq!(
                mistakes,
                [format!("`{path}` is not a document of a change")]
            );
        }
        assert_eq!(
            read(&id, "I would rather not.").unwrap_err(),
            ["it has no `<file path=\"...\">` block"]
        );
    }
}
