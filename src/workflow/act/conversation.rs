//! Resumes the conversation of an acting model.
//!
//! Only if the previous turn was made by the same model in the same worktree. The prompt then
//! starts with the outcome of its last changes, because the files can differ from what the program
//! remembers.

use std::path::Path;

use super::{WorktreeEnv, fenced};
use crate::git::diff;
use crate::model::ModelRequest;
use crate::session::artifact;
use crate::session::meta::Status;
use crate::session::turn::Turn;
use crate::text::beginning;
use crate::text::path::lossy;
use crate::text::sanitize::sanitize_line;

const MAX_EARLIER_REPORT: usize = 64 << 10;
const MAX_NAMED_FILES: usize = 100;

pub(super) struct EarlierTalk {
    /// Conversation id assigned by the program.
    pub id: String,
}

impl EarlierTalk {
    /// `None` if the previous turn used another model or worktree.
    pub(super) fn of(tip: &Turn, model: &str, worktree: &Path) -> Option<EarlierTalk> {
        let requested = tip.meta.model.as_ref().map(|model| model.asked.as_str());
        let acted = tip.meta.acted.as_ref()?;
        let recorded = acted.worktree.as_deref()?;
        // Earlier versions recorded the path itself.
        let is_here = recorded == name_of(worktree) || Some(recorded) == worktree.to_str();
        let id = acted.conversation.clone()?;
        (requested == Some(model) && is_here).then_some(EarlierTalk { id })
    }

    /// The prompt for a resumed conversation: the outcome of the last changes, edits by the user
    /// since, and the message.
    pub(super) fn further(
        &self,
        env: &WorktreeEnv<'_, '_>,
        request: &ModelRequest,
    ) -> anyhow::Result<String> {
        let mut text = format!("# Your last changes\n\n{}\n", describe_outcome(env.tip));
        // If everything was applied as proposed, the report tells the model nothing new.
        if !is_applied_unchanged(env)? {
            let report = env.tip.text(&env.project.repository, artifact::REPORT)?;
            let report = report.unwrap_or_default();
            let report = beginning(&report, MAX_EARLIER_REPORT);
            text.push_str(&format!(
                "\nThe report on them, with what the user changed or switched off:\n\n{}",
                fenced(&report)
            ));
        }

        text.push_str(&changes_since(env)?);
        text.push_str(&format!("\n# Message\n\n{}\n", request.message.trim_end()));
        Ok(text)
    }
}

/// Names a worktree in a turn, without the path, which contains the user's name.
pub(super) fn name_of(worktree: &Path) -> String {
    crate::text::digest(&worktree.to_string_lossy())
}

fn describe_outcome(tip: &Turn) -> &'static str {
    match tip.meta.status {
        Status::Executed => {
            "The user has looked at them, and what they approved is in the files of this folder."
        }
        Status::Declined => "The user did not want them: none of them is in the files any more.",
        Status::Failed => "They were carried out in part; the files are as the report says.",
        _ => "They were not carried out: none of them is in the files any more.",
    }
}

fn is_applied_unchanged(env: &WorktreeEnv<'_, '_>) -> anyhow::Result<bool> {
    let approved = env.tip.text(&env.project.repository, artifact::APPROVED)?;
    Ok(env.tip.meta.status == Status::Executed && approved.is_none())
}

fn changes_since(env: &WorktreeEnv<'_, '_>) -> anyhow::Result<String> {
    let Some(workspace) = &env.tip.meta.workspace else {
        return Ok(String::new());
    };
    let repository = &env.project.repository;
    let after = repository.commit(workspace.after)?.tree;
    let changed = diff::changes(repository, after, env.recorded.tree)?;
    if changed.is_empty() {
        return Ok(String::new());
    }

    let listed = changed.iter().take(MAX_NAMED_FILES);
    let mut list: String = listed
        .map(|change| format!("- {}\n", sanitize_line(&lossy(&change.path))))
        .collect();
    if changed.len() > MAX_NAMED_FILES {
        list.push_str(&format!("- and {} more\n", changed.len() - MAX_NAMED_FILES));
    }
    Ok(format!(
        "\nThese files are not as you left them; read them again before you change them:\n\n{list}"
    ))
}
