//! Reads a pipeline and finds all its mistakes at once, before anything is sent (ST11).

use std::fmt;

use serde_yaml::Value;

use super::{Input, Pipeline, Step, placeholders};
use crate::text::yaml::guard;

/// The largest pipeline, in bytes (ST1).
pub const MAX_BYTES: usize = 64 << 10;
/// The most steps (ST2).
pub const MAX_STEPS: usize = 20;
/// Names that are inputs already (ST4).
const RESERVED: [&str; 3] = ["system", "input", "message"];

/// What a pipeline may refer to.
pub struct Known<'a> {
    /// Reads a file beside the pipeline, by its name.
    pub file: &'a dyn Fn(&str) -> Result<String, String>,
    /// Checks the name of a model; the error says what is wrong with it.
    pub model: &'a dyn Fn(&str) -> Result<(), String>,
}

/// All mistakes of a pipeline, each with the place it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(pub Vec<String>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Mistakes {}

/// Reads a pipeline.
///
/// # Errors
/// [`Mistakes`], all of them.
pub fn parse(text: &str, known: &Known<'_>) -> Result<Pipeline, Mistakes> {
    let mut reader = Reader {
        known,
        mistakes: Vec::new(),
        place: String::new(),
    };
    let pipeline = reader.pipeline(text);
    match pipeline {
        Some(pipeline) if reader.mistakes.is_empty() => Ok(pipeline),
        _ => Err(Mistakes(reader.mistakes)),
    }
}

/// Reads and remembers what is wrong.
struct Reader<'a> {
    /// What may be referred to.
    known: &'a Known<'a>,
    /// The mistakes so far.
    mistakes: Vec<String>,
    /// Where the reader is: `` step 2 `decide`: ``.
    place: String,
}

impl Reader<'_> {
    /// Notes a mistake at the present place.
    fn wrong(&mut self, what: impl fmt::Display) {
        self.mistakes.push(format!("{}{what}", self.place));
    }

    /// Reads the whole.
    fn pipeline(&mut self, text: &str) -> Option<Pipeline> {
        guard(text, MAX_BYTES)
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
        let mut steps: Vec<Step> = Vec::new();
        for (position, value) in list.iter().enumerate() {
            let step = self.step(value, position, (&steps, position + 1 == list.len()));
            steps.push(step);
        }
        Some(Pipeline { description, steps })
    }

    /// Reads a step; what is wrong with it is noted, and reading goes on.
    fn step(&mut self, value: &Value, position: usize, (earlier, last): (&[Step], bool)) -> Step {
        let name = value
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        self.place = if name.is_empty() {
            format!("step {}: ", position + 1)
        } else {
            format!("step {} `{name}`: ", position + 1)
        };
        self.keys(value, &["name", "prompt", "prompt_file", "model", "inputs"]);
        self.name(&name, earlier);
        let prompt = self.prompt(value);
        let model = self.text(value, "model");
        if let Some(model) = &model
            && let Err(what) = (self.known.model)(model)
        {
            self.wrong(what);
        }
        let inputs = self.inputs(value, earlier, last);
        self.placeholders(&prompt, &inputs);
        self.place.clear();
        Step {
            name,
            prompt,
            model,
            inputs,
        }
    }

    /// Checks a step's name (ST4).
    fn name(&mut self, name: &str, earlier: &[Step]) {
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.len() <= 60
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !is_name {
            self.wrong(
                "`name` must be lower-case letters, digits and dashes, and begin with a letter",
            );
        } else if RESERVED.contains(&name) {
            self.wrong("the name stands for an input already");
        } else if earlier.iter().any(|step| step.name == name) {
            self.wrong("an earlier step has the same name");
        }
    }

    /// Reads the prompt, from here or from a file (ST5).
    fn prompt(&mut self, value: &Value) -> String {
        let prompt = match (self.text(value, "prompt"), self.text(value, "prompt_file")) {
            (Some(text), None) => text,
            (None, Some(file)) if file.contains(['/', '\\']) || file.starts_with('.') => {
                self.wrong(format_args!("`prompt_file` must be the name of a file beside the pipeline, and `{file}` is a path"));
                return "none".into();
            }
            (None, Some(file)) => (self.known.file)(&file).unwrap_or_else(|what| {
                self.wrong(format_args!("cannot read `{file}`: {what}"));
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

    /// Reads the inputs; without them a step gets the input, the message and the step before it,
    /// the last one the system prompt too (ST7).
    fn inputs(&mut self, value: &Value, earlier: &[Step], last: bool) -> Vec<Input> {
        let Some(list) = value.get("inputs") else {
            let before = earlier.last().map(|step| Input::Step(step.name.clone()));
            return last
                .then_some(Input::System)
                .into_iter()
                .chain([Input::Input, Input::Message])
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
            let input = Input::named(name);
            if matches!(input, Input::Step(_)) && !earlier.iter().any(|step| step.name == name) {
                self.wrong(format_args!(
                    "the input `{name}` is neither `input`, `message`, `system` nor an earlier step"
                ));
            } else if inputs.contains(&input) {
                self.wrong(format_args!("the input `{name}` stands there twice"));
            } else {
                inputs.push(input);
            }
        }
        inputs
    }

    /// Checks that a prompt takes only what the step gets (ST8).
    fn placeholders(&mut self, prompt: &str, inputs: &[Input]) {
        for name in placeholders(prompt).filter_map(|place| place.name) {
            if !inputs.iter().any(|input| input.name() == name) {
                self.wrong(format_args!(
                    "`{{{{{name}}}}}` is not among the step's inputs"
                ));
            }
        }
    }

    /// Notes the keys that nobody knows.
    fn keys(&mut self, value: &Value, known: &[&str]) {
        let Some(mapping) = value.as_mapping() else {
            return self.wrong(format_args!("must be a mapping with {}", known.join(", ")));
        };
        for key in mapping.keys() {
            if !key.as_str().is_some_and(|key| known.contains(&key)) {
                let key = key.as_str().map_or_else(
                    || "a key that is no text".to_owned(),
                    |key| format!("`{key}`"),
                );
                self.wrong(format_args!(
                    "{key} is not known here; there are {}",
                    known.join(", ")
                ));
            }
        }
    }

    /// Returns a text; anything else under the key is a mistake.
    fn text(&mut self, value: &Value, key: &str) -> Option<String> {
        let value = value.get(key)?;
        if value.as_str().is_none() {
            self.wrong(format_args!("`{key}` must be a text"));
        }
        value.as_str().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Pipeline, Mistakes> {
        let file = |name: &str| {
            if name == "plan.md" {
                Ok("Plan: {{message}}".to_owned())
            } else {
                Err("no such file".to_owned())
            }
        };
        let model = |name: &str| {
            if name == "fast" {
                Ok(())
            } else {
                Err(format!("`{name}` is no model"))
            }
        };
        parse(
            text,
            &Known {
                file: &file,
                model: &model,
            },
        )
    }

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(read(text).err().unwrap_or(Mistakes(Vec::new())).0, expected);
    }

    #[test]
    fn st1_a_pipeline_has_a_largest_size() {
        check(
            &format!("# {}", "x".repeat(MAX_BYTES)),
            &["the file has 65538 bytes; at most 65536 are read"],
        );
    }

    #[test]
    fn st2_a_pipeline_has_steps_and_a_description() {
        check(
            "description: x\nsteps: []\n",
            &["`steps` must be a list of at least one step"],
        );
        check(
            "[]",
            &[
                "must be a mapping with description, steps",
                "`steps` must be a list of at least one step",
            ],
        );
        check(
            "stages: [{name: a, prompt: x}]",
            &[
                "`stages` is not known here; there are description, steps",
                "`steps` must be a list of at least one step",
            ],
        );
        let many: String = (0..21)
            .map(|n| format!("  - {{name: s{n}, prompt: x}}\n"))
            .collect();
        check(
            &format!("steps:\n{many}"),
            &["there are 21 steps, the limit is 20"],
        );
    }

    #[test]
    fn st3_a_step_has_known_keys_with_texts() {
        check(
            "steps: [{name: a, prompt: x, temperature: 1}]",
            &[
                "step 1 `a`: `temperature` is not known here; there are name, prompt, prompt_file, model, inputs",
            ],
        );
        check(
            "steps: [{name: a, prompt: 7}]",
            &[
                "step 1 `a`: `prompt` must be a text",
                "step 1 `a`: give either `prompt` or `prompt_file`",
            ],
        );
    }

    #[test]
    fn st4_a_name_is_plain_unique_and_no_input() {
        let rule = "`name` must be lower-case letters, digits and dashes, and begin with a letter";
        check("steps: [{prompt: x}]", &[&format!("step 1: {rule}")]);
        check(
            "steps: [{name: ../A, prompt: x}]",
            &[&format!("step 1 `../A`: {rule}")],
        );
        check(
            "steps: [{name: input, prompt: x}]",
            &["step 1 `input`: the name stands for an input already"],
        );
        check(
            "steps: [{name: a, prompt: x}, {name: a, prompt: y}]",
            &["step 2 `a`: an earlier step has the same name"],
        );
    }

    #[test]
    fn st5_a_prompt_is_here_or_in_a_file_beside() {
        assert_eq!(
            read("steps: [{name: a, prompt_file: plan.md}]")
                .unwrap()
                .steps[0]
                .prompt,
            "Plan: {{message}}"
        );
        check(
            "steps: [{name: a}]",
            &["step 1 `a`: give either `prompt` or `prompt_file`"],
        );
        check(
            "steps: [{name: a, prompt: x, prompt_file: plan.md}]",
            &["step 1 `a`: give either `prompt` or `prompt_file`"],
        );
        check(
            "steps: [{name: a, prompt: ' '}]",
            &["step 1 `a`: the prompt is empty"],
        );
        check(
            "steps: [{name: a, prompt_file: b.md}]",
            &["step 1 `a`: cannot read `b.md`: no such file"],
        );
        check(
            "steps: [{name: a, prompt_file: ../b.md}]",
            &[
                "step 1 `a`: `prompt_file` must be the name of a file beside the pipeline, and `../b.md` is a path",
            ],
        );
    }

    #[test]
    fn st6_a_model_is_one_that_there_is() {
        assert_eq!(
            read("steps: [{name: a, prompt: x, model: fast}]")
                .unwrap()
                .steps[0]
                .model
                .as_deref(),
            Some("fast")
        );
        check(
            "steps: [{name: a, prompt: x, model: slow}]",
            &["step 1 `a`: `slow` is no model"],
        );
    }

    #[test]
    fn st7_inputs_are_parts_of_the_turn_and_earlier_steps() {
        let steps = read("steps: [{name: a, prompt: x}, {name: b, prompt: x, inputs: [a]}, {name: c, prompt: x}]").unwrap().steps;
        let names: Vec<Vec<&str>> = steps
            .iter()
            .map(|step| step.inputs.iter().map(Input::name).collect())
            .collect();
        assert_eq!(
            names,
            [
                vec!["input", "message"],
                vec!["a"],
                vec!["system", "input", "message", "b"]
            ]
        );
        check(
            "steps: [{name: a, prompt: x, inputs: [b]}, {name: b, prompt: x}]",
            &[
                "step 1 `a`: the input `b` is neither `input`, `message`, `system` nor an earlier step",
            ],
        );
        check(
            "steps: [{name: a, prompt: x, inputs: [input, input]}]",
            &["step 1 `a`: the input `input` stands there twice"],
        );
        check(
            "steps: [{name: a, prompt: x, inputs: input}]",
            &["step 1 `a`: `inputs` must be a list of names"],
        );
    }

    #[test]
    fn st8_a_placeholder_is_one_of_the_inputs() {
        check(
            "steps: [{name: a, prompt: 'x {{Message}} {{ plan }}'}]",
            &[
                "step 1 `a`: `{{Message}}` is not among the step's inputs",
                "step 1 `a`: `{{plan}}` is not among the step's inputs",
            ],
        );
        check(
            "steps: [{name: a, prompt: '{{message}} \\{{x}} {{ x y }} {{}}'}]",
            &[],
        );
    }

    #[test]
    fn st11_all_mistakes_are_said_at_once() {
        check(
            "steps: [{name: A, prompt: '{{b}}', model: m}, {name: b}]",
            &[
                "step 1 `A`: `name` must be lower-case letters, digits and dashes, and begin with a letter",
                "step 1 `A`: `m` is no model",
                "step 1 `A`: `{{b}}` is not among the step's inputs",
                "step 2 `b`: give either `prompt` or `prompt_file`",
            ],
        );
        assert_eq!(read("steps: [").unwrap_err().0.len(), 1);
        check(&"[".repeat(60_000), &["line 1 is nested more than 64 deep"]);
    }
}
