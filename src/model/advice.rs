//! Suggestions for a model name that matches nothing.

use super::discovery::program::{PROGRAMS, ProgramUsage};
use super::discovery::service::SERVICES;
use super::settings::ModelKind;
use crate::text::near::nearest;

/// Prefixes of model ids and the service that offers them.
const FAMILIES: [(&str, &str); 12] = [
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("claude-", "anthropic"),
    ("gemini-", "gemini"),
    ("grok-", "xai"),
    ("deepseek-", "deepseek"),
    ("mistral-", "mistral"),
    ("codestral-", "mistral"),
    ("devstral-", "mistral"),
];

/// Suggests a model for an unknown name and lists the configured ones.
pub fn model_advice(word: &str, configured: &[String]) -> String {
    let listing = match configured {
        [] => "no model is configured: `teddy setup` finds one".to_owned(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("configured: {}", names.join(", "))
        }
    };
    match suggest_model(word, configured) {
        Some(suggestion) if suggestion.ends_with('?') => format!("{suggestion} {listing}"),
        Some(suggestion) => format!("{suggestion}; {listing}"),
        None => format!(
            "{listing}; or use `openai:<id>`, `anthropic:<id>`, `command:<program>`, `replay:<path>`, `acp:<agent>`, `agent:<agent>`, `manual`"
        ),
    }
}

fn suggest_model(word: &str, configured: &[String]) -> Option<String> {
    let did_you_mean = |suggestion: &str| format!("did you mean `{suggestion}`?");
    if let Some(name) = nearest(word, configured.iter().map(String::as_str)) {
        return Some(did_you_mean(name));
    }

    let is_offered = SERVICES.iter().any(|service| service.name == word)
        || PROGRAMS.iter().any(|program| {
            program.name == word && matches!(program.usage, ProgramUsage::Answers { .. })
        });
    if is_offered {
        return Some(format!("`teddy setup --model {word}` sets it up"));
    }

    if let Some((kind, id)) = word.split_once(':').filter(|(_, id)| !id.is_empty()) {
        if SERVICES.iter().any(|service| service.name == kind) {
            return Some(format!("`teddy setup --model {word}` sets it up"));
        }
        let kind = nearest(kind, ModelKind::names())?;
        return Some(did_you_mean(&format!("{kind}:{id}")));
    }

    let lower = word.to_ascii_lowercase();
    let (_, service) = FAMILIES
        .iter()
        .find(|(start, _)| is_of_family(&lower, start))?;
    Some(match *service {
        "openai" | "anthropic" => did_you_mean(&format!("{service}:{word}")),
        service => format!("`teddy setup --model {service}:{word}` sets it up"),
    })
}

/// Matches `o3` and `o3-mini`, but not `o3x`.
fn is_of_family(id: &str, start: &str) -> bool {
    id.strip_prefix(start)
        .is_some_and(|suffix| start.ends_with('-') || suffix.is_empty() || suffix.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sonnet` and `local` are configured.
    #[track_caller]
    fn check(word: &str, expected: Option<&str>) {
        let configured = ["sonnet".to_owned(), "local".to_owned()];
        assert_eq!(
            suggest_model(word, &configured).as_deref(),
            expected,
            "{word}"
        );
    }

    #[test]
    fn an_id_without_its_kind_gets_one() {
        check("gpt-5", Some("did you mean `openai:gpt-5`?"));
        check("GPT-5", Some("did you mean `openai:GPT-5`?"));
        check("o3", Some("did you mean `openai:o3`?"));
        check("o3-mini", Some("did you mean `openai:o3-mini`?"));
        check(
            "claude-opus-5",
            Some("did you mean `anthropic:claude-opus-5`?"),
        );
        check(
            "gemini-3.8-flash",
            Some("`teddy setup --model gemini:gemini-3.8-flash` sets it up"),
        );
        check("o3x", None);
        check("nonsense", None);
    }

    #[test]
    fn a_slip_of_the_keys_is_forgiven() {
        check("sonet", Some("did you mean `sonnet`?"));
        check("opnai:gpt-5", Some("did you mean `openai:gpt-5`?"));
        check(
            "comand:claude -p",
            Some("did you mean `command:claude -p`?"),
        );
        check("openai:", None);
    }

    #[test]
    fn a_program_or_a_service_is_set_up() {
        check("claude", Some("`teddy setup --model claude` sets it up"));
        check("groq", Some("`teddy setup --model groq` sets it up"));
        check("groq:x", Some("`teddy setup --model groq:x` sets it up"));
        check("aider", None);
    }

    #[test]
    fn advice_names_what_is_configured() {
        assert_eq!(
            model_advice("gpt-5", &["a".to_owned(), "b".to_owned()]),
            "did you mean `openai:gpt-5`? configured: `a`, `b`"
        );
        assert!(
            model_advice("x", &[])
                .starts_with("no model is configured: `teddy setup` finds one; or use")
        );
    }
}
