//! Enforces an agent's limits: total time, silence and output.
//!
//! Time in which the user answers a question, or in which TeDDy is stopped, counts toward no limit.

use std::time::{Duration, Instant};

use crate::host::clock::PauseClock;
use crate::model::ModelError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// Time spent waiting for the user doesn't count.
    pub total: Duration,
    /// Longest silence.
    pub idle: Duration,
    /// In bytes.
    pub output: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentStop {
    /// The user cancelled, or the budget is used up.
    Cancelled,
    Total(Duration),
    Idle(Duration),
    /// All of its output, or one line. In bytes.
    Output(u64),
}

impl AgentStop {
    pub(super) fn error(self, text: &str) -> ModelError {
        let partial = text.to_owned();
        match self {
            AgentStop::Cancelled => ModelError::Interrupted { partial },
            AgentStop::Total(limit) => ModelError::Timeout { limit, partial },
            AgentStop::Idle(limit) => ModelError::Idle { limit, partial },
            AgentStop::Output(limit) => ModelError::Agent {
                detail: format!("the agent printed more than {} MB", limit.div_ceil(1 << 20)),
                remedy:
                    "run it by hand to see what it prints; an agent that works well prints far less"
                        .to_owned(),
            },
        }
    }
}

/// Processes that survive can still change the files.
pub(super) fn check_survivors(survivors: &[String]) -> Result<(), ModelError> {
    if survivors.is_empty() {
        return Ok(());
    }
    Err(ModelError::Agent {
        detail: format!(
            "the agent left processes that cannot be ended: {}",
            survivors.join(", ")
        ),
        remedy: "end them, and ask again: they may still write in the worktree".to_owned(),
    })
}

#[derive(Debug)]
pub(super) struct AgentClock {
    limits: AgentLimits,
    start: Instant,
    last: Instant,
    /// Time spent waiting for the user, or stopped.
    waited: Duration,
    pauses: PauseClock,
    output_bytes: u64,
    /// Suspends the idle limit while a tool runs.
    pub(super) has_tool: bool,
}

impl AgentClock {
    pub(super) fn new(limits: AgentLimits) -> AgentClock {
        let now = Instant::now();
        AgentClock {
            limits,
            start: now,
            last: now,
            waited: Duration::ZERO,
            pauses: PauseClock::start(),
            output_bytes: 0,
            has_tool: false,
        }
    }

    pub(super) fn record_output(&mut self, bytes: usize) {
        self.output_bytes += bytes as u64;
    }

    pub(super) fn record_activity(&mut self) {
        self.last = Instant::now();
    }

    /// Stops the clock while the user answers a question.
    pub(super) fn waiting<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = work();
        self.waited += begin.elapsed();
        self.last = Instant::now();
        self.pauses = PauseClock::start();
        result
    }

    pub(super) fn idle_time(&self) -> Duration {
        self.last.elapsed()
    }

    pub(super) fn exceeded(&mut self) -> Option<AgentStop> {
        let pause = self.pauses.take();
        self.waited += pause;
        self.last += pause;

        let limits = &self.limits;
        if self.output_bytes > limits.output {
            return Some(AgentStop::Output(limits.output));
        }

        if self.start.elapsed().saturating_sub(self.waited) > limits.total {
            return Some(AgentStop::Total(limits.total));
        }
        (!self.has_tool && self.idle_time() > limits.idle).then_some(AgentStop::Idle(limits.idle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(total: u64, idle: u64) -> AgentClock {
        AgentClock::new(AgentLimits {
            total: Duration::from_millis(total),
            idle: Duration::from_millis(idle),
            output: 10,
        })
    }

    #[test]
    fn silence_counts_but_for_a_tool_at_work() {
        let mut silent = clock(60_000, 0);
        std::thread::park_timeout(Duration::from_millis(2));
        assert_eq!(silent.exceeded(), Some(AgentStop::Idle(Duration::ZERO)));
        silent.has_tool = true;
        assert_eq!(silent.exceeded(), None);
    }

    #[test]
    fn waiting_for_a_person_does_not_count() {
        let mut asked = clock(10, 60_000);
        asked.waiting(|| std::thread::park_timeout(Duration::from_millis(30)));
        assert_eq!(asked.exceeded(), None);
        std::thread::park_timeout(Duration::from_millis(30));
        assert!(matches!(asked.exceeded(), Some(AgentStop::Total(_))));
    }

    #[test]
    fn too_much_is_too_much() {
        let mut talker = clock(60_000, 60_000);
        talker.record_output(10);
        assert_eq!(talker.exceeded(), None);
        talker.record_output(1);
        assert_eq!(talker.exceeded(), Some(AgentStop::Output(10)));
    }
}
