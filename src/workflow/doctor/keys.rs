//! Finds keys in configuration files, and files that other users can access.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::fix::Repair;
use super::{HealthCheck, HealthState, Patient, display_path, path_word};
use crate::config::layer::MAX_CONFIG;
use crate::host::file::read_regular_text;
use crate::model::remote::is_placeholder;
use crate::text::secret;
use crate::text::shell_word::shell_word;

/// Matches settings and headers that hold a key, and captures the value.
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
        return permission_check(HealthState::Problem, reason, file);
    }

    let text = read_regular_text(file, MAX_CONFIG as u64).unwrap_or_default();
    let Some(key) = find_key(&text) else {
        return HealthCheck::ok("keys", "no key is written down");
    };

    let line = format!("line {} of `{name}` looks like a {}", key.line, key.kind);
    if mode & 0o044 != 0 {
        let reason = format!("{line}, and others can read it (mode {:03o})", mode & 0o777);
        return permission_check(HealthState::Problem, reason, file);
    }
    HealthCheck::warning("keys", format!("{line}: a key is safer in a key store"))
        .remedy("teddy setup  # `api_key_env` names a variable with it, `api_key_command` a program that prints it")
}

fn permission_check(state: HealthState, reason: String, file: &Path) -> HealthCheck {
    let check = HealthCheck::new("keys", state, reason);
    let check = check.remedy(format!("chmod go-rwx {}", path_word(file)));
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
