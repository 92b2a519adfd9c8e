//! INVOKE: hands over to another agent.

use super::behavior::{Behavior, PreviewPart, edited_message};
use super::body::Body;
use super::{ActionKind, ActionRow, BodyShape, SummaryGroup, resource_list};
use crate::plan::field::Field;
use crate::plan::line::key::HANDOFF_KEYS;
use crate::plan::run::{ActionError, Effect, Outcome, Stage};
use crate::plan::validate::{Mistake, Step, Validator, check_resource_exists};
use crate::text::resource::Resource;
use crate::text::sanitize::sanitize_line;

/// Table entry of INVOKE.
pub static ROW: ActionRow = ActionRow {
    name: "INVOKE",
    aliases: &[],
    other_names: &[],
    keys: &["Agent", "Handoff Resources", "Description"],
    other_keys: &[("Agent", "targetagent agentname nextagent"), HANDOFF_KEYS],
    shape: BodyShape::Message,
    group: SummaryGroup::Messages,
    unit: ("agent", "agents"),
    counts_targets: false,
    read: |body| read(body).map(ActionKind::from),
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoke {
    /// The agent's name as written.
    pub agent: String,
    /// The agent's initial context.
    pub resources: Vec<Resource>,
    /// Markdown as in the plan, without blank lines at its ends.
    pub message: String,
}

impl Behavior for Invoke {
    fn fields(&self) -> Vec<Field> {
        let list = resource_list(&self.resources);
        std::iter::once(Field::new("Agent", self.agent.as_str()))
            .chain(list)
            .chain([Field::new("Description", "")])
            .collect()
    }

    fn target(&self) -> String {
        self.agent.clone()
    }

    fn message(&self) -> Option<&str> {
        Some(&self.message)
    }

    fn hands_over(&self) -> bool {
        true
    }

    // The agent and all resources must exist.
    fn check(&self, validator: &mut Validator<'_>) -> anyhow::Result<()> {
        let agents = validator.files.facts.agents();
        if !agents
            .iter()
            .any(|agent| agent.eq_ignore_ascii_case(&self.agent))
        {
            let names: Vec<String> = agents
                .iter()
                .map(|agent| format!("`{}`", sanitize_line(agent)))
                .collect();
            let untrusted = validator.files.facts.untrusted_agents();
            let name = sanitize_line(&self.agent);
            let message = if untrusted.contains(&self.agent.to_lowercase()) {
                format!(
                    "the agent `{name}` of this repository is not trusted; the user can trust it with `teddy trust`"
                )
            } else {
                format!("there is no agent `{name}`")
            };

            let hint = if names.is_empty() {
                "there are no agents".to_owned()
            } else {
                format!("the agents are {}", names.join(", "))
            };
            validator.refuse(Mistake::new(message, hint));
        }

        self.resources
            .iter()
            .try_for_each(|resource| check_resource_exists(validator, resource))
    }

    fn perform(&self, _stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        let effect = Effect::Invoke {
            agent: self.agent.clone(),
            resources: self.resources.clone(),
            message: self.message.clone(),
        };
        let detail = format!("handed over to `{}`", sanitize_line(&self.agent));
        Ok(Outcome::with(detail, effect))
    }

    fn preview<'a>(&'a self, _step: &'a Step) -> Vec<PreviewPart<'a>> {
        vec![PreviewPart::HandOver {
            lead_in: format!("{} takes over, with", self.agent),
            resources: &self.resources,
            message: &self.message,
        }]
    }

    fn texts(&self) -> Vec<&str> {
        vec![&self.message, &self.agent]
    }

    fn set_text(&mut self, text: &str) {
        self.message = edited_message(text);
    }
}

fn read(body: &mut Body<'_>) -> Option<Invoke> {
    let agent = body
        .field("Agent")
        .map(|f| f.value.trim_matches(['`', '*']).to_owned())
        .filter(|name| !name.is_empty());
    if agent.is_none() {
        body.report(
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
