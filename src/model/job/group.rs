//! A child process in its own process group.
//!
//! Dropping it ends the whole group, unless the leader has exited by itself.

use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

const GROUP_TICK: Duration = Duration::from_millis(20);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(500);

/// A group with its leader. Dropped, it gets SIGTERM, and SIGKILL after `GRACE`.
pub struct ProcessGroup {
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
            thread::park_timeout(GROUP_TICK);
        }

        signal(&mut self.child, Signal::Kill);
        // Nothing reads the status of a process that we killed.
        let _ = self.child.wait();
    }
}

#[derive(Clone, Copy)]
enum Signal {
    /// SIGTERM, so that the processes can clean up.
    End,
    Kill,
}

/// Makes the process the leader of a new group.
#[cfg(unix)]
pub fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;

    command.process_group(0);
}

/// Does nothing: process groups exist on Unix only.
#[cfg(not(unix))]
pub fn own_group(_: &mut Command) {}

#[cfg(unix)]
fn signal(child: &mut Child, signal: Signal) {
    let signal = match signal {
        Signal::End => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };

    // ESRCH: the group has already exited.
    let _ = rustix::process::kill_process_group(rustix::process::Pid::from_child(child), signal);
}

#[cfg(not(unix))]
fn signal(child: &mut Child, _: Signal) {
    // Fails only if the process has already exited.
    let _ = child.kill();
}
