//! Errors on which callers of change workflows act.

use super::id::ChangeId;
use super::phase::{ChangePhase, Illegal};
use crate::text::counted;

/// Why a workflow stops.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The change does not exist.
    #[error("there is no change `{0}`")]
    ChangeNotFound(ChangeId),
    /// A new change needs a description.
    #[error("the change `{0}` is new and has no description")]
    MissingDescription(ChangeId),
    /// The challenger rejected the proposal.
    #[error("the proposal of `{0}` is rejected")]
    Rejected(ChangeId),
    /// The phase does not allow the command.
    #[error("the change `{id}` is {}, so `{wanted}` is not possible", phase.word())]
    ChangeNotReady {
        /// The change.
        id: ChangeId,
        /// Its phase.
        phase: ChangePhase,
        /// The command.
        wanted: &'static str,
    },
    /// The change must be complete to be archived.
    #[error("the change `{id}` is {}, not complete", phase.word())]
    ChangeNotComplete {
        /// The change.
        id: ChangeId,
        /// Its phase.
        phase: ChangePhase,
    },
    /// A document is missing or invalid.
    #[error("the documents of `{id}` have {}", counted(*count, "mistake"))]
    Invalid {
        /// The change.
        id: ChangeId,
        /// Number of mistakes.
        count: usize,
    },
    /// The change has open tasks.
    #[error("the change `{id}` has {}", counted(*open, "open task"))]
    OpenTasks {
        /// The change.
        id: ChangeId,
        /// Number of open tasks.
        open: usize,
    },
}

impl ChangeError {
    /// Converts the error of the phase machine.
    pub fn of(id: &ChangeId, wanted: &'static str, illegal: Illegal) -> ChangeError {
        match illegal.phase {
            Some(phase) => ChangeError::ChangeNotReady {
                id: id.clone(),
                phase,
                wanted,
            },
            None => ChangeError::ChangeNotFound(id.clone()),
        }
    }

    /// Returns a hint with commands that resolve the error.
    pub fn hint(&self) -> String {
        match self {
            ChangeError::ChangeNotFound(id) => {
                format!(
                    "`teddy change list` lists the changes; `teddy change plan {id} '<description>'` starts this one"
                )
            }
            ChangeError::MissingDescription(id) => {
                format!("say what it is for: `teddy change plan {id} '<description>'`")
            }
            ChangeError::Rejected(id) => format!(
                "`teddy change show {id} review` has the reasons; change the proposal with `teddy change reproposal {id} --from <file>` and run `teddy change challenge {id}`, or override it with `teddy change approve {id} --reason '<why>'`"
            ),
            ChangeError::ChangeNotReady { id, phase, .. } => next_step(id, *phase),
            ChangeError::ChangeNotComplete { id, phase } => next_step(id, *phase),
            ChangeError::Invalid { id, .. } => {
                format!(
                    "`teddy change validate {id}` lists them; `teddy change reproposal {id} --from <file>` takes a better document"
                )
            }
            ChangeError::OpenTasks { id, .. } => {
                format!("`teddy change impl {id}` continues them")
            }
        }
    }
}

/// Returns a hint for the next step in a phase.
pub fn next_step(id: &ChangeId, phase: ChangePhase) -> String {
    match phase {
        ChangePhase::Proposed => {
            format!(
                "`teddy change plan {id}` challenges it; `teddy change approve {id} --reason '<why>'` overrides the challenge"
            )
        }
        ChangePhase::Challenged => {
            format!("planning is complete; `teddy change impl {id}` implements it")
        }
        ChangePhase::Rejected => {
            format!(
                "`teddy change show {id} review` has the reasons; fix the proposal and run `teddy change challenge {id}`"
            )
        }
        ChangePhase::Implementing => format!("`teddy change impl {id}` continues it"),
        ChangePhase::Complete => {
            format!("`teddy change archive {id}` merges its specs into the project's")
        }
        ChangePhase::Archived => format!("it is archived; `teddy change show {id}` still reads it"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::phase::ChangeEvent;
    use super::*;

    #[test]
    fn every_error_says_what_to_do() {
        let id = ChangeId::parse("add-auth").unwrap();
        let error = ChangeError::of(
            &id,
            "impl",
            Illegal {
                phase: Some(ChangePhase::Proposed),
                event: ChangeEvent::Implement,
            },
        );
        assert_eq!(
            error.to_string(),
            "the change `add-auth` is proposed, so `impl` is not possible"
        );
        assert!(
            error.hint().contains("`teddy change plan add-auth`"),
            "{}",
            error.hint()
        );
        let error = ChangeError::ChangeNotComplete {
            id: id.clone(),
            phase: ChangePhase::Implementing,
        };
        assert_eq!(
            (error.to_string().as_str(), error.hint().as_str()),
            (
                "the change `add-auth` is implementing, not complete",
                "`teddy change impl add-auth` continues it"
            )
        );
        let error = ChangeError::of(
            &id,
            "impl",
            Illegal {
                phase: None,
                event: ChangeEvent::Implement,
            },
        );
        assert_eq!(error, ChangeError::ChangeNotFound(id));
    }
}
