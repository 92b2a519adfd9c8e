//! An arbitrary command as an agent. It gets its task as an argument, a file or on stdin.
//!
//! Its output is its message, unless the settings define facts: then JSON lines are searched for
//! them.

use std::time::Duration;

use serde_json::Value;

use super::agent::{AgentSettings, private_folder};
use super::agent_output::{LineSplitter, MAX_LINE};
use super::clock::{AgentClock, AgentStop, none_left, too_much};
use super::complaint::Complaints;
use super::facts::{AgentFacts, FactRule, bound, is_id};
use super::label::label;
use super::record::{Speaker, TranscriptRecorder};
use super::{
    ActingModel, AgentFailure, AgentHost, AgentIdentity, AgentLimits, AgentNeeds, AgentProgress,
    AgentResult, AgentTask, StopReason,
};
use crate::host::dialogue::{Dialogue, DialogueDir, DialogueEnding, DialogueEvent, DialogueOrder};
use crate::model::{ModelError, TokenUsage};
use crate::text::visible::strip_ansi;

/// Polling interval for limits and cancellation.
const TICK: Duration = Duration::from_millis(50);

pub(super) struct CommandAgent {
    agent: AgentSettings,
    rules: Vec<FactRule>,
}

struct CommandStart {
    words: Vec<String>,
    /// Text for its stdin. Empty if the arguments contain the task.
    input: Vec<u8>,
    resumed: bool,
}

struct RunningCommand<'a> {
    dialogue: Dialogue,
    host: &'a mut dyn AgentHost,
    clock: AgentClock,
    record: TranscriptRecorder,
    facts: AgentFacts,
    /// Output that isn't JSON, or all output if there are no rules for facts.
    said: String,
    has_facts: bool,
    lines: LineSplitter,
    complaints: Complaints,
}

enum CommandHalt {
    Stop(AgentStop),
    /// A line exceeds `MAX_LINE`.
    Line,
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

    /// Fills in the placeholders of the command. Without a placeholder for the task, it goes to
    /// stdin.
    fn prepare(
        &self,
        task: &AgentTask<'_>,
        folder: &DialogueDir,
    ) -> Result<CommandStart, ModelError> {
        let conversation = task.conversation.as_deref();
        let conversation = conversation.filter(|id| is_id(id) && !self.agent.go_on.is_empty());
        let resumed = conversation.is_some() && self.agent.resumes;
        let words = if resumed {
            &self.agent.go_on
        } else {
            &self.agent.run
        };
        // A resumed conversation knows the input, but not the fate of its last changes.
        let text = task.told(resumed);
        let has = |place: &str| words.iter().any(|word| word.contains(place));

        let file = folder.temporary().join("input.md");
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
        let places = [
            ("{input}", file.to_string_lossy().into_owned()),
            ("{message}", message),
            ("{mode}", modes.first().map_or("", |mode| mode).to_owned()),
            (
                "{conversation}",
                conversation.unwrap_or_default().to_owned(),
            ),
            ("{tmp}", folder.temporary().to_string_lossy().into_owned()),
        ];
        let is_told = has("{input}") || has("{message}");

        Ok(CommandStart {
            words: words.iter().map(|word| filled(word, &places)).collect(),
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
        folder: &DialogueDir,
        start: &CommandStart,
    ) -> Result<Dialogue, ModelError> {
        self.agent.make_state();
        let order = DialogueOrder {
            argv: &start.words,
            dir: task.folder,
            launcher: &task.launcher,
            variables: &self.agent.variables(task),
            keep_env: &self.agent.needs.keys,
        };
        let mut dialogue =
            Dialogue::start(&order, folder).map_err(|refusal| self.agent.refused(refusal))?;
        if !start.input.is_empty() {
            dialogue.send(start.input.clone());
        }
        // EOF tells the command that its input is complete.
        dialogue.hang_up();

        Ok(dialogue)
    }

    fn failed(&self, ending: &DialogueEnding, complaints: &Complaints) -> ModelError {
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
    fn name(&self) -> &str {
        &self.agent.name
    }

    fn needs(&self) -> &AgentNeeds {
        &self.agent.needs
    }

    fn limits(&self) -> AgentLimits {
        self.agent.limits
    }

    fn act(
        &self,
        task: &AgentTask<'_>,
        host: &mut dyn AgentHost,
    ) -> Result<AgentResult, Box<AgentFailure>> {
        let folder = private_folder()?;
        let start = self.prepare(task, &folder)?;
        let dialogue = self.start(task, &folder, &start)?;

        let mut record = TranscriptRecorder::new(self.agent.secrets.clone());
        record.start(&self.agent.run, task.is_confined);
        let mut running = RunningCommand {
            dialogue,
            host,
            clock: AgentClock::new(task.limits),
            record,
            facts: AgentFacts::new(&self.rules),
            said: String::new(),
            has_facts: !self.rules.is_empty(),
            lines: LineSplitter::default(),
            complaints: Complaints::default(),
        };

        let ending = running.watch();
        let outcome = match ending {
            Ok(DialogueEnding::Exited(0)) => Ok(()),
            Ok(ending) => Err(self.failed(&ending, &running.complaints)),
            Err(CommandHalt::Stop(stop)) => Err(stop.error(&running.message())),
            Err(CommandHalt::Line) => Err(too_much(MAX_LINE as u64)),
        };
        if !self.agent.tells_tokens(start.resumed) {
            running.facts.usage = TokenUsage::default();
        }
        running.finish(start.resumed, outcome)
    }
}

impl RunningCommand<'_> {
    fn watch(&mut self) -> Result<DialogueEnding, CommandHalt> {
        loop {
            if self.host.stopped() {
                return Err(CommandHalt::Stop(AgentStop::Wanted));
            }
            if let Some(stop) = self.clock.met() {
                return Err(CommandHalt::Stop(stop));
            }

            match self.dialogue.next_event(TICK) {
                DialogueEvent::Stdout(bytes) => {
                    self.clock.heard(bytes.len());
                    let lines = self.lines.add(&bytes).map_err(|_| CommandHalt::Line)?;
                    lines.iter().for_each(|line| self.read(line));
                }
                // Unlike for ACP agents, stderr counts: commands can report progress there.
                DialogueEvent::Stderr(bytes) => {
                    self.clock.heard(bytes.len());
                    self.complaints.add(&bytes);
                }
                DialogueEvent::Timeout => {
                    let quiet = self.clock.quiet();
                    self.host.progress(AgentProgress::Quiet(quiet));
                }
                DialogueEvent::Ended(ending) => {
                    let rest = self.lines.take();
                    rest.iter().for_each(|line| self.read(line));
                    return Ok(ending);
                }
            }
        }
    }

    fn read(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let object = serde_json::from_str(&text).ok().filter(Value::is_object);
        let Some(object) = object.filter(|_| self.has_facts) else {
            let text = strip_ansi(&text);
            self.record.text(&text);
            self.host.progress(AgentProgress::Says(&text));
            self.host.progress(AgentProgress::Says("\n"));
            self.said.push_str(&text);
            self.said.push('\n');
            bound(&mut self.said);
            return;
        };

        self.record.message(Speaker::Agent, &object);
        let before = (self.facts.usage, self.facts.cost);
        if let Some(said) = self.facts.read(&object) {
            self.host.progress(AgentProgress::Says(said));
        }

        if before != (self.facts.usage, self.facts.cost) {
            let (usage, cost) = (self.facts.usage, self.facts.cost);
            self.host.progress(AgentProgress::Used { usage, cost });
        }
    }

    /// The message from the facts, else everything it printed.
    fn message(&self) -> String {
        let message = self.facts.message.as_deref().unwrap_or(&self.said);
        message.trim().to_owned()
    }

    fn finish(
        self,
        resumed: bool,
        outcome: Result<(), ModelError>,
    ) -> Result<AgentResult, Box<AgentFailure>> {
        let version = self.facts.version.as_deref();
        let mut work = AgentResult {
            message: self.message(),
            conversation: self.facts.conversation.clone(),
            resumed,
            agent: version.map(|version| AgentIdentity {
                name: String::new(),
                version: label(version),
            }),
            usage: self.facts.usage,
            cost: self.facts.cost,
            stop: StopReason::Cancelled,
            transcript: Vec::new(),
        };
        // The command has exited, but its children might still run.
        let ended = self.dialogue.end();
        let outcome = none_left(&ended.survivors).and(outcome);

        let error = outcome.as_ref().err().map(ToString::to_string);
        let mut record = self.record;
        record.complaint(&self.complaints.text());
        work.transcript = record.finish(&work, error);
        match outcome {
            Ok(()) => Ok(AgentResult {
                stop: StopReason::Done,
                ..work
            }),
            Err(error) => Err(Box::new(AgentFailure { error, work })),
        }
    }
}

/// Replaces placeholders in one pass, so that placeholders within a value aren't expanded.
fn filled(word: &str, places: &[(&str, String)]) -> String {
    let mut filled = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        let (before, behind) = rest.split_at(start);
        filled.push_str(before);
        let place = places.iter().find(|(name, _)| behind.starts_with(name));
        let (value, length) = place.map_or(("{", 1), |(name, value)| (value, name.len()));
        filled.push_str(value);
        rest = &behind[length..];
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expected: &str) {
        let places = [
            ("{message}", "say {mode}".to_owned()),
            ("{mode}", "all".to_owned()),
        ];
        assert_eq!(filled(word, &places), expected);
    }

    #[test]
    fn a_value_is_not_looked_through_again() {
        check("{message}", "say {mode}");
        check("-m={mode},{message}", "-m=all,say {mode}");
        check("{\"a\": {other}}", "{\"a\": {other}}");
        check("plain", "plain");
    }
}
