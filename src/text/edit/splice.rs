//! The text with one place replaced: literal, with the line ends that the place has.

use super::{MatchPlace, Tier, core};

/// Returns the text with the place, which FIND selected, replaced.
pub(super) fn splice(text: &str, find: &str, replace: &str, place: MatchPlace) -> String {
    let (before, after) = (&text[..place.start], &text[place.end..]);
    let hit = &text[place.start..place.end];
    let ended = place.tier != Tier::Inline && hit.ends_with('\n');
    if replace.is_empty() && place.tier != Tier::Inline && !ended {
        return without_line_end(before).to_owned();
    }

    // With a CR in the pair the plan says byte for byte what it wants.
    let literal = find.contains('\r') || replace.contains('\r');
    let new = match literal {
        // The CR in front of the final line end that the file does not have.
        true if !ended && !hit.ends_with('\r') && place.tier != Tier::Inline => {
            core(replace).trim_end_matches('\r').to_owned()
        }
        true => core(replace).to_owned(),
        false => with_ends(text, (find, replace), place),
    };

    let end = match ended && !replace.is_empty() {
        true if !literal && hit.ends_with("\r\n") => "\r\n",
        true => "\n",
        false => "",
    };
    [before, &new, end, after].concat()
}

/// Returns the text without a line end at its end: what is left when the last lines of a text
/// that has no final line end are deleted.
fn without_line_end(text: &str) -> &str {
    text.strip_suffix('\n')
        .map_or(text, |t| t.strip_suffix('\r').unwrap_or(t))
}

/// Returns REPLACE without its final line end, its lines ended as the file's lines are: those that
/// it shares with the start or end of FIND keep their own, the others take the most frequent one.
fn with_ends(text: &str, pair: (&str, &str), place: MatchPlace) -> String {
    let hit = &text[place.start..place.end];
    let new: Vec<&str> = core(pair.1).split('\n').collect();
    let crlf_inside = hit.contains("\r\n");
    if new.len() == 1
        || !(crlf_inside || (!hit.contains('\n') && end_nearby(text, place) == "\r\n"))
    {
        return core(pair.1).to_owned();
    }

    let old: Vec<&str> = core(pair.0).split('\n').collect();
    let ends: Vec<&str> = hit.split_inclusive('\n').map(end_of).collect();
    let common = prefix(old.iter(), new.iter());
    let rest = old.len().min(new.len()) - common;
    let tail = prefix(old.iter().rev().take(rest), new.iter().rev().take(rest));
    let usual = if crlf_inside {
        most_frequent(&ends)
    } else {
        "\r\n"
    };

    let mut out = String::with_capacity(pair.1.len() + new.len());
    for (at, line) in new.iter().enumerate() {
        let twin = if at < common {
            Some(at)
        } else {
            (at + tail >= new.len()).then(|| at + old.len() - new.len())
        };

        out.push_str(line);
        if at + 1 < new.len() {
            out.push_str(
                twin.and_then(|t| ends.get(t))
                    .copied()
                    .filter(|end| !end.is_empty())
                    .unwrap_or(usual),
            );
        }
    }

    out
}

/// Returns how many elements two sequences share at their start.
fn prefix<'a>(a: impl Iterator<Item = &'a &'a str>, b: impl Iterator<Item = &'a &'a str>) -> usize {
    a.zip(b).take_while(|(x, y)| x == y).count()
}

/// Returns the line end of a line that still has it.
fn end_of(line: &str) -> &'static str {
    if line.ends_with("\r\n") {
        "\r\n"
    } else if line.ends_with('\n') {
        "\n"
    } else {
        ""
    }
}

/// Returns the line end that more of the lines have; of both as often, CRLF.
fn most_frequent(ends: &[&'static str]) -> &'static str {
    let count = |end: &str| ends.iter().filter(|&&e| e == end).count();
    if count("\r\n") >= count("\n") {
        "\r\n"
    } else {
        "\n"
    }
}

/// Returns the line end of the line that a place ends in; for a last line without one, that of the
/// line above.
fn end_nearby(text: &str, place: MatchPlace) -> &'static str {
    let at = text[place.end..]
        .find('\n')
        .map(|n| place.end + n)
        .or_else(|| text[..place.start].rfind('\n'));
    match at {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}
