//! Checks the hooks that TeDDy installed in agents' settings: whether their program exists, and
//! recent errors.

use super::{HealthCheck, Patient, display_path};
use crate::host::process;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_word;
use crate::workflow::hooks::entry::EntryState;
use crate::workflow::hooks::hook_file::HookFile;
use crate::workflow::hooks::{HookedAgent, hooks_dir, trouble};

pub(super) fn check_agents(patient: &Patient) -> Vec<HealthCheck> {
    let mut checks = Vec::new();
    let project = patient.project.as_ref().ok();
    let home = patient.user_dirs.home.as_deref();
    for agent in HookedAgent::ALL {
        let own = HookFile::of_user(agent, home).ok();
        checks.extend(own.and_then(|file| check_hook_file(agent, "--user", &file)));
        let files = project.filter(|project| !project.repository.is_bare());
        let shared = files
            .and_then(|project| HookFile::of_project(agent, project.repository.workdir()).ok());
        checks.extend(shared.and_then(|file| check_hook_file(agent, "--project", &file)));
    }

    if let Some(project) = project {
        checks.extend(check_hook_errors(&hooks_dir(
            &project.repository.teddy_dir(),
        )));
    }
    if checks.is_empty() {
        checks.push(HealthCheck::ok("hooks", "no agent tells its prompts"));
    }
    checks
}

fn check_hook_file(agent: HookedAgent, scope: &str, file: &HookFile) -> Option<HealthCheck> {
    let (name, path) = (agent.name(), display_path(&file.path()));
    let reinstall =
        format!("teddy hooks remove {name} {scope} -y && teddy hooks install {name} {scope} -y");
    let install = format!("teddy hooks install {name} {scope} -y");
    match file.state() {
        Ok(EntryState::Absent | EntryState::Foreign(_)) => return None,
        Err(error) => {
            let reason = format!("{}", sanitize_line(&format!("{error:#}")));
            return Some(HealthCheck::note("hooks", reason));
        }
        Ok(EntryState::Partial) => {
            let reason =
                format!("`{path}` has a part of our hooks only: not every prompt is recorded");
            return Some(HealthCheck::warning("hooks", reason).remedy(install));
        }
        Ok(EntryState::Installed) => {}
    }

    let programs = file.programs().unwrap_or_default();
    let lost = programs
        .iter()
        .find(|program| process::find(program).is_none());
    Some(match lost {
        Some(program) => {
            let reason = format!(
                "`{path}` calls `{}`, which does not exist: no prompt is recorded",
                sanitize_line(program)
            );
            let remedy = match program.contains('/') {
                true => reinstall,
                false => format!(
                    "command -v {}  # finds nothing: its directory is not in PATH",
                    shell_word(program)
                ),
            };
            HealthCheck::warning("hooks", reason).remedy(remedy)
        }
        None => HealthCheck::ok("hooks", format!("`{path}` tells prompts")),
    })
}

fn check_hook_errors(hooks: &std::path::Path) -> Option<HealthCheck> {
    let noted = trouble::read_errors(hooks);
    let last = noted.last()?;
    let reason = format!(
        "a prompt of an agent was not recorded: {}",
        sanitize_line(last)
    );
    Some(HealthCheck::warning("prompts", reason).remedy("teddy hooks status  # lists all"))
}
