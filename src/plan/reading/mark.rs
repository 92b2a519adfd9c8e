//! Marks of a chat template around a whole reply: `<|im_end|>` behind it, the channels of harmony
//! before it, and what a model thought aloud behind its plan.
//!
//! A server that does not know a model's template hands them on as text. No plan begins or ends with
//! one.

use std::ops::Range;

use crate::text::markdown;
use crate::text::markdown::Lines;

/// Brackets of marks such as `<|eot_id|>`.
const BRACKETS: [(&str, &str); 2] = [("<|", "|>"), ("<｜", "｜>")];
const TRAILING: &str = "</s> <end_of_turn> <eos> [/INST] <end_of_utterance>";
const LEADING: &str = "\
    <|start|>assistant <|im_start|>assistant <|start_header_id|>assistant<|end_header_id|> \
    <start_of_turn>model <|assistant|> <｜Assistant｜> [/INST]";
/// What begins the answer behind the channels of harmony.
const MESSAGE: &str = "<|message|>";
/// The channel of the answer.
const FINAL: &str = "<|channel|>final";
/// The same without the marks that a server has taken off.
const BARE: [&str; 2] = ["analysis", "assistantfinal"];
/// Tags around what a model thinks aloud.
const THOUGHTS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];
/// The longest mark, in bytes.
const MAX_MARK: usize = 48;

/// Returns the range of a reply without the marks around it.
pub(super) fn inner(reply: &str) -> Range<usize> {
    let start = start(reply);
    let end = start + end(&reply[start..]);
    // What is nothing but marks says as much as it did before.
    if reply[start..end].trim().is_empty() {
        return 0..reply.len();
    }
    start..end
}

fn start(reply: &str) -> usize {
    let at = |tail: &str| reply.len() - tail.len();
    let text = reply.trim_start();
    if text.starts_with("<|")
        && let Some((_, tail)) = text.split_once(FINAL)
        && let Some((between, tail)) = tail.split_once(MESSAGE)
        && between.len() <= MAX_MARK
    {
        return at(tail);
    }

    let bare = text
        .strip_prefix(BARE[0])
        .and_then(|tail| tail.split_once(BARE[1]));
    if let Some((_, tail)) = bare.filter(|(_, tail)| tail.trim_start().starts_with('#')) {
        return at(tail);
    }

    let stripped = LEADING.split(' ').find_map(|mark| text.strip_prefix(mark));
    stripped.map_or(0, |tail| at(tail.strip_prefix(MESSAGE).unwrap_or(tail)))
}

/// Returns where a reply ends. The end of its last line stays with it.
fn end(reply: &str) -> usize {
    let mut text = reply.trim_end();
    while let Some(tail) = without_mark(text).or_else(|| without_thoughts(text)) {
        text = tail.trim_end();
    }

    if text.len() == reply.trim_end().len() {
        return reply.len();
    }
    let tail = &reply[text.len()..];
    let line = ["\r\n", "\n", "\r"]
        .iter()
        .find(|end| tail.starts_with(**end));
    text.len() + line.map_or(0, |line| line.len())
}

fn without_mark(text: &str) -> Option<&str> {
    let last = text.rsplit('\n').next().unwrap_or_default();
    // The end of an element that the reply opens is not a mark.
    let opened = |mark: &str| mark.starts_with("</") && last.contains(&mark.replace('/', ""));
    if let Some(mark) = TRAILING.split(' ').find(|mark| text.ends_with(*mark))
        && !opened(mark)
    {
        return text.strip_suffix(mark);
    }

    BRACKETS.iter().find_map(|(open, close)| {
        let at = text.strip_suffix(close)?.rfind(open)?;
        let name = &text[at + open.len()..text.len() - close.len()];
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '▁' | '-');
        let fits = !name.is_empty() && name.len() <= MAX_MARK && name.chars().all(plain);
        fits.then_some(&text[..at])
    })
}

/// Removes the model's thoughts from the end of a text, except inside a code block.
fn without_thoughts(text: &str) -> Option<&str> {
    let (open, _) = THOUGHTS.iter().find(|(_, close)| text.ends_with(close))?;
    let at = text.rfind(open)?;
    let starts_line = text[..at].is_empty() || text[..at].ends_with('\n');
    let line = Lines::new(&text[..at]).len() + 1;
    let blocks = markdown::blocks(text);
    let fenced = markdown::fenced(&blocks);
    let inside = fenced.iter().any(|(range, _)| range.contains(&line));
    (starts_line && !inside).then_some(&text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares what is left of a reply.
    fn check(reply: &str, expected: &str) {
        assert_eq!(&reply[inner(reply)], expected, "{reply:?}");
    }

    #[test]
    fn rp18_marks_around_a_reply_are_taken_off() {
        for mark in [
            "<|im_end|>",
            "<|eot_id|>",
            "<end_of_turn>",
            "</s>",
            "<｜end▁of▁sentence｜>",
        ] {
            check(&format!("# T\nx\n{mark}\n"), "# T\nx\n");
            check(&format!("# T\n```\nx\n```{mark}"), "# T\n```\nx\n```");
        }
        check("# T\nx\n<|im_end|>\n<|endoftext|>", "# T\nx\n");
        check(
            "# T\nx\n\n<think>\nIs it right?\n\nYes.\n</think>\n",
            "# T\nx\n",
        );
        check(
            "<|channel|>analysis<|message|>We.<|end|><|start|>assistant<|channel|>final<|message|># T\n",
            "# T\n",
        );
        check("analysisWe need to.assistantfinal# T\n", "# T\n");
        check("<|im_start|>assistant\n# T\n", "\n# T\n");
    }

    #[test]
    fn rp18_what_only_looks_like_a_mark_stays() {
        for reply in [
            "# T\nx\n",
            "",
            "<|im_end|>",
            "analysis of assistantfinal words",
            "a |> b\n",
            "# T\nIt is <s>old</s>\n",
            "# T\n```\n<think>\nx\n</think>\n```\n",
            "# T\n```xml\n<s>a</s>\n```\n",
        ] {
            check(reply, reply);
        }
    }
}
