//! Runs a small program with text in, text out and a time limit.
//!
//! Beyond the limit, it is killed with its process group. At most 16 MiB of each output are read.

use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

const MAX_OUTPUT: u64 = 16 << 20;

/// First and longest interval between checks whether a program has ended.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct HelperAnswer {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
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
        // A group of its own, so that `end` also kills its children.
        .process_group(0);
    let mut child = command.spawn()?;
    feed(&mut child, input);
    let outputs = collect_outputs(&mut child);
    let [stdout, stderr] = outputs
        .map(|output| output.recv_timeout(deadline.saturating_duration_since(Instant::now())));

    match (stdout, stderr, wait(&mut child, Some(deadline))?) {
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
        // Not pipes: a process left in the background would keep them open.
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let mut child = command.spawn()?;
    feed(&mut child, input);

    match wait(&mut child, Some(deadline))? {
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

fn collect_outputs(child: &mut Child) -> [mpsc::Receiver<Vec<u8>>; 2] {
    [collect(child.stdout.take()), collect(child.stderr.take())]
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, output) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            let _ = pipe.take(MAX_OUTPUT).read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    output
}

/// Waits for a program to end. `None` if it still runs at the deadline.
pub fn wait(child: &mut Child, deadline: Option<Instant>) -> io::Result<Option<ExitStatus>> {
    let mut pause = SHORTEST_PAUSE;
    loop {
        let ended = child.try_wait()?;
        if ended.is_some() || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(ended);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn end(mut child: Child) -> io::Error {
    let _ = rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.kill();
    let _ = child.wait();
    io::Error::new(io::ErrorKind::TimedOut, "it takes too long")
}

// Runs a program to find out what it is: no input, little output, a short time limit, and no
// process left running.

const MAX_PROBE_OUTPUT: usize = 16 << 10;
const PROBE_TICK: Duration = Duration::from_millis(5);

// After the program has ended: its output can be late on a busy machine, and one that left a daemon
// never closes it.
const PROBE_LINGER: Duration = Duration::from_secs(1);

/// Runs a program and returns the beginning of its output, stdout before stderr. `None` if it
/// cannot be started, fails or exceeds the limit. Kills its whole process group in any case.
pub fn probe(command: &mut Command, limit: Duration) -> Option<String> {
    let deadline = Instant::now() + limit;
    command
        // Files in the current directory must not influence the answer.
        .current_dir(Path::new("/"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn().ok()?;
    let outputs = collect_outputs(&mut child);

    let is_done = wait_unreaped(&child, deadline);
    // Before `wait`: until the child is reaped, its process id and group id cannot be reused.
    let _ = rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait().ok()?;
    if !is_done || !status.success() {
        return None;
    }

    let texts = outputs.map(|output| {
        let mut text = output.recv_timeout(PROBE_LINGER).unwrap_or_default();
        text.truncate(MAX_PROBE_OUTPUT);
        text
    });
    Some(String::from_utf8_lossy(&texts.concat()).into_owned())
}

/// Does not reap the child.
fn wait_unreaped(child: &Child, deadline: Instant) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match rustix::process::waitid(WaitId::Pid(Pid::from_child(child)), options) {
            Ok(None) if Instant::now() < deadline => std::thread::sleep(PROBE_TICK),
            Ok(status) => return status.is_some(),
            Err(_) => return false,
        }
    }
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

#[cfg(test)]
mod probe_tests {
    use super::*;
    use crate::host::process::command;

    fn check(script: &str, expected: Option<&str>) {
        let mut shell = command("sh");
        let output = probe(shell.args(["-c", script]), Duration::from_secs(10));
        assert_eq!(output.as_deref(), expected, "{script}");
    }

    #[test]
    fn a_program_says_what_it_is() {
        check(
            "echo it 1.2; echo warning >&2; pwd",
            Some("it 1.2\n/\nwarning\n"),
        );
        check("cat", Some(""));
        check("echo it; exit 3", None);
    }

    #[test]
    fn a_flood_is_cut_and_does_not_hold_us() {
        let mut shell = command("sh");
        let output = probe(
            shell.args(["-c", "head -c 1000000 /dev/zero | tr '\\0' a"]),
            Duration::from_secs(10),
        );
        assert_eq!(output.map(|output| output.len()), Some(MAX_PROBE_OUTPUT));
    }

    #[test]
    fn nothing_of_it_is_left_running() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("mark");
        let script = format!("(sleep 1; touch '{}') & echo it", mark.display());
        let begin = Instant::now();
        check(&script, Some("it\n"));

        let mut shell = command("sh");
        let output = probe(
            shell.args(["-c", "sleep 300; :"]),
            Duration::from_millis(50),
        );
        assert_eq!(output, None);
        assert!(begin.elapsed() < Duration::from_secs(9));

        std::thread::park_timeout(Duration::from_millis(1300));
        assert!(!mark.exists());
    }
}
