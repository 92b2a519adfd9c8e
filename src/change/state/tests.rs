//! Tests of the state of a change.

use super::*;
use crate::change::review::ReviewVerdict;

/// A minimal state.
const SMALL: &str = "change_id: greet\nphase: proposed\n";

fn verdict(verdict: ReviewVerdict) -> ChangeEntry {
    ChangeEntry {
        verdict: Some(verdict),
        ..ChangeEntry::default()
    }
}

#[test]
fn c1_id_and_phase_are_enough() {
    let state = read(SMALL).unwrap();
    assert_eq!(
        (
            state.schema_version,
            state.iteration,
            state.phase,
            state.history.len()
        ),
        (SCHEMA, 1, ChangePhase::Proposed, 0)
    );
    assert_eq!(read(&write(&state)).unwrap(), state);
    assert!(read("phase: proposed\n").is_err() && read("change_id: greet\n").is_err());

    assert!(read("change_id: ../x\nphase: proposed\n").is_err());
}

#[test]
fn c2_a_newer_schema_is_refused_by_its_number() {
    let error = read(&format!("schema_version: 9\n{SMALL}")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "it has schema_version 9, and this teddy reads up to 1: it was written by a newer one"
    );
}

#[test]
fn c3_a23_an_unknown_phase_is_an_error() {
    for word in ["Proposed", "proposing", "''", "~"] {
        let error = format!(
            "{:#}",
            read(&format!("change_id: greet\nphase: {word}\n")).unwrap_err()
        );
        assert!(error.contains("phase"), "{word}: {error}");
    }
}

#[test]
fn c4_a22_unknown_fields_are_kept() {
    let text = format!(
        "{SMALL}session_id: abc\nusage:\n  calls: 1\n  extra: [1, 2]\nhistory:\n- step: proposal\n  phase: proposed\n  mood: good\n"
    );
    let mut state = read(&text).unwrap();
    state
        .apply(ChangeStep::Challenge, verdict(ReviewVerdict::NeedsRevision))
        .unwrap();
    let again = write(&read(&write(&state)).unwrap());
    for preserved in ["session_id: abc", "extra:", "mood: good"] {
        assert!(again.contains(preserved), "{preserved}: {again}");
    }
}

#[test]
fn c5_a26_each_reproposal_adds_an_iteration() {
    let mut state = read(SMALL).unwrap();
    for expected in 2..=4 {
        state
            .apply(ChangeStep::Challenge, verdict(ReviewVerdict::NeedsRevision))
            .unwrap();
        state
            .apply(ChangeStep::Reproposal, ChangeEntry::default())
            .unwrap();
        assert_eq!(state.iteration, expected);
    }

    assert_eq!(state.last_action.as_deref(), Some("reproposal"));
}

#[test]
fn c6_a_step_that_the_phase_does_not_allow_changes_nothing() {
    let mut state = read(SMALL).unwrap();
    let before = state.clone();
    assert_eq!(
        state.apply(ChangeStep::Archive, ChangeEntry::default()),
        Err(ChangePhase::Proposed)
    );

    assert_eq!(state, before);
}

#[test]
fn c7_a27_a_document_that_was_edited_since_is_stale() {
    let mut state = read(SMALL).unwrap();
    let mut documents = Documents::default();
    documents.insert("proposal.md", "one");
    documents.insert("specs/a.md", "a");
    assert_eq!(state.stale(&documents), Vec::<String>::new());
    state.seal(&documents, "now");
    assert_eq!(state.stale(&documents), Vec::<String>::new());
    documents.insert("proposal.md", "two");
    documents.insert("tasks.md", "new");
    documents.0.remove("specs/a.md");

    assert_eq!(
        state.stale(&documents),
        ["proposal.md", "tasks.md", "specs/a.md"]
    );
}

#[test]
fn c8_what_the_models_took_is_added_up() {
    let mut state = read(SMALL).unwrap();
    let usage = |model: &str, calls| StepUsage {
        model: model.to_owned(),
        calls,
        tokens_in: 10,
        tokens_out: 2,
        cost: Some(0.25),
        spent: None,
    };

    state
        .apply(
            ChangeStep::Proposal,
            ChangeEntry {
                usage: Some(usage("a", 2)),
                ..ChangeEntry::default()
            },
        )
        .unwrap();
    state
        .apply(
            ChangeStep::Challenge,
            ChangeEntry {
                usage: Some(usage("b", 1)),
                ..verdict(ReviewVerdict::Approved)
            },
        )
        .unwrap();
    state
        .apply(
            ChangeStep::Task,
            ChangeEntry {
                usage: Some(usage("a", 1)),
                turn: Some(1),
                ..ChangeEntry::default()
            },
        )
        .unwrap();
    assert_eq!(
        (state.usage.calls, state.usage.tokens_in, state.usage.cost),
        (4, 30, 0.75)
    );

    assert_eq!(
        (
            state.answers_of("a"),
            state.answers_of("b"),
            state.answers_of("c")
        ),
        (2, 1, 0)
    );
}

#[test]
fn c9_the_limit_counts_what_is_known_in_part_and_leaves_the_turns_to_their_session() {
    let mut state = read(SMALL).unwrap();
    let usage = |cost, spent| {
        Some(StepUsage {
            cost,
            spent,
            ..StepUsage::default()
        })
    };

    state
        .apply(
            ChangeStep::Proposal,
            ChangeEntry {
                usage: usage(Some(0.25), Some(0.5)),
                ..ChangeEntry::default()
            },
        )
        .unwrap();
    state
        .apply(
            ChangeStep::Challenge,
            ChangeEntry {
                usage: usage(None, None),
                ..verdict(ReviewVerdict::Approved)
            },
        )
        .unwrap();
    state
        .apply(
            ChangeStep::Task,
            ChangeEntry {
                usage: usage(Some(4.0), None),
                turn: Some(1),
                ..ChangeEntry::default()
            },
        )
        .unwrap();
    assert_eq!((state.spent_on_documents(), state.usage.cost), (0.75, 4.25));

    assert!(write(&state).contains("spent: 0.5"));
}

#[test]
fn a_deep_file_is_refused_before_it_is_read() {
    assert!(read(&format!("{SMALL}x: {}", "[".repeat(200_000))).is_err());
}

/// Bug: the exit code was that of a wrong command line.
#[test]
fn a_wrong_id_in_the_file_is_no_mistake_of_the_command_line() {
    let error = read("change_id: A b\nphase: proposed\n").unwrap_err();
    assert!(!error.is::<crate::change::id::IdError>(), "{error}");
    assert!(
        error.to_string().starts_with("`A b` is not a valid"),
        "{error}"
    );
}
