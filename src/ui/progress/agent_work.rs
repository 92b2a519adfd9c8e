//! State of an agent at work, and the lines that it leaves on the screen.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::{LINES, MAX_OUTPUT_LINE};
use crate::model::TokenUsage;
use crate::model::acting::{AgentProgress, ToolStatus, ToolUse};
use crate::text::grouped;
use crate::text::sanitize::{sanitize_line, strip_ansi};
use crate::text::secret::redact;
use crate::ui::style::{StyledLine, Tone};

/// Silence after which the status mentions it.
const IDLE: Duration = Duration::from_secs(10);

/// Tools remembered, so that each is shown once.
const MAX_TOOLS: usize = 10_000;

/// State of a model at work.
pub struct AgentWork {
    start: Instant,
    /// Ids of tools that were shown.
    reported: HashSet<String>,
    /// Tools at work: id and title.
    running: Vec<(String, String)>,
    /// A line of the agent's own words that is not complete.
    words: String,
    /// Lines of its words that were shown.
    lines: usize,
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
            running: Vec::new(),
            words: String::new(),
            lines: 0,
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
            AgentProgress::Says(text) => {
                self.doing = "writing".to_owned();
                return self.says(text);
            }
            AgentProgress::Thinks(_) => self.doing = "thinking".to_owned(),
            AgentProgress::Tool(tool) => {
                let mut lines = self.end_words();
                lines.extend(self.tool(tool));
                return lines;
            }
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

    /// A tool is shown once it has ended: then its title is final.
    fn tool(&mut self, tool: &ToolUse) -> Vec<StyledLine> {
        self.doing.clone_from(&tool.title);
        let running = self.running.iter().position(|(id, _)| *id == tool.id);
        let has_ended = matches!(tool.status, ToolStatus::Completed | ToolStatus::Failed);
        if !has_ended {
            match running {
                Some(index) => self.running[index].1.clone_from(&tool.title),
                None if self.running.len() < MAX_TOOLS && !self.reported.contains(&tool.id) => {
                    self.running.push((tool.id.clone(), tool.title.clone()));
                }
                None => {}
            }
            return Vec::new();
        }

        running.map(|index| self.running.remove(index));
        if self.reported.len() >= MAX_TOOLS || !self.reported.insert(tool.id.clone()) {
            return Vec::new();
        }
        let code = tool.exit_code.filter(|code| *code != 0);
        let (sign, tone) = match tool.status {
            ToolStatus::Failed => ("✗", Tone::Removed),
            _ if code.is_some() => ("✗", Tone::Removed),
            _ => ("•", Tone::Faint),
        };
        let code = code.map_or_else(String::new, |code| format!(" (exit code {code})"));
        let mut lines = vec![StyledLine::of(
            tone,
            &format!("  {sign} {}{code}", tool.title),
        )];
        // What it read is not news.
        if !tool.result.is_empty() && tool.kind != "read" {
            lines.push(StyledLine::of(Tone::Faint, &format!("    {}", tool.result)));
        }
        lines
    }

    fn says(&mut self, text: &str) -> Vec<StyledLine> {
        let mut lines = Vec::new();
        for part in text.split_inclusive('\n') {
            if self.words.len() < MAX_OUTPUT_LINE {
                self.words.push_str(part);
            }
            if part.ends_with('\n') {
                lines.extend(self.end_words());
            }
        }
        lines
    }

    /// The line of its words so far. Empty lines are left out.
    fn end_words(&mut self) -> Vec<StyledLine> {
        let words = std::mem::take(&mut self.words);
        let words = strip_ansi(words.trim_end());
        if words.trim().is_empty() || self.lines >= LINES {
            return Vec::new();
        }
        self.lines += 1;
        let words = redact(&words);
        let words = sanitize_line(&words);
        vec![StyledLine::of(Tone::Faint, &format!("  {words}"))]
    }

    /// Returns its last words, and the tools that it never reported as ended.
    pub fn remaining(&mut self) -> Vec<StyledLine> {
        let mut lines = self.end_words();
        let running = std::mem::take(&mut self.running);
        let running = running.iter().filter(|(_, title)| !title.is_empty());
        lines.extend(
            running.map(|(_, title)| {
                StyledLine::of(Tone::Faint, &format!("  • {title} (not finished)"))
            }),
        );
        lines
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
            ..ToolUse::default()
        }
    }

    #[test]
    fn a_tool_is_shown_with_its_final_title_and_result() {
        let pending = tool("1", "Edit", ToolStatus::Pending);
        let completed = tool("1", "edit a.txt", ToolStatus::Completed);
        let failed = ToolUse {
            exit_code: Some(101),
            result: "1 test failed".to_owned(),
            ..tool("2", "cargo test", ToolStatus::Completed)
        };
        check(
            &[
                AgentProgress::Says("I wi"),
                AgentProgress::Says("ll.\n\nThen \u{1b}[2Jit"),
                AgentProgress::Tool(&pending),
                AgentProgress::Tool(&completed),
                AgentProgress::Tool(&completed),
                AgentProgress::Tool(&failed),
            ],
            &[
                "  I will.",
                "  Then it",
                "  • edit a.txt",
                "  ✗ cargo test (exit code 101)",
                "    1 test failed",
            ],
            "m: cargo test, 0 s",
        );
    }

    #[test]
    fn what_was_not_finished_is_shown_at_the_end() {
        let mut work = AgentWork::default();
        work.feed(&AgentProgress::Tool(&tool(
            "1",
            "make",
            ToolStatus::Running,
        )));
        work.feed(&AgentProgress::Says("Done."));
        let lines: Vec<String> = work.remaining().iter().map(StyledLine::text).collect();
        assert_eq!(lines, ["  Done.", "  • make (not finished)"]);
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
