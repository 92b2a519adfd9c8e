//! READ: adds a resource to the context of the next turn.

use std::io;
use std::path::Path;

use super::behavior::{Behavior, PreviewPart, ReportPart};
use super::{ActionRow, BodyShape, SummaryGroup, resource_fields};
use crate::host::file::{FileKind, Root};
use crate::plan::field::Field;
use crate::plan::line::key::RESOURCE_KEYS;
use crate::plan::run::{ActionError, Effect, Outcome, Stage};
use crate::plan::validate::{Step, Validator, check_resource_exists};
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::text::sanitize::sanitize_line;

/// Table entry of READ.
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
    read: |body| {
        let resource = body.only_resource()?;
        Some(Read { resource }.into())
    },
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    pub resource: Resource,
}

impl Behavior for Read {
    fn fields(&self) -> Vec<Field> {
        resource_fields(&self.resource)
    }

    fn resource(&self) -> Option<&Resource> {
        Some(&self.resource)
    }

    fn worktree_path(&self) -> Option<&RepoPath> {
        match &self.resource {
            Resource::File(path) => Some(path),
            _ => None,
        }
    }

    fn check(&self, validator: &mut Validator<'_>) -> anyhow::Result<()> {
        check_resource_exists(validator, &self.resource)
    }

    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        match &self.resource {
            Resource::Url(url) => stage.tools.fetch(url).map_err(|why| {
                format!(
                    "`{}` cannot be read: {}",
                    sanitize_line(url),
                    sanitize_line(&why)
                )
            })?,
            Resource::File(path) => readable(stage.root, path)?,
            Resource::Artifact(artifact) if stage.tools.has_artifact(artifact) => {}
            Resource::Artifact(artifact) => {
                return Err(format!("there is no artifact `{artifact}`").into());
            }
        }

        Ok(Outcome::with(
            "read; it is in the context of the next turn",
            Effect::Add(self.resource.clone()),
        ))
    }

    fn preview<'a>(&'a self, _step: &'a Step) -> Vec<PreviewPart<'a>> {
        let change = "joins the context of the next turn";
        vec![PreviewPart::Resource(&self.resource, change)]
    }

    fn report(&self, outcome: &Outcome) -> Vec<ReportPart<'_>> {
        let is_added = matches!(outcome.effect, Some(Effect::Add(_)));
        let message = "Content was successfully read. The resource has been added to the context for the next turn.";
        let sentence = is_added.then_some(ReportPart::Sentence(message));
        sentence.into_iter().collect()
    }

    fn is_informational(&self) -> bool {
        // Fetching a page reaches outside the project.
        !matches!(self.resource, Resource::Url(_))
    }
}

/// Checks that a file or directory is readable.
fn readable(root: &Root, path: &RepoPath) -> Result<(), ActionError> {
    let rendered = sanitize_line(path.as_str());
    let at = Path::new(path.as_str());
    match root.kind(at).map_err(ActionError::reading)? {
        Some(FileKind::Dir) => Ok(()),
        // A limit of zero opens the file, which checks permissions, without reading its content.
        Some(FileKind::File(_)) => match root.read(at, 0) {
            Err(error) if error.kind() != io::ErrorKind::FileTooLarge => {
                Err(ActionError::reading(error))
            }
            _ => Ok(()),
        },
        Some(FileKind::Link) => Err(format!("`{rendered}` is a symbolic link").into()),
        Some(FileKind::Other) => Err(format!("`{rendered}` is not a regular file").into()),
        None => Err(format!("there is no file `{rendered}`").into()),
    }
}
