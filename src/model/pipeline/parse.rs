//! Parses a pipeline and reports all of its mistakes before anything is sent (ST11).

use std::fmt;

use serde_yaml::Value;

use super::{Pipeline, PipelineStep, StepInput, placeholders};
use crate::text::yaml::guard;

/// Maximum size of the file in bytes (ST1).
pub const MAX_PIPELINE_BYTES: usize = 64 << 10;
/// Maximum number of steps (ST2).
pub const MAX_STEPS: usize = 20;
/// Names of built-in inputs, not allowed as names of steps (ST4).
const RESERVED_STEP_NAMES: [&str; 3] = ["system", "input", "message"];

/// Resolves what a pipeline refers to.
pub struct KnownNames<'a> {
    /// Reads a file next to the pipeline.
    pub file: &'a dyn Fn(&str) -> Result<String, String>,
    /// Checks a model's name; the error describes the problem.
    pub model: &'a dyn Fn(&str) -> Result<(), String>,
}

/// All mistakes of a pipeline, each prefixed with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(pub Vec<String>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Mistakes {}

/// Parses a pipeline. Fails with all mistakes at once.
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
    /// Prefix for mistakes, such as `` step 2 `decide`: ``.
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
            let step = self.step(value, position, (&steps, position + 1 == list.len()));
            steps.push(step);
        }

        Some(Pipeline { description, steps })
    }

    /// Parses a step. Records mistakes and continues.
    fn step(
        &mut self,
        value: &Value,
        position: usize,
        (earlier, last): (&[PipelineStep], bool),
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

    /// Checks a step's name (ST4).
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

    /// Reads `prompt` or `prompt_file` (ST5).
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

    /// Reads the inputs. The default is the input, the message and the previous step; for the last
    /// step also the system prompt (ST7).
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

    /// Checks that a prompt uses only inputs of its step (ST8).
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

    /// Returns a string. Records a mistake for any other type.
    fn text(&mut self, value: &Value, key: &str) -> Option<String> {
        let value = value.get(key)?;
        if value.as_str().is_none() {
            self.wrong(format_args!("`{key}` must be a text"));
        }
        value.as_str().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests;
