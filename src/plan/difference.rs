//! Writes the plan for an agent's changes from their diff.
//!
//! Pure. A new text file becomes a CREATE, a changed one an EDIT with a pair per place, everything
//! else a TAKE. The result is parsed again and must give the same plan, and each EDIT is checked
//! with the matcher of validation: applied to the old files, the plan reproduces the agent's files
//! byte for byte. The agent's messages are untrusted: they can become a title, a rationale or a
//! message, and nothing else.

mod pairs;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use pairs::{SearchBudget, find_pairs};

pub use super::state::{FileState, StateMode};
use crate::plan::action::chat_with_user::ChatWithUser;
use crate::plan::action::create::Create;
use crate::plan::action::edit::{Edit, Pair};
use crate::plan::action::take::{TakePath, TakenState};
use crate::plan::action::{Action, ActionKind, conclude};
use crate::plan::diagnostic::{Diagnostic, in_order};
use crate::plan::document::Plan;
use crate::plan::field::Field;
use crate::plan::line::field_item::one_line;
use crate::plan::parse::MAX_ACTIONS;
use crate::plan::reading::{Reading, read};
use crate::plan::render::render;
use crate::plan::repair::Level;
use crate::plan::state::Imprint;
use crate::plan::validate::{Entry, Facts, written};
use crate::text::damage::renames;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::text::sanitize::sanitize_line;
use crate::text::{floor_char_boundary, link};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeChange {
    /// Path from the project root.
    pub path: Vec<u8>,
    /// State before the change; `None` if the path did not exist.
    pub before: Option<FileState>,
    /// State after the change; `None` if the path was deleted.
    pub after: Option<FileState>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct AgentText<'a> {
    pub title: &'a str,
    /// The agent's last message.
    pub rationale: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WrittenPlan {
    pub text: String,
    /// Artifacts that its TAKEs refer to, such as `taken/01`, with their bytes.
    pub taken_bytes: Vec<(String, Vec<u8>)>,
    /// Changes that are not in the plan, with the reason: a path that a plan cannot name, or too
    /// many actions.
    pub left_out: Vec<(Vec<u8>, String)>,
}

/// Content of a plan's artifacts, by name.
pub type TakenBytes = BTreeMap<String, Vec<u8>>;

/// Longest title, in characters.
const MAX_TITLE: usize = 100;

/// Longest rationale or message, in bytes.
const MAX_AGENT_TEXT: usize = 16 << 10;

/// Omitted paths that the rationale lists.
const MAX_LISTED_PATHS: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
struct PlanText {
    title: String,
    rationale: String,
    message: String,
}

const SILENT_AGENT: &str = "The agent said nothing.";

/// Returns the texts of the plan: the agent's, and a list of changes that are not in the plan.
fn compose_text(author: &AgentText<'_>, left_out: &[(Vec<u8>, String)]) -> PlanText {
    let title: String = sanitize_line(&one_line(&normalize_text(author.title)))
        .chars()
        .take(MAX_TITLE)
        .collect();
    let title = title.trim();
    let message = normalize_text(author.rationale);
    let message = message.trim();
    let message = &message[..floor_char_boundary(message, MAX_AGENT_TEXT)];
    let message = if message.is_empty() {
        SILENT_AGENT
    } else {
        message
    };
    let omissions = list_left_out(left_out);

    PlanText {
        title: if title.is_empty() {
            neutral_text().title
        } else {
            title.to_owned()
        },
        rationale: format!("{message}\n{omissions}"),
        message: format!("{message}\n{omissions}").trim_end().to_owned(),
    }
}

fn neutral_text() -> PlanText {
    let message = "What the agent said cannot be shown in a plan.";
    PlanText {
        title: "What the agent did".to_owned(),
        rationale: format!("{message}\n"),
        message: message.to_owned(),
    }
}

/// Returns a message without code blocks, which could hide text from the renderer.
fn without_code(message: &str) -> String {
    message.replace('`', "'").replace("~~~", "---")
}

/// Normalizes line endings and removes NUL.
fn normalize_text(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.replace('\0', "")
}

fn list_left_out(left_out: &[(Vec<u8>, String)]) -> String {
    if left_out.is_empty() {
        return String::new();
    }

    let listed = left_out.iter().take(MAX_LISTED_PATHS).map(|(path, why)| {
        let path = String::from_utf8_lossy(path);
        format!("- {}: {why}\n", sanitize_line(&path).replace('`', "'"))
    });
    let more = left_out.len().saturating_sub(MAX_LISTED_PATHS);
    let more = (more > 0).then(|| format!("- and {more} more\n"));
    let lines: String = listed.chain(more).collect();
    format!("\nNot in this plan:\n{lines}")
}

/// Largest new text in a plan, in bytes.
const MAX_CREATE: usize = 256 << 10;

/// Longest file extension that is used as the language of a block.
const MAX_EXTENSION: usize = 10;

/// Returns the path of a change as a plan names it, or why none can.
fn plan_path(change: &MadeChange) -> Result<RepoPath, String> {
    let text = std::str::from_utf8(&change.path);
    let text = text.map_err(|_| "the path is not UTF-8".to_owned())?;
    let name = RepoPath::parse(text).map_err(|error| error.to_string())?;
    if change.before.is_none() {
        name.fit_for_new(0).map_err(|error| error.to_string())?;
    }
    match link::read(&link::write_path(text)) {
        Ok(read) if read == text => Ok(name),
        _ => Err("the path cannot be written as a link".to_owned()),
    }
}

/// Returns a text change as CREATE or EDIT; `None` if neither can express it.
fn as_text_action(
    path: &RepoPath,
    change: &MadeChange,
    budget: &mut SearchBudget,
) -> Option<ActionKind> {
    let after = change.after.as_ref()?;
    let new = after.text()?;
    let path = path.clone();
    let language = block_language(&path);

    // An EDIT keeps the mode of its file, and a CREATE makes an ordinary file.
    let before = change.before.as_ref();
    let is_filled = before.is_some_and(|before| !before.bytes.is_empty());
    let mode = match before {
        Some(before) if is_filled || before.mode == StateMode::Link => before.mode,
        _ => StateMode::Plain,
    };
    if after.mode != mode || before.is_some_and(|before| before.mode != mode) {
        return None;
    }

    // An EDIT needs text to find, so CREATE replaces an empty file.
    if !is_filled {
        let create = Create {
            path,
            text: new.to_owned(),
            language,
            overwrite: false,
            keep_bytes: false,
        };
        return (new.len() <= MAX_CREATE).then(|| create.into());
    }

    let old = change.before.as_ref()?.text()?;
    let with_language = |pair: Pair| Pair {
        language: language.clone(),
        ..pair
    };
    let pairs = find_pairs(old, new, budget)?
        .into_iter()
        .map(with_language)
        .collect();
    Some(Edit { path, pairs }.into())
}

/// Returns any change as a TAKE. The artifact's name is set when the plan is written.
fn as_take(path: &RepoPath, change: &MadeChange) -> TakePath {
    TakePath {
        path: path.clone(),
        becomes: change.after.as_ref().map(|after| TakenState {
            mode: after.mode,
            artifact: String::new(),
            imprint: Imprint::of(&after.bytes),
        }),
        previous: change.before.as_ref().map(FileState::known_state),
        keep_bytes: false,
    }
}

fn block_language(path: &RepoPath) -> String {
    let ending = path.file_name().rsplit_once('.').map(|(_, ending)| ending);
    let is_word = |ending: &&str| {
        ending.len() <= MAX_EXTENSION && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    ending.filter(is_word).unwrap_or_default().to_owned()
}

/// Text of files in a plan, in bytes.
const MAX_PLAN_TEXT: usize = 4 << 20;

/// Bytes searched for unique matches.
const MAX_SEARCHED: usize = 2 << 30;

const MAX_TRIES: usize = 4;

struct ChosenAction<'a> {
    path: RepoPath,
    change: &'a MadeChange,
    /// The CREATE or EDIT; `None` for a TAKE.
    text: Option<ActionKind>,
    note: Option<String>,
}

/// Writes the plan for an agent's changes, with a TAKE for each of some paths. The caller lists those
/// for which validation in the project rejected CREATE or EDIT.
pub fn plan_with_takes(
    changes: &[MadeChange],
    author: &AgentText<'_>,
    take_paths: &BTreeSet<Vec<u8>>,
) -> WrittenPlan {
    let (mut actions, left_out) = choose_actions(changes, take_paths);
    let mut plan_text = compose_text(author, &left_out);
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
            plan_text = neutral_text();
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
            plan_text = neutral_text();
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
        let path = match plan_path(change) {
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
            .then(|| as_text_action(&path, change, &mut budget))
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
    let bytes = |state: &'a Option<FileState>| state.as_ref().map(|state| &*state.bytes);
    let sides = changes
        .iter()
        .map(|change| (bytes(&change.before), bytes(&change.after)));
    let quoted = |path: &[u8]| format!("`{}`", String::from_utf8_lossy(path).replace('`', "'"));
    let mut notes = BTreeMap::new();
    for (old, new) in renames(sides) {
        let (old, new) = (&*changes[old].path, &*changes[new].path);
        notes.insert(old, format!("renamed to {}", quoted(new)));
        notes.insert(new, format!("renamed from {}", quoted(old)));
    }
    notes
}

fn build_plan(
    actions: &[ChosenAction<'_>],
    plan_text: &PlanText,
) -> (Plan, Vec<(String, Vec<u8>)>) {
    let mut taken_bytes = Vec::new();
    let mut action = |chosen: &ChosenAction<'_>| {
        let kind = chosen.text.clone().unwrap_or_else(|| {
            let mut take: TakePath = as_take(&chosen.path, chosen.change);
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

fn asks(message: &str) -> bool {
    let last = message.trim_end().rsplit("\n\n").next().unwrap_or_default();
    last.split_whitespace().any(|word| {
        word.trim_end_matches(['*', '_', '`', '"', '\'', ')'])
            .ends_with('?')
    })
}

/// Writes the plan for an agent that changed no files, with its message: a CHAT_WITH_USER if it asks
/// something, else a CONCLUDE.
fn render_message(plan_text: &PlanText) -> String {
    let plan = |plan_text: &PlanText, message: &str| Plan {
        title: plan_text.title.clone(),
        rationale: "The agent changed no files. Its message is below.\n".to_owned(),
        actions: vec![Action {
            line: 0,
            fields: Vec::new(),
            kind: match asks(&plan_text.message) {
                true => ChatWithUser {
                    message: message.to_owned(),
                }
                .into(),
                false => conclude::with_message(message),
            },
        }],
        ..Plan::default()
    };
    // Ordered from the agent's own text to a neutral one.
    let tried = [
        (plan_text.clone(), plan_text.message.clone()),
        (plan_text.clone(), without_code(&plan_text.message)),
        (neutral_text(), plan_text.message.clone()),
        (neutral_text(), without_code(&plan_text.message)),
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
    let neutral = neutral_text();
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
        let kind = parsed.get(*at).map(|action| &action.kind);
        kind == Some(&plan.actions[*at].kind)
    };
    let all = 0..plan.actions.len();
    all.filter(|at| !is_right(at)).collect()
}

/// The files before the plan, as facts for the validation.
struct FilesBefore<'a> {
    plan: &'a Plan,
    state: &'a dyn Fn(&RepoPath) -> Option<FileState>,
    /// Directories of the files that the plan writes.
    dirs: HashSet<&'a str>,
    taken_bytes: &'a TakenBytes,
}

/// Returns the state of each path that a plan writes, or the diagnostics of the plan. `before`
/// returns the previous state of a path.
pub fn files_after(
    plan: &Plan,
    before: &dyn Fn(&RepoPath) -> Option<FileState>,
    taken_bytes: &TakenBytes,
) -> Result<BTreeMap<RepoPath, Option<FileState>>, Vec<Diagnostic>> {
    let facts = FilesBefore {
        plan,
        state: before,
        dirs: plan.targets().flat_map(RepoPath::ancestors).collect(),
        taken_bytes,
    };
    let (simulation, written) =
        written(plan, &facts).map_err(|error| vec![Diagnostic::new(1, format!("{error:#}"))])?;
    if simulation.diagnostics.is_empty() {
        Ok(written)
    } else {
        Err(in_order(simulation.diagnostics))
    }
}

impl Facts for FilesBefore<'_> {
    fn entry(&self, path: &RepoPath) -> anyhow::Result<Entry> {
        Ok(match (self.state)(path) {
            None if self.dirs.contains(path.as_str()) => Entry::Dir,
            None => Entry::Absent,
            Some(state) if state.mode == StateMode::Link => Entry::Link,
            Some(state) => Entry::File { bytes: state.bytes },
        })
    }

    fn paths(&self) -> anyhow::Result<Vec<String>> {
        let targets = self.plan.targets();
        let existing = targets.filter(|path| (self.state)(path).is_some());
        let mut paths: Vec<String> = existing.map(ToString::to_string).collect();
        paths.sort();
        Ok(paths)
    }

    fn in_context(&self, _resource: &Resource) -> bool {
        true
    }

    fn in_turn_context(&self, _resource: &Resource) -> bool {
        true
    }

    fn is_from_agent(&self) -> bool {
        true
    }

    fn has_artifact(&self, _resource: &Resource) -> bool {
        false
    }

    fn state(&self, path: &RepoPath) -> anyhow::Result<Option<FileState>> {
        Ok((self.state)(path))
    }

    fn taken_bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.taken_bytes.get(name).cloned()
    }
}

#[cfg(test)]
mod tests;
