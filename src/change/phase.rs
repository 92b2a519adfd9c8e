//! The phase machine: which step may follow which, and nothing else.
//!
//! Pure and total: a phase and an event give the next phase, or the reason why there is none.

use serde::{Deserialize, Serialize};

use super::verdict::ReviewVerdict;

/// Where a change stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangePhase {
    /// A proposal exists that is not challenged yet, or is to be revised.
    Proposed,
    /// The challenge is passed.
    Challenged,
    /// The challenge found that the proposal is wrong as a whole.
    Rejected,
    /// The implementation has begun.
    Implementing,
    /// The implementation is done.
    Complete,
    /// The specs are part of the project's.
    Archived,
}

/// What happens to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeEvent {
    /// A proposal is written.
    Propose,
    /// The challenger gave a verdict.
    Challenge(ReviewVerdict),
    /// The author revised the proposal.
    Repropose,
    /// The user edited the documents.
    Edit,
    /// The user overrides the challenge or the review.
    Approve,
    /// The implementation begins or goes on.
    Implement,
    /// The reviewer gave a verdict on the implementation.
    Review(ReviewVerdict),
    /// The specs are merged into the project's.
    Archive,
}

/// An event that a phase does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Illegal {
    /// The phase; nothing where the change does not exist.
    pub phase: Option<ChangePhase>,
    /// What was tried.
    pub event: ChangeEvent,
}

impl ChangePhase {
    /// Every phase, in the order in which a change goes through them.
    pub const ALL: [ChangePhase; 6] = [
        ChangePhase::Proposed,
        ChangePhase::Challenged,
        ChangePhase::Rejected,
        ChangePhase::Implementing,
        ChangePhase::Complete,
        ChangePhase::Archived,
    ];

    /// Returns the word that stands in the state.
    pub fn word(self) -> &'static str {
        match self {
            ChangePhase::Proposed => "proposed",
            ChangePhase::Challenged => "challenged",
            ChangePhase::Rejected => "rejected",
            ChangePhase::Implementing => "implementing",
            ChangePhase::Complete => "complete",
            ChangePhase::Archived => "archived",
        }
    }
}

/// Returns the phase after an event; `None` is a change that does not exist yet.
///
/// # Errors
/// Where the phase does not allow the event; nothing changes then.
pub fn next(phase: Option<ChangePhase>, event: ChangeEvent) -> Result<ChangePhase, Illegal> {
    use ChangePhase::{Archived, Challenged, Complete, Implementing, Proposed, Rejected};

    Ok(match (phase, event) {
        // A proposal that a crash cut short is written on.
        (None | Some(Proposed), ChangeEvent::Propose) => Proposed,
        (Some(Proposed | Rejected), ChangeEvent::Challenge(verdict)) => match verdict {
            ReviewVerdict::Approved => Challenged,
            ReviewVerdict::NeedsRevision => Proposed,
            ReviewVerdict::Rejected => Rejected,
        },
        (Some(Proposed), ChangeEvent::Repropose) => Proposed,
        (Some(Proposed | Rejected), ChangeEvent::Edit) => Proposed,
        (Some(Proposed | Rejected), ChangeEvent::Approve) => Challenged,
        (Some(Challenged | Implementing), ChangeEvent::Implement) => Implementing,
        (
            Some(Implementing),
            ChangeEvent::Review(ReviewVerdict::Approved) | ChangeEvent::Approve,
        ) => Complete,
        (
            Some(Implementing),
            ChangeEvent::Review(ReviewVerdict::NeedsRevision | ReviewVerdict::Rejected),
        ) => Implementing,
        (Some(Complete), ChangeEvent::Archive) => Archived,
        (phase, event) => return Err(Illegal { phase, event }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every event that there is.
    const EVENTS: [ChangeEvent; 12] = [
        ChangeEvent::Propose,
        ChangeEvent::Challenge(ReviewVerdict::Approved),
        ChangeEvent::Challenge(ReviewVerdict::NeedsRevision),
        ChangeEvent::Challenge(ReviewVerdict::Rejected),
        ChangeEvent::Repropose,
        ChangeEvent::Edit,
        ChangeEvent::Approve,
        ChangeEvent::Implement,
        ChangeEvent::Review(ReviewVerdict::Approved),
        ChangeEvent::Review(ReviewVerdict::NeedsRevision),
        ChangeEvent::Review(ReviewVerdict::Rejected),
        ChangeEvent::Archive,
    ];

    /// Compares where each event leads from a phase; `-` is nowhere.
    fn check(phase: Option<ChangePhase>, expected: &str) {
        let words: Vec<&str> = EVENTS
            .iter()
            .map(|&event| next(phase, event).map_or("-", ChangePhase::word))
            .collect();
        assert_eq!(words.join(" "), expected, "from {phase:?}");
    }

    #[test]
    fn r1_every_pair_of_phase_and_event_is_decided() {
        check(None, "proposed - - - - - - - - - - -");
        check(
            Some(ChangePhase::Proposed),
            "proposed challenged proposed rejected proposed proposed challenged - - - - -",
        );
        check(
            Some(ChangePhase::Rejected),
            "- challenged proposed rejected - proposed challenged - - - - -",
        );
        check(
            Some(ChangePhase::Challenged),
            "- - - - - - - implementing - - - -",
        );
        check(
            Some(ChangePhase::Implementing),
            "- - - - - - complete implementing complete implementing implementing -",
        );
        check(
            Some(ChangePhase::Complete),
            "- - - - - - - - - - - archived",
        );
        check(Some(ChangePhase::Archived), "- - - - - - - - - - - -");
    }

    #[test]
    fn a7_a_challenge_sets_the_phase_of_its_verdict() {
        let after =
            |verdict| next(Some(ChangePhase::Proposed), ChangeEvent::Challenge(verdict)).unwrap();
        assert_eq!(after(ReviewVerdict::Approved), ChangePhase::Challenged);
        assert_eq!(after(ReviewVerdict::NeedsRevision), ChangePhase::Proposed);
        assert_eq!(after(ReviewVerdict::Rejected), ChangePhase::Rejected);
    }

    #[test]
    fn a10_only_an_approval_leads_out_of_proposed() {
        for event in EVENTS {
            if next(Some(ChangePhase::Proposed), event) == Ok(ChangePhase::Challenged) {
                assert!(
                    matches!(
                        event,
                        ChangeEvent::Challenge(ReviewVerdict::Approved) | ChangeEvent::Approve
                    ),
                    "{event:?}"
                );
            }
        }
    }

    #[test]
    fn a25_a_rejected_change_may_be_challenged_again() {
        assert_eq!(
            next(
                Some(ChangePhase::Rejected),
                ChangeEvent::Challenge(ReviewVerdict::Approved)
            ),
            Ok(ChangePhase::Challenged)
        );
    }

    #[test]
    fn a_phase_is_stored_as_its_word() {
        for phase in ChangePhase::ALL {
            assert_eq!(serde_yaml::to_string(&phase).unwrap().trim(), phase.word());
        }
    }
}
