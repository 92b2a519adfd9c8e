//! Any text as a file that people and programs write: configuration, context lists, memos, the
//! records of turns and changes.
//!
//! Nothing panics; what is read and written is read as the same; a change touches what it names
//! alone.

#![no_main]

use libfuzzer_sys::fuzz_target;
use teddy::change::{proposal, spec, state, tasks, review};
use teddy::config::layer::{Layer, merge};
use teddy::plan::memo;
use teddy::session::meta::{self, Meta, NextMeta};
use teddy::text::context_list::ListEntry;
use teddy::text::resource::Resource;
use teddy::text::{context_list, redact, visible};

fuzz_target!(|text: &str| {
    if let Ok(mut layer) = Layer::parse("fuzz", text) {
        layer.confine(false);
        let _ = merge(&[layer]);
    }
    check_list(text);
    check_memos(text);
    if let Ok(read) = meta::read::<Meta>(text) {
        assert!(meta::read::<Meta>(&meta::write(&read)).is_ok(), "a record is written that is not read");
    }
    let _ = meta::read::<NextMeta>(text);
    if let Ok(read) = state::read(text) {
        assert!(state::read(&state::write(&read)).is_ok(), "a state is written that is not read");
    }
    let _ = review::read(text);
    tasks::read(text);
    tasks::check(text);
    spec::check("specs/a.md", text);
    proposal::read(text);
    visible::visible(text);
    redact::redact(text);
});

/// Reads and changes a context list.
fn check_list(text: &str) {
    let listed = context_list::read(text);
    let again = context_list::write(&listed.entries);
    assert_eq!(context_list::read(&again).entries, listed.entries, "a list is read as another one");
    let entry = ListEntry::Resource(Resource::parse("some/[file]/*.rs").expect("a plain path"));
    let added = context_list::add(text, &entry);
    assert!(context_list::read(&added).entries.contains(&entry), "what is added is not there:\n{added:?}");
    let without = context_list::retain(&added, &|own| *own != entry);
    assert!(!context_list::read(&without).entries.contains(&entry), "what is removed is there:\n{without:?}");
}

/// Reads and changes memos.
fn check_memos(text: &str) {
    let (changes, _) = memo::parse(text, 1);
    let mut written = String::new();
    changes.iter().for_each(|change| memo::write(change, &mut written));
    let again = memo::parse(&written, 1).0;
    let said = |changes: &[memo::MemoChange]| changes.iter().map(|c| (c.verb, c.text.clone(), c.comment.clone())).collect::<Vec<_>>();
    assert!(said(&again) == said(&changes), "memos are read as others: {again:?}");
    if let Ok(before) = memo::file::read(text) {
        let after = memo::file::read(&memo::file::apply(text, &changes)).expect("memos that were changed can be read");
        let kept = before.iter().filter(|memo| !changes.iter().any(|change| change.text == **memo));
        assert!(kept.clone().all(|memo| after.contains(memo)), "a memo is lost");
    }
}
