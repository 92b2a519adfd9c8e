//! `race`: asks several models for the same plan, from one snapshot of the user's files, each in a
//! session and worktree of its own.
//!
//! Each lane is a process, so a model that crashes or hangs affects no other lane. A lane stops
//! after planning; its plan is the draft of its session. Nothing reaches the user's files before a
//! plan is reviewed and executed.

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
use follow::follow_lanes;
use lane::{LaneNews, LaneOrder, LanePlan};
pub use verdict::Verdict;

/// Estimated memory of a lane, in bytes. Agents used 0.3 to 0.8 GiB in measurements.
const LANE_MEMORY: u64 = 1 << 30;
const MAX_LANES: usize = 16;

/// Options of a race.
#[derive(Debug, Clone, Default)]
pub struct RaceOptions {
    /// The user's message.
    pub message: String,
    /// Models by name or `kind:id`. Duplicates are allowed.
    pub models: Vec<String>,
    /// Shell command to run on each result.
    pub check: Option<String>,
    /// Model that compares the plans.
    pub judge: Option<String>,
    /// How many turns before the previous one the models see.
    pub depth: u64,
}

/// How to start a lane: this program with its global options.
#[derive(Debug, Clone)]
pub struct LaneProgram {
    /// The program.
    pub program: OsString,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
}

/// Result of a race.
#[derive(Debug, Clone, Serialize)]
pub struct FinishedRace {
    /// The session from which it started.
    pub session: String,
    /// The lanes, in the order of the models.
    pub lanes: Vec<FinishedLane>,
    /// The judge's comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Why it was stopped early; `None` if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<&'static str>,
}

/// Result of a lane.
#[derive(Debug, Clone, Serialize)]
pub struct FinishedLane {
    /// Its session. The draft contains the plan.
    pub session: String,
    /// Its model.
    pub model: String,
    /// Duration in seconds.
    pub seconds: f64,
    /// The plan; `None` if it failed.
    pub plan: Option<LanePlan>,
    /// The reason for the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Observes a race.
pub trait Spectator {
    /// Receives the state of all lanes, several times a second.
    fn watch(&mut self, rows: &[LaneRow]);
}

/// State of a lane.
#[derive(Debug, Clone)]
pub struct LaneRow {
    /// Its model.
    pub model: String,
    /// Its phase.
    pub state: LaneState,
    /// Current activity, or the reason why it ended.
    pub doing: String,
    /// Seconds since it started.
    pub seconds: u64,
    /// Reported tokens so far.
    pub tokens: u64,
    /// Reported cost so far, in dollars.
    pub cost: Option<f64>,
}

/// Phase of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneState {
    /// Not started.
    Waiting,
    /// The model is working.
    Running,
    /// The plan is saved.
    Done,
    /// No plan.
    Failed,
}

/// Runs a race from the current session.
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
    let session_cost = budget::session_spending(project, &tip, &draft)?;
    let limits = follow::RaceLimits {
        parallel: parallel(project),
        dollars: project.settings.limits.cost - session_cost,
    };

    let (lanes, stopped) = follow_lanes(program, &orders, &limits, spectator)?;
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

/// Creates a session for each model, all at the same turn and with the same snapshot.
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
        project.journal().record_tip(&name, tip.commit)?;

        // All lanes get the context lists of the current draft.
        let lane = project.store().tip(&name)?;
        let mut waiting = project.store().draft(&lane)?;
        for list in [artifact::TURN_CONTEXT, artifact::SESSION_CONTEXT] {
            let text = draft.artifacts.text_or_empty(list);
            waiting.artifacts.insert(list, text);
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

fn lane_name(project: &Project, session: &SessionName, model: &str) -> anyhow::Result<SessionName> {
    let title = format!("{} {model}", session.as_str().replace('/', "-"));
    project.free_name(SessionName::from_title(&title))
}

fn parallel(project: &Project) -> usize {
    // Lanes mostly wait for their model.
    let usual = cores().max(2);
    let by_memory = memory::available_memory().map_or(usual, |bytes| {
        usize::try_from(bytes / LANE_MEMORY).unwrap_or(usual)
    });
    let configured = project.settings.race.parallel.unwrap_or(usual);
    configured.min(by_memory).max(1)
}

impl FinishedLane {
    /// Returns `true` if the plan can be executed.
    pub fn is_ready(&self) -> bool {
        let plan = self.plan.as_ref();
        plan.is_some_and(|plan| plan.mistakes == 0)
    }
}

fn read_news(line: &[u8]) -> anyhow::Result<LaneNews> {
    serde_json::from_slice(line).context("reading what a lane tells")
}
