//! The phase machine: decides which step can follow which.
//!
//! Pure and total: a phase and an event give the next phase or an error.

use serde::{Deserialize, Serialize};

use crate::change::review::ReviewVerdict;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangePhase {
    /// Not challenged yet, or needs a revision.
    Proposed,
    /// Passed the challenge.
    Challenged,
    /// The challenger rejected the proposal as a whole.
    Rejected,
    Implementing,
    /// The implementation passed the review.
    Complete,
    /// The specs are merged into the project's.
    Archived,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeEvent {
    Propose,
    Challenge(ReviewVerdict),
    Repropose,
    Edit,
    /// The user overrode the challenge or review.
    Approve,
    Implement,
    Review(ReviewVerdict),
    Archive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Illegal {
    /// `None` if the change does not exist.
    pub phase: Option<ChangePhase>,
    pub event: ChangeEvent,
}

impl ChangePhase {
    /// In their usual order.
    pub const ALL: [ChangePhase; 6] = [
        ChangePhase::Proposed,
        ChangePhase::Challenged,
        ChangePhase::Rejected,
        ChangePhase::Implementing,
        ChangePhase::Complete,
        ChangePhase::Archived,
    ];

    /// As stored.
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

/// `phase` is `None` for a change that does not exist yet.
pub fn next(phase: Option<ChangePhase>, event: ChangeEvent) -> Result<ChangePhase, Illegal> {
    use ChangePhase::{Archived, Challenged, Complete, Implementing, Proposed, Rejected};

    Ok(match (phase, event) {
        // Repeating `Propose` completes a proposal that a crash interrupted.
        (None | Some(Proposed), ChangeEvent::Propose) => Proposed,
        // Nothing but an approval leads to `Challenged`. Not even an iteration limit does
        // (docs/decisions/0013-changes.md).
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

    /// Compares the next phase for every event; `-` stands for an error.
    fn check(phase: Option<ChangePhase>, expected: &str) {
        let actual: Vec<&str> = EVENTS
            .iter()
            .map(|&event| next(phase, event).map_or("-", ChangePhase::word))
            .collect();
        assert_eq!(actual.join(" "), expected, "from {phase:?}");
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
