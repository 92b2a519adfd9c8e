//! Progress of a model that edits files itself: current activity, time and usage.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::grouped;
use crate::model::TokenUsage;
use crate::model::acting::{AgentProgress, ToolStatus, ToolUse};
use crate::ui::style::{StyledLine, Tone};

/// Silence after which the status mentions it.
const IDLE: Duration = Duration::from_secs(10);
/// Tools remembered, so that each is shown once.
const MAX_TOOLS: usize = 10_000;

/// State of a model at work.
pub struct AgentWork {
    start: Instant,
    reported: HashSet<String>,
    /// Current activity.
    doing: String,
    usage: TokenUsage,
    /// In dollars.
    cost: Option<f64>,
    /// Time since the last event.
    idle: Duration,
}

impl Default for AgentWork {
    fn default() -> AgentWork {
        AgentWork {
            start: Instant::now(),
            reported: HashSet::new(),
            doing: "starting".to_owned(),
            usage: TokenUsage::default(),
            cost: None,
            idle: Duration::ZERO,
        }
    }
}

impl AgentWork {
    /// Applies an event and returns the lines to keep on the screen.
    pub fn feed(&mut self, progress: &AgentProgress<'_>) -> Vec<StyledLine> {
        if !matches!(progress, AgentProgress::Idle(_)) {
            self.idle = Duration::ZERO;
        }

        match progress {
            AgentProgress::Started(identity) => {
                self.doing = "thinking".to_owned();
                let name = format!("{} {}", identity.name, identity.version);
                return vec![StyledLine::of(
                    Tone::Faint,
                    &format!("  {} is at work", name.trim()),
                )];
            }
            AgentProgress::Says(_) => self.doing = "writing".to_owned(),
            AgentProgress::Thinks(_) => self.doing = "thinking".to_owned(),
            AgentProgress::Tool(tool) => return self.tool(tool),
            AgentProgress::Plan(entries) => {
                let current = entries.iter().find(|entry| entry.status == "in_progress");
                let completed = entries.iter().filter(|entry| entry.status == "completed");
                if let Some(entry) = current {
                    let (completed, all) = (completed.count(), entries.len());
                    self.doing = format!("{} ({completed} of {all} done)", entry.text);
                }
            }
            AgentProgress::Used { usage, cost } => {
                self.usage = *usage;
                self.cost = cost.or(self.cost);
            }
            AgentProgress::Note(note) => {
                return vec![StyledLine::of(Tone::Warning, &format!("  {note}"))];
            }
            AgentProgress::Idle(idle) => self.idle = *idle,
        }

        Vec::new()
    }

    /// A tool is shown once it has a title, and again if it fails.
    fn tool(&mut self, tool: &ToolUse) -> Vec<StyledLine> {
        self.doing.clone_from(&tool.title);
        let is_new = !tool.title.is_empty()
            && self.reported.len() < MAX_TOOLS
            && self.reported.insert(tool.id.clone());
        let (sign, tone) = match tool.status {
            ToolStatus::Failed => ("✗", Tone::Removed),
            _ if !is_new => return Vec::new(),
            _ => ("•", Tone::Faint),
        };
        vec![StyledLine::of(tone, &format!("  {sign} {}", tool.title))]
    }

    /// Returns the current activity, the tokens so far, and the cost in dollars.
    pub fn now(&self) -> (String, u64, Option<f64>) {
        let tokens = self.usage.input + self.usage.output;
        (self.doing.clone(), tokens, self.cost)
    }

    /// Returns the final status.
    pub fn end(&self, model: &str) -> StyledLine {
        self.line(model, "done")
    }

    /// Returns the status, such as `claude: edit src/main.rs, 12 s, 3,400 tokens, $0.0210`.
    pub fn status(&self, model: &str) -> StyledLine {
        let mut doing = self.doing.clone();
        if self.idle >= IDLE {
            doing.push_str(&format!(", nothing new for {} s", self.idle.as_secs()));
        }
        self.line(model, &doing)
    }

    fn line(&self, model: &str, doing: &str) -> StyledLine {
        let mut text = format!("{model}: {doing}");
        text.push_str(&format!(", {} s", self.start.elapsed().as_secs()));
        let tokens = self.usage.input + self.usage.output;
        if tokens > 0 {
            let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
            text.push_str(&format!(", {} tokens", grouped(tokens)));
        }
        if let Some(cost) = self.cost {
            text.push_str(&format!(", ${cost:.4}"));
        }
        StyledLine::of(Tone::Faint, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::acting::AgentPlanEntry;

    fn check(progress: &[AgentProgress<'_>], lines: &[&str], status: &str) {
        let mut work = AgentWork::default();
        let reported: Vec<String> = progress
            .iter()
            .flat_map(|progress| work.feed(progress))
            .map(|line| line.text())
            .collect();
        assert_eq!(
            (reported, work.status("m").text()),
            (
                lines.iter().map(|line| (*line).to_owned()).collect(),
                status.to_owned()
            )
        );
    }

    fn tool(id: &str, title: &str, status: ToolStatus) -> ToolUse {
        ToolUse {
            id: id.to_owned(),
            title: title.to_owned(),
            kind: String::new(),
            status,
        }
    }

    #[test]
    fn a_tool_is_told_once_and_again_when_it_fails() {
        let pending = tool("1", "edit a.txt", ToolStatus::Pending);
        let completed = tool("1", "edit a.txt", ToolStatus::Completed);
        let failed = tool("2", "run tests", ToolStatus::Failed);
        check(
            &[
                AgentProgress::Tool(&pending),
                AgentProgress::Tool(&completed),
                AgentProgress::Tool(&failed),
            ],
            &["  • edit a.txt", "  ✗ run tests"],
            "m: run tests, 0 s",
        );
    }

    #[test]
    fn the_status_says_what_is_used_and_how_long_nothing_came() {
        let entries = [AgentPlanEntry {
            text: "write it".to_owned(),
            status: "in_progress".to_owned(),
        }];
        let usage = TokenUsage {
            input: 1200,
            output: 34,
            ..TokenUsage::default()
        };
        check(
            &[
                AgentProgress::Plan(&entries),
                AgentProgress::Used {
                    usage,
                    cost: Some(0.5),
                },
                AgentProgress::Idle(Duration::from_secs(12)),
            ],
            &[],
            "m: write it (0 of 1 done), nothing new for 12 s, 0 s, 1,234 tokens, $0.5000",
        );
    }
}
