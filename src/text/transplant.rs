//! Applies the change between two versions of a file to a third version of it.
//!
//! The third version is what is on disk: to git it is the same as the first, but it has lines, line
//! ends or keywords that a filter does not store. Lines of it that the change does not replace keep
//! their bytes.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::ops::Range;

use super::diff::{align, changed_numbers};
use super::keep_bytes::{Line, lines};

/// Where an insertion goes if the disk has lines of its own there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insertion {
    /// Behind them.
    BehindOwn,
    /// In front of them.
    BeforeOwn,
}

/// Returns `disk` with the change from `base` to `target`. `None` if the change replaces lines that
/// `disk` does not have as `base` does.
pub fn transplant_changes(
    base: &[u8],
    target: &[u8],
    disk: &[u8],
    insertion: Insertion,
) -> Option<Vec<u8>> {
    let [base, target, disk] = [base, target, disk].map(lines);
    let [base_keys, target_keys, disk_keys] = [&base, &target, &disk].map(|lines| keys(lines));
    let positions = map_positions(base.len(), &align(&base_keys, &disk_keys));

    let mut output = Vec::new();
    let mut next = 0;
    for (old, new) in changed_numbers(&base_keys, &target_keys) {
        let replaced = (positions.get(old.clone())?.iter().copied()).collect::<Option<Vec<_>>>()?;
        let start = match replaced.first() {
            Some(&first) => first,
            None => insertion_place(&positions, old.start, disk.len(), insertion)?,
        };
        if start < next {
            return None;
        }

        copy(&mut output, &disk[next..start]);
        let end = replaced.last().map_or(start, |last| last + 1);
        let written = target[new].iter().enumerate().map(|(at, line)| {
            // The line that is replaced, or the one in front, tells the line end.
            let like = replaced.get(at).or(replaced.last()).copied();
            let like = like.or(start.checked_sub(1)).unwrap_or(start);
            let base_like = base.get(old.start + at.min(old.len().saturating_sub(1)));
            let end = end_like(line.end, disk.get(like), base_like.or(base.last()));
            Line { end, ..*line }
        });
        let written: Vec<Line<'_>> = written.collect();

        copy(&mut output, &with_own_lines(&written, &disk, &replaced));
        next = end;
    }

    copy(&mut output, &disk[next..]);
    Some(output)
}

/// Returns lines that are written over those at `replaced`, with the own lines of the disk between
/// these, which keep their place in proportion.
fn with_own_lines<'a>(
    written: &[Line<'a>],
    disk: &[Line<'a>],
    replaced: &[usize],
) -> Vec<Line<'a>> {
    let [first, .., last] = *replaced else {
        return written.to_vec();
    };
    let mut lines = Vec::new();
    let mut copied = 0;
    for (at, own) in disk.iter().enumerate().take(last).skip(first) {
        let Err(passed) = replaced.binary_search(&at) else {
            continue;
        };
        let until = (passed * written.len()).div_ceil(replaced.len());
        lines.extend(&written[copied..until]);
        lines.push(*own);
        copied = until;
    }
    lines.extend(&written[copied..]);
    lines
}

/// Returns whether every line of `disk` that `base` does not have is in `target`, so that
/// writing `target` over `disk` loses nothing that only `disk` has.
pub fn keeps_own_lines(base: &[u8], target: &[u8], disk: &[u8]) -> bool {
    let [base, target, disk] = [base, target, disk].map(|text| keys(&lines(text)));
    let mut is_known = vec![false; disk.len()];
    for pairs in [align(&base, &disk), align(&target, &disk)] {
        pairs
            .into_iter()
            .flat_map(|(_, range)| range)
            .for_each(|at| is_known[at] = true);
    }
    is_known.into_iter().all(|each| each)
}

/// Returns where each line of the first version is on disk.
fn map_positions(length: usize, pairs: &[(Range<usize>, Range<usize>)]) -> Vec<Option<usize>> {
    let mut positions = vec![None; length];
    for (old, new) in pairs {
        for (at, position) in old.clone().zip(new.clone()) {
            positions[at] = Some(position);
        }
    }
    positions
}

/// Returns the line of the disk in front of which an insertion goes.
fn insertion_place(
    positions: &[Option<usize>],
    at: usize,
    length: usize,
    insertion: Insertion,
) -> Option<usize> {
    let behind_last = match at.checked_sub(1) {
        Some(last) => positions[last].map(|position| position + 1),
        None => Some(0),
    };
    let before_next = match positions.get(at) {
        Some(position) => *position,
        None => Some(length),
    };
    match insertion {
        Insertion::BehindOwn => before_next.or(behind_last),
        Insertion::BeforeOwn => behind_last.or(before_next),
    }
}

fn copy(output: &mut Vec<u8>, lines: &[Line<'_>]) {
    for line in lines {
        output.extend(line.text);
        output.extend(line.end);
    }
}

/// Returns numbers by which lines are compared: without the kind of their line end, and without
/// what git writes into `$Id$`.
fn keys(lines: &[Line<'_>]) -> Vec<u64> {
    let key = |line: &Line<'_>| {
        let mut hasher = DefaultHasher::new();
        without_line_ids(line.text).hash(&mut hasher);
        line.end.is_empty().hash(&mut hasher);
        hasher.finish()
    };
    lines.iter().map(key).collect()
}

/// Returns a text without what git writes into `$Id$`.
pub fn without_ids(text: &[u8]) -> Vec<u8> {
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines.flat_map(without_line_ids).collect()
}

/// Returns a line without the texts of its `$Id: ... $`.
fn without_line_ids(line: &[u8]) -> Vec<u8> {
    const START: &[u8] = b"$Id:";
    let mut remaining = line;
    let mut plain = Vec::with_capacity(line.len());
    while let Some(at) = remaining
        .windows(START.len())
        .position(|part| part == START)
    {
        let Some(end) = remaining[at + START.len()..]
            .iter()
            .position(|&byte| byte == b'$')
        else {
            break;
        };
        plain.extend(&remaining[..at]);
        plain.extend(b"$Id$");
        remaining = &remaining[at + START.len() + end + 1..];
    }
    plain.extend(remaining);
    plain
}

/// Returns the end of a new line: that of one on disk, if it differs there from the first version's.
fn end_like<'a>(end: &'a [u8], disk: Option<&Line<'a>>, base: Option<&Line<'_>>) -> &'a [u8] {
    match disk.map_or(&[][..], |line| line.end) {
        disk if end.is_empty() || disk.is_empty() => end,
        disk if base.is_some_and(|line| line.end == disk) => end,
        disk => disk,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check([base, target, disk]: [&str; 3], expected: Option<&str>) {
        let [base, target, disk] = [base, target, disk].map(str::as_bytes);
        let actual = transplant_changes(base, target, disk, Insertion::BehindOwn);
        let actual = actual.map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(actual.as_deref(), expected);
    }

    #[test]
    fn lines_that_only_the_disk_has_stay() {
        check(
            ["1\n2\n", "1\ntwo\n", "1\n#out\n2\n"],
            Some("1\n#out\ntwo\n"),
        );
        check(
            ["1\n2\n", "1\n2\n3\n", "1\n2\n#out\n"],
            Some("1\n2\n#out\n3\n"),
        );
        check(
            ["1\n2\n3\n", "1\n3\n", "1\n2\n#out\n3\n"],
            Some("1\n#out\n3\n"),
        );
        check(["1\n2\n", "0\n", "1\n#out\n2\n"], Some("0\n#out\n"));
        check(["", "1\n", "#out\n"], Some("#out\n1\n"));
        check(["1\n", "", "#out\n1\n"], Some("#out\n"));
    }

    #[test]
    fn a_line_that_is_another_one_on_disk_cannot_be_changed() {
        check(["n: null\nx\n", "n: 1\nx\n", "n: 5\nx\n"], None);
        check(
            ["n: null\nx\n", "n: null\ny\n", "n: 5\nx\n"],
            Some("n: 5\ny\n"),
        );
    }

    #[test]
    fn line_ends_stay_as_they_are_on_disk() {
        check(
            ["1\n2\n3\n", "1\n2\n4\n", "1\r\n2\n3\r\n"],
            Some("1\r\n2\n4\r\n"),
        );
        check(["1\n2\n", "1\n1b\n2\n", "1\r\n2\n"], Some("1\r\n1b\r\n2\n"));
        check(["1\r\n2\r\n", "1\r\n3\r\n", "1\n2\n"], Some("1\n3\n"));
        check(["1\n", "1\n2\n", "1\r\n"], Some("1\r\n2\r\n"));
    }

    #[test]
    fn the_text_of_an_id_does_not_matter() {
        check(
            ["$Id: 1 $ a\nb\n", "$Id: 2 $ a\nc\n", "$Id$ a\nb\n"],
            Some("$Id$ a\nc\n"),
        );
    }

    #[test]
    fn an_insertion_goes_to_either_side_of_own_lines() {
        let at = |insertion| {
            transplant_changes(b"1\n2\n", b"1\nx\n2\n", b"1\n#\n2\n", insertion).unwrap()
        };
        assert_eq!(at(Insertion::BehindOwn), b"1\n#\nx\n2\n");
        assert_eq!(at(Insertion::BeforeOwn), b"1\nx\n#\n2\n");
    }

    #[test]
    fn a_target_that_has_the_lines_of_the_disk_keeps_them() {
        assert!(keeps_own_lines(b"1\n", b"1\n#a\n#b\n", b"1\n#a\n"));
        assert!(!keeps_own_lines(b"1\n", b"1\n#b\n", b"1\n#a\n"));
    }
}
