//! Runs a program that gets text on stdin and prints text: a command model or an `api_key_command`.
//!
//! The program runs in its own process group, which is killed at the time limit, when the user
//! cancels, and on every error. It is not sandboxed: it is in the user's configuration.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::ModelError;
use crate::host::inherited::{self, ChildKind};
use crate::host::{env, process};
use crate::text::sanitize::{sanitize_block, strip_ansi};
use crate::text::secret::{redact_values, replace_values};

const TICK: Duration = Duration::from_millis(20);

/// After the process has exited: a background child can keep the pipe open forever.
const LINGER: Duration = Duration::from_millis(300);

pub struct ProgramJob<'a> {
    pub argv: &'a [String],
    /// `None` gives it `/dev/null`.
    pub stdin: Option<String>,
    /// `None` for the current directory.
    pub dir: Option<&'a Path>,
    pub environment: JobEnvironment<'a>,
    pub timeout: Duration,
    /// `None` means no limit.
    pub idle: Option<Duration>,
    /// Of stdout.
    pub max_bytes: usize,
    /// Polled every few milliseconds; `true` cancels the run.
    pub stopped: &'a dyn Fn() -> bool,
}

#[derive(Debug, Clone, Copy)]
pub enum JobEnvironment<'a> {
    /// As in the user's shell.
    Whole,
    /// The variables that every model program inherits, and these.
    Listed(&'a [String]),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedJob {
    pub stdout: String,
    /// `stdout` is what was printed. Otherwise a part of it is not UTF-8.
    pub is_text: bool,
    /// The end of it, trimmed.
    pub stderr: String,
}

impl ProgramJob<'_> {
    /// `watch` gets everything printed so far.
    pub fn run(self, watch: &mut dyn FnMut(&str)) -> Result<FinishedJob, ModelError> {
        let program = self.argv.first().cloned().unwrap_or_default();
        let mut group = ProcessGroup {
            child: self.spawn(&program)?,
        };
        let pieces = connect(&mut group.child, self.stdin.clone());
        let (status, output) = self.follow(&mut group, &pieces, watch)?;
        let stderr = output.stderr.text();

        if status.success() {
            Ok(FinishedJob {
                is_text: !output.is_replaced && output.partial.is_empty(),
                stdout: output.into_text(),
                stderr,
            })
        } else {
            Err(ModelError::CommandFailed {
                program,
                status: status.to_string(),
                stderr,
                partial: output.into_text(),
            })
        }
    }

    fn spawn(&self, program: &str) -> Result<Child, ModelError> {
        let mut command = process::command(program);
        command.args(self.argv.get(1..).unwrap_or_default());
        command.stdin(if self.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        match self.environment {
            JobEnvironment::Whole => process::restore_env(&mut command, |_| true),
            JobEnvironment::Listed(keep) => {
                inherited::give_listed(&mut command, ChildKind::Model, keep);
            }
        }
        // `command` resolved the program against absolute directories only. `env prog` and the like
        // search `PATH` themselves and must not find a program in the clone.
        command.env("PATH", process::absolute_path());
        if let Some(dir) = self.dir {
            command.current_dir(dir);
        }
        command.process_group(0);
        // EACCES also means that a directory in `PATH` can't be entered. That is "not found" for
        // the user.
        let is_searched = !program.contains('/');
        command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => ModelError::CommandMissing {
                program: program.to_owned(),
            },
            ErrorKind::PermissionDenied if is_searched => ModelError::CommandMissing {
                program: program.to_owned(),
            },
            _ => ModelError::io(format!("starting `{program}`"), &error),
        })
    }

    fn follow(
        &self,
        group: &mut ProcessGroup,
        pieces: &Receiver<OutputPiece>,
        watch: &mut dyn FnMut(&str),
    ) -> Result<(ExitStatus, JobOutput), ModelError> {
        let mut clock = JobClock {
            start: Instant::now(),
            last: Instant::now(),
        };
        let mut output = JobOutput {
            stderr: Complaints::new(self.secrets()),
            ..JobOutput::default()
        };
        let (mut ended, mut is_closed) = (None, false);

        loop {
            match pieces.recv_timeout(TICK) {
                Ok(piece) => {
                    clock.last = Instant::now();
                    output.add(piece, watch);
                }
                Err(RecvTimeoutError::Timeout) => watch(""),
                // Both pipes are closed, but the process still runs: don't spin.
                Err(RecvTimeoutError::Disconnected) if is_closed => thread::park_timeout(TICK),
                Err(RecvTimeoutError::Disconnected) => is_closed = true,
            }

            if ended.is_none() {
                ended = group.child.try_wait().ok().flatten();
                // `LINGER` counts from the exit.
                clock.last = if ended.is_some() {
                    Instant::now()
                } else {
                    clock.last
                };
            }

            match ended {
                Some(status) if is_closed || clock.last.elapsed() > LINGER => {
                    return Ok((status, output));
                }
                _ => self.check(&clock, &output)?,
            }
        }
    }

    fn secrets(&self) -> Vec<String> {
        match self.environment {
            JobEnvironment::Whole => Vec::new(),
            JobEnvironment::Listed(keep) => keep.iter().filter_map(|name| env::var(name)).collect(),
        }
    }

    fn check(&self, clock: &JobClock, output: &JobOutput) -> Result<(), ModelError> {
        if output.len() > self.max_bytes {
            return Err(ModelError::TooLarge {
                limit: self.max_bytes,
                partial: String::new(),
            });
        }

        if (self.stopped)() {
            return Err(ModelError::Interrupted {
                partial: output.text(),
            });
        }

        if clock.start.elapsed() > self.timeout {
            return Err(ModelError::Timeout {
                limit: self.timeout,
                partial: output.text(),
            });
        }

        match self.idle {
            Some(limit) if clock.last.elapsed() > limit => Err(ModelError::Idle {
                limit,
                partial: output.text(),
            }),
            _ => Ok(()),
        }
    }
}

struct JobClock {
    start: Instant,
    /// Of the last output, or of the exit once the process has ended.
    last: Instant,
}

fn connect(child: &mut Child, stdin: Option<String>) -> Receiver<OutputPiece> {
    let (sender, pieces) = channel();
    if let (Some(mut pipe), Some(text)) = (child.stdin.take(), stdin) {
        // On its own thread: a program that prints much before it has read everything would
        // deadlock with us. The program can ignore its input, so a broken pipe is harmless.
        thread::spawn(move || {
            pipe.write_all(text.as_bytes())
                .and_then(|()| pipe.flush())
                .is_ok()
        });
    }

    if let Some(pipe) = child.stdout.take() {
        read_pipe(pipe, sender.clone(), OutputPiece::Out);
    }

    if let Some(pipe) = child.stderr.take() {
        read_pipe(pipe, sender, OutputPiece::Err);
    }

    pieces
}

fn read_pipe(
    mut pipe: impl Read + Send + 'static,
    sender: Sender<OutputPiece>,
    piece: fn(Vec<u8>) -> OutputPiece,
) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            if sender.send(piece(buffer[..length].to_vec())).is_err() {
                break;
            }
        }
    });
}

// A child process in its own process group.

const GROUP_TICK: Duration = Duration::from_millis(20);

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_millis(500);

/// Dropped, the group gets SIGTERM, and SIGKILL after `GRACE`, unless its leader has exited by
/// itself.
struct ProcessGroup {
    pub child: Child,
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // Reaped: its pid, and so its group's, could belong to another process by now.
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }

        // So that the processes can clean up.
        signal(&self.child, Signal::TERM);
        let start = Instant::now();
        while start.elapsed() < GRACE {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            thread::park_timeout(GROUP_TICK);
        }

        signal(&self.child, Signal::KILL);
        // Nothing reads the status of a process that we killed.
        let _ = self.child.wait();
    }
}

/// Signals the process group. ESRCH: it has already exited.
fn signal(child: &Child, signal: Signal) {
    let _ = rustix::process::kill_process_group(Pid::from_child(child), signal);
}

const MAX_STDERR_TAIL: usize = 4096;

/// In characters.
const MAX_IN_ERROR: usize = 1000;

/// The end of what a program prints on stderr.
#[derive(Debug, Default)]
pub struct Complaints {
    tail: Vec<u8>,
    /// Values to redact.
    secrets: Vec<String>,
}

impl Complaints {
    pub fn new(secrets: Vec<String>) -> Complaints {
        Complaints {
            secrets,
            ..Complaints::default()
        }
    }

    pub fn add(&mut self, piece: &[u8]) {
        // More than is shown: of a key that is cut in two, the rest would not be recognized.
        let kept = 2 * MAX_STDERR_TAIL;
        self.tail.extend(&piece[piece.len().saturating_sub(kept)..]);
        let surplus = self.tail.len().saturating_sub(kept);
        self.tail.drain(..surplus);
    }

    /// Without ANSI sequences, keys or control characters.
    pub fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail);
        let secrets: Vec<&str> = self.secrets.iter().map(String::as_str).collect();
        let plain = strip_ansi(text.trim());
        let clean = redact_values(&plain, &secrets);
        sanitize_block(last_characters(&clean, MAX_STDERR_TAIL)).into_owned()
    }

    fn hide_secrets(&self, text: &str) -> String {
        let secrets: Vec<&str> = self.secrets.iter().map(String::as_str).collect();
        replace_values(text, &secrets).into_owned()
    }

    pub fn behind_colon(&self) -> String {
        let text = self.text();
        if text.is_empty() {
            return text;
        }

        format!(": {}", last_characters(&text, MAX_IN_ERROR))
    }
}

fn last_characters(text: &str, count: usize) -> &str {
    let start = text.char_indices().rev().nth(count - 1);
    &text[start.map_or(0, |(at, _)| at)..]
}

enum OutputPiece {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

#[derive(Default)]
struct JobOutput {
    /// Invalid UTF-8 is replaced by U+FFFD.
    text: String,
    /// A truncated character at the end of stdout.
    partial: Vec<u8>,
    is_replaced: bool,
    stderr: Complaints,
}

impl JobOutput {
    /// Decodes every byte once, even if the chunks are tiny.
    pub fn add(&mut self, piece: OutputPiece, watch: &mut dyn FnMut(&str)) {
        match piece {
            OutputPiece::Out(bytes) => {
                self.partial.extend(bytes);
                self.take_characters();
                watch(&self.text);
            }
            OutputPiece::Err(bytes) => self.stderr.add(&bytes),
        }
    }

    /// Of stdout, in bytes.
    pub fn len(&self) -> usize {
        self.text.len() + self.partial.len()
    }

    pub fn text(&self) -> String {
        let text = format!("{}{}", self.text, String::from_utf8_lossy(&self.partial));
        self.stderr.hide_secrets(&text)
    }

    pub fn into_text(mut self) -> String {
        self.text.push_str(&String::from_utf8_lossy(&self.partial));
        self.stderr.hide_secrets(&self.text)
    }

    fn take_characters(&mut self) {
        let bytes = std::mem::take(&mut self.partial);
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text.push_str(chunk.valid());
            if chunk.invalid().is_empty() {
                continue;
            }

            match chunks.peek() {
                Some(_) => {
                    self.text.push(char::REPLACEMENT_CHARACTER);
                    self.is_replaced = true;
                }
                // Can be the start of a character that the next chunk completes.
                None => self.partial = chunk.invalid().to_vec(),
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn sh(
        script: &str,
        change: impl FnOnce(&mut ProgramJob<'_>),
    ) -> Result<FinishedJob, ModelError> {
        let argv = ["sh", "-c", script].map(str::to_owned);
        let mut job = ProgramJob {
            argv: &argv,
            stdin: Some("in\n".into()),
            dir: None,
            environment: JobEnvironment::Whole,
            timeout: Duration::from_secs(20),
            idle: None,
            max_bytes: 1 << 20,
            stopped: &|| false,
        };
        change(&mut job);
        job.run(&mut |_| ())
    }

    #[test]
    fn stdin_goes_in_and_stdout_comes_back() {
        let finished = sh("cat; echo note >&2", |_| ()).unwrap();
        assert_eq!(
            (finished.stdout.as_str(), finished.stderr.as_str()),
            ("in\n", "note")
        );
    }

    #[test]
    fn a_program_that_does_not_read_its_input_is_in_its_right() {
        assert_eq!(
            sh("echo out", |job| job.stdin = Some("x".repeat(4 << 20)))
                .unwrap()
                .stdout,
            "out\n"
        );
    }

    #[test]
    fn output_larger_than_a_pipe_comes_whole() {
        assert_eq!(
            sh("head -c 700000 /dev/zero | tr '\\0' a", |_| ())
                .unwrap()
                .stdout
                .len(),
            700_000
        );
    }

    #[test]
    fn a_failure_has_its_status_and_the_end_of_stderr() {
        let error = sh("echo wrong key >&2; exit 3", |_| ()).unwrap_err();
        assert_eq!(error.to_string(), "`sh` failed (exit status: 3): wrong key");
    }

    #[test]
    fn what_a_program_says_is_shown_without_colours_keys_and_tricks() {
        let key = format!("sk-ant-{}", "a1B2".repeat(10));
        let error = sh(
            &format!("printf '\\033[31mred\\033[0m {key}\\nb\\007' >&2; exit 1"),
            |_| (),
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "`sh` failed (exit status: 1): red [redacted anthropic key]\nb\\u{7}"
        );
    }

    /// Regression: the answer was discarded.
    #[test]
    fn a_failure_keeps_what_was_printed() {
        let error = sh("echo '# Title'; exit 3", |_| ()).unwrap_err();
        assert_eq!(error.partial(), Some("# Title\n"));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let argv = ["teddy-no-such-program".to_owned()];
        let job = ProgramJob {
            argv: &argv,
            stdin: None,
            dir: None,
            environment: JobEnvironment::Whole,
            timeout: TICK,
            idle: None,
            max_bytes: 1,
            stopped: &|| false,
        };
        assert_eq!(
            job.run(&mut |_| ()),
            Err(ModelError::CommandMissing {
                program: argv[0].clone()
            })
        );
    }

    #[test]
    fn the_time_limit_ends_the_whole_group_and_keeps_what_came() {
        let start = Instant::now();
        let error = sh("echo part; sleep 60 & sleep 60", |job| {
            job.timeout = Duration::from_millis(600)
        })
        .unwrap_err();
        assert_eq!(error.partial(), Some("part\n"));
        assert!(
            matches!(error, ModelError::Timeout { .. })
                && start.elapsed() < Duration::from_secs(20),
            "{error}"
        );
    }

    #[test]
    fn a_silent_program_meets_the_idle_limit() {
        let error = sh("sleep 60", |job| job.idle = Some(Duration::from_millis(50))).unwrap_err();
        assert!(matches!(error, ModelError::Idle { .. }), "{error}");
    }

    #[test]
    fn an_endless_answer_is_cut() {
        let error = sh("yes", |job| job.max_bytes = 1000).unwrap_err();
        assert!(
            matches!(error, ModelError::TooLarge { limit: 1000, .. }),
            "{error}"
        );
    }

    #[test]
    fn a_background_child_does_not_hold_the_answer() {
        let start = Instant::now();
        assert_eq!(sh("sleep 60 & echo done", |_| ()).unwrap().stdout, "done\n");
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn an_interruption_keeps_what_came() {
        let argv = ["sh", "-c", "echo part; sleep 60"].map(str::to_owned);
        let has_output = std::cell::Cell::new(false);
        let stopped = || has_output.get();
        let job = ProgramJob {
            argv: &argv,
            stdin: None,
            dir: None,
            environment: JobEnvironment::Whole,
            timeout: Duration::from_secs(20),
            idle: None,
            max_bytes: 1 << 20,
            stopped: &stopped,
        };
        let got = job.run(&mut |text| has_output.set(has_output.get() || !text.is_empty()));
        assert_eq!(
            got,
            Err(ModelError::Interrupted {
                partial: "part\n".into()
            })
        );
    }
}

#[cfg(test)]
mod output_tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_made_harmless() {
        let mut complaints = Complaints::default();
        assert_eq!(complaints.behind_colon(), "");
        complaints.add(&vec![b'x'; 1 << 20]);
        complaints.add(b"\n\x1b[31mno\x07 key\x1b[0m\n");
        assert!(complaints.text().len() < MAX_STDERR_TAIL + 20);
        assert!(complaints.behind_colon().ends_with("x\nno\\u{7} key"));
    }

    #[test]
    fn no_part_of_a_key_is_left_at_the_beginning_of_stderr() {
        let mut complaints = Complaints::new(vec!["hunter2-hunter2-hunter2".to_owned()]);
        complaints.add(b"hunter2-hunter2-hunter2");
        complaints.add("\u{e9}".repeat(MAX_STDERR_TAIL / 2 - 8).as_bytes());
        complaints.add(b"end");
        let text = complaints.text();
        assert!(!text.contains("ter2") && text.ends_with("end"), "{text}");

        complaints.add(&[b'x'; 3 * MAX_STDERR_TAIL]);
        assert_eq!(complaints.text(), "x".repeat(MAX_STDERR_TAIL));
    }

    fn check(pieces: &[&[u8]], updates: &[&str], expected: &str) {
        let (mut output, mut received) = (JobOutput::default(), Vec::new());
        pieces.iter().for_each(|piece| {
            output.add(OutputPiece::Out(piece.to_vec()), &mut |text| {
                received.push(text.to_owned())
            })
        });
        assert_eq!(
            (
                output.text().as_str(),
                output.into_text().as_str(),
                received
            ),
            (
                expected,
                expected,
                updates.iter().map(|t| (*t).to_owned()).collect()
            )
        );
    }

    #[test]
    fn a_character_that_is_cut_waits_for_its_end() {
        check(&[b"a\xc3", b"\xa9b"], &["a", "a\u{e9}b"], "a\u{e9}b");
    }

    #[test]
    fn what_is_no_text_is_marked_and_hides_nothing_behind_it() {
        check(
            &[b"a\xff", b"b\xc3"],
            &["a", "a\u{fffd}b"],
            "a\u{fffd}b\u{fffd}",
        );
    }

    #[test]
    fn bytes_one_by_one_are_read_as_at_once() {
        let bytes = b"\xf0\x9f\x9f\xa2 \xe2\x82 \xed\xa0\x80 \xc0 end\xe2";
        let mut output = JobOutput::default();
        bytes
            .iter()
            .for_each(|byte| output.add(OutputPiece::Out(vec![*byte]), &mut |_| ()));
        assert_eq!(output.into_text(), String::from_utf8_lossy(bytes));
    }

    #[test]
    fn many_small_pieces_cost_what_they_weigh() {
        let (mut output, mut calls) = (JobOutput::default(), 0);
        let start = std::time::Instant::now();
        (0..400_000).for_each(|_| output.add(OutputPiece::Out(vec![b'x']), &mut |_| calls += 1));
        assert_eq!((output.len(), calls), (400_000, 400_000));
        // Decoding everything again for each chunk would take minutes.
        assert!(start.elapsed() < std::time::Duration::from_secs(20));
    }
}
