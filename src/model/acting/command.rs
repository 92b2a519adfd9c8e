//! An arbitrary command as an agent. It gets its task as an argument, a file or on stdin.
//!
//! Its output is its message, unless the settings define facts: then JSON lines are searched for
//! them.

use std::time::Duration;

use serde_json::Value;

use super::agent::{ActingModel, AgentSettings, private_dir};
use super::agent_output::LineSplitter;
use super::clock::{AgentClock, AgentStop, check_survivors};
use super::facts::{AgentFacts, FactRule, bound, is_id};
use super::work_state::WorkState;
use super::{
    AgentFailure, AgentHost, AgentIdentity, AgentProgress, AgentResult, AgentTask,
    ConversationTotals,
};
use crate::host::dialogue::{Dialogue, DialogueEvent};
use crate::host::supervisor::{CommandDir, CommandEnding};
use crate::model::acting::agent_output::sanitize_label;
use crate::model::acting::json_line::updates_of;
use crate::model::acting::transcript::{Speaker, TranscriptRecorder};
use crate::model::job::Complaints;
use crate::model::{ModelError, TokenUsage};
use crate::text::sanitize::strip_ansi;

const TICK: Duration = Duration::from_millis(50);

pub(super) struct CommandAgent {
    agent: AgentSettings,
    rules: Vec<FactRule>,
}

struct CommandStart {
    argv: Vec<String>,
    /// For stdin. Empty if the arguments contain the task.
    input: Vec<u8>,
    resumed: bool,
}

struct RunningCommand<'a> {
    dialogue: Dialogue,
    host: &'a mut dyn AgentHost,
    clock: AgentClock,
    record: TranscriptRecorder,
    facts: AgentFacts,
    /// Output that isn't JSON, or all output if there are no rules for facts. At the end, what the
    /// agent's history has instead.
    output: String,
    has_facts: bool,
    /// Tools that it uses, of a known command.
    work: WorkState<'a>,
    /// One of its lines was known.
    is_known: bool,
    lines: LineSplitter,
    complaints: Complaints,
    agent: &'a AgentSettings,
    /// Totals of the resumed conversation before this call. `None` in a new one.
    earlier: Option<ConversationTotals>,
}

impl CommandAgent {
    /// Fails if a rule for a fact is invalid.
    pub(super) fn new(agent: AgentSettings) -> Result<CommandAgent, ModelError> {
        let rules = agent.facts.iter();
        let rules = rules.map(|(name, rule)| FactRule::parse(name, rule));
        let rules = rules
            .collect::<Result<_, _>>()
            .map_err(|why| ModelError::Settings(format!("model `{}`: {why}", agent.name)))?;
        Ok(CommandAgent { agent, rules })
    }

    /// Fills in the placeholders. Without one for the task, the task goes to stdin.
    fn prepare(&self, task: &AgentTask<'_>, dir: &CommandDir) -> Result<CommandStart, ModelError> {
        let conversation = task.conversation.as_ref().map(|earlier| &*earlier.id);
        let conversation = conversation.filter(|id| is_id(id) && !self.agent.resume.is_empty());
        let resumed = conversation.is_some() && self.agent.resumes;
        let template = if resumed {
            &self.agent.resume
        } else {
            &self.agent.run
        };
        // A resumed conversation knows the input, but not the fate of its last changes.
        let text = task.prompt(resumed);
        let has = |placeholder: &str| template.iter().any(|word| word.contains(placeholder));

        let file = dir.temporary().join("input.md");
        if has("{input}") {
            std::fs::write(&file, text).map_err(|error| ModelError::Io {
                action: "writing the input to a file".to_owned(),
                detail: error.to_string(),
            })?;
        }

        let modes = self.agent.modes(task.is_confined);
        if has("{mode}") && modes.is_empty() {
            let name = &self.agent.name;
            let why = format!("model `{name}` has `{{mode}}` in `run` and no `mode`");
            return Err(ModelError::Settings(why));
        }

        // A message that starts with a dash would be parsed as an option.
        let message = if resumed { text } else { task.message };
        let message = match message {
            message if message.starts_with('-') => format!(" {message}"),
            message => message.to_owned(),
        };
        let values = [
            ("{input}", file.to_string_lossy().into_owned()),
            ("{message}", message),
            ("{mode}", modes.first().map_or("", |mode| mode).to_owned()),
            (
                "{conversation}",
                conversation.unwrap_or_default().to_owned(),
            ),
            ("{tmp}", dir.temporary().to_string_lossy().into_owned()),
        ];
        let is_told = has("{input}") || has("{message}");

        Ok(CommandStart {
            argv: template
                .iter()
                .map(|word| fill_placeholders(word, &values))
                .collect(),
            input: if is_told {
                Vec::new()
            } else {
                text.as_bytes().to_vec()
            },
            resumed,
        })
    }

    fn start(
        &self,
        task: &AgentTask<'_>,
        dir: &CommandDir,
        start: &CommandStart,
    ) -> Result<Dialogue, ModelError> {
        let mut dialogue = self.agent.start(task, dir, &start.argv)?;
        if !start.input.is_empty() {
            dialogue.send(start.input.clone());
        }
        // EOF tells the command that its input is complete.
        dialogue.hang_up();

        Ok(dialogue)
    }

    fn failed(&self, ending: &CommandEnding, complaints: &Complaints) -> ModelError {
        let program = &self.agent.run[0];
        let why = complaints.behind_colon();
        ModelError::Agent {
            detail: format!("`{program}` failed ({ending}){why}"),
            remedy: format!(
                "run `{program}` by hand to see more; if it is not logged in: {}",
                self.agent.login()
            ),
        }
    }
}

impl ActingModel for CommandAgent {
    fn agent(&self) -> &AgentSettings {
        &self.agent
    }

    fn act(
        &self,
        task: &AgentTask<'_>,
        host: &mut dyn AgentHost,
    ) -> Result<AgentResult, Box<AgentFailure>> {
        let dir = private_dir()?;
        let start = self.prepare(task, &dir)?;
        let dialogue = self.start(task, &dir, &start)?;

        let mut record = TranscriptRecorder::new(self.agent.secrets.clone());
        record.start(&self.agent.run, task.is_confined);
        let mut running = RunningCommand {
            dialogue,
            host,
            clock: AgentClock::new(task.limits),
            record,
            facts: AgentFacts::new(&self.rules),
            output: String::new(),
            has_facts: !self.rules.is_empty(),
            work: WorkState::default(),
            is_known: false,
            lines: LineSplitter::default(),
            complaints: Complaints::new(self.agent.secrets.clone()),
            agent: &self.agent,
            earlier: task
                .conversation
                .as_ref()
                .filter(|_| start.resumed)
                .map(|earlier| self.agent.totals_before(earlier)),
        };

        let ending = running.watch();
        let outcome = match ending {
            Ok(CommandEnding::Exited(0)) => {
                if let Some(answer) = self.agent.answer_in_history(&dir.temporary()) {
                    running.output = running.record.redact_text(&answer);
                }
                Ok(None)
            }
            Ok(ending) => Err(self.failed(&ending, &running.complaints)),
            Err(stop) => Err(stop.error(&running.message())),
        };
        running.finish(start.resumed, outcome)
    }
}

impl RunningCommand<'_> {
    fn watch(&mut self) -> Result<CommandEnding, AgentStop> {
        loop {
            if self.host.stopped() {
                return Err(AgentStop::Cancelled);
            }
            if let Some(stop) = self.clock.exceeded() {
                return Err(stop);
            }

            match self.dialogue.next_event(TICK) {
                DialogueEvent::Stdout(bytes) => {
                    self.clock.record_output(bytes.len());
                    self.clock.record_activity();
                    let lines = self.lines.add(&bytes)?;
                    lines.iter().for_each(|line| self.read(line));
                }
                // Unlike for ACP agents, stderr counts: commands can report progress there.
                DialogueEvent::Stderr(bytes) => {
                    self.clock.record_output(bytes.len());
                    self.clock.record_activity();
                    self.complaints.add(&bytes);
                }
                DialogueEvent::Timeout => {
                    let idle = self.clock.idle_time();
                    self.host.progress(AgentProgress::Idle(idle));
                }
                DialogueEvent::Ended(ending) => {
                    let last_line = self.lines.take();
                    last_line.iter().for_each(|line| self.read(line));
                    return Ok(ending);
                }
            }
        }
    }

    fn read(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let text = self.record.redact_text(&line);
        let object = serde_json::from_str(&text).ok().filter(Value::is_object);
        let Some(object) = object.filter(|_| self.has_facts) else {
            let text = strip_ansi(&text);
            self.record.text(&text);
            self.host.progress(AgentProgress::Says(&text));
            self.host.progress(AgentProgress::Says("\n"));
            self.output.push_str(&text);
            self.output.push('\n');
            bound(&mut self.output);
            return;
        };

        self.record.message(Speaker::Agent, &object);
        let before = (self.facts.usage, self.facts.cost);
        let message = self.facts.read(&object);
        let updates = updates_of(&object);
        if let Some(message) = message.filter(|_| updates.is_empty() && !self.is_known) {
            self.host.progress(AgentProgress::Says(message));
        }
        for update in &updates {
            self.is_known = true;
            self.work.update(update, self.host);
        }

        if before != (self.facts.usage, self.facts.cost) {
            let (usage, cost, _) = self.usage_of_call();
            self.host.progress(AgentProgress::Used {
                usage,
                cost,
                context: None,
            });
        }
    }

    fn usage_of_call(&self) -> (TokenUsage, Option<f64>, ConversationTotals) {
        let (usage, cost) = (self.facts.usage, self.facts.cost);
        self.agent.usage_of_call(usage, cost, self.earlier.as_ref())
    }

    /// The message from the facts, else everything it printed.
    fn message(&self) -> String {
        let message = self.facts.message.as_deref().unwrap_or(&self.output);
        message.trim().to_owned()
    }

    fn finish(
        self,
        resumed: bool,
        outcome: Result<Option<String>, ModelError>,
    ) -> Result<AgentResult, Box<AgentFailure>> {
        let version = self.facts.version.as_deref();
        let (usage, cost, totals) = self.usage_of_call();
        let work = AgentResult {
            message: self.message(),
            conversation: self.facts.conversation.clone(),
            resumed,
            agent: version.map(|version| AgentIdentity {
                name: String::new(),
                version: sanitize_label(version),
            }),
            usage,
            cost,
            totals,
            ..AgentResult::default()
        };
        // The command has exited, but its children might still run.
        let ended = self.dialogue.end();
        let mut record = self.record;
        record.complaint(&self.complaints.text());
        record.finish(work, check_survivors(&ended.survivors).and(outcome))
    }
}

fn fill_placeholders(word: &str, values: &[(&str, String)]) -> String {
    let mut filled = String::new();
    let mut remaining = word;
    // In one pass: placeholders within a value aren't expanded.
    while let Some(start) = remaining.find('{') {
        let (before, after) = remaining.split_at(start);
        filled.push_str(before);
        let placeholder = values.iter().find(|(name, _)| after.starts_with(name));
        let (value, length) = placeholder.map_or(("{", 1), |(name, value)| (value, name.len()));
        filled.push_str(value);
        remaining = &after[length..];
    }
    filled + remaining
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expected: &str) {
        let values = [
            ("{message}", "say {mode}".to_owned()),
            ("{mode}", "all".to_owned()),
        ];
        assert_eq!(fill_placeholders(word, &values), expected);
    }

    #[test]
    fn a_value_is_not_looked_through_again() {
        check("{message}", "say {mode}");
        check("-m={mode},{message}", "-m=all,say {mode}");
        check("{\"a\": {other}}", "{\"a\": {other}}");
        check("plain", "plain");
    }
}
