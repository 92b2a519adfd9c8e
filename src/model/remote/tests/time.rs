//! Slow, silent and overloaded servers: limits, retries, cancellation.

use super::*;

#[test]
fn silence_meets_the_idle_limit() {
    let fake = Fake::start(vec![vec![Act::Send(events(BEGUN)), Act::Stall]]);
    let error = ask(&model(&fake, |remote| remote.limits.idle = SHORT)).unwrap_err();
    assert_eq!(
        error,
        ModelError::Idle {
            limit: SHORT,
            partial: "# Hel".into()
        }
    );
}

#[test]
fn silence_before_the_first_byte_has_a_limit_of_its_own() {
    let fake = Fake::start(vec![vec![Act::Stall]]);
    let error = ask(&model(&fake, |remote| remote.limits.first = SHORT)).unwrap_err();
    assert_eq!(
        error,
        ModelError::Idle {
            limit: SHORT,
            partial: String::new()
        }
    );
}

#[test]
fn silence_after_the_end_is_no_error() {
    let finished = HELLO.split_once("data: [DONE]").unwrap().0;
    let fake = Fake::start(vec![vec![Act::Send(events(finished)), Act::Stall]]);
    assert_eq!(
        ask(&model(&fake, |remote| remote.limits.idle = SHORT))
            .unwrap()
            .text,
        "# Hello\n"
    );
}

#[test]
fn a_slow_drip_meets_the_total_limit() {
    let fake = Fake::start(vec![vec![
        Act::Send(events(BEGUN)),
        Act::Drip(": ".repeat(100_000), Duration::from_millis(2)),
    ]]);
    let total = Duration::from_millis(600);
    let error = ask(&model(&fake, |remote| remote.limits.total = total)).unwrap_err();

    assert_eq!(
        error,
        ModelError::Timeout {
            limit: total,
            partial: "# Hel".into()
        }
    );
}

#[test]
fn a_busy_server_is_asked_again() {
    let busy = response(
        "429 Too Many Requests",
        "retry-after: 0\r\n",
        r#"{"error":{"message":"slow down"}}"#,
    );
    let fake = Fake::answering(&[
        busy,
        response("503 Service Unavailable", "", ""),
        events(HELLO),
    ]);
    let notes = Rc::new(RefCell::new(Vec::new()));
    let log = notes.clone();
    let remote = model(&fake, |remote| {
        remote.note = Rc::new(move |text| log.borrow_mut().push(text.to_owned()))
    });

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
fn a_connection_that_ends_before_the_first_event_is_made_again() {
    let begun = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n: keep-alive\n\n";
    let early = [
        vec![],
        vec![Act::Send(begun.into())],
        vec![Act::Send(events(": keep-alive\n\n"))],
    ];
    for acts in early {
        let fake = Fake::start(vec![acts, vec![Act::Send(events(HELLO))]]);
        assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# Hello\n");
    }
}

#[test]
fn a_pause_beyond_the_total_limit_ends_with_the_reason() {
    let fake = Fake::answering(&[response(
        "429 Too Many Requests",
        "retry-after: 30\r\n",
        "{\"error\":\"slow down\"}",
    )]);
    let start = Instant::now();
    let error = ask(&model(&fake, |remote| {
        remote.limits.total = Duration::from_secs(1)
    }))
    .unwrap_err();
    assert_eq!(
        error,
        ModelError::Quota {
            detail: "slow down".into()
        }
    );

    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn time_that_runs_out_in_a_repetition_ends_with_the_reason() {
    let busy = response(
        "500 Internal Server Error",
        "retry-after: 0\r\n",
        "{\"error\":\"oops\"}",
    );
    let fake = Fake::start(vec![vec![Act::Send(busy)], vec![Act::Stall]]);
    let error = ask(&model(&fake, |remote| {
        remote.limits.total = Duration::from_millis(400)
    }))
    .unwrap_err();

    assert_eq!(
        error,
        ModelError::Server {
            status: 500,
            detail: "oops".into()
        }
    );
}

#[test]
fn repetitions_have_an_end() {
    let fake = Fake::answering(&vec![
        response(
            "500 Internal Server Error",
            "",
            "{\"error\":\"oops\"}"
        );
        9
    ]);
    assert_eq!(
        ask(&model(&fake, |_| ())),
        Err(ModelError::Server {
            status: 500,
            detail: "oops".into()
        })
    );
    assert_eq!(fake.requests().len(), 6);
}

#[test]
fn an_interruption_comes_through_at_once_and_keeps_what_came() {
    let fake = Fake::start(vec![vec![Act::Send(events(BEGUN)), Act::Stall]]);
    let has_text = Rc::new(RefCell::new(false));
    let flag = has_text.clone();
    let remote = model(&fake, |remote| {
        remote.stopped = Rc::new(move || *flag.borrow())
    });
    let start = Instant::now();
    let result = remote.answer(&ModelRequest::default(), &mut |text| {
        *has_text.borrow_mut() |= !text.is_empty()
    });

    assert_eq!(
        result,
        Err(ModelError::Interrupted {
            partial: "# Hel".into()
        })
    );
    assert!(start.elapsed() < Duration::from_secs(10));
}
