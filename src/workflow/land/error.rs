//! Why a landing does not begin.

use crate::text::shell_word::shell_word;

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
            LandError::Unchanged(_) => "`teddy log` shows which turns changed files".to_owned(),
            LandError::NotInEffect(turn) => {
                format!("`teddy redo` or `teddy restore {turn}` brings it back")
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
            LandError::Trailer(_) => {
                "write `Key: value`, such as `Assisted-by: {model}`".to_owned()
            }
        }
    }
}
