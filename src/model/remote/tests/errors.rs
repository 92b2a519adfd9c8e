//! Error responses and invalid answers. No message contains the key.

use super::*;

#[test]
fn a_wrong_key_is_said_without_it() {
    check(
        response(
            "401 Unauthorized",
            "",
            &format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {SECRET}\"}}}}"),
        ),
        "http://fake does not accept the key: Incorrect API key provided: [redacted key]",
    );
}

#[test]
fn an_unknown_model_is_named() {
    check(
        response(
            "404 Not Found",
            "",
            r#"{"error":{"message":"no such model"}}"#,
        ),
        "http://fake/v1/chat/completions knows no model `gpt-5`: no such model",
    );
}

#[test]
fn a_request_that_is_too_long_has_the_providers_words() {
    check(
        response(
            "400 Bad Request",
            "",
            r#"{"error":{"message":"maximum context length is 8192"}}"#,
        ),
        "the request was refused with status 400: maximum context length is 8192",
    );
}

#[test]
fn a_web_page_is_no_answer() {
    check(
        response(
            "200 OK",
            "content-type: text/html\r\n",
            "<!doctype html>\n<title>Login</title>",
        ),
        "http://fake/v1/chat/completions returned something that is not a model response: `<!doctype html> <title>Login</title>`",
    );
    check(
        response("200 OK", "content-type: text/event-stream\r\n", "<html>"),
        "http://fake/v1/chat/completions returned something that is not a model response: `<html>`",
    );
    check(
        response("502 Bad Gateway", "", "<html>nginx</html>"),
        "the provider failed with status 502: an HTML page",
    );
}

#[test]
fn an_error_with_a_good_status_is_an_error() {
    check(
        response(
            "200 OK",
            "content-type: application/json\r\n",
            r#"{"error":{"message":"no credit"}}"#,
        ),
        "the provider answered with an error: no credit",
    );
}

/// Regression: the hints were about a long input and a wrong key.
#[test]
fn a_proxy_in_between_is_named() {
    for (status, body, expected) in [
        (
            "407 Proxy Authentication Required",
            "<html>",
            "the proxy asks for a login",
        ),
        ("405 Method Not Allowed", "", "check `base_url`"),
        (
            "403 Forbidden",
            "<html>blocked</html>",
            "check `base_url` and the proxy",
        ),
        ("413 Payload Too Large", "", "if the input is too long"),
        (
            "400 Bad Request",
            r#"[{"error":{"message":"API key not valid. Pass a valid one."}}]"#,
            "check that the key is current",
        ),
    ] {
        let fake = Fake::answering(&[response(status, "", body)]);
        let error = ask(&model(&fake, |_| ())).unwrap_err();
        assert!(
            error.remedy().starts_with(expected),
            "{status}: {}",
            error.remedy()
        );
    }
}

/// Regression: the address was shown with the key in it, and so was what the server echoed.
#[test]
fn a_key_in_the_address_is_in_no_error() {
    let fake = Fake::answering(&[response("404 Not Found", "", "no address-1234")]);
    let settings = ModelSettings {
        id: "m".into(),
        base_url: Some(format!("{}/v1?key=address-1234", fake.origin)),
        ..ModelSettings::default()
    };
    let remote = Remote::new("mine", &settings, &ModelEnv::default()).unwrap();
    let error = ask(&remote).unwrap_err().to_string();
    assert_eq!(
        error.replace(&fake.origin, "http://fake"),
        "http://fake/v1/chat/completions knows no model `m`: no [redacted key]"
    );
    assert!(fake.requests()[0].contains("?key=address-1234"));
}

#[test]
fn a_redirect_is_not_followed() {
    let trap = Fake::answering(&[events(HELLO)]);
    let location = format!("location: {}/v1/chat/completions\r\n", trap.origin);
    let fake = Fake::answering(&[response("307 Temporary Redirect", &location, "")]);
    let error = ask(&model(&fake, |_| ())).unwrap_err();
    assert!(
        matches!(&error, ModelError::Redirect { location, .. } if location.starts_with(&trap.origin)),
        "{error}"
    );

    assert_eq!((fake.requests().len(), trap.requests().len()), (1, 0));
}

#[test]
fn an_empty_answer_is_an_error() {
    check(
        events(
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ),
        "the answer is empty",
    );
    check(
        events("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n"),
        "the answer is empty: the limit of tokens was reached before any text",
    );
    check(events(""), "the answer is empty: the server sent nothing");
}

#[test]
fn half_a_stream_is_broken_and_keeps_what_came() {
    let fake = Fake::answering(&[events(BEGUN)]);
    let error = ask(&model(&fake, |_| ())).unwrap_err();
    assert_eq!(
        error,
        ModelError::Broken {
            detail: "the connection closed before the end".into(),
            partial: "# Hel".into()
        }
    );
    let declared = response(
        "200 OK",
        "content-type: text/event-stream\r\ncontent-length: 9000\r\n",
        BEGUN,
    );
    let fake = Fake::answering(&[declared]);
    let error = ask(&model(&fake, |_| ())).unwrap_err();

    assert!(
        matches!(&error, ModelError::Broken { partial, .. } if partial == "# Hel"),
        "{error:?}"
    );
    assert_eq!(fake.requests().len(), 1);
}

#[test]
fn an_error_in_the_middle_has_the_providers_words_and_keeps_what_came() {
    let fake = Fake::answering(&[events(&format!(
        "{BEGUN}data: {{\"error\":{{\"message\":\"overloaded\"}}}}\n\n"
    ))]);
    assert_eq!(
        ask(&model(&fake, |_| ())),
        Err(ModelError::Provider {
            detail: "overloaded".into(),
            partial: "# Hel".into()
        })
    );
}

#[test]
fn spent_credit_and_a_wrong_key_are_not_asked_again() {
    for refusal in [
        response(
            "429 Too Many Requests",
            "",
            r#"{"error":{"message":"x","code":"insufficient_quota"}}"#,
        ),
        response("401 Unauthorized", "", ""),
    ] {
        let fake = Fake::answering(&[refusal, events(HELLO)]);
        assert!(ask(&model(&fake, |_| ())).is_err());
        assert_eq!(fake.requests().len(), 1);
    }
}

#[test]
fn nobody_at_the_address_is_said() {
    let fake = Fake::start(vec![]);
    let error = ask(&model(&fake, |remote| {
        remote.note = Rc::new(|text| panic!("a missing server was asked again: {text}"));
        remote.url = endpoint(&Url::parse("http://127.0.0.1:1").unwrap(), "v1");
    }))
    .unwrap_err();

    assert!(
        error
            .to_string()
            .starts_with("cannot reach http://127.0.0.1:1: "),
        "{error}"
    );
}

#[test]
fn what_is_no_http_is_asked_again_in_vain() {
    let fake = Fake::start(vec![vec![Act::Send("SSH-2.0-OpenSSH_9.6\r\n".into())]; 6]);
    let error = ask(&model(&fake, |_| ())).unwrap_err();
    assert_eq!(
        error.to_string().replace(&fake.origin, "http://fake"),
        "cannot reach http://fake: invalid HTTP version parsed"
    );
    assert_eq!(fake.requests().len(), 6);
}

#[test]
fn a_key_that_a_server_echoes_is_in_no_answer() {
    let echo = |text: &str| {
        text.replace("Hel", &format!("{SECRET} Hel"))
            .replace("gpt-5-2", SECRET)
    };
    let fake = Fake::answering(&[
        events(&echo(HELLO)),
        events(&echo(BEGUN)),
        events(&echo(HELLO).replace("\"stop\"", &format!("\"{SECRET}\""))),
    ]);
    let remote = model(&fake, |_| ());
    let answer = ask(&remote).unwrap();

    assert_eq!(
        (answer.text.as_str(), answer.model.as_str()),
        ("# [redacted key] Hello\n", "[redacted key]")
    );
    assert_eq!(
        ask(&remote).unwrap_err().partial(),
        Some("# [redacted key] Hel")
    );
    assert_eq!(
        ask(&remote).unwrap().finish,
        Finish::Other("[redacted key]".into())
    );
}
