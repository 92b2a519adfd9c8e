//! CONCLUDE: returns to the calling agent.

use super::behavior::{Behavior, PreviewPart, edited_message};
use super::body::Body;
use super::{ActionKind, ActionRow, BodyShape, SummaryGroup, resource_list};
use crate::plan::field::Field;
use crate::plan::line::key::HANDOFF_KEYS;
use crate::plan::run::{ActionError, Effect, Outcome, Stage};
use crate::plan::validate::{Step, Validator, check_resource_exists};
use crate::text::resource::Resource;

/// Table entry of CONCLUDE.
pub static ROW: ActionRow = ActionRow {
    name: "CONCLUDE",
    aliases: &["RETURN"],
    other_names: &[],
    keys: &["Handoff Resources", "Description"],
    other_keys: &[HANDOFF_KEYS],
    shape: BodyShape::Message,
    group: SummaryGroup::Messages,
    unit: ("message", "messages"),
    counts_targets: false,
    read: |body| read(body).map(ActionKind::from),
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclude {
    /// Resources added to the caller's context.
    pub resources: Vec<Resource>,
    /// Markdown as in the plan, without blank lines at its ends.
    pub message: String,
}

impl Behavior for Conclude {
    fn fields(&self) -> Vec<Field> {
        resource_list(&self.resources)
            .into_iter()
            .chain([Field::new("Description", "")])
            .collect()
    }

    fn message(&self) -> Option<&str> {
        Some(&self.message)
    }

    fn hands_over(&self) -> bool {
        true
    }

    // A caller is not required: without one, CONCLUDE ends the work.
    fn check(&self, validator: &mut Validator<'_>) -> anyhow::Result<()> {
        let mut resources = self.resources.iter();
        resources.try_for_each(|resource| check_resource_exists(validator, resource))
    }

    fn perform(&self, _stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        let effect = Effect::Conclude {
            resources: self.resources.clone(),
            message: self.message.clone(),
        };
        Ok(Outcome::with("done", effect))
    }

    fn preview<'a>(&'a self, _step: &'a Step) -> Vec<PreviewPart<'a>> {
        vec![PreviewPart::HandOver {
            lead_in: "concludes, with".to_owned(),
            resources: &self.resources,
            message: &self.message,
        }]
    }

    fn is_informational(&self) -> bool {
        true
    }

    fn set_text(&mut self, text: &str) {
        self.message = edited_message(text);
    }
}

/// Returns a CONCLUDE with only a message.
pub fn with_message(message: &str) -> ActionKind {
    let (resources, message) = (Vec::new(), message.trim().to_owned());
    Conclude { resources, message }.into()
}

fn read(body: &mut Body<'_>) -> Option<Conclude> {
    let resources = body.resources();
    Some(Conclude {
        resources,
        message: body.message()?,
    })
}
