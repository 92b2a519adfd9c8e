//! Any bytes as a file of the project, on its way into an input: judged, counted, written, shown.
//!
//! Nothing panics; what is text is in the input whole; the input's blocks hold what they hold. The
//! file is the bytes over and over, up to some megabytes: what is long breaks other things than what
//! is odd.

#![no_main]

use libfuzzer_sys::fuzz_target;
use teddy::git::ignore::TextRules;
use teddy::model::token;
use teddy::session::input::{ResourceBody, Material, ListScope, Shown, render};
use teddy::text::{context_list, redact, visible};
use teddy::ui::{markdown, style};

/// The size of the largest file.
const MAX_FILE: usize = 3 << 20;
/// The limit on what is shown.
const LIMIT: u64 = 2 << 20;

fuzz_target!(|input: (u16, &[u8])| {
    let (times, bytes) = input;
    let most = MAX_FILE / bytes.len().max(1);
    let file = bytes.repeat((1 << (times % 22)).min(most).max(1));
    TextRules::parse(&file).excludes(b"src/main.rs");
    let body = ResourceBody::of(&file, LIMIT);
    let tokens = if let ResourceBody::Text(text) = &body {
        context_list::read(text);
        redact::redact(text);
        visible::visible(text);
        token::count(text)
    } else {
        0
    };
    assert!(tokens <= file.len(), "more tokens than bytes");
    let name = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
    let shown = Shown {
        scope: ListScope::Turn,
        resource: name,
        body,
        tokens,
    };
    let material = Material {
        memos: std::str::from_utf8(&file).ok().map(str::to_owned),
        resources: vec![shown],
        ..Material::default()
    };
    let input = render(&material);
    if let ResourceBody::Text(text) = &material.resources[0].body {
        assert!(input.contains(text.as_str()), "a text is not whole");
    }
    for line in markdown::lines(&input) {
        let _ = style::StyledLine::spans(&line);
    }
});
