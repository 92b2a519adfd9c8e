//! Replaces a match. New lines get the line ends of the replaced ones.

use super::{MatchPlace, Tier, core};

pub(super) fn splice_match(text: &str, find: &str, replace: &str, matched: MatchPlace) -> String {
    let (before, after) = (&text[..matched.start], &text[matched.end..]);
    let hit = &text[matched.start..matched.end];
    let ended = matched.tier != Tier::Inline && hit.ends_with('\n');
    if replace.is_empty() && matched.tier != Tier::Inline && !ended {
        return without_line_end(before).to_owned();
    }

    // A pair with a CR is meant byte for byte.
    let literal = find.contains('\r') || replace.contains('\r');
    let new = match literal {
        // The file has no final line end, so its CR is dropped as well.
        true if !ended && !hit.ends_with('\r') && matched.tier != Tier::Inline => {
            core(replace).trim_end_matches('\r').to_owned()
        }
        true => core(replace).to_owned(),
        false => with_ends(text, (find, replace), matched),
    };

    let end = match ended && !replace.is_empty() {
        true if !literal && hit.ends_with("\r\n") => "\r\n",
        true => "\n",
        false => "",
    };
    [before, &new, end, after].concat()
}

// For a deletion of the last lines of a text without a final line end.
fn without_line_end(text: &str) -> &str {
    text.strip_suffix('\n')
        .map_or(text, |t| t.strip_suffix('\r').unwrap_or(t))
}

/// Returns REPLACE with the line ends of the file. Lines that REPLACE shares with the start or end
/// of FIND keep theirs; the others get the most frequent one.
fn with_ends(text: &str, pair: (&str, &str), matched: MatchPlace) -> String {
    let hit = &text[matched.start..matched.end];
    let new: Vec<&str> = core(pair.1).split('\n').collect();
    let crlf_inside = hit.contains("\r\n");
    if new.len() == 1
        || !(crlf_inside || (!hit.contains('\n') && end_nearby(text, matched) == "\r\n"))
    {
        return core(pair.1).to_owned();
    }

    let old: Vec<&str> = core(pair.0).split('\n').collect();
    let ends: Vec<&str> = hit.split_inclusive('\n').map(line_end_of).collect();
    let common = common_prefix(old.iter(), new.iter());
    let max_tail = old.len().min(new.len()) - common;
    let tail = common_prefix(
        old.iter().rev().take(max_tail),
        new.iter().rev().take(max_tail),
    );
    let usual = if crlf_inside {
        most_frequent(&ends)
    } else {
        "\r\n"
    };

    let mut out = String::with_capacity(pair.1.len() + new.len());
    for (at, line) in new.iter().enumerate() {
        let old_line = if at < common {
            Some(at)
        } else {
            (at + tail >= new.len()).then(|| at + old.len() - new.len())
        };

        out.push_str(line);
        if at + 1 < new.len() {
            out.push_str(
                old_line
                    .and_then(|t| ends.get(t))
                    .copied()
                    .filter(|end| !end.is_empty())
                    .unwrap_or(usual),
            );
        }
    }

    out
}

fn common_prefix<'a>(
    a: impl Iterator<Item = &'a &'a str>,
    b: impl Iterator<Item = &'a &'a str>,
) -> usize {
    a.zip(b).take_while(|(x, y)| x == y).count()
}

fn line_end_of(line: &str) -> &'static str {
    if line.ends_with("\r\n") {
        "\r\n"
    } else if line.ends_with('\n') {
        "\n"
    } else {
        ""
    }
}

// CRLF on a tie.
fn most_frequent(ends: &[&'static str]) -> &'static str {
    let count = |end: &str| ends.iter().filter(|&&e| e == end).count();
    if count("\r\n") >= count("\n") {
        "\r\n"
    } else {
        "\n"
    }
}

/// Returns the line end of the line in which the match ends, or that of the line above if it has
/// none.
fn end_nearby(text: &str, matched: MatchPlace) -> &'static str {
    let at = text[matched.end..]
        .find('\n')
        .map(|n| matched.end + n)
        .or_else(|| text[..matched.start].rfind('\n'));
    match at {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}
