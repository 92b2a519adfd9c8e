//! CONCLUDE: returns to the agent that handed over.

use super::body::Body;
use super::shape::{BodyShape, SummaryGroup};
use super::{ActionKind, ActionRow, resource_list};
use crate::plan::Field;
use crate::plan::spelling::key::HANDOFF_KEYS;
use crate::text::resource::Resource;

/// The row of the table.
pub static ROW: ActionRow = ActionRow {
    name: "CONCLUDE",
    aliases: &["RETURN"],
    other_names: &[],
    keys: &["Handoff Resources", "Description"],
    other_keys: &[HANDOFF_KEYS],
    shape: BodyShape::Message,
    group: SummaryGroup::Messages,
    unit: ("return", "returns"),
    counts_targets: false,
    read: |body| read(body).map(ActionKind::Conclude),
};

/// A return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclude {
    /// What the caller gets besides its own context.
    pub resources: Vec<Resource>,
    /// The Markdown, cut from the source, without blank lines at its ends.
    pub message: String,
}

impl Conclude {
    /// Returns the fields of its value.
    pub fn fields(&self) -> Vec<Field> {
        resource_list(&self.resources)
            .into_iter()
            .chain([Field::new("Description", "")])
            .collect()
    }
}

/// Reads the action.
fn read(body: &mut Body<'_>) -> Option<Conclude> {
    let resources = body.resources();
    Some(Conclude {
        resources,
        message: body.message()?,
    })
}
