//! Finds the place in a text that is most similar to a FIND without a match.
//!
//! Lines are compared by a key that ignores whitespace, letter case and look-alike characters. Each
//! line that FIND and the text share votes for a start, and rare lines have more weight. Letter
//! trigrams vote as well, for a FIND with few equal lines. The best candidates are then aligned
//! line by line.

use std::collections::HashMap;
use std::ops::Range;

use crate::text::diff;

// Number of starts that are aligned, for each kind of vote.
const CANDIDATES: usize = 8;
// Votes are counted from the rarest line on, up to this number.
const MAX_VOTES: usize = 200_000;
// Maximum number of line pairs in a gap that are compared by their trigrams.
const MAX_GAP: usize = 4_000;
// Minimum similarity of two lines to count as one changed line.
const ALIKE: f64 = 0.4;
// Minimum score for a place to be shown.
const MIN_SCORE: f64 = 0.35;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Closest {
    /// Its lines in the text, from 0.
    pub lines: Range<usize>,
    /// For each line of FIND, the corresponding line of the text.
    pub pairs: Vec<Option<usize>>,
    /// The matching fraction of FIND, from 0 to 1.
    score: f64,
}

/// `None` if no place is similar enough.
pub(super) fn find_closest(text: &[&str], find: &[&str]) -> Option<Closest> {
    let keys: Vec<u64> = text.iter().map(|line| key(line)).collect();
    let find_keys: Vec<u64> = find.iter().map(|line| key(line)).collect();
    let mut starts = by_lines(&keys, &find_keys);
    starts.extend(by_letters(text, find));
    let sides = Sides {
        text,
        find,
        keys: &keys,
        find_keys: &find_keys,
    };

    let mut best: Option<Closest> = None;
    for start in starts {
        let candidate = sides.around(start);
        // Candidates come best first, so keep the earlier one on a tie, despite rounding errors.
        if best
            .as_ref()
            .is_none_or(|b| candidate.score > b.score + 1e-9)
        {
            best = Some(candidate);
        }
    }

    best.filter(|b| b.score >= MIN_SCORE && !b.lines.is_empty())
}

/// Returns candidate starts from lines that occur in both texts, best first. A start can be
/// negative.
fn by_lines(keys: &[u64], find_keys: &[u64]) -> Vec<isize> {
    let mut at: HashMap<u64, (Vec<usize>, Vec<usize>)> = HashMap::new();
    for (n, &key) in find_keys
        .iter()
        .enumerate()
        .filter(|&(_, &key)| key != BLANK)
    {
        at.entry(key).or_default().0.push(n);
    }

    for (n, key) in keys.iter().enumerate() {
        if let Some((_, in_text)) = at.get_mut(key) {
            in_text.push(n);
        }
    }

    let mut shared: Vec<(Vec<usize>, Vec<usize>)> = at
        .into_values()
        .filter(|(_, in_text)| !in_text.is_empty())
        .collect();
    shared.sort_by_key(|(here, in_text)| (in_text.len(), here[0]));
    let mut votes: HashMap<isize, f64> = HashMap::new();
    let mut counted = 0;

    for (here, in_text) in &shared {
        counted += here.len() * in_text.len();
        if counted > MAX_VOTES {
            break;
        }
        for (h, t) in here
            .iter()
            .flat_map(|h| in_text.iter().map(move |t| (h, t)))
        {
            *votes.entry(*t as isize - *h as isize).or_default() += 1.0 / in_text.len() as f64;
        }
    }

    select_starts(votes.into_iter().collect(), find_keys.len())
}

/// Returns candidate starts from letter trigrams that occur in FIND, best first.
fn by_letters(text: &[&str], find: &[&str]) -> Vec<isize> {
    let mut in_find = vec![false; 1 << 16];
    for line in find {
        triples(line).for_each(|t| in_find[t as usize] = true);
    }

    let score = |line: &&str| -> f64 {
        let (mut all, mut hits) = (0, 0);
        for triple in triples(line) {
            all += 1;
            hits += usize::from(in_find[triple as usize]);
        }
        // A long line matches many trigrams by chance, so the other ones count against it.
        hits as f64 - 0.5 * (all - hits) as f64
    };
    let scores: Vec<f64> = text.iter().map(score).collect();
    let size = find.len().min(scores.len());
    let mut sum: f64 = scores[..size].iter().sum();
    let mut starts = vec![(0, sum)];

    for at in size..scores.len() {
        sum += scores[at] - scores[at - size];
        starts.push(((at + 1 - size) as isize, sum));
    }

    select_starts(starts, size)
}

/// Returns the best starts that are at least half a FIND apart.
fn select_starts(mut starts: Vec<(isize, f64)>, size: usize) -> Vec<isize> {
    let order = |a: &(isize, f64), b: &(isize, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    let few = CANDIDATES * (size + 1).min(64);
    if starts.len() > few {
        starts.select_nth_unstable_by(few, order);
        starts.truncate(few);
    }

    starts.sort_by(order);
    let min_distance = (size / 2) as isize;
    let mut chosen: Vec<isize> = Vec::new();
    for (start, _) in starts {
        if chosen.len() < CANDIDATES && chosen.iter().all(|c| (c - start).abs() > min_distance) {
            chosen.push(start);
        }
    }

    chosen
}

struct Sides<'a> {
    text: &'a [&'a str],
    find: &'a [&'a str],
    keys: &'a [u64],
    find_keys: &'a [u64],
}

impl Sides<'_> {
    fn around(&self, start: isize) -> Closest {
        let margin = (self.find.len().min(30) + 2) as isize;
        let inside = |at: isize| at.clamp(0, self.text.len() as isize) as usize;
        let window = inside(start - margin)..inside(start + self.find.len() as isize + margin);
        let mut pairs: Vec<Option<usize>> = vec![None; self.find.len()];
        let mut gap = (0, window.start);

        for (here, text_range) in diff::align(self.find_keys, &self.keys[window.clone()]) {
            let text_range = text_range.start + window.start..text_range.end + window.start;
            self.align_gap(&mut pairs, gap.0..here.start, gap.1..text_range.start);
            gap = (here.end, text_range.end);
            here.zip(text_range).for_each(|(h, t)| pairs[h] = Some(t));
        }

        self.align_gap(&mut pairs, gap.0..self.find.len(), gap.1..window.end);
        self.drop_far_blanks(&mut pairs);
        let (first, last) = (pairs.iter().flatten().min(), pairs.iter().flatten().max());
        let lines = first
            .zip(last)
            .map_or(0..0, |(&first, &last)| first..last + 1);

        Closest {
            score: self.score(&pairs, &lines),
            lines,
            pairs,
        }
    }

    /// Pairs the lines in a gap between equal lines, in order, to maximize their similarity.
    fn align_gap(&self, pairs: &mut [Option<usize>], find: Range<usize>, text: Range<usize>) {
        if find.is_empty() || text.is_empty() {
            return;
        }

        // Too many pairs for the quadratic alignment, so compare line by line.
        if find.len() * text.len() > MAX_GAP {
            let alike = |&(f, t): &(usize, usize)| {
                likeness(&sorted(self.find[f]), &sorted(self.text[t])) >= ALIKE
            };
            find.zip(text)
                .filter(alike)
                .for_each(|(f, t)| pairs[f] = Some(t));
            return;
        }

        let width = text.len() + 1;
        let mut best = vec![0.0; (find.len() + 1) * width];
        let like = self.likenesses(&find, &text);
        for f in (0..find.len()).rev() {
            for t in (0..text.len()).rev() {
                let both = like[f * text.len() + t] + best[(f + 1) * width + t + 1];
                best[f * width + t] = f64::max(
                    both,
                    f64::max(best[(f + 1) * width + t], best[f * width + t + 1]),
                );
            }
        }

        let (mut f, mut t) = (0, 0);
        while f < find.len() && t < text.len() {
            let like = like[f * text.len() + t];
            if like > 0.0 && best[f * width + t] <= like + best[(f + 1) * width + t + 1] {
                pairs[find.start + f] = Some(text.start + t);
                (f, t) = (f + 1, t + 1);
            } else if best[f * width + t] <= best[(f + 1) * width + t] {
                f += 1;
            } else {
                t += 1;
            }
        }
    }

    /// Returns the similarity of each line of FIND to each line of the text, row by row. 0 if it is
    /// below [`ALIKE`].
    fn likenesses(&self, find: &Range<usize>, text: &Range<usize>) -> Vec<f64> {
        let text_triples: Vec<Vec<u16>> = text.clone().map(|t| sorted(self.text[t])).collect();
        let row = |f: usize| {
            let (here, weight) = (sorted(self.find[f]), weight(self.find[f]));
            text_triples
                .iter()
                .map(move |other| {
                    Some(likeness(&here, other))
                        .filter(|like| *like >= ALIKE)
                        .map_or(0.0, |like| like * weight)
                })
                .collect()
        };
        find.clone().flat_map(|f| -> Vec<f64> { row(f) }).collect()
    }

    /// Unpairs blank lines at the edges that are not adjacent to the matched lines.
    fn drop_far_blanks(&self, pairs: &mut [Option<usize>]) {
        let is_paired = |n: &usize| self.find_keys[*n] != BLANK && pairs[*n].is_some();
        let Some((first, last)) = (0..pairs.len())
            .find(is_paired)
            .zip((0..pairs.len()).rfind(is_paired))
        else {
            return;
        };
        for n in (0..first).rev() {
            pairs[n] = pairs[n].filter(|&t| pairs[n + 1].is_some_and(|next| next == t + 1));
        }

        for n in last + 1..pairs.len() {
            pairs[n] = pairs[n].filter(|&t| pairs[n - 1].is_some_and(|before| before + 1 == t));
        }
    }

    /// Returns the matching fraction of FIND, with a small penalty for extra lines in the text.
    fn score(&self, pairs: &[Option<usize>], lines: &Range<usize>) -> f64 {
        let all: f64 = self.find.iter().map(|line| weight(line)).sum();
        let matched: f64 = pairs
            .iter()
            .enumerate()
            .filter_map(|(f, t)| t.map(|t| self.same(f, t) * weight(self.find[f])))
            .sum();
        let surplus = lines.len().saturating_sub(pairs.iter().flatten().count());

        matched / all - 0.01 * surplus as f64
    }

    /// Returns the similarity of two paired lines, from 0 to 1.
    fn same(&self, find: usize, text: usize) -> f64 {
        match self.find_keys[find] == self.keys[text] {
            true if self.find[find] == self.text[text] => 1.0,
            true => 0.98,
            false => 0.95 * likeness(&sorted(self.find[find]), &sorted(self.text[text])),
        }
    }
}

fn weight(line: &str) -> f64 {
    (line.trim().len() as f64).sqrt() + 0.1
}

// Limited to the start of a very long line.
fn sorted(line: &str) -> Vec<u16> {
    let mut triples: Vec<u16> = triples(line).take(1000).collect();
    triples.sort_unstable();
    triples
}

/// Returns the Dice coefficient of two sorted lists of trigrams, from 0 to 1.
fn likeness(a: &[u16], b: &[u16]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return if a.len() == b.len() { 1.0 } else { 0.0 };
    }

    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, shared) = (i + 1, j + 1, shared + 1),
        }
    }

    2.0 * f64::from(shared) / (a.len() + b.len()) as f64
}

/// Returns the letter trigrams of a line without whitespace, each hashed to 16 bits. Padding at
/// both ends gives short lines some trigrams too.
fn triples(line: &str) -> impl Iterator<Item = u16> + '_ {
    let (mut a, mut b) = (0_u32, 0_u32);
    let ended = if line.trim().is_empty() { 0 } else { 2 };
    line.bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .chain(std::iter::repeat_n(0, ended))
        .map(move |byte| {
            let c = u32::from(byte.to_ascii_lowercase());
            let triple = (a << 16 | b << 8 | c).wrapping_mul(0x9e37_79b1) >> 16;
            (a, b) = (b, c);
            triple as u16
        })
}

// Key of a blank line, and the FNV-1a offset basis.
const BLANK: u64 = 0xcbf2_9ce4_8422_2325;

/// Returns a hash that ignores whitespace, letter case and look-alike characters.
fn key(line: &str) -> u64 {
    let mut hash = BLANK;
    let mut add = |unit: u32| hash = (hash ^ u64::from(unit)).wrapping_mul(0x0000_0100_0000_01b3);
    if line.is_ascii() {
        line.bytes()
            .filter(|b| !b.is_ascii_whitespace())
            .for_each(|b| add(u32::from(b.to_ascii_lowercase())));
    } else {
        let plain = line.chars().flat_map(|c| plain(c).to_lowercase());
        plain
            .filter(|c| !c.is_whitespace())
            .for_each(|c| add(c as u32));
    }

    hash
}

/// Maps a look-alike character to the common one.
pub(super) fn plain(c: char) -> char {
    match c {
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            ' '
        }
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{b4}' | '\u{2bc}' | '\u{ff07}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ff02}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ad}' | '\u{ff0d}' => '-',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the lines of the closest place, from 1, and the pairing of FIND's lines.
    fn check(text: &str, find: &str, expected: &str) {
        let (text, find): (Vec<&str>, Vec<&str>) = (text.lines().collect(), find.lines().collect());
        let actual = find_closest(&text, &find).map_or("none".to_owned(), |c| {
            let pairs: Vec<String> = c
                .pairs
                .iter()
                .map(|p| p.map_or("-".to_owned(), |n| (n + 1).to_string()))
                .collect();
            format!("{}-{}: {}", c.lines.start + 1, c.lines.end, pairs.join(" "))
        });
        assert_eq!(actual, expected, "for {find:?}");
    }

    #[test]
    fn rare_lines_find_the_place_that_common_ones_do_not() {
        let text =
            "fn a() {\n    one();\n}\n\nfn b() {\n    two();\n}\n\nfn c() {\n    one();\n}\n";
        check(text, "fn b() {\n  quite = different;\n}\n", "5-7: 5 - 7");
        check(text, "fn b() {\n    two(1);\n}\n", "5-7: 5 6 7");
    }

    #[test]
    fn one_line_with_a_slip_is_found_by_its_letters() {
        check(
            "alpha\nreturn the_original_value\nbeta\n",
            "return the_orignal_value\n",
            "2-2: 2",
        );
    }

    #[test]
    fn lines_that_find_leaves_out_or_adds_are_seen() {
        check("a1\nb2\nc3\nd4\ne5\n", "a1\nb2\nd4\ne5\n", "1-5: 1 2 4 5");
        check(
            "first\nsecond\nthird\n",
            "first\nsomething else\nsecond\nthird\n",
            "1-3: 1 - 2 3",
        );
    }

    #[test]
    fn a_text_with_nothing_in_common_has_no_closest_place() {
        check("one\ntwo\nthree\n", "quite another sentence\n", "none");
        check("", "x\n", "none");
    }
}
