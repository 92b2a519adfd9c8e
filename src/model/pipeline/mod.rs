//! Pipelines: a plan thought out in steps, each with a prompt, a model and inputs of its own.
//!
//! The format is `docs/formats/pipeline.md`; the rule numbers in this module are its.

pub mod parse;
pub mod run;

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// A pipeline without mistakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// What it is for.
    pub description: String,
    /// The steps in order; at least one. The last yields the plan (ST10).
    pub steps: Vec<PipelineStep>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineStep {
    /// Its name, by which later steps take its output (ST4).
    pub name: String,
    /// The prompt, placeholders still in it (ST5).
    pub prompt: String,
    /// The model; the turn's without it (ST6).
    pub model: Option<String>,
    /// What it gets, in order (ST7).
    pub inputs: Vec<StepInput>,
}

/// Something that a step gets.
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
    /// Reads a name.
    fn named(name: &str) -> StepInput {
        match name {
            "system" => StepInput::System,
            "input" => StepInput::Input,
            "message" => StepInput::Message,
            step => StepInput::Step(step.to_owned()),
        }
    }

    /// Returns the name by which a prompt takes it.
    pub fn name(&self) -> &str {
        match self {
            StepInput::System => "system",
            StepInput::Input => "input",
            StepInput::Message => "message",
            StepInput::Step(name) => name,
        }
    }
}

/// Matches `{{name}}`, with the backslash before it that makes it plain text.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\\?)\{\{ *([A-Za-z0-9_-]+) *\}\}")
        .expect("the pattern is a constant that the tests compile")
});

/// A placeholder of a prompt (ST8).
struct Placeholder<'a> {
    /// Where it stands.
    range: Range<usize>,
    /// The name in it; `None` where a backslash makes it plain text.
    name: Option<&'a str>,
}

/// Lists the placeholders of a prompt.
fn placeholders(prompt: &str) -> impl Iterator<Item = Placeholder<'_>> {
    PLACEHOLDER.captures_iter(prompt).filter_map(|found| {
        let name = found
            .get(2)
            .filter(|_| found.get(1).is_none_or(|escape| escape.is_empty()))
            .map(|name| name.as_str());
        Some(Placeholder {
            range: found.get(0)?.range(),
            name,
        })
    })
}

/// Fills a prompt in.
fn fill<'a>(prompt: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let (mut text, mut end) = (String::new(), 0);
    for place in placeholders(prompt) {
        text.push_str(&prompt[end..place.range.start]);
        match place.name {
            Some(name) => text.push_str(value(name).unwrap_or_default().trim_end()),
            None => text.push_str(&prompt[place.range.start + 1..place.range.end]),
        }
        end = place.range.end;
    }

    text + &prompt[end..]
}
