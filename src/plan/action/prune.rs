//! PRUNE: removes a resource from the context of the next turn.

use super::behavior::{Behavior, PreviewPart};
use super::{ActionKind, ActionRow, BodyShape, SummaryGroup, resource_fields};
use crate::plan::field::Field;
use crate::plan::line::key::RESOURCE_KEYS;
use crate::plan::run::{ActionError, Effect, Outcome, Stage};
use crate::plan::validate::{Mistake, Step, Validator};
use crate::text::resource::Resource;
use crate::text::sanitize::sanitize_line;

/// Table entry of PRUNE.
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
    read: |body| {
        let resource = body.only_resource()?;
        Some(Prune { resource }.into())
    },
};

/// A resource to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prune {
    pub resource: Resource,
}

impl Behavior for Prune {
    fn fields(&self) -> Vec<Field> {
        resource_fields(&self.resource)
    }

    fn resource(&self) -> Option<&Resource> {
        Some(&self.resource)
    }

    // The resource must be in the turn's own context list and can be removed only once.
    fn check(&self, validator: &mut Validator<'_>) -> anyhow::Result<()> {
        let resource = &self.resource;
        let rendered = resource.to_string();
        let rendered = sanitize_line(&rendered);
        let same = |kind: &ActionKind| matches!(kind, ActionKind::Prune(prune) if prune.resource == *resource);
        let first = validator
            .plan
            .actions
            .iter()
            .find(|a| same(&a.kind))
            .is_none_or(|a| std::ptr::eq(a, validator.action()));

        if !validator.files.facts.in_turn_context(resource) {
            let hint = if validator.files.facts.in_context(resource) {
                "it comes from the session's or the global list, which the user keeps"
            } else {
                "leave the action out"
            };
            validator.refuse(Mistake::new(
                format!("`{rendered}` is not in the turn's context"),
                hint,
            ));
        } else if !first {
            validator.refuse(Mistake::new(
                format!("`{rendered}` is pruned twice"),
                "keep one PRUNE",
            ));
        }

        Ok(())
    }

    fn perform(&self, _stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        let effect = Effect::Remove(self.resource.clone());
        let detail = "it is not in the context of the next turn";
        Ok(Outcome::with(detail, effect))
    }

    fn preview<'a>(&'a self, _step: &'a Step) -> Vec<PreviewPart<'a>> {
        let change = "leaves the context of the next turn";
        vec![PreviewPart::Resource(&self.resource, change)]
    }

    fn is_informational(&self) -> bool {
        true
    }
}
