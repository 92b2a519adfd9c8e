//! The phase machine: which step may follow which, and nothing else.
//!
//! Pure and total: a phase and an event give the next phase, or the reason why there is none.

use serde::{Deserialize, Serialize};

use super::verdict::Verdict;

/// Where a change stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
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
pub enum Event {
    /// A proposal is written.
    Propose,
    /// The challenger gave a verdict.
    Challenge(Verdict),
    /// The author revised the proposal.
    Repropose,
    /// The user edited the documents.
    Edit,
    /// The user overrides the challenge or the review.
    Approve,
    /// The implementation begins or goes on.
    Implement,
    /// The reviewer gave a verdict on the implementation.
    Review(Verdict),
    /// The specs are merged into the project's.
    Archive,
}

/// An event that a phase does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Illegal {
    /// The phase; nothing where the change does not exist.
    pub phase: Option<Phase>,
    /// What was tried.
    pub event: Event,
}

impl Phase {
    /// Every phase, in the order in which a change goes through them.
    pub const ALL: [Phase; 6] = [
        Phase::Proposed,
        Phase::Challenged,
        Phase::Rejected,
        Phase::Implementing,
        Phase::Complete,
        Phase::Archived,
    ];

    /// Returns the word that stands in the state.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Proposed => "proposed",
            Phase::Challenged => "challenged",
            Phase::Rejected => "rejected",
            Phase::Implementing => "implementing",
            Phase::Complete => "complete",
            Phase::Archived => "archived",
        }
    }
}

/// Returns the phase after an event; `None` is a change that does not exist yet.
///
/// # Errors
/// Where the phase does not allow the event; nothing changes then.
pub fn next(phase: Option<Phase>, event: Event) -> Result<Phase, Illegal> {
    use Phase::{Archived, Challenged, Complete, Implementing, Proposed, Rejected};
    Ok(match (phase, event) {
        // A proposal that a crash cut short is written on.
        (None | Some(Proposed), Event::Propose) => Proposed,
        (Some(Proposed | Rejected), Event::Challenge(verdict)) => match verdict {
            Verdict::Approved => Challenged,
            Verdict::NeedsRevision => Proposed,
            Verdict::Rejected => Rejected,
        },
        (Some(Proposed), Event::Repropose) => Proposed,
        (Some(Proposed | Rejected), Event::Edit) => Proposed,
        (Some(Proposed | Rejected), Event::Approve) => Challenged,
        (Some(Challenged | Implementing), Event::Implement) => Implementing,
        (Some(Implementing), Event::Review(Verdict::Approved) | Event::Approve) => Complete,
        (Some(Implementing), Event::Review(Verdict::NeedsRevision | Verdict::Rejected)) => {
            Implementing
        }
        (Some(Complete), Event::Archive) => Archived,
        (phase, event) => return Err(Illegal { phase, event }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every event that there is.
    const EVENTS: [Event; 12] = [
        Event::Propose,
        Event::Challenge(Verdict::Approved),
        Event::Challenge(Verdict::NeedsRevision),
        Event::Challenge(Verdict::Rejected),
        Event::Repropose,
        Event::Edit,
        Event::Approve,
        Event::Implement,
        Event::Review(Verdict::Approved),
        Event::Review(Verdict::NeedsRevision),
        Event::Review(Verdict::Rejected),
        Event::Archive,
    ];

    /// Compares where each event leads from a phase; `-` is nowhere.
    fn check(phase: Option<Phase>, expected: &str) {
        let words: Vec<&str> = EVENTS
            .iter()
            .map(|&event| next(phase, event).map_or("-", Phase::word))
            .collect();
        assert_eq!(words.join(" "), expected, "from {phase:?}");
    }

    #[test]
    fn r1_every_pair_of_phase_and_event_is_decided() {
        check(None, "proposed - - - - - - - - - - -");
        check(
            Some(Phase::Proposed),
            "proposed challenged proposed rejected proposed proposed challenged - - - - -",
        );
        check(
            Some(Phase::Rejected),
            "- challenged proposed rejected - proposed challenged - - - - -",
        );
        check(
            Some(Phase::Challenged),
            "- - - - - - - implementing - - - -",
        );
        check(
            Some(Phase::Implementing),
            "- - - - - - complete implementing complete implementing implementing -",
        );
        check(Some(Phase::Complete), "- - - - - - - - - - - archived");
        check(Some(Phase::Archived), "- - - - - - - - - - - -");
    }

    #[test]
    fn a7_a_challenge_sets_the_phase_of_its_verdict() {
        let after = |verdict| next(Some(Phase::Proposed), Event::Challenge(verdict)).unwrap();
        assert_eq!(after(Verdict::Approved), Phase::Challenged);
        assert_eq!(after(Verdict::NeedsRevision), Phase::Proposed);
        assert_eq!(after(Verdict::Rejected), Phase::Rejected);
    }

    #[test]
    fn a10_only_an_approval_leads_out_of_proposed() {
        for event in EVENTS {
            if next(Some(Phase::Proposed), event) == Ok(Phase::Challenged) {
                assert!(
                    matches!(event, Event::Challenge(Verdict::Approved) | Event::Approve),
                    "{event:?}"
                );
            }
        }
    }

    #[test]
    fn a25_a_rejected_change_may_be_challenged_again() {
        assert_eq!(
            next(Some(Phase::Rejected), Event::Challenge(Verdict::Approved)),
            Ok(Phase::Challenged)
        );
    }

    #[test]
    fn a_phase_is_stored_as_its_word() {
        for phase in Phase::ALL {
            assert_eq!(serde_yaml::to_string(&phase).unwrap().trim(), phase.word());
        }
    }
}
