//! Recognizes files that other programs execute or obey later without asking.

use crate::plan::action::Action;

/// Paths with the same trigger.
struct RunnerRule {
    /// Lowercase patterns: `name`, `*.ending`, `directory/` at any depth, or `a/b` for an exact
    /// path.
    paths: &'static [&'static str],
    /// When the file is used, as part of a warning.
    when: &'static str,
}

/// The first match wins.
const RUNNER_RULES: &[RunnerRule] = &[
    RunnerRule {
        paths: &[
            ".github/workflows/",
            ".github/actions/",
            ".gitlab-ci.yml",
            ".gitlab/ci/",
            ".circleci/",
            "jenkinsfile",
            "azure-pipelines.yml",
            ".travis.yml",
            "bitbucket-pipelines.yml",
            ".buildkite/",
            ".woodpecker/",
            ".woodpecker.yml",
            ".drone.yml",
            ".forgejo/workflows/",
            ".gitea/workflows/",
            ".cirrus.yml",
            "appveyor.yml",
            ".appveyor.yml",
            "cloudbuild.yaml",
            "buildspec.yml",
        ],
        when: "continuous integration runs it, with its secrets",
    },
    RunnerRule {
        paths: &[
            ".husky/",
            ".githooks/",
            "githooks/",
            ".hooks/",
            "git-hooks/",
            ".lefthook/",
            "lefthook.yml",
            ".lefthook.yml",
            ".pre-commit-config.yaml",
            ".overcommit.yml",
        ],
        when: "git hooks run it",
    },
    RunnerRule {
        paths: &[".gitattributes", ".gitmodules"],
        when: "git obeys it at checkout, filters and submodules included",
    },
    RunnerRule {
        paths: &[
            ".envrc",
            ".mise.toml",
            "mise.toml",
            ".tool-versions",
            ".bashrc",
            ".profile",
            ".zshrc",
            ".bash_profile",
        ],
        when: "the shell runs it when you enter the directory or log in",
    },
    RunnerRule {
        paths: &[
            ".vscode/",
            ".idea/",
            ".devcontainer/",
            ".devcontainer.json",
            "*.code-workspace",
            ".vimrc",
            ".exrc",
            ".nvim.lua",
            ".dir-locals.el",
        ],
        when: "the editor obeys it when it opens the directory",
    },
    RunnerRule {
        paths: &[
            ".claude/",
            ".cursor/",
            ".mcp.json",
            ".cursorrules",
            "claude.md",
            "agents.md",
            ".github/copilot-instructions.md",
        ],
        when: "coding agents obey it",
    },
    RunnerRule {
        paths: &[
            "package.json",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".pnpmfile.cjs",
            "bunfig.toml",
        ],
        when: "the package manager runs its scripts at install",
    },
    RunnerRule {
        paths: &[
            "makefile",
            "gnumakefile",
            "*.mk",
            "cmakelists.txt",
            "*.cmake",
            "meson.build",
            "justfile",
            ".justfile",
            "taskfile.yml",
            "taskfile.yaml",
            "rakefile",
            "build.rs",
            ".cargo/",
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
            "gradlew",
            "mvnw",
            ".mvn/",
            "pom.xml",
            "setup.py",
            "binding.gyp",
            "dockerfile",
            "docker-compose.yml",
            "docker-compose.yaml",
            "compose.yml",
            "compose.yaml",
            "vagrantfile",
            "tox.ini",
            "noxfile.py",
            "gemfile",
            "flake.nix",
            "shell.nix",
            "default.nix",
            "configure",
            "*.bazel",
            "*.bzl",
        ],
        when: "a build runs it",
    },
    RunnerRule {
        paths: &[
            "conftest.py",
            "sitecustomize.py",
            "usercustomize.py",
            "*.pth",
        ],
        when: "every run of Python or its tests loads it",
    },
];

/// Returns the trigger of the file that an action writes, if it has one.
pub(super) fn runs_later(action: &Action) -> Option<&'static str> {
    path_runs_later(action.kind.path()?.as_str())
}

fn path_runs_later(path: &str) -> Option<&'static str> {
    // Some file systems ignore case, so `Makefile` and `makefile` are the same file.
    let path = path.to_lowercase();
    RUNNER_RULES
        .iter()
        .find(|rule| {
            rule.paths
                .iter()
                .any(|pattern| matches_pattern(&path, pattern))
        })
        .map(|rule| rule.when)
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

    fn check(path: &str, expected: Option<&str>) {
        assert_eq!(path_runs_later(path), expected, "for {path}");
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
