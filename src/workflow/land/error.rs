//! Reasons that a landing does not start or does not finish.

use std::fmt;
use std::process::ExitStatus;

use crate::git::land::commit::EDITOR_HINT;
use crate::git::object::TreeId;
use crate::text::first_names;
use crate::text::path::lossy;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_word;
use crate::workspace::landing::turns_named;

#[derive(Debug, thiserror::Error)]
pub enum LandError {
    #[error(
        "nothing to land: no turn of session `{session}` that is in effect has changes that have not landed yet"
    )]
    Nothing {
        session: String,
        removed: RemovedLandings,
    },
    #[error("nothing to land: HEAD already has what {0} did")]
    InHead(String),
    #[error("nothing to land: {0} revert each other")]
    Reverted(String),
    #[error("nothing to land: git ignores every file that the turns changed")]
    Ignored,
    #[error("nothing to land: the turns changed only nested repositories that are not submodules")]
    Repositories,
    #[error("turn {0} changed no file, so there is nothing of it to land")]
    Unchanged(u64),
    #[error("turn {0} restores what other turns did, so it does not land itself")]
    Restore(u64),
    #[error("turn {0} is not in effect: it was undone, or its result was never applied")]
    NotInEffect(u64),
    #[error("what turn {0} did is not in your files")]
    NotInFiles(u64),
    #[error("unresolved conflicts are in {0}")]
    Marked(String),
    #[error("`{0}` is not a range of turns")]
    Range(String),
    #[error("`{0}` is a session, not a turn")]
    Session(String),
    #[error("the message is empty")]
    EmptyMessage,
    #[error("`land.trailers`: `{0}` is not a trailer")]
    Trailer(String),
}

impl LandError {
    pub fn hint(&self) -> String {
        match self {
            LandError::Nothing { removed, .. } => removed.hint(),
            LandError::InHead(_) => "`git log` shows which commit has it".to_owned(),
            LandError::Reverted(_) => {
                "`teddy land --each` makes a commit of each of them".to_owned()
            }
            LandError::Ignored => {
                "`git add --force` takes an ignored file into the next commit".to_owned()
            }
            LandError::Repositories => {
                "`git submodule add <url> <path>` makes a submodule of one".to_owned()
            }
            LandError::Restore(_) => {
                "`teddy land <turn>` lands the turn that made the change; `teddy show` names what a restore restored".to_owned()
            }
            LandError::Unchanged(_) => "`teddy log` shows which turns changed files".to_owned(),
            LandError::NotInEffect(turn) => {
                format!("`teddy redo` or `teddy restore {turn}` restores it")
            }
            LandError::NotInFiles(_) => {
                "`teddy restore @` applies it; `--branch <name>` lands it on a new branch"
                    .to_owned()
            }
            LandError::Marked(_) => "resolve them in the files first".to_owned(),
            LandError::Range(_) => {
                "`teddy land 2..4` lands the turns 2 to 4, both included".to_owned()
            }
            LandError::Session(name) => {
                let session = shell_word(name);
                format!("`teddy -s {session} land` lands what its turns did")
            }
            LandError::EmptyMessage => "`-m '<message>'` gives one".to_owned(),
            LandError::Trailer(_) => {
                "write `Key: value`, such as `Assisted-by: {model}`".to_owned()
            }
        }
    }
}

/// Turns in effect that landed, but whose commits the branch does not have: a reset took them off,
/// or they landed in another clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemovedLandings {
    pub branch: String,
    /// The remote-tracking branch that has them.
    pub remote: Option<String>,
    /// Ascending.
    pub turns: Vec<u64>,
    /// A range from the first to the last lands these and no others.
    pub is_range: bool,
}

impl RemovedLandings {
    fn hint(&self) -> String {
        let (range, what) = match self.turns.as_slice() {
            [] => {
                return "`teddy log` lists the turns; `teddy land <turn>` lands one again"
                    .to_owned();
            }
            [one] => (one.to_string(), "it"),
            [first, .., last] if self.is_range => (format!("{first}..{last}"), "them"),
            [first, ..] => (first.to_string(), "the first of them"),
        };
        if let Some(remote) = &self.remote {
            return format!(
                "the landing of {} is on `{}` but not on your `{}`; `git pull` takes it there",
                turns_named(&self.turns),
                sanitize_line(remote),
                sanitize_line(&self.branch)
            );
        }
        format!(
            "your `{}` does not have the commit of {}; if it lacks the changes, too, `teddy land {range}` lands {what} again",
            sanitize_line(&self.branch),
            turns_named(&self.turns)
        )
    }
}

/// git made no commit: a hook refused, the message was empty, a key was missing. git or the hook
/// has printed the reason.
#[derive(Debug)]
pub struct CommitRefused {
    pub status: ExitStatus,
    pub repair: Option<HookRepair>,
    /// While git ran.
    pub files_changed: bool,
    pub failed_editor: Option<String>,
}

/// Made by a hook before it refused the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRepair {
    pub paths: Vec<Vec<u8>>,
    pub trees: [TreeId; 2],
    pub in_files: bool,
}

impl CommitRefused {
    pub fn hint(&self) -> String {
        match &self.repair {
            Some(HookRepair {
                trees: [old, new], ..
            }) => format!(
                "`--with-repairs` lands what the hook made of them; `git diff {old} {new}` shows it"
            ),
            None if self.failed_editor.is_some() => EDITOR_HINT.to_owned(),
            None => "git, or a hook, has said why above; `--no-verify` skips the pre-commit and \
                     commit-msg hooks"
                .to_owned(),
        }
    }
}

impl std::error::Error for CommitRefused {}

impl fmt::Display for CommitRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failed_editor {
            Some(editor) => write!(
                f,
                "git made no commit, because the editor `{}` failed",
                sanitize_line(editor)
            )?,
            None => write!(f, "git made no commit ({})", self.status)?,
        }
        if let Some(repair) = &self.repair {
            let name = |path: &Vec<u8>| format!("`{}`", sanitize_line(&lossy(path)));
            let names = first_names(repair.paths.iter().map(name), MAX_NAMED);
            let suffix = match repair.in_files {
                true => ", and your files have that",
                false => "",
            };
            return write!(f, "; before it refused, a hook changed {names}{suffix}");
        }

        f.write_str(match self.files_changed {
            true => "; your branch and index are as they were",
            false => "; nothing was changed",
        })
    }
}

const MAX_NAMED: usize = 10;
