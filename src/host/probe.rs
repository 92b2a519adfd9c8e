//! A program that is only asked what it is: no input, a little output, a short time, and nothing of
//! it left running.

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// The most of its output that is looked at.
const MAX_OUTPUT: u64 = 16 << 10;
/// How often it is looked at whether it has ended.
const TICK: Duration = Duration::from_millis(5);
/// How long output may still come once it has ended.
const LINGER: Duration = Duration::from_millis(100);

/// Runs a program and returns the beginning of what it prints, errors after results; nothing where
/// it does not start or fails. It runs in the root folder: what it reads of a folder that it
/// happens to be in is not asked for.
///
/// At the limit, and when it has ended, its whole process group is killed.
pub fn ask(command: &mut Command, limit: Duration) -> Option<String> {
    let deadline = Instant::now() + limit;
    command
        .current_dir(Path::new("/"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn().ok()?;
    let outputs = [collect(child.stdout.take()), collect(child.stderr.take())];

    let is_done = wait(&child, deadline);
    // Before it is reaped its number, which is the group's, is nobody else's.
    let _ = rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait().ok()?;
    if !is_done || !status.success() {
        return None;
    }

    let texts = outputs.map(|output| output.recv_timeout(LINGER).unwrap_or_default());
    Some(String::from_utf8_lossy(&texts.concat()).into_owned())
}

/// Reads the beginning of an output from a thread, and lets the rest go.
fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, output) = mpsc::channel();
    std::thread::spawn(move || {
        let Some(mut pipe) = pipe else { return };
        let mut bytes = Vec::new();
        let _ = pipe.by_ref().take(MAX_OUTPUT).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
        // Who is not read to the end would wait to write.
        let _ = io::copy(&mut pipe, &mut io::sink());
    });
    output
}

/// Waits for a program's end until the deadline, and leaves it to be reaped.
fn wait(child: &Child, deadline: Instant) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match rustix::process::waitid(WaitId::Pid(Pid::from_child(child)), options) {
            Ok(None) if Instant::now() < deadline => std::thread::sleep(TICK),
            Ok(status) => return status.is_some(),
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::process::command;

    /// Compares what a script is taken to say.
    fn check(script: &str, expected: Option<&str>) {
        let mut shell = command("sh");
        let said = ask(shell.args(["-c", script]), Duration::from_secs(10));
        assert_eq!(said.as_deref(), expected, "{script}");
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
        let said = ask(
            shell.args(["-c", "head -c 1000000 /dev/zero | tr '\\0' a"]),
            Duration::from_secs(10),
        );
        assert_eq!(said.map(|said| said.len() as u64), Some(MAX_OUTPUT));
    }

    #[test]
    fn nothing_of_it_is_left_running() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let script = format!("(sleep 1; touch '{}') & echo it", mark.display());
        let begin = Instant::now();
        check(&script, Some("it\n"));

        let mut shell = command("sh");
        let said = ask(
            shell.args(["-c", "sleep 300; :"]),
            Duration::from_millis(50),
        );
        assert_eq!(said, None);
        assert!(begin.elapsed() < Duration::from_secs(9));

        std::thread::park_timeout(Duration::from_millis(1300));
        assert!(!mark.exists());
    }
}
