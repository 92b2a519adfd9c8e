//! CONCLUDE: returns to the calling agent.

use super::behavior::{Behavior, Editable, PreviewPart, UserEdit, first_message_line};
use super::body::Body;
use super::{Action, ActionKind, ActionRow, resource_list};
use crate::plan::action::{BodyShape, SummaryGroup};
use crate::plan::field::Field;
use crate::plan::line::key::HANDOFF_KEYS;
use crate::plan::run::ActionError;
use crate::plan::run::{Effect, Outcome, Stage};
use crate::plan::validate::check_resource_exists;
use crate::plan::validate::{Step, Validator};
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
    #[cfg(test)]
    sample,
};

/// A return to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclude {
    /// Resources added to the caller's context.
    pub resources: Vec<Resource>,
    /// Markdown as in the plan, without blank lines at its ends.
    pub message: String,
}

impl Behavior for Conclude {
    fn row(&self) -> &'static ActionRow {
        &ROW
    }

    fn fields(&self) -> Vec<Field> {
        resource_list(&self.resources)
            .into_iter()
            .chain([Field::new("Description", "")])
            .collect()
    }

    fn target(&self) -> String {
        first_message_line(&self.message)
    }

    fn message(&self) -> Option<&str> {
        Some(&self.message)
    }

    fn hands_over(&self) -> bool {
        true
    }

    // A caller is not required: without one, CONCLUDE ends the work.
    fn check(&self, validator: &mut Validator<'_>, action: &Action) -> anyhow::Result<()> {
        let mut resources = self.resources.iter();
        resources.try_for_each(|resource| check_resource_exists(validator, action, resource))
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

    fn texts(&self) -> Vec<&str> {
        vec![&self.message]
    }

    fn editable(&self) -> Editable<'_> {
        Editable::Text(self.message.clone())
    }

    fn edited(&self, edit: UserEdit<'_>) -> Option<ActionKind> {
        let message = edit.message()?;
        Some(
            Conclude {
                message,
                ..self.clone()
            }
            .into(),
        )
    }

    #[cfg(test)]
    fn describe(&self) -> String {
        let resources = crate::plan::samples::list(&self.resources);
        format!("CONCLUDE [{resources}] {:?}", self.message)
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

#[cfg(test)]
fn sample() -> proptest::strategy::BoxedStrategy<ActionKind> {
    use crate::plan::samples;
    use proptest::prelude::*;

    (samples::resources(), samples::message())
        .prop_map(|(resources, message)| Conclude { resources, message }.into())
        .boxed()
}
