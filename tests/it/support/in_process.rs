//! Workflows in the test's own process: no program is started, and decisions come from a script.
//!
//! `repo.workflow()` names a call, such as `repo.workflow().plan("make b")`. Everything that the user
//! would see of it (what is told on the way, the result, the error with its hint and exit code) is
//! one [`Reply`], to be compared as a whole.
//!
//! The environment of the process is pinned (`teddy::host::env::pin`), so no setting of the machine
//! and no clock has a say. Commands of a plan don't run here: they need a supervisor, which is the
//! program itself. And a process that waits for commands kills strays, among them what other tests
//! run in terminals. Tests of plans with EXECUTE start the program, and those of a `command:` model
//! too: it runs in the current directory, which is the one of the tests.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::{Value, json};
use teddy::project::{Project, ProjectOptions, UserDirs};
use teddy::query::history;
use teddy::query::log;
use teddy::query::paths;
use teddy::session::input::{ListScope, ResourceBody};
use teddy::session::name::SessionName;
use teddy::session::turn::Turn;
use teddy::ui::style::{self, Paint};
use teddy::ui::{mistakes, notice};
use teddy::workflow::ask::{AskOptions, ask};
use teddy::workflow::context::edit::{self, ListEdit};
use teddy::workflow::doctor::Patient;
use teddy::workflow::execute::execute_or_plan;
use teddy::workflow::execute::options::{ExecuteOptions, PlanFile};
use teddy::workflow::execute::result::{
    DeclineReply, ExecuteResult, RecordedTurn, ReviewedPlan, TurnEnding,
};
use teddy::workflow::lifecycle::start_session;
use teddy::workflow::lifecycle::{branch_session, switch_session};
use teddy::workflow::model::agents;
use teddy::workflow::pick::{PickOptions, pick};
use teddy::workflow::plan::{PlanOptions, WaitingPlan, plan_next_turn};
use teddy::workflow::record::{RecordOptions, record};
use teddy::workflow::rerun::rerun;
use teddy::workflow::restore::steps::{redo, undo};
use teddy::workflow::restore::{OnOverlap, RestoreOptions, RestoreResult, restore};
use teddy::workflow::resume::{Console, Ended, ResumeOptions, Typed, resume};
use teddy::workflow::retry::{RetryOptions, retry};
use teddy::workflow::trust::adopt_session;
use teddy::workflow::user::{User, telling};
use teddy::workflow::verify::verify_sessions;
use teddy::workspace::recover::Depth;

use super::TestRepo;
use super::scripted_user::{Attendant, ScriptedUser, SharedText};

/// The value of `FAKE_KEY`, which [`super::fake::Fake::config`] names. Does not look like a key, so
/// only its exact value can identify it.
pub const KEY: &str = "hunter2-hunter2-hunter2";

/// Pins the environment of this process to one that no machine has a part in.
fn pin_environment() {
    let path = teddy::host::env::var_os("PATH").unwrap_or_default();
    let variables = [
        ("PATH", path),
        ("HOME", OsString::from("/dev/null")),
        ("GIT_CONFIG_NOSYSTEM", OsString::from("1")),
        ("GIT_CONFIG_GLOBAL", OsString::from("/dev/null")),
        ("GIT_ATTR_NOSYSTEM", OsString::from("1")),
        ("GIT_TEST_FSYNC", OsString::from("0")),
        ("TEDDY_NOW", OsString::from("2026-01-02T03:04:05+00:00")),
        ("TEDDY_DISCOVERY", OsString::from("off")),
        // For the commits that git makes when turns land.
        ("GIT_AUTHOR_NAME", OsString::from("Test")),
        ("GIT_AUTHOR_EMAIL", OsString::from("test@localhost")),
        ("GIT_COMMITTER_NAME", OsString::from("Test")),
        ("GIT_COMMITTER_EMAIL", OsString::from("test@localhost")),
        // The key that `Fake::config` names.
        ("FAKE_KEY", OsString::from(KEY)),
    ];
    let variables: BTreeMap<OsString, OsString> = variables
        .into_iter()
        .map(|(name, value)| (name.into(), value))
        .collect();
    teddy::host::env::pin(variables);
}

/// Everything that a call showed, with paths, ids and token counts replaced.
#[derive(Debug)]
#[must_use]
pub struct Reply {
    text: String,
    /// Whether the program would have ended with 0.
    is_done: bool,
}

impl Reply {
    /// Returns whether the call did all that it was asked for.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Fails the test unless the call did all that it was asked for.
    #[track_caller]
    pub fn done(self) -> String {
        assert!(self.is_done, "{}", self.text);
        self.text
    }

    /// Returns the text of a call that refused, or did less than it was asked for.
    #[track_caller]
    pub fn refused(self) -> String {
        assert!(!self.is_done, "{}", self.text);
        self.text
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns options of a restore that resolves overlaps in this way.
pub fn resolving(on_overlap: OnOverlap) -> RestoreOptions {
    RestoreOptions {
        on_overlap,
        ..RestoreOptions::default()
    }
}

/// A call that is not made yet: where, in which session, with which settings and which user.
pub struct Workflow<'a> {
    repo: &'a TestRepo,
    folder: PathBuf,
    session: Option<String>,
    settings: Vec<(String, String)>,
    user: RefCell<ScriptedUser>,
}

impl TestRepo {
    /// Returns a call in this process, by a user who approves everything and is not there.
    pub fn workflow(&self) -> Workflow<'_> {
        pin_environment();
        Workflow {
            repo: self,
            folder: self.path(),
            session: None,
            settings: Vec::new(),
            user: RefCell::new(ScriptedUser::absent()),
        }
    }
}

impl Workflow<'_> {
    /// Names the session, as `-s` does.
    pub fn session(mut self, name: &str) -> Self {
        self.session = Some(name.to_owned());
        self
    }

    /// Gives a setting for this call, as `-c key=value` does.
    pub fn setting(mut self, key: &str, value: &str) -> Self {
        self.settings.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Takes place in a directory below the worktree, or in another worktree.
    pub fn below(mut self, path: &str) -> Self {
        self.folder = self.folder.join(path);
        self
    }

    /// Takes place with a user who is there.
    pub fn with(mut self, user: ScriptedUser) -> Self {
        self.user = RefCell::new(user);
        self
    }

    fn user_dirs(&self) -> UserDirs {
        UserDirs {
            home: Some(self.repo.beside("home")),
            config: self.repo.beside("home/config/teddy"),
            config_file: self.repo.beside("teddy.yaml"),
            cache: self.repo.beside("home/cache/teddy"),
        }
    }

    fn project_options(&self) -> anyhow::Result<ProjectOptions> {
        let session = self.session.as_deref().map(SessionName::from_address);
        Ok(ProjectOptions {
            session: session.transpose()?,
            settings: self.settings.clone(),
            reads_only: false,
        })
    }

    /// Opens the project.
    pub fn open(&self) -> anyhow::Result<Project> {
        Project::open(&self.folder, self.user_dirs(), self.project_options()?)
    }

    /// Returns what `doctor` checks, as its JSON has it. Sees no sandbox: this process has none.
    #[track_caller]
    pub fn examine(&self) -> Value {
        let options = self.project_options().unwrap();
        let patient = Patient::admit(&self.folder, self.user_dirs(), options).unwrap();
        serde_json::to_value(patient.examine(None)).unwrap()
    }

    /// Makes the call: `act` returns what it came to, as text, and whether that is all that was
    /// wanted.
    pub fn call(
        &self,
        act: impl FnOnce(&mut Project, &mut dyn User, &mut dyn Write) -> anyhow::Result<bool>,
    ) -> Reply {
        let (mut log, mut script) = (SharedText::default(), self.user.take());
        let mut user = Attendant::new(&mut script, &log);
        let result = self
            .open()
            .and_then(|mut project| act(&mut project, &mut user, &mut log));
        drop(user);
        let is_done = result.unwrap_or_else(|error| {
            log.push(&teddy::cli::error_report(&error));
            false
        });
        let rest = script.rest();
        assert!(
            rest.is_empty(),
            "nobody asked what the script answers: {rest}"
        );
        Reply {
            text: filtered(self.repo, &log.text()),
            is_done,
        }
    }

    /// Reads something; the call must succeed.
    #[track_caller]
    pub(super) fn read<T>(&self, look: impl FnOnce(&Project) -> anyhow::Result<T>) -> T {
        let found = self.open().and_then(|project| look(&project));
        found.unwrap_or_else(|error| panic!("{}", teddy::cli::error_report(&error)))
    }

    /// Starts a session.
    pub fn new_session(&self, name: &str) -> Reply {
        self.call(|project, user, out| {
            let name = SessionName::parse(name)?;
            let agent = agents::agent(project, &project.settings.agent)?;
            let transaction = project.enter("new", user)?;
            start_session(&transaction, project, &name, &agent)?;
            writeln!(out, "started {name} with {}", agent.name)?;
            Ok(true)
        })
    }

    /// Adds resources to the session's list.
    #[track_caller]
    pub fn add(&self, resources: &[&str]) {
        self.edit(ListScope::Session, ListEdit::Add, resources)
            .done();
    }

    /// Changes a context list.
    pub fn edit(&self, scope: ListScope, how: ListEdit, resources: &[&str]) -> Reply {
        self.call(|project, user, out| {
            let resources: Vec<String> = resources.iter().map(|name| (*name).to_owned()).collect();
            let entries = paths::entries(&project.repository, &self.folder, &resources)?;
            for edited in edit::edit_context(project, scope, how, &entries, user)? {
                let word = match (how, edited.changed) {
                    (ListEdit::Add, true) => "added",
                    (ListEdit::Remove, true) => "removed",
                    (_, false) => "unchanged",
                };
                let missing = if edited.is_missing { ", missing" } else { "" };
                let near = edited.near.map(|near| format!(", near `{near}`"));
                let near = near.unwrap_or_default();
                let list = scope.title().to_lowercase();
                writeln!(out, "{list}: {word} {}{missing}{near}", edited.name)?;
            }
            Ok(true)
        })
    }

    /// Returns what the next input will show, in rows as `context list --json` has them.
    #[track_caller]
    pub fn resources(&self, depth: u64) -> Value {
        let material = self.read(|project| edit::list_context(project, depth));
        let row = |shown: &teddy::session::input::InputResource| {
            json!({
                "resource": shown.resource,
                "scope": shown.scope.title().to_lowercase(),
                "tokens": shown.tokens,
                "missing": shown.body == ResourceBody::Missing,
            })
        };
        material.resources.iter().map(row).collect()
    }

    /// Makes the next input and returns it.
    #[track_caller]
    pub fn input(&self, depth: u64) -> String {
        let mut text = String::new();
        self.call(|project, user, _| {
            text = edit::make_context(project, depth, user)?;
            Ok(true)
        })
        .done();
        text
    }

    /// Plans a turn.
    pub fn plan(&self, message: &str) -> Reply {
        self.plan_with(PlanOptions {
            message: Some(message.to_owned()),
            ..PlanOptions::default()
        })
    }

    /// Plans a turn with an answer from elsewhere.
    pub fn plan_from(&self, message: &str, answer: &str) -> Reply {
        self.plan_with(PlanOptions {
            message: Some(message.to_owned()),
            from: Some(answer.to_owned()),
            ..PlanOptions::default()
        })
    }

    /// Plans a turn with the answer in a file beside the worktree.
    pub fn plan_file(&self, message: Option<&str>, name: &str) -> Reply {
        let answer = std::fs::read_to_string(self.repo.beside(name)).unwrap();
        self.plan_with(PlanOptions {
            message: message.map(str::to_owned),
            from: Some(answer),
            ..PlanOptions::default()
        })
    }

    /// Plans a turn.
    pub fn plan_with(&self, options: PlanOptions) -> Reply {
        self.call(|project, user, out| {
            let planned = plan_next_turn(project, &options, user)?;
            show_plan(out, &planned)?;
            Ok(planned.diagnostics.is_empty())
        })
    }

    /// Executes the plan that waits.
    pub fn execute(&self) -> Reply {
        self.execute_with(None, true)
    }

    /// Executes a plan from elsewhere.
    pub fn execute_text(&self, text: &str) -> Reply {
        self.execute_with(Some(text), true)
    }

    /// Executes a plan from elsewhere, which must succeed.
    #[track_caller]
    pub fn run_plan(&self, text: &str) {
        self.execute_text(text).done();
    }

    /// Executes a plan from elsewhere or the one that waits; a rejected one goes back to the model
    /// with `replan`.
    pub fn execute_with(&self, text: Option<&str>, replan: bool) -> Reply {
        let options = ExecuteOptions {
            replan,
            ..ExecuteOptions::default()
        };
        self.execute_by(text, &options)
    }

    /// Executes the plan in a file of the worktree.
    pub fn execute_file(&self, name: &str, replan: bool) -> Reply {
        let text = self.repo.read(name);
        let options = ExecuteOptions {
            file: Some(PlanFile {
                name: name.to_owned(),
                text: text.clone(),
            }),
            replan,
            ..ExecuteOptions::default()
        };
        self.execute_by(Some(&text), &options)
    }

    /// Executes a plan from elsewhere or the one that waits.
    pub fn execute_by(&self, text: Option<&str>, options: &ExecuteOptions) -> Reply {
        self.call(|project, user, out| {
            match execute_or_plan(project, text, options, user, &|_, _| {})? {
                ExecuteResult::Refused(refused) => {
                    let session = refused.session.map(|session| format!(" in {session}"));
                    writeln!(out, "not a plan{}", session.unwrap_or_default())?;
                    let listed = mistakes::listed(&refused.diagnostics);
                    out.write_all(style::text(&listed, Paint::Bare).as_bytes())?;
                    Ok(false)
                }
                ExecuteResult::Reviewed(ReviewedPlan::Undecided(undecided)) => {
                    writeln!(out, "turn {} undecided", undecided.turn)?;
                    Ok(true)
                }
                ExecuteResult::Reviewed(ReviewedPlan::Recorded(recorded)) => {
                    show_turn(out, &recorded)?;
                    Ok(is_done(&recorded))
                }
            }
        })
    }

    /// Goes on as long as the model has something to do, as `resume -y` without a terminal.
    pub fn resume(&self, message: Option<&str>) -> Reply {
        self.resume_with(ResumeOptions {
            message: message.map(str::to_owned),
            alone: true,
            ..ResumeOptions::default()
        })
    }

    /// Goes on unattended for some turns at most.
    pub fn resume_turns(&self, message: Option<&str>, most: u32) -> Reply {
        self.resume_with(ResumeOptions {
            message: message.map(str::to_owned),
            yolo: true,
            alone: true,
            max_turns: Some(most),
            ..ResumeOptions::default()
        })
    }

    /// Goes on unattended: approves everything until something stops it.
    pub fn resume_yolo(&self, message: &str) -> Reply {
        self.resume_with(ResumeOptions {
            message: Some(message.to_owned()),
            yolo: true,
            alone: true,
            ..ResumeOptions::default()
        })
    }

    /// Goes on with a session; each turn and the reason for the end are shown.
    pub fn resume_with(&self, options: ResumeOptions) -> Reply {
        self.call(|project, user, out| {
            let resumed = resume(project, options, user, &mut TurnLog(out))?;
            writeln!(out, "ended: {:?}", resumed.ended)?;
            let is_complete = matches!(resumed.ended, Ended::Left | Ended::Complete(_));
            Ok(is_complete && resumed.last.is_none_or(|last| is_done(&last)))
        })
    }

    /// Undoes turns.
    pub fn undo(&self, steps: u64) -> Reply {
        self.undo_with(steps, &RestoreOptions::default())
    }

    /// Undoes turns.
    pub fn undo_with(&self, steps: u64, options: &RestoreOptions) -> Reply {
        self.call(|project, user, out| show_restore(out, &undo(project, steps, options, user)?))
    }

    /// Redoes turns.
    pub fn redo(&self, steps: u64) -> Reply {
        self.redo_with(steps, &RestoreOptions::default())
    }

    /// Redoes turns.
    pub fn redo_with(&self, steps: u64, options: &RestoreOptions) -> Reply {
        self.call(|project, user, out| show_restore(out, &redo(project, steps, options, user)?))
    }

    /// Restores a turn.
    pub fn restore(&self, turn: &str) -> Reply {
        self.restore_with(turn, &RestoreOptions::default())
    }

    /// Restores a turn.
    pub fn restore_with(&self, turn: &str, options: &RestoreOptions) -> Reply {
        self.call(|project, user, out| show_restore(out, &restore(project, turn, options, user)?))
    }

    /// Starts a session at a turn.
    pub fn branch(&self, turn: &str, name: &str) -> Reply {
        self.call(|project, user, out| {
            branch_session(project, turn, &SessionName::parse(name)?, user)?;
            writeln!(out, "branched {name} at {turn}")?;
            Ok(true)
        })
    }

    /// Switches to a session.
    pub fn switch(&self, name: &str) -> Reply {
        self.call(|project, _, out| {
            switch_session(project, &SessionName::from_address(name)?)?;
            writeln!(out, "switched to {name}")?;
            Ok(true)
        })
    }

    /// Accepts a session, and goes on with it.
    pub fn adopt(&self, name: &str) -> Reply {
        self.call(|project, user, out| {
            let session = SessionName::from_address(name)?;
            let adopted = adopt_session(project, &session, user)?;
            project.use_session(&session)?;
            let waits = adopted.plan.map_or("", |_| ", a plan waits");
            writeln!(out, "adopted {session}: {} turns{waits}", adopted.turns)?;
            Ok(true)
        })
    }

    /// Sends the input of a turn again.
    pub fn retry(&self, turn: &str, model: Option<&str>) -> Reply {
        self.call(|project, user, out| {
            let options = RetryOptions {
                turn: turn.to_owned(),
                model: model.map(str::to_owned),
            };
            let planned = retry(project, &options, user)?;
            show_plan(out, &planned)?;
            writeln!(out, "in use: {}", planned.session)?;
            Ok(planned.diagnostics.is_empty())
        })
    }

    /// Runs the plan of a turn again.
    pub fn rerun(&self, turn: &str) -> Reply {
        self.call(|project, user, out| {
            let replayed = rerun(project, turn, user)?;
            let is_same = replayed.expected == replayed.tree;
            let word = if is_same { "same" } else { "different" };
            writeln!(
                out,
                "turn {} {word} {:?}",
                replayed.turn, replayed.differences
            )?;
            Ok(is_same)
        })
    }

    /// Applies turns of other sessions.
    pub fn pick(&self, turns: &[&str], options: &PickOptions) -> Reply {
        let turns: Vec<String> = turns.iter().map(|turn| (*turn).to_owned()).collect();
        self.call(|project, user, out| {
            let result = pick(project, &turns, options, user)?;
            for picked in &result.picked {
                let recorded = picked.recorded.map(|turn| format!(" as turn {turn}"));
                let recorded = recorded.unwrap_or_default();
                writeln!(out, "picked {}:{}{recorded}", picked.session, picked.turn)?;
                show_paths(
                    out,
                    &[("write", &picked.written), ("delete", &picked.deleted)],
                )?;
            }
            show_paths(out, &[("overlap", &result.overlaps)])?;
            for obstacle in &result.obstacles {
                writeln!(out, "{}", notice::obstacle(obstacle))?;
            }
            Ok(result.overlaps.is_empty())
        })
    }

    /// Records what changed without TeDDy.
    pub fn record(&self, message: &str) -> Reply {
        self.record_with(&RecordOptions {
            message: message.to_owned(),
            ..RecordOptions::default()
        })
    }

    /// Records what changed without TeDDy.
    pub fn record_with(&self, options: &RecordOptions) -> Reply {
        self.call(|project, user, out| {
            let result = record(project, options, user)?;
            let started = if result.started {
                ", started for it"
            } else {
                ""
            };
            writeln!(out, "turn {} of {}{started}", result.turn, result.session)?;
            show_paths(
                out,
                &[("write", &result.written), ("delete", &result.deleted)],
            )?;
            Ok(true)
        })
    }

    /// Asks a question about the files.
    pub fn ask(&self, question: &str) -> Reply {
        self.call(|project, user, out| {
            let options = AskOptions {
                question: question.to_owned(),
                ..AskOptions::default()
            };
            let asked = ask(project, &options, user)?;
            for turn in &asked.turns {
                show_turn(out, turn)?;
            }
            match &asked.answer {
                Some(answer) => writeln!(out, "answer: {answer}")?,
                None => writeln!(out, "no answer")?,
            }
            Ok(asked.answer.is_some())
        })
    }

    /// Finishes what a crash left, and repairs what is damaged.
    pub fn recover(&self) -> Reply {
        self.call(|project, user, out| {
            let did = project.recover(Depth::Everything, &mut telling(user))?;
            writeln!(out, "recovered: {did}")?;
            Ok(true)
        })
    }

    /// Checks all sessions; what is wrong with them is in the reply.
    pub fn verify(&self) -> Reply {
        self.call(|project, _, out| {
            let mut is_sound = true;
            for verified in verify_sessions(project, &[])? {
                is_sound &= verified.faults.is_empty();
                writeln!(out, "{}: {:?}", verified.session, verified.faults)?;
            }
            Ok(is_sound)
        })
    }

    /// Returns the prompt of an agent.
    #[track_caller]
    pub fn prompt(&self, agent: &str) -> String {
        self.read(|project| Ok(agents::agent(project, agent)?.system_prompt))
    }

    /// Returns the state, as `status --json` has it.
    #[track_caller]
    pub fn status(&self) -> Value {
        self.read(|project| {
            Ok(serde_json::to_value(history::session_status(
                project,
                Vec::new(),
                |_| None,
            )?)?)
        })
    }

    /// Returns the turns, newest first, as `log --json` has them.
    #[track_caller]
    pub fn log(&self) -> Value {
        self.read(|project| Ok(serde_json::to_value(log::log(project, usize::MAX)?)?))
    }

    /// Returns the sessions, as `sessions --json` has them.
    #[track_caller]
    pub fn sessions(&self) -> Value {
        self.read(|project| Ok(serde_json::to_value(history::session_rows(project)?)?))
    }

    /// Returns a turn, or the draft, as `log --json` has it.
    #[track_caller]
    pub fn turn(&self, name: &str) -> Value {
        self.read(|project| {
            let turn = turn_of(project, name)?;
            Ok(serde_json::to_value(log::one_row(project, &turn)?)?)
        })
    }

    /// Returns the names of a turn's files.
    #[track_caller]
    pub fn artifacts(&self, turn: &str) -> Vec<String> {
        self.read(|project| {
            let turn = turn_of(project, turn)?;
            Ok(project.repository.files(turn.tree)?.into_keys().collect())
        })
    }

    /// Returns a file of a turn, or of the draft.
    #[track_caller]
    pub fn artifact(&self, turn: &str, name: &str) -> String {
        self.read(|project| {
            let turn = turn_of(project, turn)?;
            let files = project.repository.files(turn.tree)?;
            let content = files
                .get(name)
                .unwrap_or_else(|| panic!("no {name} among {:?}", files.keys()));
            Ok(String::from_utf8_lossy(content).into_owned())
        })
    }

    /// Looks for a turn; the reply says why there is none.
    pub fn find_turn(&self, name: &str) -> Reply {
        self.call(|project, _, out| {
            let turn = turn_of(project, name)?;
            writeln!(out, "turn {} of {}", turn.number(), turn.session)?;
            Ok(true)
        })
    }
}

/// Returns a turn, or the draft, by the name that commands take.
fn turn_of(project: &Project, name: &str) -> anyhow::Result<Turn> {
    project
        .store()
        .turn_or_draft(&project.session_of(name)?, name)
}

/// Whether the program ends with 0 after a turn.
fn is_done(recorded: &RecordedTurn) -> bool {
    let ran = matches!(
        recorded.ending,
        TurnEnding::Ran { failed: false, .. } | TurnEnding::Declined { .. }
    );
    let is_told = recorded.unanswered().is_some() || recorded.answer.is_some();
    ran && recorded.is_synced() && !is_told
}

/// Writes each turn of a loop as soon as it is recorded.
struct TurnLog<'a>(&'a mut dyn Write);

impl Console for TurnLog<'_> {
    fn recorded(&mut self, _project: &Project, turn: &RecordedTurn) -> anyhow::Result<()> {
        show_turn(self.0, turn)
    }

    fn failed(&mut self, error: anyhow::Error) {
        let _ = writeln!(self.0, "{}", teddy::cli::error_report(&error).trim_end());
    }

    fn typed(&mut self, _project: &mut Project, text: String) -> anyhow::Result<Typed> {
        Ok(Typed::Message(text))
    }
}

/// Writes a plan's title, or what is wrong with it.
fn show_plan(out: &mut dyn Write, planned: &WaitingPlan) -> anyhow::Result<()> {
    let count = planned.diagnostics.len();
    match count {
        0 if planned.answer.is_some() => writeln!(out, "answered turn {}", planned.turn)?,
        0 => writeln!(out, "planned turn {}: \"{}\"", planned.turn, planned.title)?,
        _ => writeln!(
            out,
            "planned turn {}: \"{}\", {count} mistakes",
            planned.turn, planned.title
        )?,
    }
    let listed = mistakes::listed(&planned.diagnostics);
    out.write_all(style::text(&listed, Paint::Bare).as_bytes())?;
    Ok(())
}

/// Writes everything about a turn that its user sees.
fn show_turn(out: &mut dyn Write, recorded: &RecordedTurn) -> anyhow::Result<()> {
    writeln!(out, "turn {} {}", recorded.turn, recorded.word())?;
    for file in &recorded.applied {
        writeln!(
            out,
            "  {} {}",
            format!("{:?}", file.change).to_lowercase(),
            file.path
        )?;
    }
    show_paths(out, &[("overlap", &recorded.overlaps)])?;
    for obstacle in &recorded.obstacles {
        writeln!(out, "  {}", notice::obstacle(obstacle))?;
    }
    for file in &recorded.not_captured {
        writeln!(out, "  not captured {}: {}", file.path, file.reason)?;
    }
    if let Some(cause) = recorded.interruption() {
        writeln!(out, "  interrupted: {cause}")?;
    }
    if let TurnEnding::Rejected { diagnostics, .. } = &recorded.ending {
        let listed = mistakes::listed(diagnostics);
        out.write_all(style::text(&listed, Paint::Bare).as_bytes())?;
    }
    if let TurnEnding::Declined { reply, .. } = &recorded.ending {
        let reply = match reply {
            DeclineReply::Left => "left at the question",
            DeclineReply::Nothing => "nothing instead",
            DeclineReply::Instead { message, .. } => message,
        };
        writeln!(out, "  declined: {reply}")?;
    }
    if let Some(question) = &recorded.question {
        writeln!(out, "  asks ({:?}): {}", question.answer, question.text)?;
    }
    if let Some(answer) = recorded
        .answer
        .as_ref()
        .filter(|_| recorded.question.is_none())
    {
        writeln!(out, "  answers: {answer}")?;
    }
    if let Some(conclusion) = recorded.conclusion() {
        writeln!(out, "  concludes: {conclusion}")?;
    }
    if let Some(planned) = recorded.replanned() {
        show_plan(out, planned)?;
    }
    Ok(())
}

/// Writes what a restore, an undo or a redo did.
fn show_restore(out: &mut dyn Write, result: &RestoreResult) -> anyhow::Result<bool> {
    let same = if result.same_turns {
        ""
    } else {
        ", not the same turns"
    };
    let recorded = if result.commit.is_some() {
        ""
    } else {
        ", not recorded"
    };
    writeln!(out, "at turn {}{same}{recorded}", result.turn)?;
    if !result.over.is_empty() {
        writeln!(out, "  over {:?}", result.over)?;
    }
    for passed in &result.passed_over {
        writeln!(out, "  passed over {}: {:?}", passed.turn, passed.why)?;
    }
    show_paths(
        out,
        &[
            ("write", &result.written),
            ("delete", &result.deleted),
            ("keep", &result.kept),
            ("conflict", &result.conflicts),
            ("overlap", &result.overlaps),
            ("not captured", &result.not_captured),
        ],
    )?;
    for missing in &result.missing {
        writeln!(out, "  missing in {}: {:?}", missing.path, missing.why)?;
    }
    for note in &result.notes {
        writeln!(out, "  {}", notice::restore_note(note))?;
    }
    Ok(result.overlaps.is_empty())
}

/// Writes a line for each path.
pub(super) fn show_paths(
    out: &mut dyn Write,
    rows: &[(&str, &Vec<String>)],
) -> std::io::Result<()> {
    for (word, paths) in rows {
        for path in *paths {
            writeln!(out, "  {word} {path}")?;
        }
    }
    Ok(())
}

/// What differs between runs or with every change of a prompt, and what stands for it.
static FILTERS: LazyLock<[(regex::Regex, &str); 12]> = LazyLock::new(|| {
    let filter = |pattern: &str| regex::Regex::new(pattern).unwrap();
    [
        (
            filter(
                r"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4,12}){0,4}|[0-9a-f]{12}|[0-9a-f]{40}|[0-9a-f]{64})\b",
            ),
            "[id]",
        ),
        (filter(r"([Aa]bout) [0-9,]+ tokens"), "$1 [n] tokens"),
        (filter(r"\bprocess [0-9]+"), "process [pid]"),
        (filter(r", [0-9]+ s\b"), ", [time]"),
        (filter(r" +[0-9]+\.[0-9] s\b"), " [time]"),
        (filter(r"\bgit [0-9]+(?:\.[0-9]+)+"), "git [version]"),
        // The directory of a test has a random name, which is in the input.
        (filter(r"\$[0-9.]+ (and the answer|at most)"), "$$[n] $1"),
        // git decides what a remote lacks.
        (filter(r"\b[0-9]+ objects, "), "[n] objects, "),
        (filter(r"\b[0-9]+\.[0-9] KiB"), "[n] KiB"),
        (filter(r#""duration_ms": [0-9]+"#), "\"duration_ms\": [n]"),
        (filter(r"\*\*Duration:\*\* [0-9]+ms"), "**Duration:** [n]"),
        (filter(r"127\.0\.0\.1:[0-9]+"), "[host]"),
    ]
});

/// Replaces what differs between runs or with every change of a prompt.
pub(super) fn filtered(repo: &TestRepo, text: &str) -> String {
    let base = repo.beside("");
    let base = base.display().to_string();
    // The length of a path decides where its line is wrapped.
    static WRAPPED: LazyLock<regex::Regex> =
        LazyLock::new(|| regex::Regex::new(r"\n *↪ ").unwrap());
    let text = WRAPPED.replace_all(text, "");
    let text = text.replace(base.trim_end_matches('/'), "[dir]");
    FILTERS.iter().fold(text, |text, (pattern, replacement)| {
        pattern.replace_all(&text, *replacement).into_owned()
    })
}
