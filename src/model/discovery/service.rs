//! Known API services and their keys in the environment.

use crate::model::model_env::Variable;
use crate::model::remote::is_placeholder;

#[derive(Debug, PartialEq, Eq)]
pub struct ApiService {
    /// In the configuration.
    pub name: &'static str,
    /// Of the provider.
    pub title: &'static str,
    /// Can contain its key. The usual one is first.
    pub variables: &'static [&'static str],
    /// A kind of model.
    pub kind: &'static str,
    /// `None` uses the protocol's default.
    pub base_url: Option<&'static str>,
    pub model: &'static str,
}

/// Most popular first.
pub const SERVICES: [ApiService; 9] = [
    ApiService {
        name: "anthropic",
        title: "Anthropic",
        variables: &["ANTHROPIC_API_KEY"],
        kind: "anthropic",
        base_url: None,
        model: "claude-sonnet-5",
    },
    ApiService {
        name: "openai",
        title: "OpenAI",
        variables: &["OPENAI_API_KEY"],
        kind: "openai",
        base_url: None,
        model: "gpt-5.6-terra",
    },
    ApiService {
        name: "gemini",
        title: "Google Gemini",
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        kind: "openai",
        base_url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        model: "gemini-flash-latest",
    },
    ApiService {
        name: "openrouter",
        title: "OpenRouter",
        variables: &["OPENROUTER_API_KEY"],
        kind: "openai",
        base_url: Some("https://openrouter.ai/api/v1"),
        model: "openrouter/auto",
    },
    ApiService {
        name: "mistral",
        title: "Mistral",
        variables: &["MISTRAL_API_KEY"],
        kind: "openai",
        base_url: Some("https://api.mistral.ai/v1"),
        model: "mistral-large-latest",
    },
    ApiService {
        name: "deepseek",
        title: "DeepSeek",
        variables: &["DEEPSEEK_API_KEY"],
        kind: "openai",
        base_url: Some("https://api.deepseek.com/v1"),
        model: "deepseek-flash",
    },
    ApiService {
        name: "xai",
        title: "xAI",
        variables: &["XAI_API_KEY"],
        kind: "openai",
        base_url: Some("https://api.x.ai/v1"),
        model: "grok-4.5",
    },
    ApiService {
        name: "groq",
        title: "Groq",
        variables: &["GROQ_API_KEY"],
        kind: "openai",
        base_url: Some("https://api.groq.com/openai/v1"),
        model: "openai/gpt-oss-120b",
    },
    ApiService {
        name: "together",
        title: "Together",
        variables: &["TOGETHER_API_KEY"],
        kind: "openai",
        base_url: Some("https://api.together.xyz/v1"),
        model: "openai/gpt-oss-120b",
    },
];

/// Doesn't contain the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundKey {
    pub service: &'static ApiService,
    pub variable: &'static str,
}

/// Skips placeholders.
pub fn keys(variable: &Variable) -> Vec<FoundKey> {
    let has_key =
        |name: &&&'static str| variable(name).is_some_and(|value| !is_placeholder(value.trim()));
    SERVICES
        .iter()
        .filter_map(|service| {
            let variable = service.variables.iter().find(has_key)?;
            Some(FoundKey { service, variable })
        })
        .collect()
}

pub fn variables() -> impl Iterator<Item = &'static str> {
    SERVICES
        .iter()
        .flat_map(|service| service.variables.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(set: &'static [(&str, &str)], expected: &[(&str, &str)]) {
        let variable = |name: &str| {
            let value = set.iter().find(|(set, _)| *set == name);
            value.map(|(_, value)| (*value).to_owned())
        };
        let actual = keys(&variable);
        let actual: Vec<_> = actual
            .iter()
            .map(|key| (key.service.name, key.variable))
            .collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn a_key_is_found_by_its_variable() {
        check(
            &[("OPENAI_API_KEY", "sk-abc123"), ("XAI_API_KEY", "xai-1")],
            &[("openai", "OPENAI_API_KEY"), ("xai", "XAI_API_KEY")],
        );
        check(
            &[("GOOGLE_API_KEY", "AIza1234")],
            &[("gemini", "GOOGLE_API_KEY")],
        );
    }

    #[test]
    fn what_stands_in_examples_is_no_key() {
        check(&[("OPENAI_API_KEY", "..."), ("GROQ_API_KEY", "<key>")], &[]);
        check(&[("ANTHROPIC_API_KEY", " ")], &[]);
    }

    #[test]
    fn every_service_that_is_not_the_protocols_own_has_an_address_with_tls() {
        for service in &SERVICES {
            let is_own = matches!(service.name, "openai" | "anthropic");
            let is_fit = service
                .base_url
                .map_or(is_own, |url| !is_own && url.starts_with("https://"));
            assert!(is_fit, "{}", service.name);
        }
    }
}
