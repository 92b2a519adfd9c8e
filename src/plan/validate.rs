//! Validation: simulates the plan on the snapshot before anything runs.
//!
//! Each action sees the simulated result of the earlier ones, so a plan can edit a file it creates,
//! and a FIND can depend on the previous pair. All mistakes are reported together. A consequence of
//! another mistake is not reported.
//!
//! An EXECUTE can change any file. A mistake that it could fix is not reported after it: whether a
//! file, directory or link exists, its content, whether a name has a twin. Such an action is
//! *provisional* and is checked again when it runs. Mistakes that no command can fix remain: a
//! blank FIND, a REPLACE that equals it, a file of the snapshot that is in no context list, a
//! forbidden variable, memos, agents, a search without an engine, an action after a hand-over.

pub mod simulated_files;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use simulated_files::{LEFT_OUT, Lookup, SimulatedFiles};

use super::action::{Action, ActionKind};
use super::diagnostic::{Diagnostic, in_order};
use super::document::Plan;
use super::state::FileState;
use crate::plan::diagnostic::quote;
use crate::plan::memo::{MemoChange, Verb};
use crate::text::damage::FileFacts;
use crate::text::edit::MatchPlace;
use crate::text::git_file::refused;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::text::sanitize::{excerpt, sanitize_line};

/// Characters of the target in a diagnostic's label.
const MAX_LABEL: usize = 80;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Does not exist.
    Absent,
    File {
        /// Content as on disk, line endings included.
        bytes: Vec<u8>,
    },
    Dir,
    Link,
    /// A submodule or an embedded repository.
    Repository,
    /// Exists but is not in the snapshot: too large, a secret, unreadable, special.
    LeftOut,
}

/// Facts about the project for validation, all from one snapshot.
pub trait Facts {
    /// Returns the entry at a path. If a parent is a link or a file, returns what that parent is.
    fn entry(&self, path: &RepoPath) -> anyhow::Result<Entry>;
    /// Returns every file path of the snapshot, sorted.
    fn paths(&self) -> anyhow::Result<Vec<String>>;
    /// Returns the names in a directory of the snapshot; `""` is the top directory. Empty for
    /// anything else than a directory.
    fn names(&self, dir: &str) -> anyhow::Result<Vec<String>> {
        let paths = self.paths()?;
        let below = paths.iter().filter_map(|path| match dir {
            "" => Some(path.as_str()),
            dir => path.strip_prefix(dir)?.strip_prefix('/'),
        });
        let mut names: Vec<String> = below
            .map(|path| path.split('/').next().unwrap_or(path).to_owned())
            .collect();
        names.dedup();
        Ok(names)
    }
    /// Returns whether the resource is in one of the three context lists, or below a listed
    /// directory.
    fn in_context(&self, resource: &Resource) -> bool;
    /// Returns whether PRUNE can remove it: it is in the turn's own list.
    fn in_turn_context(&self, resource: &Resource) -> bool;
    /// Returns whether the plan was generated from an agent's changes, so that its targets exist
    /// already in the agent's files.
    fn is_from_agent(&self) -> bool {
        false
    }
    fn memos(&self) -> &[String] {
        &[]
    }
    /// Returns the agents that INVOKE can name.
    fn agents(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }
    /// Returns the agents that INVOKE could name if the user trusted the repository.
    fn untrusted_agents(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }
    /// Returns the reason why RESEARCH cannot search; `None` if it can.
    fn search_obstacle(&self) -> Option<String> {
        None
    }
    /// Returns whether RESEARCH passes a query to a program as an argument.
    fn searches_with_program(&self) -> bool {
        false
    }
    /// Returns the program of a script's `#!` line, if it does not exist.
    fn missing_interpreter(&self, _script: &str) -> Option<String> {
        None
    }
    /// Returns whether an artifact of a turn exists.
    fn has_artifact(&self, resource: &Resource) -> bool;
    /// Returns the file or link at the path with its mode; `None` for anything else.
    fn state(&self, path: &RepoPath) -> anyhow::Result<Option<FileState>>;
    /// Returns whether a sparse checkout leaves out a file of the snapshot, so that it is not on
    /// disk.
    fn is_hidden(&self, _path: &RepoPath) -> anyhow::Result<bool> {
        Ok(false)
    }
    /// Returns what is read-only on the user's disk, of an existing file and its directory.
    fn read_only(&self, _path: &RepoPath) -> Option<ReadOnlyTarget> {
        None
    }
    /// Returns what the disk and git's attributes say of an existing file.
    fn file_facts(&self, _path: &RepoPath) -> FileFacts {
        FileFacts::default()
    }
    /// Returns the content of an artifact of the plan's own turn, for TAKE.
    fn taken_bytes(&self, name: &str) -> Option<Vec<u8>>;
}

/// What has no write permission for any user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOnlyTarget {
    File,
    Dir,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Simulation {
    /// All diagnostics, by line.
    pub diagnostics: Vec<Diagnostic>,
    /// One step per action of the plan.
    pub steps: Vec<Step>,
}

/// Simulated effect of one action on a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// Content before, as on disk; `None` if the file does not exist.
    pub before: Option<Vec<u8>>,
    /// Content after; `None` if the action writes no file or is wrong.
    pub after: Option<Vec<u8>>,
    /// EDIT: place of each matching pair, by its index.
    pub positions: Vec<(usize, MatchPlace)>,
    /// Set if an earlier EXECUTE could have changed the file. The action is checked again when it
    /// runs.
    pub provisional: bool,
    /// TAKE: the path no longer exists afterwards.
    pub removed: bool,
    /// In a plan from an agent's changes: a name that some file systems treat as the same file.
    pub case_collision: Option<String>,
    /// The file is in no context list.
    pub outside_context: bool,
    /// The file that is replaced or deleted, or its directory, is read-only.
    pub read_only: Option<ReadOnlyTarget>,
    /// What the disk and git's attributes say of the file that is replaced.
    pub facts: FileFacts,
    /// The action has a mistake.
    pub wrong: bool,
}

impl Step {
    /// Returns the number of lines of a non-empty file whose content is replaced.
    pub fn replaced_lines(&self) -> Option<usize> {
        let before = self.before.as_deref().filter(|bytes| !bytes.is_empty())?;
        let lines = before.split_inclusive(|&byte| byte == b'\n').count();
        let after = self.after.as_deref().filter(|after| *after != before);
        after.map(|_| lines)
    }
}

impl Simulation {
    /// Returns the step of an action; an empty step if the simulation stopped before it.
    pub fn step(&self, index: usize) -> &Step {
        static NOTHING: LazyLock<Step> = LazyLock::new(Step::default);

        self.steps.get(index).unwrap_or(&NOTHING)
    }

    /// Returns the labels of the correct actions, which the model is asked to repeat unchanged.
    pub fn correct_actions(&self, plan: &Plan) -> Vec<String> {
        let correct = plan
            .actions
            .iter()
            .zip(&self.steps)
            .filter(|(_, step)| !step.wrong);
        correct.map(|(action, _)| label(action)).collect()
    }
}

/// Simulates a parsed plan. Mistakes that the parser reports are not checked again. Fails only if
/// the snapshot is unreadable; a wrong plan is in the result.
pub fn validate(plan: &Plan, facts: &dyn Facts) -> anyhow::Result<Simulation> {
    checked(plan, facts, |kind| {
        // This plan was not reviewed.
        let is_granted = kind.command().is_some_and(|execute| execute.network);
        is_granted.then(|| {
            Mistake::new(
                "only the user grants a command the network, in the review",
                "leave `Network` out, and say in the description why it is needed",
            )
        })
    })
}

/// Like [`validate`], for a plan that the user changed and that the parser has not seen.
pub fn validate_changed(plan: &Plan, facts: &dyn Facts) -> anyhow::Result<Simulation> {
    checked(plan, facts, |kind| {
        let part = kind.text_with_nul()?;
        Some(Mistake::new(
            format!("{part} has a NUL character"),
            "make binary files with EXECUTE, as with `base64 -d`",
        ))
    })
}

/// Simulates a plan, with another check of each action.
fn checked(
    plan: &Plan,
    facts: &dyn Facts,
    check: fn(&ActionKind) -> Option<Mistake>,
) -> anyhow::Result<Simulation> {
    let mut simulation = validate_actions(plan, facts)?.simulation;
    for (action, step) in plan.actions.iter().zip(&mut simulation.steps) {
        if let Some(mistake) = check(&action.kind) {
            step.wrong = true;
            step.after = None;
            simulation.diagnostics.push(mistake.of(action, action.line));
        }
    }
    simulation.diagnostics = in_order(simulation.diagnostics);
    Ok(simulation)
}

/// Like [`validate`], and also returns the final state of each path that the plan writes.
pub fn written(
    plan: &Plan,
    facts: &dyn Facts,
) -> anyhow::Result<(Simulation, BTreeMap<RepoPath, Option<FileState>>)> {
    let validator = validate_actions(plan, facts)?;
    Ok((validator.simulation, validator.files.written))
}

fn validate_actions<'a>(plan: &'a Plan, facts: &'a dyn Facts) -> anyhow::Result<Validator<'a>> {
    let mut validator = Validator {
        plan,
        files: SimulatedFiles::new(facts, plan)?,
        simulation: Simulation::default(),
    };
    check_memos(&mut validator);
    for action in &plan.actions {
        validator.simulation.steps.push(Step {
            provisional: validator.files.unknown_after_command
                && action.kind.worktree_path().is_some(),
            ..Step::default()
        });
        if check_name(&mut validator)? {
            action.kind.check(&mut validator)?;
            check_git_file(&mut validator);
            note_file_facts(&mut validator);
        }
    }

    check_handover_order(&mut validator);
    Ok(validator)
}

/// Reports a content that git refuses in a file of this name (P45). A file that git refuses already
/// can be changed.
fn check_git_file(validator: &mut Validator<'_>) {
    let Some(path) = validator.action().kind.path() else {
        return;
    };
    let step = validator.step();
    let reason = |bytes: &Option<Vec<u8>>| refused(path.file_name(), bytes.as_deref()?);
    let why = reason(&step.after).filter(|_| reason(&step.before).is_none());
    if let Some(why) = why {
        let message = format!("`{}`: {why}", sanitize_line(path.as_str()));
        let hint = "`git fsck --strict` and servers refuse such a file; write another content";
        validator.refuse_unless_fixable(Mistake::new(message, hint));
    }
}

/// A read-only file is replaced like any other, and so is a hard link, which their owner might not
/// expect.
fn note_file_facts(validator: &mut Validator<'_>) {
    let facts = validator.files.facts;
    let path = validator.action().kind.worktree_path();
    let step = validator.step();
    if let Some(path) = path
        && (step.after.is_some() || step.removed)
    {
        step.read_only = facts.read_only(path);
        if step.before.is_some() && step.after.is_some() {
            step.facts = facts.file_facts(path);
        }
    }
}

/// Returns the name of an action for messages: `EDIT src/a.rs`.
pub fn label(action: &Action) -> String {
    let target = action.kind.target();
    let rendered = sanitize_line(&target);
    let short = excerpt(&rendered, MAX_LABEL);
    format!("{} {short}", action.kind.name())
        .trim_end()
        .to_owned()
}

/// A mistake before its position, and whether it is reported, are known.
pub struct Mistake {
    message: String,
    hint: String,
}

impl Mistake {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Mistake {
        Mistake {
            message: message.into(),
            hint: hint.into(),
        }
    }

    fn of(self, action: &Action, line: usize) -> Diagnostic {
        Diagnostic {
            line,
            action: label(action),
            message: self.message,
            hint: Some(self.hint),
        }
    }
}

/// State of the simulation.
pub struct Validator<'a> {
    pub plan: &'a Plan,
    pub files: SimulatedFiles<'a>,
    /// Results so far.
    pub simulation: Simulation,
}

impl<'a> Validator<'a> {
    pub fn action(&self) -> &'a Action {
        &self.plan.actions[self.simulation.steps.len() - 1]
    }

    /// Returns the step of the current action.
    pub fn step(&mut self) -> &mut Step {
        self.simulation
            .steps
            .last_mut()
            .expect("a step was pushed before its action was judged")
    }

    /// Reports a mistake that no command can fix.
    pub fn refuse(&mut self, mistake: Mistake) {
        self.refuse_at(self.action().line, mistake);
    }

    /// Like [`Validator::refuse`], at a line of the plan below the action's heading.
    pub fn refuse_at(&mut self, line: usize, mistake: Mistake) {
        let diagnostic = mistake.of(self.action(), line);
        self.step().wrong = true;
        self.simulation.diagnostics.push(diagnostic);
    }

    /// Reports a mistake unless an earlier EXECUTE could fix it.
    pub fn refuse_unless_fixable(&mut self, mistake: Mistake) {
        if self.files.unknown_after_command {
            self.step().provisional = true;
        } else {
            self.refuse(mistake);
        }
    }
}

/// Returns the mistake of a line in some text of a plan.
pub fn elision_mistake(subject: &str, line: &str) -> Mistake {
    Mistake::new(
        format!("{subject} leaves out code: \"{}\"", quote(line)),
        "the text is written as it is; write out every line, or FIND only the lines that change",
    )
}

fn check_memos(validator: &mut Validator<'_>) {
    let mut first_uses: BTreeMap<&str, &MemoChange> = BTreeMap::new();
    let memos = validator.files.facts.memos();
    for change in &validator.plan.memos {
        let exists = memos.contains(&change.text);
        let mistake = match (first_uses.get(change.text.as_str()), change.verb) {
            (Some(first), verb) if first.verb == verb => Some((
                format!("the memo is named twice, first at line {}", first.line),
                "keep one line",
            )),
            (Some(first), _) => Some((
                format!(
                    "the memo is added and removed, first at line {}",
                    first.line
                ),
                "keep only the line that you want",
            )),
            (None, Verb::Add) if exists => {
                Some(("the memo already exists".to_owned(), "leave the line out"))
            }
            (None, Verb::Remove) if !exists => Some((
                "there is no such memo".to_owned(),
                "copy the memo that you want to remove word for word",
            )),
            (None, _) => None,
        };

        first_uses.entry(&change.text).or_insert(change);
        if let Some((message, hint)) = mistake {
            let message = format!("{message}: `{}`", sanitize_line(&change.text));
            let diagnostic = Diagnostic::new(change.line, message).hint(hint);
            validator.simulation.diagnostics.push(diagnostic);
        }
    }
}

/// Validates the part of a path that does not exist yet. Returns whether it can be judged further.
fn check_name(validator: &mut Validator<'_>) -> anyhow::Result<bool> {
    let kind = &validator.action().kind;
    let cwd = kind.command().and_then(|command| command.cwd.as_ref());
    let Some(path) = kind.worktree_path().or(cwd) else {
        return Ok(true);
    };
    let Err(error) = path.fit_for_new(existing_prefix(validator, path)?) else {
        return Ok(true);
    };

    // Only an existing file can have such a name.
    let message = format!("{error}: \"{}\"", quote(path.as_str()));
    let hint =
        "write `[path/from/root](/path/from/root)`, text and destination alike, inside the project";
    validator.refuse(Mistake::new(message, hint));
    Ok(false)
}

fn existing_prefix(validator: &Validator<'_>, path: &RepoPath) -> anyhow::Result<usize> {
    for name in std::iter::once(path.clone()).chain(path.parents()) {
        if validator.files.look_up(&name)? != Lookup::Absent {
            return Ok(name.as_str().len());
        }
    }
    Ok(0)
}

fn check_handover_order(validator: &mut Validator<'_>) {
    let plan = validator.plan;
    let leaving: Vec<usize> = (0..plan.actions.len())
        .filter(|&n| plan.actions[n].kind.hands_over())
        .collect();
    let mut refuse = |n: usize, message: String, hint: &str| {
        let action = &plan.actions[n];
        validator.simulation.steps[n].wrong = true;
        let mistake = Mistake::new(message, hint).of(action, action.line);
        validator.simulation.diagnostics.push(mistake);
    };

    match leaving[..] {
        [n] if n + 1 < plan.actions.len() => refuse(
            n,
            format!("{} is not the last action", plan.actions[n].kind.name()),
            "put it at the end: nothing of this plan runs after it",
        ),
        [first, ref others @ ..] => {
            let line = plan.actions[first].line;
            let message = format!("the plan hands over twice, first at line {line}");
            for &n in others {
                refuse(n, message.clone(), "keep one INVOKE or CONCLUDE");
            }
        }
        [] => {}
    }
}

/// Hint if no similar name exists.
const STRUCTURE_HINT: &str = "the project structure in the input lists what exists";

/// Reports a missing resource. Whether a page is reachable shows only when it is fetched.
pub fn check_resource_exists(
    validator: &mut Validator<'_>,
    resource: &Resource,
) -> anyhow::Result<()> {
    match resource {
        Resource::Url(_) => {}
        Resource::File(path) => {
            if let Some(mistake) = missing_resource(validator, path)? {
                validator.refuse_unless_fixable(mistake);
            }
        }
        Resource::Artifact(_) if validator.files.facts.has_artifact(resource) => {}
        Resource::Artifact(_) => {
            let message = format!(
                "there is no artifact `{}`",
                sanitize_line(&resource.to_string())
            );
            validator.refuse(Mistake::new(
                message,
                "name an executed turn and one of its files",
            ));
        }
    }

    Ok(())
}

/// Returns the mistake of an action on a missing file, with the names of similar files or else the
/// given hint.
pub fn missing_file(
    validator: &Validator<'_>,
    path: &RepoPath,
    otherwise: &str,
) -> anyhow::Result<Mistake> {
    let names = validator.files.names_like(path)?;
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", sanitize_line(name)))
        .collect();
    let hint = match names.as_slice() {
        [] => otherwise.to_owned(),
        names => format!("there is {}", names.join(" and ")),
    };
    let message = format!("there is no file `{}`", sanitize_line(path.as_str()));
    Ok(Mistake::new(message, hint))
}

fn missing_resource(validator: &Validator<'_>, path: &RepoPath) -> anyhow::Result<Option<Mistake>> {
    let rendered = sanitize_line(path.as_str());
    let entry = validator.files.look_up(path)?;
    Ok(match entry {
        Lookup::File(_) | Lookup::Dir => None,
        Lookup::Absent => Some(missing_file(validator, path, STRUCTURE_HINT)?),
        Lookup::Other(_) | Lookup::Blocked(..) => {
            let obstacle = validator.files.obstacle(path, &entry)?.unwrap_or_default();
            let destination = validator.files.destination(path, &entry)?;
            let hint = destination.map_or_else(
                || hint_for(&entry).to_owned(),
                |path| format!("name `{}`, to which it leads", sanitize_line(path.as_str())),
            );
            Some(Mistake::new(format!("`{rendered}` {obstacle}"), hint))
        }
    })
}

fn hint_for(entry: &Lookup) -> &'static str {
    match entry {
        Lookup::Other(LEFT_OUT) | Lookup::Blocked(_, LEFT_OUT) => {
            "name another file; the user can add this one with `teddy context add`"
        }
        _ => "name the file itself",
    }
}

#[cfg(test)]
mod tests;
