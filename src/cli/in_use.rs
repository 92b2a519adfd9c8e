//! What a call works with, as `-v` tells it, and what of it is ignored.

use crate::config::unknown;
use crate::workflow::confine::backend::{CommandFiles, command_files};
use crate::workflow::project::Project;

/// Says what a call works with.
pub(super) fn in_use(project: &Project) -> String {
    let session = project.session().map_or_else(
        |_| "no session".to_owned(),
        |name| format!("session {name}"),
    );
    let model = project.settings.model.as_deref().unwrap_or("none");
    let own = match (
        project.proposed.contains_key("config.yaml"),
        project.trusted,
    ) {
        (false, _) => "",
        (true, true) => ", .teddy/config.yaml",
        (true, false) => {
            ", .teddy/config.yaml as far as a repository that is not trusted may decide"
        }
    };

    let (folder, config) = (
        project.repository.workdir().display(),
        project.places.config_file.display(),
    );
    let commands = match command_files(project) {
        CommandFiles::Overlay => "over your files, in an overlay".to_owned(),
        CommandFiles::Checkout(why) => format!("in a copy of your files ({why})"),
    };
    format!(
        "Project {folder}, {session}, model {model}. Commands run {commands}. Settings: git config, {config}{own}."
    )
}

/// Lists settings of a repository that are ignored; one that nobody knows with what was meant.
pub(super) fn ignored(names: &[String]) -> String {
    let told = names.iter().map(|name| match unknown::meant(name) {
        None => name.clone(),
        Some(Some(meant)) => format!("{name} (unknown; did you mean `{meant}`?)"),
        Some(None) => format!("{name} (unknown)"),
    });
    told.collect::<Vec<_>>().join(", ")
}
