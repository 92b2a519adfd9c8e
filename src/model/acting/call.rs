//! A running agent: its process, its limits, and what it has reported so far.

use std::time::Duration;

use super::agent::AgentSettings;
use super::agent_output::LineSplitter;
use super::clock::{AgentClock, AgentStop, check_survivors};
use super::transcript::TranscriptRecorder;
use super::work_state::WorkState;
use super::{AgentFailure, AgentHost, AgentProgress, AgentResult, AgentTask};
use crate::host::dialogue::{Dialogue, DialogueEvent};
use crate::host::supervisor::CommandEnding;
use crate::model::ModelError;
use crate::model::job::Complaints;

/// How long to wait for output before the limits are checked again.
pub(super) const TICK: Duration = Duration::from_millis(50);

pub(super) struct AgentCall<'a> {
    pub(super) dialogue: Dialogue,
    pub(super) host: &'a mut dyn AgentHost,
    pub(super) clock: AgentClock,
    pub(super) record: TranscriptRecorder,
    pub(super) work: WorkState<'a>,
    pub(super) complaints: Complaints,
    lines: LineSplitter,
}

pub(super) enum AgentOutput {
    /// Complete lines of stdout. Empty if only a part of one arrived.
    Lines(Vec<Vec<u8>>),
    Stderr,
    Timeout,
    /// All lines were returned before.
    Ended(CommandEnding),
}

impl<'a> AgentCall<'a> {
    /// `secrets` are redacted from what is recorded.
    pub(super) fn new(
        agent: &'a AgentSettings,
        task: &AgentTask<'_>,
        dialogue: Dialogue,
        host: &'a mut dyn AgentHost,
        secrets: Vec<String>,
    ) -> AgentCall<'a> {
        let mut record = TranscriptRecorder::new(secrets.clone());
        record.start(&agent.run, task.is_confined);
        AgentCall {
            dialogue,
            host,
            clock: AgentClock::new(task.limits),
            record,
            work: WorkState::new(agent),
            complaints: Complaints::new(secrets),
            lines: LineSplitter::default(),
        }
    }

    pub(super) fn check(&mut self) -> Result<(), AgentStop> {
        if self.host.stopped() {
            return Err(AgentStop::Cancelled);
        }
        self.clock.exceeded().map_or(Ok(()), Err)
    }

    /// Waits up to `limit`. The caller decides what counts as activity.
    pub(super) fn next_output(&mut self, limit: Duration) -> Result<AgentOutput, AgentStop> {
        Ok(match self.dialogue.next_event(limit) {
            DialogueEvent::Stdout(bytes) => {
                self.clock.record_output(bytes.len());
                AgentOutput::Lines(self.lines.add(&bytes)?)
            }
            DialogueEvent::Stderr(bytes) => {
                self.clock.record_output(bytes.len());
                self.complaints.add(&bytes);
                AgentOutput::Stderr
            }
            DialogueEvent::Timeout => AgentOutput::Timeout,
            DialogueEvent::Ended(ending) => match self.lines.take() {
                Some(last) => AgentOutput::Lines(vec![last]),
                None => AgentOutput::Ended(ending),
            },
        })
    }

    pub(super) fn report_idle(&mut self) {
        let idle = self.clock.idle_time();
        self.host.progress(AgentProgress::Idle(idle));
    }

    /// Ends all processes, and completes the result.
    pub(super) fn end(
        mut self,
        outcome: Result<Option<String>, ModelError>,
        result: AgentResult,
    ) -> Result<AgentResult, Box<AgentFailure>> {
        let (usage, cost, totals) = self.work.usage_of_call();
        let ended = match &outcome {
            Ok(_) => self.dialogue.finish(),
            Err(_) => self.dialogue.end(),
        };
        self.complaints.add(&ended.stderr);
        self.record.complaint(&self.complaints.text());
        let result = AgentResult {
            usage,
            cost,
            totals,
            ..result
        };
        // A survivor can still change files, which spoils even a successful run.
        let outcome = check_survivors(&ended.survivors).and(outcome);
        self.record.finish(result, outcome)
    }
}
