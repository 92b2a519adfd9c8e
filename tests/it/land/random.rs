//! Worlds thrown by dice: turns, the user's own edits, what they stage and commit meanwhile, and
//! landings. After each step HEAD, index and files are what a simple model says.

use std::collections::BTreeMap;

use crate::plans::{create, edit_pairs, plan};
use crate::random_kills::Dice;
use crate::support::{TestRepo, seeds};

/// How many files there are at first.
const FILES: usize = 3;
/// How many places of a file change, far enough apart to be nobody else's business.
const SLOTS: usize = 5;

/// The lines that change, by file and place; what is there in a file that does not exist is nothing.
type Layer = BTreeMap<(String, usize), u32>;

/// A world, and what should be in it.
struct World {
    repo: TestRepo,
    dice: Dice,
    /// The last value that was given to a line.
    value: u32,
    head: Layer,
    index: Layer,
    files: Layer,
    /// What turns did that has not landed: the places, and what was there before.
    pending: Vec<Layer>,
    /// Whether the newest thing that happened to the session is a turn.
    can_undo: bool,
    /// What was done, for whoever reads a failure.
    story: Vec<String>,
}

/// Returns a line of a file.
fn line(slot: usize, value: u32) -> String {
    format!("place {slot} has {value}")
}

/// Returns a file of a layer.
fn content(layer: &Layer, name: &str) -> Option<String> {
    let mut text = String::new();
    for slot in 0..SLOTS {
        let value = layer.get(&(name.to_owned(), slot))?;
        text.push_str(&format!("{}\na\nb\nc\nd\ne\nf\n", line(slot, *value)));
    }
    Some(text)
}

impl World {
    fn new(seed: u64) -> World {
        let (repo, mut layer) = (TestRepo::new(), Layer::new());
        for file in 0..FILES {
            for slot in 0..SLOTS {
                layer.insert((format!("f{file}.txt"), slot), 0);
            }
            let name = format!("f{file}.txt");
            repo.write(&name, content(&layer, &name).unwrap());
        }
        repo.commit("init");
        repo.done(&["new", "demo"]);
        repo.done(&["context", "add", "."]);
        World {
            repo,
            dice: Dice(seed),
            value: 0,
            head: layer.clone(),
            index: layer.clone(),
            files: layer,
            pending: Vec::new(),
            can_undo: false,
            story: vec![format!("seed {seed}")],
        }
    }

    /// Returns a place that nobody has changed, and a new value.
    fn free(&mut self) -> Option<((String, usize), u32)> {
        let same = |at: &&(String, usize)| {
            let value = self.head.get(*at);
            value == self.index.get(*at) && value == self.files.get(*at)
        };
        let free: Vec<_> = self.head.keys().filter(same).cloned().collect();
        let at = free.get(self.dice.below(free.len()))?.clone();
        self.value += 1;
        Some((at, self.value))
    }

    /// Returns the names of the files of a layer.
    fn names(layer: &Layer) -> Vec<String> {
        let mut names: Vec<String> = layer.keys().map(|(name, _)| name.clone()).collect();
        names.dedup();
        names
    }

    fn turn(&mut self) {
        let mut before = Layer::new();
        let mut actions = Vec::new();
        for _ in 0..=self.dice.below(2) {
            let Some(((name, slot), value)) = self.free() else {
                break;
            };
            let at = (name.clone(), slot);
            let old = self.files.insert(at.clone(), value).unwrap();
            before.insert(at, old);
            let (find, replace) = (line(slot, old), line(slot, value));
            actions.push(edit_pairs(&name, &[(&find, &replace)]));
        }
        if self.dice.below(3) == 0 {
            self.value += 1;
            let name = format!("made{}.txt", self.value);
            for slot in 0..SLOTS {
                self.files.insert((name.clone(), slot), self.value);
            }
            actions.push(create(&name, &content(&self.files, &name).unwrap()));
            // One place stands for the file.
            before.insert((name, SLOTS), 0);
        }
        if actions.is_empty() {
            return;
        }
        self.repo
            .run_plan(&plan(&format!("Turn {}", self.value), &actions));
        self.pending.push(before);
        self.can_undo = true;
    }

    fn edit(&mut self) {
        let Some((at, value)) = self.free() else {
            return;
        };
        self.files.insert(at.clone(), value);
        self.repo.write(&at.0, content(&self.files, &at.0).unwrap());
    }

    fn stage(&mut self) {
        let names = World::names(&self.files);
        let name = &names[self.dice.below(names.len())];
        self.repo.git(&["add", name]);
        for slot in 0..SLOTS {
            let at = (name.clone(), slot);
            self.index.insert(at.clone(), self.files[&at]);
        }
    }

    fn commit(&mut self) {
        self.repo
            .git(&["commit", "-q", "--allow-empty", "-m", "own"]);
        self.head = self.index.clone();
    }

    fn undo(&mut self) {
        if !self.can_undo {
            return;
        }
        let before = self.pending.pop().unwrap();
        self.repo.done(&["undo"]);
        for ((name, slot), value) in before {
            if slot == SLOTS {
                self.files.retain(|(file, _), _| *file != name);
            } else {
                self.files.insert((name, slot), value);
            }
        }
        self.can_undo = false;
    }

    fn land(&mut self) {
        let (mut new, places) = (self.head.clone(), self.pending.iter().flatten());
        for ((name, slot), _) in places {
            let all = 0..SLOTS;
            for slot in all.filter(|at| at == slot || *slot == SLOTS) {
                let at = (name.clone(), slot);
                new.insert(at.clone(), self.files[&at]);
            }
        }
        let out = self.repo.teddy(&["land", "-m", "land"]);
        if new == self.head {
            out.check(1, &["nothing to land"]);
            return;
        }
        assert_eq!(out.code, 0, "{:#?}: {out}", self.story);
        for (at, value) in &new {
            if self.head.get(at) != Some(value) && self.index.get(at) == self.head.get(at) {
                self.index.insert(at.clone(), *value);
            }
        }
        self.head = new;
        self.pending.clear();
        self.can_undo = false;
    }

    /// Compares the world with the model.
    fn check(&self) {
        let show = |layer: &Layer, read: &dyn Fn(&str) -> String| {
            for name in World::names(layer) {
                let expected = content(layer, &name).unwrap();
                assert_eq!(read(&name), expected, "{name}: {:#?}", self.story);
            }
        };
        let git = |at: String| self.repo.git(&["show", &at]) + "\n";
        show(&self.head, &|name| git(format!("HEAD:{name}")));
        show(&self.index, &|name| git(format!(":{name}")));
        show(&self.files, &|name| self.repo.read(name));

        let listed = |args: &[&str]| self.repo.git(args).lines().map(str::to_owned).collect();
        let head: Vec<String> = listed(&["ls-tree", "-r", "--name-only", "HEAD"]);
        let index: Vec<String> = listed(&["ls-files"]);
        assert_eq!(head, World::names(&self.head), "{:#?}", self.story);
        assert_eq!(index, World::names(&self.index), "{:#?}", self.story);
    }

    /// Lets something happen.
    fn step(&mut self) {
        let (name, step): (&str, fn(&mut World)) = match self.dice.below(10) {
            0..=2 => ("turn", World::turn),
            3 => ("edit", World::edit),
            4 => ("stage", World::stage),
            5 => ("commit", World::commit),
            6 => ("undo", World::undo),
            7 => ("edit", World::edit),
            _ => ("land", World::land),
        };
        self.story.push(name.to_owned());
        step(self);
        self.check();
    }
}

/// Plays worlds from a seed on.
fn play(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..16 {
        world.step();
    }
    world.land();
    world.check();
}

#[test]
fn head_index_and_files_are_what_a_model_says() {
    seeds(1, 3).for_each(play);
}
