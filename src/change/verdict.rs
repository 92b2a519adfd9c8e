//! Parses the verdict of a challenger or reviewer.
//!
//! Only the review's verdict field counts, and it must contain exactly one verdict. A missing,
//! unknown or ambiguous verdict is an error, so a change never advances on a guess. Implements the
//! rules V1-V6 of `docs/formats/review.md`.

use serde::{Deserialize, Serialize};

use super::section::{self, DocumentSection};

/// The verdict of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    /// The change can proceed.
    Approved,
    /// Must be fixed: `NEEDS_REVISION` for a proposal, `NEEDS_FIX` for an implementation.
    NeedsRevision,
    /// The proposal is wrong as a whole.
    Rejected,
}

/// Why a text has no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoVerdict {
    /// There is no field.
    #[error("it has no `## Verdict`")]
    Missing,
    /// There is more than one field.
    #[error("it has {0} fields for the verdict")]
    Many(usize),
    /// The field contains no known verdict.
    #[error("its verdict says {0}, which is none of APPROVED, NEEDS_REVISION, REJECTED")]
    Unknown(String),
    /// No box is ticked.
    #[error("no box of its verdict is ticked")]
    Unticked,
    /// The field contains more than one verdict.
    #[error("its verdict names {0} verdicts")]
    Ambiguous(usize),
    /// The attribute and the field differ.
    #[error("its status `{status}` and its verdict `{verdict}` differ")]
    Differs {
        /// Value of the attribute.
        status: String,
        /// Value of the field.
        verdict: String,
    },
}

impl ReviewVerdict {
    /// Parses a verdict. Ignores case, and treats spaces, hyphens and underscores alike (rule V2).
    pub fn parse(word: &str) -> Option<ReviewVerdict> {
        let word: String = word
            .trim()
            .chars()
            .map(|c| {
                if matches!(c, ' ' | '-') {
                    '_'
                } else {
                    c.to_ascii_uppercase()
                }
            })
            .collect();
        match word.as_str() {
            "APPROVED" => Some(ReviewVerdict::Approved),
            "NEEDS_REVISION" | "NEEDS_FIX" | "NEEDS_CHANGES" => Some(ReviewVerdict::NeedsRevision),
            "REJECTED" | "MAJOR_ISSUES" => Some(ReviewVerdict::Rejected),
            _ => None,
        }
    }

    /// Returns the keyword.
    pub fn word(self) -> &'static str {
        match self {
            ReviewVerdict::Approved => "APPROVED",
            ReviewVerdict::NeedsRevision => "NEEDS_REVISION",
            ReviewVerdict::Rejected => "REJECTED",
        }
    }
}

/// Returns the verdict of a review. Fails unless there is exactly one.
pub fn read_verdict(text: &str) -> Result<ReviewVerdict, NoVerdict> {
    let sections = section::read(text);
    let fields: Vec<&DocumentSection> = sections
        .iter()
        .filter(|section| section.title.eq_ignore_ascii_case("verdict"))
        .collect();
    match fields.as_slice() {
        [] => verdict_in_lines(text),
        [field] => verdict_in_field(&field.body),
        many => Err(NoVerdict::Many(many.len())),
    }
}

/// Parses `**Verdict**: APPROVED` in a text without a section for it.
fn verdict_in_lines(text: &str) -> Result<ReviewVerdict, NoVerdict> {
    let values: Vec<String> = section::prose(text)
        .iter()
        .filter_map(|line| verdict_field(line))
        .collect();
    match values.as_slice() {
        [] => Err(NoVerdict::Missing),
        [word] => ReviewVerdict::parse(word).ok_or_else(|| unknown_verdict(word)),
        many => Err(NoVerdict::Many(many.len())),
    }
}

fn verdict_field(line: &str) -> Option<String> {
    let plain = without_marks(line.trim().trim_start_matches(['-', ' ']));
    let (key, value) = plain.split_once(':')?;
    key.trim()
        .eq_ignore_ascii_case("verdict")
        .then(|| value.trim().to_owned())
}

/// Parses ticked boxes, or the verdict in the first line.
fn verdict_in_field(body: &str) -> Result<ReviewVerdict, NoVerdict> {
    let lines = section::prose(body);
    let boxes: Vec<(bool, String)> = lines.iter().filter_map(|line| parse_tick(line)).collect();
    if !boxes.is_empty() {
        return verdict_in_boxes(&boxes);
    }

    let answers: Vec<String> = lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(|line| parse_verdict_word(line))
        .collect();
    let Some(first) = answers.first() else {
        return Err(NoVerdict::Unknown("nothing".to_owned()));
    };

    let verdict = ReviewVerdict::parse(first).ok_or_else(|| unknown_verdict(first))?;
    let count = answers
        .iter()
        .filter(|line| ReviewVerdict::parse(line).is_some())
        .count();
    if count > 1 {
        Err(NoVerdict::Ambiguous(count))
    } else {
        Ok(verdict)
    }
}

fn verdict_in_boxes(boxes: &[(bool, String)]) -> Result<ReviewVerdict, NoVerdict> {
    let ticked: Vec<&String> = boxes
        .iter()
        .filter(|(ticked, _)| *ticked)
        .map(|(_, word)| word)
        .collect();
    match ticked.as_slice() {
        [] => Err(NoVerdict::Unticked),
        [word] => ReviewVerdict::parse(word).ok_or_else(|| unknown_verdict(word)),
        many => Err(NoVerdict::Ambiguous(many.len())),
    }
}

/// Parses `- [x] APPROVED - why` into whether it is ticked and the verdict.
fn parse_tick(line: &str) -> Option<(bool, String)> {
    let tail = line
        .trim_start()
        .strip_prefix(['-', '*', '+'])?
        .trim_start()
        .strip_prefix('[')?;
    let (mark, tail) = tail.split_once(']')?;
    let ticked = match mark.trim() {
        "" => false,
        "x" | "X" | "✓" | "✔" => true,
        _ => return None,
    };

    let word = without_marks(tail);
    let end = [" - ", " – ", " — ", ":", " ("]
        .iter()
        .filter_map(|mark| word.find(mark))
        .min()
        .unwrap_or(word.len());
    Some((ticked, word[..end].trim().to_owned()))
}

fn parse_verdict_word(line: &str) -> String {
    let word =
        verdict_field(line).unwrap_or_else(|| without_marks(line.trim().trim_start_matches("- ")));
    word.trim().trim_end_matches('.').to_owned()
}

/// Removes emphasis and code marks.
fn without_marks(line: &str) -> String {
    line.replace("**", "")
        .replace(['*', '`'], "")
        .trim()
        .to_owned()
}

fn unknown_verdict(word: &str) -> NoVerdict {
    let rendered: String = crate::text::sanitize::sanitize_line(word)
        .chars()
        .take(60)
        .collect();
    NoVerdict::Unknown(format!("\"{rendered}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<ReviewVerdict, &str>) {
        let actual = read_verdict(text).map_err(|error| error.to_string());
        assert_eq!(
            actual.as_ref().map_err(String::as_str),
            expected.as_ref().map_err(|e| *e),
            "for {text:?}"
        );
    }

    #[test]
    fn v1_the_verdict_is_the_first_line_of_its_section() {
        check(
            "## Summary\nFine.\n\n## Verdict\nAPPROVED\n",
            Ok(ReviewVerdict::Approved),
        );
        check(
            "## Verdict\n\n**NEEDS_REVISION**\n\nTwo things are missing.\n",
            Ok(ReviewVerdict::NeedsRevision),
        );
        check(
            "## Verdict\n`rejected`.\n\n## Next Steps\nApproved is far away.\n",
            Ok(ReviewVerdict::Rejected),
        );
        check(
            "## Verdict\nVerdict: APPROVED\n",
            Ok(ReviewVerdict::Approved),
        );
    }

    #[test]
    fn v2_the_words_have_the_same_meaning_in_every_spelling() {
        for word in [
            "NEEDS_FIX",
            "needs_changes",
            "Needs revision",
            "needs-revision",
        ] {
            check(
                &format!("## Verdict\n{word}\n"),
                Ok(ReviewVerdict::NeedsRevision),
            );
        }
        check("## Verdict\nMAJOR_ISSUES\n", Ok(ReviewVerdict::Rejected));
    }

    #[test]
    fn v3_a16_prose_is_no_verdict() {
        check(
            "## Summary\nThis cannot be approved. The verdict is clear.\n\n## Verdict\nREJECTED\n",
            Ok(ReviewVerdict::Rejected),
        );
        check(
            "It cannot be approved; my verdict will follow.\n",
            Err("it has no `## Verdict`"),
        );
        let error = "its verdict says \"REJECTED, not approved\", which is none of APPROVED, NEEDS_REVISION, REJECTED";
        check("Verdict: REJECTED, not approved\n", Err(error));
        check(
            "## Verdict\nThis is APPROVED, I think\n",
            Err(
                "its verdict says \"This is APPROVED, I think\", which is none of APPROVED, NEEDS_REVISION, REJECTED",
            ),
        );
        check(
            "```\n## Verdict\nAPPROVED\n```\n",
            Err("it has no `## Verdict`"),
        );
    }

    #[test]
    fn v4_a18_an_unfilled_template_is_no_verdict() {
        let message = "\"APPROVED | NEEDS_REVISION | REJECTED\", which is none of APPROVED, NEEDS_REVISION, REJECTED";
        check(
            "**Verdict**: APPROVED | NEEDS_REVISION | REJECTED\n",
            Err(&format!("its verdict says {message}")),
        );
        check(
            "## Verdict\nAPPROVED | NEEDS_REVISION | REJECTED\n",
            Err(&format!("its verdict says {message}")),
        );
        check(
            "## Verdict\n- [ ] APPROVED\n- [ ] NEEDS_FIX\n",
            Err("no box of its verdict is ticked"),
        );
        check(
            "## Verdict\n\n",
            Err("its verdict says nothing, which is none of APPROVED, NEEDS_REVISION, REJECTED"),
        );
        check("", Err("it has no `## Verdict`"));
    }

    #[test]
    fn v5_a19_the_one_ticked_box_counts() {
        for mark in ["x", "X", "✓", "✔"] {
            check(
                &format!(
                    "## Verdict\n- [ ] APPROVED - ready\n- [{mark}] **NEEDS_CHANGES** - see above\n"
                ),
                Ok(ReviewVerdict::NeedsRevision),
            );
        }
        check("## Verdict\n* [x] approved\n", Ok(ReviewVerdict::Approved));
    }

    #[test]
    fn v6_a20_two_verdicts_are_none() {
        check(
            "## Verdict\n- [x] APPROVED\n- [x] NEEDS_FIX\n",
            Err("its verdict names 2 verdicts"),
        );
        check(
            "## Verdict\nAPPROVED\nREJECTED\n",
            Err("its verdict names 2 verdicts"),
        );
        check(
            "## Verdict\nAPPROVED\n\n## Verdict\nREJECTED\n",
            Err("it has 2 fields for the verdict"),
        );
        check(
            "**Verdict**: APPROVED\n\n**Verdict**: REJECTED\n",
            Err("it has 2 fields for the verdict"),
        );
    }
}
