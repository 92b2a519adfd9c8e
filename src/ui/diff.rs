//! Renders the diff of a file as styled lines, for the review and `teddy diff`.

use super::style::{StyledLine, StyledSpan, Tone};
use crate::plan::action::edit::Pair;
use crate::query::view::turn_page::ChangedFile;
use crate::text::diff::{self, Counts};
use crate::text::encoding::{DisplayText, display_text};

/// Wider lines are cut or get gaps, because wrapping them would only cost time.
pub const MAX_COLUMNS: usize = 2000;

/// Said of a changed file whose versions look the same: a key is taken out of both, or only the
/// encoding differs.
pub const NOT_SHOWN: &str = "what differs is not shown here";

/// Columns that are shown before a changed part, and at least of it.
const LEAD: usize = 12;

/// Columns on both sides of a changed part in a line with gaps.
const AROUND: usize = 40;

/// Two versions of a file. `None` if it does not exist.
#[derive(Debug, Clone, Copy)]
pub struct FileVersions<'a> {
    pub path: &'a str,
    /// Contents before the change.
    pub before: Option<&'a [u8]>,
    /// Contents after the change.
    pub after: Option<&'a [u8]>,
}

/// Returns the unified diff of a file, with headers.
pub fn unified(change: &FileVersions<'_>) -> Vec<StyledLine> {
    let mut lines = headers(change, "").to_vec();
    lines.extend(body(change));
    lines
}

/// Returns the two headers of a diff. `note` follows the second one.
pub fn headers(change: &FileVersions<'_>, note: &str) -> [StyledLine; 2] {
    let name = |side: &str, version: Option<&[u8]>| match version {
        Some(_) => format!("{side}/{}", change.path),
        None => "/dev/null".to_owned(),
    };
    [
        format!("--- {}", name("a", change.before)),
        format!("+++ {}{note}", name("b", change.after)),
    ]
    .map(|header| StyledLine::of(Tone::Strong, &header))
}

/// Says which kind a file had and has, as after a change of its mode. `None` if it is the same, and
/// for an added or deleted file that is a plain one.
pub fn kind_note(file: &ChangedFile) -> Option<StyledLine> {
    let text = match file.kinds() {
        Some((old, new)) => format!("({old} became {new})"),
        None => format!("({})", file.special_kind()?),
    };
    Some(StyledLine::of(Tone::Faint, &text))
}

pub fn is_hunk_header(line: &StyledLine) -> bool {
    line.text().starts_with("@@ ")
}

#[derive(Debug, Clone, Default)]
pub struct RenderedDifference {
    /// Added and removed lines. Zero for binary files.
    pub counts: Counts,
    /// The first lines of the diff, each with its number in the new version, from 1, if it has one.
    pub rows: Vec<(StyledLine, Option<usize>)>,
    /// Number of lines omitted at the end.
    pub left_out: usize,
}

impl RenderedDifference {
    pub fn note(text: &str) -> RenderedDifference {
        RenderedDifference {
            rows: vec![(StyledLine::of(Tone::Faint, text), None)],
            ..RenderedDifference::default()
        }
    }
}

/// Returns the hunks without headers. If all lines end in CRLF, a note says so and the lines show
/// no `\r`.
pub fn body(change: &FileVersions<'_>) -> Vec<StyledLine> {
    let rows = render(change, usize::MAX).rows.into_iter();
    rows.map(|(line, _)| line).collect()
}

fn encoding_notes(before: Option<&str>, after: Option<&str>) -> Vec<String> {
    if before == after {
        return before.map(str::to_owned).into_iter().collect();
    }
    let name = |note: Option<&str>| note.unwrap_or("the encoding is UTF-8").to_owned();
    vec![
        format!("before: {}", name(before)),
        format!("after: {}", name(after)),
    ]
}

/// Like [`body`], up to `most` lines.
pub fn render(change: &FileVersions<'_>, most: usize) -> RenderedDifference {
    if change.before == change.after {
        return RenderedDifference::note("no difference");
    }

    let (Some(old), Some(new)) = (text(change.before), text(change.after)) else {
        return RenderedDifference::note("binary content differs");
    };
    let (before, after) = (&*old.text, &*new.text);
    let mut notes = match (change.before, change.after) {
        (None, _) => encoding_notes(new.note, new.note),
        (_, None) => encoding_notes(old.note, old.note),
        _ => encoding_notes(old.note, new.note),
    };
    // `is_crlf` is also true for text without line ends.
    let crlf = (before.contains('\r') || after.contains('\r')) && is_crlf(before) && is_crlf(after);
    let mut rendered = match crlf {
        false => of_texts(before, after, most),
        true => {
            let [before, after] = [before, after].map(|text| text.replace("\r\n", "\n"));
            notes.push("line ends are CRLF".to_owned());
            of_texts(&before, &after, most)
        }
    };
    for note in notes.iter().rev() {
        let line = StyledLine::of(Tone::Faint, &format!("({note})"));
        rendered.rows.insert(0, (line, None));
    }
    rendered
}

fn of_texts(before: &str, after: &str, most: usize) -> RenderedDifference {
    let difference = diff::difference(before, after, most);
    RenderedDifference {
        counts: difference.counts,
        rows: difference.hunks.iter().flat_map(hunk).collect(),
        left_out: difference.left_out,
    }
}

/// Returns the pair of an EDIT as a diff without line numbers.
pub fn replaced(pair: &Pair) -> Vec<StyledLine> {
    let change = FileVersions {
        path: "",
        before: Some(pair.find.as_bytes()),
        after: Some(pair.replace.as_bytes()),
    };
    let mut lines = vec![StyledLine::of(Tone::Faint, "FIND → REPLACE")];
    let mut hunks = body(&change).into_iter();

    // Line numbers within FIND mean nothing. Later hunk headers only mark the gap.
    lines.extend(hunks.next().filter(|line| !is_hunk_header(line)));
    lines.extend(hunks.map(|line| match is_hunk_header(&line) {
        true => StyledLine::of(Tone::Faint, "⋯"),
        false => line,
    }));
    lines
}

/// Returns whether every line ends in CRLF. True for text without line ends.
fn is_crlf(text: &str) -> bool {
    let pairs = text.matches("\r\n").count();
    pairs == text.matches('\n').count() && pairs == text.matches('\r').count()
}

/// Counts added and removed lines. Zero for binary files.
pub fn counts(change: &FileVersions<'_>) -> Counts {
    let (Some(before), Some(after)) = (text(change.before), text(change.after)) else {
        return Counts::default();
    };
    diff::counts(&before.text, &after.text)
}

/// Returns counts as `+3 -1`. Omits a side that is zero; a change without lines is `±0`.
pub fn counted(counts: Counts) -> StyledLine {
    let added = StyledLine::of(Tone::Added, &format!("+{}", counts.added));
    let removed = format!("-{}", counts.removed);
    match (counts.added, counts.removed) {
        (0, 0) => StyledLine::of(Tone::Faint, "±0"),
        (_, 0) => added,
        (0, _) => StyledLine::of(Tone::Removed, &removed),
        _ => added.with(Tone::Plain, " ").with(Tone::Removed, &removed),
    }
}

fn is_changed_part(span: &StyledSpan) -> bool {
    matches!(span.tone, Tone::AddedPart | Tone::RemovedPart)
}

/// Cuts a line to the width. Omits text before the first changed part if the end of the line would
/// otherwise be cut off with that part: two such lines would look the same.
pub fn cut_to_change(line: StyledLine, width: usize) -> StyledLine {
    if line.width() <= width {
        return line;
    }
    let spans = line.spans();
    let at = spans.iter().position(is_changed_part);
    let start = at.map_or(0, |at| spans[..at].iter().map(StyledSpan::width).sum());
    let end = start + at.map_or(0, |at| spans[at].width().min(LEAD));
    if end < width || width <= 2 * LEAD {
        return line.cut(width);
    }

    let sign = line.text().chars().take(1).collect::<String>();
    StyledLine::of(spans[0].tone, &sign)
        .with(Tone::Faint, "…")
        .append(line.skip(start - LEAD))
        .cut(width)
}

/// Returns a wide line with gaps instead of what is the same on both sides. A line that is added or
/// removed as a whole stays whole.
pub fn with_gaps(line: StyledLine) -> StyledLine {
    let spans = line.spans();
    let is_changed = |span: &StyledSpan| matches!(span.tone, Tone::Added | Tone::Removed);
    if line.width() <= MAX_COLUMNS || spans.iter().all(is_changed) {
        return line;
    }
    if !spans.iter().any(is_changed_part) {
        return line.cut(MAX_COLUMNS);
    }

    let last = spans.len() - 1;
    let pieces = spans.iter().enumerate().map(|(at, span)| {
        let piece = StyledLine::of(span.tone, span.text());
        if is_changed_part(span) || span.width() <= 2 * AROUND {
            return piece;
        }
        let end = || piece.clone().skip(span.width() - AROUND);
        match at {
            // After the sign.
            1 => StyledLine::of(Tone::Faint, "…").append(end()),
            at if at == last => piece.cut(AROUND + 1),
            _ => piece.clone().cut(AROUND + 1).append(end()),
        }
    });
    pieces.fold(StyledLine::default(), StyledLine::append)
}

/// `None` if the contents are binary. A missing file is empty text.
fn text(bytes: Option<&[u8]>) -> Option<DisplayText<'_>> {
    display_text(bytes.unwrap_or_default())
}

/// Returns the lines of a hunk, each with its number in the new version.
fn hunk(hunk: &diff::Hunk) -> Vec<(StyledLine, Option<usize>)> {
    let header = diff::hunk_header(&hunk.old, &hunk.new);
    let mut lines = vec![(StyledLine::of(Tone::Accent, &header), None)];
    for line in &hunk.lines {
        lines.push((rendered(line), line.new));
        if line.unended {
            // As git does.
            let note = StyledLine::of(Tone::Faint, "\\ No newline at end of file");
            lines.push((note, None));
        }
    }
    lines
}

fn rendered(line: &diff::DiffLine) -> StyledLine {
    let (sign, tone, part_tone) = match line.change {
        diff::LineChange::Kept => (" ", Tone::Plain, Tone::Plain),
        diff::LineChange::Removed => ("-", Tone::Removed, Tone::RemovedPart),
        diff::LineChange::Added => ("+", Tone::Added, Tone::AddedPart),
    };
    let piece = |line: StyledLine, (differs, text): &(bool, String)| {
        line.with(if *differs { part_tone } else { tone }, text)
    };
    line.pieces.iter().fold(StyledLine::of(tone, sign), piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: Option<&str>, after: Option<&str>, expected: &str) {
        let change = FileVersions {
            path: "a.txt",
            before: before.map(str::as_bytes),
            after: after.map(str::as_bytes),
        };
        let lines: Vec<String> = unified(&change).iter().map(StyledLine::text).collect();
        assert_eq!(lines.join("\n"), expected);
    }

    #[test]
    fn a_new_file_is_all_added() {
        check(
            None,
            Some("a\nb\n"),
            "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,2 @@\n+a\n+b",
        );
    }

    #[test]
    fn a_lost_final_newline_is_said() {
        let expected =
            "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file";
        check(Some("a\n"), Some("a"), expected);
    }

    #[test]
    fn a_carriage_return_is_seen() {
        let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+a\\u{d}";
        check(Some("a\n"), Some("a\r\n"), expected);
    }

    #[test]
    fn line_ends_that_are_all_crlf_are_said_once() {
        check(
            None,
            Some("a\r\n"),
            "--- /dev/null\n+++ b/a.txt\n(line ends are CRLF)\n@@ -0,0 +1 @@\n+a",
        );
        check(
            None,
            Some("a\r\nb\n"),
            "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,2 @@\n+a\\u{d}\n+b",
        );
    }

    #[test]
    fn binary_content_is_not_shown() {
        check(
            Some("a\0b"),
            Some("c"),
            "--- a/a.txt\n+++ b/a.txt\nbinary content differs",
        );
    }

    #[test]
    fn a_file_that_is_not_utf_8_is_shown_with_its_encoding() {
        let show = |before: &[u8], after: &[u8]| {
            let change = FileVersions {
                path: "a",
                before: Some(before),
                after: Some(after),
            };
            let lines: Vec<String> = body(&change).iter().map(StyledLine::text).collect();
            lines.join("\n")
        };
        assert_eq!(
            show(b"caf\xe9\na\n", "caf\u{fffd}\nb\n".as_bytes()),
            "(before: the encoding is not UTF-8: bytes outside of it are shown as \\x..)\n\
             (after: the encoding is UTF-8)\n\
             @@ -1,2 +1,2 @@\n-caf\\xe9\n-a\n+caf\u{fffd}\n+b"
        );
        assert_eq!(
            show(b"\xff\xfea\0\n\0", b"\xff\xfeb\0\n\0"),
            "(the encoding is UTF-16)\n@@ -1 +1 @@\n-a\n+b"
        );
    }

    #[test]
    fn counts_leave_out_what_is_nothing() {
        let line = |added, removed| counted(Counts { added, removed }).text();
        assert_eq!(
            [line(3, 1), line(3, 0), line(0, 1), line(0, 0)],
            ["+3 -1", "+3", "-1", "±0"]
        );
    }
}
