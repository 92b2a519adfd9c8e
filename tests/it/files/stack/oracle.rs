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
    /// For an undo: the turns that it went over, newest first, each a step.
    pub over: Vec<usize>,
}

/// A turn that is taken back, or a step of an undo that is.
#[derive(Debug, Clone)]
pub struct Crossing {
    /// The turns in the files before and after it.
    pub stacks: [Stacks; 2],
    /// The files before and after it, if they are merged as they were.
    pub files: Option<[Files; 2]>,
    /// The turn, if only files that have it change.
    pub turn: Option<usize>,
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

    /// Returns what taking a turn back means.
    pub fn taken_back(&self, index: usize) -> Crossing {
        let turn = &self.turns[index];
        let files = [turn.after.clone(), turn.before.clone()];
        Crossing {
            turn: turn.restored.is_none().then_some(index),
            stacks: [turn.stack.clone(), turn.below.clone()],
            files: turn.restored.as_ref().map(|_| files),
        }
    }

    /// Without turns that did not change the file.
    pub fn touching(&self, stacks: &Stacks) -> Stacks {
        let touching = |path: &str, turns: &[usize]| {
            let mut turns = turns.to_vec();
            turns.retain(|turn| {
                let turn = &self.turns[*turn];
                turn.before.get(path) != turn.after.get(path)
            });
            turns
        };
        let kept = |(path, turns): (&&'static str, &Vec<usize>)| (*path, touching(path, turns));
        stacks.iter().map(kept).collect()
    }

    /// Returns the turns in the files once a turn is taken back.
    pub fn without(&self, here: &Stacks, index: usize) -> Stacks {
        let turn = &self.turns[index];
        let goes = |list: &Vec<usize>| turn.restored.is_some() || list.contains(&index);
        let mut left = here.clone();
        for (path, list) in &mut left {
            if goes(list) {
                list.clone_from(&turn.below[path]);
            }
        }
        left
    }

    /// Returns what is in the files after some steps of an undo, and the files; `None` for files that
    /// depend on what the user chose.
    fn after_steps(&self, undo: usize, steps: usize) -> (Stacks, Option<Files>) {
        let turn = &self.turns[undo];
        if steps == 0 {
            return (turn.below.clone(), Some(turn.before.clone()));
        }
        if steps == turn.over.len() {
            return (turn.stack.clone(), Some(turn.after.clone()));
        }
        let over = &turn.over[..steps];
        let crossed: Vec<Crossing> = over.iter().map(|turn| self.taken_back(*turn)).collect();
        let merged = self.over((&turn.before, &turn.below), &crossed, Mode::Stop);
        let files = merged.overlaps.is_empty().then_some(merged.files);
        let below = over
            .iter()
            .fold(turn.below.clone(), |here, turn| self.without(&here, *turn));
        (below, files)
    }

    /// Returns what taking a step of an undo back means, counted from 1.
    pub fn step_taken_back(&self, undo: usize, step: usize) -> Crossing {
        let [after, before] = [step, step - 1].map(|steps| self.after_steps(undo, steps));
        Crossing {
            stacks: [after.0, before.0],
            files: after.1.zip(before.1).map(|(after, before)| [after, before]),
            turn: None,
        }
    }

    /// Returns what taking turns back comes to, one after the other.
    pub fn over(
        &self,
        (now, here): (&Files, &Stacks),
        crossed: &[Crossing],
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
            for Crossing {
                stacks,
                files,
                turn,
            } in crossed
            {
                if turn.is_some_and(|turn| !at.contains(&turn)) {
                    continue;
                }
                let ends = stacks.each_ref().map(|stacks| &stacks[path]);
                let mut step = self.legs(&at, ends[0]);
                match files {
                    Some([from, to]) => push(&mut step, (from, to), ends[0]),
                    None => {
                        for leg in self.legs(ends[0], ends[1]) {
                            push(&mut step, (&leg.from, &leg.to), &leg.list);
                        }
                    }
                }
                legs.extend(step);
                at.clone_from(ends[1]);
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
