//! A process with all that it started: a group of its own, which ends with its owner.

use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// How often a process that shall end is looked at.
const TICK: Duration = Duration::from_millis(20);
/// How long a process has to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);

/// A running process group; dropping it ends it.
pub struct ProcessGroup {
    /// The process at its head.
    pub child: Child,
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }

        signal(&mut self.child, Signal::End);
        let start = Instant::now();
        while start.elapsed() < GRACE {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            thread::park_timeout(TICK);
        }

        signal(&mut self.child, Signal::Kill);
        // The exit status of a process that was ended on purpose has no reader.
        let _ = self.child.wait();
    }
}

/// How a group is ended.
#[derive(Clone, Copy)]
enum Signal {
    /// So that it can clean up.
    End,
    /// At once.
    Kill,
}

/// Puts the process at the head of a group of its own.
#[cfg(unix)]
pub fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;

    command.process_group(0);
}

/// There are no groups here.
#[cfg(not(unix))]
pub fn own_group(_: &mut Command) {}

/// Ends all processes of the group.
#[cfg(unix)]
fn signal(child: &mut Child, signal: Signal) {
    let signal = match signal {
        Signal::End => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };

    // A group that is gone already is what was wanted.
    let _ = rustix::process::kill_process_group(rustix::process::Pid::from_child(child), signal);
}

/// Ends the process.
#[cfg(not(unix))]
fn signal(child: &mut Child, _: Signal) {
    // A process that is gone already is what was wanted.
    let _ = child.kill();
}
