//! Checks HEAD, and git settings that push or overwrite sessions by accident.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{HealthCheck, Patient, display_path, path_word};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::host::file::read_regular;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_word;
use crate::workflow::doctor::Repair;

const OURS: &str = "refs/teddy/";

/// A fetch is expected to overwrite these.
const FETCHED: &str = "refs/teddy/remotes/";

const EXCLUSION: &str = "'^refs/teddy/*'";

#[derive(Debug, Default)]
struct RemoteSettings {
    is_mirror: bool,
    push: Vec<String>,
    fetch: Vec<String>,
}

pub(super) fn run_checks(patient: &Patient) -> Vec<HealthCheck> {
    let Ok(project) = &patient.project else {
        return Vec::new();
    };
    let repository = &project.repository;
    let mut checks = vec![head(repository), decoration(repository)];
    if let Some(error) = repository.wrongly_bare() {
        checks.push(HealthCheck::problem("bare", error.to_string()).remedy(error.hint()));
    }
    for (name, settings) in remotes(repository.config_section("remote")) {
        checks.extend(pushed(&name, &settings));
        checks.extend(fetched(&name, &settings, repository.is_bare()));
    }

    checks.extend(check_hooks(repository));
    if checks.iter().all(|check| check.name != "push") {
        checks.push(HealthCheck::ok(
            "push",
            "no setting sends sessions by accident",
        ));
    }
    checks
}

fn head(repository: &Repository) -> HealthCheck {
    match refs::head(repository) {
        Ok(_) => HealthCheck::ok("head", "HEAD can be read"),
        Err(error) => {
            let file = repository.git_dir().join("HEAD");
            // git does not recognize such a directory as a repository, so the hint must not need
            // it.
            let remedy = match repository.config("extensions.refStorage").as_deref() {
                Some("reftable") => "git fsck".to_owned(),
                _ => format!("echo 'ref: refs/heads/<branch>' > {}", path_word(&file)),
            };
            HealthCheck::problem("head", sanitize_line(&format!("{error:#}"))).remedy(remedy)
        }
    }
}

fn decoration(repository: &Repository) -> HealthCheck {
    let hidden = repository.config_section("log");
    let mut hidden = hidden
        .iter()
        .filter(|(key, _)| key.eq_ignore_ascii_case("excludeDecoration"));
    let is_hidden = hidden.any(|(_, pattern)| hides(pattern));
    let has_any = refs::list(repository, OURS).is_ok_and(|listed| !listed.is_empty());
    if is_hidden || !has_any {
        return HealthCheck::ok("log", "`git log` is not decorated with sessions");
    }

    let reason = "`git log --all` and tools like it show every session's refs beside your commits (`git log --exclude='refs/teddy/*' --all` leaves out their commits, too)";
    HealthCheck::note("log", reason)
        .remedy("git config --add log.excludeDecoration refs/teddy/")
        .repair(Repair::HideDecoration)
}

fn hides(pattern: &str) -> bool {
    let prefix = pattern.trim_end_matches('*').trim_end_matches('/');
    ["refs", "refs/teddy"].contains(&prefix)
}

fn remotes(section: Vec<(String, String)>) -> BTreeMap<String, RemoteSettings> {
    let mut remotes: BTreeMap<String, RemoteSettings> = BTreeMap::new();
    for (key, value) in section {
        let Some((name, key)) = key.rsplit_once('.') else {
            continue;
        };
        let remote = remotes.entry(name.to_owned()).or_default();
        match key.to_ascii_lowercase().as_str() {
            "mirror" => remote.is_mirror = is_true(&value),
            "push" => remote.push.push(value),
            "fetch" => remote.fetch.push(value),
            _ => {}
        }
    }
    remotes
}

fn is_true(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    // As in git: a key without a value is true.
    ["", "true", "yes", "on", "1"].contains(&value.as_str())
}

fn pushed(name: &str, settings: &RemoteSettings) -> Vec<HealthCheck> {
    let (display_name, key) = (sanitize_line(name), format!("remote.{name}"));
    if settings.is_mirror {
        let reason = format!(
            "`git push {display_name}` sends every ref, and with `refs/teddy` all your sessions and snapshots, untracked files included: `{}.mirror` is set",
            sanitize_line(&key)
        );
        let remedy = format!(
            "git config --unset-all {}",
            shell_word(format!("{key}.mirror"))
        );
        return vec![HealthCheck::warning("push", reason).remedy(remedy)];
    }

    let remedy = format!(
        "git config --add {} {EXCLUSION}",
        shell_word(format!("{key}.push"))
    );
    let reaching = Refspec::reaching(&settings.push, |spec| spec.source);
    let checks = reaching.into_iter().map(|spec| {
        let means = spec.source.starts_with(OURS);
        let sends = format!(
            "`git push {display_name}` sends sessions, and with them every file that a snapshot took: `{}.push` is `{}`",
            sanitize_line(&key),
            sanitize_line(spec.text)
        );
        // A refspec that names our refs is probably intended.
        match means {
            true => HealthCheck::note("push", sends),
            false => HealthCheck::warning("push", sends),
        }
        .remedy(remedy.clone())
    });
    checks.collect()
}

fn fetched(name: &str, settings: &RemoteSettings, is_bare: bool) -> Vec<HealthCheck> {
    let (display_name, key) = (sanitize_line(name), format!("remote.{name}.fetch"));
    let remedy = format!("git config --add {} {EXCLUSION}", shell_word(&key));
    let reaching = Refspec::reaching(&settings.fetch, |spec| spec.target);
    let checks = reaching.into_iter().filter(|spec| spec.is_forced).map(|spec| {
        let reason = format!(
            "`git fetch {display_name}` overwrites the sessions here with those there, and with `--prune` deletes them: `{}` is `{}`",
            sanitize_line(&key),
            sanitize_line(spec.text)
        );
        // Overwriting everything is the purpose of a bare mirror.
        match is_bare {
            true => HealthCheck::note("fetch", reason),
            false => HealthCheck::warning("fetch", reason),
        }
        .remedy(remedy.clone())
    });
    checks.collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refspec<'a> {
    text: &'a str,
    is_forced: bool,
    is_negative: bool,
    source: &'a str,
    target: &'a str,
}

impl<'a> Refspec<'a> {
    fn parse(text: &'a str) -> Refspec<'a> {
        let spec = text.trim_start_matches(['+', '^']);
        let (source, target) = spec.split_once(':').unwrap_or((spec, ""));
        Refspec {
            text,
            is_forced: text.starts_with('+'),
            is_negative: text.starts_with('^'),
            source,
            target,
        }
    }

    /// Refspecs with a side that matches our refs, unless another one excludes them all.
    fn reaching(lines: &'a [String], side: fn(&Refspec<'a>) -> &'a str) -> Vec<Refspec<'a>> {
        let specs = || lines.iter().map(|line| Refspec::parse(line));
        if specs().any(|spec| spec.is_negative && is_covered_by(spec.source)) {
            return Vec::new();
        }
        specs()
            .filter(|spec| !spec.is_negative && reaches(side(spec)))
            .collect()
    }
}

/// Other than fetched refs.
fn reaches(pattern: &str) -> bool {
    // git expands `teddy/x` to `refs/teddy/x`.
    let pattern = match pattern.strip_prefix("teddy/") {
        Some(suffix) => format!("{OURS}{suffix}"),
        None => pattern.to_owned(),
    };
    match pattern.split_once('*') {
        _ if pattern.starts_with(FETCHED) => false,
        Some((start, _)) => OURS.starts_with(start) || start.starts_with(OURS),
        None => pattern.starts_with(OURS),
    }
}

fn is_covered_by(pattern: &str) -> bool {
    pattern
        .strip_suffix('*')
        .is_some_and(|start| OURS.starts_with(start))
}

const MAX_HOOK: u64 = 64 << 10;
const MOST_HOOKS: usize = 50;

pub(super) fn check_hooks(repository: &Repository) -> Vec<HealthCheck> {
    let aliases = repository.config_section("alias");
    let aliases = aliases.iter().filter(|(_, line)| sends_all(line));
    let aliases = aliases.map(|(name, _)| {
        let reason = format!(
            "the alias `git {}` pushes everything, and with `refs/teddy` all your sessions and snapshots, untracked files included",
            sanitize_line(name)
        );
        let remedy = format!("git config --show-origin {}", shell_word(format!("alias.{name}")));
        HealthCheck::warning("push", reason).remedy(format!("{remedy}  # shows where it is set"))
    });
    let hooks = list_hooks(repository)
        .into_iter()
        .filter(|path| is_sending_hook(path));
    let hooks = hooks.map(|path| {
        let reason = format!(
            "the hook `{}` pushes everything, and with `refs/teddy` all your sessions and snapshots, untracked files included",
            display_path(&path)
        );
        let remedy = format!("grep -n push {}", path_word(&path));
        HealthCheck::warning("push", reason).remedy(remedy)
    });

    aliases
        .chain(hooks)
        .chain(check_missing_hooks_dir(repository))
        .collect()
}

fn check_missing_hooks_dir(repository: &Repository) -> Option<HealthCheck> {
    let (dir, file) = repository.missing_hooks_dir()?;
    let reason = format!(
        "`core.hooksPath` is `{}`, which does not exist: neither git nor `teddy land` runs any hook",
        display_path(&dir)
    );
    let remedy = format!(
        "git config --file {} --unset-all core.hooksPath",
        path_word(&file)
    );
    Some(HealthCheck::warning("hooks", reason).remedy(remedy))
}

fn list_hooks(repository: &Repository) -> Vec<PathBuf> {
    let dir = match repository.config("core.hooksPath") {
        Some(path) => repository.workdir().join(path),
        None => repository.common_dir().join("hooks"),
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        // Not the `.sample` files.
        .filter(|path| path.extension().is_none())
        .take(MOST_HOOKS)
        .collect();
    paths.sort();
    paths
}

fn is_sending_hook(path: &Path) -> bool {
    let bytes = read_regular(path, MAX_HOOK).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().map(str::trim_start);
    lines.any(|line| !line.starts_with('#') && sends_all(line))
}

fn sends_all(line: &str) -> bool {
    let mut tokens = line.split(|c: char| c.is_whitespace() || "'\";&|".contains(c));
    tokens.any(|word| word == "push")
        && tokens.any(|word| {
            let spec = word.trim_start_matches('+');
            word == "--mirror" || spec.starts_with("refs/*") || spec.starts_with("refs/teddy/")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(settings: &[(&str, &str)], expected: &[&str]) {
        let pairs = settings
            .iter()
            .map(|(key, value)| (format!("r.{key}"), (*value).to_owned()));
        let remotes = remotes(pairs.collect());
        let checks = remotes.iter().flat_map(|(name, settings)| {
            let mut checks = pushed(name, settings);
            checks.extend(fetched(name, settings, false));
            checks
        });
        let actual: Vec<String> = checks
            .map(|check| format!("{:?} {}", check.state, check.name))
            .collect();
        assert_eq!(actual, expected, "{settings:?}");
    }

    #[test]
    fn what_sends_sessions_is_found() {
        check(&[("mirror", "true")], &["Warning push"]);
        check(&[("Mirror", "")], &["Warning push"]);
        check(&[("push", "refs/*:refs/*")], &["Warning push"]);
        check(&[("push", "+refs/*")], &["Warning push"]);
        check(&[("push", "+refs/*:refs/backup/*")], &["Warning push"]);
        check(&[("push", "refs/te*:refs/te*")], &["Warning push"]);
        check(&[("push", "refs/teddy/*")], &["Note push"]);
        check(
            &[("push", "refs/teddy/sessions/a:refs/teddy/sessions/a")],
            &["Note push"],
        );
        check(&[("push", "teddy/sessions/a")], &["Warning push"]);
    }

    #[test]
    fn what_sends_none_is_not() {
        check(&[("mirror", "false")], &[]);
        check(&[("push", "refs/heads/*:refs/heads/*")], &[]);
        check(&[("push", "HEAD")], &[]);
        check(&[("push", "main:refs/heads/teddy/main")], &[]);
        check(&[("push", "refs/*:refs/*"), ("push", "^refs/teddy/*")], &[]);
        check(
            &[("push", "refs/*:refs/*"), ("push", "^refs/teddy/a/*")],
            &["Warning push"],
        );
    }

    #[test]
    fn what_overwrites_sessions_is_found() {
        check(&[("fetch", "+refs/*:refs/*")], &["Warning fetch"]);
        check(
            &[("fetch", "+refs/teddy/*:refs/teddy/*")],
            &["Warning fetch"],
        );
        check(&[("fetch", "refs/teddy/*:refs/teddy/*")], &[]);
        check(&[("fetch", "+refs/heads/*:refs/remotes/r/*")], &[]);
        check(
            &[("fetch", "+refs/teddy/sessions/*:refs/teddy/remotes/r/*")],
            &[],
        );
        check(
            &[("fetch", "+refs/*:refs/*"), ("fetch", "^refs/teddy/*")],
            &[],
        );
    }

    #[test]
    fn decorations_are_hidden_by_any_pattern_that_covers_them() {
        let check = |pattern: &str, expected: bool| assert_eq!(hides(pattern), expected);
        for pattern in ["refs/teddy/", "refs/teddy", "refs/teddy/*", "refs/*"] {
            check(pattern, true);
        }
        check("refs/teddy/drafts/", false);
        check("refs/heads/*", false);
    }
}

#[cfg(test)]
mod hooks_tests {
    use super::*;

    #[test]
    fn a_push_of_everything_is_known() {
        let check = |line: &str, expected: bool| assert_eq!(sends_all(line), expected, "{line}");
        check("git push --mirror backup", true);
        check("!git push backup '+refs/*:refs/*'", true);
        check("push backup refs/teddy/*:refs/teddy/*", true);
        check("push --all", false);
        check("git push origin HEAD; git fetch --all", false);
        check("git clone --mirror x", false);
        check("echo pushed --mirror", false);
    }
}
