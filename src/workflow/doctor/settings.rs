//! Checks the settings: validity, trust in the repository's settings, and keys in them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::{HealthCheck, Patient, display_path, path_word};
use crate::config::layer::{ConfigError, MAX_CONFIG, takes_trust};
use crate::config::unknown;
use crate::git::open::OpenError;
use crate::host::file::read_regular_text;
use crate::host::process;
use crate::model::remote::is_placeholder;
use crate::project::Project;
use crate::text::first_names;
use crate::text::sanitize::sanitize_line;
use crate::text::secret;
use crate::text::shell_word::shell_word;
use crate::workflow::doctor::Repair;
use crate::workflow::hooks::hook_file::{EntryState, HookFile, HookForm};
use crate::workflow::hooks::{self, HookedAgent, hooks_dir};

pub(super) fn run_checks(patient: &Patient) -> Vec<HealthCheck> {
    let mut checks = vec![configuration(patient)];
    checks.extend(match &patient.project {
        Ok(project) if project.repository.is_bare() => Vec::new(),
        Ok(project) => [trust(project)]
            .into_iter()
            .chain(forbidden(project))
            .chain(unknown_settings(project))
            .collect(),
        Err(error) => vec![repository(error)],
    });
    checks.extend(check_keys(patient));
    checks
}

fn configuration(patient: &Patient) -> HealthCheck {
    let Some(mistake) = &patient.mistake else {
        return HealthCheck::ok("configuration", "the configuration can be read");
    };
    let hint = mistake.downcast_ref().map(ConfigError::hint);
    let check = HealthCheck::problem("configuration", format!("{mistake:#}"));
    match hint {
        Some(hint) => check.remedy(hint),
        None => check,
    }
}

fn repository(error: &OpenError) -> HealthCheck {
    let check = match error {
        OpenError::None(_) => HealthCheck::note(
            "repository",
            format!("{error}: only what does not depend on one was looked at"),
        ),
        _ => HealthCheck::problem("repository", error.to_string()),
    };
    match error {
        OpenError::None(_) => check.remedy("teddy init"),
        _ => check.remedy(error.hint()),
    }
}

fn trust(project: &Project) -> HealthCheck {
    let files = project.proposed.len();
    let waiting = ignored(project, takes_trust);
    match (files, project.trusted, waiting.as_slice()) {
        (0, ..) => HealthCheck::ok("trust", "this repository sets nothing"),
        (_, true, _) => HealthCheck::ok("trust", "what this repository sets is trusted"),
        (_, false, []) => HealthCheck::note(
            "trust",
            "what is in `.teddy/` is not trusted: prompts, pipelines and files for the model there are not used",
        )
        .remedy("teddy trust"),
        (_, false, waiting) => HealthCheck::warning(
            "trust",
            format!(
                "`.teddy/config.yaml` is not trusted, and these settings in it are ignored: {}",
                listed(waiting)
            ),
        )
        .remedy("teddy trust"),
    }
}

/// Not even a trusted repository can set these.
fn forbidden(project: &Project) -> Option<HealthCheck> {
    let forbidden = ignored(project, |key| {
        !takes_trust(key) && unknown::suggest(key).is_none()
    });
    let check = || {
        HealthCheck::note(
            "ignored",
            format!(
                "`.teddy/config.yaml` sets what a repository may not decide, trusted or not: {}",
                listed(&forbidden)
            ),
        )
        .remedy("remove that from `.teddy/config.yaml`; your own configuration may set it")
    };
    (!forbidden.is_empty()).then(check)
}

fn unknown_settings(project: &Project) -> Option<HealthCheck> {
    let unknown = ignored(project, |key| unknown::suggest(key).is_some());
    let check = || {
        let names = listed(&unknown);
        HealthCheck::note(
            "ignored",
            format!("`.teddy/config.yaml` has settings that TeDDy does not know: {names}"),
        )
        .remedy("correct or remove them in `.teddy/config.yaml`")
    };
    (!unknown.is_empty()).then(check)
}

fn ignored(project: &Project, is_kind: impl Fn(&str) -> bool) -> Vec<&String> {
    let names = project.ignored.iter();
    names.filter(|name| is_kind(name)).collect()
}

fn listed(names: &[&String]) -> String {
    let text = first_names(names.iter().map(|name| format!("`{name}`")), 8);
    // The names come from the repository and are untrusted.
    sanitize_line(&text).into_owned()
}

/// Captures the value.
static WRITTEN_KEY: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        r"(?i-u)\b(api[_-]?key|x-api-key|(?:proxy-)?authorization|cookie)[\x22']?[ \t]{0,8}:",
        r"[ \t]{0,8}[\x22']?(?:(?:bearer|basic|token)[ \t]{1,8})?([!-~]{8,512})",
    );
    Regex::new(pattern).expect("the pattern is a constant that the tests compile")
});

pub(super) fn check_keys(patient: &Patient) -> Vec<HealthCheck> {
    let users = check_user_config(&patient.user_dirs.config_file);
    let Ok(project) = &patient.project else {
        return vec![users];
    };

    let mut checks = vec![users];
    let own = project.proposed.get("config.yaml");
    if let Some(key) = own.and_then(|text| find_key(text)) {
        let reason = format!(
            "line {} of `.teddy/config.yaml` looks like a {}: everyone with a clone gets it",
            key.line, key.kind
        );
        let check = HealthCheck::problem("keys", reason);
        checks.push(check.remedy(
            "git log -p -- .teddy/config.yaml  # shows who can have it; revoke it, and use `api_key_env` in your own configuration",
        ));
    }

    for (name, value) in project.repository.config_section("teddy") {
        if find_key(&format!(
            "{}: {value}",
            name.rsplit('.').next().unwrap_or(&name)
        ))
        .is_some()
        {
            let reason = format!("git's configuration has a key in it: `teddy.{name}`");
            let remedy = format!("git config --unset {}", shell_word(format!("teddy.{name}")));
            checks.push(HealthCheck::warning("keys", reason).remedy(remedy));
        }
    }

    checks
}

fn check_user_config(file: &Path) -> HealthCheck {
    let name = display_path(file);
    let file_metadata = file.metadata().ok().filter(std::fs::Metadata::is_file);
    let Some(metadata) = file_metadata else {
        return HealthCheck::ok("keys", "no key is written down");
    };
    let mode = metadata.permissions().mode();
    // Writable is worse than readable: the file names programs that run as the user.
    if mode & 0o022 != 0 {
        let reason = format!(
            "others can write `{name}` (mode {:03o}), which says what programs run as you",
            mode & 0o777
        );
        return permission_check(reason, file);
    }

    let text = read_regular_text(file, MAX_CONFIG as u64).unwrap_or_default();
    let Some(key) = find_key(&text) else {
        return HealthCheck::ok("keys", "no key is written down");
    };

    let line = format!("line {} of `{name}` looks like a {}", key.line, key.kind);
    if mode & 0o044 != 0 {
        let reason = format!("{line}, and others can read it (mode {:03o})", mode & 0o777);
        return permission_check(reason, file);
    }
    HealthCheck::warning("keys", format!("{line}: a key is safer in a key store"))
        .remedy("teddy setup  # `api_key_env` names a variable with it, `api_key_command` a program that prints it")
}

fn permission_check(reason: String, file: &Path) -> HealthCheck {
    let remedy = format!("chmod go-rwx {}", path_word(file));
    let check = HealthCheck::problem("keys", reason).remedy(remedy);
    // `--fix` changes only a regular file.
    match file.is_symlink() {
        true => check,
        false => check.repair(Repair::Close(file.to_owned())),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct WrittenKey {
    line: usize,
    kind: &'static str,
}

fn find_key(text: &str) -> Option<WrittenKey> {
    for (at, line) in text.lines().enumerate() {
        let assigned = WRITTEN_KEY
            .captures(line)
            .and_then(|captures| captures.get(2));
        let assigned =
            assigned.map(|value| value.as_str().trim_end_matches(['"', '\'', '}', ',', ']']));
        let is_key =
            assigned.is_some_and(|value| !is_placeholder(value) && !value.starts_with('$'));
        let shaped = secret::find_secret(line).or(is_key.then_some("key"));
        if let Some(kind) = shaped {
            return Some(WrittenKey { line: at + 1, kind });
        }
    }

    // A key that spans several lines.
    secret::find_secret(text).map(|kind| WrittenKey { line: 1, kind })
}

// Hooks that TeDDy installed in agents' settings: whether their program exists, and recent errors.

pub(super) fn check_agents(patient: &Patient) -> Vec<HealthCheck> {
    let mut checks = Vec::new();
    let project = patient.project.as_ref().ok();
    let home = patient.user_dirs.home.as_deref();
    for agent in HookedAgent::ALL {
        let own = HookFile::of_user(agent, HookForm::Events, home).ok();
        checks.extend(own.and_then(|file| check_hook_file(agent, "--user", &file)));
        let files = project.filter(|project| !project.repository.is_bare());
        let shared = files.map(|project| HookFile::of_project(agent, project.repository.workdir()));
        checks.extend(shared.and_then(|file| check_hook_file(agent, "--project", &file)));
    }
    let notify = HookFile::of_user(HookedAgent::Codex, HookForm::Notify, home).ok();
    checks.extend(notify.and_then(|file| check_hook_file(HookedAgent::Codex, "--notify", &file)));

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
    let noted = hooks::read_errors(hooks);
    let last = noted.last()?;
    let reason = format!(
        "a prompt of an agent was not recorded: {}",
        sanitize_line(last)
    );
    Some(HealthCheck::warning("prompts", reason).remedy("teddy hooks status  # lists all"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<usize>) {
        assert_eq!(find_key(text).map(|key| key.line), expected, "{text}");
    }

    #[test]
    fn a_key_is_found_by_its_shape_and_by_its_name() {
        check("model: x\nmodels:\n  x: {kind: openai, id: y}\n", None);
        check("a: b\n  api_key: hunter2hunter2\n", Some(2));
        check("headers: {Authorization: Bearer hunter2hunter2}", Some(1));
        check("headers: {\"x-api-key\": \"hunter2hunter2\"}", Some(1));
        let shaped = format!("x: sk-ant-{}", "a9Zk3Qx7Lm2Vt8Rb5Nw4Yc6H");
        check(&shaped, Some(1));
    }

    #[test]
    fn what_names_a_key_is_none() {
        check("api_key_env: MY_PROVIDER_KEY", None);
        check("api_key_command: [pass, show, openai]", None);
        check("# api_key: your-key-here", None);
        check("headers: {x-api-key: $MY_PROVIDER_KEY}", None);
        check("max_tokens: 100000000", None);
    }
}
