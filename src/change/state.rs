//! `STATE.yaml`: the phase and history of a change, according to the rules C1-C8 of
//! `docs/formats/change-state.md`.
//!
//! Keeps unknown fields of later versions and of the user.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::document::Documents;
use super::id::ChangeId;
use super::phase::{self, ChangePhase, ChangeStep};
use super::review::Issues;
use crate::change::review::ReviewVerdict;
use crate::git::object::{CommitId, TreeId};
use crate::session::limited::dollars;
use crate::text::{hex, yaml};

pub const FILE: &str = "STATE.yaml";

pub const SCHEMA: u64 = 1;

/// In bytes.
pub const MAX_FILE: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeState {
    #[serde(default = "schema")]
    pub schema_version: u64,
    pub change_id: String,
    /// Workflows decide on this alone.
    pub phase: ChangePhase,
    /// From 1. Each reproposal increments it.
    #[serde(default = "first")]
    pub iteration: u32,
    #[serde(default)]
    pub last_action: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// In RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// From when they were last challenged or approved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checksums: BTreeMap<String, Checksum>,
    /// Of all models.
    #[serde(default)]
    pub usage: ChangeUsage,
    /// Oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ChangeEntry>,
    #[serde(flatten)]
    pub rest: serde_yaml::Mapping,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// `None` on an unborn branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The project's specs, which the change's tree also contains. `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specs: Option<TreeId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// `sha256:` and 64 hexadecimal digits.
    pub hash: String,
    /// In RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validated_at: Option<String>,
}

fn schema() -> u64 {
    SCHEMA
}

fn first() -> u32 {
    1
}

impl ChangeState {
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

    /// Also sets the step and phase of the entry. On error, the state is unchanged, and its phase is
    /// returned.
    pub fn apply(&mut self, step: ChangeStep, entry: ChangeEntry) -> Result<(), ChangePhase> {
        let phase = phase::next(self.phase, step, entry.verdict).ok_or(self.phase)?;
        self.phase = phase;
        if step == ChangeStep::Reproposal {
            self.iteration = self.iteration.saturating_add(1);
        }

        self.last_action = Some(step.word().to_owned());
        self.updated_at = Some(entry.at.clone());
        if let Some(usage) = &entry.usage {
            self.usage.add(usage);
        }

        self.history.push(ChangeEntry {
            step: step.word().to_owned(),
            phase,
            ..entry
        });
        Ok(())
    }

    /// After a challenge or approval.
    pub fn seal(&mut self, documents: &Documents, now: &str) {
        self.checksums.clear();
        for (name, text) in &documents.0 {
            self.seal_one(name, text, now);
        }
    }

    /// After TeDDy changed a document without changing its meaning.
    pub fn seal_one(&mut self, name: &str, text: &str, now: &str) {
        let sum = Checksum {
            hash: hash(text),
            validated_at: Some(now.to_owned()),
        };
        self.checksums.insert(name.to_owned(), sum);
    }

    /// Documents that were changed, added or removed since the last challenge. Empty before the
    /// first.
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

    /// Answers by a model for documents, without the session's turns.
    pub fn answers_of(&self, model: &str) -> usize {
        self.document_usage()
            .filter(|usage| usage.model == model)
            .map(|usage| usize::try_from(usage.calls).unwrap_or(usize::MAX))
            .sum()
    }

    /// Dollars that documents count against the limit, without the session's turns.
    pub fn spent_on_documents(&self) -> f64 {
        self.document_usage().map(StepUsage::dollars).sum()
    }

    fn document_usage(&self) -> impl Iterator<Item = &StepUsage> {
        self.history
            .iter()
            // Usage of a turn is in the session's metadata.
            .filter(|entry| entry.turn.is_none())
            .filter_map(|entry| entry.usage.as_ref())
    }
}

fn hash(text: &str) -> String {
    format!("sha256:{}", hex(&Sha256::digest(text.as_bytes())))
}

/// Fails with an explanation if the schema is newer than [`SCHEMA`].
pub fn read(text: &str) -> anyhow::Result<ChangeState> {
    yaml::guard(text, MAX_FILE)?;
    // Check the version before the other fields, which a later version can have changed.
    let version: StateVersion =
        serde_yaml::from_str(text).context("it is not the state of a change")?;
    anyhow::ensure!(
        version.schema_version <= SCHEMA,
        "it has schema_version {}, and this teddy reads up to {SCHEMA}: it was written by a newer one",
        version.schema_version
    );
    let state: ChangeState = serde_yaml::from_str(text)?;

    // The id becomes part of a ref. As text: a wrong id in a file is no mistake of the command line.
    ChangeId::parse(&state.change_id).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(state)
}

#[derive(Deserialize)]
struct StateVersion {
    #[serde(default = "schema")]
    schema_version: u64,
}

pub fn write(state: &ChangeState) -> String {
    serde_yaml::to_string(state).expect("plain structs of strings and numbers are always YAML")
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeUsage {
    #[serde(default)]
    pub calls: u64,
    #[serde(default)]
    pub tokens_in: u64,
    #[serde(default)]
    pub tokens_out: u64,
    /// Dollars. Calls without a known price count as zero.
    #[serde(default)]
    pub cost: f64,
    #[serde(flatten)]
    pub rest: serde_yaml::Mapping,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepUsage {
    /// Name in the configuration.
    pub model: String,
    /// Answers until one was valid.
    #[serde(default)]
    pub calls: u64,
    #[serde(default)]
    pub tokens_in: u64,
    #[serde(default)]
    pub tokens_out: u64,
    /// Dollars. `None` if no price is known.
    #[serde(
        default,
        deserialize_with = "dollars",
        skip_serializing_if = "Option::is_none"
    )]
    pub cost: Option<f64>,
    /// Dollars that count only against the limit, from calls whose price is partly known.
    #[serde(
        default,
        deserialize_with = "dollars",
        skip_serializing_if = "Option::is_none"
    )]
    pub spent: Option<f64>,
}

impl StepUsage {
    /// The model is that of the later usage.
    pub fn add(&mut self, later: &StepUsage) {
        let sum = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (None, None) => None,
            _ => Some(one.unwrap_or_default() + other.unwrap_or_default()),
        };
        self.model.clone_from(&later.model);
        self.calls = self.calls.saturating_add(later.calls);
        self.tokens_in = self.tokens_in.saturating_add(later.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(later.tokens_out);
        self.cost = sum(self.cost, later.cost);
        self.spent = sum(self.spent, later.spent);
    }

    /// What counts against the limit.
    pub fn dollars(&self) -> f64 {
        self.cost.unwrap_or_default() + self.spent.unwrap_or_default()
    }
}

impl ChangeUsage {
    pub fn add(&mut self, step: &StepUsage) {
        self.calls = self.calls.saturating_add(step.calls);
        self.tokens_in = self.tokens_in.saturating_add(step.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(step.tokens_out);
        self.cost += step.cost.unwrap_or_default();
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeEntry {
    /// Usually that of a [`ChangeStep`].
    pub step: String,
    /// In RFC 3339.
    #[serde(default)]
    pub at: String,
    /// After the step.
    pub phase: ChangePhase,
    /// The documents that the step wrote, or the task that it completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ReviewVerdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issues: Option<IssueCounts>,
    /// For overriding a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The session's turn that performed the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// Of the session, at a step after the implementation began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_turn: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<StepUsage>,
    #[serde(flatten)]
    pub rest: serde_yaml::Mapping,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueCounts {
    #[serde(default)]
    pub high: usize,
    #[serde(default)]
    pub medium: usize,
    #[serde(default)]
    pub low: usize,
}

impl From<Issues> for IssueCounts {
    fn from(issues: Issues) -> IssueCounts {
        IssueCounts {
            high: issues.high,
            medium: issues.medium,
            low: issues.low,
        }
    }
}

#[cfg(test)]
mod tests;
