//! A repository in which the user, git and turns of several sessions change the same files, and a
//! check of each result against the [`Oracle`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use teddy::project::{Project, ProjectOptions, UserDirs};
use teddy::session::meta::Status;
use teddy::session::name::SessionName;
use teddy::workflow::execute::execute_text;
use teddy::workflow::execute::options::ExecuteOptions;
use teddy::workflow::execute::result::{ExecuteResult, ReviewedPlan};
use teddy::workflow::lifecycle::start_session;
use teddy::workflow::lifecycle::{branch_session, switch_session};
use teddy::workflow::model::agents;
use teddy::workflow::restore::steps::{redo, undo};
use teddy::workflow::restore::{OnOverlap, RestoreOptions, RestoreResult, restore};
use teddy::workflow::user::{Approved, Decision, Event, Question, ReviewRequest, User};
use teddy::workspace::snapshot::snapshot;
use teddy::workspace::stack::Stacks as Reader;

use super::oracle::{
    Content, Crossing, Expected, Files, Mode, Oracle, PATHS, SLOTS, Stacks, Turn, content,
    merge_all, put,
};
use super::texts::Texts;
use crate::plans;
use crate::random_kills::Dice;
use crate::support::TestRepo;

/// An operation. Its seed selects among the choices at that point.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    pub kind: Kind,
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Executes a plan. The user can save a file meanwhile.
    Turn,
    /// The user changes, creates or deletes files.
    Edit,
    /// The user runs git.
    Git,
    /// Creates, forks, copies or deletes a session.
    Session,
    /// Switches the session.
    Switch,
    /// Restores files to a turn.
    Restore,
    Undo,
    Redo,
    /// Deletes the ref that records the last publication to a checkout.
    Lose,
}

impl Op {
    /// Returns a random operation.
    pub fn throw(dice: &mut Dice) -> Op {
        let kind = match dice.below(100) {
            0..30 => Kind::Turn,
            30..49 => Kind::Edit,
            49 => Kind::Lose,
            50..62 => Kind::Git,
            62..67 => Kind::Session,
            67..73 => Kind::Switch,
            73..88 => Kind::Restore,
            88..95 => Kind::Undo,
            _ => Kind::Redo,
        };
        Op {
            kind,
            seed: dice.below(usize::MAX) as u64,
        }
    }
}

/// A user who approves everything.
struct Hasty<'a> {
    /// Called once, when the first action starts.
    save: Option<Box<dyn FnOnce() + 'a>>,
}

impl User for Hasty<'_> {
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        Ok(Decision::Run(Approved::all(proposal.plan)))
    }

    fn ask(&mut self, _: &Question<'_>) -> anyhow::Result<Option<String>> {
        Ok(None)
    }

    fn confirm(&mut self, _: &str, _: &str) -> anyhow::Result<bool> {
        Ok(true)
    }

    fn report(&mut self, event: Event<'_>) {
        if matches!(event, Event::Started { .. })
            && let Some(save) = self.save.take()
        {
            save();
        }
    }
}

/// What came of an undo or a redo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Went {
    /// It was done.
    There,
    /// There was nothing to do, or the user's edits overlapped.
    Nowhere,
    /// It was not tried: the oracle does not know what lines with conflict markers come to.
    Unknown,
}

impl Went {
    /// Returns what came of one that was tried.
    fn of(done: &RestoreResult) -> Went {
        match done.commit {
            Some(_) => Went::There,
            None => Went::Nowhere,
        }
    }
}

/// A checkout, and what is in its files.
struct Checkout {
    folder: PathBuf,
    session: String,
    /// The turns in its files.
    here: Stacks,
    /// Whether the publication ref exists.
    is_recorded: bool,
    /// Turns that ran here and changed files.
    ran: Vec<usize>,
}

pub struct World {
    repo: TestRepo,
    oracle: Oracle,
    sessions: BTreeMap<String, Vec<usize>>,
    /// Sessions whose ref was deleted.
    forgotten: BTreeSet<String>,
    checkouts: Vec<Checkout>,
    /// Turns that changed files, by their commit `after`.
    by_change: BTreeMap<String, usize>,
    /// Texts of the numbers in files.
    texts: Texts,
    /// Last number in use.
    last: u32,
    /// A log for error messages.
    pub story: Vec<String>,
}

/// Uses `/dev/shm` if possible, where flushes cost nothing.
fn in_memory() -> TestRepo {
    let memory = Path::new("/dev/shm");
    match tempfile::tempdir_in(memory) {
        Ok(_) => TestRepo::below(memory, &[]),
        Err(_) => TestRepo::new(),
    }
}

impl World {
    /// Creates a repository with two checkouts and a session in each.
    pub fn new() -> World {
        let repo = in_memory();
        // In the sandbox, a command does not see the user's `/dev/shm`.
        repo.configure("execute: {sandbox: off}\n");
        let shared = Texts::default().text([1; SLOTS]);
        for path in ["a.txt", "dir/c.txt"] {
            repo.write(path, &shared);
        }
        repo.commit("init");
        repo.write(".git/info/exclude", ".teddy/\n");
        let second = repo.beside("second");
        repo.git(&[
            "worktree",
            "add",
            "-q",
            "--detach",
            second.to_str().unwrap(),
        ]);
        let folders = [repo.path(), second];
        let none: Stacks = PATHS.iter().map(|path| (*path, Vec::new())).collect();
        for folder in &folders {
            std::fs::create_dir_all(folder.join(".teddy")).unwrap();
            std::fs::write(folder.join(".teddy/global.context"), "**\n").unwrap();
        }

        let mut world = World {
            repo,
            oracle: Oracle::default(),
            sessions: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            checkouts: folders
                .map(|folder| Checkout {
                    folder,
                    session: String::new(),
                    here: none.clone(),
                    is_recorded: true,
                    ran: Vec::new(),
                })
                .into(),
            by_change: BTreeMap::new(),
            texts: Texts::default(),
            last: 1,
            story: Vec::new(),
        };
        for at in [1, 0] {
            world.begin(at);
        }
        world
    }

    /// Runs an operation and compares the result with the model.
    pub fn step(&mut self, op: Op) -> Result<(), String> {
        let mut dice = Dice(op.seed);
        let at = usize::from(dice.below(6) == 0);
        self.find_turns(at);
        match op.kind {
            Kind::Turn => self.turn(at, &mut dice)?,
            Kind::Edit => self.edit(at, &mut dice),
            Kind::Git => self.git(at, &mut dice),
            Kind::Session => self.session(at, &mut dice),
            Kind::Switch => self.switch(at, &mut dice),
            Kind::Restore => self.restore(at, &mut dice)?,
            Kind::Undo if dice.below(3) == 0 => self.laws(at, &mut dice)?,
            Kind::Undo => {
                let (steps, mode) = (1 + dice.below(2), World::mode(&mut dice));
                self.undo(at, steps, mode)?;
            }
            Kind::Redo => {
                let (steps, mode) = (1 + dice.below(2), World::mode(&mut dice));
                self.redo(at, steps, mode)?;
            }
            Kind::Lose => self.lose(at),
        }
        match op.kind {
            Kind::Edit => Ok(()),
            _ => {
                self.find_turns(at);
                self.check_stack(at)
            }
        }
    }

    /// Without a publication ref, the files contain the turns of the session only if each file that
    /// they changed is as they left it.
    fn find_turns(&mut self, at: usize) {
        let name = ["main", "linked-second"][at];
        let reference = format!("refs/teddy/published/{name}");
        if !self.repo.git(&["for-each-ref", &reference]).is_empty() {
            return;
        }

        let newest = self.sessions[&self.checkouts[at].session].last();
        let newest = newest.map(|turn| self.oracle.turns[*turn].clone());
        let now = self.files(at);
        let is_there = |newest: &Turn| {
            PATHS.iter().all(|path| {
                let is_same = |turn: &Turn| turn.before.get(path) == turn.after.get(path);
                let mut turns = newest.wanted[path].iter();
                now.get(path) == newest.after.get(path)
                    || turns.all(|turn| is_same(&self.oracle.turns[*turn]))
            })
        };
        match newest.filter(|_| self.is_known(at)).filter(is_there) {
            Some(newest) => self.checkouts[at].here = newest.wanted,
            None => self.checkouts[at].here.values_mut().for_each(Vec::clear),
        }
    }

    fn project(&self, at: usize) -> Project {
        let home = self.repo.beside("home");
        let places = UserDirs {
            config: home.join("config/teddy"),
            config_file: home.join("config.yaml"),
            cache: home.join("cache/teddy"),
            home: Some(home),
        };
        Project::open(
            &self.checkouts[at].folder,
            places,
            ProjectOptions::default(),
        )
        .unwrap()
    }

    /// Returns an unused number.
    fn fresh(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    fn files(&mut self, at: usize) -> Files {
        let mut files = Files::new();
        for path in PATHS {
            let file = self.checkouts[at].folder.join(path);
            if let Ok(found) = std::fs::read_to_string(&file) {
                let last = &mut self.last;
                let fresh = || {
                    *last += 1;
                    *last
                };
                files.insert(path, self.texts.slots(&found, fresh));
            }
        }
        self.oracle.marked.extend(self.texts.marked());
        files
    }

    /// Returns a function that writes the file, to be called during a turn.
    fn write(&self, at: usize, path: &str, content: Content) -> impl FnOnce() + use<> {
        let file = self.checkouts[at].folder.join(path);
        let text = content.map(|slots| self.texts.text(slots));
        move || match text {
            Some(text) => {
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, text).unwrap();
            }
            None => {
                let _ = std::fs::remove_file(file);
            }
        }
    }

    /// Changes a file at random. Deletes it once in `goes` times.
    fn changed(&mut self, old: Content, goes: usize, dice: &mut Dice) -> Content {
        match old {
            Some(_) if dice.below(goes) == 0 => None,
            Some(mut slots) => {
                for _ in 0..=dice.below(2) {
                    slots[dice.below(SLOTS)] = self.fresh();
                }
                Some(slots)
            }
            None => Some([(); SLOTS].map(|()| self.fresh())),
        }
    }

    fn path(dice: &mut Dice) -> &'static str {
        PATHS[dice.below(PATHS.len() - 1)]
    }

    /// Returns a plan for the current files, and the files after it.
    fn plan(&mut self, before: &Files, dice: &mut Dice) -> (String, Files) {
        let (mut after, mut actions) = (before.clone(), Vec::new());
        for _ in 0..dice.below(4) {
            let path = World::path(dice);
            let old = content(before, path);
            let is_marked =
                |slots: [u32; SLOTS]| slots.iter().any(|slot| self.oracle.marked.contains(slot));
            if content(&after, path) != old || old.is_some_and(is_marked) {
                continue;
            }
            let new = self.changed(old, 30, dice);
            actions.push(match (old, new) {
                (Some(old), Some(new)) => {
                    let changed = (0..SLOTS).filter(|slot| old[*slot] != new[*slot]);
                    let pairs: Vec<[String; 2]> = changed
                        .map(|slot| [old, new].map(|slots| self.texts.part(slot, slots[slot])))
                        .collect();
                    let pairs: Vec<_> = pairs
                        .iter()
                        .map(|[old, new]| (old.trim_end(), new.trim_end()))
                        .collect();
                    plans::edit_pairs(path, &pairs)
                }
                (None, Some(new)) => plans::create(path, &self.texts.text(new)),
                (_, None) => plans::execute(&format!("rm {path}")),
            });
            put(&mut after, path, new);
        }
        if actions.is_empty() {
            actions.push(plans::chat("Nothing to do."));
        }
        let title = format!("Turn {}", self.oracle.turns.len());
        (plans::plan(&title, &actions), after)
    }

    /// Executes a plan in this process while the user saves. Returns the commit `after`, and
    /// whether it was applied.
    fn execute(
        &self,
        at: usize,
        plan: String,
        [before, late]: [&Files; 2],
    ) -> Result<(String, bool), String> {
        let saves: Vec<_> = PATHS
            .into_iter()
            .filter(|path| content(late, path) != content(before, path))
            .map(|path| self.write(at, path, content(late, path)))
            .collect();
        let mut user = Hasty {
            save: Some(Box::new(|| saves.into_iter().for_each(|save| save()))),
        };
        let mut project = self.project(at);
        let result = execute_text(&mut project, &plan, &ExecuteOptions::default(), &mut user);
        // A plan that changes nothing is not reviewed; then the user saves afterwards.
        if let Some(save) = user.save.take() {
            save();
        }
        match result.map_err(|error| format!("{error:#}"))? {
            ExecuteResult::Reviewed(ReviewedPlan::Recorded(turn))
                if turn.status() == Status::Executed =>
            {
                Ok((turn.after.to_string(), turn.is_synced()))
            }
            other => Err(format!("the plan failed: {other:?}")),
        }
    }

    /// Executes a plan with commands. It needs a real process, because teddy starts itself again to
    /// supervise commands, and in this process that would be the test program.
    fn execute_commands(&self, at: usize, plan: &str) -> Result<(String, bool), String> {
        let folder = self.checkouts[at].folder.to_str().unwrap();
        let args = ["-C", folder, "--json", "execute", "-", "-y"];
        let output = self.repo.teddy_reads(&args, plan);
        let value: serde_json::Value =
            serde_json::from_str(&output.stdout).map_err(|_| output.to_string())?;
        if value["status"] != "executed" {
            return Err(output.to_string());
        }
        let after = value["after"].as_str().unwrap().to_owned();
        Ok((after, value["synced"] == true))
    }

    fn turn(&mut self, at: usize, dice: &mut Dice) -> Result<(), String> {
        let before = self.files(at);
        let (plan, after) = self.plan(&before, dice);
        let mut late = before.clone();
        let (commit, synced) = if plan.contains("`EXECUTE`") {
            self.execute_commands(at, &plan)?
        } else {
            if dice.below(6) == 0 {
                let path = World::path(dice);
                let new = self.changed(content(&before, path), 5, dice);
                put(&mut late, path, new);
            }
            self.execute(at, plan, [&before, &late])?
        };
        let expected = match synced {
            true => merge_all(&before, &late, &after)
                .ok_or("a turn was brought over the user's edits")?,
            false => late.clone(),
        };

        let (index, here) = (self.oracle.turns.len(), self.checkouts[at].here.clone());
        let mut wanted = here.clone();
        if before != after {
            wanted.values_mut().for_each(|list| list.push(index));
            self.by_change.insert(commit, index);
        }
        let session = self.checkouts[at].session.clone();
        self.story.push(format!(
            "turn {index} in {session}@{at}: {before:?} -> {after:?}, meanwhile {late:?}, synced {synced}"
        ));
        self.checkouts[at].here = if synced { wanted.clone() } else { here.clone() };
        self.checkouts[at].is_recorded = true;
        if before != after {
            self.checkouts[at].ran.push(index);
        }
        self.oracle.turns.push(Turn {
            changed: before != after,
            before,
            after,
            below: here,
            wanted,
            stack: self.checkouts[at].here.clone(),
            synced,
            restored: None,
            over: Vec::new(),
        });
        self.sessions.get_mut(&session).unwrap().push(index);
        self.check_files(at, &expected, "a turn")
    }

    fn edit(&mut self, at: usize, dice: &mut Dice) {
        let files = self.files(at);
        for _ in 0..=dice.below(2) {
            let path = World::path(dice);
            let new = self.changed(content(&files, path), 5, dice);
            self.story
                .push(format!("the user writes {path}@{at}: {new:?}"));
            self.write(at, path, new)();
        }
    }

    fn git(&mut self, at: usize, dice: &mut Dice) {
        let branch = format!("b{}", dice.below(3));
        let new = format!("{branch}-{at}-{}", self.fresh());
        let commands: &[&[&str]] = match dice.below(12) {
            0..4 => &[&["add", "-A"], &["commit", "-q", "-m", "mine"]],
            4 => &[&["reset", "-q", "--hard"]],
            5 => &[&["reset", "-q", "--hard", "HEAD~1"]],
            6 => &[&["switch", "-q", "-c", &new]],
            7 => &[&["switch", "-q", "--ignore-other-worktrees", &branch]],
            8 => &[&["branch", "-q", "-f", &branch]],
            9 => &[&["stash", "-q", "-u"]],
            10 => &[&["stash", "pop", "-q"]],
            _ => &[&["rebase", "-q", &branch], &["rebase", "--abort"]],
        };
        for args in commands {
            self.story.push(format!("git {}@{at}", args.join(" ")));
            let output = self
                .repo
                .command("git")
                .current_dir(&self.checkouts[at].folder)
                .args(*args)
                .output();
            output.unwrap();
        }
        if dice.below(40) == 0 {
            self.repo.git(&["gc", "-q", "--prune=now"]);
        }
    }

    /// Deletes the publication ref. All content of the files then counts as the user's.
    fn lose(&mut self, at: usize) {
        let name = ["main", "linked-second"][at];
        self.repo
            .git(&["update-ref", "-d", &format!("refs/teddy/published/{name}")]);
        self.story.push(format!("lose @{at}"));
        self.checkouts[at].here.values_mut().for_each(Vec::clear);
        self.checkouts[at].is_recorded = false;
    }

    fn begin(&mut self, at: usize) {
        let name = format!("s{}", self.sessions.len());
        let mut project = self.project(at);
        let agent = agents::agent(&project, "pathfinder").unwrap();
        let transaction = project.enter("new", &mut Hasty { save: None }).unwrap();
        let session = SessionName::parse(&name).unwrap();
        start_session(&transaction, &mut project, &session, &agent).unwrap();
        self.story.push(format!("new {name}@{at}"));
        self.sessions.insert(name.clone(), Vec::new());
        self.checkouts[at].session = name;
    }

    /// Creates, forks, copies or deletes a session.
    fn session(&mut self, at: usize, dice: &mut Dice) {
        let (other, turns) = self.any_session(dice);
        let name = format!("s{}", self.sessions.len());
        match dice.below(4) {
            0 => self.begin(at),
            1 => {
                let number = dice.below(turns.len() + 1);
                let mut project = self.project(at);
                let parsed = SessionName::parse(&name).unwrap();
                branch_session(
                    &mut project,
                    &format!("{other}:{number}"),
                    &parsed,
                    &mut Hasty { save: None },
                )
                .unwrap();
                self.story
                    .push(format!("branch {other}:{number} {name}@{at}"));
                self.sessions.insert(name.clone(), turns[..number].to_vec());
                self.checkouts[at].session = name;
            }
            2 => {
                let copy = format!("refs/teddy/sessions/{name}");
                self.repo
                    .git(&["update-ref", &copy, &format!("refs/teddy/sessions/{other}")]);
                self.story.push(format!("copy {other} {name}"));
                self.sessions.insert(name, turns);
            }
            _ => {
                if self
                    .checkouts
                    .iter()
                    .any(|checkout| checkout.session == other)
                {
                    return;
                }
                self.repo
                    .git(&["update-ref", "-d", &format!("refs/teddy/sessions/{other}")]);
                self.story.push(format!("forget {other}"));
                self.forgotten.insert(other);
            }
        }
    }

    /// Returns an existing session.
    fn any_session(&self, dice: &mut Dice) -> (String, Vec<usize>) {
        let there: Vec<_> = self
            .sessions
            .iter()
            .filter(|(name, _)| !self.forgotten.contains(*name))
            .collect();
        let (name, turns) = there[dice.below(there.len())];
        (name.clone(), turns.clone())
    }

    fn switch(&mut self, at: usize, dice: &mut Dice) {
        let (other, _) = self.any_session(dice);
        switch_session(&mut self.project(at), &SessionName::parse(&other).unwrap()).unwrap();
        self.story.push(format!("switch {other}@{at}"));
        self.checkouts[at].session = other;
    }

    fn mode(dice: &mut Dice) -> Mode {
        match dice.below(10) {
            0..5 => Mode::Stop,
            5 => Mode::Ours,
            6 => Mode::Theirs,
            7 => Mode::Markers,
            _ => Mode::Exact,
        }
    }

    fn wish(mode: Mode) -> RestoreOptions {
        let on_overlap = match mode {
            Mode::Stop => OnOverlap::Stop,
            Mode::Ours => OnOverlap::Ours,
            Mode::Theirs => OnOverlap::Theirs,
            Mode::Markers => OnOverlap::Markers,
            Mode::Exact => OnOverlap::Exact,
        };
        RestoreOptions {
            on_overlap,
            ..RestoreOptions::default()
        }
    }

    /// Returns the files after a turn, and the turns in them.
    fn target(&self, turns: &[usize], number: usize) -> Option<(Files, Stacks)> {
        if number > 0 {
            let turn = &self.oracle.turns[turns[number - 1]];
            return Some((turn.after.clone(), turn.wanted.clone()));
        }
        let first = &self.oracle.turns[*turns.first()?];
        Some((first.before.clone(), first.below.clone()))
    }

    fn restore(&mut self, at: usize, dice: &mut Dice) -> Result<(), String> {
        let (mut session, mut turns) = self.any_session(dice);
        if dice.below(3) > 0 {
            session.clone_from(&self.checkouts[at].session);
            turns.clone_from(&self.sessions[&session]);
        }
        let number = turns.len() - dice.below(turns.len().min(4) + 1);
        let Some(target) = self.target(&turns, number) else {
            return Ok(());
        };
        let (now, here) = (self.files(at), self.checkouts[at].here.clone());
        let mode = World::mode(dice);
        let mut wish = World::wish(mode);
        let mut paths = PATHS.to_vec();
        let named = ["", "", "", "a.txt", "dir", "dir/sub"][dice.below(6)];
        if !named.is_empty() {
            paths.retain(|path| *path == named || path.starts_with(&format!("{named}/")));
            if !paths
                .iter()
                .any(|path| now.contains_key(path) || target.0.contains_key(path))
            {
                return Ok(());
            }
            wish.paths = vec![named.to_owned()];
        }

        let expected = self
            .oracle
            .restore((&now, &here), (&target.0, &target.1), &paths, mode);
        if expected.is_open {
            return Ok(());
        }
        let name = format!("{session}:{number}");
        self.story
            .push(format!("restore {name} {mode:?} {named}@{at}"));
        let done = restore(&self.project(at), &name, &wish, &mut Hasty { save: None });
        let done = done.map_err(|error| format!("{error:#}"))?;
        self.settle(
            at,
            (now, mode),
            (&done, expected),
            (None, Vec::new(), Vec::new()),
        )
    }

    /// Returns the position of a session after one of its turns.
    fn position(&self, turns: &[usize], number: usize) -> usize {
        if number == 0 {
            return 0;
        }
        match self.oracle.turns[turns[number - 1]].restored {
            Some((Some(position), _)) => position as usize,
            _ => number,
        }
    }

    /// Returns what can be redone after a turn.
    fn to_redo(&self, turns: &[usize], number: usize) -> Vec<u64> {
        let turn = number
            .checked_sub(1)
            .map(|at| &self.oracle.turns[turns[at]]);
        let restored = turn.and_then(|turn| turn.restored.clone());
        restored.map_or_else(Vec::new, |(_, redo)| redo)
    }

    /// Checks whether TeDDy knows which turns are in the files: the publication ref exists, or no
    /// turn ran there.
    fn is_known(&self, at: usize) -> bool {
        let Checkout {
            is_recorded, ran, ..
        } = &self.checkouts[at];
        let there = self
            .sessions
            .iter()
            .filter(|(name, _)| !self.forgotten.contains(*name));
        let mut turns = there.flat_map(|(_, turns)| turns);
        *is_recorded || !turns.any(|turn| ran.contains(turn))
    }

    /// Asks for an undo of which nothing can come.
    fn undo_nothing(&mut self, at: usize, steps: usize, mode: Mode) -> Result<Went, String> {
        let now = self.files(at);
        let undone = undo(
            &self.project(at),
            steps as u64,
            &World::wish(mode),
            &mut Hasty { save: None },
        );
        match undone {
            Err(error)
                if ["nothing to undo", "can be undone"]
                    .iter()
                    .any(|words| error.to_string().contains(words)) =>
            {
                self.check_files(at, &now, "an undo")?;
                Ok(Went::Nowhere)
            }
            other => Err(format!("there is nothing to undo, but {other:?}")),
        }
    }

    /// Takes turns back.
    fn undo(&mut self, at: usize, steps: usize, mode: Mode) -> Result<Went, String> {
        let turns = self.sessions[&self.checkouts[at].session].clone();
        let (now, here) = (self.files(at), self.checkouts[at].here.clone());
        if !self.is_known(at) {
            return self.undo_nothing(at, 1, mode);
        }
        let (mut redo, mut below) = (self.to_redo(&turns, turns.len()), here.clone());
        let (mut position, mut over) = (self.position(&turns, turns.len()), Vec::new());
        for _ in 0..steps {
            redo.push(position as u64);
            loop {
                if position == 0 {
                    return self.undo_nothing(at, steps, mode);
                }
                let index = turns[position - 1];
                position = self.position(&turns, position - 1);
                let turn = &self.oracle.turns[index];
                let has = |path: &&str| {
                    turn.before.get(path) != turn.after.get(path) && below[path].contains(&index)
                };
                let is_there = turn.restored.is_some() || PATHS.iter().any(has);
                if turn.changed && turn.synced && is_there {
                    over.push(index);
                    below = self.oracle.without(&below, index);
                    break;
                }
            }
            if mode == Mode::Exact {
                below = self.target(&turns, position).unwrap().1;
            }
        }

        let expected = match mode {
            Mode::Exact => {
                let target = self.target(&turns, position).unwrap();
                self.oracle
                    .restore((&now, &here), (&target.0, &target.1), &PATHS, mode)
            }
            _ => {
                let crossed: Vec<Crossing> = over
                    .iter()
                    .map(|turn| self.oracle.taken_back(*turn))
                    .collect();
                self.oracle.over((&now, &here), &crossed, mode)
            }
        };
        if expected.is_open {
            return Ok(Went::Unknown);
        }
        self.story
            .push(format!("undo {steps} {mode:?}@{at}: {over:?}"));
        let done = undo(
            &self.project(at),
            steps as u64,
            &World::wish(mode),
            &mut Hasty { save: None },
        );
        let done = done.map_err(|error| format!("{error:#}"))?;
        let went = Went::of(&done);
        self.settle(
            at,
            (now, mode),
            (&done, expected),
            (Some(position as u64), redo, over.clone()),
        )?;
        if mode != Mode::Exact {
            self.check_nothing_added(at, &here, &over)?;
        }
        Ok(went)
    }

    /// Checks that an undo of turns brought no other turn into a file.
    fn check_nothing_added(
        &self,
        at: usize,
        before: &Stacks,
        over: &[usize],
    ) -> Result<(), String> {
        let is_restore = |turn: &usize| self.oracle.turns[*turn].restored.is_some();
        for (path, list) in &self.checkouts[at].here {
            let added = list.iter().find(|turn| !before[path].contains(turn));
            if let Some(added) = added.filter(|_| !over.iter().any(is_restore)) {
                return Err(format!("the undo of {over:?} added {added} to {path}"));
            }
        }
        Ok(())
    }

    /// Does turns again.
    fn redo(&mut self, at: usize, steps: usize, mode: Mode) -> Result<Went, String> {
        let turns = self.sessions[&self.checkouts[at].session].clone();
        let (now, here) = (self.files(at), self.checkouts[at].here.clone());
        let mut left = self.to_redo(&turns, turns.len());
        if left.len() < steps {
            let redone = redo(
                &self.project(at),
                steps as u64,
                &World::wish(mode),
                &mut Hasty { save: None },
            );
            let expected = match left.len() {
                0 => "nothing to redo".to_owned(),
                1 => "only 1 turn can be redone".to_owned(),
                count => format!("only {count} turns can be redone"),
            };
            return match redone {
                Err(error) if error.to_string().starts_with(&expected) => Ok(Went::Nowhere),
                other => Err(format!("expected {expected:?}, not {other:?}")),
            };
        }

        let (mut undo, mut crossed, mut target) = (turns.len(), Vec::new(), 0);
        for _ in 0..steps {
            while self.to_redo(&turns, undo - 1).len() >= left.len() {
                undo -= 1;
            }
            let step = left.len() - self.to_redo(&turns, undo - 1).len();
            crossed.push(self.oracle.step_taken_back(turns[undo - 1], step));
            target = left.pop().unwrap();
        }

        let expected = match mode {
            Mode::Exact => {
                let target = self.target(&turns, target as usize).unwrap();
                self.oracle
                    .restore((&now, &here), (&target.0, &target.1), &PATHS, mode)
            }
            _ => self.oracle.over((&now, &here), &crossed, mode),
        };
        if expected.is_open {
            return Ok(Went::Unknown);
        }
        self.story.push(format!("redo {steps} {mode:?}@{at}"));
        let done = redo(
            &self.project(at),
            steps as u64,
            &World::wish(mode),
            &mut Hasty { save: None },
        );
        let done = done.map_err(|error| format!("{error:#}"))?;
        let went = Went::of(&done);
        self.settle(
            at,
            (now, mode),
            (&done, expected),
            (Some(target), left, Vec::new()),
        )?;
        Ok(went)
    }

    /// Returns what undo and redo go by: the files, the turns in them, where the session stands, and what
    /// can be redone.
    fn state(&mut self, at: usize) -> (Files, Stacks, usize, Vec<u64>) {
        let turns = self.sessions[&self.checkouts[at].session].clone();
        (
            self.files(at),
            self.checkouts[at].here.clone(),
            self.position(&turns, turns.len()),
            self.to_redo(&turns, turns.len()),
        )
    }

    /// Checks the laws: N undos are `undo N`, N redos are `redo N`, and a redo at once takes an undo back.
    fn laws(&mut self, at: usize, dice: &mut Dice) -> Result<(), String> {
        let wanted = 1 + dice.below(3);
        let mut states = vec![self.state(at)];
        let mut stopped = Went::There;
        while states.len() <= wanted && stopped == Went::There {
            stopped = self.undo(at, 1, Mode::Stop)?;
            if stopped == Went::There {
                states.push(self.state(at));
            }
        }

        let steps = states.len() - 1;
        if steps > 0 {
            let all_at_once: [(&str, bool); 4] = [
                ("redo N after N undos", false),
                ("undo N", true),
                ("N redos after undo N", false),
                ("undo N, again", true),
            ];
            for (number, (law, is_undo)) in all_at_once.into_iter().enumerate() {
                // The third one goes step by step.
                let (times, each) = if number == 2 { (steps, 1) } else { (1, steps) };
                for time in 1..=times {
                    let went = match is_undo {
                        true => self.undo(at, each, Mode::Stop)?,
                        false => self.redo(at, each, Mode::Stop)?,
                    };
                    if went == Went::Unknown {
                        return Ok(());
                    }
                    let expected = match is_undo {
                        true => &states[steps],
                        false if number == 2 => &states[steps - time],
                        false => &states[0],
                    };
                    let found = self.state(at);
                    if went != Went::There || found != *expected {
                        return Err(format!(
                            "law broken: {law}, N = {steps}: {went:?}\n{found:?}\nnot\n{expected:?}"
                        ));
                    }
                }
            }
            if self.redo(at, steps, Mode::Stop)? != Went::There {
                return Err(format!("law broken: redo {steps} after undo {steps}"));
            }
        }

        // As many undos as do not go one by one do not go at once.
        if stopped == Went::Nowhere && self.undo(at, steps + 1, Mode::Stop)? == Went::There {
            return Err(format!("law broken: undo {} goes", steps + 1));
        }
        Ok(())
    }

    /// Compares the result of a restore with the expected one, and records its turn.
    fn settle(
        &mut self,
        at: usize,
        (now, mode): (Files, Mode),
        (done, mut expected): (&RestoreResult, Expected),
        (position, redo, over): (Option<u64>, Vec<u64>, Vec<usize>),
    ) -> Result<(), String> {
        let stops = mode == Mode::Stop && !expected.overlaps.is_empty();
        if stops {
            let found: BTreeSet<&str> = done.overlaps.iter().map(String::as_str).collect();
            if found != expected.overlaps || done.commit.is_some() {
                return Err(format!("{:?} overlap, not {found:?}", expected.overlaps));
            }
            return self.check_files(at, &now, "an overlap");
        }
        // A restore that has nothing to change is not recorded.
        let is_needless = position.is_none()
            && now == expected.files
            && self.oracle.touching(&self.checkouts[at].here)
                == self.oracle.touching(&expected.stack)
            && done.commit.is_none();
        if is_needless && done.overlaps.is_empty() {
            return self.check_files(at, &now, "a needless restore");
        }
        if !done.overlaps.is_empty() || done.commit.is_none() {
            return Err(format!("nothing overlaps, but {:?}", done.overlaps));
        }
        if mode == Mode::Markers {
            let after = self.files(at);
            for path in &expected.overlaps {
                put(&mut expected.files, path, content(&after, path));
            }
        }
        let session = self.checkouts[at].session.clone();
        let index = self.oracle.turns.len();
        if now != expected.files {
            self.checkouts[at].ran.push(index);
        }
        self.oracle.turns.push(Turn {
            changed: now != expected.files,
            before: now,
            after: expected.files.clone(),
            below: self.checkouts[at].here.clone(),
            wanted: expected.stack.clone(),
            stack: expected.stack.clone(),
            synced: true,
            restored: Some((position, redo)),
            over,
        });
        self.sessions.get_mut(&session).unwrap().push(index);
        self.checkouts[at].here = expected.stack;
        self.checkouts[at].is_recorded = true;
        self.check_files(at, &expected.files, "a restore")
    }

    fn check_files(&mut self, at: usize, expected: &Files, after: &str) -> Result<(), String> {
        let found = self.files(at);
        if found == *expected {
            return Ok(());
        }
        Err(format!(
            "after {after} the files are\n{found:?}\nnot\n{expected:?}"
        ))
    }

    /// Compares the turns that TeDDy believes to be in the files with the model.
    fn check_stack(&mut self, at: usize) -> Result<(), String> {
        let project = self.project(at);
        let session = SessionName::parse(&self.checkouts[at].session).unwrap();
        let tip = project.store().tip(&session).unwrap();
        let reader = Reader::new(&project.repository);
        let files = || Ok(snapshot(&project.checkout(), &[])?.tree);
        let stack = reader
            .current(&tip, &files)
            .map_err(|error| format!("{error:#}"))?;
        for path in PATHS {
            let (mut found, mut top) = (Vec::new(), stack.at(path.as_bytes()));
            while let Some(id) = top {
                let patch = reader.patch(id).map_err(|error| format!("{error:#}"))?;
                found.insert(0, self.by_change[&patch.change.after.to_string()]);
                top = patch.base.at(path.as_bytes());
            }
            let expected = &self.checkouts[at].here[path];
            if found != *expected {
                return Err(format!(
                    "{path} is said to have {found:?}, not {expected:?}"
                ));
            }
        }
        Ok(())
    }
}
