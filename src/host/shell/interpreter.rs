//! The `#!` line of a script: the program that runs it in place of the shell.

use std::ffi::OsString;

use crate::host::process;

/// The shell without a setting.
pub(super) const DEFAULT_SHELL: &str = "sh";

/// The program that a script asks for in its `#!` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// Its path, or its name.
    pub program: String,
    /// What follows, one argument as for the kernel.
    pub argument: Option<String>,
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

/// Returns the program that runs a script, and its options: what the script asks for in its `#!` line,
/// otherwise the shell. Fails with the reason why there is none.
pub(super) fn script_command(text: &str, shell: &[String]) -> Result<Vec<OsString>, String> {
    let shell_line = shell.join(" ");
    let missing = |name: &str| format!("cannot start `{name}`: no such file or directory");
    let (name, options) = shell.split_first().ok_or_else(|| missing(&shell_line))?;
    let name_of = |program: &str| program.rsplit('/').next().unwrap_or_default().to_owned();
    let asked = requested_interpreter(text);
    // A shell that the user chose can be a container: only its own scripts run in it.
    let is_own = shell != [DEFAULT_SHELL];
    let asked = match asked {
        Some(asked) if is_own && name_of(&asked.program) == name_of(name) => None,
        Some(asked) if is_own => {
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
}
