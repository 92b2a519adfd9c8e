//! A program that has the terminal for a while, as `git commit` has with its hooks and its editor.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::{interrupt, screen};

/// How often the program is looked at.
const TICK: Duration = Duration::from_millis(10);
/// How long it has to end by itself once the user wants to stop.
const GRACE: Duration = Duration::from_millis(500);

/// Whose the keys are meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreground {
    /// Ours: ctrl-c ends it and is our business.
    Watched,
    /// Its own: it asks the user something.
    Terminal,
}

/// Runs a program to its end, its output where our words go. A user who wants to stop ends it with
/// all that it started, as far as it has a group of its own: at a terminal ctrl-c reaches them all.
///
/// # Errors
/// It cannot be started.
pub fn run(command: &mut Command, keys: Foreground) -> io::Result<ExitStatus> {
    command.stdout(io::stderr());
    if keys == Foreground::Terminal {
        command.stdin(Stdio::inherit());
        let status = interrupt::deaf(|| command.status())?;
        // Where an editor or a hook was ended by ctrl-c, the user wanted to stop.
        if was_interrupted(status) {
            interrupt::raise();
        }
        return Ok(status);
    }

    let has_group = !screen::is_there();
    if has_group {
        command.process_group(0);
    }

    let mut child = command.spawn()?;
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            if asked.is_some() && has_group {
                // What it started may not have ended with it.
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            }
            return Ok(status);
        }

        match asked {
            None if interrupt::requested() => {
                signal(&child, has_group, Signal::TERM);
                asked = Some(Instant::now());
            }
            Some(since) if since.elapsed() > GRACE => signal(&child, has_group, Signal::KILL),
            _ => {}
        }

        std::thread::sleep(TICK);
    }
}

/// Returns whether ctrl-c ended a program.
fn was_interrupted(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;

    let signal = status.signal().or(status.code().map(|code| code - 128));
    signal == Some(signal_hook::consts::SIGINT)
}

/// Sends a signal to a program, and to all that it started.
fn signal(child: &Child, has_group: bool, signal: Signal) {
    let id = Pid::from_child(child);
    // What is gone already is what was wanted.
    let _ = if has_group {
        kill_process_group(id, signal)
    } else {
        kill_process(id, signal)
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::process;

    #[test]
    fn a_program_is_waited_for() {
        let mut command = process::command("sh");
        command.args(["-c", "exit 3"]);
        let status = run(&mut command, Foreground::Watched).unwrap();
        assert_eq!(status.code(), Some(3));
    }
}
