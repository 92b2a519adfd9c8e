//! Oversized answers.

use super::*;

#[test]
fn a_huge_answer_is_cut() {
    let flood = |head: &str, piece: &str| {
        Fake::start(vec![vec![
            Act::Send(head.to_owned()),
            Act::Flood(piece.to_owned()),
        ]])
    };
    let fake = flood(&events(""), BEGUN);
    let error = ask(&model(&fake, |remote| remote.limits.bytes = 100_000)).unwrap_err();
    assert!(
        matches!(&error, ModelError::TooLarge { limit: 100_000, partial } if partial.starts_with("# Hel")),
        "{error}"
    );
    let fake = flood(&events("data: "), "xxxxxxxx");
    let error = ask(&model(&fake, |remote| remote.limits.event = 5000)).unwrap_err();

    assert!(
        matches!(error, ModelError::TooLarge { limit: 5000, .. }),
        "{error}"
    );
    let fake = flood(
        &response("200 OK", "content-type: application/json\r\n", "["),
        "[[[[[[",
    );
    let error = ask(&model(&fake, |remote| remote.limits.bytes = 100_000)).unwrap_err();

    assert!(matches!(error, ModelError::TooLarge { .. }), "{error}");
}

#[test]
fn headers_without_end_are_cut() {
    let fake = Fake::start(vec![vec![
        Act::Send("HTTP/1.1 200 OK\r\n".into()),
        Act::Flood("x-filler: ".to_owned() + &"y".repeat(900) + "\r\n"),
    ]]);
    let error = ask(&model(&fake, |remote| remote.limits.retries = 0)).unwrap_err();
    assert_eq!(
        error.to_string().replace(&fake.origin, "http://fake"),
        "cannot reach http://fake: message head is too large"
    );
}

#[test]
fn a_compressed_answer_is_measured_as_it_unfolds() {
    let head = response(
        "200 OK",
        "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n",
        "",
    );
    let fake = Fake::start(vec![vec![
        Act::Send(head.clone()),
        Act::Bytes(bomb(100 << 20)),
    ]]);
    let error = ask(&model(&fake, |remote| remote.limits.bytes = 1 << 20)).unwrap_err();
    assert!(
        matches!(
            error,
            ModelError::TooLarge {
                limit: 1_048_576,
                ..
            }
        ),
        "{error}"
    );

    // An answer that isn't valid gzip is broken, and the request is retried.
    let broken = vec![
        Act::Send(head),
        Act::Send("no gzip at all, really not".into()),
    ];
    let fake = Fake::start(vec![broken, vec![Act::Send(events(HELLO))]]);
    assert_eq!(ask(&model(&fake, |_| ())).unwrap().text, "# Hello\n");
}

/// Builds a gzip file of `length` zeros: a literal, then copies of the previous 258 bytes, 13 bits
/// each.
fn bomb(length: usize) -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    // The last block with fixed Huffman codes. The literal 0 has the code 00110000, first bit
    // first.
    let mut bits = vec![1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0];
    let copy = [1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0];
    (0..length / 258).for_each(|_| bits.extend(copy));
    bytes.extend(bits.chunks(8).map(|bits| {
        bits.iter()
            .enumerate()
            .fold(0, |byte, (at, bit)| byte | bit << at)
    }));

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
