//! One lane of a race: a process that asks one model and leaves the plan as its session's draft.
//!
//! It gets its order as a line of JSON on stdin, tells what happens in lines of JSON on stdout, and
//! stops when its stdin closes: whoever started it is gone, or wants no more.

use std::io::{BufRead as _, Write};
use std::str::FromStr as _;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::git::object::CommitId;
use crate::host::interrupt;
use crate::plan::Plan;
use crate::session::artifact;
use crate::text::diff::counts;
use crate::workflow::dry_run::{DryRun, dry_run_at};
use crate::workflow::execute::run_env::{Reach, RunEnv};
use crate::workflow::execute::stage::perform;
use crate::workflow::plan::{PlanOptions, plan};
use crate::workflow::project::Project;
use crate::workflow::trial::{action_of, last_lines};
use crate::workflow::user::{Approved, User};

/// So many last lines of a check's output are told.
const LAST_LINES: usize = 20;
/// The longest order, in bytes.
const MAX_ORDER: u64 = 64 << 20;

/// The word of the command line that makes a process a lane.
pub const WORD: &str = "__lane";

/// What a lane is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LaneOrder {
    /// Its session.
    pub session: String,
    /// The model.
    pub model: String,
    /// The message.
    pub message: String,
    /// The snapshot of the user's files.
    pub before: String,
    /// What is run on what the model made.
    pub check: Option<String>,
    /// How many turns before the previous one the model sees.
    pub depth: u64,
    /// Whether the user has approved beforehand what a program asks.
    pub approves: bool,
}

/// What a lane tells.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneNews {
    /// What the model does.
    Doing {
        /// In words.
        what: String,
        /// The tokens so far.
        tokens: u64,
        /// The dollars so far.
        cost: Option<f64>,
    },
    /// The plan is there. Nothing comes behind it.
    Planned(Box<LanePlan>),
    /// There is none, and why. Nothing comes behind it.
    Failed(String),
}

/// The plan of a lane.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LanePlan {
    /// The turn.
    pub turn: u64,
    /// Its title.
    pub title: String,
    /// How many mistakes keep it from being executed.
    pub mistakes: usize,
    /// How many files it changes itself.
    pub files: usize,
    /// The lines that come; null where a file is binary or too large to be compared.
    pub added: Option<usize>,
    /// The lines that go.
    pub removed: Option<usize>,
    /// How many commands it would run as well.
    pub commands: usize,
    /// The tokens read; null where the model does not tell.
    pub tokens_in: Option<u64>,
    /// The tokens written.
    pub tokens_out: Option<u64>,
    /// Dollars; null where no price is known.
    pub cost: Option<f64>,
    /// What the check came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<LaneCheck>,
}

/// What the check came to on what a model made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LaneCheck {
    /// The line of the shell.
    pub command: String,
    /// Its exit code; null where the plan could not be carried out before it.
    pub exit_code: Option<i32>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The last lines of its output.
    pub tail: Vec<String>,
}

impl LaneOrder {
    /// Takes the order from stdin, and stops this process's work when that closes.
    ///
    /// # Errors
    /// There is none.
    pub fn take() -> anyhow::Result<LaneOrder> {
        let mut line = Vec::new();
        let stdin = std::io::stdin();
        let mut limited = std::io::Read::take(stdin.lock(), MAX_ORDER);
        limited.read_until(b'\n', &mut line)?;
        let order = serde_json::from_slice(&line)?;

        drop(limited);
        std::thread::spawn(|| {
            let mut rest = Vec::new();
            while matches!(
                std::io::stdin().lock().read_until(b'\n', &mut rest),
                Ok(1..)
            ) {
                rest.clear();
            }
            interrupt::flag().store(true, Ordering::SeqCst);
        });
        Ok(order)
    }
}

/// Asks the model and runs the check, and returns what came of it.
///
/// # Errors
/// Where there is no plan, or the repository cannot be read or written.
pub fn run(project: &Project, order: &LaneOrder, user: &mut dyn User) -> anyhow::Result<LanePlan> {
    let before = CommitId::from_str(&order.before)?;
    let wanted = PlanOptions {
        message: Some(order.message.clone()),
        model: Some(order.model.clone()),
        depth: order.depth,
        snapshot: Some(before),
        ..PlanOptions::default()
    };
    let planned = plan(project, &wanted, user)?;

    let tree = project.repository.commit(before)?.tree;
    let tip = project.store().tip(&project.session()?)?;
    let mut draft = project.store().draft(&tip)?;
    let run = dry_run_at(project, &tip, &draft, tree)?;
    let model = planned.model.as_ref();
    let tokens = model.and_then(|model| model.tokens());
    let (added, removed) = lines(&run);
    let mut told = LanePlan {
        turn: planned.turn,
        title: planned.title.clone(),
        mistakes: planned.diagnostics.len(),
        files: run.files.len(),
        added,
        removed,
        commands: run.commands,
        tokens_in: tokens.map(|(read, _)| read),
        tokens_out: tokens.map(|(_, written)| written),
        cost: model.and_then(|model| model.cost),
        check: None,
    };

    if let Some(command) = order.check.as_deref().filter(|_| told.mistakes == 0) {
        let check = check(project, before, command, user)?;
        let kept = serde_yaml::to_string(&check)?;
        draft.artifacts.put(artifact::CHECK, kept);
        project.store().save_draft(&tip, &mut draft)?;
        told.check = Some(check);
    }

    Ok(told)
}

/// Runs the check on the files as the plan would make them; commands of the plan itself are left
/// out, because nobody has looked at them.
fn check(
    project: &Project,
    before: CommitId,
    command: &str,
    user: &mut dyn User,
) -> anyhow::Result<LaneCheck> {
    let session = project.session()?;
    let _lock = project.lock_session(&session, "race")?;
    let tip = project.store().tip(&session)?;
    let draft = project.store().draft(&tip)?;
    let name = session.folder();
    let env = RunEnv {
        name: &name,
        tip: &tip,
        before,
        tree: project.repository.commit(before)?.tree,
        users_own: false,
        reach: Reach::Recorded(&draft.artifacts),
        artifacts: &draft.artifacts,
    };

    let text = draft.artifacts.text_or_empty(artifact::PLAN);
    let (plan, _) = crate::plan::parse(&text);
    let approved = approved(plan, command);
    let began = Instant::now();
    let left = perform(project, &env, &approved, user)?;
    let outcome = left.ran.outcomes.last();
    let output = outcome.map(|outcome| outcome.output.as_slice());

    Ok(LaneCheck {
        command: command.to_owned(),
        exit_code: outcome.and_then(|outcome| outcome.exit_code),
        seconds: (began.elapsed().as_secs_f64() * 10.0).round() / 10.0,
        tail: last_lines(output.unwrap_or_default(), LAST_LINES),
    })
}

/// Returns the plan without what is more than a change of files, and with the check behind it.
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

/// Counts the lines that come and go.
fn lines(run: &DryRun) -> (Option<usize>, Option<usize>) {
    let mut sums = (Some(0), Some(0));
    for file in run.files.values() {
        let sides = [
            Some(file.before.as_deref().unwrap_or_default()),
            Some(file.after.as_deref().unwrap_or_default()),
        ];
        let [before, after] = sides.map(|side| side.and_then(|bytes| str::from_utf8(bytes).ok()));
        let counted = before.zip(after).map(|(old, new)| counts(old, new));
        sums = match (sums, counted) {
            ((Some(added), Some(removed)), Some(more)) => {
                (Some(added + more.added), Some(removed + more.removed))
            }
            _ => (None, None),
        };
    }
    sums
}

/// Tells one piece of news; whoever does not listen any more has closed stdin as well.
pub fn tell(out: &mut dyn Write, news: &LaneNews) {
    if let Ok(mut line) = serde_json::to_vec(news) {
        line.push(b'\n');
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}
