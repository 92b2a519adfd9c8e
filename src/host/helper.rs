//! Runs a small program with text in, text out and a time limit.

use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

const MAX_OUTPUT: u64 = 16 << 20;
/// Poll interval for the end of a program that has closed its outputs.
const TICK: Duration = Duration::from_millis(2);

/// Result of a helper.
#[derive(Debug)]
pub struct HelperAnswer {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

/// Runs a program with this input and returns its output. Fails with `TimedOut` after `limit`, and
/// kills its process group.
pub fn run_for_answer(
    command: &mut Command,
    input: &[u8],
    limit: Duration,
) -> io::Result<HelperAnswer> {
    let deadline = Instant::now() + limit;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn()?;
    feed(&mut child, input);
    let (sender, outputs) = mpsc::channel();
    let complaints = mpsc::channel();

    collect(child.stdout.take(), sender);
    collect(child.stderr.take(), complaints.0);
    let stdout = outputs.recv_timeout(limit);
    let stderr = complaints
        .1
        .recv_timeout(deadline.saturating_duration_since(Instant::now()));

    match (stdout, stderr, wait(&mut child, deadline)) {
        (Ok(stdout), Ok(stderr), Some(status)) => Ok(HelperAnswer {
            status,
            stdout,
            stderr,
        }),
        _ => Err(end(child)),
    }
}

/// Runs a program with this input and discards its output. Fails if the program fails. Processes
/// that it leaves in the background, such as the owner of an X11 selection, keep running.
pub fn run_with_input(command: &mut Command, input: &[u8], limit: Duration) -> io::Result<()> {
    let deadline = Instant::now() + limit;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let mut child = command.spawn()?;
    feed(&mut child, input);

    match wait(&mut child, deadline) {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(io::Error::other(format!("it ended with {status}"))),
        None => Err(end(child)),
    }
}

/// Writes from a thread, because a program that does not read would block the caller.
fn feed(child: &mut Child, input: &[u8]) {
    let input = input.to_vec();
    if let Some(mut pipe) = child.stdin.take() {
        // The write fails if the program exits early. Only its exit code counts.
        std::thread::spawn(move || pipe.write_all(&input));
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>, sender: mpsc::Sender<Vec<u8>>) {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            let _ = pipe.take(MAX_OUTPUT).read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
}

fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(TICK);
    }
}

fn end(mut child: Child) -> io::Error {
    let _ = rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.kill();
    let _ = child.wait();
    io::Error::new(io::ErrorKind::TimedOut, "it takes too long")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::process::command;

    const LIMIT: Duration = Duration::from_secs(10);

    #[test]
    fn a_helper_answers() {
        let input = "x".repeat(300_000);
        let answer = run_for_answer(&mut command("cat"), input.as_bytes(), LIMIT).unwrap();
        assert!(
            answer.status.success()
                && answer.stdout == input.as_bytes()
                && answer.stderr.is_empty()
        );
    }

    #[test]
    fn a_helper_that_hangs_is_killed() {
        let begin = Instant::now();
        let error = run_for_answer(
            command("sh").args(["-c", "sleep 300; :"]),
            b"",
            Duration::from_millis(50),
        )
        .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let error = run_with_input(
            command("sh").args(["-c", "sleep 300; :"]),
            b"",
            Duration::from_millis(50),
        )
        .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begin.elapsed() < LIMIT);
    }

    #[test]
    fn what_a_told_helper_leaves_behind_does_not_hold_us() {
        let begin = Instant::now();
        run_with_input(
            command("sh").args(["-c", "cat > /dev/null; sleep 3 &"]),
            b"text",
            LIMIT,
        )
        .unwrap();
        assert!(begin.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn a_failure_is_an_error() {
        assert!(run_with_input(&mut command("false"), b"", LIMIT).is_err());
        assert!(
            !run_for_answer(&mut command("false"), b"", LIMIT)
                .unwrap()
                .status
                .success()
        );
    }
}
