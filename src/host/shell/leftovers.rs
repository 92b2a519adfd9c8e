//! Kills processes that outlived a killed TeDDy, even if they left their process group (`setsid`,
//! daemons).
//!
//! All descendants inherit an environment variable that identifies them. Linux only.

use rustix::process::{Pid, Signal};

use crate::host::env;
use crate::host::file::uninterrupted;

/// Value: markers separated by `:`, because a script can run TeDDy itself.
pub(super) const VARIABLE: &str = "TEDDY_RUN";
const SEPARATOR: char = ':';
/// Rounds of killing, to catch processes forked during the previous one.
const MAX_ROUNDS: usize = 8;

/// Marks the processes of one script: TeDDy's process id, its pid namespace, and a unique id.
pub(super) struct RunMarker {
    /// The markers of the scripts around this one, then its own.
    value: String,
}

impl RunMarker {
    pub(super) fn new() -> RunMarker {
        let (process, namespace) = (std::process::id(), namespace());
        let own = format!("{process}.{namespace}.{}", uuid::Uuid::now_v7());
        let value = env::var(VARIABLE)
            .map_or_else(|| own.clone(), |around| format!("{around}{SEPARATOR}{own}"));
        RunMarker { value }
    }

    pub(super) fn value(&self) -> &str {
        &self.value
    }
}

/// Kills processes of scripts whose TeDDy has died. Processes of a running TeDDy are not affected.
pub fn end_orphans() {
    let here = namespace();
    kill(|mark| {
        owner(mark, here).is_some_and(|pid| {
            rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
        })
    });
}

/// Returns the TeDDy process of a marker. `None` if it belongs to another pid namespace.
fn owner(mark: &str, here: u64) -> Option<Pid> {
    let mut parts = mark.split('.');
    let (process, namespace) = (parts.next()?, parts.next()?);
    // A host sees the processes of its containers, but the ids in their markers mean other
    // processes here.
    if namespace.parse() != Ok(here) {
        return None;
    }
    Pid::from_raw(process.parse().ok()?)
}

/// Inode of the pid namespace, or 0 if there is none.
fn namespace() -> u64 {
    use std::os::unix::fs::MetadataExt as _;

    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

fn kill(is_wanted: impl Fn(&str) -> bool) {
    for _ in 0..MAX_ROUNDS {
        let pids = processes(&is_wanted);
        if pids.is_empty() {
            return;
        }
        for pid in pids {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

fn processes(is_wanted: impl Fn(&str) -> bool) -> Vec<Pid> {
    let is_match = |pid: &Pid| {
        let environ =
            std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        let value = environ.split(|&byte| byte == 0).find_map(|variable| {
            variable
                .strip_prefix(VARIABLE.as_bytes())?
                .strip_prefix(b"=")
        });
        value
            .and_then(|value| str::from_utf8(value).ok())
            .is_some_and(|value| value.split(SEPARATOR).any(&is_wanted))
    };
    let Ok(entries) = uninterrupted(|| std::fs::read_dir("/proc")) else {
        return Vec::new();
    };

    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let own = rustix::process::getpid();
    numbers
        .filter_map(Pid::from_raw)
        .filter(|pid| *pid != own && is_match(pid))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::process;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_outlived_its_program_is_found_later() {
        let start = |mark: String| {
            let mut command = process::command("sleep");
            command.arg("300").env(VARIABLE, mark);
            command.spawn().unwrap()
        };
        // Ended and reaped, so its id is free.
        let mut ended = process::command("true").spawn().unwrap();
        ended.wait().unwrap();
        let (here, ended_id) = (namespace(), ended.id());
        let mut orphan = start(format!("1.{here}.a:{ended_id}.{here}.b"));
        let others = [
            format!("{}.{here}.c", std::process::id()),
            // From a container, in which the id belongs to another process.
            format!("{ended_id}.{}.d", here + 1),
            format!("{ended_id}.e"),
        ];
        let others = others.map(start);
        end_orphans();
        assert!(!orphan.wait().unwrap().success());
        for mut other in others {
            assert!(other.try_wait().unwrap().is_none());
            other.kill().unwrap();
            other.wait().unwrap();
        }
    }
}
