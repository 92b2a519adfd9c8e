//! Writes the turn for recorded work.

use super::RecordOptions;
use crate::git::object::CommitId;
use crate::git::refs::{self, Expected};
use crate::host::clock;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::message::commit_subject;
use crate::session::meta::{MessageOrigin, Meta, Recorded, Status, Workspace};
use crate::session::store::NewTurn;
use crate::session::turn::{Turn, in_next};
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::workflow::context::requests;
use crate::workflow::project::Project;
use crate::workspace::complete::SessionMove;
use crate::workspace::file_move::FileMove;
use crate::workspace::snapshot::{self, RecordedFiles};
use crate::workspace::stack::record::publish_turn;

pub(super) fn write_recorded_turn(
    project: &Project,
    tip: &Turn,
    (before, recorded): (CommitId, &RecordedFiles),
    options: &RecordOptions,
) -> anyhow::Result<(SessionMove, FileMove)> {
    let repository = &project.repository;
    let did = FileMove {
        from: repository.commit(before)?.tree,
        to: recorded.tree,
    };
    let lines = did.lines(repository)?;
    let title = turn_title(&options.message, &options.work, &lines);
    let trailer = format!("Teddy-Session: {}", tip.session);
    let text = format!("{}\n\n{trailer}\n", commit_subject(&title));
    let after = snapshot::advance(repository, before, recorded.tree, &text)?;
    let workspace = Workspace {
        worktree: repository.worktree_name(),
        branch: Some(refs::branch_or_head(repository)?),
        before,
        after,
        synced: true,
        overlaps: Vec::new(),
    };

    let published = publish_turn(repository, tip, &workspace, Some(recorded.tree))?;
    let draft = begin_draft(project, tip, &options.message)?;
    let meta = Meta {
        status: Status::Recorded,
        ended: Some(clock::stamp()),
        workspace: Some(workspace),
        recorded: Some(options.work.clone()),
        not_captured: recorded.not_captured.clone(),
        ..draft.meta.clone()
    };

    let mut artifacts = turn_artifacts(project, tip, (&draft, &meta), options)?;
    artifacts.insert(
        artifact::REPORT,
        render_report(&title, &options.work, &lines),
    );
    let commit = project.store().write(NewTurn {
        session: &tip.session,
        title: &title,
        results: &lines,
        artifacts,
        meta: &meta,
        previous: Some(tip.commit),
        workspace: Some(after),
        publication: published.id,
    })?;

    let step = SessionMove {
        expected: Expected::At(tip.commit),
        new: commit,
        published,
        log: format!("teddy: record turn {}", meta.number),
        // The work is already done, so an interrupt must not lose it.
        anyway: true,
        overwrite: false,
    };
    // The files stay as they are; only the publication is recorded.
    let stay = FileMove {
        from: recorded.tree,
        to: recorded.tree,
    };
    Ok((step, stay))
}

fn begin_draft(project: &Project, tip: &Turn, message: &str) -> anyhow::Result<Draft> {
    let mut draft = project.store().draft(tip)?;
    draft.archive_answer();
    draft.begin();
    draft.artifacts.insert(artifact::USER_PROMPT, message);
    draft.meta.origin = MessageOrigin::User;
    draft.meta.work = None;
    draft.meta.question = false;
    draft.meta.replans = 0;
    draft.meta.model = None;
    draft.meta.pipeline = None;
    draft.meta.repair = None;
    draft.meta.failure = None;
    Ok(draft)
}

fn turn_artifacts(
    project: &Project,
    tip: &Turn,
    (draft, meta): (&Draft, &Meta),
    options: &RecordOptions,
) -> anyhow::Result<artifact::Artifacts> {
    let mut artifacts = draft.lasting_artifacts();
    tip.hand_on(&project.repository, meta.turn_id, &mut artifacts)?;
    for name in [artifact::TURN_CONTEXT, artifact::SYSTEM_PROMPT] {
        artifacts.insert(&in_next(name), draft.artifacts.text_or_empty(name));
    }

    if !options.message.trim().is_empty() {
        artifacts.insert(artifact::USER_PROMPT, options.message.as_str());
        let requests = requests::requests_with(project, tip, draft)?;
        artifacts.insert(&in_next(artifact::REQUESTS), requests.write());
    }

    if let Some(transcript) = &options.transcript {
        artifacts.insert(transcript.name, transcript.text.as_str());
    }

    Ok(artifacts)
}

/// The first line of the message, else who did it, else what changed.
fn turn_title(message: &str, work: &Recorded, lines: &[String]) -> String {
    let first = message.trim().lines().next().unwrap_or_default();
    if !first.trim().is_empty() {
        return first.to_owned();
    }

    let target = match lines {
        [] => "nothing".to_owned(),
        [one] => one.split_once(' ').map_or("", |(_, path)| path).to_owned(),
        _ => counted(lines.len(), "file"),
    };
    match &work.by {
        Some(by) => format!("Record {by}: {target}"),
        None => format!("Record {target}"),
    }
}

fn render_report(title: &str, work: &Recorded, lines: &[String]) -> String {
    let mut text = format!(
        "# Execution Report: {}\n- **Overall Status:** Recorded 🟢\n",
        sanitize_line(title)
    );
    if let Some(by) = &work.by {
        text.push_str(&format!("- **Done by:** {}\n", sanitize_line(by)));
    }

    if let Some(code) = work.exit_code {
        text.push_str(&format!("- **Exit Code:** {code}\n"));
    }

    text.push_str("\n## Changed Files\n\n");
    for line in lines {
        text.push_str(&format!("- {}\n", sanitize_line(line)));
    }

    if lines.is_empty() {
        text.push_str("*(No file changed.)*\n");
    }

    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, by: Option<&str>, lines: &[&str], expected: &str) {
        let work = Recorded {
            by: by.map(str::to_owned),
            ..Recorded::default()
        };
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(turn_title(message, &work, &lines), expected);
    }

    #[test]
    fn a_title_says_what_was_wanted_or_who_did_what() {
        check("\n add a form\nplease", None, &[], "add a form");
        check(" ", None, &["write a b.txt"], "Record a b.txt");
        check("", None, &["write a", "delete b"], "Record 2 files");
        check("", Some("claude"), &["delete b"], "Record claude: b");
        check("", Some("claude"), &[], "Record claude: nothing");
    }
}
