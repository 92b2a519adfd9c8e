//! Describes the session, model and settings in use for `-v`, and warns about ignored settings.

use crate::config::layer::takes_trust;
use crate::config::unknown;
use crate::host::shell::Shell;
use crate::project::Project;
use crate::text::sanitize::sanitize_line;
use crate::workflow::confine::backend::{CommandFiles, command_files, try_isolation};

pub(super) fn describe_in_use(project: &Project) -> String {
    let (session, model) = match project.session() {
        Ok(name) => (format!("session {name}"), project.model_of(&name)),
        Err(_) => ("no session".to_owned(), project.settings.model.clone()),
    };
    let model = model.as_deref().unwrap_or("none");
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

    let (dir, config) = (
        project.repository.workdir().display(),
        project.user_dirs.config_file.display(),
    );
    let commands = match command_files(project) {
        CommandFiles::Overlay => "over your files, in an overlay".to_owned(),
        CommandFiles::Checkout(why) => format!("in a copy of your files ({why})"),
    };
    let shells = Shell::describe(project.settings.execute.shell.as_deref());
    let given = describe_isolation(project);
    format!(
        "Project {dir}, {session}, model {model}. Commands run {commands}, with {given}, in {shells}. Settings: git config, {config}{own}."
    )
}

/// Describes what a command really got, from starting one.
fn describe_isolation(project: &Project) -> String {
    match try_isolation(project) {
        Ok(None) => "your network, not sandboxed".to_owned(),
        Ok(Some(given)) => {
            let network = match (project.settings.execute.network, given.network) {
                (true, _) => "your network",
                (false, true) => "their own loopback",
                (false, false) => "no network",
            };
            let terminals = if given.terminals { "" } else { "no " };
            format!("{network} and {terminals}pseudo-terminals")
        }
        Err(why) => format!("nothing ({})", sanitize_line(&why)),
    }
}

/// Lists settings of the repository that are ignored until it is trusted.
pub(super) fn untrusted_settings(project: &Project) -> Option<String> {
    let hint = "`teddy trust` shows what would change that";
    ignored_settings(project, |key| !project.trusted && takes_trust(key), hint)
}

/// Lists settings that a repository cannot make, trusted or not.
pub(super) fn forbidden_settings(project: &Project) -> Option<String> {
    let hint = "a repository may not decide that";
    ignored_settings(project, |key| project.trusted || !takes_trust(key), hint)
}

/// Describes ignored settings, with a suggestion for unknown names.
fn ignored_settings(
    project: &Project,
    is_told: impl Fn(&str) -> bool,
    hint: &str,
) -> Option<String> {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for name in project.ignored.iter().filter(|name| is_told(name)) {
        match unknown::suggest(name) {
            None => known.push(name.as_str()),
            Some(Some(suggestion)) => {
                unknown.push(format!("{name} (unknown; did you mean `{suggestion}`?)"));
            }
            Some(None) => unknown.push(format!("{name} (unknown)")),
        }
    }

    let known = (!known.is_empty()).then(|| format!("{} ({hint})", known.join(", ")));
    let entries: Vec<String> = known.into_iter().chain(unknown).collect();
    let names = entries.join(", ");
    (!entries.is_empty()).then(|| format!("settings of this repository are ignored: {names}"))
}
