//! Checks that the resources of an action exist.

use super::world::Found;
use super::{Judge, Mistake};
use crate::plan::action::Action;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::text::visible::visible;

/// Hint if no similar name exists.
const UNKNOWN: &str = "the project structure in the input lists what exists";

/// Reports a missing resource. Whether a page is reachable shows only when it is fetched.
pub fn check_there(
    judge: &mut Judge<'_>,
    action: &Action,
    resource: &Resource,
) -> anyhow::Result<()> {
    match resource {
        Resource::Url(_) => {}
        Resource::File(path) => {
            if let Some(mistake) = absent(judge, path)? {
                judge.miss(action, action.line, mistake);
            }
        }
        Resource::Artifact(_) if judge.world.facts.has_artifact(resource) => {}
        Resource::Artifact(_) => {
            let message = format!("there is no artifact `{}`", visible(&resource.to_string()));
            judge.refuse(
                action,
                action.line,
                Mistake::new(message, "name an executed turn and one of its files"),
            );
        }
    }

    Ok(())
}

fn absent(judge: &Judge<'_>, path: &RepoPath) -> anyhow::Result<Option<Mistake>> {
    let shown = visible(path.as_str());
    let found = judge.world.look(path)?;
    Ok(match found {
        Found::File(_) | Found::Folder => None,
        Found::Absent => {
            let names = judge.world.names_like(path)?;
            let names: Vec<String> = names
                .iter()
                .map(|name| format!("`{}`", visible(name)))
                .collect();
            let hint = if names.is_empty() {
                UNKNOWN.to_owned()
            } else {
                format!("there is {}", names.join(" and "))
            };

            Some(Mistake::new(format!("there is no file `{shown}`"), hint))
        }
        Found::Other(_) | Found::Below(..) => {
            let obstacle = judge.world.obstacle(path, &found)?.unwrap_or_default();
            let destination = judge.world.destination(path, &found)?;
            let hint = destination.map_or_else(
                || "name the file itself".to_owned(),
                |path| format!("name `{}`, to which it leads", visible(path.as_str())),
            );
            Some(Mistake::new(format!("`{shown}` {obstacle}"), hint))
        }
    })
}
