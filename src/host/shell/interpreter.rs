//! The `#!` line of a script: the program that runs it in place of the shell.

/// The program that a script asks for in its `#!` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// Its path, or its name.
    pub program: String,
    /// What follows, one argument as for the kernel.
    pub argument: Option<String>,
}

/// Returns the program that a script asks for; an empty one if its `#!` line names none.
pub fn interpreter(text: &str) -> Option<Interpreter> {
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    let asked = first.trim().strip_prefix("#!")?.trim();
    let (program, argument) = asked.split_once([' ', '\t']).unwrap_or((asked, ""));
    let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
    Some(Interpreter {
        program: program.to_owned(),
        argument: argument.map(ToOwned::to_owned),
    })
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
            let found = interpreter(text).map(|asked| (asked.program, asked.argument));
            let expected = expected
                .map(|(program, argument)| (program.to_owned(), argument.map(str::to_owned)));
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
