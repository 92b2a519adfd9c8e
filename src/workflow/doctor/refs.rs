//! The repository's git: HEAD, and settings that would send sessions by accident, or overwrite
//! them.

use std::collections::BTreeMap;

use super::fix::Repair;
use super::{HealthCheck, Patient, hooks, path_word};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::text::shell_word::shell_word;
use crate::text::visible::visible;

/// Where our refs are.
const OURS: &str = "refs/teddy/";
/// Where what was fetched from others is kept; it may be overwritten.
const FETCHED: &str = "refs/teddy/remotes/";
/// What keeps a refspec away from our refs.
const EXCLUSION: &str = "'^refs/teddy/*'";

/// The settings of a remote.
#[derive(Debug, Default)]
struct RemoteSettings {
    /// Whether a push sends everything.
    is_mirror: bool,
    /// What a push sends.
    push: Vec<String>,
    /// What a fetch brings.
    fetch: Vec<String>,
}

/// Looks at the repository's git.
pub(super) fn look(patient: &Patient) -> Vec<HealthCheck> {
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

    checks.extend(hooks::look(repository));
    if checks.iter().all(|check| check.name != "push") {
        checks.push(HealthCheck::ok(
            "push",
            "no setting sends sessions by accident",
        ));
    }
    checks
}

/// Looks at HEAD.
fn head(repository: &Repository) -> HealthCheck {
    match refs::head(repository) {
        Ok(_) => HealthCheck::ok("head", "HEAD can be read"),
        Err(error) => {
            let file = repository.git_dir().join("HEAD");
            // git itself takes it for no repository any more.
            let remedy = match repository.config("extensions.refStorage").as_deref() {
                Some("reftable") => "git fsck".to_owned(),
                _ => format!("echo 'ref: refs/heads/<branch>' > {}", path_word(&file)),
            };
            HealthCheck::problem("head", visible(&format!("{error:#}"))).remedy(remedy)
        }
    }
}

/// Looks at whether `git log` shows the refs of sessions beside commits.
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

/// Returns whether a pattern of `log.excludeDecoration` covers our refs.
fn hides(pattern: &str) -> bool {
    let whole = pattern.trim_end_matches('*').trim_end_matches('/');
    ["refs", "refs/teddy"].contains(&whole)
}

/// Collects the settings of each remote, by its name.
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

/// Returns whether git takes a value for yes; a name without a value is one.
fn is_true(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    ["", "true", "yes", "on", "1"].contains(&value.as_str())
}

/// Looks at what a push to a remote sends.
fn pushed(name: &str, settings: &RemoteSettings) -> Vec<HealthCheck> {
    let (shown, key) = (visible(name), format!("remote.{name}"));
    if settings.is_mirror {
        let reason = format!(
            "`git push {shown}` sends every ref, and with `refs/teddy` all your sessions and snapshots, untracked files included: `{}.mirror` is set",
            visible(&key)
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
    let told = reaching.into_iter().map(|spec| {
        let means = spec.source.starts_with(OURS);
        let sends = format!(
            "`git push {shown}` sends sessions, and with them every file that a snapshot took: `{}.push` is `{}`",
            visible(&key),
            visible(spec.text)
        );
        // Who names them means them, mostly.
        match means {
            true => HealthCheck::note("push", sends),
            false => HealthCheck::warning("push", sends),
        }
        .remedy(remedy.clone())
    });
    told.collect()
}

/// Looks at what a fetch from a remote overwrites.
fn fetched(name: &str, settings: &RemoteSettings, is_bare: bool) -> Vec<HealthCheck> {
    let (shown, key) = (visible(name), format!("remote.{name}.fetch"));
    let remedy = format!("git config --add {} {EXCLUSION}", shell_word(&key));
    let reaching = Refspec::reaching(&settings.fetch, |spec| spec.target);
    let told = reaching.into_iter().filter(|spec| spec.is_forced).map(|spec| {
        let reason = format!(
            "`git fetch {shown}` overwrites the sessions here with those there, and with `--prune` deletes them: `{}` is `{}`",
            visible(&key),
            visible(spec.text)
        );
        // A mirror without files is there for that.
        match is_bare {
            true => HealthCheck::note("fetch", reason),
            false => HealthCheck::warning("fetch", reason),
        }
        .remedy(remedy.clone())
    });
    told.collect()
}

/// What one line of `push` or `fetch` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refspec<'a> {
    /// As it is written.
    text: &'a str,
    /// Whether it overwrites.
    is_forced: bool,
    /// Whether it takes refs out.
    is_negative: bool,
    /// What is sent or fetched.
    source: &'a str,
    /// Where it goes.
    target: &'a str,
}

impl<'a> Refspec<'a> {
    /// Reads a line.
    fn parse(text: &'a str) -> Refspec<'a> {
        let rest = text.trim_start_matches(['+', '^']);
        let (source, target) = rest.split_once(':').unwrap_or((rest, ""));
        Refspec {
            text,
            is_forced: text.starts_with('+'),
            is_negative: text.starts_with('^'),
            source,
            target,
        }
    }

    /// Returns the lines whose side reaches our refs, if no other line takes them out.
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

/// Returns whether a pattern can match a ref of ours that is not one fetched from others.
fn reaches(pattern: &str) -> bool {
    // Git completes what does not begin with `refs/`.
    let pattern = match pattern.strip_prefix("teddy/") {
        Some(rest) => format!("{OURS}{rest}"),
        None => pattern.to_owned(),
    };
    match pattern.split_once('*') {
        _ if pattern.starts_with(FETCHED) => false,
        Some((start, _)) => OURS.starts_with(start) || start.starts_with(OURS),
        None => pattern.starts_with(OURS),
    }
}

/// Returns whether a pattern matches every ref of ours.
fn is_covered_by(pattern: &str) -> bool {
    pattern
        .strip_suffix('*')
        .is_some_and(|start| OURS.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares which checks the settings of a remote lead to.
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
        let found: Vec<String> = checks
            .map(|check| format!("{:?} {}", check.state, check.name))
            .collect();
        assert_eq!(found, expected, "{settings:?}");
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
