//! `!COMMAND` at the prompt: runs in the user's files; the output can be sent to the model.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;

use rustix::process::Signal;

use crate::host::foreground;
use crate::host::process;
use crate::host::shell::Capture;
use crate::text::fence::fence_for;
use crate::ui::ask::{self, Reply};
use crate::ui::style::{StyledLine, Tone};
use crate::ui::terminal;
use crate::workflow::project::Project;

use super::super::app::App;

/// Bytes of output sent to the model.
const MAX_SHELL_OUTPUT: usize = 32 * 1024;

const SHOW_QUESTION: &str = "Show this to the model with your next message? [y/N]";

/// Result of a shell command.
#[derive(Debug, Default)]
pub(super) struct ShellEnd {
    /// Output to send with the next message.
    pub attached: Option<String>,
    /// Text typed instead of an answer to the question.
    pub next: Option<String>,
}

/// Runs a command in the current directory, shows its output, and returns it if the user wants to
/// send it with the next message.
pub(super) fn run_shell(app: &App, project: &Project, text: &str) -> anyhow::Result<ShellEnd> {
    if text.is_empty() {
        app.note("`!` runs a command in your files, as in `!make test`.");
        return Ok(ShellEnd::default());
    }

    let shell = &project.settings.execute.shell;
    let argv = shlex::split(shell).filter(|argv| !argv.is_empty());
    let argv = argv.unwrap_or_else(|| vec!["sh".to_owned()]);
    let mut command = process::command(&argv[0]);
    command.args(&argv[1..]).arg("-c").arg(text);
    command.current_dir(app.dir()?);

    let mut capture = Capture::new(MAX_SHELL_OUTPUT);
    let status = match foreground::run_captured(&mut command, &mut |bytes| capture.add(bytes)) {
        Ok(status) => status,
        Err(error) => {
            app.warn(&format!("`{text}` did not run: {error}"));
            return Ok(ShellEnd::default());
        }
    };

    if !status.success() {
        app.note(&match status.code() {
            Some(code) => format!("`{text}` exited with {code}."),
            None if status.signal() == Some(Signal::INT.as_raw()) => {
                format!("`{text}` was interrupted (SIGINT).")
            }
            None => format!("`{text}` was ended: {status}."),
        });
    }
    let output = capture.finish().joined();
    // Our next line must not continue the command's last one.
    let end = if output.is_empty() || output.ends_with(b"\n") {
        ""
    } else {
        "\n"
    };
    let _ = write!(std::io::stderr().lock(), "{end}\x1b[0m");
    if output.is_empty() && status.success() {
        return Ok(ShellEnd::default());
    }

    // Requires a line, not a key: keys typed while the command ran are not an answer.
    terminal::forget_typed()?;
    let show = |line| ask::show(&[line], app.paint(true));
    show(StyledLine::of(Tone::Strong, SHOW_QUESTION));
    let reply = match ask::text("", app.paint(true))? {
        Reply::Text(reply) | Reply::Editor(reply) => reply,
        Reply::Quit(_) => String::new(),
    };
    let reply = reply.trim();
    if ["y", "yes"].contains(&reply.to_lowercase().as_str()) {
        let output = String::from_utf8_lossy(&output);
        return Ok(ShellEnd {
            attached: Some(attachment(text, &status.to_string(), &output)),
            next: None,
        });
    }

    let is_no = ["", "n", "no"].contains(&reply.to_lowercase().as_str());
    Ok(ShellEnd {
        attached: None,
        next: (!is_no).then(|| reply.to_owned()),
    })
}

/// Returns a command and its output as part of a message.
fn attachment(command: &str, status: &str, output: &str) -> String {
    let fence = fence_for(output, 4);
    let output = output.trim_end();
    format!("I ran `{command}` ({status}):\n\n{fence}text\n{output}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_output_gets_out_of_its_fence() {
        assert_eq!(
            attachment("cat a.md", "exit status: 0", "````\nhi\n````\n"),
            "I ran `cat a.md` (exit status: 0):\n\n`````text\n````\nhi\n````\n`````"
        );
    }
}
