//! Detects blocks that are not `sh` scripts: terminal sessions with prompts, other languages.

use crate::host::shell::requested_interpreter;
use crate::plan::action::body::Body;
use crate::plan::diagnostic::quote;

/// Languages that `sh` cannot run, in lower case.
const OTHER_LANGUAGES: [&str; 34] = [
    "python",
    "py",
    "python3",
    "javascript",
    "js",
    "typescript",
    "ts",
    "json",
    "yaml",
    "yml",
    "toml",
    "diff",
    "patch",
    "rust",
    "rs",
    "go",
    "java",
    "c",
    "cpp",
    "csharp",
    "cs",
    "ruby",
    "rb",
    "perl",
    "php",
    "sql",
    "html",
    "css",
    "xml",
    "powershell",
    "ps1",
    "pwsh",
    "bat",
    "output",
];
/// Prompts of a terminal session.
const PROMPTS: [&str; 3] = ["$ ", ">>> ", "PS C:\\"];
/// Field keys that repeat the script.
const SCRIPT_KEYS: [&str; 3] = ["command", "cmd", "shellcommand"];

/// Reports a block that is not a script for `sh`.
pub(super) fn check_script(body: &mut Body<'_>, script: &str, language: &str) {
    let first = script.lines().find(|line| !line.trim().is_empty());
    let first = first.unwrap_or_default().trim_start();
    let language = language.to_lowercase();
    if PROMPTS.iter().any(|prompt| first.starts_with(prompt)) {
        let message = format!("the script begins with a prompt: \"{}\"", quote(first));
        let hint = "write the commands alone, without prompts and without what they print";
        body.report(body.line, message, hint);
    } else if let Some(asked) = requested_interpreter(script) {
        let program = asked.program;
        if program.is_empty() || (program.contains('/') && !program.starts_with('/')) {
            let message = format!("the `#!` line names no program: \"{}\"", quote(first));
            body.report(
                body.line,
                message,
                "write `#!/usr/bin/env python3`, or leave the line out",
            );
        }
    } else if OTHER_LANGUAGES.contains(&&*language) {
        let message = format!("the code block is {language}, and EXECUTE runs a shell script");
        let hint = "write the shell command that does it, such as `python script.py`";
        body.report(body.line, message, hint);
    }

    let other = body.fields.iter().find(|field| {
        let key: String = field.key.chars().filter(|c| c.is_alphanumeric()).collect();
        let value = field.value.trim_matches(['`', ' ']);
        let is_command =
            field.value.starts_with('`') && SCRIPT_KEYS.contains(&&*key.to_lowercase());
        is_command && !script.contains(value)
    });
    if let Some(line) = other.map(|field| field.line) {
        let message = "the field and the code block give different commands";
        body.report(line, message, "leave the field out; the code block is run");
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::reading::read;

    fn check(body: &str, expected: &[&str]) {
        let reply = format!(
            "# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n\n### `EXECUTE`\n- **Description:** d\n{body}"
        );
        let actual: Vec<String> = read(&reply)
            .diagnostics
            .into_iter()
            .map(|wrong| wrong.message)
            .collect();
        assert_eq!(actual, expected, "{body}");
    }

    #[test]
    fn p15_a_session_and_another_language_are_no_script() {
        check(
            "```console\n$ ls\na b\n```\n",
            &["the script begins with a prompt: \"$ ls\""],
        );
        check(
            "```python\nimport os\n```\n",
            &["the code block is python, and EXECUTE runs a shell script"],
        );
        check("```python\n#!/usr/bin/env python3\nimport os\n```\n", &[]);
        check("```text\n$HOME/bin/x\n```\n", &[]);
    }

    #[test]
    fn p15_a_field_with_another_command_than_the_block_is_a_mistake() {
        check(
            "- **Command:** `make test`\n```sh\nmake clean\n```\n",
            &["the field and the code block give different commands"],
        );
        check("- **Command:** `make`\n```sh\nmake\n```\n", &[]);
    }

    #[test]
    fn p20_a_field_that_would_say_whether_an_action_is_done_is_a_mistake() {
        check(
            "- **Run If:** the tests fail\n```sh\nmake\n```\n",
            &["`Run If` has no meaning in EXECUTE"],
        );
    }
}
