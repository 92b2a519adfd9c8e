//! A model of the expected files: each file has a list of turns and a few numbered slots, which
//! stand for its lines. It uses neither git nor a line merge.

use std::collections::{BTreeMap, BTreeSet};

/// Changeable lines per file, far enough apart to merge independently.
pub const SLOTS: usize = 4;

/// All paths of the model. `OTHERS` never exists and stands for all other paths.
pub const PATHS: [&str; 6] = [
    "a.txt",
    "b.txt",
    "dir/c.txt",
    "dir/d.txt",
    "dir/sub/e.txt",
    OTHERS,
];
pub const OTHERS: &str = "others";

/// `None` if the file does not exist.
pub type Content = Option<[u32; SLOTS]>;

pub type Files = BTreeMap<&'static str, [u32; SLOTS]>;

/// The turns in each file, oldest first, as indexes into [`Oracle::turns`].
pub type Stacks = BTreeMap<&'static str, Vec<usize>>;

#[derive(Debug, Clone)]
pub struct Turn {
    pub before: Files,
    pub after: Files,
    /// The stacks before the turn.
    pub below: Stacks,
    /// The stacks if the turn applies completely.
    pub wanted: Stacks,
    /// The stacks after the turn.
    pub stack: Stacks,
    /// Whether the turn changed files.
    pub changed: bool,
    /// Whether the changes were applied to the user's files.
    pub synced: bool,
    /// Only for a restore: the position of the session (`None` if the restore counts as a step) and
    /// the turns to redo.
    pub restored: Option<(Option<u64>, Vec<u64>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Change nothing.
    Stop,
    /// Keep the user's side.
    Ours,
    /// Take the turn's side.
    Theirs,
    /// Write conflict markers.
    Markers,
    /// Make the files equal to the target, without a merge.
    Exact,
}

/// One merge, and the turns in the files before it.
#[derive(Debug, Clone)]
struct Leg {
    from: Files,
    to: Files,
    list: Vec<usize>,
}

/// Expected result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Of a file with conflict markers, only its existence is significant.
    pub files: Files,
    /// Paths with conflicts.
    pub overlaps: BTreeSet<&'static str>,
    pub stack: Stacks,
    /// The model cannot predict the result: the sides conflict only where there are conflict
    /// markers, which git merges by line.
    pub is_open: bool,
}

/// All turns of all sessions.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    pub turns: Vec<Turn>,
    /// Numbers that stand for text with conflict markers.
    pub marked: BTreeSet<u32>,
}

pub fn content(files: &Files, path: &'static str) -> Content {
    files.get(path).copied()
}

pub fn put(files: &mut Files, path: &'static str, content: Content) {
    match content {
        Some(slots) => {
            files.insert(path, slots);
        }
        None => {
            files.remove(path);
        }
    }
}

/// Merges slot by slot. `None` on a conflict.
pub fn merge(base: Content, ours: Content, theirs: Content) -> Option<Content> {
    if ours == base || ours == theirs {
        return Some(theirs);
    }
    if theirs == base {
        return Some(ours);
    }
    let (Some(base), Some(ours), Some(theirs)) = (base, ours, theirs) else {
        return None;
    };
    let mut merged = [0; SLOTS];
    for slot in 0..SLOTS {
        let (base, ours, theirs) = (base[slot], ours[slot], theirs[slot]);
        merged[slot] = match (ours == base, theirs == base) {
            (true, _) => theirs,
            (_, true) => ours,
            _ if ours == theirs => ours,
            _ => return None,
        };
    }
    Some(Some(merged))
}

/// Merges all files. `None` on any conflict.
pub fn merge_all(base: &Files, ours: &Files, theirs: &Files) -> Option<Files> {
    let mut merged = Files::new();
    for path in PATHS {
        let sides = [base, ours, theirs].map(|files| content(files, path));
        put(&mut merged, path, merge(sides[0], sides[1], sides[2])?);
    }
    Some(merged)
}

impl Oracle {
    /// Returns the merges that lead from one list of turns to another.
    fn legs(&self, from: &[usize], to: &[usize]) -> Vec<Leg> {
        let mut list = from.to_vec();
        let mut legs = Vec::new();
        for turn in from.iter().rev().filter(|turn| !to.contains(turn)) {
            let turn_ = &self.turns[*turn];
            push(&mut legs, (&turn_.after, &turn_.before), &list);
            list.retain(|other| other != turn);
        }
        for turn in to.iter().filter(|turn| !from.contains(turn)) {
            let turn_ = &self.turns[*turn];
            push(&mut legs, (&turn_.before, &turn_.after), &list);
            list.push(*turn);
        }
        legs
    }

    pub fn restore(
        &self,
        (now, here): (&Files, &Stacks),
        target: (&Files, &Stacks),
        paths: &[&'static str],
        mode: Mode,
    ) -> Expected {
        let mut expected = Expected {
            files: now.clone(),
            overlaps: BTreeSet::new(),
            stack: here.clone(),
            is_open: false,
        };
        for path in paths {
            let (from, to) = (&here[path], &target.1[path]);
            expected.stack.insert(path, to.clone());
            if mode == Mode::Exact {
                put(&mut expected.files, path, content(target.0, path));
            } else {
                self.follow(path, &self.legs(from, to), mode, &mut expected);
            }
        }
        if mode == Mode::Stop && !expected.overlaps.is_empty() {
            expected.files = now.clone();
            expected.stack = here.clone();
        }
        expected
    }

    /// Returns the result of an undo or redo of `turns`. For an undo, they are newest first.
    pub fn over(
        &self,
        (now, here): (&Files, &Stacks),
        turns: &[usize],
        back: bool,
        mode: Mode,
    ) -> Expected {
        let mut expected = Expected {
            files: now.clone(),
            overlaps: BTreeSet::new(),
            stack: here.clone(),
            is_open: false,
        };
        for path in PATHS {
            let (mut legs, mut at) = (Vec::new(), here[path].clone());
            for turn in turns {
                let turn = &self.turns[*turn];
                let mut ends = [&turn.below[path], &turn.stack[path]];
                let mut files = [&turn.before, &turn.after];
                if back {
                    ends.reverse();
                    files.reverse();
                }
                for leg in self.legs(&at, ends[0]) {
                    push(&mut legs, (&leg.from, &leg.to), &leg.list);
                }
                if turn.restored.is_some() {
                    push(&mut legs, (files[0], files[1]), ends[0]);
                } else {
                    for leg in self.legs(ends[0], ends[1]) {
                        push(&mut legs, (&leg.from, &leg.to), &leg.list);
                    }
                }
                at = ends[1].clone();
            }
            expected.stack.insert(path, at);
            self.follow(path, &legs, mode, &mut expected);
        }
        if mode == Mode::Stop && !expected.overlaps.is_empty() {
            expected.files = now.clone();
            expected.stack = here.clone();
        }
        expected
    }
}

/// Appends a merge. Extends the last one if it ends where this one starts.
fn push(legs: &mut Vec<Leg>, (from, to): (&Files, &Files), list: &[usize]) {
    match legs.last_mut() {
        Some(last) if last.to == *from => last.to = to.clone(),
        _ => legs.push(Leg {
            from: from.clone(),
            to: to.clone(),
            list: list.to_vec(),
        }),
    }
}

impl Oracle {
    /// Checks whether all conflicts involve conflict markers.
    fn is_open(&self, sides: [Content; 3]) -> bool {
        let [Some(base), Some(ours), Some(theirs)] = sides else {
            return false;
        };
        (0..SLOTS).all(|slot| {
            let [base, ours, theirs] = [base[slot], ours[slot], theirs[slot]];
            let meets = ours != base && theirs != base && ours != theirs;
            !meets
                || [base, ours, theirs]
                    .iter()
                    .any(|side| self.marked.contains(side))
        })
    }

    /// Applies the merges to one file.
    fn follow(&self, path: &'static str, legs: &[Leg], mode: Mode, expected: &mut Expected) {
        let mut now = content(&expected.files, path);
        for leg in legs {
            let (from, to) = (content(&leg.from, path), content(&leg.to, path));
            if let Some(merged) = merge(from, now, to) {
                now = merged;
                continue;
            }
            expected.is_open |= self.is_open([from, now, to]);
            expected.overlaps.insert(path);
            match mode {
                Mode::Theirs => now = to,
                Mode::Markers => {
                    now = now.or(to);
                    break;
                }
                _ => {
                    expected.stack.insert(path, leg.list.clone());
                    break;
                }
            }
        }
        put(&mut expected.files, path, now);
    }
}
