//! Remote models against a misbehaving server.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::fake::{Act, Fake, events, response};
use super::{Remote, Url, endpoint};
use crate::config::settings::{Headers, ModelKind, ModelSettings};
use crate::model::model_env::ModelEnv;
use crate::model::{Finish, Model, ModelAnswer, ModelError, ModelRequest, TokenUsage};

/// Doesn't look like a key, so that only a search for the value can find it.
const SECRET: &str = "hunter2-hunter2-hunter2";
const HELLO: &str = concat!(
    "data: {\"model\":\"gpt-5-2\",\"choices\":[{\"delta\":{\"content\":\"# Hel\"}}]}\n\n",
    ": keep-alive\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"lo\\n\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\n",
    "data: [DONE]\n\n",
);
const BEGUN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"# Hel\"}}]}\n\n";
const SHORT: Duration = Duration::from_millis(80);

/// A model with short limits that talks to `fake`.
fn model(fake: &Fake, change: impl FnOnce(&mut Remote)) -> Remote {
    let settings = ModelSettings {
        id: "gpt-5".into(),
        base_url: Some(format!("{}/v1", fake.origin)),
        api_key_env: Some("KEY".into()),
        ..ModelSettings::default()
    };
    let env = ModelEnv {
        variable: Rc::new(|name| (name == "KEY").then(|| SECRET.into())),
        ..ModelEnv::default()
    };

    let mut remote = Remote::new("mine", &settings, &env).unwrap();
    remote.limits.pause = Duration::from_millis(1);
    remote.limits.total = Duration::from_secs(20);
    remote.jitter = || 1.0;
    change(&mut remote);
    remote
}

/// Sends a request and checks that the result doesn't contain the key.
fn ask(remote: &Remote) -> Result<ModelAnswer, ModelError> {
    let request = ModelRequest {
        system: "S".into(),
        input: "I".into(),
        message: "M".into(),
        max_tokens: None,
    };
    let result = remote.answer(&request, &mut |_| ());
    assert!(!format!("{result:?}").contains(SECRET), "{result:?}");

    result
}

/// Compares the error message for one response.
fn check(response: String, expected: &str) {
    let fake = Fake::answering(&[response]);
    let error = ask(&model(&fake, |remote| remote.limits.retries = 0)).unwrap_err();
    assert_eq!(
        error.to_string().replace(&fake.origin, "http://fake"),
        expected
    );
    assert!(!error.remedy().is_empty());
}

mod errors;
mod quirks;
mod size;
mod time;

#[test]
fn a_stream_becomes_an_answer_with_its_usage() {
    let fake = Fake::answering(&[events(HELLO)]);
    let received = RefCell::new(Vec::new());
    let answer = model(&fake, |_| ())
        .answer(&ModelRequest::default(), &mut |text| {
            received.borrow_mut().push(text.to_owned())
        })
        .unwrap();
    let usage = TokenUsage {
        input: 9,
        output: 2,
        ..TokenUsage::default()
    };

    assert_eq!(
        answer,
        ModelAnswer {
            text: "# Hello\n".into(),
            model: "gpt-5-2".into(),
            usage,
            cost: None,
            finish: Finish::Stop
        }
    );
    assert_eq!(
        received.borrow().last().map(String::as_str),
        Some("# Hello\n")
    );
}

#[test]
fn a_key_is_not_sent_unencrypted_to_the_internet() {
    let env = ModelEnv {
        variable: Rc::new(|name| (name == "KEY").then(|| SECRET.into())),
        ..ModelEnv::default()
    };
    let settings = |base: &str| ModelSettings {
        id: "gpt-5".into(),
        base_url: Some(base.to_owned()),
        ..ModelSettings::default()
    };
    let headers = |base: &str, name: &str| ModelSettings {
        headers: Headers([(name.to_owned(), SECRET.to_owned())].into()),
        ..settings(base)
    };
    let far = "http://models.example/v1";
    let refused =
        Some("the key of model `m` would be sent unencrypted to http://models.example: use https");

    let variable = ModelSettings {
        api_key_env: Some("KEY".into()),
        ..settings(far)
    };
    let cases = [
        (variable, refused),
        (headers(far, "authorization"), refused),
        (
            settings("http://models.example/v1?key=abcdefgh-12345678"),
            refused,
        ),
        (headers(far, "x-title"), None),
        (headers("http://10.0.0.5:4000/v1", "authorization"), None),
        (headers("https://models.example/v1", "authorization"), None),
    ];
    for (settings, expected) in cases {
        let error = Remote::new("m", &settings, &env).err();
        let error = error.map(|error| error.to_string());
        assert_eq!(error.as_deref(), expected, "{settings:?}");
    }
}

#[test]
fn a_request_has_the_key_the_headers_and_the_extra_fields() {
    let fake = Fake::answering(&[events(HELLO)]);
    let remote = model(&fake, |remote| {
        remote.settings.headers = Headers([("X-Title".to_owned(), "teddy".to_owned())].into());
        remote.settings.extra.insert("top_k".into(), 4.into());
    });
    ask(&remote).unwrap();
    let request = &fake.requests()[0];

    for part in [
        "POST /v1/chat/completions HTTP/1.1",
        &format!("authorization: Bearer {SECRET}"),
        "x-title: teddy",
        "\"top_k\":4",
        "\"model\":\"gpt-5\"",
    ] {
        assert!(request.contains(part), "{part} in {request}");
    }
}

#[test]
fn an_answer_in_one_piece_is_taken_too() {
    let body = r##"{"model":"m","choices":[{"message":{"content":"# A"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"##;
    let fake = Fake::answering(&[response(
        "200 OK",
        "content-type: application/json\r\n",
        body,
    )]);
    let answer = ask(&model(&fake, |_| ())).unwrap();

    assert_eq!(
        (answer.text.as_str(), answer.usage.output, answer.finish),
        ("# A", 2, Finish::Stop)
    );
}

#[test]
fn an_answer_in_one_piece_that_the_server_calls_a_stream_is_read_all_the_same() {
    let body = r##" {"choices":[{"message":{"content":"# A"},"finish_reason":"stop"}]}"##;
    let fake = Fake::answering(&[events(body)]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# A");
}

#[test]
fn a_stream_that_the_server_calls_text_is_read_all_the_same() {
    let fake = Fake::answering(&[response("200 OK", "content-type: text/plain\r\n", HELLO)]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# Hello\n");
}

#[test]
fn anthropic_is_spoken_with_its_headers_and_events() {
    let body = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-x\",\"usage\":{\"input_tokens\":3}}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"# A\"}}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":4}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );
    let fake = Fake::answering(&[events(body)]);
    let settings = ModelSettings {
        kind: ModelKind::Anthropic,
        id: "claude".into(),
        base_url: Some(fake.origin.clone()),
        api_key_env: Some("KEY".into()),
        ..ModelSettings::default()
    };

    let env = ModelEnv {
        variable: Rc::new(|name| (name == "KEY").then(|| SECRET.into())),
        ..ModelEnv::default()
    };
    let answer = ask(&Remote::new("c", &settings, &env).unwrap()).unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.model.as_str(), answer.usage),
        (
            "# A",
            "claude-x",
            TokenUsage {
                input: 3,
                output: 4,
                ..TokenUsage::default()
            }
        )
    );
    let request = &fake.requests()[0];

    assert!(
        request.contains("POST /v1/messages ")
            && request.contains(&format!("x-api-key: {SECRET}"))
            && request.contains("anthropic-version: 2023-06-01"),
        "{request}"
    );
}

#[test]
fn an_answer_cut_at_the_limit_says_so() {
    let fake = Fake::answering(&[events(
        "data: {\"choices\":[{\"delta\":{\"content\":\"# A\"},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n",
    )]);
    let answer = ask(&model(&fake, |_| ())).unwrap();
    assert_eq!(
        (answer.finish.clone(), answer.is_complete()),
        (Finish::Length, false)
    );
}

#[test]
fn a_drip_that_cuts_every_character_is_read() {
    let fake = Fake::start(vec![vec![Act::Drip(
        events(&HELLO.replace("Hel", "Hél")),
        Duration::ZERO,
    )]]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# Héllo\n");
}

#[test]
fn a_field_that_the_server_does_not_know_is_left_out() {
    let refusal = response(
        "400 Bad Request",
        "",
        r#"{"error":{"message":"unknown field stream_options"}}"#,
    );
    let fake = Fake::answering(&[refusal, events(HELLO)]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# Hello\n");

    assert!(
        fake.requests()[0].contains("stream_options")
            && !fake.requests()[1].contains("stream_options")
    );
}

#[test]
fn bytes_that_are_no_text_are_marked_in_the_answer() {
    let body = HELLO
        .replace("Hel", "H\u{1}l")
        .into_bytes()
        .into_iter()
        .map(|byte| if byte == 1 { 0xff } else { byte })
        .collect();
    let fake = Fake::start(vec![vec![Act::Send(events("")), Act::Bytes(body)]]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# H\u{fffd}llo\n");
}

#[test]
fn a_tool_call_and_a_refusal_are_no_whole_answers() {
    for reason in ["tool_calls", "content_filter"] {
        let fake = Fake::answering(&[events(&HELLO.replace("\"stop\"", &format!("\"{reason}\"")))]);
        assert_eq!(
            ask(&model(&fake, |_| ())).unwrap().finish,
            Finish::Other(reason.into())
        );
    }
}

#[test]
fn whoever_watches_hears_that_nothing_comes() {
    let fake = Fake::start(vec![vec![Act::Stall]]);
    let beats = RefCell::new(Vec::new());
    let remote = model(&fake, |remote| remote.limits.first = 10 * SHORT);
    assert!(
        remote
            .answer(&ModelRequest::default(), &mut |text| beats
                .borrow_mut()
                .push(text.to_owned()))
            .is_err()
    );

    assert!(
        beats.borrow().len() > 1 && beats.borrow().iter().all(String::is_empty),
        "{beats:?}"
    );
}

#[test]
fn what_comes_behind_the_end_is_not_read() {
    let fake = Fake::start(vec![vec![
        Act::Send(events(HELLO)),
        Act::Flood(BEGUN.into()),
    ]]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# Hello\n");
}

#[test]
fn what_a_server_rejects_is_dropped_once_and_remembered() {
    let refuse = |message: &str| {
        let body = serde_json::json!({ "error": { "message": message } });
        response("400 Bad Request", "", &body.to_string())
    };
    let fake = Fake::answering(&[
        refuse("Unsupported value: 'temperature' does not support 0.2 with this model."),
        refuse("System role not supported"),
        events(HELLO),
        events(HELLO),
        refuse("System role not supported"),
    ]);
    let dir = tempfile::tempdir().unwrap();
    let notes = Rc::new(RefCell::new(Vec::new()));
    let remote = model(&fake, |remote| {
        remote.settings.temperature = Some(0.2);
        remote.remembered = super::adapt::Remembered::open(Some(dir.path()), "a", "m");
        let notes = Rc::clone(&notes);
        remote.note = Rc::new(move |note| notes.borrow_mut().push(note.to_owned()));
    });
    for _ in 0..2 {
        assert_eq!(ask(&remote).unwrap().text, "# Hello\n");
    }
    let requests = fake.requests();
    assert!(requests[0].contains("\"temperature\"") && requests[0].contains("\"system\""));
    for adapted in &requests[2..4] {
        assert!(!adapted.contains("\"temperature\"") && !adapted.contains("\"system\""));
        assert!(adapted.contains("\"content\":\"S\\n\\nI"), "{adapted}");
    }
    let said = "the server does not take `temperature`, so it is not sent";
    assert_eq!(*notes.borrow(), [said]);
    // There is nothing more to drop.
    let error = ask(&remote).unwrap_err();
    assert!(matches!(error, ModelError::Refused { .. }), "{error:?}");
}
