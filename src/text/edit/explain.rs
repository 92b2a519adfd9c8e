//! The words for a pair that does not apply: where the text probably is, and what is different
//! there.

use std::collections::BTreeSet;

use super::closest::{Closest, closest};
use super::{MatchError, MatchPlace, Tier, clue, find};
use crate::text::visible::visible_tabbed;

/// The places of an ambiguous FIND that are listed.
const MAX_LISTED: usize = 20;
/// The places of an ambiguous FIND whose surroundings are shown.
const MAX_SHOWN: usize = 4;
/// The lines that are shown on either side of the first difference.
const AROUND: usize = 3;
/// The characters that are shown of a line.
const WIDTH: usize = 160;
/// The size up to which another file is searched, in bytes.
pub const MAX_OTHER: usize = 1 << 20;

/// A pair that did not apply, and what its message may look at.
#[derive(Debug, Clone, Copy)]
pub struct FailedPair<'a> {
    /// The file's name.
    pub path: &'a str,
    /// The file at that moment.
    pub text: &'a str,
    /// Which pair of the edit, from 1.
    pub number: usize,
    /// How many pairs the edit has.
    pub count: usize,
    /// The FIND.
    pub find: &'a str,
    /// Its REPLACE.
    pub replace: &'a str,
    /// Other files in which the text may be instead, with their names.
    pub others: &'a [(String, String)],
}

/// What is wrong, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// One or more lines, lower case, without a full stop, fit for a screen.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// Says why a pair did not apply, with the file's real lines where that helps.
pub fn explain(case: &FailedPair<'_>, error: &MatchError) -> Explanation {
    let said = |message: String, hint: &str| Explanation {
        message,
        hint: hint.to_owned(),
    };
    let which = case.which();
    match error {
        MatchError::Blank if case.text.is_empty() => said(
            format!(
                "{which} is blank, and so is `{}`",
                visible_tabbed(case.path)
            ),
            "an empty file gets its content from CREATE",
        ),
        MatchError::Blank => said(
            format!("{which} is blank"),
            "FIND names the lines to change; to add lines, repeat a line next to them in FIND and in REPLACE",
        ),
        MatchError::Same => said(
            format!("{which} and its REPLACE are equal"),
            "leave the pair out, or write what should be there into REPLACE",
        ),
        MatchError::Ambiguous { places } => said(
            several(case, places),
            "repeat enough of the lines around the right place in FIND and REPLACE that only this place has them",
        ),
        MatchError::Absent => absent(case),
    }
}

/// Says that a pair did not apply, and not why: looking for the place that was meant takes many
/// times as long as to find that it is not there.
pub fn explain_shortly(case: &FailedPair<'_>) -> Explanation {
    Explanation {
        message: format!("{} does not fit", case.which()),
        hint: "correct the pairs before it first".to_owned(),
    }
}

impl FailedPair<'_> {
    /// Returns the name of the pair: `FIND 2 of 3`.
    fn which(&self) -> String {
        if self.count == 1 {
            "FIND".to_owned()
        } else {
            format!("FIND {} of {}", self.number, self.count)
        }
    }
}

/// Lists the places of an ambiguous FIND, with the line above each, which tells them apart.
fn several(case: &FailedPair<'_>, places: &[MatchPlace]) -> String {
    let many = if places.len() >= find::max_hits(case.find.len()) {
        "at least "
    } else {
        ""
    };

    let numbers: Vec<String> = places
        .iter()
        .take(MAX_LISTED)
        .map(|p| p.line.to_string())
        .collect();
    let more = if places.len() > MAX_LISTED {
        format!(" and {} more", places.len() - MAX_LISTED)
    } else {
        String::new()
    };

    let inside = if places[0].tier == Tier::Inline {
        ", inside a line"
    } else {
        ""
    };

    let mut message = format!(
        "{} occurs in {many}{} places in `{}`{inside}: lines {}{more}",
        case.which(),
        places.len(),
        visible_tabbed(case.path),
        numbers.join(", ")
    );
    for place in places.iter().take(MAX_SHOWN) {
        let line = &case.text[..place.start];
        let above = line[..line.rfind('\n').unwrap_or(0)].lines().next_back();
        message += &match above {
            Some(above) if place.line > 1 => {
                format!("\n  line {} is below `{}`", place.line, cut(above, 0).0)
            }
            _ => format!("\n  line {} is the first", place.line),
        };
    }

    message
}

/// Says where the text of a FIND probably is that is not in the file.
fn absent(case: &FailedPair<'_>) -> Explanation {
    let mut lines = vec![format!(
        "{} is not in `{}`",
        case.which(),
        visible_tabbed(case.path)
    )];
    let mut hint = "copy the lines to change from the file as they are, including spaces";
    let there = already(case);

    if let Some(line) = there {
        lines.push(format!("the REPLACE is already there, at line {line}"));
        hint = "leave the pair out if it has been applied already";
    }

    let cured = clue::cures(case.find)
        .into_iter()
        .find_map(|(name, cure)| Some((name, at(case.text, &cure)?)));
    if let Some((name, line)) = cured {
        lines.push(format!(
            "FIND has {name}; without them it stands at line {line}"
        ));
        hint = "write the lines into FIND exactly as they are in the file";
    } else if case.text.is_empty() {
        lines.push("the file is empty".to_owned());
        hint = "an empty file gets its content from CREATE";
    } else {
        let nowhere = there
            .is_none()
            .then(|| vec!["no place in the file is like it".to_owned()]);
        lines.extend(nearest(case).or(nowhere).unwrap_or_default());
    }

    let elsewhere = case
        .others
        .iter()
        .filter(|(_, text)| text.len() <= MAX_OTHER);
    if let Some((name, line)) = elsewhere
        .filter(|(name, _)| name != case.path)
        .find_map(|(name, text)| Some((name, at(text, case.find)?)))
    {
        lines.push(format!(
            "the text is in `{}`, at line {line}",
            visible_tabbed(name)
        ));
        hint = "name the file that the text is in, if that is the one to change";
    }

    Explanation {
        message: lines.join("\n"),
        hint: hint.to_owned(),
    }
}

/// Returns the line at which the REPLACE stands as whole lines. A REPLACE that only leaves lines of
/// FIND out stands there before the edit as well, which says nothing.
fn already(case: &FailedPair<'_>) -> Option<usize> {
    let wanted: BTreeSet<&str> = case.find.lines().map(str::trim).collect();
    if case
        .replace
        .lines()
        .all(|line| wanted.contains(line.trim()) || line.trim().is_empty())
    {
        return None;
    }

    match find::find(case.text, case.replace) {
        Ok(place) if place.tier != Tier::Inline => Some(place.line),
        Err(MatchError::Ambiguous { places })
            if places[0].tier != Tier::Inline && case.replace.lines().count() > 1 =>
        {
            Some(places[0].line)
        }
        _ => None,
    }
}

/// Returns the first line at which a FIND stands.
fn at(text: &str, find: &str) -> Option<usize> {
    match find::find(text, find) {
        Ok(place) => Some(place.line),
        Err(MatchError::Ambiguous { places }) => places.first().map(|p| p.line),
        Err(_) => None,
    }
}

/// Shows the closest place, if there is one, and its first difference.
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
    let wanted = lines(case.find);
    let place = closest(&file, &wanted)?;
    let view = SideBySide {
        file: &file,
        find: &wanted,
        place: &place,
    };

    let equal = place
        .pairs
        .iter()
        .enumerate()
        .filter(|(f, t)| t.is_some_and(|t| wanted[*f] == file[t]))
        .count();
    let (first, last) = (place.lines.start + 1, place.lines.end);
    let span = if first == last {
        format!("line {first}")
    } else {
        format!("lines {first} to {last}")
    };

    let share = if wanted.len() > 1 {
        format!(", {equal} of the {} lines of FIND are there", wanted.len())
    } else {
        String::new()
    };

    let mut out = vec![format!("the closest place is {span}{share}")];
    out.extend(view.difference());
    Some(out)
}

/// The closest place of a FIND, side by side with it.
struct SideBySide<'a> {
    /// The lines of the file.
    file: &'a [&'a str],
    /// The lines of FIND.
    find: &'a [&'a str],
    /// Which belongs to which.
    place: &'a Closest,
}

/// The first difference of FIND from its closest place.
enum FirstDifference {
    /// Both have the line, and it differs: in FIND, in the file.
    Changed(usize, usize),
    /// The file has lines that FIND leaves out: the first of them, how many, the line of FIND below
    /// them.
    LeftOut(usize, usize, usize),
    /// FIND has a line that the file does not have above this one.
    Surplus(usize, usize),
}

impl SideBySide<'_> {
    /// Names the first difference and shows the lines around it.
    fn difference(&self) -> Vec<String> {
        match self.first() {
            Some(FirstDifference::Changed(f, t)) => {
                let name = clue::name(self.find[f], self.file[t]);
                self.shown(
                    format!("the first difference is at line {}: {name}", t + 1),
                    t,
                    Some(f),
                )
            }
            Some(FirstDifference::LeftOut(t, many, f)) => {
                let what = if many == 1 {
                    format!("line {}", t + 1)
                } else {
                    format!("lines {} to {}", t + 1, t + many)
                };

                let blank = if self.file[t..t + many].iter().all(|l| l.trim().is_empty()) {
                    ", blank in the file"
                } else {
                    ""
                };
                self.shown(
                    format!("FIND leaves out {what}{blank}, above its line {}", f + 1),
                    t,
                    None,
                )
            }
            Some(FirstDifference::Surplus(f, t)) => {
                let line = self.find[f];
                let said = if clue::is_elided(line) {
                    format!(
                        "line {} of FIND stands for lines that are left out; FIND has to be complete",
                        f + 1
                    )
                } else if line.trim().is_empty() {
                    format!(
                        "line {} of FIND is blank; the file has no blank line there",
                        f + 1
                    )
                } else {
                    format!("line {} of FIND is not there", f + 1)
                };
                self.shown(said, t, Some(f))
            }
            None => Vec::new(),
        }
    }

    /// Returns the first difference.
    fn first(&self) -> Option<FirstDifference> {
        let mut next: Option<usize> = None;
        for (f, t) in self.place.pairs.iter().enumerate() {
            match (*t, next) {
                (None, _) => {
                    return Some(FirstDifference::Surplus(
                        f,
                        next.unwrap_or(self.place.lines.start),
                    ));
                }
                (Some(t), Some(expected)) if t > expected => {
                    return Some(FirstDifference::LeftOut(expected, t - expected, f));
                }
                (Some(t), _) if self.find[f] != self.file[t] => {
                    return Some(FirstDifference::Changed(f, t));
                }
                (Some(t), _) => next = Some(t + 1),
            }
        }

        None
    }

    /// Returns a sentence, the lines of the file around one, and below that line the line of FIND.
    fn shown(&self, said: String, line: usize, find: Option<usize>) -> Vec<String> {
        let mut out = vec![said];
        let from = line
            .saturating_sub(AROUND)
            .max(self.place.lines.start.min(line));
        let to = (line + AROUND + 1)
            .min(self.place.lines.end.max(line + 1))
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

/// Returns the part of a line around a byte that is shown, and what fills the columns before that
/// byte.
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
    let fill = format!("{start}{}", visible_tabbed(&before))
        .chars()
        .map(|c| if c == '\t' { c } else { ' ' })
        .collect();
    (format!("{start}{}{end}", visible_tabbed(&text)), fill)
}
