//! Writes the plan and parses it again until the result is the intended plan.

use std::collections::{BTreeMap, BTreeSet};

use super::pairs::SearchBudget;
use super::text::{self, PlanText};
use super::{AgentText, FileState, MadeChange, WrittenPlan, choose};
use crate::plan::action::chat_with_user::ChatWithUser;
use crate::plan::action::take::TakePath;
use crate::plan::action::{Action, ActionKind};
use crate::plan::parse::MAX_ACTIONS;
use crate::plan::reading::{Reading, read};
use crate::plan::render::render;
use crate::plan::repair::Level;
use crate::plan::state::Imprint;
use crate::plan::{Field, Plan};
use crate::text::path::RepoPath;

/// Text of files in a plan, in bytes.
const MAX_PLAN_TEXT: usize = 4 << 20;
/// Bytes searched for unique matches.
const MAX_SEARCHED: usize = 2 << 30;
/// Attempts before every change becomes a TAKE.
const MAX_TRIES: usize = 4;

/// A change with its chosen action.
struct ChosenAction<'a> {
    path: RepoPath,
    change: &'a MadeChange,
    /// The CREATE or EDIT; `None` for a TAKE.
    text: Option<ActionKind>,
    note: Option<String>,
}

/// Writes the plan, with a TAKE for each path of `whole`.
pub(super) fn write_plan(
    changes: &[MadeChange],
    author: &AgentText<'_>,
    take_paths: &BTreeSet<Vec<u8>>,
) -> WrittenPlan {
    let (mut actions, left_out) = choose_actions(changes, take_paths);
    let mut plan_text = text::compose_text(author, &left_out);
    if actions.is_empty() {
        let text = render_message(&plan_text);
        return WrittenPlan {
            text,
            left_out,
            ..WrittenPlan::default()
        };
    }

    for attempt in 0..MAX_TRIES {
        // Without any text of the agent or of files, nothing can be misread.
        if attempt + 1 == MAX_TRIES {
            plan_text = text::neutral_text();
            actions.iter_mut().for_each(|action| action.text = None);
        }
        let (plan, taken_bytes) = build_plan(&actions, &plan_text);
        let text = render(&plan);
        let reading = read(&text);
        if is_same_plan(&plan, &reading) || attempt + 1 == MAX_TRIES {
            return WrittenPlan {
                text,
                taken_bytes,
                left_out,
            };
        }

        let wrong = wrong_actions(&plan, &reading);
        // All actions are right, so the agent's texts are the cause.
        if wrong.is_empty() {
            plan_text = text::neutral_text();
        }
        for at in wrong {
            actions[at].text = None;
        }
    }
    unreachable!("the last attempt returns")
}

/// Chooses an action for each change. Deletions come first: a file can replace a directory, and the
/// reverse.
fn choose_actions<'a>(
    changes: &'a [MadeChange],
    take_paths: &BTreeSet<Vec<u8>>,
) -> (Vec<ChosenAction<'a>>, Vec<(Vec<u8>, String)>) {
    let mut sorted: Vec<&MadeChange> = changes
        .iter()
        .filter(|change| change.before != change.after)
        .collect();
    sorted.sort_by(|a, b| (a.after.is_some(), &a.path).cmp(&(b.after.is_some(), &b.path)));
    let renames = rename_notes(&sorted);

    let (mut actions, mut left_out) = (Vec::new(), Vec::new());
    let mut budget = SearchBudget(MAX_SEARCHED);
    let mut remaining = MAX_PLAN_TEXT;
    for change in sorted {
        let path = match choose::plan_path(change) {
            Ok(_) if actions.len() == MAX_ACTIONS => {
                let why = format!("the plan has {MAX_ACTIONS} actions already");
                left_out.push((change.path.clone(), why));
                continue;
            }
            Ok(path) => path,
            Err(why) => {
                left_out.push((change.path.clone(), why));
                continue;
            }
        };

        let is_whole = take_paths.contains(&change.path);
        let text = (!is_whole)
            .then(|| choose::as_text_action(&path, change, &mut budget))
            .flatten();
        let text = text.filter(|kind| {
            let size: usize = text_size(kind);
            let fits = size <= remaining;
            remaining -= if fits { size } else { 0 };
            fits
        });
        let note = renames.get(change.path.as_slice()).cloned();
        actions.push(ChosenAction {
            path,
            change,
            text,
            note,
        });
    }

    (actions, left_out)
}

fn text_size(kind: &ActionKind) -> usize {
    let pairs = kind.pairs().into_iter().flatten();
    let find_size: usize = pairs.map(|pair| pair.find.len()).sum();
    let texts = kind.texts();
    find_size + texts.iter().map(|text| text.len()).sum::<usize>()
}

/// Returns notes on files that were renamed without changes, by path.
fn rename_notes<'a>(changes: &[&'a MadeChange]) -> BTreeMap<&'a [u8], String> {
    let mut removed: BTreeMap<(usize, String), &[u8]> = BTreeMap::new();
    let key = |state: &FileState| (state.bytes.len(), Imprint::of(&state.bytes).hash);
    for change in changes {
        if let (Some(before), None) = (&change.before, &change.after) {
            removed.entry(key(before)).or_insert(&change.path);
        }
    }

    let quoted = |path: &[u8]| format!("`{}`", String::from_utf8_lossy(path).replace('`', "'"));
    let mut notes = BTreeMap::new();
    for change in changes {
        let (None, Some(after)) = (&change.before, &change.after) else {
            continue;
        };
        if after.bytes.is_empty() || removed.is_empty() {
            continue;
        }
        if let Some(from) = removed.remove(&key(after)) {
            notes.insert(from, format!("renamed to {}", quoted(&change.path)));
            notes.insert(&*change.path, format!("renamed from {}", quoted(from)));
        }
    }
    notes
}

/// Builds the plan, and names the artifacts.
fn build_plan(
    actions: &[ChosenAction<'_>],
    plan_text: &PlanText,
) -> (Plan, Vec<(String, Vec<u8>)>) {
    let mut taken_bytes = Vec::new();
    let mut action = |chosen: &ChosenAction<'_>| {
        let kind = chosen.text.clone().unwrap_or_else(|| {
            let mut take: TakePath = choose::as_take(&chosen.path, chosen.change);
            if let (Some(state), Some(after)) = (&mut take.becomes, &chosen.change.after) {
                state.artifact = format!("taken/{:02}", taken_bytes.len() + 1);
                taken_bytes.push((state.artifact.clone(), after.bytes.clone()));
            }
            take.into()
        });
        let note = chosen.note.as_deref();
        Action {
            line: 0,
            fields: note
                .map(|note| Field::new("Description", note))
                .into_iter()
                .collect(),
            kind,
        }
    };

    let plan = Plan {
        title: plan_text.title.clone(),
        rationale: plan_text.rationale.clone(),
        actions: actions.iter().map(&mut action).collect(),
        ..Plan::default()
    };
    (plan, taken_bytes)
}

/// Writes the plan for an agent that changed no files: a CHAT_WITH_USER with its message.
fn render_message(plan_text: &PlanText) -> String {
    let plan = |plan_text: &PlanText, message: &str| Plan {
        title: plan_text.title.clone(),
        rationale: "The agent changed no files. Its message is below.\n".to_owned(),
        actions: vec![Action {
            line: 0,
            fields: Vec::new(),
            kind: ChatWithUser {
                message: message.to_owned(),
            }
            .into(),
        }],
        ..Plan::default()
    };
    // Ordered from the agent's own text to a neutral one.
    let tried = [
        (plan_text.clone(), plan_text.message.clone()),
        (plan_text.clone(), text::without_code(&plan_text.message)),
        (text::neutral_text(), plan_text.message.clone()),
        (text::neutral_text(), text::without_code(&plan_text.message)),
    ];
    let is_right = |text: &String| {
        let reading = read(text);
        let mut kinds = reading.plan.actions.iter().map(|action| &action.kind);
        let is_told = kinds.next().is_some_and(|kind| kind.message().is_some());
        is_clean(&reading) && is_told && kinds.next().is_none()
    };

    let mut texts = tried
        .iter()
        .map(|(plan_text, message)| render(&plan(plan_text, message)));
    let rendered = texts.find(is_right);
    let neutral = text::neutral_text();
    rendered.unwrap_or_else(|| render(&plan(&neutral, &neutral.message)))
}

/// Returns whether a text was parsed without repairs and without diagnostics.
fn is_clean(reading: &Reading) -> bool {
    reading.diagnostics.is_empty() && reading.repaired.level == Level::Clean
}

fn is_same_plan(plan: &Plan, reading: &Reading) -> bool {
    let parsed = &reading.plan;
    is_clean(reading)
        && parsed.title == plan.title
        && parsed.rationale == plan.rationale
        && parsed.memos.is_empty()
        && parsed.actions.len() == plan.actions.len()
        && wrong_actions(plan, reading).is_empty()
}

fn wrong_actions(plan: &Plan, reading: &Reading) -> Vec<usize> {
    let parsed = &reading.plan.actions;
    let is_right = |at: &usize| {
        let kind = parsed.get(*at).map(|action| action.kind.without_lines());
        kind.as_ref() == Some(&plan.actions[*at].kind)
    };
    let all = 0..plan.actions.len();
    all.filter(|at| !is_right(at)).collect()
}
