//! Text for the setup of a model: choices, detected models, and results of a trial.

use std::time::Duration;

use super::style::{StyledLine, Tone};
use crate::config::settings::Settings;
use crate::model::ModelError;
use crate::model::discovery::server::FoundServer;
use crate::model::discovery::{FoundModels, ModelOffer};
use crate::text::sanitize::sanitize_line;
use crate::workflow::setup::TriedModel;

/// Question above the list.
pub const QUESTION: &str = "Choose a model (enter chooses, esc leaves)";
/// Name of the manual model, where the user copies input and answer by hand.
pub const MANUAL: &str = "manual";
const MANUAL_IS: &str = "a chat window: you carry the input there and the answer back";
/// In columns.
const MAX_ANSWER: usize = 60;
/// A longer name is not aligned.
const MAX_NAME: usize = 16;

/// Returns the rows of the list. The last one is the manual model.
pub fn rows(offers: &[ModelOffer]) -> Vec<String> {
    let width = width(offers.iter().map(|offer| offer.name.as_str()));
    let row = |name: &str, description: &str| format!("{name:width$}  {description}");
    offers
        .iter()
        .map(|offer| row(&offer.name, &describe_offer(offer)))
        .chain([row(MANUAL, MANUAL_IS)])
        .collect()
}

/// Returns the lines before the list. `configured` is the model in use.
pub fn introduction(detected: &FoundModels, configured: Option<&str>) -> Vec<StyledLine> {
    let mut lines = refused(detected);
    if detected.offers().is_empty() {
        lines.extend(nothing(configured));
    }
    lines
}

/// Returns a list of detected models. `configured` is the model in use.
pub fn describe_detected(detected: &FoundModels, configured: Option<&str>) -> Vec<StyledLine> {
    let offers = detected.offers();
    let mut lines = vec![StyledLine::of(Tone::Strong, "Found:")];
    if offers.is_empty() {
        lines = nothing(configured);
    }

    let width = width(offers.iter().map(|offer| offer.name.as_str()));
    lines.extend(offers.iter().map(|offer| {
        StyledLine::plain("  ")
            .with(Tone::Accent, &format!("{:width$}", offer.name))
            .with(Tone::Plain, &format!("  {}", describe_offer(offer)))
    }));
    lines.extend(refused(detected));
    lines
}

pub fn configured(settings: &Settings, file: &str) -> Vec<StyledLine> {
    let chosen = settings.model.as_deref();
    let mut lines = vec![match chosen {
        Some(model) => StyledLine::plain("Model in use: ").with(Tone::Strong, model),
        None => StyledLine::plain("No model is configured."),
    }];
    if settings.models.is_empty() {
        return lines;
    }

    lines.push(StyledLine::of(
        Tone::Strong,
        &format!("Configured in {file}:"),
    ));
    let width = width(settings.models.keys().map(String::as_str));
    lines.extend(settings.models.iter().map(|(name, model)| {
        let target = match model.run.as_slice() {
            [] => model.id.clone(),
            run => {
                shlex::try_join(run.iter().map(String::as_str)).unwrap_or_else(|_| run.join(" "))
            }
        };
        let mark = if chosen == Some(name.as_str()) {
            "* "
        } else {
            "  "
        };
        StyledLine::plain(mark)
            .with(Tone::Accent, &format!("{name:width$}"))
            .with(Tone::Plain, &format!("  {}: {target}", model.kind.name()))
    }));
    lines
}

/// Returns a note about a model that was set up, if there is one.
pub fn note(name: &str) -> Option<&'static str> {
    name.starts_with("ollama").then_some(
        "Ollama cuts inputs that are longer than its context: start it with `OLLAMA_CONTEXT_LENGTH=32768 ollama serve` or more.",
    )
}

pub fn plain(name: &str, address: &str) -> String {
    let address = sanitize_line(address);
    format!("The key of {name} would be sent unencrypted to {address}. Use it anyway?")
}

/// Returns the question before a trial request that costs money.
pub fn paid(name: &str) -> String {
    format!("Try {name} with one short request? It may cost a fraction of a cent.")
}

/// Returns the result of a successful trial.
pub fn answered(tried: &TriedModel) -> StyledLine {
    let first = tried.answer.trim().lines().next().unwrap_or_default();
    StyledLine::of(Tone::Added, "It answers: ")
        .with(
            Tone::Plain,
            &StyledLine::plain(first).cut(MAX_ANSWER).text(),
        )
        .with(Tone::Faint, &format!(" ({})", seconds(tried.duration)))
}

/// Returns why a trial failed, and a hint.
pub fn failed(name: &str, error: &ModelError) -> Vec<StyledLine> {
    let remedy = match error {
        ModelError::CommandFailed { .. } | ModelError::CommandSilent { .. } => {
            format!("run `{name}` by hand once to log in or set it up, or choose another model")
        }
        ModelError::NotFound { .. } => {
            format!("`teddy setup --model {name}:<id>` takes another model of this service")
        }
        error => error.remedy(),
    };
    vec![
        StyledLine::of(Tone::Warning, &error.to_string()),
        StyledLine::plain(&format!("hint: {remedy}")),
    ]
}

/// Returns detected models and a command that sets one up, in one sentence. `None` if there are
/// none.
pub fn one_line(detected: &FoundModels) -> Option<String> {
    let offers = detected.offers();
    let first = offers.first()?;
    let programs = detected
        .programs
        .iter()
        .filter(|program| program.refusal().is_none())
        .map(|program| match &program.version {
            Some(version) => format!("`{}` {version}", program.entry.name),
            None => format!("`{}`", program.entry.name),
        });
    let keys = detected.keys.iter().map(|key| key.variable.to_owned());
    let servers = detected
        .servers
        .iter()
        .filter(|server| !server.models.is_empty())
        .map(FoundServer::titled);

    let all: Vec<String> = programs.chain(keys).chain(servers).collect();
    Some(format!(
        "found {}: `teddy setup --model {}` sets it up",
        all.join(", "),
        first.name
    ))
}

fn describe_offer(offer: &ModelOffer) -> String {
    format!("{} · {}", sanitize_line(&offer.about), offer.summary)
}

fn refused(detected: &FoundModels) -> Vec<StyledLine> {
    detected
        .refused()
        .map(|(program, why)| {
            StyledLine::of(
                Tone::Faint,
                &format!(
                    "Not offered: {} ({}): {why}",
                    program.entry.name,
                    program.titled()
                ),
            )
        })
        .collect()
}

/// `configured` is the model in use.
fn nothing(configured: Option<&str>) -> Vec<StyledLine> {
    let helps =
        "set a key such as ANTHROPIC_API_KEY, log in to Claude Code or Codex, or start Ollama";
    let message = match configured {
        None => format!("No model was found: {helps}."),
        Some(model) => {
            let model = sanitize_line(model);
            format!("`{model}` is configured. No other model was found: {helps}.")
        }
    };
    vec![StyledLine::plain(&message)]
}

fn width<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    let longest = names.map(|name| name.chars().count()).max();
    longest.unwrap_or_default().max(MANUAL.len()).min(MAX_NAME)
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::settings::ModelKind;
    use crate::model::discovery::FoundProgram;
    use crate::model::discovery::server::parse_address;
    use crate::model::discovery::{FoundAgent, FoundKey};
    use crate::model::known::{ANTHROPIC, KnownProgram};

    /// A usable program, a refused one, a key and a server.
    fn all() -> FoundModels {
        let program = |name: &str, version: &str| FoundProgram {
            entry: KnownProgram::find(name).unwrap(),
            path: PathBuf::new(),
            version: Some(version.to_owned()),
        };
        FoundModels {
            keys: vec![FoundKey {
                provider: &ANTHROPIC,
                variable: "ANTHROPIC_API_KEY",
            }],
            programs: vec![program("claude", "2.1.0"), program("gemini", "0.64.0")],
            servers: vec![FoundServer {
                address: parse_address("http://127.0.0.1:9").unwrap(),
                models: vec!["qwen3-coder:30b".to_owned()],
            }],
            agents: vec![FoundAgent {
                kind: ModelKind::Agent,
                name: "claude",
                program: "claude",
            }],
            silent: Vec::new(),
        }
    }

    #[test]
    fn a_row_says_what_a_model_is_good_for() {
        assert_eq!(
            rows(&all().offers()),
            [
                "claude        Claude Code 2.1.0 · your Claude subscription, answers only",
                "anthropic     claude-sonnet-5 with ANTHROPIC_API_KEY · the API of Anthropic, paid per token",
                "local         qwen3-coder:30b, http://127.0.0.1:9 · local, free; small models often fail; 14B or more recommended",
                "claude-agent  Claude Code · edits files in a copy, you review",
                "manual        a chat window: you carry the input there and the answer back",
            ]
        );
    }

    #[test]
    fn what_is_not_offered_has_a_reason() {
        let lines: Vec<String> = introduction(&all(), None)
            .iter()
            .map(StyledLine::text)
            .collect();
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].starts_with("Not offered: gemini (Gemini CLI 0.64.0): it edits files itself"),
            "{lines:?}"
        );
    }

    #[test]
    fn who_cannot_be_asked_gets_one_line() {
        assert_eq!(
            one_line(&all()).as_deref(),
            Some(
                "found `claude` 2.1.0, ANTHROPIC_API_KEY, http://127.0.0.1:9: `teddy setup --model claude` sets it up"
            )
        );
        assert_eq!(one_line(&FoundModels::default()), None);
    }

    #[test]
    fn an_answer_is_shown_in_one_visible_line() {
        let tried = TriedModel {
            answer: format!("\nready\u{1b}[2J{}\nmore", "x".repeat(100)),
            duration: Duration::from_millis(2140),
        };
        let line = answered(&tried).text();
        assert!(line.starts_with("It answers: ready\\u{1b}[2Jxxx"), "{line}");
        assert!(line.ends_with("… (2.1 s)"), "{line}");
    }
}
