//! The files as the actions validated so far would leave them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use super::{Entry, Facts};
use crate::plan::document::Plan;
use crate::plan::state::{FileState, StateMode};
use crate::text::edit;
use crate::text::path::{RepoPath, fold};
use crate::text::resource::Resource;
use crate::text::sanitize::sanitize_line;

/// Other files searched for a FIND that does not match.
const MAX_OTHERS: usize = 200;

/// Their total size, in bytes.
const MAX_OTHER_BYTES: usize = 8 << 20;

/// Suggested names for a missing file.
const MAX_NAMES: usize = 3;

/// The snapshot with the plan's changes.
pub struct SimulatedFiles<'a> {
    pub facts: &'a dyn Facts,
    /// Set after an EXECUTE, whose effect on the files is unknown.
    pub unknown_after_command: bool,
    /// Paths that the plan wrote; `None` for those it removed.
    pub(super) written: BTreeMap<RepoPath, Option<FileState>>,
    /// Files whose entire content comes from the plan, so the model knows it.
    pub created: BTreeSet<RepoPath>,
    /// REPLACE texts of failed pairs, per file.
    pub failed_edits: BTreeMap<RepoPath, Vec<String>>,
    /// Names that differ only in case or Unicode normalization.
    pub case_collisions: NameCollisions,
    /// Files of the plan and the context, cached for the search of a misplaced FIND.
    others: OnceCell<Vec<(String, String)>>,
}

/// Result of looking up a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// Nothing exists, and no parent blocks the path.
    Absent,
    File(Vec<u8>),
    Dir,
    /// Something that no action enters, such as `a symbolic link`.
    Other(&'static str),
    /// A parent is not a directory: its path, and what it is.
    Blocked(RepoPath, &'static str),
}

impl<'a> SimulatedFiles<'a> {
    /// Starts with the unchanged snapshot.
    pub fn new(facts: &'a dyn Facts, plan: &Plan) -> anyhow::Result<SimulatedFiles<'a>> {
        Ok(SimulatedFiles {
            facts,
            unknown_after_command: false,
            written: BTreeMap::new(),
            created: BTreeSet::new(),
            failed_edits: BTreeMap::new(),
            case_collisions: NameCollisions::of(plan, facts)?,
            others: OnceCell::new(),
        })
    }

    pub fn look_up(&self, path: &RepoPath) -> anyhow::Result<Lookup> {
        for dir in path.parents().rev() {
            match self.at(&dir)? {
                Lookup::Dir => {}
                Lookup::Absent => return Ok(Lookup::Absent),
                Lookup::File(_) => return Ok(Lookup::Blocked(dir, "a file")),
                Lookup::Other(kind) | Lookup::Blocked(_, kind) => {
                    return Ok(Lookup::Blocked(dir, kind));
                }
            }
        }

        self.at(path)
    }

    /// Like [`SimulatedFiles::look_up`], for a path whose parents are directories.
    fn at(&self, path: &RepoPath) -> anyhow::Result<Lookup> {
        if let Some(Some(state)) = self.written.get(path) {
            return Ok(match state.mode {
                StateMode::Link => Lookup::Other("a symbolic link"),
                _ => Lookup::File(state.bytes.clone()),
            });
        }

        // Before the snapshot: a file that the plan wrote turns its parents into directories.
        if self.written_below(path).any(|(_, state)| state.is_some()) {
            return Ok(Lookup::Dir);
        }
        // Nothing of the snapshot remains below a path that the plan wrote or removed.
        let is_gone = |above: &str| self.written.contains_key(above);
        if self.written.contains_key(path) || path.ancestors().any(is_gone) {
            return Ok(Lookup::Absent);
        }

        Ok(match self.facts.entry(path)? {
            Entry::Absent => Lookup::Absent,
            Entry::File { bytes } => Lookup::File(bytes),
            Entry::Dir if self.is_emptied(path)? => Lookup::Absent,
            Entry::Dir => Lookup::Dir,
            Entry::Link => Lookup::Other("a symbolic link"),
            Entry::Repository => Lookup::Other("a repository of its own"),
            Entry::LeftOut => Lookup::Other(LEFT_OUT),
        })
    }

    /// Says why there is no file to work on, and where a symbolic link in the way leads.
    pub fn obstacle(&self, path: &RepoPath, entry: &Lookup) -> anyhow::Result<Option<String>> {
        let Some(obstacle) = entry.obstacle() else {
            return Ok(None);
        };
        let target = self.link_of(path, entry)?;
        let target = target.map(|(_, target)| format!(" to `{}`", sanitize_line(&target)));
        Ok(Some(obstacle + &target.unwrap_or_default()))
    }

    /// Returns the path in the project to which a path leads through a symbolic link, if something is
    /// there.
    pub fn destination(&self, path: &RepoPath, entry: &Lookup) -> anyhow::Result<Option<RepoPath>> {
        let Some((link, target)) = self.link_of(path, entry)? else {
            return Ok(None);
        };
        let mut parts: Vec<&str> = link.as_str().split('/').collect();
        parts.pop();
        let tail = path.as_str()[link.as_str().len()..].trim_start_matches('/');
        for part in target.split('/').chain(tail.split('/')) {
            match part {
                "" | "." => {}
                ".." if parts.pop().is_none() => return Ok(None),
                ".." => {}
                part => parts.push(part),
            }
        }

        let inside = !target.starts_with('/');
        let destination = RepoPath::parse(&parts.join("/")).ok().filter(|_| inside);
        match destination {
            Some(path) if matches!(self.look_up(&path)?, Lookup::File(_) | Lookup::Dir) => {
                Ok(Some(path))
            }
            _ => Ok(None),
        }
    }

    /// Returns the symbolic link that is at a path or above it, and its target.
    fn link_of(
        &self,
        path: &RepoPath,
        entry: &Lookup,
    ) -> anyhow::Result<Option<(RepoPath, String)>> {
        let at = match entry {
            Lookup::Other(_) => path.clone(),
            Lookup::Blocked(above, _) => above.clone(),
            Lookup::Absent | Lookup::File(_) | Lookup::Dir => return Ok(None),
        };
        let state = match self.written.get(&at) {
            Some(state) => state.clone(),
            None => self.facts.state(&at)?,
        };
        let link = state.filter(|state| state.mode == StateMode::Link);
        Ok(link.map(|link| (at, String::from_utf8_lossy(&link.bytes).into_owned())))
    }

    /// Returns whether a file of the snapshot is not on disk, and the plan did not make it.
    pub fn is_hidden(&self, path: &RepoPath) -> anyhow::Result<bool> {
        Ok(!self.written.contains_key(path) && self.facts.is_hidden(path)?)
    }

    /// Returns the plan's changes below a path.
    fn written_below(
        &self,
        path: &RepoPath,
    ) -> impl Iterator<Item = (&RepoPath, &Option<FileState>)> {
        let prefix = format!("{path}/");
        let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
        let written = self.written.range::<str, _>(from);
        let prefix = prefix.clone();
        written.take_while(move |(path, _)| path.as_str().starts_with(&prefix))
    }

    /// Returns whether the plan removed everything in a directory of the snapshot.
    fn is_emptied(&self, dir: &RepoPath) -> anyhow::Result<bool> {
        if self.written_below(dir).next().is_none() {
            return Ok(false);
        }

        for name in self.facts.names(dir.as_str())? {
            let Ok(path) = RepoPath::parse(&format!("{dir}/{name}")) else {
                return Ok(false);
            };
            if !self.written.contains_key(&path) && !self.is_emptied(&path)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the file or link at a path, with its mode.
    pub fn state(&self, path: &RepoPath) -> anyhow::Result<Option<FileState>> {
        if let Some(state) = self.written.get(path) {
            return Ok(state.clone());
        }

        match self.look_up(path)? {
            Lookup::File(_) | Lookup::Other(_) => self.facts.state(path),
            _ => Ok(None),
        }
    }

    /// Writes a file and keeps its executable bit.
    pub fn write(&mut self, path: &RepoPath, bytes: Vec<u8>) -> anyhow::Result<()> {
        let mode = match self.state(path)?.map(|state| state.mode) {
            Some(StateMode::Executable) => StateMode::Executable,
            _ => StateMode::Plain,
        };
        self.set_state(path, Some(FileState { mode, bytes }));
        Ok(())
    }

    pub fn set_state(&mut self, path: &RepoPath, state: Option<FileState>) {
        self.written.insert(path.clone(), state);
    }

    /// Forgets the name of a removed path, and of the directories that became empty with it.
    pub fn forget_name(&mut self, path: &RepoPath) -> anyhow::Result<()> {
        self.case_collisions.remove(path.as_str());
        for dir in path.parents() {
            if !self.case_collisions.contains(dir.as_str()) || self.at(&dir)? != Lookup::Absent {
                break;
            }
            self.case_collisions.remove(dir.as_str());
        }
        Ok(())
    }

    /// Returns whether an EDIT can change the file: the model has seen its text.
    pub fn is_known(&self, path: &RepoPath) -> bool {
        self.created.contains(path) || self.facts.in_context(&Resource::File(path.clone()))
    }

    /// Returns names of existing files similar to a missing one.
    pub fn names_like(&self, path: &RepoPath) -> anyhow::Result<Vec<String>> {
        let name = path.file_name();
        let same = |other: &&String| {
            other
                .rsplit('/')
                .next()
                .is_some_and(|n| n.eq_ignore_ascii_case(name))
        };
        Ok(self
            .facts
            .paths()?
            .iter()
            .filter(same)
            .take(MAX_NAMES)
            .cloned()
            .collect())
    }

    /// Returns the text files that the plan edits or the context lists, as in the snapshot.
    pub fn others(&self, plan: &Plan) -> anyhow::Result<&[(String, String)]> {
        if let Some(others) = self.others.get() {
            return Ok(others);
        }
        let collected = self.collect_others(plan)?;
        Ok(self.others.get_or_init(|| collected))
    }

    /// Reads those files, within the limits.
    fn collect_others(&self, plan: &Plan) -> anyhow::Result<Vec<(String, String)>> {
        let edits = plan.actions.iter().map(|action| &action.kind);
        let edits = edits.filter(|kind| kind.pairs().is_some());
        let edited = edits.filter_map(|kind| kind.path().cloned());
        let listed = self
            .facts
            .paths()?
            .into_iter()
            .filter_map(|path| RepoPath::parse(&path).ok());
        let listed = listed.filter(|path| self.facts.in_context(&Resource::File(path.clone())));
        let (mut visited, mut others, mut size) = (BTreeSet::new(), Vec::new(), 0);

        for path in edited.chain(listed) {
            if others.len() >= MAX_OTHERS || size >= MAX_OTHER_BYTES {
                break;
            }

            if !visited.insert(path.clone()) {
                continue;
            }

            let Lookup::File(bytes) = self.look_up(&path)? else {
                continue;
            };
            if bytes.len() > edit::MAX_OTHER {
                continue;
            }

            if let Ok(text) = String::from_utf8(bytes) {
                size += text.len();
                others.push((path.to_string(), text));
            }
        }

        Ok(others)
    }
}

impl Lookup {
    /// Describes why a path is not a file to work on, such as `is a directory`; `None` if it is a
    /// file or does not exist.
    pub fn obstacle(&self) -> Option<String> {
        match self {
            Lookup::Absent | Lookup::File(_) => None,
            Lookup::Dir => Some("is a directory".to_owned()),
            Lookup::Other(kind) => Some(format!("is {kind}")),
            Lookup::Blocked(above, kind) => Some(format!("is below `{above}`, which is {kind}")),
        }
    }
}

pub const LEFT_OUT: &str = "left out of the snapshot: too large, a secret, or unreadable";

/// Spellings in use for each name that the plan creates.
pub struct NameCollisions {
    /// By folded name: the spellings in the snapshot and in the plan so far.
    spellings: HashMap<String, BTreeSet<String>>,
}

impl NameCollisions {
    /// Returns whether a name is recorded in exactly this spelling.
    pub fn contains(&self, name: &str) -> bool {
        let spellings = self.spellings.get(&fold(name));
        spellings.is_some_and(|spellings| spellings.contains(name))
    }

    /// Removes a name that the plan deletes.
    pub fn remove(&mut self, name: &str) {
        if let Some(spellings) = self.spellings.get_mut(&fold(name)) {
            spellings.remove(name);
        }
    }

    /// Collects the snapshot's spellings of the paths that a plan creates, and of their
    /// directories.
    pub fn of(plan: &Plan, facts: &dyn Facts) -> anyhow::Result<NameCollisions> {
        let mut spellings: HashMap<String, BTreeSet<String>> = HashMap::new();
        let mut dirs = FoldedDirs(HashMap::new());
        for path in plan
            .actions
            .iter()
            .filter_map(|action| action.kind.new_path())
        {
            let mut above = vec![String::new()];
            for name in path.as_str().split('/') {
                let mut found = Vec::new();
                for dir in above {
                    found.extend(dirs.spellings(facts, &dir, name)?);
                }
                for spelling in &found {
                    let known = spellings.entry(fold(spelling)).or_default();
                    known.insert(spelling.clone());
                }
                above = found;
            }
        }
        Ok(NameCollisions { spellings })
    }

    /// Records a path that the plan creates. If it, or a directory above it, exists in another
    /// spelling, returns that name and the other spelling.
    pub fn add(&mut self, path: &RepoPath) -> Option<(String, String)> {
        let mut collisions = BTreeMap::new();
        for name in path.ancestors().chain([path.as_str()]) {
            let spellings = self.spellings.entry(fold(name)).or_default();
            if !spellings.contains(name) {
                collisions.extend(
                    spellings
                        .first()
                        .map(|other| (name.to_owned(), other.clone())),
                );
                spellings.insert(name.to_owned());
            }
        }
        // The topmost name, because its twin explains all names below it.
        collisions.pop_first()
    }
}

/// The names in directories of the snapshot, by their folded form.
struct FoldedDirs(HashMap<String, HashMap<String, Vec<String>>>);

impl FoldedDirs {
    /// Returns the paths of the entries of a directory whose names equal a name when folded.
    fn spellings(
        &mut self,
        facts: &dyn Facts,
        dir: &str,
        name: &str,
    ) -> anyhow::Result<Vec<String>> {
        if !self.0.contains_key(dir) {
            let mut names: HashMap<String, Vec<String>> = HashMap::new();
            for name in facts.names(dir)? {
                names.entry(fold(&name)).or_default().push(name);
            }
            self.0.insert(dir.to_owned(), names);
        }

        let path_of = |name: &String| match dir {
            "" => name.clone(),
            dir => format!("{dir}/{name}"),
        };
        let names = self.0.get(dir).and_then(|names| names.get(&fold(name)));
        Ok(names.into_iter().flatten().map(path_of).collect())
    }
}
