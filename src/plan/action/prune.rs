//! PRUNE: takes a resource out of the context of the next turn.

use super::body::Body;
use super::shape::{BodyShape, SummaryGroup};
use super::{ActionKind, ActionRow, write_resource};
use crate::plan::Field;
use crate::plan::spelling::key::RESOURCE_KEYS;
use crate::text::resource::Resource;

/// The row of the table.
pub static ROW: ActionRow = ActionRow {
    name: "PRUNE",
    aliases: &[],
    other_names: &[],
    keys: &["Resource", "File Path", "Description"],
    other_keys: &[RESOURCE_KEYS],
    shape: BodyShape::ListAlone,
    group: SummaryGroup::Context,
    unit: ("resource", "resources"),
    counts_targets: false,
    read: |body| read(body).map(ActionKind::Prune),
};

/// A resource to drop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prune {
    /// What.
    pub resource: Resource,
}

impl Prune {
    /// Returns the fields of its value.
    pub fn fields(&self) -> Vec<Field> {
        vec![
            Field::new("Resource", write_resource(&self.resource)),
            Field::new("Description", ""),
        ]
    }
}

/// Reads the action.
fn read(body: &mut Body<'_>) -> Option<Prune> {
    let resource = body.resource();
    body.nothing_below();
    Some(Prune {
        resource: resource?,
    })
}
