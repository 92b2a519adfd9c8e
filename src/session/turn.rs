//! Reads a turn from a commit of a session, and renders the commit's message.
//!
//! A commit can come from elsewhere, so sizes and numbers are bounded before anything is parsed.

use anyhow::Context as _;
use uuid::Uuid;

use super::artifact::{self, Artifacts, MAX_MODEL_MESSAGE};
use super::meta::{self, Meta, NextMeta, RestoreCommand, Restored, SCHEMA, Status};
use super::name::SessionName;
use super::publication::Publication;
use crate::git::object::{Commit, CommitId, TreeId};
use crate::git::repository::Repository;
use crate::text::sanitize::sanitize_line;
use crate::text::{beginning, counted};

// In bytes, for a commit and its `meta.yaml`. Those from elsewhere can have any size.
// Larger than any turn of ours.
const MAX_SMALL: u64 = 4 << 20;

// A commit from elsewhere can claim any number.
const MAX_NUMBER: u64 = 1 << 40;

#[derive(Debug, Clone)]
pub struct Turn {
    pub session: SessionName,
    pub commit: CommitId,
    /// Its artifacts.
    pub tree: TreeId,
    /// `None` for turn 0.
    pub previous: Option<CommitId>,
    /// The workspace commit after the turn. `None` before the first plan.
    pub workspace: Option<CommitId>,
    /// `None` in turn 0.
    pub publication: Option<CommitId>,
    pub title: String,
    pub meta: Meta,
    /// In seconds since 1970.
    pub seconds: i64,
    /// A turn of a bare session, which comes without its workspace commits.
    pub without_code: bool,
    /// Another tool, such as `git filter-repo`, rewrote its workspace commits. `meta` names those
    /// that exist now.
    pub rewritten: bool,
}

pub fn archive_title(id: &str) -> String {
    format!("Archive change {id}")
}

/// `paths` is empty for all files.
pub fn restore_title(turn: &Turn, paths: &[String]) -> String {
    let (number, title) = (turn.number(), &turn.title);
    match paths {
        [] => format!("Restore {number}: {title}"),
        [path] => format!("Restore {} to {number}: {title}", sanitize_line(path)),
        [path, rest @ ..] => {
            let (path, rest) = (sanitize_line(path), counted(rest.len(), "other path"));
            format!("Restore {path} and {rest} to {number}: {title}")
        }
    }
}

impl Turn {
    /// Fails if the commit is not a turn.
    pub fn read(
        repository: &Repository,
        session: &SessionName,
        id: CommitId,
    ) -> anyhow::Result<Turn> {
        // The commit's parents are current; the ids in `meta.yaml` are those from before a rewrite.
        let turn = Turn::read_as_recorded(repository, session, id)?;
        let turn = turn.with_current_files(repository);
        Ok(Turn {
            meta: turn.meta.plausible(),
            ..turn
        })
    }

    /// With the workspace commits that exist now.
    pub(super) fn with_current_files(mut self, repository: &Repository) -> Turn {
        if let (Some(workspace), Some(after)) = (&mut self.meta.workspace, self.workspace)
            && workspace.after != after
        {
            let current = workspace.change().rewritten(repository, after);
            (workspace.before, workspace.after) = (current.before, current.after);
            self.rewritten = true;
        }
        self
    }

    /// Like [`Turn::read`], with the workspace commits that `meta.yaml` names, even if they are not
    /// those of the commit, and with all else that it says.
    pub fn read_as_recorded(
        repository: &Repository,
        session: &SessionName,
        id: CommitId,
    ) -> anyhow::Result<Turn> {
        // Before the commit is read: a fetched one can have any size.
        let size = repository.commit_size(id)?;
        anyhow::ensure!(
            size <= MAX_SMALL,
            "commit {id} has {size} bytes, which no turn has"
        );
        let commit = repository.commit(id)?;
        let text = repository
            .file_up_to(commit.tree, artifact::META, MAX_SMALL)?
            .with_context(|| format!("commit {id} is not a turn of a session"))?;
        let mut meta: Meta = meta::read(&String::from_utf8_lossy(&text))
            .with_context(|| format!("`{}` of turn {id}", artifact::META))?;
        anyhow::ensure!(
            meta.number <= MAX_NUMBER,
            "turn {id} says that it has the number {}",
            meta.number
        );
        let title = commit.subject().to_owned();
        let Commit {
            tree,
            parents,
            seconds,
            ..
        } = commit;
        // Parents are positional (T3), and those of turn 0 do not count.
        let first = meta.number == 0;
        let previous = parents.first().copied().filter(|_| !first);
        let [workspace, publication] = [1, 2].map(|at| parents.get(at).copied().filter(|_| !first));
        // Only for fetched sessions. In a local session a missing workspace commit is damage.
        let without_code = session.remote().is_some() && workspace.is_none();
        let without_code = without_code && meta.workspace.take().is_some();

        Ok(Turn {
            session: session.clone(),
            commit: id,
            tree,
            previous,
            workspace,
            publication,
            title,
            meta,
            seconds,
            without_code,
            rewritten: false,
        })
    }

    pub fn number(&self) -> u64 {
        self.meta.number
    }

    pub fn is_draft(&self) -> bool {
        matches!(self.meta.status, Status::Ready | Status::Planned)
    }

    /// Reads only commits, newest first, and ends at an unreadable one.
    pub fn titles(&self, repository: &Repository) -> impl Iterator<Item = (u64, String)> {
        let mut next = Some((self.number(), self.commit));
        std::iter::from_fn(move || {
            let (number, id) = next.take()?;
            let commit = repository.commit(id).ok()?;
            next = number.checked_sub(1).zip(commit.parents.first().copied());
            Some((number, commit.subject().to_owned()))
        })
    }

    pub fn text(&self, repository: &Repository, name: &str) -> anyhow::Result<Option<String>> {
        Ok(repository
            .file(self.tree, name)?
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The plan as it ran, without what the user left out, or else as it was proposed.
    pub fn plan_as_run(&self, repository: &Repository) -> anyhow::Result<Option<String>> {
        match self.text(repository, artifact::APPROVED)? {
            Some(approved) => Ok(Some(approved)),
            None => self.text(repository, artifact::PLAN),
        }
    }

    /// The session that recorded the turn. It differs from `session` in a fork.
    pub fn recorded_session(&self, repository: &Repository) -> anyhow::Result<SessionName> {
        let message = repository.commit(self.commit)?.message;
        Ok(session_in(&message).unwrap_or_else(|| self.session.clone()))
    }

    /// Whether a publication can be that of this turn. One that changed files, and a restore, has its
    /// own; any other turn has the one that was current, of any turn.
    pub fn is_published_by(
        &self,
        repository: &Repository,
        publication: &Publication,
    ) -> anyhow::Result<bool> {
        let Some(files) = &self.meta.workspace else {
            return Ok(false);
        };
        let is_restore = self.meta.status == Status::Restored;
        if !is_restore && files.before == files.after {
            return Ok(true);
        }

        let is_same_change = match publication.change {
            None => is_restore,
            // A rewrite can find another `before` in one of the two.
            Some(change) => {
                let is_same_start = self.rewritten || change.before == files.before;
                !is_restore && is_same_start && change.after == files.after
            }
        };
        let session = self.recorded_session(repository)?;
        Ok(is_same_change
            && publication.turn == self.number()
            && publication.session == session.as_str())
    }

    /// Only a turn that archives the change of its session runs without a plan.
    pub fn archives_change(&self, repository: &Repository) -> bool {
        let meta = &self.meta;
        let is_planned = meta.model.is_some() || meta.work.is_some() || meta.acted.is_some();
        let session = self.recorded_session(repository).ok();
        let id = session
            .as_ref()
            .and_then(|name| name.as_str().strip_prefix("change/"));
        !is_planned && id.is_some_and(|id| self.title == archive_title(id))
    }

    /// Fails if `next/meta.yaml` is missing or invalid.
    pub fn next(&self, repository: &Repository) -> anyhow::Result<NextMeta> {
        let name = in_next(artifact::META);
        let text = repository
            .file_up_to(self.tree, &name, MAX_SMALL)?
            .with_context(|| format!("turn {} has no `{name}`", self.number()))?;
        meta::read(&String::from_utf8_lossy(&text))
            .with_context(|| format!("`{name}` of turn {}", self.number()))
    }

    pub fn question(&self, repository: &Repository) -> anyhow::Result<Option<String>> {
        self.model_message(repository, artifact::QUESTION)
    }

    /// Set if the model declared the work complete.
    pub fn conclusion(&self, repository: &Repository) -> anyhow::Result<Option<String>> {
        self.model_message(repository, artifact::CONCLUSION)
    }

    /// Returns whether the conclusion is of this turn, or of the turn that it restored. Other turns
    /// without a plan, and questions, keep the one of the turn before.
    pub fn is_concluding(&self) -> bool {
        use Status::{Executed, Failed, Restored};
        matches!(self.meta.status, Executed | Failed | Restored) && !self.meta.question
    }

    fn model_message(&self, repository: &Repository, name: &str) -> anyhow::Result<Option<String>> {
        let text = self.text(repository, &in_next(name))?;
        // A fetched turn can have a message of any size.
        Ok(text.map(|text| beginning(&text, MAX_MODEL_MESSAGE).into_owned()))
    }

    /// Copies this turn's state for the next turn into the artifacts of the turn `turn_id`.
    pub fn hand_on(
        &self,
        repository: &Repository,
        turn_id: Uuid,
        artifacts: &mut Artifacts,
    ) -> anyhow::Result<()> {
        let next = NextMeta {
            schema: SCHEMA,
            parent_turn_id: turn_id,
            ..self.next(repository)?
        };
        artifacts.insert(&in_next(artifact::META), meta::write(&next));
        for name in [artifact::TURN_CONTEXT, artifact::SYSTEM_PROMPT].map(in_next) {
            artifacts.insert(
                &name,
                repository.file(self.tree, &name)?.unwrap_or_default(),
            );
        }

        for name in [artifact::REQUESTS, artifact::QUESTION, artifact::CONCLUSION].map(in_next) {
            if let Some(text) = repository.file(self.tree, &name)? {
                artifacts.insert(&name, text);
            }
        }

        Ok(())
    }

    /// The turn itself, or the target of an undo.
    pub fn position(&self) -> u64 {
        match &self.meta.restored {
            Some(Restored {
                turn,
                by: RestoreCommand::Undo,
                ..
            }) => *turn,
            _ => self.meta.number,
        }
    }

    /// The workspace commit that was last applied to the user's files.
    pub fn published(&self) -> Option<CommitId> {
        self.meta.workspace.as_ref().map(|workspace| {
            if workspace.synced {
                workspace.after
            } else {
                workspace.before
            }
        })
    }
}

/// The session that the message of a commit names.
pub fn session_in(message: &str) -> Option<SessionName> {
    SessionName::from_ref(trailer(message, "Teddy-Session")?.trim()).ok()
}

/// Value of the last trailer with this key in a commit message.
pub fn trailer<'m>(message: &'m str, key: &str) -> Option<&'m str> {
    let mut lines = message.lines().rev();
    lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}

pub fn in_next(name: &str) -> String {
    format!("{}{name}", artifact::NEXT)
}

// In characters.
const MAX_SUBJECT: usize = 100;

// Lines of the user's message.
const MAX_PROMPT_LINES: usize = 12;

pub struct TurnMessage<'a> {
    pub title: &'a str,
    /// Empty if the message is not the user's.
    pub asked: &'a str,
    pub results: &'a [String],
    pub session: &'a SessionName,
    /// Metadata of the turn.
    pub meta: &'a Meta,
}

impl TurnMessage<'_> {
    /// Trailers come last, where git expects them.
    pub fn render(&self) -> String {
        let mut text = format!("{}\n\n", commit_subject(self.title));
        let asked: Vec<&str> = self.asked.trim().lines().collect();
        for line in asked.iter().take(MAX_PROMPT_LINES) {
            // Quoted and sanitized, so that no line of a message can become a trailer.
            text += format!("> {}", sanitize_line(line)).trim_end();
            text.push('\n');
        }

        if asked.len() > MAX_PROMPT_LINES {
            let more = counted(asked.len() - MAX_PROMPT_LINES, "more line");
            text += &format!("> ... ({more})\n");
        }

        if !asked.is_empty() {
            text.push('\n');
        }

        for line in self.results {
            text += &format!("{}\n", sanitize_line(line));
        }

        if !self.results.is_empty() {
            text.push('\n');
        }

        text.push_str(&self.trailers());
        text
    }

    fn trailers(&self) -> String {
        let meta = self.meta;
        let mut text = format!(
            "Teddy-Session: {}\nTeddy-Turn: {}\nTeddy-Status: {}\nTeddy-Agent: {}\n",
            self.session,
            meta.number,
            meta.status.word(),
            sanitize_line(&meta.agent)
        );
        if let Some(model) = &meta.model {
            text += &format!("Teddy-Model: {}\n", sanitize_line(&model.asked));
        }

        text
    }
}

pub fn commit_subject(title: &str) -> String {
    let line = sanitize_line(title.trim().lines().next().unwrap_or_default()).into_owned();
    match line.char_indices().nth(MAX_SUBJECT) {
        Some((cut, _)) => format!("{}...", line[..cut].trim_end()),
        None if line.is_empty() => "(no title)".to_owned(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::meta::Status;

    #[test]
    fn the_message_reads_well_and_ends_with_trailers() {
        let meta = Meta::of(uuid::Uuid::nil(), 3, Status::Executed, "pathfinder");
        let session = SessionName::parse("demo").expect("a good name");
        let results = ["CREATE a.txt: done".to_owned()];
        let message = TurnMessage {
            title: "Add a\nsecond line",
            asked: "Please\nTeddy-Status: evil\u{1b}[0m\n",
            results: &results,
            session: &session,
            meta: &meta,
        };
        assert_eq!(
            message.render(),
            "Add a\n\n> Please\n> Teddy-Status: evil\\u{1b}[0m\n\nCREATE a.txt: done\n\n\
             Teddy-Session: demo\nTeddy-Turn: 3\nTeddy-Status: executed\nTeddy-Agent: pathfinder\n"
        );
    }
}
