//! Pipelines: a plan made in several steps, each with its own prompt, model and inputs.
//!
//! `docs/formats/pipeline.md` defines the format. Comments refer to its rules (ST1, ST2, ...).

pub mod parse;
pub mod run;

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// A valid pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// Purpose of the pipeline.
    pub description: String,
    /// The steps in order, at least one. The last one writes the plan (ST10).
    pub steps: Vec<PipelineStep>,
}

/// One step of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineStep {
    /// Unique name, by which later steps refer to its output (ST4).
    pub name: String,
    /// The prompt, with unexpanded placeholders (ST5).
    pub prompt: String,
    /// The model's name. `None` uses the turn's model (ST6).
    pub model: Option<String>,
    /// The step's inputs in order (ST7).
    pub inputs: Vec<StepInput>,
}

/// An input of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepInput {
    /// The agent's system prompt.
    System,
    /// The turn's `input.md`.
    Input,
    /// The user's message.
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

    /// The name used in placeholders and `inputs`.
    pub fn name(&self) -> &str {
        match self {
            StepInput::System => "system",
            StepInput::Input => "input",
            StepInput::Message => "message",
            StepInput::Step(name) => name,
        }
    }
}

/// Matches `{{name}}`, including a backslash that escapes it.
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

/// Expands the placeholders. Removes the backslash from escaped ones.
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
