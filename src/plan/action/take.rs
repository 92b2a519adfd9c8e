//! TAKE: takes an agent's version of a path that no other action can express: binary content, a
//! deletion, a mode change, a link, large text.
//!
//! Only TeDDy writes it, and models don't learn of it. The bytes are an artifact of the turn. The
//! plan records their size and hash and those of the previous version, so that no other bytes are
//! written and no later change is overwritten.

mod check;
mod parse;
mod perform;
mod show;

use serde_json::{Value, json};

use super::behavior::{Behavior, PreviewPart, SummaryItem};
use super::shape::{BodyShape, SummaryGroup};
use super::{Action, ActionKind, ActionRow};
use crate::plan::Field;
use crate::plan::run::error::ActionError;
use crate::plan::run::{Outcome, Stage};
use crate::plan::spelling::key::PATH_KEYS;
use crate::plan::state::{Imprint, KnownState, StateMode};
use crate::plan::validate::{Step, Validator};
use crate::text::diff::Counts;
use crate::text::link;
use crate::text::path::RepoPath;

/// Table entry of TAKE.
pub static ROW: ActionRow = ActionRow {
    name: "TAKE",
    aliases: &[],
    other_names: &[],
    keys: &["File Path", "Description", "Becomes", "Artifact", "Was"],
    other_keys: &[PATH_KEYS],
    shape: BodyShape::ListAlone,
    group: SummaryGroup::Files,
    unit: ("file", "files"),
    counts_targets: false,
    read: |body| parse::parse_take(body).map(ActionKind::from),
    #[cfg(test)]
    sample,
};

/// A path whose new state is taken as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakePath {
    /// The path.
    pub path: RepoPath,
    /// The new state; `None` if the agent deleted the path.
    pub becomes: Option<TakenState>,
    /// The state before the agent ran; `None` if the path did not exist.
    pub previous: Option<KnownState>,
}

/// The new state of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenState {
    /// File, executable file or link.
    pub mode: StateMode,
    /// Artifact of the turn that holds the bytes, such as `taken/01`.
    pub artifact: String,
    /// Size and hash of the bytes.
    pub imprint: Imprint,
}

impl Behavior for TakePath {
    fn row(&self) -> &'static ActionRow {
        &ROW
    }

    fn fields(&self) -> Vec<Field> {
        let becomes = self.becomes.as_ref();
        let mut fields = vec![
            Field::new("File Path", link::write_path(self.path.as_str())),
            Field::new("Description", ""),
            Field::new(
                "Becomes",
                parse::state_word(becomes.map(|state| state.mode)),
            ),
        ];
        if let Some(state) = becomes {
            fields.push(Field::new("Artifact", parse::format_artifact(state)));
        }
        fields.push(Field::new(
            "Was",
            parse::format_state(self.previous.as_ref()),
        ));
        fields
    }

    fn target(&self) -> String {
        self.path.to_string()
    }

    fn path(&self) -> Option<&RepoPath> {
        Some(&self.path)
    }

    fn new_path(&self) -> Option<&RepoPath> {
        let is_new = self.previous.is_none() && self.becomes.is_some();
        is_new.then_some(&self.path)
    }

    fn deleted_path(&self) -> Option<&RepoPath> {
        self.becomes.is_none().then_some(&self.path)
    }

    fn check(&self, validator: &mut Validator<'_>, action: &Action) -> anyhow::Result<()> {
        check::check_take(validator, action, self)
    }

    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        perform::perform_take(stage, self)
    }

    fn preview<'a>(&'a self, step: &'a Step) -> Vec<PreviewPart<'a>> {
        show::preview_take(self, step)
    }

    fn summary(&self) -> SummaryItem<'_> {
        SummaryItem::ChangedFile
    }

    fn json(&self, counts: Counts) -> Vec<(&'static str, Value)> {
        let becomes = self.becomes.as_ref();
        let state = |mode: StateMode, imprint: &Imprint| json!({"kind": mode.word(), "size": imprint.size, "sha256": imprint.hash});
        vec![
            ("added", counts.added.into()),
            ("removed", counts.removed.into()),
            (
                "becomes",
                becomes.map_or(Value::Null, |to| state(to.mode, &to.imprint)),
            ),
            ("artifact", becomes.map(|to| to.artifact.as_str()).into()),
            (
                "was",
                self.previous
                    .as_ref()
                    .map_or(Value::Null, |from| state(from.mode, &from.imprint)),
            ),
        ]
    }

    fn risks(&self, step: &Step) -> Vec<String> {
        show::take_risks(self, step)
    }

    fn texts(&self) -> Vec<&str> {
        Vec::new()
    }

    fn check_artifact(&self, bytes: &dyn Fn(&str) -> Option<Vec<u8>>) -> Option<String> {
        self.becomes.as_ref()?.load_bytes(bytes).err()
    }

    fn artifact(&self) -> Option<&str> {
        self.becomes.as_ref().map(|to| to.artifact.as_str())
    }

    #[cfg(test)]
    fn describe(&self) -> String {
        let becomes = self.becomes.as_ref();
        let from = becomes.map_or("-", |state| state.artifact.as_str());
        let mode = |mode: Option<StateMode>| parse::state_word(mode);
        format!(
            "TAKE {} {} -> {} {from}",
            self.path,
            mode(self.previous.as_ref().map(|was| was.mode)),
            mode(becomes.map(|state| state.mode))
        )
    }
}

impl TakenState {
    /// Returns the bytes, or a message if they are missing or don't match the hash.
    fn load_bytes(&self, bytes: &dyn Fn(&str) -> Option<Vec<u8>>) -> Result<Vec<u8>, String> {
        let name = &self.artifact;
        match bytes(name) {
            None => Err(format!("the turn has no `{name}`, whose bytes TAKE needs")),
            Some(bytes) if self.imprint.is_of(&bytes) => Ok(bytes),
            Some(_) => Err(format!("`{name}` does not have the bytes that TAKE names")),
        }
    }
}

#[cfg(test)]
fn sample() -> proptest::strategy::BoxedStrategy<ActionKind> {
    use crate::plan::samples;
    use proptest::prelude::*;

    let state = || (0..3_usize, 0..200_u32, "[a-z]{0,9}");
    (
        samples::path(),
        proptest::option::of(state()),
        proptest::option::of(state()),
    )
        .prop_filter("it does something", |(_, a, b)| a.is_some() || b.is_some())
        .prop_map(|(path, becomes, was)| {
            let taken_state = |(mode, number, bytes): (usize, u32, String)| TakenState {
                mode: StateMode::ALL[mode],
                artifact: format!("taken/{number:02}"),
                imprint: Imprint::of(bytes.as_bytes()),
            };
            let known_state = |(mode, _, bytes): (usize, u32, String)| KnownState {
                mode: StateMode::ALL[mode],
                imprint: Imprint::of(bytes.as_bytes()),
            };
            let (becomes, was) = (becomes.map(taken_state), was.map(known_state));
            TakePath {
                path,
                becomes,
                previous: was,
            }
            .into()
        })
        .boxed()
}

#[cfg(test)]
mod tests;
