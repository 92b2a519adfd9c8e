//! Explains why a pair does not apply: shows the likely place in the file and the first difference
//! there.

use std::collections::BTreeSet;
use std::ops::Range;

use super::closest::{Closest, find_closest};
use super::{MatchError, MatchPlace, Tier, clue};
use crate::text::edit;
use crate::text::sanitize::sanitize_tabbed;

// Of the matches of an ambiguous FIND.
const MAX_LISTED: usize = 20;
// Of the matches, with the line above each.
const MAX_SHOWN: usize = 4;
// Lines of context around the first difference.
const AROUND: usize = 3;
// In characters, per line of the file.
const WIDTH: usize = 160;
/// Maximum size in bytes of another file that is searched.
pub const MAX_OTHER: usize = 1 << 20;

/// A pair that does not apply, with its context.
#[derive(Debug, Clone, Copy)]
pub struct FailedPair<'a> {
    pub path: &'a str,
    /// Content of the file when the pair was applied.
    pub text: &'a str,
    /// Number of the pair in its action, from 1.
    pub number: usize,
    /// Number of pairs in the action.
    pub count: usize,
    pub find: &'a str,
    pub replace: &'a str,
    /// Paths and contents of other files in which FIND could match.
    pub others: &'a [(String, String)],
}

/// An error message and a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// One or more sanitized lines, lower case, without a full stop.
    pub message: String,
    /// How to correct the pair.
    pub hint: String,
}

/// Explains why a pair does not apply. Searches for the likely place if FIND has no match.
pub fn explain(case: &FailedPair<'_>, error: &MatchError) -> Explanation {
    let explanation = |message: String, hint: &str| Explanation {
        message,
        hint: hint.to_owned(),
    };
    let which = case.which();
    match error {
        MatchError::Blank if case.text.is_empty() => explanation(
            format!(
                "{which} is blank, and so is `{}`",
                sanitize_tabbed(case.path)
            ),
            "an empty file gets its content from CREATE",
        ),
        MatchError::Blank => explanation(
            format!("{which} is blank"),
            "FIND names the lines to change; to add lines, repeat a line next to them in FIND and in REPLACE",
        ),
        MatchError::Same => explanation(
            format!("{which} and its REPLACE are equal"),
            "leave the pair out, or write what should be there into REPLACE",
        ),
        MatchError::Ambiguous { places } => explanation(
            several(case, places),
            "repeat enough of the lines around the right place in FIND and REPLACE that only this place has them",
        ),
        MatchError::Absent => absent(case),
    }
}

/// Reports that a pair does not apply, without a reason. Much cheaper than [`explain`], because it
/// does not search for the likely place.
pub fn explain_shortly(case: &FailedPair<'_>) -> Explanation {
    Explanation {
        message: format!("{} does not fit", case.which()),
        hint: "correct the pairs before it first".to_owned(),
    }
}

impl FailedPair<'_> {
    fn which(&self) -> String {
        if self.count == 1 {
            "FIND".to_owned()
        } else {
            format!("FIND {} of {}", self.number, self.count)
        }
    }
}

/// Lists the matches of an ambiguous FIND, with the line above each to tell them apart.
fn several(case: &FailedPair<'_>, matches: &[MatchPlace]) -> String {
    let many = if matches.len() >= edit::max_hits(case.find.len()) {
        "at least "
    } else {
        ""
    };

    let numbers: Vec<String> = matches
        .iter()
        .take(MAX_LISTED)
        .map(|p| p.line.to_string())
        .collect();
    let more = if matches.len() > MAX_LISTED {
        format!(" and {} more", matches.len() - MAX_LISTED)
    } else {
        String::new()
    };

    let inside = if matches[0].tier == Tier::Inline {
        ", inside a line"
    } else {
        ""
    };

    let mut message = format!(
        "{} occurs in {many}{} places in `{}`{inside}: lines {}{more}",
        case.which(),
        matches.len(),
        sanitize_tabbed(case.path),
        numbers.join(", ")
    );
    for matched in matches.iter().take(MAX_SHOWN) {
        let line = &case.text[..matched.start];
        let above = line[..line.rfind('\n').unwrap_or(0)].lines().next_back();
        message += &match above {
            Some(above) if matched.line > 1 => {
                format!("\n  line {} is below `{}`", matched.line, cut(above, 0).0)
            }
            _ => format!("\n  line {} is the first", matched.line),
        };
    }

    message
}

/// Returns another file that has the text of FIND, and its line there.
fn elsewhere<'a>(case: &FailedPair<'a>) -> Option<(&'a str, usize)> {
    let others = case.others.iter().filter(|(name, _)| name != case.path);
    others
        .filter(|(_, text)| text.len() <= MAX_OTHER)
        .find_map(|(name, text)| Some((name.as_str(), at(text, case.find)?)))
}

fn absent(case: &FailedPair<'_>) -> Explanation {
    let mut lines = vec![format!(
        "{} is not in `{}`",
        case.which(),
        sanitize_tabbed(case.path)
    )];
    let mut hint = "copy the lines to change from the file as they are, including spaces";
    let existing = already(case);

    if let Some(line) = existing {
        lines.push(format!("the REPLACE is already there, at line {line}"));
        hint = "leave the pair out if it has been applied already";
    }

    let cured = clue::cures(case.find)
        .into_iter()
        .find_map(|(name, cure)| Some((name, at(case.text, &cure)?)));
    if let Some((name, line)) = cured {
        lines.push(format!(
            "FIND has {name}; without them it is at line {line}"
        ));
        hint = "write the lines into FIND exactly as they are in the file";
    } else if case.text.is_empty() {
        lines.push("the file is empty".to_owned());
        hint = "an empty file gets its content from CREATE";
    } else {
        let nowhere = existing
            .is_none()
            .then(|| vec!["no place in the file is like it".to_owned()]);
        lines.extend(nearest(case).or(nowhere).unwrap_or_default());
    }

    if let Some((name, line)) = elsewhere(case) {
        lines.push(format!(
            "the text is in `{}`, at line {line}",
            sanitize_tabbed(name)
        ));
        hint = "name the file that the text is in, if that is the one to change";
    }

    Explanation {
        message: lines.join("\n"),
        hint: hint.to_owned(),
    }
}

// A REPLACE that only removes lines of FIND can be found in the unedited file, which proves
// nothing.
fn already(case: &FailedPair<'_>) -> Option<usize> {
    let find_lines: BTreeSet<&str> = case.find.lines().map(str::trim).collect();
    if case
        .replace
        .lines()
        .all(|line| find_lines.contains(line.trim()) || line.trim().is_empty())
    {
        return None;
    }

    match edit::find_match(case.text, case.replace) {
        Ok(matched) if matched.tier != Tier::Inline => Some(matched.line),
        Err(MatchError::Ambiguous { places })
            if places[0].tier != Tier::Inline && case.replace.lines().count() > 1 =>
        {
            Some(places[0].line)
        }
        _ => None,
    }
}

fn at(text: &str, find: &str) -> Option<usize> {
    match edit::find_match(text, find) {
        Ok(matched) => Some(matched.line),
        Err(MatchError::Ambiguous { places }) => places.first().map(|p| p.line),
        Err(_) => None,
    }
}

fn nearest(case: &FailedPair<'_>) -> Option<Vec<String>> {
    let lines = |text| -> Vec<&str> { super::core(text).split('\n').collect() };
    let crlf = case.find.contains('\r');
    let bare = |line: &'_ str| -> usize {
        if crlf {
            line.len()
        } else {
            line.strip_suffix('\r').unwrap_or(line).len()
        }
    };

    let file: Vec<&str> = lines(case.text)
        .into_iter()
        .map(|line| &line[..bare(line)])
        .collect();
    let find_lines = lines(case.find);
    let candidate = find_closest(&file, &find_lines)?;
    let comparison = SideBySide {
        file: &file,
        find: &find_lines,
        closest: &candidate,
    };

    let equal = candidate
        .pairs
        .iter()
        .enumerate()
        .filter(|(f, t)| t.is_some_and(|t| find_lines[*f] == file[t]))
        .count();
    let (first, last) = (candidate.lines.start + 1, candidate.lines.end);
    let span = if first == last {
        format!("line {first}")
    } else {
        format!("lines {first} to {last}")
    };

    let share = if find_lines.len() > 1 {
        format!(
            ", {equal} of the {} lines of FIND are there",
            find_lines.len()
        )
    } else {
        String::new()
    };

    let mut out = vec![format!("the closest place is {span}{share}")];
    out.extend(comparison.difference());
    Some(out)
}

struct SideBySide<'a> {
    file: &'a [&'a str],
    find: &'a [&'a str],
    closest: &'a Closest,
}

impl SideBySide<'_> {
    /// Describes the first difference.
    fn difference(&self) -> Vec<String> {
        let mut next: Option<usize> = None;
        for (f, t) in self.closest.pairs.iter().enumerate() {
            match (*t, next) {
                (None, _) => {
                    let line = next.unwrap_or(self.closest.lines.start);
                    return self.render_excerpt(self.surplus(f), line, Some(f));
                }
                (Some(t), Some(expected)) if t > expected => {
                    return self.render_excerpt(self.left_out(expected..t, f), expected, None);
                }
                (Some(t), _) if self.find[f] != self.file[t] => {
                    let name = clue::name(self.find[f], self.file[t]);
                    let message = format!("the first difference is at line {}: {name}", t + 1);
                    return self.render_excerpt(message, t, Some(f));
                }
                (Some(t), _) => next = Some(t + 1),
            }
        }

        Vec::new()
    }

    /// Says that the file does not have a line of FIND.
    fn surplus(&self, find: usize) -> String {
        let (line, number) = (self.find[find], find + 1);
        if clue::is_elided(line) {
            format!(
                "line {number} of FIND stands for lines that are left out; FIND has to be complete"
            )
        } else if line.trim().is_empty() {
            format!("line {number} of FIND is blank; the file has no blank line there")
        } else {
            format!("line {number} of FIND is not there")
        }
    }

    /// Says that FIND does not have lines of the file above one of its own.
    fn left_out(&self, lines: Range<usize>, find: usize) -> String {
        let skipped = match lines.len() {
            1 => format!("line {}", lines.end),
            _ => format!("lines {} to {}", lines.start + 1, lines.end),
        };
        let is_blank = self.file[lines].iter().all(|line| line.trim().is_empty());
        let blank = if is_blank { ", blank in the file" } else { "" };
        format!(
            "FIND leaves out {skipped}{blank}, above its line {}",
            find + 1
        )
    }

    /// Returns a message and the file's lines around `line`, with the line of FIND under it.
    fn render_excerpt(&self, message: String, line: usize, find: Option<usize>) -> Vec<String> {
        let mut out = vec![message];
        let from = line
            .saturating_sub(AROUND)
            .max(self.closest.lines.start.min(line));
        let to = (line + AROUND + 1)
            .min(self.closest.lines.end.max(line + 1))
            .min(self.file.len());
        let width = to.to_string().len();

        for at in from..to {
            let changed = find
                .filter(|_| at == line)
                .map(|f| clue::common(self.find[f], self.file[at]));
            out.push(format!(
                "  file {:>width$} | {}",
                at + 1,
                cut(self.file[at], changed.unwrap_or(0)).0
            ));
            if let (Some(f), Some(common)) = (find, changed) {
                let (text, column) = cut(self.find[f], common);
                out.push(format!("  FIND {:>width$} | {text}", f + 1));
                out.push(format!("       {:width$} | {}^", "", column));
            }
        }

        out
    }
}

/// Returns the visible part of a line around a byte offset, and padding up to that offset.
fn cut(line: &str, at: usize) -> (String, String) {
    let skipped = line[..at].chars().count().saturating_sub(WIDTH / 2);
    let start = if skipped > 0 { "…" } else { "" };
    let text: String = line.chars().skip(skipped).take(WIDTH).collect();
    let end = if line.chars().count() > skipped + WIDTH {
        "…"
    } else {
        ""
    };

    let before: String = line[..at].chars().skip(skipped).collect();
    let padding = format!("{start}{}", sanitize_tabbed(&before))
        .chars()
        .map(|c| if c == '\t' { c } else { ' ' })
        .collect();
    (format!("{start}{}{end}", sanitize_tabbed(&text)), padding)
}
