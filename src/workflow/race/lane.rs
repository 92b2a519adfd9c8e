//! One lane of a race: a process that asks one model and saves the plan as its session's draft.
//!
//! It reads its order as a line of JSON from stdin and reports in lines of JSON on stdout. It stops
//! when stdin closes, so it cannot outlive the race.

use std::io::{BufRead as _, Write};
use std::str::FromStr as _;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::git::object::CommitId;
use crate::host::interrupt;
use crate::plan::Plan;
use crate::project::Project;
use crate::session::artifact;
use crate::text::damage::{FileChange, FileDamage, damage_to_files};
use crate::text::diff::counts;
use crate::workflow::dry_run::{DryRun, dry_run_at};
use crate::workflow::execute::prepare::RunEnv;
use crate::workflow::execute::stage::perform;
use crate::workflow::open_session::OpenSession;
use crate::workflow::plan::{PlanOptions, plan_next_turn};
use crate::workflow::trial::{action_of, cannot_test, last_lines};
use crate::workflow::user::{Approved, User};
use crate::workflow::validation::Beside;

const LAST_LINES: usize = 20;
const MAX_ORDER: u64 = 64 << 20;

/// Hidden command.
pub const WORD: &str = "__lane";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LaneOrder {
    pub model: String,
    pub message: String,
    /// The user's files.
    pub before: String,
    /// Shell command to run on the result.
    pub check: Option<String>,
    /// How many turns before the previous one the model sees.
    pub depth: u64,
    /// The user approved requests of programs in advance.
    pub approves: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneNews {
    Doing {
        what: String,
        /// So far.
        tokens: u64,
        /// So far, in dollars.
        cost: Option<f64>,
    },
    /// What the user should know about the run, for display.
    Remark(String),
    /// Always the last report.
    Planned(Box<LanePlan>),
    /// Always the last report.
    Failed {
        why: String,
        /// Of its calls, in dollars; `None` if unknown.
        cost: Option<f64>,
    },
}

/// Damage in a report.
const MAX_DAMAGE: usize = 50;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LanePlan {
    pub turn: u64,
    pub title: String,
    /// Mistakes that prevent its execution.
    pub mistakes: usize,
    /// Changed by the plan itself.
    pub files: usize,
    /// `None` if a file is binary or too large.
    pub added: Option<usize>,
    /// `None` like `added`.
    pub removed: Option<usize>,
    pub commands: usize,
    /// `None` if unknown.
    pub tokens_in: Option<u64>,
    /// `None` if unknown.
    pub tokens_out: Option<u64>,
    /// In dollars; `None` if unknown.
    pub cost: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<LaneCheck>,
    /// Why the agent stopped before its work was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// By its own actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<FileDamage>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LaneCheck {
    pub command: String,
    /// `None` if the plan failed before the check.
    pub exit_code: Option<i32>,
    pub seconds: f64,
    /// Of the output.
    pub tail: Vec<String>,
}

impl LaneCheck {
    /// Returns whether the command could not be run, so that it tested nothing.
    pub fn has_not_run(&self) -> bool {
        self.exit_code.is_some_and(cannot_test)
    }
}

impl LaneOrder {
    /// Also requests an interrupt when stdin closes.
    pub fn take() -> anyhow::Result<LaneOrder> {
        let mut line = Vec::new();
        let stdin = std::io::stdin();
        let mut limited = std::io::Read::take(stdin.lock(), MAX_ORDER);
        limited.read_until(b'\n', &mut line)?;
        let order = serde_json::from_slice(&line)?;

        // The thread needs the lock on stdin.
        drop(limited);
        std::thread::spawn(|| {
            let mut discarded = Vec::new();
            while matches!(
                std::io::stdin().lock().read_until(b'\n', &mut discarded),
                Ok(1..)
            ) {
                discarded.clear();
            }
            // The race is over, or its process was killed.
            interrupt::flag().store(true, Ordering::SeqCst);
        });
        Ok(order)
    }
}

pub fn run(project: &Project, order: &LaneOrder, user: &mut dyn User) -> anyhow::Result<LanePlan> {
    let before = CommitId::from_str(&order.before)?;
    let plan_options = PlanOptions {
        message: Some(order.message.clone()),
        model: Some(order.model.clone()),
        depth: order.depth,
        snapshot: Some(before),
        ..PlanOptions::default()
    };
    let planned = plan_next_turn(project, &plan_options, user)?;

    let tree = project.repository.commit(before)?.tree;
    let (tip, mut draft) = project.in_progress(&project.session()?)?;
    let run = dry_run_at(project, &tip, &draft, tree, Beside::Workspace)?;
    let model = planned.model.as_ref();
    let tokens = model.and_then(|model| model.tokens());
    let (added, removed) = lines(&run);
    let mut lane_plan = LanePlan {
        turn: planned.turn,
        title: planned.title.clone(),
        // A prose answer is no plan that could win.
        mistakes: planned.diagnostics.len() + usize::from(planned.answer.is_some()),
        files: run.files.len(),
        added,
        removed,
        commands: run.commands,
        tokens_in: tokens.map(|(read, _)| read),
        tokens_out: tokens.map(|(_, written)| written),
        cost: model.and_then(|model| model.cost),
        check: None,
        stopped: draft.meta.agent_stop().map(str::to_owned),
        damage: damage_of(&run),
    };

    if let Some(command) = order.check.as_deref().filter(|_| lane_plan.mistakes == 0) {
        let check = check(project, before, command, user)?;
        let yaml = serde_yaml::to_string(&check)?;
        draft.artifacts.insert(artifact::CHECK, yaml);
        project.store().save_draft(&tip, &mut draft)?;
        lane_plan.check = Some(check);
    }

    Ok(lane_plan)
}

/// What the calls of a lane that failed used, in dollars.
pub fn lost(project: &Project) -> anyhow::Result<Option<f64>> {
    let (_, draft) = project.in_progress(&project.session()?)?;
    Ok(draft.meta.spent)
}

/// As the plan would leave the files.
fn check(
    project: &Project,
    before: CommitId,
    command: &str,
    user: &mut dyn User,
) -> anyhow::Result<LaneCheck> {
    let session = OpenSession::current(project, "race", user)?;
    let draft = &session.draft;
    let name = session.name().dir_name();
    let env = RunEnv {
        name: &name,
        tip: &session.tip,
        before,
        tree: project.repository.commit(before)?.tree,
        // The files from which all lanes start were recorded when the race began.
        users_own: false,
        is_replay: true,
        artifacts: &draft.artifacts,
    };

    let text = draft.artifacts.text_or_empty(artifact::PLAN);
    let (plan, _) = crate::plan::parse(&text);
    // Without the plan's own commands, which the user has not reviewed.
    let approved = approved(plan, command);
    let began = Instant::now();
    let result = perform(project, &env, &approved, user)?;
    let outcome = result.ran.outcomes.last();
    let output = outcome.map(|outcome| outcome.output.as_slice());

    Ok(LaneCheck {
        command: command.to_owned(),
        exit_code: outcome.and_then(|outcome| outcome.exit_code),
        seconds: (began.elapsed().as_secs_f64() * 10.0).round() / 10.0,
        tail: last_lines(output.unwrap_or_default(), LAST_LINES),
    })
}

fn approved(mut plan: Plan, command: &str) -> Approved {
    let mut actions: Vec<bool> = plan
        .actions
        .iter()
        .map(|action| action.kind.path().is_some())
        .collect();
    plan.actions.push(action_of(command));
    actions.push(true);

    Approved {
        memos: vec![false; plan.memos.len()],
        plan,
        actions,
        modified: Vec::new(),
    }
}

fn damage_of(run: &DryRun) -> Vec<FileDamage> {
    let files = run.files.iter().map(|(path, file)| FileChange {
        path,
        before: file.before.as_deref(),
        after: file.after.as_deref(),
        mode: file.mode.damage(),
        facts: file.facts,
    });
    let files: Vec<FileChange<'_>> = files.collect();
    let found = damage_to_files(&files).into_iter();
    found
        .map(|(at, damage)| damage.to_file(files[at].path))
        .take(MAX_DAMAGE)
        .collect()
}

fn lines(run: &DryRun) -> (Option<usize>, Option<usize>) {
    let sums = run.files.values().try_fold((0, 0), |sum, file| {
        let sides = [&file.before, &file.after].map(|side| side.as_deref().unwrap_or_default());
        let [before, after] = sides.map(|bytes| str::from_utf8(bytes).ok());
        let more = counts(before?, after?);
        Some((sum.0 + more.added, sum.1 + more.removed))
    });
    sums.unzip()
}

/// Ignores errors: if nothing reads stdout, stdin is closed as well and stops the lane.
pub fn send_news(out: &mut dyn Write, news: &LaneNews) {
    if let Ok(mut line) = serde_json::to_vec(news) {
        line.push(b'\n');
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}
