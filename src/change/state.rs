//! `STATE.yaml`: where a change stands, and how it came there.
//!
//! Rules C1-C8 of `docs/formats/change-state.md`.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::document::Documents;
use super::entry::ChangeEntry;
use super::id::ChangeId;
use super::phase::{self, ChangeEvent, ChangePhase, Illegal};
use super::usage::{ChangeUsage, StepUsage};
use crate::git::object::{CommitId, TreeId};
use crate::text::yaml;

/// The name of the file.
pub const FILE: &str = "STATE.yaml";
/// The version of the format that we write.
pub const SCHEMA: u64 = 1;
/// The largest file that is read, in bytes.
pub const MAX_FILE: usize = 4 << 20;

/// The state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeState {
    /// The version of the format.
    #[serde(default = "schema")]
    pub schema_version: u64,
    /// The change.
    pub change_id: String,
    /// Where it stands: the one field on which workflows decide.
    pub phase: ChangePhase,
    /// The iteration of the proposal, from 1; each reproposal adds one.
    #[serde(default = "first")]
    pub iteration: u32,
    /// The last step.
    #[serde(default)]
    pub last_action: Option<String>,
    /// What the user asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When it began, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// When it was last saved, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// The project as it was when the change began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// The documents as they were last challenged or approved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checksums: BTreeMap<String, Checksum>,
    /// What all models took.
    #[serde(default)]
    pub usage: ChangeUsage,
    /// Every step, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ChangeEntry>,
    /// What a newer version, or the user, keeps here.
    #[serde(flatten)]
    pub rest: serde_yaml::Mapping,
}

/// The project as it was when a change began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// The commit that was checked out; nothing on an unborn branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The project's specs, which are also in the change's tree; nothing where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specs: Option<TreeId>,
}

/// What a document was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// `sha256:` and 64 digits.
    pub hash: String,
    /// When it was challenged or approved, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validated_at: Option<String>,
}

/// Returns the version that a file without one has.
fn schema() -> u64 {
    SCHEMA
}

/// Returns the first iteration.
fn first() -> u32 {
    1
}

impl ChangeState {
    /// Returns the state of a change that is about to be proposed.
    pub fn new(id: &ChangeId, description: &str, base: Base, now: &str) -> ChangeState {
        ChangeState {
            schema_version: SCHEMA,
            change_id: id.to_string(),
            phase: ChangePhase::Proposed,
            iteration: 1,
            last_action: None,
            description: Some(description.trim().to_owned()),
            created_at: Some(now.to_owned()),
            updated_at: Some(now.to_owned()),
            base: Some(base),
            checksums: BTreeMap::new(),
            usage: ChangeUsage::default(),
            history: Vec::new(),
            rest: serde_yaml::Mapping::new(),
        }
    }

    /// Takes a step: the phase that its event leads to, the iteration, the history, what it took.
    ///
    /// # Errors
    /// [`Illegal`]; nothing is changed then.
    pub fn take(&mut self, event: ChangeEvent, mut entry: ChangeEntry) -> Result<(), Illegal> {
        let begins = self.history.is_empty()
            && (self.phase, event) == (ChangePhase::Proposed, ChangeEvent::Propose);
        let before = if begins { None } else { Some(self.phase) };
        self.phase = phase::next(before, event)?;
        if event == ChangeEvent::Repropose {
            self.iteration = self.iteration.saturating_add(1);
        }

        entry.phase = self.phase;
        self.last_action = Some(entry.step.clone());
        self.updated_at = Some(entry.at.clone());
        if let Some(taken) = &entry.usage {
            self.usage.add(taken);
        }

        self.history.push(entry);
        Ok(())
    }

    /// Keeps what the documents are, as challenged or approved.
    pub fn seal(&mut self, documents: &Documents, now: &str) {
        self.checksums.clear();
        for (name, text) in &documents.0 {
            self.seal_one(name, text, now);
        }
    }

    /// Keeps what one document is, after a step of ours that changed it without changing what it
    /// means.
    pub fn seal_one(&mut self, name: &str, text: &str, now: &str) {
        self.checksums.insert(
            name.to_owned(),
            Checksum {
                hash: hash(text),
                validated_at: Some(now.to_owned()),
            },
        );
    }

    /// Returns the documents that were changed, added or removed since they were challenged; none
    /// before the first challenge.
    pub fn stale(&self, documents: &Documents) -> Vec<String> {
        if self.checksums.is_empty() {
            return Vec::new();
        }

        let differs = |name: &&String| {
            self.checksums.get(*name).map(|sum| &sum.hash)
                != documents.0.get(*name).map(|text| hash(text)).as_ref()
        };
        let mut names: Vec<String> = documents.0.keys().filter(differs).cloned().collect();
        names.extend(
            self.checksums
                .keys()
                .filter(|name| !documents.0.contains_key(*name))
                .cloned(),
        );

        names
    }

    /// Returns how many answers of a model the steps of the change took, its session's turns left
    /// out.
    pub fn answers_of(&self, model: &str) -> usize {
        self.taken_for_documents()
            .filter(|taken| taken.model == model)
            .map(|taken| usize::try_from(taken.calls).unwrap_or(usize::MAX))
            .sum()
    }

    /// Returns what the steps of the change count against the limit of dollars, its session's turns
    /// left out.
    pub fn spent_on_documents(&self) -> f64 {
        self.taken_for_documents()
            .map(|taken| taken.cost.unwrap_or_default() + taken.spent.unwrap_or_default())
            .sum()
    }

    /// Returns what each step took that was no turn.
    fn taken_for_documents(&self) -> impl Iterator<Item = &StepUsage> {
        self.history
            .iter()
            .filter(|entry| entry.turn.is_none())
            .filter_map(|entry| entry.usage.as_ref())
    }

    /// Returns the newest step of a kind, with its position.
    pub fn last(&self, step: &str) -> Option<(usize, &ChangeEntry)> {
        self.history
            .iter()
            .enumerate()
            .rev()
            .find(|(_, entry)| entry.step == step)
    }
}

/// Returns the checksum of a document.
fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .fold("sha256:".to_owned(), |all, byte| format!("{all}{byte:02x}"))
}

/// Reads `STATE.yaml`.
///
/// # Errors
/// Where it is no YAML, lacks its id or phase, has a phase that is none, or was written by a newer
/// version.
pub fn read(text: &str) -> anyhow::Result<ChangeState> {
    yaml::guard(text, MAX_FILE)?;
    let version: StateVersion =
        serde_yaml::from_str(text).context("it is not the state of a change")?;
    anyhow::ensure!(
        version.schema_version <= SCHEMA,
        "it has schema_version {}, and this teddy reads up to {SCHEMA}: it was written by a newer one",
        version.schema_version
    );
    let state: ChangeState = serde_yaml::from_str(text)?;

    ChangeId::parse(&state.change_id)?;
    Ok(state)
}

/// The one field that every version has.
#[derive(Deserialize)]
struct StateVersion {
    /// The version of the format.
    #[serde(default = "schema")]
    schema_version: u64,
}

/// Writes `STATE.yaml`.
pub fn write(state: &ChangeState) -> String {
    serde_yaml::to_string(state).expect("plain structs of strings and numbers are always YAML")
}

#[cfg(test)]
mod tests;
