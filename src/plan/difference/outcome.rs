//! Computes the files after a plan, without a repository.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{FileState, StateMode, TakenBytes};
use crate::plan::Plan;
use crate::plan::diagnostic::{Diagnostic, in_order};
use crate::plan::validate::{Entry, Facts, written};
use crate::text::path::RepoPath;
use crate::text::resource::Resource;

/// The files before the plan, as facts for the validation.
struct FilesBefore<'a> {
    plan: &'a Plan,
    state: &'a dyn Fn(&RepoPath) -> Option<FileState>,
    /// Directories of the files that the plan writes.
    dirs: HashSet<&'a str>,
    taken_bytes: &'a TakenBytes,
}

/// Returns the state of each path that a plan writes, or the diagnostics of the plan. `before`
/// returns the previous state of a path.
pub fn files_after(
    plan: &Plan,
    before: &dyn Fn(&RepoPath) -> Option<FileState>,
    taken_bytes: &TakenBytes,
) -> Result<BTreeMap<RepoPath, Option<FileState>>, Vec<Diagnostic>> {
    let facts = FilesBefore {
        plan,
        state: before,
        dirs: plan.targets().flat_map(RepoPath::ancestors).collect(),
        taken_bytes,
    };
    let (simulation, written) =
        written(plan, &facts).map_err(|error| vec![Diagnostic::new(1, format!("{error:#}"))])?;
    if simulation.diagnostics.is_empty() {
        Ok(written)
    } else {
        Err(in_order(simulation.diagnostics))
    }
}

impl Facts for FilesBefore<'_> {
    fn entry(&self, path: &RepoPath) -> anyhow::Result<Entry> {
        Ok(match (self.state)(path) {
            None if self.dirs.contains(path.as_str()) => Entry::Dir,
            None => Entry::Absent,
            Some(state) if state.mode == StateMode::Link => Entry::Link,
            Some(state) => Entry::File { bytes: state.bytes },
        })
    }

    fn paths(&self) -> anyhow::Result<Vec<String>> {
        let targets = self.plan.targets();
        let existing = targets.filter(|path| (self.state)(path).is_some());
        let mut paths: Vec<String> = existing.map(ToString::to_string).collect();
        paths.sort();
        Ok(paths)
    }

    fn in_context(&self, _resource: &Resource) -> bool {
        true
    }

    fn in_turn_context(&self, _resource: &Resource) -> bool {
        true
    }

    fn is_from_agent(&self) -> bool {
        true
    }

    fn memos(&self) -> &[String] {
        &[]
    }

    fn agents(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    fn untrusted_agents(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    fn search_obstacle(&self) -> Option<String> {
        None
    }

    fn has_artifact(&self, _resource: &Resource) -> bool {
        false
    }

    fn state(&self, path: &RepoPath) -> anyhow::Result<Option<FileState>> {
        Ok((self.state)(path))
    }

    fn taken_bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.taken_bytes.get(name).cloned()
    }
}
