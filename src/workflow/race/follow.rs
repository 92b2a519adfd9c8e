//! Runs the lanes of a race as processes: starts a bounded number, collects their reports, and ends
//! them with the race.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::lane::{LaneNews, LaneOrder, LanePlan};
use super::{FinishedLane, LaneProgram, LaneRow, LaneState, Spectator, read_news};
use crate::host::{interrupt, process};
use crate::text::sanitize::sanitize_line;

const FOLLOW_TICK: Duration = Duration::from_millis(150);
/// How long a stopped lane can take to end its model before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(30);
const MAX_NEWS_LINE: u64 = 1 << 20;

#[derive(Debug, Clone, Copy)]
pub(super) struct RaceLimits {
    pub parallel: usize,
    pub dollars: f64,
}

struct Lane<'a> {
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

/// A report of a lane, by index; `None` at the end of its stdout.
type LaneMessage = (usize, Option<LaneNews>);

pub(super) fn follow_lanes(
    program: &LaneProgram,
    orders: &[LaneOrder],
    limits: &RaceLimits,
    spectator: &mut dyn Spectator,
) -> anyhow::Result<(Vec<FinishedLane>, Option<&'static str>)> {
    let (sender, news) = channel();
    let mut lanes: Vec<Lane<'_>> = orders.iter().map(Lane::new).collect();
    let mut waiting: VecDeque<usize> = (0..lanes.len()).collect();
    let mut stopped = None;

    loop {
        let running = lanes.iter().filter(|lane| lane.process.is_some()).count();
        let may_start = stopped.is_none() && running < limits.parallel;
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
        stopped = stopped.or_else(|| reason_to_stop(&rows, limits));
        if stopped.is_some() {
            lanes.iter_mut().for_each(Lane::stop);
        }
    }

    for at in waiting {
        lanes[at].row.state = LaneState::Failed;
        lanes[at].row.doing = "it did not begin".to_owned();
    }
    Ok((lanes.into_iter().map(Lane::finish).collect(), stopped))
}

fn reason_to_stop(rows: &[LaneRow], limits: &RaceLimits) -> Option<&'static str> {
    let cost: f64 = rows.iter().filter_map(|row| row.cost).sum();
    if interrupt::requested() {
        return Some("you stopped the race");
    }
    (cost > limits.dollars)
        .then_some("the race was stopped, as its lanes together reached `limits.cost`")
}

fn receive_news(news: &Receiver<LaneMessage>, lanes: &mut [Lane<'_>]) {
    let mut next = news.recv_timeout(FOLLOW_TICK).ok();
    while let Some((at, message)) = next {
        lanes[at].apply_news(message);
        next = news.try_recv().ok();
    }
}

impl<'a> Lane<'a> {
    fn new(order: &'a LaneOrder) -> Lane<'a> {
        Lane {
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
            .args(["--session", &self.order.session, super::lane::WORD])
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
            Some(LaneNews::Planned(plan)) => {
                self.row.state = LaneState::Done;
                self.row.doing = plan.title.clone();
                self.row.cost = plan.cost.or(self.row.cost);
                self.plan = Some(*plan);
            }
            Some(LaneNews::Failed(why)) => {
                self.row.state = LaneState::Failed;
                self.row.doing = why;
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
            session: self.order.session.clone(),
            model: self.order.model.clone(),
            seconds: (seconds * 10.0).round() / 10.0,
            error: self.plan.is_none().then_some(self.row.doing),
            plan: self.plan,
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
    read_news(&line).ok()
}
