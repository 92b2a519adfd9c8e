//! Models on real servers on loopback, which `tests/peers/run` starts: the LiteLLM proxy with fixed
//! answers, and SmolLM2 in llama.cpp's server.
#![allow(clippy::unwrap_used, reason = "a test fails where it must")]
#![allow(
    clippy::print_stderr,
    reason = "how long each answer took is what a person looks at"
)]

#[path = "../it/support.rs"]
#[allow(dead_code, reason = "the end-to-end tests use more of it")]
mod support;
mod turn;

use std::rc::Rc;
use std::time::{Duration, Instant};

use support::{fake, killed_repo, plans, screen};
use teddy::config::settings::{ModelKind, ModelSettings};
use teddy::host::env;
use teddy::model::model_env::ModelEnv;
use teddy::model::open::open;
use teddy::model::{Finish, ModelAnswer, ModelError, ModelRequest};
use teddy::plan::parse::parse;

/// Read by shared modules. These tests do no long runs.
const WORLDS: bool = false;

/// The proxy's key.
const KEY: &str = "local-test-key";

/// Variable with the address of the LiteLLM proxy.
const LITELLM: &str = "TEDDY_PEER_LITELLM";
/// Variable with the address of llama.cpp's server.
const LLAMA: &str = "TEDDY_PEER_LLAMA";
/// Variable with the address of the server that constrains answers by a grammar.
const BOUND: &str = "TEDDY_PEER_BOUND";

fn base(variable: &str) -> String {
    env::var(variable).expect("tests/peers/run starts the peers")
}

fn litellm(kind: ModelKind, id: &str) -> ModelSettings {
    let base = base(LITELLM);
    ModelSettings {
        kind,
        id: id.into(),
        base_url: Some(format!("{base}/v1")),
        api_key_env: Some("KEY".into()),
        ..ModelSettings::default()
    }
}

fn llama(kind: ModelKind) -> ModelSettings {
    let base = base(LLAMA);
    ModelSettings {
        kind,
        id: "smollm2".into(),
        base_url: Some(format!("{base}/v1")),
        max_tokens: Some(16),
        ..ModelSettings::default()
    }
}

/// Sends a request, and prints the duration to stderr.
fn ask(
    settings: &ModelSettings,
    key: &'static str,
    message: &str,
) -> Result<ModelAnswer, ModelError> {
    let variable = Rc::new(move |name: &str| (name == "KEY").then(|| key.to_owned()));
    let model = open(
        "peer",
        settings,
        &ModelEnv {
            variable,
            ..ModelEnv::default()
        },
    )
    .unwrap();
    let request = ModelRequest {
        system: "You answer in one word.".into(),
        input: "# Project\n\nEmpty.".into(),
        message: message.into(),
        max_tokens: None,
    };
    let (start, mut first) = (Instant::now(), None);
    let result = model.answer(&request, &mut |_| {
        first.get_or_insert_with(|| start.elapsed());
    });
    eprintln!(
        "{:?} {}: first text {first:?}, all {:?}, {:?}",
        settings.kind,
        message.len(),
        start.elapsed(),
        result.as_ref().map(|answer| answer.usage)
    );
    result
}

#[test]
fn litellm_streams_a_plan_with_usage() {
    let answer = ask(&litellm(ModelKind::Openai, "mock-openai"), KEY, "Hello").unwrap();
    assert!(
        answer.is_complete() && answer.usage.is_known(),
        "{answer:?}"
    );
    assert_eq!(parse(&answer.text).1, []);
}

#[test]
fn litellm_streams_the_messages_protocol() {
    let answer = ask(&litellm(ModelKind::Anthropic, "bridge"), KEY, "Hello").unwrap();
    assert!(
        answer.is_complete() && answer.text.starts_with("# A canned plan"),
        "{answer:?}"
    );
}

#[test]
fn litellm_answers_the_messages_protocol_in_one_piece() {
    let answer = ask(&litellm(ModelKind::Anthropic, "mock-openai"), KEY, "Hello").unwrap();
    assert!(
        answer.is_complete() && answer.text.starts_with("# A canned plan"),
        "{answer:?}"
    );
}

#[test]
fn litellm_refuses_a_wrong_key_an_unknown_model_and_a_long_input() {
    let error = ask(
        &litellm(ModelKind::Openai, "mock-openai"),
        "wrong-key-wrong-key",
        "Hello",
    )
    .unwrap_err();
    assert!(
        matches!(
            error,
            ModelError::Unauthorized { .. } | ModelError::Refused { status: 400, .. }
        ),
        "{error}"
    );
    assert!(!error.to_string().contains("wrong-key"), "{error}");
    let error = ask(&litellm(ModelKind::Openai, "nobody"), KEY, "Hello").unwrap_err();
    assert!(
        matches!(
            error,
            ModelError::NotFound { .. } | ModelError::Refused { status: 400, .. }
        ),
        "{error}"
    );
    let error = ask(&litellm(ModelKind::Openai, "mock-400"), KEY, "Hello").unwrap_err();
    assert!(
        matches!(error, ModelError::Refused { status: 400, .. }),
        "{error}"
    );
}

#[test]
fn litellm_is_asked_again_when_it_is_busy_or_fails() {
    let soon = |id| ModelSettings {
        timeout: Some(Duration::from_secs(6)),
        ..litellm(ModelKind::Openai, id)
    };
    let start = Instant::now();
    let error = ask(&soon("mock-429"), KEY, "Hello").unwrap_err();
    assert!(matches!(error, ModelError::Quota { .. }), "{error}");
    assert!(
        start.elapsed() > Duration::from_secs(3),
        "it was tried once only"
    );
    let error = ask(&soon("mock-500"), KEY, "Hello").unwrap_err();
    assert!(
        matches!(error, ModelError::Server { status: 500, .. }),
        "{error}"
    );
}

#[test]
fn a_real_model_streams_both_protocols_and_says_when_it_was_cut() {
    for kind in [ModelKind::Openai, ModelKind::Anthropic] {
        let settings = ModelSettings {
            max_tokens: Some(3),
            temperature: Some(0.0),
            ..llama(kind)
        };
        let answer = ask(&settings, "", "Count from one to one hundred.").unwrap();
        assert_eq!(
            (answer.finish, answer.usage.output),
            (Finish::Length, 3),
            "{}",
            answer.text
        );
    }
}

#[test]
fn a_real_model_refuses_what_is_too_long() {
    let error = ask(&llama(ModelKind::Openai), "", &"word ".repeat(12_000)).unwrap_err();
    assert!(
        matches!(error, ModelError::Refused { status: 400, .. }),
        "{error}"
    );
}
