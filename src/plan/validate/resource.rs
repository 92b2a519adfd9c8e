//! Checks that the resources of an action exist.

use super::simulated_files::Lookup;
use super::{Mistake, Validator};
use crate::plan::action::Action;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::text::sanitize::sanitize_line;

/// Hint if no similar name exists.
const STRUCTURE_HINT: &str = "the project structure in the input lists what exists";

/// Reports a missing resource. Whether a page is reachable shows only when it is fetched.
pub fn check_resource_exists(
    validator: &mut Validator<'_>,
    action: &Action,
    resource: &Resource,
) -> anyhow::Result<()> {
    match resource {
        Resource::Url(_) => {}
        Resource::File(path) => {
            if let Some(mistake) = missing_resource(validator, path)? {
                validator.refuse_unless_fixable(action, action.line, mistake);
            }
        }
        Resource::Artifact(_) if validator.files.facts.has_artifact(resource) => {}
        Resource::Artifact(_) => {
            let message = format!(
                "there is no artifact `{}`",
                sanitize_line(&resource.to_string())
            );
            validator.refuse(
                action,
                action.line,
                Mistake::new(message, "name an executed turn and one of its files"),
            );
        }
    }

    Ok(())
}

fn missing_resource(validator: &Validator<'_>, path: &RepoPath) -> anyhow::Result<Option<Mistake>> {
    let rendered = sanitize_line(path.as_str());
    let entry = validator.files.look_up(path)?;
    Ok(match entry {
        Lookup::File(_) | Lookup::Dir => None,
        Lookup::Absent => {
            let names = validator.files.names_like(path)?;
            let names: Vec<String> = names
                .iter()
                .map(|name| format!("`{}`", sanitize_line(name)))
                .collect();
            let hint = if names.is_empty() {
                STRUCTURE_HINT.to_owned()
            } else {
                format!("there is {}", names.join(" and "))
            };

            Some(Mistake::new(format!("there is no file `{rendered}`"), hint))
        }
        Lookup::Other(_) | Lookup::Blocked(..) => {
            let obstacle = validator.files.obstacle(path, &entry)?.unwrap_or_default();
            let destination = validator.files.destination(path, &entry)?;
            let hint = destination.map_or_else(
                || "name the file itself".to_owned(),
                |path| format!("name `{}`, to which it leads", sanitize_line(path.as_str())),
            );
            Some(Mistake::new(format!("`{rendered}` {obstacle}"), hint))
        }
    })
}
