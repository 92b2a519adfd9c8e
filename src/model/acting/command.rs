//! An arbitrary command as an agent. It gets its task as an argument, a file or on stdin.
//!
//! Its output is its message, unless the settings define facts: then JSON lines are searched for
//! them.

use serde_json::Value;

use super::agent::{ActingModel, AgentSettings, private_dir};
use super::call::{AgentCall, AgentOutput, TICK};
use super::clock::AgentStop;
use super::facts::{AgentFacts, FactRule, bound, is_id};
use super::{AgentFailure, AgentHost, AgentIdentity, AgentProgress, AgentResult, AgentTask};
use crate::host::dialogue::Dialogue;
use crate::host::supervisor::{CommandDir, CommandEnding};
use crate::model::ModelError;
use crate::model::acting::agent_output::sanitize_label;
use crate::model::acting::json_line::updates_of;
use crate::model::acting::transcript::Speaker;
use crate::model::job::Complaints;
use crate::text::foreign_json;
use crate::text::sanitize::strip_ansi;

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
    call: AgentCall<'a>,
    facts: AgentFacts,
    /// Output that isn't JSON, or all output if there are no rules for facts. At the end, what the
    /// agent's history has instead.
    output: String,
    has_facts: bool,
    /// One of its lines was known.
    is_known: bool,
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
            std::fs::write(&file, text)
                .map_err(|error| ModelError::io("writing the input to a file", &error))?;
        }

        let modes = self.agent.modes(task.is_confined);
        if has("{mode}") && modes.is_empty() {
            return Err(self.no_mode());
        }

        let message = if resumed { text } else { task.message };
        let values = [
            ("{input}", file.to_string_lossy().into_owned()),
            ("{message}", as_argument(message)),
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

    fn no_mode(&self) -> ModelError {
        let name = &self.agent.name;
        ModelError::Settings(format!(
            "model `{name}` has `{{mode}}` in `run` and no `mode`"
        ))
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

        let secrets = self.agent.secrets.clone();
        let mut call = AgentCall::new(&self.agent, task, dialogue, host, secrets);
        if start.resumed {
            call.work.count_on(task);
        }
        let mut running = RunningCommand {
            call,
            facts: AgentFacts::new(&self.rules),
            output: String::new(),
            has_facts: !self.rules.is_empty(),
            is_known: false,
        };

        let ending = running.watch();
        let outcome = match ending {
            Ok(CommandEnding::Exited(0)) => {
                if let Some(answer) = self.agent.answer_in_history(&dir.temporary()) {
                    running.output = running.call.record.redact_text(&answer);
                }
                Ok(None)
            }
            Ok(ending) => Err(self.failed(&ending, &running.call.complaints)),
            Err(stop) => Err(stop.error(&running.message())),
        };
        running.finish(start.resumed, outcome)
    }
}

impl RunningCommand<'_> {
    fn watch(&mut self) -> Result<CommandEnding, AgentStop> {
        loop {
            self.call.check()?;
            match self.call.next_output(TICK)? {
                AgentOutput::Lines(lines) => {
                    self.call.clock.record_activity();
                    lines.iter().for_each(|line| self.read(line));
                }
                // Unlike for ACP agents, stderr counts: commands can report progress there.
                AgentOutput::Stderr => self.call.clock.record_activity(),
                AgentOutput::Timeout => self.call.report_idle(),
                AgentOutput::Ended(ending) => return Ok(ending),
            }
        }
    }

    fn read(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let text = self.call.record.redact_text(&line);
        let object = foreign_json::parse(text.as_bytes())
            .ok()
            .filter(Value::is_object);
        let Some(object) = object.filter(|_| self.has_facts) else {
            let text = strip_ansi(&text);
            self.call.record.text(&text);
            self.call.host.progress(AgentProgress::Says(&text));
            self.call.host.progress(AgentProgress::Says("\n"));
            self.output.push_str(&text);
            self.output.push('\n');
            bound(&mut self.output);
            return;
        };

        self.call.record.message(Speaker::Agent, &object);
        let before = (self.facts.usage, self.facts.cost);
        let message = self.facts.read(&object);
        let updates = updates_of(&object);
        if let Some(message) = message.filter(|_| updates.is_empty() && !self.is_known) {
            self.call.host.progress(AgentProgress::Says(message));
        }
        for update in &updates {
            self.is_known = true;
            self.call.work.update(update, self.call.host);
        }

        if before != (self.facts.usage, self.facts.cost) {
            self.call.work.usage = self.facts.usage;
            self.call.work.cost = self.facts.cost;
            self.call.work.report_usage(None, self.call.host);
        }
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
        let result = AgentResult {
            message: self.message(),
            conversation: self.facts.conversation.clone(),
            resumed,
            agent: version.map(|version| AgentIdentity {
                name: String::new(),
                version: sanitize_label(version),
            }),
            ..AgentResult::default()
        };
        // The command has exited, but its children might still run.
        self.call.end(outcome, result)
    }
}

fn as_argument(message: &str) -> String {
    match message {
        // It would be parsed as an option.
        message if message.starts_with('-') => format!(" {message}"),
        message => message.to_owned(),
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
