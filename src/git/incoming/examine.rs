//! Runs git's checks of untrusted objects and reports at most one line of their output.

use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// Initial and longest delay between checks whether git has finished.
const POLL_DELAYS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];
const MAX_STDERR: u64 = 16 * 1024;

/// Runs git with a timeout. Returns the reason if the check failed.
pub(in crate::git) fn run_check(
    mut command: Command,
    out: Stdio,
    patience: Option<Duration>,
) -> anyhow::Result<Option<String>> {
    let mut child = command
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn()
        .context("starting git")?;
    let stderr = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stderr) = stderr {
            let _ = stderr.by_ref().take(MAX_STDERR).read_to_end(&mut text);
            // Drain the rest, otherwise git blocks on a full pipe.
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        }
        text
    });

    let ended = wait_with_timeout(&mut child, patience)?;
    let text = reader.join().unwrap_or_default();
    Ok(match ended {
        Some(status) if status.success() => None,
        Some(_) => Some(format!("git says: {}", first_message_line(&text))),
        None => Some("git took too long to check it".to_owned()),
    })
}

/// Waits for git, and kills it after the timeout. `None` if it was killed.
fn wait_with_timeout(
    child: &mut Child,
    patience: Option<Duration>,
) -> anyhow::Result<Option<ExitStatus>> {
    let deadline = patience.map(|patience| Instant::now() + patience);
    let [mut pause, longest] = POLL_DELAYS;
    loop {
        if let Some(status) = child.try_wait().context("waiting for git")? {
            return Ok(Some(status));
        }

        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }

        std::thread::sleep(pause);
        pause = (pause * 2).min(longest);
    }
}

fn first_message_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line_starting = |start: &str| text.lines().find(|line| line.starts_with(start));
    let line = line_starting("error:").or_else(|| line_starting("fatal:"));
    line.or_else(|| text.lines().next())
        .unwrap_or("nothing")
        .to_owned()
}
