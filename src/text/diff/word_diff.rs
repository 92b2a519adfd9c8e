//! Marks the differing words within changed lines.

use std::ops::Range;
use std::time::Instant;

use similar::{DiffOp, DiffTag, DiffableStr as _};

use super::steps::{StepSearch, edit_script};

// Minimum similarity, from 0 to 1, for marking words.
const MIN_SIMILARITY: f32 = 0.5;

/// Pieces of a line. `true` marks a difference.
pub(super) type LinePieces<'t> = Vec<(bool, &'t str)>;

struct WordPieces<'t> {
    lines: &'t [&'t str],
    tokens: Vec<&'t str>,
    /// For each word, its line and its range in that line.
    positions: Vec<(usize, Range<usize>)>,
    pieces: Vec<LinePieces<'t>>,
}

/// Splits the lines on both sides into pieces. Leaves dissimilar lines unmarked, because almost
/// everything would be marked.
pub(super) fn mark_words<'t>(
    old: &'t [&'t str],
    new: &'t [&'t str],
    deadline: Option<Instant>,
) -> [Vec<LinePieces<'t>>; 2] {
    let unmarked = |lines: &[&'t str]| lines.iter().map(|&line| vec![(false, line)]).collect();
    if similarity(old.len().min(new.len()), (old.len(), new.len())) < MIN_SIMILARITY {
        return [unmarked(old), unmarked(new)];
    }

    let (mut old_words, mut new_words) = (WordPieces::of(old), WordPieces::of(new));
    let both = (&old_words.tokens[..], &new_words.tokens[..]);
    let steps = edit_script(StepSearch::Readable, both, deadline);
    let is_same = |step: &&DiffOp| step.tag() == DiffTag::Equal;
    let same = steps
        .iter()
        .filter(is_same)
        .map(|step| step.old_range().len())
        .sum();
    if similarity(same, (both.0.len(), both.1.len())) < MIN_SIMILARITY {
        return [unmarked(old), unmarked(new)];
    }

    for step in &steps {
        let differs = step.tag() != DiffTag::Equal;
        old_words.add(step.old_range(), differs);
        new_words.add(step.new_range(), differs);
    }
    [old_words.pieces, new_words.pieces]
}

/// Returns the similarity of two sequences, from 0 to 1.
fn similarity(same: usize, lengths: (usize, usize)) -> f32 {
    match lengths.0 + lengths.1 {
        0 => 1.0,
        all => 2.0 * same as f32 / all as f32,
    }
}

impl<'t> WordPieces<'t> {
    fn of(lines: &'t [&'t str]) -> WordPieces<'t> {
        let (mut tokens, mut positions) = (Vec::new(), Vec::new());
        for (number, line) in lines.iter().enumerate() {
            let mut start = 0;
            for word in line.tokenize_unicode_words() {
                tokens.push(word);
                positions.push((number, start..start + word.len()));
                start += word.len();
            }
        }
        WordPieces {
            lines,
            tokens,
            positions,
            pieces: vec![Vec::new(); lines.len()],
        }
    }

    /// Appends words to the pieces of their lines, merged into one piece per line.
    fn add(&mut self, range: Range<usize>, differs: bool) {
        for run in self.positions[range].chunk_by(|a, b| a.0 == b.0) {
            let (Some((line, first)), Some((_, last))) = (run.first(), run.last()) else {
                continue;
            };
            let text = &self.lines[*line][first.start..last.end];
            // Do not mark line ends, which are invisible.
            let (text, end) = text.split_at(text.trim_end_matches(['\r', '\n']).len());
            let pieces = [(differs, text), (false, end)];
            let pieces = pieces.into_iter().filter(|(_, text)| !text.is_empty());
            self.pieces[*line].extend(pieces);
        }
    }
}
