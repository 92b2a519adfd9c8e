//! Remote models against a server that does everything that can go wrong.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::fake::{Act, Fake, events, response};
use super::{Remote, Url, endpoint};
use crate::model::outside::Outside;
use crate::model::settings::{Headers, Kind, Settings};
use crate::model::{Answer, Finish, Model, ModelError, Request, Usage};

/// A key without the shape of one, so that only its exact value can give it away.
const SECRET: &str = "hunter2-hunter2-hunter2";
/// A whole stream.
const HELLO: &str = concat!(
    "data: {\"model\":\"gpt-5-2\",\"choices\":[{\"delta\":{\"content\":\"# Hel\"}}]}\n\n",
    ": keep-alive\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"lo\\n\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\n",
    "data: [DONE]\n\n",
);
/// A stream that has only begun.
const BEGUN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"# Hel\"}}]}\n\n";
/// A pause that is over before anybody notices.
const SHORT: Duration = Duration::from_millis(80);

/// Makes a model that speaks to a server, with limits that end a test soon.
fn model(fake: &Fake, change: impl FnOnce(&mut Remote)) -> Remote {
    let settings = Settings {
        id: Some("gpt-5".into()),
        base_url: Some(format!("{}/v1", fake.origin)),
        api_key_env: Some("KEY".into()),
        ..Settings::default()
    };
    let outside = Outside { variable: Rc::new(|name| (name == "KEY").then(|| SECRET.into())), ..Outside::default() };
    let mut remote = Remote::new("mine", &settings, &outside).unwrap();
    remote.limits.pause = Duration::from_millis(1);
    remote.limits.total = Duration::from_secs(20);
    remote.chance = || 1.0;
    change(&mut remote);
    remote
}

/// Asks a model, and shows that no error gives the key away.
fn ask(remote: &Remote) -> Result<Answer, ModelError> {
    let request = Request { system: "S".into(), input: "I".into(), message: "M".into(), max_tokens: None };
    let result = remote.answer(&request, &mut |_| ());
    assert!(!format!("{result:?}").contains(SECRET), "{result:?}");
    result
}

/// Asks a server that gives one response, and compares the words of the error.
fn check(response: String, expected: &str) {
    let fake = Fake::answering(&[response]);
    let error = ask(&model(&fake, |remote| remote.limits.retries = 0)).unwrap_err();
    assert_eq!(error.to_string().replace(&fake.origin, "http://fake"), expected);
    assert!(!error.remedy().is_empty());
}

#[test]
fn a_stream_becomes_an_answer_with_its_usage() {
    let fake = Fake::answering(&[events(HELLO)]);
    let seen = RefCell::new(Vec::new());
    let answer = model(&fake, |_| ()).answer(&Request::default(), &mut |text| seen.borrow_mut().push(text.to_owned())).unwrap();
    let usage = Usage { input: 9, output: 2, ..Usage::default() };
    assert_eq!(answer, Answer { text: "# Hello\n".into(), model: "gpt-5-2".into(), usage, finish: Finish::Stop });
    assert_eq!(seen.borrow().last().map(String::as_str), Some("# Hello\n"));
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
    let fake = Fake::answering(&[response("200 OK", "content-type: application/json\r\n", body)]);
    let answer = ask(&model(&fake, |_| ())).unwrap();
    assert_eq!((answer.text.as_str(), answer.usage.output, answer.finish), ("# A", 2, Finish::Stop));
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
    let settings = Settings {
        kind: Kind::Anthropic,
        id: Some("claude".into()),
        base_url: Some(fake.origin.clone()),
        api_key_env: Some("KEY".into()),
        ..Settings::default()
    };
    let outside = Outside { variable: Rc::new(|name| (name == "KEY").then(|| SECRET.into())), ..Outside::default() };
    let answer = ask(&Remote::new("c", &settings, &outside).unwrap()).unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.model.as_str(), answer.usage),
        ("# A", "claude-x", Usage { input: 3, output: 4, ..Usage::default() })
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
fn a_wrong_key_is_said_without_it() {
    check(
        response("401 Unauthorized", "", &format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {SECRET}\"}}}}")),
        "http://fake does not accept the key: Incorrect API key provided: [redacted key]",
    );
}

#[test]
fn an_unknown_model_is_named() {
    check(
        response("404 Not Found", "", r#"{"error":{"message":"no such model"}}"#),
        "http://fake/v1/chat/completions knows no model `gpt-5`: no such model",
    );
}

#[test]
fn a_request_that_is_too_long_has_the_providers_words() {
    check(
        response("400 Bad Request", "", r#"{"error":{"message":"maximum context length is 8192"}}"#),
        "the request was refused with status 400: maximum context length is 8192",
    );
}

#[test]
fn a_web_page_is_no_answer() {
    check(
        response("200 OK", "content-type: text/html\r\n", "<!doctype html>\n<title>Login</title>"),
        "http://fake/v1/chat/completions answered something that is no model's answer: `<!doctype html> <title>Login</title>`",
    );
    check(
        response("200 OK", "content-type: text/event-stream\r\n", "<html>"),
        "http://fake/v1/chat/completions answered something that is no model's answer: `<html>`",
    );
    check(response("502 Bad Gateway", "", "<html>nginx</html>"), "the provider failed with status 502: an HTML page");
}

#[test]
fn an_error_with_a_good_status_is_an_error() {
    check(
        response("200 OK", "content-type: application/json\r\n", r#"{"error":{"message":"no credit"}}"#),
        "the provider answered with an error: no credit",
    );
}

#[test]
fn a_redirect_is_not_followed() {
    let trap = Fake::answering(&[events(HELLO)]);
    let location = format!("location: {}/v1/chat/completions\r\n", trap.origin);
    let fake = Fake::answering(&[response("307 Temporary Redirect", &location, "")]);
    let error = ask(&model(&fake, |_| ())).unwrap_err();
    assert!(matches!(&error, ModelError::Redirect { location, .. } if location.starts_with(&trap.origin)), "{error}");
    assert_eq!((fake.requests().len(), trap.requests().len()), (1, 0));
}

#[test]
fn an_empty_answer_is_an_error() {
    check(events("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"), "the answer is empty");
    check(
        events("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n"),
        "the answer is empty: the limit of tokens was reached before any text",
    );
    check(events(""), "the answer is empty: the server sent nothing");
}

#[test]
fn an_answer_cut_at_the_limit_says_so() {
    let fake = Fake::answering(&[events(
        "data: {\"choices\":[{\"delta\":{\"content\":\"# A\"},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n",
    )]);
    let answer = ask(&model(&fake, |_| ())).unwrap();
    assert_eq!((answer.finish.clone(), answer.is_whole()), (Finish::Length, false));
}

#[test]
fn half_a_stream_is_broken_and_keeps_what_came() {
    let fake = Fake::answering(&[events(BEGUN)]);
    let error = ask(&model(&fake, |_| ())).unwrap_err();
    assert_eq!(error, ModelError::Broken { detail: "the connection closed before the end".into(), partial: "# Hel".into() });
    let declared = response("200 OK", "content-type: text/event-stream\r\ncontent-length: 9000\r\n", BEGUN);
    let fake = Fake::answering(&[declared]);
    let error = ask(&model(&fake, |_| ())).unwrap_err();
    assert!(matches!(&error, ModelError::Broken { partial, .. } if partial == "# Hel"), "{error:?}");
    assert_eq!(fake.requests().len(), 1);
}

#[test]
fn an_error_in_the_middle_has_the_providers_words_and_keeps_what_came() {
    let fake = Fake::answering(&[events(&format!("{BEGUN}data: {{\"error\":{{\"message\":\"overloaded\"}}}}\n\n"))]);
    assert_eq!(ask(&model(&fake, |_| ())), Err(ModelError::Provider { detail: "overloaded".into(), partial: "# Hel".into() }));
}

#[test]
fn silence_meets_the_idle_limit() {
    let fake = Fake::start(vec![vec![Act::Send(events(BEGUN)), Act::Stall]]);
    let error = ask(&model(&fake, |remote| remote.limits.idle = SHORT)).unwrap_err();
    assert_eq!(error, ModelError::Idle { limit: SHORT, partial: "# Hel".into() });
}

#[test]
fn silence_before_the_first_byte_has_a_limit_of_its_own() {
    let fake = Fake::start(vec![vec![Act::Stall]]);
    let error = ask(&model(&fake, |remote| remote.limits.first = SHORT)).unwrap_err();
    assert_eq!(error, ModelError::Idle { limit: SHORT, partial: String::new() });
}

#[test]
fn silence_after_the_end_is_no_error() {
    let finished = HELLO.split_once("data: [DONE]").unwrap().0;
    let fake = Fake::start(vec![vec![Act::Send(events(finished)), Act::Stall]]);
    assert_eq!(ask(&model(&fake, |remote| remote.limits.idle = SHORT)).unwrap().text, "# Hello\n");
}

#[test]
fn a_slow_drip_meets_the_total_limit() {
    let fake = Fake::start(vec![vec![Act::Send(events(BEGUN)), Act::Drip(": ".repeat(100_000), Duration::from_millis(2))]]);
    let total = Duration::from_millis(600);
    let error = ask(&model(&fake, |remote| remote.limits.total = total)).unwrap_err();
    assert_eq!(error, ModelError::Timeout { limit: total, partial: "# Hel".into() });
}

#[test]
fn a_drip_that_cuts_every_character_is_read() {
    let fake = Fake::start(vec![vec![Act::Drip(events(&HELLO.replace("Hel", "Hél")), Duration::ZERO)]]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# Héllo\n");
}

#[test]
fn a_huge_answer_is_cut() {
    let flood = |head: &str, piece: &str| Fake::start(vec![vec![Act::Send(head.to_owned()), Act::Flood(piece.to_owned())]]);
    let fake = flood(&events(""), BEGUN);
    let error = ask(&model(&fake, |remote| remote.limits.bytes = 100_000)).unwrap_err();
    assert!(matches!(&error, ModelError::TooLarge { limit: 100_000, partial } if partial.starts_with("# Hel")), "{error}");
    let fake = flood(&events("data: "), "xxxxxxxx");
    let error = ask(&model(&fake, |remote| remote.limits.event = 5000)).unwrap_err();
    assert!(matches!(error, ModelError::TooLarge { limit: 5000, .. }), "{error}");
    let fake = flood(&response("200 OK", "content-type: application/json\r\n", "["), "[[[[[[");
    let error = ask(&model(&fake, |remote| remote.limits.bytes = 100_000)).unwrap_err();
    assert!(matches!(error, ModelError::TooLarge { .. }), "{error}");
}

#[test]
fn a_busy_server_is_asked_again() {
    let busy = response("429 Too Many Requests", "retry-after: 0\r\n", r#"{"error":{"message":"slow down"}}"#);
    let fake = Fake::answering(&[busy, response("503 Service Unavailable", "", ""), events(HELLO)]);
    let notes = Rc::new(RefCell::new(Vec::new()));
    let log = notes.clone();
    let remote = model(&fake, |remote| remote.note = Rc::new(move |text| log.borrow_mut().push(text.to_owned())));
    assert_eq!(ask(&remote).unwrap().text, "# Hello\n");
    assert_eq!(
        *notes.borrow(),
        [
            "too many requests, or no credit left: slow down; trying again in 0 s (1 of 5)",
            "the provider failed with status 503; trying again in 1 s (2 of 5)",
        ]
    );
}

#[test]
fn a_connection_that_breaks_before_the_first_byte_is_made_again() {
    let fake = Fake::start(vec![vec![], vec![Act::Send(events(HELLO))]]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# Hello\n");
}

#[test]
fn a_pause_beyond_the_total_limit_ends_with_the_reason() {
    let fake = Fake::answering(&[response("429 Too Many Requests", "retry-after: 30\r\n", "{\"error\":\"slow down\"}")]);
    let start = Instant::now();
    let error = ask(&model(&fake, |remote| remote.limits.total = Duration::from_secs(1))).unwrap_err();
    assert_eq!(error, ModelError::Quota { detail: "slow down".into() });
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn time_that_runs_out_in_a_repetition_ends_with_the_reason() {
    let busy = response("500 Internal Server Error", "retry-after: 0\r\n", "{\"error\":\"oops\"}");
    let fake = Fake::start(vec![vec![Act::Send(busy)], vec![Act::Stall]]);
    let error = ask(&model(&fake, |remote| remote.limits.total = Duration::from_millis(400))).unwrap_err();
    assert_eq!(error, ModelError::Server { status: 500, detail: "oops".into() });
}

#[test]
fn repetitions_have_an_end() {
    let fake = Fake::answering(&vec![response("500 Internal Server Error", "", "{\"error\":\"oops\"}"); 9]);
    assert_eq!(ask(&model(&fake, |_| ())), Err(ModelError::Server { status: 500, detail: "oops".into() }));
    assert_eq!(fake.requests().len(), 6);
}

#[test]
fn spent_credit_and_a_wrong_key_are_not_asked_again() {
    for refusal in [
        response("429 Too Many Requests", "", r#"{"error":{"message":"x","code":"insufficient_quota"}}"#),
        response("401 Unauthorized", "", ""),
    ] {
        let fake = Fake::answering(&[refusal, events(HELLO)]);
        assert!(ask(&model(&fake, |_| ())).is_err());
        assert_eq!(fake.requests().len(), 1);
    }
}

#[test]
fn a_field_that_the_server_does_not_know_is_left_out() {
    let refusal = response("400 Bad Request", "", r#"{"error":{"message":"unknown field stream_options"}}"#);
    let fake = Fake::answering(&[refusal, events(HELLO)]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# Hello\n");
    assert!(fake.requests()[0].contains("stream_options") && !fake.requests()[1].contains("stream_options"));
}

#[test]
fn nobody_at_the_address_is_said() {
    let fake = Fake::start(vec![]);
    let error = ask(&model(&fake, |remote| {
        remote.note = Rc::new(|text| panic!("it is not there, and asked again: {text}"));
        remote.url = endpoint(&Url::parse("http://127.0.0.1:1").unwrap(), "v1");
    }))
    .unwrap_err();
    assert!(error.to_string().starts_with("cannot reach http://127.0.0.1:1: "), "{error}");
}

#[test]
fn an_interruption_comes_through_at_once_and_keeps_what_came() {
    let fake = Fake::start(vec![vec![Act::Send(events(BEGUN)), Act::Stall]]);
    let seen = Rc::new(RefCell::new(false));
    let flag = seen.clone();
    let remote = model(&fake, |remote| remote.stopped = Rc::new(move || *flag.borrow()));
    let start = Instant::now();
    let result = remote.answer(&Request::default(), &mut |text| *seen.borrow_mut() |= !text.is_empty());
    assert_eq!(result, Err(ModelError::Interrupted { partial: "# Hel".into() }));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_is_no_http_is_asked_again_in_vain() {
    let fake = Fake::start(vec![vec![Act::Send("SSH-2.0-OpenSSH_9.6\r\n".into())]; 6]);
    let error = ask(&model(&fake, |_| ())).unwrap_err();
    assert_eq!(error.to_string().replace(&fake.origin, "http://fake"), "cannot reach http://fake: invalid HTTP version parsed");
    assert_eq!(fake.requests().len(), 6);
}

#[test]
fn headers_without_end_are_cut() {
    let fake =
        Fake::start(vec![vec![Act::Send("HTTP/1.1 200 OK\r\n".into()), Act::Flood("x-filler: ".to_owned() + &"y".repeat(900) + "\r\n")]]);
    let error = ask(&model(&fake, |remote| remote.limits.retries = 0)).unwrap_err();
    assert_eq!(error.to_string().replace(&fake.origin, "http://fake"), "cannot reach http://fake: message head is too large");
}

#[test]
fn a_compressed_answer_is_measured_as_it_unfolds() {
    let head = response("200 OK", "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n", "");
    let fake = Fake::start(vec![vec![Act::Send(head.clone()), Act::Bytes(bomb(100 << 20))]]);
    let error = ask(&model(&fake, |remote| remote.limits.bytes = 1 << 20)).unwrap_err();
    assert!(matches!(error, ModelError::TooLarge { limit: 1_048_576, .. }), "{error}");
    // What is no gzip after all has arrived broken, and is asked for again.
    let broken = vec![Act::Send(head), Act::Send("no gzip at all, really not".into())];
    let fake = Fake::start(vec![broken, vec![Act::Send(events(HELLO))]]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# Hello\n");
}

/// Makes a gzip file of so many zeros: a literal, then copies of the 258 bytes before, 13 bits each.
fn bomb(length: usize) -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    // The last block, with the fixed codes; the literal 0 is the code 00110000, first bit first.
    let mut bits = vec![1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0];
    let copy = [1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0];
    (0..length / 258).for_each(|_| bits.extend(copy));
    bytes.extend(bits.chunks(8).map(|bits| bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | bit << at)));
    bytes
}

#[test]
fn a_million_tiny_events_are_read_at_once() {
    let start = Instant::now();
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n".repeat(100);
    let flood = format!("{}{piece}", ":\n\n".repeat(9900));
    let mut acts = vec![Act::Send(events(""))];
    acts.extend(vec![Act::Send(flood); 100]);
    acts.push(Act::Send(HELLO.into()));
    let answer = ask(&model(&Fake::start(vec![acts]), |_| ())).unwrap();
    assert_eq!(answer.text.len(), 10_000 + "# Hello\n".len());
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn bytes_that_are_no_text_are_marked_in_the_answer() {
    let body = HELLO.replace("Hel", "H\u{1}l").into_bytes().into_iter().map(|byte| if byte == 1 { 0xff } else { byte }).collect();
    let fake = Fake::start(vec![vec![Act::Send(events("")), Act::Bytes(body)]]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# H\u{fffd}llo\n");
}

#[test]
fn a_tool_call_and_a_refusal_are_no_whole_answers() {
    for reason in ["tool_calls", "content_filter"] {
        let fake = Fake::answering(&[events(&HELLO.replace("\"stop\"", &format!("\"{reason}\"")))]);
        assert_eq!(ask(&model(&fake, |_| ())).unwrap().finish, Finish::Other(reason.into()));
    }
}

#[test]
fn whoever_watches_hears_that_nothing_comes() {
    let fake = Fake::start(vec![vec![Act::Stall]]);
    let beats = RefCell::new(Vec::new());
    let remote = model(&fake, |remote| remote.limits.first = SHORT);
    assert!(remote.answer(&Request::default(), &mut |text| beats.borrow_mut().push(text.to_owned())).is_err());
    assert!(beats.borrow().len() > 1 && beats.borrow().iter().all(String::is_empty), "{beats:?}");
}

#[test]
fn a_key_that_a_server_echoes_is_in_no_answer() {
    let echo = |text: &str| text.replace("Hel", &format!("{SECRET} Hel")).replace("gpt-5-2", SECRET);
    let fake =
        Fake::answering(&[events(&echo(HELLO)), events(&echo(BEGUN)), events(&echo(HELLO).replace("\"stop\"", &format!("\"{SECRET}\"")))]);
    let remote = model(&fake, |_| ());
    let answer = ask(&remote).unwrap();
    assert_eq!((answer.text.as_str(), answer.model.as_str()), ("# [redacted key] Hello\n", "[redacted key]"));
    assert_eq!(ask(&remote).unwrap_err().partial(), Some("# [redacted key] Hel"));
    assert_eq!(ask(&remote).unwrap().finish, Finish::Other("[redacted key]".into()));
}

#[test]
fn what_comes_behind_the_end_is_not_read() {
    let fake = Fake::start(vec![vec![Act::Send(events(HELLO)), Act::Flood(BEGUN.into())]]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# Hello\n");
}
