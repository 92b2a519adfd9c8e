//! READ: brings a resource into the context of the next turn.

use super::body::Body;
use super::heading::Act;
use super::{Kind, Row, write_resource};
use crate::plan::Field;
use crate::text::resource::Resource;

/// The line of the table.
pub const ROW: Row = Row {
    act: Act::Read,
    name: "READ",
    aliases: &[],
    keys: &["Resource", "File Path", "Description"],
    shape: "a list alone",
    message: false,
    labels: false,
    read: |body| read(body).map(Kind::Read),
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
