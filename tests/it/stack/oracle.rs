//! What the files shall be, said in the simplest way: for each file the list of turns that are in
//! it, numbers in slots that nobody merges by lines, and no git.

use std::collections::{BTreeMap, BTreeSet};

/// How many lines of a file are changed, far enough from each other to be merged one by one.
pub const SLOTS: usize = 4;

/// The files that there can be; the last one never is, and stands for all others.
pub const PATHS: [&str; 6] = [
    "a.txt",
    "b.txt",
    "dir/c.txt",
    "dir/d.txt",
    "dir/sub/e.txt",
    OTHERS,
];
/// What stands for all other files.
pub const OTHERS: &str = "others";

/// What is in a file; nothing if it is not there.
pub type Content = Option<[u32; SLOTS]>;

/// All files.
pub type Files = BTreeMap<&'static str, [u32; SLOTS]>;

/// The turns that are in each file, oldest first, by their place in [`Oracle::turns`].
pub type Stacks = BTreeMap<&'static str, Vec<usize>>;

/// A turn.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The files before.
    pub before: Files,
    /// The files after.
    pub after: Files,
    /// What was in the files before.
    pub below: Stacks,
    /// What it was to bring.
    pub wanted: Stacks,
    /// What was in the files after it.
    pub stack: Stacks,
    /// Whether it changed files.
    pub changed: bool,
    /// Whether that is in the files.
    pub synced: bool,
    /// For a restore: the turn that the session stands at, unless it is a step of its own, and what
    /// is to be redone.
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
}

/// What to do where edits meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing at all.
    Stop,
    /// The user's stays.
    Ours,
    /// The turn's comes.
    Theirs,
    /// Both come.
    Markers,
    /// Everything is as the turn left it.
    Exact,
}

/// One step of a way: the files that it leads from and to, and the turns in them before it.
#[derive(Debug, Clone)]
struct Leg {
    from: Files,
    to: Files,
    list: Vec<usize>,
}

/// What a restore comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The files; of a marked one only that it is there is known.
    pub files: Files,
    /// Where edits meet.
    pub overlaps: BTreeSet<&'static str>,
    /// What is in the files.
    pub stack: Stacks,
    /// Whether edits meet only where conflict markers stand: there, lines decide, not slots.
    pub is_open: bool,
}

/// Every turn there ever was.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    /// The turns, of all sessions.
    pub turns: Vec<Turn>,
    /// The numbers of slots with conflict markers.
    pub marked: BTreeSet<u32>,
}

/// Returns the content of a file.
pub fn content(files: &Files, path: &'static str) -> Content {
    files.get(path).copied()
}

/// Puts a content into a file.
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

/// Merges what two sides made of a file; nothing if they meet.
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

/// Merges all files; nothing if two sides meet anywhere.
pub fn merge_all(base: &Files, ours: &Files, theirs: &Files) -> Option<Files> {
    let mut merged = Files::new();
    for path in PATHS {
        let sides = [base, ours, theirs].map(|files| content(files, path));
        put(&mut merged, path, merge(sides[0], sides[1], sides[2])?);
    }
    Some(merged)
}

impl Oracle {
    /// Returns the legs from one list of turns to another.
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

    /// Returns what a restore to a turn comes to.
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
    pub fn taken_back(&self, turn: usize) -> Crossing {
        let turn = &self.turns[turn];
        let files = [turn.after.clone(), turn.before.clone()];
        Crossing {
            stacks: [turn.stack.clone(), turn.below.clone()],
            files: turn.restored.as_ref().map(|_| files),
        }
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
        (self.turns[over[steps - 1]].below.clone(), files)
    }

    /// Returns what taking a step of an undo back means, counted from 1.
    pub fn step_taken_back(&self, undo: usize, step: usize) -> Crossing {
        let [after, before] = [step, step - 1].map(|steps| self.after_steps(undo, steps));
        Crossing {
            stacks: [after.0, before.0],
            files: after.1.zip(before.1).map(|(after, before)| [after, before]),
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
            for Crossing { stacks, files } in crossed {
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

/// Adds a leg; one that begins where the last one ends goes on with it.
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
    /// Returns whether three sides of a file meet only where one of them has conflict markers.
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

    /// Brings one file along.
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
