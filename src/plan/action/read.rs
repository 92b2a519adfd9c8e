//! READ: brings a resource into the context of the next turn.

use super::body::Body;
use super::shape::{BodyShape, SummaryGroup};
use super::{ActionKind, ActionRow, write_resource};
use crate::plan::Field;
use crate::plan::spelling::key::RESOURCE_KEYS;
use crate::text::resource::Resource;

/// The row of the table.
pub static ROW: ActionRow = ActionRow {
    name: "READ",
    aliases: &[],
    other_names: &["OPEN", "VIEW"],
    keys: &["Resource", "File Path", "Description"],
    other_keys: &[RESOURCE_KEYS],
    shape: BodyShape::ListAlone,
    group: SummaryGroup::Context,
    unit: ("resource", "resources"),
    counts_targets: true,
    read: |body| read(body).map(ActionKind::Read),
};

/// A resource to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// What.
    pub resource: Resource,
}

impl Read {
    /// Returns the fields of its value.
    pub fn fields(&self) -> Vec<Field> {
        vec![
            Field::new("Resource", write_resource(&self.resource)),
            Field::new("Description", ""),
        ]
    }
}

/// Reads the action.
fn read(body: &mut Body<'_>) -> Option<Read> {
    let resource = body.resource();
    body.nothing_below();
    Some(Read {
        resource: resource?,
    })
}
