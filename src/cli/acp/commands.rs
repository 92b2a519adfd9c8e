//! Commands that the user of an editor types as a prompt, such as `/undo`.
//!
//! Each runs `teddy` itself, so that it does and says the same as in a terminal.

use std::io::{self, Read};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::host::{env, interrupt, process};
use crate::session::name::SessionName;
use crate::ui::acp::EditorCommand;

/// Most output that the editor gets, in bytes.
const MAX_OUTPUT: u64 = 256 << 10;
/// Interval at which a cancellation is noticed.
const TICK: Duration = Duration::from_millis(20);

pub(super) const COMMANDS: [EditorCommand; 5] = [
    EditorCommand {
        name: "undo",
        description: "Undo the last turns; your own later edits are kept",
        hint: "a number of turns",
    },
    EditorCommand {
        name: "redo",
        description: "Redo turns that were undone",
        hint: "a number of turns",
    },
    EditorCommand {
        name: "restore",
        description: "Take your files back to the state they had after a turn",
        hint: "a turn, and paths",
    },
    EditorCommand {
        name: "land",
        description: "Make a commit of the turns on your branch",
        hint: "the message of the commit",
    },
    EditorCommand {
        name: "diff",
        description: "Show what a turn changed",
        hint: "a turn, or two",
    },
];

/// Returns the arguments of `teddy` for a typed command, or why it cannot run. `None` for any other
/// prompt.
pub(super) fn typed_command(text: &str) -> Option<Result<Vec<String>, String>> {
    let (name, input) = match text
        .trim()
        .strip_prefix('/')?
        .split_once(char::is_whitespace)
    {
        Some((name, input)) => (name, input.trim()),
        None => (text.trim().strip_prefix('/')?, ""),
    };
    let command = COMMANDS.iter().find(|command| command.name == name)?;
    Some(arguments(command, input))
}

fn arguments(command: &EditorCommand, input: &str) -> Result<Vec<String>, String> {
    let name = command.name;
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    if name == "land" {
        // One argument, so that no word of the message is an option.
        return Ok(match input {
            "" => own(&[name, "--no-edit"]),
            message => vec![name.to_owned(), format!("--message={message}")],
        });
    }

    let words: Vec<&str> = input.split_whitespace().collect();
    if let Some(option) = words.iter().find(|word| word.starts_with('-')) {
        return Err(format!(
            "`/{name}` takes no options, such as `{option}`; run `teddy {name}` in a terminal for them."
        ));
    }
    let most = match name {
        "undo" | "redo" => 1,
        "diff" => 2,
        _ => usize::MAX,
    };
    if words.len() > most {
        return Err(format!("`/{name}` takes only {}.", command.hint));
    }
    if name == "restore" && words.is_empty() {
        return Err("Name the turn, such as `/restore 2`.".to_owned());
    }
    Ok([name]
        .iter()
        .chain(&words)
        .map(|word| (*word).to_owned())
        .collect())
}

/// Runs a command in a session and returns what it printed, as Markdown.
pub(super) fn run(
    dir: &Path,
    session: &SessionName,
    settings: &[String],
    arguments: &[String],
) -> anyhow::Result<String> {
    let mut command = process::command(env::current_exe()?);
    command.arg("-C").arg(dir);
    command.args(["--color", "never", "-s", session.as_str()]);
    settings.iter().for_each(|setting| {
        command.args(["-c", setting]);
    });
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let streams = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = (collect(streams.0), collect(streams.1));

    let mut is_interrupted = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if interrupt::requested() && !is_interrupted {
            is_interrupted = true;
            // It may have ended.
            let _ = kill_process(Pid::from_child(&child), Signal::INT);
        }
        thread::sleep(TICK);
    };

    let texts = [stdout, stderr].map(|reader| reader.join().unwrap_or_default());
    let text: Vec<&str> = texts.iter().map(|text| text.trim_end()).collect();
    let text = text.join("\n");
    Ok(match text.trim() {
        "" if status.success() => "Done.".to_owned(),
        "" => format!("`teddy {}` failed ({status}).", arguments[0]),
        text => fenced(text),
    })
}

/// Reads to the end, and keeps the beginning.
fn collect(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let Some(mut stream) = stream else {
            return String::new();
        };
        let mut bytes = Vec::new();
        // What was read before a failure is shown.
        let _ = stream.by_ref().take(MAX_OUTPUT).read_to_end(&mut bytes);
        let left = io::copy(&mut stream, &mut io::sink()).unwrap_or_default();
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if left > 0 {
            text.push_str(&format!("\n({left} more bytes are not shown)"));
        }
        text
    })
}

/// A fence that is longer than any in the text.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Result<&[&str], &str>>) {
        let expected = expected.map(|expected| match expected {
            Ok(words) => Ok(words.iter().map(|word| (*word).to_owned()).collect()),
            Err(message) => Err(message.to_owned()),
        });
        assert_eq!(typed_command(text), expected);
    }

    #[test]
    fn a_command_is_a_word_of_ours_behind_a_slash() {
        check("/undo", Some(Ok(&["undo"])));
        check(" /redo  2\n", Some(Ok(&["redo", "2"])));
        check(
            "/restore 2 src a.txt",
            Some(Ok(&["restore", "2", "src", "a.txt"])),
        );
        check("/diff 1 3", Some(Ok(&["diff", "1", "3"])));
        check("/undone", None);
        check("/etc/passwd has a mistake", None);
        check("undo", None);
        check("/", None);
    }

    #[test]
    fn no_word_of_the_input_is_an_option() {
        check("/land", Some(Ok(&["land", "--no-edit"])));
        check("/land -n it's", Some(Ok(&["land", "--message=-n it's"])));
        check(
            "/undo --exact",
            Some(Err(
                "`/undo` takes no options, such as `--exact`; run `teddy undo` in a terminal for them.",
            )),
        );
        check(
            "/undo 1 2",
            Some(Err("`/undo` takes only a number of turns.")),
        );
        check(
            "/restore",
            Some(Err("Name the turn, such as `/restore 2`.")),
        );
    }

    #[test]
    fn a_fence_is_longer_than_those_in_the_text() {
        assert_eq!(fenced("a"), "```\na\n```");
        assert_eq!(fenced("````"), "`````\n````\n`````");
    }
}
