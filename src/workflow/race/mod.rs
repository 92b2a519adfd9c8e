//! A race: several models asked the same thing at once, from one snapshot of the user's files, each
//! in a session and a worktree of its own.
//!
//! Each lane is a process of this program that plans and stops there, so that a model which crashes
//! or hangs takes nobody with it. What it planned waits as the draft of its session. Nothing of a
//! race reaches the user's files before one of the plans is reviewed and executed.

mod follow;
pub mod lane;
mod verdict;

use std::ffi::OsString;

use anyhow::Context as _;
use serde::Serialize;

use crate::git::refs::{self, Expected};
use crate::host::memory;
use crate::host::threads::cores;
use crate::session::artifact;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::context::message::without_keys;
use crate::workflow::model::{budget, choose};
use crate::workflow::plan::record_locked;
use crate::workflow::project::Project;
use crate::workflow::user::User;
use follow::follow;
use lane::{LaneNews, LaneOrder, LanePlan};
pub use verdict::Verdict;

/// The memory that a lane is taken to need, in bytes: what agents use was measured at 0.3 to 0.8 GiB.
const LANE_MEMORY: u64 = 1 << 30;
/// The most lanes.
const MAX_LANES: usize = 16;

/// What is wanted of a race.
#[derive(Debug, Clone, Default)]
pub struct RaceOptions {
    /// The user's words.
    pub message: String,
    /// The models, by name or `kind:id`; one may be named twice.
    pub models: Vec<String>,
    /// A line of the shell that is run on what each of them made.
    pub check: Option<String>,
    /// The model that compares what they made.
    pub judge: Option<String>,
    /// How many turns before the previous one the models see.
    pub depth: u64,
}

/// How a lane's process is started: this program, with the options that come before its command.
#[derive(Debug, Clone)]
pub struct LaneProgram {
    /// The program.
    pub program: OsString,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
}

/// What came of a race.
#[derive(Debug, Clone, Serialize)]
pub struct FinishedRace {
    /// The session that it began in.
    pub session: String,
    /// The lanes, in the order in which their models were named.
    pub lanes: Vec<FinishedLane>,
    /// What the judge says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Whether it was stopped before all were done; why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<&'static str>,
}

/// What came of a lane.
#[derive(Debug, Clone, Serialize)]
pub struct FinishedLane {
    /// Its session, whose draft the plan is.
    pub session: String,
    /// The model.
    pub model: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The plan; null where there is none.
    pub plan: Option<LanePlan>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Who watches a race.
pub trait Spectator {
    /// Hears how things stand: a row for each lane. Told several times a second.
    fn watch(&mut self, rows: &[LaneRow]);
}

/// How a lane stands.
#[derive(Debug, Clone)]
pub struct LaneRow {
    /// The model.
    pub model: String,
    /// Where it stands.
    pub state: LaneState,
    /// What it does now, or why it ended.
    pub doing: String,
    /// Seconds since it began.
    pub seconds: u64,
    /// The tokens so far, as far as they are told.
    pub tokens: u64,
    /// Dollars so far, as far as they are told.
    pub cost: Option<f64>,
}

/// Where a lane stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneState {
    /// It waits for its turn.
    Waiting,
    /// The model works.
    Running,
    /// Its plan waits.
    Done,
    /// There is no plan.
    Failed,
}

/// Runs a race from the session in use, and returns what each model made.
///
/// # Errors
/// Where it cannot begin: a model that cannot be had, a repository that cannot be written. A lane
/// that fails is no error.
pub fn race(
    project: &Project,
    options: &RaceOptions,
    program: &LaneProgram,
    (user, spectator): (&mut dyn User, &mut dyn Spectator),
) -> anyhow::Result<FinishedRace> {
    let count = options.models.len();
    anyhow::ensure!(count >= 1, "no model takes part");
    anyhow::ensure!(
        count <= MAX_LANES,
        "{count} models are too many for a race; {MAX_LANES} is the most"
    );

    let session = project.session()?;
    let tip = project.store().tip(&session)?;
    for model in &options.models {
        choose::model_settings(project, model)?;
    }
    let judge = options.judge.as_deref();
    let judge = judge.map(|name| choose::writer(project, &tip, Some(name)));
    let judge = judge.transpose()?;

    let orders = begin(project, &tip, options, user)?;
    let draft = project.store().draft(&tip)?;
    let spent = budget::spent(project, &tip, &draft)?;
    let limits = follow::RaceLimits {
        parallel: parallel(project),
        dollars: project.settings.limits.cost - spent,
    };

    let (lanes, stopped) = follow(program, &orders, &limits, spectator)?;
    let mut finished = FinishedRace {
        session: session.to_string(),
        lanes,
        verdict: None,
        stopped,
    };
    if let (Some(judge), None) = (judge, stopped) {
        finished.verdict =
            verdict::ask(project, (&tip, &options.message), judge, (&finished, user))?;
    }

    Ok(finished)
}

/// Makes a session for each model, all at one turn and with one snapshot.
fn begin(
    project: &Project,
    tip: &Turn,
    options: &RaceOptions,
    user: &mut dyn User,
) -> anyhow::Result<Vec<LaneOrder>> {
    let message = without_keys(options.message.clone(), user);
    let recorded = record_locked(project, tip, user)?;
    let draft = project.store().draft(tip)?;
    let _lock = project.enter("race", user)?;
    let mut orders = Vec::new();
    for model in &options.models {
        let name = lane_name(project, &tip.session, model)?;
        let log = format!("teddy: race from {}", tip.commit);
        refs::move_to(
            &project.repository,
            (&name.reference(), Expected::Absent),
            tip.commit,
            &log,
        )?;
        project.journal().keep_tip(&name, tip.commit)?;

        // What waits for the next turn is shown to all of them.
        let lane = project.store().tip(&name)?;
        let mut waiting = project.store().draft(&lane)?;
        for list in [artifact::TURN_CONTEXT, artifact::SESSION_CONTEXT] {
            let text = draft.artifacts.text_or_empty(list);
            waiting.artifacts.put(list, text);
        }
        project.store().save_draft(&lane, &mut waiting)?;

        orders.push(LaneOrder {
            session: name.to_string(),
            model: model.clone(),
            message: message.clone(),
            before: recorded.commit.to_string(),
            check: options.check.clone(),
            depth: options.depth,
            approves: user.approves_unseen(),
        });
    }

    Ok(orders)
}

/// Returns a free name for the session of a model.
fn lane_name(project: &Project, session: &SessionName, model: &str) -> anyhow::Result<SessionName> {
    let title = format!("{} {model}", session.as_str().replace('/', "-"));
    project.free_name(SessionName::from_title(&title))
}

/// Returns how many lanes may run at once.
fn parallel(project: &Project) -> usize {
    // A model is waited for most of the time.
    let usual = cores().max(2);
    let room = memory::available().map_or(usual, |bytes| {
        usize::try_from(bytes / LANE_MEMORY).unwrap_or(usual)
    });
    let wanted = project.settings.race.parallel.unwrap_or(usual);
    wanted.min(room).max(1)
}

impl FinishedLane {
    /// Returns whether a plan waits that could be executed.
    pub fn is_ready(&self) -> bool {
        let plan = self.plan.as_ref();
        plan.is_some_and(|plan| plan.mistakes == 0)
    }
}

/// Says what a lane's process tells, for those who follow it.
fn read_news(line: &[u8]) -> anyhow::Result<LaneNews> {
    serde_json::from_slice(line).context("reading what a lane tells")
}
