//! The phases of a change, and the table of steps that lead from one to another.

use serde::{Deserialize, Serialize};

use crate::change::review::ReviewVerdict;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangePhase {
    /// New, not challenged yet, or needs a revision.
    #[default]
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

impl ChangePhase {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeStep {
    Proposal,
    Reproposal,
    /// The user replaced documents.
    Edit,
    Challenge,
    /// The user overrode the challenge or review.
    Approve,
    /// Begins the implementation.
    Implement,
    Task,
    /// Fixes what a review found.
    Fix,
    Review,
    Archive,
}

impl ChangeStep {
    /// As stored.
    pub fn word(self) -> &'static str {
        match self {
            ChangeStep::Proposal => "proposal",
            ChangeStep::Reproposal => "reproposal",
            ChangeStep::Edit => "edit",
            ChangeStep::Challenge => "challenge",
            ChangeStep::Approve => "approve",
            ChangeStep::Implement => "implement",
            ChangeStep::Task => "task",
            ChangeStep::Fix => "fix",
            ChangeStep::Review => "review",
            ChangeStep::Archive => "archive",
        }
    }
}

/// A step, the phases in which it is allowed, its verdict, and the phase after it.
type PhaseTransition = (
    ChangeStep,
    &'static [ChangePhase],
    Option<ReviewVerdict>,
    ChangePhase,
);

/// Any other step is refused and changes nothing. Only an approval leads to `Challenged`. Not even
/// an iteration limit does (docs/decisions/0013-changes.md).
#[rustfmt::skip]
const STEPS: [PhaseTransition; 15] = {
    use ChangePhase::{Archived, Challenged, Complete, Implementing, Proposed, Rejected};
    use ReviewVerdict as Verdict;

    [
        // Repeating a proposal completes one that a crash interrupted.
        (ChangeStep::Proposal, &[Proposed], None, Proposed),
        (ChangeStep::Reproposal, &[Proposed], None, Proposed),
        (ChangeStep::Edit, &[Proposed, Rejected], None, Proposed),
        (ChangeStep::Challenge, &[Proposed, Rejected], Some(Verdict::Approved), Challenged),
        (ChangeStep::Challenge, &[Proposed, Rejected], Some(Verdict::NeedsRevision), Proposed),
        (ChangeStep::Challenge, &[Proposed, Rejected], Some(Verdict::Rejected), Rejected),
        (ChangeStep::Approve, &[Proposed, Rejected], None, Challenged),
        (ChangeStep::Implement, &[Challenged, Implementing], None, Implementing),
        (ChangeStep::Task, &[Challenged, Implementing], None, Implementing),
        (ChangeStep::Fix, &[Challenged, Implementing], None, Implementing),
        (ChangeStep::Review, &[Implementing], Some(Verdict::Approved), Complete),
        (ChangeStep::Review, &[Implementing], Some(Verdict::NeedsRevision), Implementing),
        (ChangeStep::Review, &[Implementing], Some(Verdict::Rejected), Implementing),
        (ChangeStep::Approve, &[Implementing], None, Complete),
        (ChangeStep::Archive, &[Complete], None, Archived),
    ]
};

/// `None` if the step is not allowed.
pub fn next(
    phase: ChangePhase,
    step: ChangeStep,
    verdict: Option<ReviewVerdict>,
) -> Option<ChangePhase> {
    rows(phase, step)
        .find(|(_, _, of, _)| *of == verdict)
        .map(|(.., to)| *to)
}

/// With any verdict.
pub fn allows(phase: ChangePhase, step: ChangeStep) -> bool {
    rows(phase, step).next().is_some()
}

fn rows(phase: ChangePhase, step: ChangeStep) -> impl Iterator<Item = &'static PhaseTransition> {
    let is_row = move |(of, from, ..): &&PhaseTransition| *of == step && from.contains(&phase);
    STEPS.iter().filter(is_row)
}

#[cfg(test)]
mod tests {
    use super::ChangePhase::{Archived, Challenged, Complete, Implementing, Proposed, Rejected};
    use super::*;

    const PHASES: [ChangePhase; 6] = [
        Proposed,
        Challenged,
        Rejected,
        Implementing,
        Complete,
        Archived,
    ];

    /// Compares the next phase for every step and verdict; `-` stands for an error.
    fn check(phase: ChangePhase, expected: &str) {
        use ChangeStep::*;

        let plain = [
            Proposal, Reproposal, Edit, Approve, Implement, Task, Fix, Archive,
        ];
        let verdicts = [
            ReviewVerdict::Approved,
            ReviewVerdict::NeedsRevision,
            ReviewVerdict::Rejected,
        ];
        let judged = [Challenge, Review].map(|step| verdicts.map(|verdict| (step, Some(verdict))));
        let actual: Vec<&str> = plain
            .map(|step| (step, None))
            .into_iter()
            .chain(judged.into_iter().flatten())
            .map(|(step, verdict)| next(phase, step, verdict).map_or("-", ChangePhase::word))
            .collect();
        assert_eq!(actual.join(" "), expected, "from {phase:?}");

        // A challenge or review needs a verdict, and no other step has one.
        for (step, verdict) in plain
            .map(|step| (step, Some(ReviewVerdict::Approved)))
            .into_iter()
            .chain([(Challenge, None), (Review, None)])
        {
            assert_eq!(next(phase, step, verdict), None, "{step:?} from {phase:?}");
        }
    }

    #[test]
    fn r1_every_pair_of_phase_and_step_is_decided() {
        check(
            Proposed,
            "proposed proposed proposed challenged - - - - challenged proposed rejected - - -",
        );
        check(
            Rejected,
            "- - proposed challenged - - - - challenged proposed rejected - - -",
        );
        check(
            Challenged,
            "- - - - implementing implementing implementing - - - - - - -",
        );
        check(
            Implementing,
            "- - - complete implementing implementing implementing - - - - complete implementing implementing",
        );
        check(Complete, "- - - - - - - archived - - - - - -");
        check(Archived, "- - - - - - - - - - - - - -");
    }

    #[test]
    fn a7_a_challenge_sets_the_phase_of_its_verdict() {
        let after = |verdict| next(Proposed, ChangeStep::Challenge, Some(verdict));
        assert_eq!(after(ReviewVerdict::Approved), Some(Challenged));
        assert_eq!(after(ReviewVerdict::NeedsRevision), Some(Proposed));
        assert_eq!(after(ReviewVerdict::Rejected), Some(Rejected));
    }

    #[test]
    fn a10_only_an_approval_leads_out_of_proposed() {
        for (step, from, verdict, to) in STEPS {
            if from.contains(&Proposed) && to == Challenged {
                let approves = (step, verdict) == (ChangeStep::Approve, None)
                    || (step, verdict) == (ChangeStep::Challenge, Some(ReviewVerdict::Approved));
                assert!(approves, "{step:?}");
            }
        }
    }

    #[test]
    fn a25_a_rejected_change_may_be_challenged_again() {
        assert!(allows(Rejected, ChangeStep::Challenge));
        assert!(!allows(Rejected, ChangeStep::Implement));
    }

    #[test]
    fn a_phase_is_stored_as_its_word() {
        for phase in PHASES {
            assert_eq!(serde_yaml::to_string(&phase).unwrap().trim(), phase.word());
        }
    }
}
