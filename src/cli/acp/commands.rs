//! Commands that the user of an editor types as a prompt, such as `/undo`.
//!
//! Each runs `teddy` itself, so that it does and says the same as in a terminal.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::host::{env, interrupt, process};
use crate::session::name::SessionName;
use crate::text::counted;
use crate::text::fence::fence_for;
use crate::ui::acp::EditorCommand;

/// Most output that the editor gets, in bytes.
const MAX_OUTPUT: usize = 256 << 10;
/// Time for the end of the output, once the command has ended.
const GRACE: Duration = Duration::from_secs(1);
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
        // A single argument: otherwise parts of the message could be options.
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
    let outputs = (
        CommandOutput::collect(child.stdout.take()),
        CommandOutput::collect(child.stderr.take()),
    );

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

    let deadline = Instant::now() + GRACE;
    let texts = [outputs.0.finish(deadline), outputs.1.finish(deadline)];
    let text: Vec<&str> = texts.iter().map(|text| text.trim_end()).collect();
    let text = text.join("\n");
    Ok(match text.trim() {
        "" if status.success() => "Done.".to_owned(),
        "" => format!("`teddy {}` failed ({status}).", arguments[0]),
        text => {
            let fence = fence_for(text, 3);
            format!("{fence}\n{text}\n{fence}")
        }
    })
}

/// What a stream printed, while a thread reads it.
struct CommandOutput {
    text: Arc<Mutex<PrintedText>>,
    /// Disconnected at the end of the stream.
    end: Receiver<()>,
}

#[derive(Debug, Default)]
struct PrintedText {
    /// The beginning.
    bytes: Vec<u8>,
    /// Bytes that were not kept.
    left: usize,
}

impl CommandOutput {
    fn collect(stream: Option<impl Read + Send + 'static>) -> CommandOutput {
        let (sender, end) = channel();
        let text = Arc::new(Mutex::new(PrintedText::default()));
        let output = CommandOutput {
            text: Arc::clone(&text),
            end,
        };
        thread::spawn(move || {
            let _sender: Sender<()> = sender;
            let Some(mut stream) = stream else {
                return;
            };
            let mut buffer = [0; 8 << 10];
            // What was read before a failure is shown.
            loop {
                let count = match stream.read(&mut buffer) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Ok(0) | Err(_) => return,
                    Ok(count) => count,
                };
                let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
                let kept = count.min(MAX_OUTPUT.saturating_sub(text.bytes.len()));
                text.bytes.extend(&buffer[..kept]);
                text.left += count - kept;
            }
        });
        output
    }

    /// Returns what was read until the end of the stream or the deadline. A process that a hook left
    /// running can keep the stream open for any time.
    fn finish(self, deadline: Instant) -> String {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let is_open = self.end.recv_timeout(remaining) == Err(RecvTimeoutError::Timeout);
        let printed = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::from_utf8_lossy(&printed.bytes)
            .trim_end()
            .to_owned();
        if printed.left > 0 {
            let verb = if printed.left == 1 { "is" } else { "are" };
            let more = counted(printed.left, "more byte");
            text.push_str(&format!("\n({more} {verb} not shown)"));
        }
        if is_open {
            text.push_str("\n(a process that it started still runs; what it prints is not shown)");
        }
        text
    }
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
}
