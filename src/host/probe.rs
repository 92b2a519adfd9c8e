//! Runs a program to find out what it is: no input, little output, a short time limit, and no
//! process left running.

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

const MAX_PROBE_OUTPUT: u64 = 16 << 10;
const PROBE_TICK: Duration = Duration::from_millis(5);
/// How long to wait for output after the program has ended.
const PROBE_LINGER: Duration = Duration::from_millis(100);

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
    let outputs = [
        collect_beginning(child.stdout.take()),
        collect_beginning(child.stderr.take()),
    ];

    let is_done = wait_unreaped(&child, deadline);
    // Before `wait`: until the child is reaped, its process id and group id cannot be reused.
    let _ = rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait().ok()?;
    if !is_done || !status.success() {
        return None;
    }

    let texts = outputs.map(|output| output.recv_timeout(PROBE_LINGER).unwrap_or_default());
    Some(String::from_utf8_lossy(&texts.concat()).into_owned())
}

fn collect_beginning(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, output) = mpsc::channel();
    std::thread::spawn(move || {
        let Some(mut pipe) = pipe else { return };
        let mut bytes = Vec::new();
        let _ = pipe.by_ref().take(MAX_PROBE_OUTPUT).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
        // The program would block on a full pipe.
        let _ = io::copy(&mut pipe, &mut io::sink());
    });
    output
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
        assert_eq!(
            output.map(|output| output.len() as u64),
            Some(MAX_PROBE_OUTPUT)
        );
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
