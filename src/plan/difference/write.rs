//! Writes the plan and parses it again until the result is the intended plan.

use std::collections::{BTreeMap, BTreeSet};

use super::pairs::SearchBudget;
use super::words::{self, PlanWords};
use super::{AgentWords, FileState, MadeChange, WrittenPlan, say};
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
struct Said<'a> {
    path: RepoPath,
    change: &'a MadeChange,
    /// The CREATE or EDIT; `None` for a TAKE.
    text: Option<ActionKind>,
    note: Option<String>,
}

/// Writes the plan, with a TAKE for each path of `whole`.
pub(super) fn written(
    changes: &[MadeChange],
    author: &AgentWords<'_>,
    whole: &BTreeSet<Vec<u8>>,
) -> WrittenPlan {
    let (mut said, left_out) = chosen(changes, whole);
    let mut words = words::of(author, &left_out);
    if said.is_empty() {
        let text = told(&words);
        return WrittenPlan {
            text,
            left_out,
            ..WrittenPlan::default()
        };
    }

    for attempt in 0..MAX_TRIES {
        // Without any text of the agent or of files, nothing can be misread.
        if attempt + 1 == MAX_TRIES {
            words = words::neutral();
            said.iter_mut().for_each(|said| said.text = None);
        }
        let (plan, taken) = plan_of(&said, &words);
        let text = render(&plan);
        let reading = read(&text);
        if is_same(&plan, &reading) || attempt + 1 == MAX_TRIES {
            return WrittenPlan {
                text,
                taken,
                left_out,
            };
        }

        let wrong = wrong(&plan, &reading);
        // All actions are right, so the agent's texts are the cause.
        if wrong.is_empty() {
            words = words::neutral();
        }
        for at in wrong {
            said[at].text = None;
        }
    }
    unreachable!("the last attempt returns")
}

/// Chooses an action for each change. Deletions come first: a file can replace a directory, and the
/// reverse.
fn chosen<'a>(
    changes: &'a [MadeChange],
    whole: &BTreeSet<Vec<u8>>,
) -> (Vec<Said<'a>>, Vec<(Vec<u8>, String)>) {
    let mut sorted: Vec<&MadeChange> = changes
        .iter()
        .filter(|change| change.before != change.after)
        .collect();
    sorted.sort_by(|a, b| (a.after.is_some(), &a.path).cmp(&(b.after.is_some(), &b.path)));
    let renames = renames(&sorted);

    let (mut said, mut left_out) = (Vec::new(), Vec::new());
    let mut budget = SearchBudget(MAX_SEARCHED);
    let mut room = MAX_PLAN_TEXT;
    for change in sorted {
        let path = match say::name(change) {
            Ok(_) if said.len() == MAX_ACTIONS => {
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

        let is_whole = whole.contains(&change.path);
        let text = (!is_whole)
            .then(|| say::as_text(&path, change, &mut budget))
            .flatten();
        let text = text.filter(|kind| {
            let size: usize = text_size(kind);
            let fits = size <= room;
            room -= if fits { size } else { 0 };
            fits
        });
        let note = renames.get(change.path.as_slice()).cloned();
        said.push(Said {
            path,
            change,
            text,
            note,
        });
    }

    (said, left_out)
}

fn text_size(kind: &ActionKind) -> usize {
    let pairs = kind.pairs().into_iter().flatten();
    let found: usize = pairs.map(|pair| pair.find.len()).sum();
    let texts = kind.texts();
    found + texts.iter().map(|text| text.len()).sum::<usize>()
}

/// Returns notes on files that were renamed without changes, by path.
fn renames<'a>(changes: &[&'a MadeChange]) -> BTreeMap<&'a [u8], String> {
    let mut gone: BTreeMap<(usize, String), &[u8]> = BTreeMap::new();
    let key = |state: &FileState| (state.content.len(), Imprint::of(&state.content).hash);
    for change in changes {
        if let (Some(before), None) = (&change.before, &change.after) {
            gone.entry(key(before)).or_insert(&change.path);
        }
    }

    let shown = |path: &[u8]| format!("`{}`", String::from_utf8_lossy(path).replace('`', "'"));
    let mut found = BTreeMap::new();
    for change in changes {
        let (None, Some(after)) = (&change.before, &change.after) else {
            continue;
        };
        if after.content.is_empty() || gone.is_empty() {
            continue;
        }
        if let Some(from) = gone.remove(&key(after)) {
            found.insert(from, format!("renamed to {}", shown(&change.path)));
            found.insert(&*change.path, format!("renamed from {}", shown(from)));
        }
    }
    found
}

/// Builds the plan, and names the artifacts.
fn plan_of(said: &[Said<'_>], words: &PlanWords) -> (Plan, Vec<(String, Vec<u8>)>) {
    let mut taken = Vec::new();
    let mut action = |said: &Said<'_>| {
        let kind = said.text.clone().unwrap_or_else(|| {
            let mut take: TakePath = say::as_take(&said.path, said.change);
            if let (Some(state), Some(after)) = (&mut take.becomes, &said.change.after) {
                state.artifact = format!("taken/{:02}", taken.len() + 1);
                taken.push((state.artifact.clone(), after.content.clone()));
            }
            take.into()
        });
        let note = said.note.as_deref();
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
        title: words.title.clone(),
        rationale: words.rationale.clone(),
        actions: said.iter().map(&mut action).collect(),
        ..Plan::default()
    };
    (plan, taken)
}

/// Writes the plan for an agent that changed no files: a CHAT_WITH_USER with its message.
fn told(words: &PlanWords) -> String {
    let plan = |words: &PlanWords, message: &str| Plan {
        title: words.title.clone(),
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
        (words.clone(), words.message.clone()),
        (words.clone(), words::without_code(&words.message)),
        (words::neutral(), words.message.clone()),
        (words::neutral(), words::without_code(&words.message)),
    ];
    let is_right = |text: &String| {
        let reading = read(text);
        let mut kinds = reading.plan.actions.iter().map(|action| &action.kind);
        let is_told = kinds.next().is_some_and(|kind| kind.message().is_some());
        is_sound(&reading) && is_told && kinds.next().is_none()
    };

    let mut texts = tried
        .iter()
        .map(|(words, message)| render(&plan(words, message)));
    let found = texts.find(is_right);
    let neutral = words::neutral();
    found.unwrap_or_else(|| render(&plan(&neutral, &neutral.message)))
}

/// Returns whether a text was parsed without repairs and without diagnostics.
fn is_sound(reading: &Reading) -> bool {
    reading.diagnostics.is_empty() && reading.repaired.level == Level::Clean
}

fn is_same(plan: &Plan, reading: &Reading) -> bool {
    let found = &reading.plan;
    is_sound(reading)
        && found.title == plan.title
        && found.rationale == plan.rationale
        && found.memos.is_empty()
        && found.actions.len() == plan.actions.len()
        && wrong(plan, reading).is_empty()
}

fn wrong(plan: &Plan, reading: &Reading) -> Vec<usize> {
    let found = &reading.plan.actions;
    let is_right = |at: &usize| {
        let kind = found.get(*at).map(|action| action.kind.without_lines());
        kind.as_ref() == Some(&plan.actions[*at].kind)
    };
    let all = 0..plan.actions.len();
    all.filter(|at| !is_right(at)).collect()
}
