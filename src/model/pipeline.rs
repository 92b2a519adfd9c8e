//! Pipelines: a plan made in several steps, each with its own prompt, model and inputs.
//!
//! `docs/formats/pipeline.md` defines the format. Comments refer to its rules (ST1, ST2, ...).

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde_yaml::Value;

use crate::model::{Model, ModelAnswer, ModelError, ModelRequest};
use crate::text::fence::fenced;
use crate::text::yaml::guard;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    pub description: String,
    /// At least one. The last one writes the plan (ST10).
    pub steps: Vec<PipelineStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineStep {
    /// Unique. Later steps refer to its output by it (ST4).
    pub name: String,
    /// With unexpanded placeholders (ST5).
    pub prompt: String,
    /// `None` uses the turn's model (ST6).
    pub model: Option<String>,
    /// In order (ST7).
    pub inputs: Vec<StepInput>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepInput {
    System,
    /// The turn's `input.md`.
    Input,
    Message,
    /// The output of an earlier step.
    Step(String),
}

impl StepInput {
    fn from_name(name: &str) -> StepInput {
        match name {
            "system" => StepInput::System,
            "input" => StepInput::Input,
            "message" => StepInput::Message,
            step => StepInput::Step(step.to_owned()),
        }
    }

    /// As in placeholders and `inputs`.
    pub fn name(&self) -> &str {
        match self {
            StepInput::System => "system",
            StepInput::Input => "input",
            StepInput::Message => "message",
            StepInput::Step(name) => name,
        }
    }
}

/// With a backslash that escapes it.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\\?)\{\{ *([A-Za-z0-9_-]+) *\}\}")
        .expect("the pattern is a constant that the tests compile")
});

struct Placeholder<'a> {
    range: Range<usize>,
    /// `None` if a backslash escapes it.
    name: Option<&'a str>,
}

fn placeholders(prompt: &str) -> impl Iterator<Item = Placeholder<'_>> {
    PLACEHOLDER.captures_iter(prompt).filter_map(|captures| {
        let name = captures
            .get(2)
            .filter(|_| captures.get(1).is_none_or(|escape| escape.is_empty()))
            .map(|name| name.as_str());
        Some(Placeholder {
            range: captures.get(0)?.range(),
            name,
        })
    })
}

/// Removes the backslash from escaped placeholders.
fn substitute<'a>(prompt: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let (mut text, mut end) = (String::new(), 0);
    for placeholder in placeholders(prompt) {
        text.push_str(&prompt[end..placeholder.range.start]);
        match placeholder.name {
            Some(name) => text.push_str(value(name).unwrap_or_default().trim_end()),
            None => text.push_str(&prompt[placeholder.range.start + 1..placeholder.range.end]),
        }
        end = placeholder.range.end;
    }

    text + &prompt[end..]
}

/// In bytes (ST1).
pub const MAX_PIPELINE_BYTES: usize = 64 << 10;

/// ST2.
pub const MAX_STEPS: usize = 20;

/// Built-in inputs, not allowed as names of steps (ST4).
const RESERVED_STEP_NAMES: [&str; 3] = ["system", "input", "message"];

pub struct KnownNames<'a> {
    /// Next to the pipeline.
    pub file: &'a dyn Fn(&str) -> Result<String, String>,
    /// The error describes the problem.
    pub model: &'a dyn Fn(&str) -> Result<(), String>,
}

/// Each is prefixed with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(pub Vec<String>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Mistakes {}

/// Fails with all mistakes at once.
pub fn parse(text: &str, names: &KnownNames<'_>) -> Result<Pipeline, Mistakes> {
    let mut reader = PipelineReader {
        names,
        mistakes: Vec::new(),
        prefix: String::new(),
    };
    let pipeline = reader.pipeline(text);
    match pipeline {
        Some(pipeline) if reader.mistakes.is_empty() => Ok(pipeline),
        _ => Err(Mistakes(reader.mistakes)),
    }
}

struct PipelineReader<'a> {
    names: &'a KnownNames<'a>,
    mistakes: Vec<String>,
    /// Such as `` step 2 `decide`: ``.
    prefix: String,
}

impl PipelineReader<'_> {
    fn wrong(&mut self, message: impl fmt::Display) {
        self.mistakes.push(format!("{}{message}", self.prefix));
    }

    fn pipeline(&mut self, text: &str) -> Option<Pipeline> {
        guard(text, MAX_PIPELINE_BYTES)
            .map_err(|error| self.wrong(error))
            .ok()?;
        let value: Value = serde_yaml::from_str(text)
            .map_err(|error| self.wrong(error))
            .ok()?;
        self.keys(&value, &["description", "steps"]);
        let description = self.text(&value, "description").unwrap_or_default();
        let Some(list) = value
            .get("steps")
            .and_then(Value::as_sequence)
            .filter(|list| !list.is_empty())
        else {
            self.wrong("`steps` must be a list of at least one step");
            return None;
        };
        if list.len() > MAX_STEPS {
            self.wrong(format_args!(
                "there are {} steps, the limit is {MAX_STEPS}",
                list.len()
            ));
        }

        let mut steps: Vec<PipelineStep> = Vec::new();
        for (position, value) in list.iter().enumerate() {
            let step = self.step(value, position, &steps, position + 1 == list.len());
            steps.push(step);
        }

        Some(Pipeline { description, steps })
    }

    /// Records mistakes and continues.
    fn step(
        &mut self,
        value: &Value,
        position: usize,
        earlier: &[PipelineStep],
        last: bool,
    ) -> PipelineStep {
        let name = value
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        self.prefix = if name.is_empty() {
            format!("step {}: ", position + 1)
        } else {
            format!("step {} `{name}`: ", position + 1)
        };

        self.keys(value, &["name", "prompt", "prompt_file", "model", "inputs"]);
        self.name(&name, earlier);
        let prompt = self.prompt(value);
        let model = self.text(value, "model");
        if let Some(model) = &model
            && let Err(error) = (self.names.model)(model)
        {
            self.wrong(error);
        }

        let inputs = self.inputs(value, earlier, last);
        self.placeholders(&prompt, &inputs);
        self.prefix.clear();
        PipelineStep {
            name,
            prompt,
            model,
            inputs,
        }
    }

    /// ST4.
    fn name(&mut self, name: &str, earlier: &[PipelineStep]) {
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.len() <= 60
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !is_name {
            self.wrong(
                "`name` must be lower-case letters, digits and dashes, and begin with a letter",
            );
        } else if RESERVED_STEP_NAMES.contains(&name) {
            self.wrong("the name stands for an input already");
        } else if earlier.iter().any(|step| step.name == name) {
            self.wrong("an earlier step has the same name");
        }
    }

    /// `prompt` or `prompt_file` (ST5).
    fn prompt(&mut self, value: &Value) -> String {
        let prompt = match (self.text(value, "prompt"), self.text(value, "prompt_file")) {
            (Some(text), None) => text,
            // Trust in a pipeline covers only files in the same directory.
            (None, Some(file)) if file.contains(['/', '\\']) || file.starts_with('.') => {
                self.wrong(format_args!("`prompt_file` must be the name of a file beside the pipeline, and `{file}` is a path"));
                // Any non-empty text will do: it avoids a second error about an empty prompt.
                return "none".into();
            }
            (None, Some(file)) => (self.names.file)(&file).unwrap_or_else(|error| {
                self.wrong(format_args!("cannot read `{file}`: {error}"));
                "none".into()
            }),
            _ => {
                self.wrong("give either `prompt` or `prompt_file`");
                return "none".into();
            }
        };
        if prompt.trim().is_empty() {
            self.wrong("the prompt is empty");
        }

        prompt
    }

    /// The default is the input, the message and the previous step; for the last step also the
    /// system prompt (ST7).
    fn inputs(&mut self, value: &Value, earlier: &[PipelineStep], last: bool) -> Vec<StepInput> {
        let Some(list) = value.get("inputs") else {
            let before = earlier
                .last()
                .map(|step| StepInput::Step(step.name.clone()));
            return last
                .then_some(StepInput::System)
                .into_iter()
                .chain([StepInput::Input, StepInput::Message])
                .chain(before)
                .collect();
        };

        let Some(list) = list.as_sequence() else {
            self.wrong("`inputs` must be a list of names");
            return Vec::new();
        };

        let mut inputs = Vec::new();
        for name in list {
            let name = name.as_str().unwrap_or_default();
            let input = StepInput::from_name(name);
            if matches!(input, StepInput::Step(_)) && !earlier.iter().any(|step| step.name == name)
            {
                self.wrong(format_args!(
                    "the input `{name}` is neither `input`, `message`, `system` nor an earlier step"
                ));
            } else if inputs.contains(&input) {
                self.wrong(format_args!("the input `{name}` is listed twice"));
            } else {
                inputs.push(input);
            }
        }

        inputs
    }

    /// A prompt can use only inputs of its step (ST8).
    fn placeholders(&mut self, prompt: &str, inputs: &[StepInput]) {
        for name in placeholders(prompt).filter_map(|placeholder| placeholder.name) {
            if !inputs.iter().any(|input| input.name() == name) {
                self.wrong(format_args!(
                    "`{{{{{name}}}}}` is not among the step's inputs"
                ));
            }
        }
    }

    fn keys(&mut self, value: &Value, allowed: &[&str]) {
        let Some(mapping) = value.as_mapping() else {
            return self.wrong(format_args!(
                "must be a mapping with {}",
                allowed.join(", ")
            ));
        };
        for key in mapping.keys() {
            if !key.as_str().is_some_and(|key| allowed.contains(&key)) {
                let key = key.as_str().map_or_else(
                    || "a key that is not text".to_owned(),
                    |key| format!("`{key}`"),
                );
                self.wrong(format_args!(
                    "{key} is not known here; there are {}",
                    allowed.join(", ")
                ));
            }
        }
    }

    /// Records a mistake for any other type.
    fn text(&mut self, value: &Value, key: &str) -> Option<String> {
        let value = value.get(key)?;
        if value.as_str().is_none() {
            self.wrong(format_args!("`{key}` must be a text"));
        }
        value.as_str().map(str::to_owned)
    }
}

/// Stored as artifacts of the turn.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRun {
    pub name: String,
    pub request: ModelRequest,
    pub answer: ModelAnswer,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Stopped {
    pub step: String,
    pub error: Box<ModelError>,
}

pub enum PipelineEvent<'a> {
    Started {
        position: usize,
        step: &'a PipelineStep,
        request: &'a ModelRequest,
    },
    Received {
        /// All of it so far.
        text: &'a str,
    },
    Finished(&'a StepRun),
}

/// `steps/01-analysis` for position 0 (ST13).
pub fn step_dir(position: usize, name: &str) -> String {
    format!("steps/{:02}-{name}", position + 1)
}

/// `models` has the model of each step, by the name in the pipeline.
pub fn run<M: Model>(
    pipeline: &Pipeline,
    turn: &ModelRequest,
    models: &HashMap<Option<String>, M>,
    watch: &mut dyn FnMut(PipelineEvent<'_>),
) -> Result<Vec<StepRun>, Stopped> {
    let mut ran: Vec<StepRun> = Vec::new();
    for (position, step) in pipeline.steps.iter().enumerate() {
        let request = step_request(step, turn, &ran);
        watch(PipelineEvent::Started {
            position,
            step,
            request: &request,
        });
        let answer = models[&step.model].answer(&request, &mut |text| {
            watch(PipelineEvent::Received { text })
        });

        let finished = answer.and_then(|answer| {
            let finished = StepRun {
                name: step.name.clone(),
                request,
                answer,
            };
            // Also if it is incomplete: it has been paid for.
            watch(PipelineEvent::Finished(&finished));
            // The caller judges the last answer.
            if position + 1 < pipeline.steps.len() {
                finished.answer.clone().into_complete()?;
            }
            Ok(finished)
        });

        match finished {
            Ok(finished) => ran.push(finished),
            Err(error) => {
                return Err(Stopped {
                    step: step.name.clone(),
                    error: Box::new(error),
                });
            }
        }
    }

    Ok(ran)
}

/// Inputs that the prompt doesn't mention go to their usual places (ST9).
fn step_request(step: &PipelineStep, turn: &ModelRequest, ran: &[StepRun]) -> ModelRequest {
    let value = |name: &str| match StepInput::from_name(name) {
        StepInput::System => Some(turn.system.as_str()),
        StepInput::Input => Some(turn.input.as_str()),
        StepInput::Message => Some(turn.message.as_str()),
        StepInput::Step(name) => ran
            .iter()
            .find(|ran| ran.name == name)
            .map(|ran| ran.answer.text.as_str()),
    };
    let mut request = ModelRequest {
        message: substitute(&step.prompt, value).trim_end().to_owned(),
        max_tokens: turn.max_tokens,
        ..ModelRequest::default()
    };

    for input in &step.inputs {
        if placeholders(&step.prompt).any(|placeholder| placeholder.name == Some(input.name())) {
            continue;
        }

        let text = value(input.name()).unwrap_or_default();
        match input {
            StepInput::System => text.clone_into(&mut request.system),
            StepInput::Input => text.clone_into(&mut request.input),
            StepInput::Message => request
                .message
                .push_str(&fenced_section("The user's message", text)),
            StepInput::Step(name) => request
                .message
                .push_str(&fenced_section(&format!("Output of step `{name}`"), text)),
        }
    }

    request
}

fn fenced_section(heading: &str, text: &str) -> String {
    format!("\n\n## {heading}\n\n{}", fenced(text, "", 4))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod run_tests {
    use super::*;
    use crate::model::local::Replay;
    use crate::model::pipeline::{KnownNames, parse};
    use crate::model::{Finish, TokenUsage};

    const THREE: &str = "steps:\n- {name: analysis, prompt: 'Analyse.'}\n- {name: decision, prompt: 'Decide on: {{analysis}}', inputs: [analysis]}\n- {name: plan, prompt: 'Plan.', inputs: [system, input, message, decision]}\n";

    struct Cut;

    impl Model for Cut {
        fn answer(
            &self,
            _: &ModelRequest,
            _: &mut dyn FnMut(&str),
        ) -> Result<ModelAnswer, ModelError> {
            Ok(ModelAnswer {
                text: "half".into(),
                model: "cut".into(),
                usage: TokenUsage::default(),
                cost: None,
                finish: Finish::Length,
            })
        }
    }

    fn run_logged(yaml: &str, model: impl Model) -> (Result<Vec<StepRun>, Stopped>, Vec<String>) {
        let names = KnownNames {
            file: &|_| Err(String::new()),
            model: &|_| Ok(()),
        };
        let turn = ModelRequest {
            system: "SYS".into(),
            input: "IN".into(),
            message: "MSG".into(),
            max_tokens: None,
        };
        let mut log = Vec::new();
        let result = run(
            &parse(yaml, &names).unwrap(),
            &turn,
            &HashMap::from([(None, model)]),
            &mut |event| match event {
                PipelineEvent::Started { position, step, .. } => {
                    log.push(format!("{position} {}", step.name))
                }
                PipelineEvent::Received { text } => log.push(format!("< {text}")),
                PipelineEvent::Finished(ran) => log.push(format!("{} done", ran.name)),
            },
        );
        (result, log)
    }

    fn replay(texts: &[&str]) -> Replay {
        Replay::from_texts(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    #[test]
    fn st9_what_a_prompt_does_not_name_stands_in_its_usual_place() {
        let (ran, _) = run_logged(THREE, replay(&["A\n", "D", "# P"]));
        let requests: Vec<ModelRequest> = ran.unwrap().into_iter().map(|ran| ran.request).collect();
        let expected = |system: &str, input: &str, message: &str| ModelRequest {
            system: system.into(),
            input: input.into(),
            message: message.into(),
            max_tokens: None,
        };
        assert_eq!(
            requests[0],
            expected(
                "",
                "IN",
                "Analyse.\n\n## The user's message\n\n````\nMSG\n````"
            )
        );
        assert_eq!(requests[1], expected("", "", "Decide on: A"));
        assert_eq!(
            requests[2],
            expected(
                "SYS",
                "IN",
                "Plan.\n\n## The user's message\n\n````\nMSG\n````\n\n## Output of step `decision`\n\n````\nD\n````"
            )
        );
    }

    #[test]
    fn st8_placeholders_are_filled_in_and_a_backslash_keeps_them() {
        let (ran, _) = run_logged(
            "steps: [{name: a, prompt: 'S={{system}} I={{ input }} M={{message}} \\{{message}}'}]",
            replay(&["x"]),
        );
        let request = ran.unwrap().remove(0).request;
        assert_eq!(
            request,
            ModelRequest {
                message: "S=SYS I=IN M=MSG {{message}}".into(),
                ..ModelRequest::default()
            }
        );
    }

    #[test]
    fn st10_the_last_answer_is_the_plan_and_each_step_is_told() {
        let (ran, log) = run_logged(THREE, replay(&["A", "D", "# P"]));
        assert_eq!(
            ran.unwrap().pop().map(|ran| ran.answer.text).as_deref(),
            Some("# P")
        );
        assert_eq!(
            log,
            [
                "0 analysis",
                "< A",
                "analysis done",
                "1 decision",
                "< D",
                "decision done",
                "2 plan",
                "< # P",
                "plan done"
            ]
        );
    }

    #[test]
    fn st13_a_step_has_a_folder_of_its_own() {
        assert_eq!(
            [step_dir(0, "analysis"), step_dir(11, "plan")],
            ["steps/01-analysis", "steps/12-plan"]
        );
    }

    #[test]
    fn st12_a_step_that_fails_stops_and_what_ran_was_told() {
        let (result, log) = run_logged(THREE, replay(&["A"]));
        let stopped = result.unwrap_err();
        assert_eq!(stopped.step, "decision");
        assert_eq!(log, ["0 analysis", "< A", "analysis done", "1 decision"]);
        assert_eq!(*stopped.error, ModelError::ReplayEnded { answers: 1 });
    }

    #[test]
    fn st12_a_cut_answer_fails_a_step_but_the_last() {
        let (result, _) = run_logged("steps: [{name: a, prompt: x}, {name: b, prompt: x}]", Cut);
        assert_eq!(
            *result.unwrap_err().error,
            ModelError::Truncated {
                partial: "half".into()
            }
        );
        let (result, _) = run_logged("steps: [{name: a, prompt: x}]", Cut);
        assert_eq!(result.unwrap()[0].answer.finish, Finish::Length);
    }
}
