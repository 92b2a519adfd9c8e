//! INVOKE: hands over to another agent.

use super::body::Body;
use super::shape::{BodyShape, SummaryGroup};
use super::{ActionKind, ActionRow, resource_list};
use crate::plan::Field;
use crate::plan::spelling::key::HANDOFF_KEYS;
use crate::text::resource::Resource;

/// The row of the table.
pub static ROW: ActionRow = ActionRow {
    name: "INVOKE",
    aliases: &[],
    other_names: &[],
    keys: &["Agent", "Handoff Resources", "Description"],
    other_keys: &[
        ("Agent", &["targetagent", "agentname", "nextagent"]),
        HANDOFF_KEYS,
    ],
    shape: BodyShape::Message,
    group: SummaryGroup::Messages,
    unit: ("agent", "agents"),
    counts_targets: false,
    read: |body| read(body).map(ActionKind::Invoke),
};

/// A hand-over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoke {
    /// The agent's name as written.
    pub agent: String,
    /// What the agent starts with.
    pub resources: Vec<Resource>,
    /// The Markdown, cut from the source, without blank lines at its ends.
    pub message: String,
}

impl Invoke {
    /// Returns the fields of its value.
    pub fn fields(&self) -> Vec<Field> {
        let list = resource_list(&self.resources);
        std::iter::once(Field::new("Agent", self.agent.as_str()))
            .chain(list)
            .chain([Field::new("Description", "")])
            .collect()
    }
}

/// Reads the action.
fn read(body: &mut Body<'_>) -> Option<Invoke> {
    let agent = body
        .field("Agent")
        .map(|f| f.value.trim_matches(['`', '*']).to_owned())
        .filter(|name| !name.is_empty());
    if agent.is_none() {
        body.wrong(
            body.line,
            "INVOKE has no `Agent`",
            "add `- **Agent:** Architect`, the agent that takes over",
        );
    }
    let resources = body.resources();
    let message = body.message()?;
    Some(Invoke {
        agent: agent?,
        resources,
        message,
    })
}
