//! READ and INVOKE: what the next turn will be shown.

use std::io;
use std::path::Path;

use super::error::ActionError;
use super::{Effect, Outcome, Stage};
use crate::host::file::{Kind, Root};
use crate::plan::action::invoke::Invoke;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::text::visible::visible;

/// Brings a resource into the context, if it can be read.
pub(super) fn read(stage: &mut Stage<'_>, resource: &Resource) -> Result<Outcome, ActionError> {
    match resource {
        Resource::Url(url) => stage
            .tools
            .fetch(url)
            .map_err(|why| format!("`{}` cannot be read: {}", visible(url), visible(&why)))?,
        Resource::File(path) => file(stage.root, path)?,
        Resource::Artifact(artifact) if stage.tools.has_artifact(artifact) => {}
        Resource::Artifact(artifact) => {
            return Err(format!("there is no artifact `{artifact}`").into());
        }
    }
    Ok(Outcome::with(
        "read; it is in the context of the next turn",
        Effect::Add(resource.clone()),
    ))
}

/// Makes sure that a file or folder can be read.
fn file(root: &Root, path: &RepoPath) -> Result<(), ActionError> {
    let shown = visible(path.as_str());
    let at = Path::new(path.as_str());
    match root.kind(at).map_err(ActionError::reading)? {
        Some(Kind::Folder) => Ok(()),
        // With a limit of nothing the file is opened, which shows whether it may be, and its bytes
        // stay where they are.
        Some(Kind::File(_)) => match root.read(at, 0) {
            Err(error) if error.kind() != io::ErrorKind::FileTooLarge => {
                Err(ActionError::reading(error))
            }
            _ => Ok(()),
        },
        Some(Kind::Link) => Err(format!("`{shown}` is a symbolic link").into()),
        Some(Kind::Other) => Err(format!("`{shown}` is not a regular file").into()),
        None => Err(format!("there is no file `{shown}`").into()),
    }
}

/// Hands over to another agent.
pub(super) fn invoke(invoke: &Invoke) -> Outcome {
    let (agent, resources, message) = (
        invoke.agent.clone(),
        invoke.resources.clone(),
        invoke.message.clone(),
    );
    Outcome::with(
        format!("handed over to `{}`", visible(&agent)),
        Effect::Invoke {
            agent,
            resources,
            message,
        },
    )
}
