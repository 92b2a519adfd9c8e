//! Tests with a server on the loopback interface that sends fixed answers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use super::*;

/// 2,000 times `0`, gzipped.
const ZEROS: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x33\x30\x18\x05\xa3\x60\x14\x8c\x82\x51\x30\x0a\x46\xc1\x50\x07\x00\x1d\x55\xf9\x7e\xd0\x07\x00\x00";

/// Serves one answer per request. Replaces `{port}` by the server's port.
fn serve(answers: Vec<Vec<u8>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((stream, _)) = listener.accept() else {
                return;
            };
            let mut lines = BufReader::new(&stream).lines();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let _ = (&stream).write_all(&answer);
        }
    });

    port
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").into_bytes();
    bytes.extend(body);
    bytes
}

/// Allow the loopback interface.
fn rules() -> FetchRules {
    FetchRules {
        allowed_hosts: vec!["127.0.0.1".to_owned()],
        timeout: Duration::from_secs(10),
        max_body: 1000,
    }
}

fn check(answers: Vec<Vec<u8>>, rules: &FetchRules, expected: &str) {
    let port = serve(answers);
    let result = fetch(&format!("http://127.0.0.1:{port}/a"), rules)
        .map_or_else(|e| e.to_string(), |page| page.text);
    assert_eq!(result.replace(&port.to_string(), "PORT"), expected);
}

#[test]
fn a_text_arrives() {
    check(
        vec![answer("200 OK\r\nContent-Type: text/plain", b"hello\n")],
        &rules(),
        "hello\n",
    );
}

#[test]
fn a_private_address_is_refused_unless_it_is_allowed() {
    let expected = "`127.0.0.1` is not a public address (127.0.0.1); list it under the allowed hosts of your own configuration to fetch it";
    check(vec![], &FetchRules::default(), expected);
    let error = fetch("http://localhost:1/", &FetchRules::default()).unwrap_err();
    assert!(
        matches!(error, WebError::Address(AddressError::Private { .. })),
        "{error}"
    );
}

#[test]
fn a_redirect_is_followed_and_judged_again() {
    let here = answer("302 Found\r\nLocation: b", b"");
    check(
        vec![
            here.clone(),
            answer("200 OK\r\nContent-Type: text/plain", b"end"),
        ],
        &rules(),
        "end",
    );
    let away = answer("302 Found\r\nLocation: http://[::1]:1/x", b"");
    let expected = "`[::1]` is not a public address (::1); list it under the allowed hosts of your own configuration to fetch it";

    check(vec![away], &rules(), expected);
    check(
        vec![answer("302 Found\r\nLocation: file:///etc/passwd", b"")],
        &rules(),
        "`file:///etc/passwd` is not a web address (http or https)",
    );
    check(vec![here; 6], &rules(), "it redirects more than 5 times");
}

#[test]
fn a_refusal_is_said() {
    check(
        vec![answer("404 Not Found", b"")],
        &rules(),
        "the server answered 404",
    );
}

#[test]
fn a_long_body_is_cut_off_whatever_its_header_says() {
    check(
        vec![answer("200 OK\r\nContent-Length: 1001", &[b'x'; 1001])],
        &rules(),
        "the page is larger than 1000 bytes",
    );
    check(
        vec![answer("200 OK\r\nContent-Type: text/plain", &[b'x'; 5000])],
        &rules(),
        "the page is larger than 1000 bytes",
    );
}

#[test]
fn a_compressed_body_is_measured_unpacked() {
    let packed = answer(
        "200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip",
        ZEROS,
    );
    check(vec![packed], &rules(), "the page is larger than 1000 bytes");
}

#[test]
fn a_silent_server_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let rules = FetchRules {
        timeout: Duration::from_millis(100),
        ..rules()
    };
    let begin = std::time::Instant::now();

    assert!(matches!(fetch(&url, &rules), Err(WebError::TimedOut(_))));
    assert!(begin.elapsed() < Duration::from_secs(5));
}
