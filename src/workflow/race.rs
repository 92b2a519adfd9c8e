//! `race`: asks several models for the same plan, from one snapshot of the user's files, each in a
//! session and worktree of its own.
//!
//! Each lane is a process, so a model that crashes or hangs affects no other lane. A lane stops
//! after planning; its plan is the draft of its session. Nothing reaches the user's files before a
//! plan is reviewed and executed.

pub mod combine;
pub mod lane;
mod verdict;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;

use lane::{LaneNews, LaneOrder, LanePlan};
pub use verdict::Verdict;

use crate::git::object::CommitId;
use crate::git::refs::{self, Expected};
use crate::host::threads::cores;
use crate::host::{interrupt, machine, process};
use crate::project::Project;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::sanitize::sanitize_line;
use crate::workflow::context::message::without_keys;
use crate::workflow::model::{budget, choose};
use crate::workflow::open_session::record_files;
use crate::workflow::user::User;

/// In bytes, estimated. Agents used 0.3 to 0.8 GiB in measurements.
const LANE_MEMORY: u64 = 1 << 30;

const MAX_LANES: usize = 16;

const STOPPED: &str = "you stopped the race";

#[derive(Debug, Clone, Default)]
pub struct RaceOptions {
    pub message: String,
    /// By name or `kind:id`. Duplicates are allowed.
    pub models: Vec<String>,
    /// Shell command to run on each result.
    pub check: Option<String>,
    /// Model that compares the plans.
    pub judge: Option<String>,
    /// How many turns before the previous one the models see.
    pub depth: u64,
}

/// This program with its global options.
#[derive(Debug, Clone)]
pub struct LaneProgram {
    pub program: OsString,
    pub arguments: Vec<OsString>,
}

#[derive(Debug, Clone, Serialize)]
pub struct FinishedRace {
    pub session: SessionName,
    /// Turn at which all lanes begin.
    #[serde(skip)]
    pub from: CommitId,
    /// In the order of the models.
    pub lanes: Vec<FinishedLane>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Why the judge gave no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge_error: Option<String>,
    /// Session whose plan waits for the review, if the caller named one in advance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picked: Option<String>,
    /// `None` if it was not stopped early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<&'static str>,
}

#[derive(Debug, Clone, Serialize)]
pub struct FinishedLane {
    /// The draft of the session is the plan.
    pub session: SessionName,
    pub model: String,
    pub seconds: f64,
    /// `None` if the lane failed.
    pub plan: Option<LanePlan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip)]
    pub spent: Option<f64>,
}

pub trait Spectator {
    /// Several times a second.
    fn watch(&mut self, rows: &[LaneRow]);
}

#[derive(Debug, Clone)]
pub struct LaneRow {
    pub model: String,
    pub state: LaneState,
    /// Current activity, or the reason why the lane ended.
    pub doing: String,
    /// Since the start.
    pub seconds: u64,
    /// Reported so far.
    pub tokens: u64,
    /// Reported so far, in dollars.
    pub cost: Option<f64>,
    /// What the user should know about the run.
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneState {
    Waiting,
    Running,
    /// The plan is saved.
    Done,
    Failed,
}

/// From the current session.
pub fn race(
    project: &Project,
    options: &RaceOptions,
    program: &LaneProgram,
    user: &mut dyn User,
    spectator: &mut dyn Spectator,
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
    let dollars = project.settings.limits.cost - session_cost;
    let (lanes, stopped) = follow_lanes(program, &orders, parallel(project), dollars, spectator)?;
    let mut finished = FinishedRace {
        session,
        from: tip.commit,
        lanes,
        verdict: None,
        judge_error: None,
        picked: None,
        stopped,
    };
    if let (Some(judge), None) = (judge, stopped) {
        // The plans wait in any case.
        match verdict::ask(project, &tip, &options.message, judge, &finished, user) {
            Ok(verdict) => finished.verdict = verdict,
            Err(_) if interrupt::requested() => finished.stopped = Some(STOPPED),
            Err(error) => finished.judge_error = Some(format!("{error:#}")),
        }
    }

    Ok(finished)
}

/// All sessions begin at the same turn, with the same snapshot.
fn begin(
    project: &Project,
    tip: &Turn,
    options: &RaceOptions,
    user: &mut dyn User,
) -> anyhow::Result<Vec<(SessionName, LaneOrder)>> {
    let message = without_keys(options.message.clone(), user);
    let recorded = record_files(project, tip, &[], user)?;
    let draft = project.store().draft(tip)?;
    let _lock = project.enter("race", user)?;
    let mut orders = Vec::new();
    for model in &options.models {
        let name = begin_lane(project, tip, model, &draft)?;
        let order = LaneOrder {
            model: model.clone(),
            message: message.clone(),
            before: recorded.commit.to_string(),
            check: options.check.clone(),
            depth: options.depth,
            approves: user.approves_unseen(),
        };
        orders.push((name, order));
    }

    Ok(orders)
}

/// Starts a session at a turn, with the context lists of `draft`. The caller holds the lock.
fn begin_lane(
    project: &Project,
    tip: &Turn,
    model: &str,
    draft: &Draft,
) -> anyhow::Result<SessionName> {
    let session = tip.session.as_str().replace('/', "-");
    let model = SessionName::from_title(model);
    // The name of the model must not be cut off: it tells the lanes apart.
    let name = SessionName::parse(&format!("{session}-{model}")).unwrap_or(model);
    let name = project.free_name(name)?;
    project.checkout().record_branch(tip, &name)?;
    // The lane has the context lists of the draft.
    if !project.journal().owns_draft(&tip.session, draft) {
        let journal = project.journal();
        journal.record_foreign_context(&name, tip.commit)?;
    }
    let log = format!("teddy: race from {}", tip.commit);
    refs::move_to(
        &project.repository,
        &name.reference(),
        Expected::Absent,
        tip.commit,
        &log,
    )?;

    let lane = project.store().tip(&name)?;
    let mut waiting = project.store().draft(&lane)?;
    for list in [artifact::TURN_CONTEXT, artifact::SESSION_CONTEXT] {
        let text = draft.artifacts.text_or_empty(list);
        waiting.artifacts.insert(list, text);
    }
    project.store().save_draft(&lane, &mut waiting)?;
    Ok(name)
}

fn parallel(project: &Project) -> usize {
    // Lanes mostly wait for their model.
    let usual = cores().max(3);
    let by_memory = machine::available_memory().map_or(usual, |bytes| {
        usize::try_from(bytes / LANE_MEMORY).unwrap_or(usual)
    });
    let configured = project.settings.race.parallel.unwrap_or(usual);
    configured.min(by_memory).max(1)
}

impl FinishedLane {
    /// The plan can be executed.
    pub fn is_ready(&self) -> bool {
        let plan = self.plan.as_ref();
        plan.is_some_and(|plan| plan.mistakes == 0)
    }

    /// Why its agent stopped before its work was done.
    pub fn stopped(&self) -> Option<&str> {
        self.plan.as_ref().and_then(|plan| plan.stopped.as_deref())
    }
}

// Runs the lanes as processes: starts a bounded number, collects their reports, and ends them with
// the race.

const FOLLOW_TICK: Duration = Duration::from_millis(150);

/// For a stopped lane to end its model, before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

const MAX_NEWS_LINE: u64 = 1 << 20;

struct Lane<'a> {
    session: &'a SessionName,
    order: &'a LaneOrder,
    process: Option<LaneProcess>,
    began: Option<Instant>,
    row: LaneRow,
    plan: Option<LanePlan>,
    took: Option<Duration>,
}

/// Dropping it ends the process.
struct LaneProcess {
    child: Child,
    /// The lane stops when this closes.
    stdin: Option<ChildStdin>,
}

impl Drop for LaneProcess {
    fn drop(&mut self) {
        // Closing stdin asks the lane to stop.
        self.stdin = None;
        let deadline = Instant::now() + STOP_PATIENCE;
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }

        // The supervisors of its commands notice, and end them.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// By index of the lane; `None` at the end of its stdout.
type LaneMessage = (usize, Option<LaneNews>);

fn follow_lanes(
    program: &LaneProgram,
    orders: &[(SessionName, LaneOrder)],
    parallel: usize,
    dollars: f64,
    spectator: &mut dyn Spectator,
) -> anyhow::Result<(Vec<FinishedLane>, Option<&'static str>)> {
    let (sender, news) = channel();
    let lanes = orders.iter();
    let lanes = lanes.map(|(session, order)| Lane::new(session, order));
    let mut lanes: Vec<Lane<'_>> = lanes.collect();
    let mut waiting: VecDeque<usize> = (0..lanes.len()).collect();
    let mut stopped = None;

    loop {
        let running = lanes.iter().filter(|lane| lane.process.is_some()).count();
        let may_start = stopped.is_none() && running < parallel;
        if let Some(at) = waiting.front().copied().filter(|_| may_start) {
            waiting.pop_front();
            lanes[at].start(program, at, &sender)?;
            continue;
        }

        if running == 0 {
            break;
        }

        receive_news(&news, &mut lanes);
        let rows: Vec<LaneRow> = lanes.iter_mut().map(Lane::now).collect();
        spectator.watch(&rows);
        // A lane knows only its own cost, so the limit for all of them is enforced here.
        stopped = stopped.or_else(|| reason_to_stop(&rows, dollars));
        if stopped.is_some() {
            lanes.iter_mut().for_each(Lane::stop);
        }
    }

    // The race was stopped before these began.
    for at in waiting {
        lanes[at].row.state = LaneState::Failed;
        lanes[at].row.doing = "it did not begin".to_owned();
    }
    Ok((lanes.into_iter().map(Lane::finish).collect(), stopped))
}

fn reason_to_stop(rows: &[LaneRow], dollars: f64) -> Option<&'static str> {
    let cost: f64 = rows.iter().filter_map(|row| row.cost).sum();
    if interrupt::requested() {
        return Some(STOPPED);
    }
    (cost > dollars).then_some("the race was stopped, as its lanes together reached `limits.cost`")
}

fn receive_news(news: &Receiver<LaneMessage>, lanes: &mut [Lane<'_>]) {
    let mut next = news.recv_timeout(FOLLOW_TICK).ok();
    while let Some((at, message)) = next {
        lanes[at].apply_news(message);
        next = news.try_recv().ok();
    }
}

impl<'a> Lane<'a> {
    fn new(session: &'a SessionName, order: &'a LaneOrder) -> Lane<'a> {
        Lane {
            session,
            order,
            process: None,
            began: None,
            row: LaneRow {
                model: order.model.clone(),
                state: LaneState::Waiting,
                doing: String::new(),
                seconds: 0,
                tokens: 0,
                cost: None,
                remarks: Vec::new(),
            },
            plan: None,
            took: None,
        }
    }

    fn start(
        &mut self,
        program: &LaneProgram,
        at: usize,
        sender: &Sender<LaneMessage>,
    ) -> anyhow::Result<()> {
        let mut command = process::command(&program.program);
        command
            .args(&program.arguments)
            .args(["--session", self.session.as_str(), lane::WORD])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // A lane runs this program and needs the keys that other child processes don't get.
        process::restore_env(&mut command, |_| true);
        let mut child = command.spawn().context("starting a lane of the race")?;
        let mut stdin = child.stdin.take();
        let mut line = serde_json::to_vec(self.order)?;
        line.push(b'\n');
        if let Some(stdin) = &mut stdin {
            stdin
                .write_all(&line)
                .context("telling a lane what to do")?;
        }

        let sender = sender.clone();
        let stdout = child.stdout.take();
        std::thread::spawn(move || {
            let mut lines = stdout.map(BufReader::new);
            while let Some(message) = lines.as_mut().and_then(read_next_news) {
                if sender.send((at, Some(message))).is_err() {
                    return;
                }
            }
            let _ = sender.send((at, None));
        });

        self.process = Some(LaneProcess { child, stdin });
        self.began = Some(Instant::now());
        self.row.state = LaneState::Running;
        self.row.doing = "starting".to_owned();
        Ok(())
    }

    fn apply_news(&mut self, news: Option<LaneNews>) {
        match news {
            Some(LaneNews::Doing { what, tokens, cost }) => {
                self.row.doing = sanitize_line(&what).into_owned();
                self.row.tokens = self.row.tokens.max(tokens);
                self.row.cost = cost.or(self.row.cost);
            }
            Some(LaneNews::Remark(text)) => {
                self.row.remarks.push(sanitize_line(&text).into_owned());
            }
            Some(LaneNews::Planned(plan)) => {
                self.row.state = LaneState::Done;
                self.row.doing = plan.title.clone();
                self.row.cost = plan.cost.or(self.row.cost);
                self.plan = Some(*plan);
            }
            Some(LaneNews::Failed { why, cost }) => {
                self.row.state = LaneState::Failed;
                self.row.doing = why;
                self.row.cost = cost.or(self.row.cost);
            }
            None => {
                self.process = None;
                self.took = self.began.map(|began| began.elapsed());
                if self.row.state == LaneState::Running {
                    self.row.state = LaneState::Failed;
                    self.row.doing = "its process ended without a word".to_owned();
                }
            }
        }
    }

    fn now(&mut self) -> LaneRow {
        let took = self.took.or(self.began.map(|began| began.elapsed()));
        self.row.seconds = took.unwrap_or_default().as_secs();
        self.row.clone()
    }

    fn stop(&mut self) {
        if let Some(process) = &mut self.process {
            process.stdin = None;
        }
    }

    fn finish(self) -> FinishedLane {
        let seconds = self.took.unwrap_or_default().as_secs_f64();
        FinishedLane {
            session: self.session.clone(),
            model: self.order.model.clone(),
            seconds: (seconds * 10.0).round() / 10.0,
            error: self.plan.is_none().then_some(self.row.doing),
            plan: self.plan,
            spent: self.row.cost,
        }
    }
}

/// `None` at the end of the stream, or for an unintelligible line.
fn read_next_news(lines: &mut impl std::io::BufRead) -> Option<LaneNews> {
    let mut line = Vec::new();
    lines
        .by_ref()
        .take(MAX_NEWS_LINE)
        .read_until(b'\n', &mut line)
        .ok()
        .filter(|&length| length > 0)?;
    serde_json::from_slice(&line).ok()
}
