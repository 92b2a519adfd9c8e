//! Generated plans reproduce the changes: a property test, and examples.

mod dir;
mod examples;
mod trees;

use proptest::prelude::*;

use super::*;
use crate::plan::parse::parse;
use crate::plan::reading::read;
use crate::plan::repair::Level;
use crate::text::path::RepoPath;
use trees::{Tree, agent_text, trees};

fn changes(before: &Tree, after: &Tree) -> Vec<MadeChange> {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |path: &&String| MadeChange {
        path: path.as_bytes().to_vec(),
        before: before.get(*path).cloned(),
        after: after.get(*path).cloned(),
    };
    paths.iter().map(change).collect()
}

/// Checks that the plan is valid and produces `after`.
fn check_round_trip(
    before: &Tree,
    after: &Tree,
    author: &AgentText<'_>,
) -> Result<WrittenPlan, TestCaseError> {
    let changes = changes(before, after);
    let written = plan_with_takes(&changes, author, &BTreeSet::new());
    let reading = read(&written.text);
    prop_assert_eq!(&reading.diagnostics, &[], "{}", written.text);
    prop_assert_eq!(reading.repaired.level, Level::Clean, "{}", written.text);
    let (plan, mistakes) = parse(&written.text);
    prop_assert_eq!(mistakes, []);
    prop_assert_eq!(&written.left_out, &[]);

    let is_changed = changes.iter().any(|change| change.before != change.after);
    let kinds: Vec<&str> = plan
        .actions
        .iter()
        .map(|action| action.kind.name())
        .collect();
    if is_changed {
        let only_files = kinds
            .iter()
            .all(|name| ["CREATE", "EDIT", "TAKE"].contains(name));
        prop_assert!(only_files, "{kinds:?}");
    } else {
        prop_assert!(
            kinds == ["CHAT_WITH_USER"] || kinds == ["CONCLUDE"],
            "{kinds:?}"
        );
        return Ok(written);
    }

    let taken_bytes: TakenBytes = written.taken_bytes.iter().cloned().collect();
    let state_of = |path: &RepoPath| before.get(path.as_str()).cloned();
    let outcome = files_after(&plan, &state_of, &taken_bytes);
    let outcome =
        outcome.map_err(|wrong| TestCaseError::fail(format!("{wrong:?}\n{}", written.text)))?;
    let mut result = before.clone();
    for (path, state) in outcome {
        match state {
            Some(state) => result.insert(path.to_string(), state),
            None => result.remove(path.as_str()),
        };
    }
    prop_assert_eq!(&result, after, "{}", written.text);
    Ok(written)
}

/// Number of cases; `TEDDY_LAW_CASES` overrides it.
fn cases() -> ProptestConfig {
    let count = crate::host::env::var("TEDDY_LAW_CASES").and_then(|text| text.parse().ok());
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(count.unwrap_or(100))
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn p41_the_plan_of_a_difference_makes_it((before, after) in trees(), title in agent_text(), rationale in agent_text()) {
        let author = AgentText { title: &title, rationale: &rationale };
        check_round_trip(&before, &after, &author)?;
    }

    #[test]
    fn p41_a_run_in_a_folder_makes_it_too((before, after) in trees()) {
        let written = check_round_trip(&before, &after, &AgentText::default())?;
        prop_assert_eq!(&dir::run(&before, &written), &after, "{}", written.text);
    }
}
