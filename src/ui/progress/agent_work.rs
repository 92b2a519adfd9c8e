//! State of an agent at work, and the lines that it leaves on the screen.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::model::TokenUsage;
use crate::model::acting::{AgentPlanEntry, AgentProgress, ToolStatus, ToolUse};
use crate::text::grouped_count;
use crate::text::sanitize::{sanitize_line, strip_ansi};
use crate::text::secret::redact;
use crate::ui::style::{StyledLine, Tone};

/// Silence after which the status mentions it.
const IDLE: Duration = Duration::from_secs(10);

/// Tools remembered, so that each is shown once.
const MAX_TOOLS: usize = 10_000;

/// In bytes, of a line that the agent writes. A longer one is shown in parts.
const MAX_PART: usize = 4096;

/// Returns the step of the plan that the agent works on, and how many are done.
fn current_step(entries: &[AgentPlanEntry]) -> Option<String> {
    let current = entries.iter().find(|entry| entry.status == "in_progress")?;
    let completed = entries.iter().filter(|entry| entry.status == "completed");
    let (completed, all) = (completed.count(), entries.len());
    Some(format!("{} ({completed} of {all} done)", current.text))
}

/// State of a model at work.
pub struct AgentWork {
    start: Instant,
    /// Tools whose end is on the screen.
    reported: HashSet<String>,
    /// Words of the agent without a line end yet.
    partial_line: String,
    /// Current activity.
    doing: String,
    usage: TokenUsage,
    /// In dollars.
    cost: Option<f64>,
    /// Time since the last event.
    idle: Duration,
    /// It ended before its work was done.
    is_early: bool,
}

impl Default for AgentWork {
    fn default() -> AgentWork {
        AgentWork {
            start: Instant::now(),
            reported: HashSet::new(),
            partial_line: String::new(),
            doing: "starting".to_owned(),
            usage: TokenUsage::default(),
            cost: None,
            idle: Duration::ZERO,
            is_early: false,
        }
    }
}

impl AgentWork {
    /// Applies an event and returns the lines to keep on the screen.
    pub fn feed(&mut self, progress: &AgentProgress<'_>) -> Vec<StyledLine> {
        if !matches!(progress, AgentProgress::Idle(_)) {
            self.idle = Duration::ZERO;
        }

        // Words end where something else begins.
        let mut lines = match progress {
            AgentProgress::Says(_) | AgentProgress::Idle(_) | AgentProgress::Used { .. } => {
                Vec::new()
            }
            _ => self.flush_message(),
        };
        match progress {
            AgentProgress::Started(identity) => {
                self.doing = "thinking".to_owned();
                let name = format!("{} {}", identity.name, identity.version);
                lines.push(StyledLine::of(
                    Tone::Faint,
                    &format!("  {} is at work", name.trim()),
                ));
            }
            AgentProgress::Says(words) => {
                self.doing = "writing".to_owned();
                lines.extend(self.add_message(words));
            }
            AgentProgress::Thinks(_) => self.doing = "thinking".to_owned(),
            AgentProgress::Tool(tool) => lines.extend(self.tool(tool)),
            AgentProgress::Plan(entries) => {
                if let Some(step) = current_step(entries) {
                    self.doing = step;
                }
            }
            AgentProgress::Used { usage, cost, .. } => {
                self.usage = *usage;
                self.cost = cost.or(self.cost);
            }
            AgentProgress::Note(note) => {
                lines.push(StyledLine::of(Tone::Warning, &format!("  {note}")));
            }
            AgentProgress::StoppedEarly(reason) => {
                self.is_early = true;
                let line = format!("  the agent stopped early: {}", sanitize_line(reason));
                lines.push(StyledLine::of(Tone::Warning, &line));
            }
            AgentProgress::Idle(idle) => self.idle = *idle,
        }
        lines
    }

    /// Returns the lines of its message that are complete now.
    fn add_message(&mut self, words: &str) -> Vec<StyledLine> {
        let mut lines = Vec::new();
        for c in words.chars() {
            self.partial_line.push(c);
            if c == '\n' || self.partial_line.len() >= MAX_PART {
                lines.extend(self.flush_message());
            }
        }
        lines
    }

    /// Returns the end of its message, which has no line end yet.
    pub fn flush_message(&mut self) -> Vec<StyledLine> {
        let part = std::mem::take(&mut self.partial_line);
        // Sequences first: one within a key would hide it.
        let plain = strip_ansi(part.trim_end());
        let plain = redact(&plain);
        let lines = plain.lines().filter(|line| !line.trim().is_empty());
        lines
            .map(|line| StyledLine::of(Tone::Faint, &format!("  {}", sanitize_line(line))))
            .collect()
    }

    /// A tool is shown once it has ended: by then its title is final.
    fn tool(&mut self, tool: &ToolUse) -> Vec<StyledLine> {
        if !tool.title.is_empty() {
            self.doing.clone_from(&tool.title);
        }
        let (sign, tone) = match tool.status {
            ToolStatus::Pending | ToolStatus::Running => return Vec::new(),
            // An exit code is a fact, the status what the agent makes of it.
            ToolStatus::Completed if tool.exit_code.is_some_and(|code| code != 0) => {
                ("✗", Tone::Removed)
            }
            ToolStatus::Completed => ("•", Tone::Faint),
            ToolStatus::Failed => ("✗", Tone::Removed),
        };
        let is_new = self.reported.len() < MAX_TOOLS && self.reported.insert(tool.id.clone());
        if !is_new {
            return Vec::new();
        }
        let title = match tool.title.as_str() {
            "" => "a tool",
            title => title,
        };
        let exit = match tool.exit_code {
            Some(code) if code != 0 => format!(" (exit code {code})"),
            _ => String::new(),
        };
        let mut lines = vec![StyledLine::of(tone, &format!("  {sign} {title}{exit}"))];
        if !tool.result.is_empty() && tool.result != tool.title {
            lines.push(StyledLine::of(Tone::Faint, &format!("    {}", tool.result)));
        }
        lines
    }

    /// Returns the current activity, the tokens so far, and the cost in dollars.
    pub fn now(&self) -> (String, u64, Option<f64>) {
        let tokens = self.usage.input + self.usage.output;
        (self.doing.clone(), tokens, self.cost)
    }

    pub fn end(&self, model: &str, failed: bool) -> StyledLine {
        let how = match (failed, self.is_early) {
            (true, _) => "failed",
            (false, true) => "stopped early",
            (false, false) => "done",
        };
        self.line(model, how)
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
            text.push_str(&format!(", {}", grouped_count(tokens, "token")));
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
            ..ToolUse::default()
        }
    }

    #[test]
    fn a_tool_is_shown_at_its_end_with_its_result_and_exit_code() {
        let pending = tool("1", "Terminal", ToolStatus::Pending);
        let completed = ToolUse {
            result: "2 passed".to_owned(),
            exit_code: Some(0),
            ..tool("1", "cargo test", ToolStatus::Completed)
        };
        let failed = ToolUse {
            result: "error: no such file".to_owned(),
            exit_code: Some(101),
            ..tool("2", "cargo run", ToolStatus::Completed)
        };
        check(
            &[
                AgentProgress::Tool(&pending),
                AgentProgress::Tool(&completed),
                AgentProgress::Tool(&completed),
                AgentProgress::Tool(&failed),
                AgentProgress::Tool(&tool("3", "", ToolStatus::Failed)),
            ],
            &[
                "  • cargo test",
                "    2 passed",
                "  ✗ cargo run (exit code 101)",
                "    error: no such file",
                "  ✗ a tool",
            ],
            "m: cargo run, 0 s",
        );
    }

    #[test]
    fn a_key_with_a_sequence_in_it_is_hidden_and_a_long_line_comes_in_parts() {
        let mut work = AgentWork::default();
        let key = "ghp_\u{1b}[1ma9Zk3Qx7Lm2Vt8Rb5Nw4Yc6Hd1Jf0Gs4x8Pq2\n";
        let shown = work.feed(&AgentProgress::Says(key))[0].text();
        assert!(!shown.contains("Qx7Lm2"), "{shown}");
        let parts = work.feed(&AgentProgress::Says(&"x".repeat(3 * MAX_PART)));
        assert_eq!(parts.len(), 3);
    }

    #[test]
    fn the_words_of_the_agent_are_faint_lines() {
        let mut work = AgentWork::default();
        let says = ["I will ", "look.\nThen\u{1b}[2J I ", "edit\u{202e}."];
        let mut lines: Vec<StyledLine> = says
            .iter()
            .flat_map(|words| work.feed(&AgentProgress::Says(words)))
            .collect();
        assert_eq!(lines.len(), 1);
        lines.extend(work.feed(&AgentProgress::Thinks("hm")));
        assert_eq!(
            lines,
            ["  I will look.", "  Then I edit\\u{202e}."]
                .map(|line| StyledLine::of(Tone::Faint, line))
        );
        assert!(work.feed(&AgentProgress::Says(&"x".repeat(5000))).len() == 1);
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
                    context: None,
                },
                AgentProgress::Idle(Duration::from_secs(12)),
            ],
            &[],
            "m: write it (0 of 1 done), nothing new for 12 s, 0 s, 1,234 tokens, $0.5000",
        );
    }
}
