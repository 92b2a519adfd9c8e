//! Detects words that mean that nearby text is not a step of the plan: a condition, an alternative,
//! an example, something already done, struck out or retracted.
//!
//! Text that is removed must never be the one that says "only if the tests fail". Whatever matches
//! here is ambiguous and left unchanged, so that the parser rejects it. The lists are English.

use crate::text::has_word;

/// Phrases that forbid or retract the text above or below.
const AGAINST: &str = "\
    do not run, dont run, do not execute, dont execute, do not apply, dont apply, do not do, \
    dont do, do not use, dont use, not to do, never run, not run, not yet, scratch that, \
    second thought, second thoughts, ignore the above, ignore that, ignore this, disregard, \
    let me redo, redo this, skip this, skip that, skip it, for reference";
/// First words of a sentence that retracts the text above.
const TAKING_BACK: &str = "wait oops actually correction";
/// Phrases that make the text below an alternative, a proposal or an example.
const DEPENDING: &str = "\
    unless, otherwise, alternatively, alternative, alternatives, either, optional, optionally, \
    in case, only when, as needed, when needed, depending, skip, skipped, manually, by hand, \
    yourself, undo, roll back, rollback, to revert, rejected, deprecated, last time, \
    previous plan, previously, could, i would, we would, would be, for example, example of";
/// Words in a heading that mean that the text below is not a step.
const ASIDE_WORDS: &str = "\
    no not nothing none never done later example examples previous old draft history appendix \
    future backlog archive archived or failed aborted discarded cancelled canceled deferred reverted \
    hypothetical dry scope beispiel";
/// Words above a block that mean that it shows output, not a command.
const OUTPUT: &str = "\
    output outputs prints printed result results log logs error errors session reference notes \
    version expected see shows print show";
/// Words in front of the verb of a sentence that announces a command.
const LEADING: &str = "\
    now then next first second third finally lastly last also and so please step let lets us me we \
    i ill well will can to 1 2 3 4 5 6 7 8 9";
const VERBS: &str = "\
    run rerun execute install build rebuild compile verify check recheck test start restart confirm \
    ensure validate format lint generate regenerate make update apply commit clean";
/// Words that say when something is done, or by whom.
const LIMITING: &str = "\
    not never dont doesnt wont cant cannot shouldnt later tomorrow tonight week month turn session \
    merge merged merging release released deployed approval approved approve agreed user you your \
    yourself yours";
/// Words before an `if` that is not a condition.
const QUERY_VERBS: &str = "check checks see verify confirm know determine test ask sure";
/// Marks in front of unwanted text.
const CROSSES: [char; 8] = ['❌', '🚫', '⛔', '✗', '✘', '✖', '❎', '🛑'];

/// Returns whether text can be removed: it retracts nothing, and, if the plan continues below
/// (`goes_on`), makes nothing conditional.
pub fn is_removable(text: &str, continues: bool) -> bool {
    let text = spaced(text);
    let ruled_out = is_against(&text) || (continues && is_depending(&text));
    !ruled_out
}

/// Returns whether a text makes the following block conditional.
pub fn makes_depend(text: &str) -> bool {
    is_depending(&spaced(text))
}

/// Returns whether the words beside the name of an action say that it is not simply to be done.
pub fn is_condition(text: &str) -> bool {
    let text = spaced(text);
    let first = text.split_whitespace().next().unwrap_or_default();
    is_against(&text) || is_depending(&text) || has_word(ASIDE_WORDS, first)
}

/// Returns whether a heading says that the text below is not a step of the plan.
pub fn is_aside(title: &str) -> bool {
    let text = spaced(title);
    let starts_aside = text
        .split_whitespace()
        .any(|word| has_word(ASIDE_WORDS, word));
    starts_aside || is_against(&text) || is_depending(&text)
}

/// Returns whether each sentence of a text only announces the command below it.
pub fn announces(text: &str) -> bool {
    let sentences = text.split(['.', '!', '?']).map(spaced);
    sentences
        .filter(|text| !text.trim().is_empty())
        .all(|text| {
            let mut tokens = text.split_whitespace();
            let verb = tokens.find(|word| !has_word(LEADING, word));
            verb.is_none_or(|verb| has_word(VERBS, verb)) && !tokens.any(is_limiting)
        })
}

/// Returns whether a word says when something is done, or by whom.
pub fn is_limiting(word: &str) -> bool {
    has_word(LIMITING, word)
}

/// Returns whether text above a block says that it shows output.
pub fn is_output(text: &str) -> bool {
    spaced(text)
        .split_whitespace()
        .any(|word| has_word(OUTPUT, word))
}

/// Returns whether a heading or field is struck out or marked as unwanted.
pub fn is_crossed_out(line: &str) -> bool {
    line.contains("~~") || line.contains(CROSSES)
}

/// Returns whether a field's value starts with text between pairs of tildes.
pub fn is_struck_out(value: &str) -> bool {
    value
        .strip_prefix("~~")
        .is_some_and(|struck| struck.contains("~~"))
}

fn is_against(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    has_word(TAKING_BACK, first) || has_any(text, AGAINST)
}

fn is_depending(text: &str) -> bool {
    let all: Vec<&str> = text.split_whitespace().collect();
    let word = |at: usize| all.get(at).copied().unwrap_or_default();
    let asked = |at: usize| at > 0 && has_word(QUERY_VERBS, word(at - 1));
    let depends = |at: usize| match word(at) {
        "if" => !asked(at),
        "instead" => word(at + 1) != "of",
        "option" | "variant" | "approach" => {
            matches!(word(at + 1), "a" | "b" | "c" | "d" | "1" | "2" | "3" | "4")
        }
        "example" | "or" => at == 0,
        _ => false,
    };

    has_any(text, DEPENDING) || (0..all.len()).any(depends)
}

fn has_any(text: &str, phrases: &str) -> bool {
    phrases.split(", ").any(|phrase| {
        text.match_indices(phrase)
            .any(|(at, _)| is_whole(text, at, at + phrase.len()))
    })
}

fn is_whole(text: &str, start: usize, end: usize) -> bool {
    text[..start].ends_with(' ') && text[end..].starts_with(' ')
}

/// Returns a text in lower case with each word between spaces.
fn spaced(text: &str) -> String {
    let mut normalized = String::with_capacity(text.len() + 2);
    normalized.push(' ');
    for letter in text.chars().filter(|letter| !matches!(letter, '\'' | '’')) {
        if letter.is_alphanumeric() {
            normalized.extend(letter.to_lowercase());
        } else if !normalized.ends_with(' ') {
            normalized.push(' ');
        }
    }

    if !normalized.ends_with(' ') {
        normalized.push(' ');
    }

    normalized
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p35_words_that_condition_what_follows_are_kept() {
        for text in [
            "Only if the tests fail, run this instead:",
            "Otherwise, revert everything.",
            "**Option A: minimal change**",
            "Alternatively, we could do this:",
            "If you prefer, use this instead.",
            "For example:",
            "You can undo it like this:",
        ] {
            assert!(!is_removable(text, true), "{text}");
            assert!(is_removable(text, false), "{text}");
        }
        for text in [
            "Don’t run this yet.",
            "Wait, that deletes too much.",
            "Please ignore the above.",
        ] {
            assert!(!is_removable(text, false), "{text}");
        }
        for text in [
            "First we check if the tests pass.",
            "This returns `Hello` instead of `hi`.",
            "We add the option `--x`.",
            "The notification is sent.",
        ] {
            assert!(is_removable(text, true), "{text}");
        }
    }

    #[test]
    fn p26_words_that_make_an_action_none_are_told_from_others() {
        for text in [
            "(optional)",
            "later, if needed",
            "[SKIPPED]",
            "✅ (done)",
            "nothing",
        ] {
            assert!(is_condition(text), "{text}");
        }
        for text in [
            "the tests",
            "src/old.rs",
            "a note",
            "noto.py",
            "`if` in `a.rs`",
        ] {
            assert_eq!(is_condition(text), text.contains("if"), "{text}");
        }
    }
}
