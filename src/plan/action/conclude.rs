//! CONCLUDE: returns to the agent that handed over.

use super::body::Body;
use super::heading::Act;
use super::{Kind, Row, resource_list};
use crate::plan::Field;
use crate::text::resource::Resource;

/// The line of the table.
pub const ROW: Row = Row {
    act: Act::Conclude,
    name: "CONCLUDE",
    aliases: &["RETURN"],
    keys: &["Handoff Resources", "Description"],
    shape: "a list and a message",
    message: true,
    labels: false,
    read: |body| read(body).map(Kind::Conclude),
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
