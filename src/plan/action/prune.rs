//! PRUNE: takes a resource out of the context of the next turn.

use super::body::Body;
use super::heading::Act;
use super::{Kind, Row, write_resource};
use crate::plan::Field;
use crate::text::resource::Resource;

/// The line of the table.
pub const ROW: Row = Row {
    act: Act::Prune,
    name: "PRUNE",
    aliases: &[],
    keys: &["Resource", "File Path", "Description"],
    shape: "a list alone",
    message: false,
    labels: false,
    read: |body| read(body).map(Kind::Prune),
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
