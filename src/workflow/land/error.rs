//! Why a landing does not begin, or does not go on.

use std::fmt;
use std::process::ExitStatus;

use crate::git::object::TreeId;
use crate::text::path::lossy;
use crate::text::shell_word::shell_word;
use crate::text::visible::visible;

/// Why there is nothing to commit.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// Every turn in effect has landed, or there is none.
    #[error("nothing to land: no turn of session `{0}` has changes that have not landed yet")]
    Nothing(String),
    /// HEAD has what the turns did.
    #[error("nothing to land: HEAD already has what {0} did")]
    InHead(String),
    /// Every file that the turns changed is ignored.
    #[error("nothing to land: git ignores every file that {0} changed")]
    Ignored(String),
    /// The turns made nothing but repositories within.
    #[error(
        "nothing to land: the turns changed only nested repositories that are not submodules"
    )]
    Repositories,
    /// A turn that was named changed no file.
    #[error("turn {0} changed no file, so there is nothing of it to land")]
    Unchanged(u64),
    /// A turn that was named was undone.
    #[error("turn {0} is not in effect: it was undone, or its result was never applied")]
    NotInEffect(u64),
    /// What a turn did is not in the user's files.
    #[error("what turn {0} did is not in your files")]
    NotInFiles(u64),
    /// A range does not read as one, or goes backwards.
    #[error("`{0}` is not a range of turns")]
    Range(String),
    /// A session was named where a turn is expected.
    #[error("`{0}` is a session, not a turn")]
    Session(String),
    /// The message has nothing but comments and trailers.
    #[error("the message is empty")]
    EmptyMessage,
    /// A trailer of the settings is none.
    #[error("`land.trailers`: `{0}` is not a trailer")]
    Trailer(String),
}

impl LandError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            LandError::Nothing(_) => {
                "`teddy log` lists the turns; `teddy land <turn>` lands one again".to_owned()
            }
            LandError::InHead(_) => "`git log` shows which commit has it".to_owned(),
            LandError::Ignored(_) => {
                "`git add --force` takes an ignored file into the next commit".to_owned()
            }
            LandError::Repositories => {
                "`git submodule add <url> <path>` makes a submodule of one".to_owned()
            }
            LandError::Unchanged(_) => "`teddy log` shows which turns changed files".to_owned(),
            LandError::NotInEffect(turn) => {
                format!("`teddy redo` or `teddy restore {turn}` restores it")
            }
            LandError::NotInFiles(_) => {
                "`teddy restore @` applies it; `--branch <name>` lands it on a new branch"
                    .to_owned()
            }
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

/// git made no commit: a hook refused, the message was empty, a key was missing. git or the hook has
/// said why on the screen.
#[derive(Debug)]
pub struct CommitRefused {
    /// How git ended.
    pub status: ExitStatus,
    /// What the hook changed before it refused.
    pub repair: Option<HookRepair>,
    /// Whether files of the user's changed meanwhile.
    pub files_changed: bool,
}

/// What a hook changed in the files of a commit that it then refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRepair {
    /// The files.
    pub paths: Vec<Vec<u8>>,
    /// The tree before and after.
    pub trees: [TreeId; 2],
    /// Whether the user's files have it.
    pub in_files: bool,
}

impl CommitRefused {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        match &self.repair {
            Some(HookRepair {
                trees: [old, new], ..
            }) => format!(
                "`--with-repairs` lands what the hook made of them; `git diff {old} {new}` shows it"
            ),
            None => "git, or a hook, has said why above; `--no-verify` skips the pre-commit and \
                     commit-msg hooks"
                .to_owned(),
        }
    }
}

impl std::error::Error for CommitRefused {}

impl fmt::Display for CommitRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "git made no commit ({})", self.status)?;
        if let Some(repair) = &self.repair {
            let name = |path: &Vec<u8>| format!("`{}`", visible(&lossy(path)));
            let names: Vec<String> = repair.paths.iter().take(MAX_NAMED).map(name).collect();
            let more = match repair.paths.len().saturating_sub(MAX_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let place = match repair.in_files {
                true => ", and your files have that",
                false => "",
            };
            let names = names.join(", ");
            return write!(
                f,
                "; before it refused, a hook changed {names}{more}{place}"
            );
        }

        f.write_str(match self.files_changed {
            true => "; your branch and index are as they were",
            false => "; nothing was changed",
        })
    }
}

/// So many files are named in one sentence.
const MAX_NAMED: usize = 10;
