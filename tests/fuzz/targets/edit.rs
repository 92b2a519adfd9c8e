//! Any text, FIND and REPLACE: matched, applied, explained.
//!
//! Nothing panics; what is outside of the place stays; no message takes longer than the limit on
//! time.

#![no_main]

use libfuzzer_sys::fuzz_target;
use teddy::text::edit::{FailedPair, apply, explain};

fuzz_target!(|parts: (&str, &str, &str)| {
    let (text, find, replace) = parts;
    match apply(text, find, replace) {
        Ok((after, place)) => {
            assert_eq!(text.get(..place.start), after.get(..place.start.min(after.len())), "the text above changed");
            assert!(after.ends_with(&text[place.end..]), "the text below changed");
            assert_eq!(text[..place.start].matches('\n').count() + 1, place.line, "the line is another one");
        }
        Err(error) => {
            let others = [("other".to_owned(), replace.to_owned())];
            let words = explain(&FailedPair { path: "a", text, number: 1, count: 2, find, replace, others: &others }, &error);
            assert!(!words.message.is_empty(), "no words");
        }
    }
});
