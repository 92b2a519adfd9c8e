//! Chooses the program that runs a script: the one in its `#!` line, the user's, or a shell.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::host::file::read_regular_text;
use crate::host::process;
use crate::text::sanitize::sanitize_line;

/// The shell of every system.
const DEFAULT_SHELL: &str = "sh";

/// Shells that run a block in their language, if they are installed.
const OTHER_SHELLS: [&str; 2] = ["bash", "zsh"];

/// Messages of a plain `sh` for the syntax and the builtins of bash.
const SYNTAX_ERRORS: [&str; 12] = [
    "source: not found",
    "[[: not found",
    "Bad substitution",
    "Illegal option -o pipefail",
    "pipefail: invalid option name",
    "Syntax error: \"(\" unexpected",
    "Syntax error: redirection unexpected",
    "declare: not found",
    "shopt: not found",
    "mapfile: not found",
    "pushd: not found",
    "let: not found",
];

/// Ends of a shell's message about a program that it cannot start because a file does not exist.
const MISSING: [&str; 3] = [
    ": not found",
    ": No such file or directory",
    ": cannot execute: required file not found",
];

/// In bytes, of a script.
const MAX_SCRIPT: u64 = 1 << 20;
/// Lines of an output that are read.
const MAX_MESSAGES: usize = 20;
/// As the kernel limits it.
const MAX_LINKS: usize = 40;

/// The program that runs a script without a `#!` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shell {
    /// `bash` or `zsh`, if this is the language of the script and it is installed. Otherwise `sh`.
    ForLanguage(String),
    /// The user's choice, for scripts in any language: a program and its options. It can be a
    /// container, so a `#!` line that names another program is refused.
    Configured(Vec<String>),
}

/// The program that a script asks for in its `#!` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// Its path, or its name.
    pub program: String,
    /// What follows, one argument as for the kernel.
    pub argument: Option<String>,
}

impl Default for Shell {
    fn default() -> Shell {
        Shell::ForLanguage(DEFAULT_SHELL.to_owned())
    }
}

impl Shell {
    /// Returns the shell for a block: the setting, if there is one, else one for its language.
    pub fn new(setting: Option<&str>, language: &str) -> Shell {
        match setting.and_then(shlex::split) {
            Some(words) if !words.is_empty() => Shell::Configured(words),
            _ => Shell::ForLanguage(language.to_owned()),
        }
    }

    /// Describes which blocks run in which shell, as in `sh; blocks in bash run in bash`.
    pub fn describe(setting: Option<&str>) -> String {
        if let Some(setting) = setting {
            return setting.to_owned();
        }
        let others = OTHER_SHELLS
            .iter()
            .filter(|name| process::find(name).is_some());
        let others = others.map(|name| format!("; `{name}` blocks run in {name}"));
        [DEFAULT_SHELL.to_owned()]
            .into_iter()
            .chain(others)
            .collect()
    }

    /// Returns the program and its options.
    pub fn words(&self) -> Vec<String> {
        match self {
            Shell::Configured(words) => words.clone(),
            Shell::ForLanguage(language) => {
                let language = language.to_lowercase();
                let other = OTHER_SHELLS.iter().find(|name| **name == language);
                let installed = other.filter(|name| process::find(name).is_some());
                vec![(*installed.unwrap_or(&DEFAULT_SHELL)).to_owned()]
            }
        }
    }

    /// Returns the program that runs a script, and its options: what the script asks for in its `#!`
    /// line, otherwise the shell. Fails with the reason why there is none.
    pub(in crate::host) fn command_for(&self, text: &str) -> Result<Vec<OsString>, String> {
        let words = self.words();
        let shell_line = words.join(" ");
        let missing = |name: &str| format!("cannot start `{name}`: no such file or directory");
        let (name, options) = words.split_first().ok_or_else(|| missing(&shell_line))?;
        let name_of = |program: &str| program.rsplit('/').next().unwrap_or_default().to_owned();
        let is_configured = matches!(self, Shell::Configured(_));
        let asked = match requested_interpreter(text) {
            Some(asked) if is_configured && name_of(&asked.program) == name_of(name) => None,
            Some(asked) if is_configured => {
                return Err(format!(
                    "the script asks for `{}`, and `execute.shell` is `{shell_line}`",
                    asked.program
                ));
            }
            asked => asked,
        };
        let (program, displayed, options) = match asked {
            Some(asked) => {
                let options = asked.argument.into_iter().collect();
                (asked.program.clone(), asked.program, options)
            }
            None => (name.clone(), shell_line, options.to_vec()),
        };

        let path = process::find(&program).ok_or_else(|| missing(&displayed))?;
        let options = options.into_iter().map(OsString::from);
        Ok(std::iter::once(path.into()).chain(options).collect())
    }

    /// Returns the program of a script's `#!` line that does not exist. `env` is looked through.
    pub fn missing_interpreter(&self, text: &str) -> Option<String> {
        let asked = requested_interpreter(text)?;
        if let Shell::Configured(_) = self {
            return self.command_for(text).err().map(|_| asked.program);
        }
        let program = asked.program_behind_env();
        process::find(&program).is_none().then_some(program)
    }
}

impl Interpreter {
    /// Returns the program that `env` starts, else the program itself.
    fn program_behind_env(&self) -> String {
        let is_env = self.program.rsplit('/').next() == Some("env");
        let words = self
            .argument
            .iter()
            .flat_map(|words| words.split_whitespace());
        let mut started = words.filter(|word| !word.starts_with('-') && !word.contains('='));
        match started.next() {
            Some(name) if is_env => name.to_owned(),
            _ => self.program.clone(),
        }
    }
}

/// Returns the program that a script asks for; an empty one if its `#!` line names none.
pub fn requested_interpreter(text: &str) -> Option<Interpreter> {
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    let asked = first.trim().strip_prefix("#!")?.trim();
    let (program, argument) = asked.split_once([' ', '\t']).unwrap_or((asked, ""));
    let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
    Some(Interpreter {
        program: program.to_owned(),
        argument: argument.map(ToOwned::to_owned),
    })
}

/// Returns a hint if the output of a failed command is that of a plain `sh` for a script in bash.
pub fn explain_syntax(output: &str) -> Option<&'static str> {
    let is_syntax = SYNTAX_ERRORS.iter().any(|message| output.contains(message));
    is_syntax.then(|| match process::find("bash") {
        Some(_) => "`sh` ran this script, which needs bash: a block with the language `bash`, or a `#!/usr/bin/env bash` line, runs in bash",
        None => "`sh` ran this script, which needs bash, and bash is not installed: write it for a POSIX shell",
    })
}

/// Returns a hint if the output of a command that ran in `dir` says that a program does not exist,
/// although it does: it is a link to, or a script for, a program that doesn't. Python environments
/// that were made on another machine have such programs.
///
/// A command can name anything, and TeDDy can read more than it: only directories in `dir` count, and
/// those of `workspace` to which a copy links.
pub fn explain_missing_target(output: &str, dir: &Path, workspace: &Path) -> Option<String> {
    output.lines().rev().take(MAX_MESSAGES).find_map(|line| {
        let message = MISSING.iter().find_map(|end| line.strip_suffix(end))?;
        let name = message.rsplit(": ").next()?;
        let mut parts = Path::new(name).components();
        // Only paths below the directory are known to be the ones that the shell meant.
        let is_inside = parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !is_inside || !name.contains('/') {
            return None;
        }
        let program =
            real_parent(dir, Path::new(name), workspace)?.join(Path::new(name).file_name()?);
        let (target, relation) = match program.is_symlink() {
            true => (missing_link_target(&program)?, "leads to"),
            false => (missing_script_program(&program)?, "needs"),
        };
        let (name, target) = (sanitize_line(name), target.to_string_lossy());
        let target = sanitize_line(&target);
        Some(format!(
            "`{name}` exists, but {relation} `{target}`, which does not exist"
        ))
    })
}

/// Returns the directory of a path in `dir`, without symlinks but those that a copy has.
fn real_parent(dir: &Path, path: &Path, workspace: &Path) -> Option<PathBuf> {
    let mut parent = dir.to_owned();
    for part in path.parent()?.components() {
        parent.push(part);
        if parent.is_symlink() {
            let target = std::fs::read_link(&parent).ok()?;
            let inside = target.strip_prefix(workspace).ok()?;
            let is_plain =
                |it: Component<'_>| matches!(it, Component::Normal(name) if name != ".git");
            if !inside.components().all(is_plain) || inside.file_name() != Some(part.as_os_str()) {
                return None;
            }
            parent = target;
        }
    }
    Some(parent)
}

/// Returns the missing file to which a symbolic link leads, through others of its directory.
fn missing_link_target(link: &Path) -> Option<PathBuf> {
    let mut path = link.to_owned();
    for _ in 0..MAX_LINKS {
        let target = std::fs::read_link(&path).ok()?;
        path = path.parent()?.join(&target);
        if is_missing(&path) {
            return Some(target);
        }
        if path.parent() != link.parent() {
            break;
        }
    }
    None
}

fn missing_script_program(script: &Path) -> Option<PathBuf> {
    let text = read_regular_text(script, MAX_SCRIPT).ok()?;
    let program = PathBuf::from(requested_interpreter(text.lines().next()?)?.program);
    (program.is_absolute() && is_missing(&program)).then_some(program)
}

/// Returns whether not even a broken link has this path.
fn is_missing(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p15_the_first_line_that_is_not_blank_names_the_program() {
        for (text, expected) in [
            ("#!/bin/bash\nls\n", Some(("/bin/bash", None))),
            (
                "\n  #! /usr/bin/env -S awk -f\r\n",
                Some(("/usr/bin/env", Some("-S awk -f"))),
            ),
            ("#!python3", Some(("python3", None))),
            ("#!\n", Some(("", None))),
            ("ls\n#!/bin/sh\n", None),
            ("# !/bin/sh\n", None),
            ("", None),
        ] {
            let parsed = requested_interpreter(text).map(|asked| (asked.program, asked.argument));
            let expected = expected
                .map(|(program, argument)| (program.to_owned(), argument.map(str::to_owned)));
            assert_eq!(parsed, expected, "{text:?}");
        }
    }

    #[test]
    fn p15_the_language_of_a_block_chooses_the_shell_unless_the_user_does() {
        let check = |setting, language, expected: &str| {
            assert_eq!(Shell::new(setting, language).words().join(" "), expected);
        };
        for language in ["", "sh", "shell", "console", "fish"] {
            check(None, language, "sh");
        }
        if process::find("bash").is_some() {
            check(None, "Bash", "bash");
        }
        check(Some("busybox sh -e"), "bash", "busybox sh -e");
        check(Some(""), "sh", "sh");
    }

    #[test]
    fn p15_a_program_that_does_not_exist_is_found_also_behind_env() {
        let shell = Shell::default();
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                shell.missing_interpreter(text).as_deref(),
                expected,
                "{text}"
            );
        };
        check("ls", None);
        check("#!/bin/sh", None);
        check("#!/usr/bin/env sh", None);
        check("#!/usr/bin/env -S A=b sh -e", None);
        check("#!/no/such/program", Some("/no/such/program"));
        check("#!/usr/bin/env no-such-program", Some("no-such-program"));
        check(
            "#!/usr/bin/env -S no-such-program -x",
            Some("no-such-program"),
        );
    }

    #[test]
    fn a_program_that_leads_nowhere_is_explained() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        std::fs::create_dir(dir.join("bin")).unwrap();
        for (target, link) in [
            ("/no/python3.9", "python3.9"),
            ("python3.9", "python"),
            ("loop", "loop"),
            ("/bin/sh", "sh"),
        ] {
            std::os::unix::fs::symlink(target, dir.join("bin").join(link)).unwrap();
        }
        for (script, line) in [("pytest", "#!/no/python\n"), ("tool", "#!/bin/sh\n")] {
            std::fs::write(dir.join("bin").join(script), line).unwrap();
        }
        let check = |output: &str, expected: Option<&str>| {
            let hint = explain_missing_target(output, dir, Path::new("/no/workspace"));
            assert_eq!(hint.as_deref(), expected, "{output}");
        };
        let linked =
            Some("`bin/python` exists, but leads to `/no/python3.9`, which does not exist");
        check("x.sh: 1: bin/python: not found", linked);
        check(
            "x.sh: line 1: bin/python: No such file or directory\nmake: *** [test] Error 127\n",
            linked,
        );
        let script = Some("`./bin/pytest` exists, but needs `/no/python`, which does not exist");
        check(
            "x.sh: ./bin/pytest: cannot execute: required file not found",
            script,
        );
        for name in ["bin/sh", "bin/tool", "bin/loop", "bin/none", "python"] {
            check(&format!("x.sh: 1: {name}: not found"), None);
        }
        let outside = dir.join("bin/python").display().to_string();
        check(&format!("x.sh: 1: {outside}: not found"), None);
        check("x.sh: 1: bin/../bin/python: not found", None);
    }

    /// Bug: a command had TeDDy read a file of a directory that the sandbox hides.
    #[test]
    fn a_program_is_explained_through_no_link_but_that_of_a_copy() {
        let outer = tempfile::tempdir().unwrap();
        let at = |path: &str| outer.path().join(path);
        for dir in ["copy", "project/.venv", "project/.git", "home"] {
            std::fs::create_dir_all(at(dir)).unwrap();
            std::fs::write(at(dir).join("tool"), "#!/no/program\n").unwrap();
        }
        for (link, target) in [
            ("copy/.venv", "project/.venv"),
            ("copy/other", "project/.venv"),
            ("copy/git", "project/.git"),
            ("copy/home", "home"),
            ("copy/file", "home/tool"),
        ] {
            std::os::unix::fs::symlink(at(target), at(link)).unwrap();
        }
        for (name, is_explained) in [
            (".venv/tool", true),
            ("./tool", true),
            ("other/tool", false),
            ("git/tool", false),
            ("home/tool", false),
            ("./file", false),
        ] {
            let output = format!("x.sh: 1: {name}: not found");
            let hint = explain_missing_target(&output, &at("copy"), &at("project"));
            assert_eq!(hint.is_some(), is_explained, "{name}");
        }
    }

    #[test]
    fn messages_of_a_plain_shell_are_explained() {
        for output in [
            "x.sh: 1: source: not found",
            "x.sh: 2: [[: not found",
            "x.sh: 3: Bad substitution",
            "x.sh: 1: set: Illegal option -o pipefail",
        ] {
            assert!(explain_syntax(output).is_some(), "{output}");
        }
        assert_eq!(explain_syntax("x.sh: 1: make: not found"), None);
    }
}
