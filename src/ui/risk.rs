//! Finds risky parts of a plan to show before the user approves it.
//!
//! Pure. Risks are warnings; validation rejects what is forbidden.

use std::collections::HashMap;

use crate::plan::action::Action;
use crate::plan::damage::PlanDamage;
use crate::plan::repair::{Level, Note, Repaired};
use crate::plan::validate::{ReadOnlyTarget, Step};
use crate::session::comments::FollowedComment;
use crate::text::damage::Damage;
use crate::text::path::is_deceptive;
use crate::text::sanitize::sanitize_line;
use crate::ui::notice::stopped_early;
use crate::workflow::user::ReviewRequest;

/// Further notes are counted.
const MAX_NOTES: usize = 3;

/// Something to check before approving a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Risk {
    /// Index of the action. `None` for the whole plan.
    pub action: Option<usize>,
    /// Description without a full stop.
    pub text: String,
}

/// Returns all risks: those of the whole plan first, then by action. `damage`: by the plan.
pub fn risks(proposal: &ReviewRequest<'_>, damage: &[PlanDamage]) -> Vec<Risk> {
    let plan_risks = repair(proposal.repair)
        .into_iter()
        .chain(asides(proposal.repair))
        .chain(proposal.agent_stop.map(stopped_early))
        .chain(unconfined(proposal))
        .chain(comments(proposal))
        .chain(hidden_in_header(proposal));
    let mut risks: Vec<Risk> = plan_risks.map(|text| Risk { action: None, text }).collect();
    let mut by_action: HashMap<usize, Vec<Damage>> = HashMap::new();
    for found in damage {
        let damage = by_action.entry(found.action).or_default();
        damage.push(found.damage.clone());
    }
    for (index, action) in proposal.plan.actions.iter().enumerate() {
        let damage = by_action.remove(&index).unwrap_or_default();
        let texts = of_action(action, proposal.simulation.step(index), &damage);
        risks.extend(texts.into_iter().map(|text| Risk {
            action: Some(index),
            text,
        }));
    }

    risks
}

fn read_only_risk(what: ReadOnlyTarget, is_removed: bool) -> &'static str {
    match what {
        ReadOnlyTarget::File if is_removed => "is read-only, and is deleted",
        ReadOnlyTarget::File => "is read-only, and is replaced",
        ReadOnlyTarget::Dir => {
            "is in a read-only directory: the result might stay in the turn until it is writable"
        }
    }
}

/// Returns the risks of one action, with the damage that it does.
pub fn of_action(action: &Action, step: &Step, damage: &[Damage]) -> Vec<String> {
    let target = action.kind.target();
    let mut texts = Vec::new();
    if step.outside_context {
        texts.push(format!(
            "{target} is in no context list: the model has not been shown it"
        ));
    }

    if step.provisional {
        let name = action.kind.name();
        texts.push(format!(
            "{name} {target} depends on an earlier command; it is checked again when it runs"
        ));
    }

    if let Some(other_name) = &step.case_collision {
        texts.push(format!(
            "{target} is the same name as {} for some file systems",
            sanitize_line(other_name)
        ));
    }

    texts.extend(step.read_only.map(|what| {
        let risk = read_only_risk(what, step.removed);
        format!("{target} {risk}")
    }));
    texts.extend(action.kind.risks(step));
    // The action itself says where a link points.
    let damage = damage.iter().filter(|one| **one != Damage::BecomesLink);
    texts.extend(damage.map(|one| format!("{target}: {}", one.sentence())));
    let when = action
        .kind
        .path()
        .and_then(|path| runs_later(path.as_str()));
    texts.extend(when.map(|when| format!("{target} executes later: {when}")));
    let hidden = action
        .kind
        .texts()
        .iter()
        .map(|text| deceptive(text))
        .sum::<usize>();

    if hidden > 0 {
        texts.push(format!(
            "{} {target} has {hidden} hidden or misleading characters, shown as \\u{{..}}",
            action.kind.name()
        ));
    }

    texts
}

fn repair(repaired: &Repaired) -> Vec<String> {
    if repaired.level < Level::Repaired {
        return Vec::new();
    }
    vec![format!(
        "the plan had damaged code blocks and was repaired: {}",
        listed(repaired, false)
    )]
}

/// Lists text next to commands, because it can ask not to run them.
fn asides(repaired: &Repaired) -> Option<String> {
    let asides: Vec<String> = repaired
        .asides()
        .map(|note| format!("line {}: {}", note.line, sanitize_line(&note.message)))
        .collect();
    let listed = asides.join("; ");
    (!asides.is_empty())
        .then(|| format!("there are words beside a command, which may say not to run it: {listed}"))
}

/// Lists the user's comments on the previous plan, with the state of their lines.
fn comments(proposal: &ReviewRequest<'_>) -> Vec<String> {
    let line = |FollowedComment {
                    comment, status, ..
                }: &FollowedComment| {
        let (place, text) = (
            sanitize_line(&comment.place()).into_owned(),
            comment.text.lines().next(),
        );
        let text = sanitize_line(text.unwrap_or_default());
        format!("your comment on {place} is {}: {text}", status.word())
    };
    proposal.comments.iter().map(line).collect()
}

/// Returns what was read in another spelling, or left out: nothing to fear, but to know.
pub fn spellings(repaired: &Repaired) -> Option<String> {
    let noted = repaired.notes.iter().any(|note| note.spelling);
    noted.then(|| format!("read in another spelling: {}", listed(repaired, true)))
}

/// The first notes about spelling, or about fences, and the number of others.
fn listed(repaired: &Repaired, spelling: bool) -> String {
    let notes: Vec<&Note> = repaired
        .notes
        .iter()
        .filter(|note| note.spelling == spelling)
        .collect();
    let lines = notes
        .iter()
        .take(MAX_NOTES)
        .map(|note| format!("line {}: {}", note.line, sanitize_line(&note.message)));
    let omitted = notes.len().saturating_sub(MAX_NOTES);
    let more = (omitted > 0).then(|| format!("and {omitted} more"));

    lines.chain(more).collect::<Vec<_>>().join("; ")
}

fn unconfined(proposal: &ReviewRequest<'_>) -> Option<String> {
    let actions = &proposal.plan.actions;
    if actions.iter().all(|action| action.kind.command().is_none()) {
        return None;
    }
    let confinement = (proposal.confinement)();
    // The description of the confinement starts with its level.
    let free = !confinement.starts_with("sandboxed");
    let problem = if confinement.starts_with("partly") {
        "commands are not fully confined"
    } else {
        "commands run with all your rights"
    };

    free.then(|| format!("{problem} ({confinement})"))
}

fn hidden_in_header(proposal: &ReviewRequest<'_>) -> Option<String> {
    let fields = proposal
        .plan
        .fields
        .iter()
        .map(|field| field.value.as_str());
    let memos = proposal
        .plan
        .memos
        .iter()
        .flat_map(|memo| [Some(memo.text.as_str()), memo.comment.as_deref()])
        .flatten();
    let hidden: usize = fields
        .chain(memos)
        .chain([proposal.plan.title.as_str()])
        .map(deceptive)
        .sum();

    (hidden > 0).then(|| format!("title, header or memos have {hidden} hidden or misleading characters, shown as \\u{{..}}"))
}

/// Counts characters that mislead a reader. Tabs and line ends do not.
fn deceptive(text: &str) -> usize {
    text.replace("\r\n", "\n")
        .chars()
        .filter(|&c| !matches!(c, '\t' | '\n') && is_deceptive(c))
        .count()
}

/// When a file is used, as part of a warning, and the paths of such files: lower-case patterns
/// `name`, `*.ending`, `directory/` at any depth, or `a/b` for an exact path. The first match wins.
const RUNNER_RULES: &[(&str, &str)] = &[
    (
        "continuous integration runs it, with its secrets",
        ".github/workflows/ .github/actions/ .gitlab-ci.yml .gitlab/ci/ .circleci/ \
         jenkinsfile azure-pipelines.yml .travis.yml bitbucket-pipelines.yml .buildkite/ \
         .woodpecker/ .woodpecker.yml .drone.yml .forgejo/workflows/ .gitea/workflows/ \
         .cirrus.yml appveyor.yml .appveyor.yml cloudbuild.yaml buildspec.yml",
    ),
    (
        "git hooks run it",
        ".husky/ .githooks/ githooks/ .hooks/ git-hooks/ .lefthook/ lefthook.yml \
         .lefthook.yml .pre-commit-config.yaml .overcommit.yml",
    ),
    (
        "git obeys it at checkout, filters and submodules included",
        ".gitattributes .gitmodules",
    ),
    (
        "git takes its directory for a repository, whose settings run programs",
        "head",
    ),
    (
        "the shell runs it when you enter the directory or log in",
        ".envrc .mise.toml mise.toml .tool-versions .bashrc .profile .zshrc .bash_profile",
    ),
    (
        "the editor obeys it when it opens the directory",
        ".vscode/ .idea/ .devcontainer/ .devcontainer.json *.code-workspace .vimrc .exrc \
         .nvim.lua .dir-locals.el",
    ),
    (
        "coding agents obey it",
        ".claude/ .cursor/ .mcp.json .cursorrules claude.md agents.md \
         .github/copilot-instructions.md",
    ),
    (
        "the package manager runs its scripts at install",
        "package.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs bunfig.toml",
    ),
    (
        "a build runs it",
        "makefile gnumakefile *.mk cmakelists.txt *.cmake meson.build justfile .justfile \
         taskfile.yml taskfile.yaml rakefile build.rs .cargo/ build.gradle build.gradle.kts \
         settings.gradle settings.gradle.kts gradlew mvnw .mvn/ pom.xml setup.py binding.gyp \
         dockerfile docker-compose.yml docker-compose.yaml compose.yml compose.yaml \
         vagrantfile tox.ini noxfile.py gemfile flake.nix shell.nix default.nix configure \
         *.bazel *.bzl",
    ),
    (
        "every run of Python or its tests loads it",
        "conftest.py sitecustomize.py usercustomize.py *.pth",
    ),
];

/// Returns the trigger of a file that is written, if it has one.
fn runs_later(path: &str) -> Option<&'static str> {
    // Some file systems ignore case, so `Makefile` and `makefile` are the same file.
    let path = path.to_lowercase();
    let is_meant = |patterns: &str| {
        let mut patterns = patterns.split(' ');
        patterns.any(|pattern| matches_pattern(&path, pattern))
    };
    let mut rules = RUNNER_RULES.iter();
    rules
        .find(|(_, patterns)| is_meant(patterns))
        .map(|(when, _)| *when)
}

/// `path` must be lowercase.
fn matches_pattern(path: &str, pattern: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if let Some(ending) = pattern.strip_prefix('*') {
        return name.ends_with(ending);
    }

    if pattern.ends_with('/') {
        return path.starts_with(pattern) || path.contains(&format!("/{pattern}"));
    }

    if pattern.contains('/') {
        return path == pattern;
    }

    name == pattern || (pattern == "dockerfile" && name.starts_with("dockerfile."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::action::ActionKind;
    use crate::plan::action::execute::Execute;
    use crate::plan::samples::actions::{command, new_file};

    fn action(kind: ActionKind) -> Action {
        Action {
            line: 1,
            fields: Vec::new(),
            kind,
        }
    }

    fn create(path: &str, contents: &str) -> Action {
        action(new_file(path, contents).into())
    }

    fn check(action: &Action, step: &Step, expected: &[&str]) {
        assert_eq!(of_action(action, step, &[]), expected);
    }

    #[test]
    fn an_ordinary_file_is_no_risk() {
        check(
            &create("src/a.rs", "fn a() {}\n\té 日本 🟢\r\n"),
            &Step::default(),
            &[],
        );
    }

    #[test]
    fn a_file_outside_the_context_is_said() {
        let step = Step {
            outside_context: true,
            ..Step::default()
        };
        check(
            &create("a", ""),
            &step,
            &["a is in no context list: the model has not been shown it"],
        );
    }

    #[test]
    fn a_read_only_file_or_directory_is_said() {
        let step = |read_only, removed| Step {
            read_only: Some(read_only),
            removed,
            ..Step::default()
        };
        check(
            &create("a", ""),
            &step(ReadOnlyTarget::File, false),
            &["a is read-only, and is replaced"],
        );
        check(
            &create("a", ""),
            &step(ReadOnlyTarget::File, true),
            &["a is read-only, and is deleted"],
        );
        check(
            &create("d/a", ""),
            &step(ReadOnlyTarget::Dir, false),
            &[
                "d/a is in a read-only directory: the result might stay in the turn until it is writable",
            ],
        );
    }

    #[test]
    fn what_is_replaced_is_counted() {
        let step = Step {
            before: Some(b"a\nb\n".to_vec()),
            after: Some(b"c\n".to_vec()),
            ..Step::default()
        };
        check(
            &create("a", "c"),
            &step,
            &["a is there already: its 2 lines are replaced"],
        );
    }

    #[test]
    fn hidden_characters_are_counted() {
        check(
            &create("a", "x\u{202e}y\u{1b}"),
            &Step::default(),
            &["CREATE a has 2 hidden or misleading characters, shown as \\u{..}"],
        );
    }

    #[test]
    fn a_command_that_steers_programs_is_said() {
        let env = [("LD_PRELOAD", "x.so"), ("A", "b")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let execute = Execute {
            env: env.into(),
            ..command("make")
        };
        check(
            &action(execute.into()),
            &Step::default(),
            &["a command sets LD_PRELOAD for itself"],
        );
    }

    #[test]
    fn a_repaired_plan_says_what_was_assumed() {
        let notes = (1..=5)
            .map(|line| Note::new(line, "fence closed"))
            .collect();
        let repaired = Repaired {
            text: String::new(),
            level: Level::Repaired,
            notes,
        };
        let expected = "the plan had damaged code blocks and was repaired: line 1: fence closed; line 2: fence closed; line 3: fence closed; and 2 more";
        assert_eq!(repair(&repaired), [expected]);
        assert_eq!(
            repair(&Repaired {
                level: Level::Refenced,
                ..repaired
            }),
            Vec::<String>::new()
        );
    }
}

#[cfg(test)]
mod later_tests {
    use super::*;

    fn check(path: &str, expected: Option<&str>) {
        assert_eq!(runs_later(path), expected, "for {path}");
    }

    #[test]
    fn files_that_run_later_are_known_in_any_case_and_folder() {
        check(
            ".github/workflows/ci.yml",
            Some("continuous integration runs it, with its secrets"),
        );
        check("Makefile", Some("a build runs it"));
        check(
            "web/package.json",
            Some("the package manager runs its scripts at install"),
        );
        check(
            "sub/.envrc",
            Some("the shell runs it when you enter the directory or log in"),
        );
        check(
            ".vscode/tasks.json",
            Some("the editor obeys it when it opens the directory"),
        );
        check(".husky/pre-commit", Some("git hooks run it"));
        check(
            "docs/.gitattributes",
            Some("git obeys it at checkout, filters and submodules included"),
        );
        check("Dockerfile.dev", Some("a build runs it"));
        check(
            "tool/HEAD",
            Some("git takes its directory for a repository, whose settings run programs"),
        );
        check("AGENTS.md", Some("coding agents obey it"));
    }

    #[test]
    fn ordinary_files_do_not() {
        for path in [
            "src/main.rs",
            "my-package.json",
            "docs/makefile.md",
            "husky/a.js",
            "rules.make",
        ] {
            check(path, None);
        }
    }
}
