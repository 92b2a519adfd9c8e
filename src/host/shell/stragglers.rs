//! Processes that left their script's group (`setsid`, a daemon) or outlived their TeDDy: found by
//! a variable that every descendant inherits. Linux only; elsewhere the group is all that is ended.

use rustix::process::{Pid, Signal};

use crate::host::env;

/// The variable's name. Its value is a list of marks: a script may run TeDDy itself.
pub(in crate::host) const VARIABLE: &str = "TEDDY_RUN";
/// What stands between two marks.
const SEPARATOR: char = ':';
/// How often it is looked again for what was born meanwhile.
const ROUNDS: usize = 8;

/// The mark of one script's processes: this process's number, the namespace in which that counts,
/// and something that no other script has.
pub(in crate::host) struct Marker {
    /// The variable's value: the marks of the scripts around this one, then its own.
    value: String,
}

impl Marker {
    /// Returns a new mark.
    pub(in crate::host) fn new() -> Marker {
        let (process, namespace) = (std::process::id(), namespace());
        let own = format!("{process}.{namespace}.{}", uuid::Uuid::now_v7());
        let value = env::var(VARIABLE)
            .map_or_else(|| own.clone(), |around| format!("{around}{SEPARATOR}{own}"));
        Marker { value }
    }

    /// Returns the variable's value.
    pub(in crate::host) fn value(&self) -> &str {
        &self.value
    }
}

/// Kills what is left of scripts whose TeDDy was killed itself. For a recovery; never touches a
/// script whose TeDDy lives.
pub fn end_orphans() {
    let here = namespace();
    kill(|mark| {
        owner(mark, here).is_some_and(|pid| {
            rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
        })
    });
}

/// Returns the process that a mark names; nothing if it counts in another namespace than `here`: a
/// host sees the processes of its containers, whose numbers mean nothing to it.
fn owner(mark: &str, here: u64) -> Option<Pid> {
    let mut parts = mark.split('.');
    let (process, namespace) = (parts.next()?, parts.next()?);
    if namespace.parse() != Ok(here) {
        return None;
    }
    Pid::from_raw(process.parse().ok()?)
}

/// Returns what tells the namespace of this process's number from others; 0 where there is none.
fn namespace() -> u64 {
    use std::os::unix::fs::MetadataExt as _;

    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// Kills every process that has a mark of some kind.
fn kill(is_wanted: impl Fn(&str) -> bool) {
    for _ in 0..ROUNDS {
        let found = processes(&is_wanted);
        if found.is_empty() {
            return;
        }
        for pid in found {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// Returns the living processes that have a mark of some kind.
fn processes(is_wanted: impl Fn(&str) -> bool) -> Vec<Pid> {
    let wanted = |pid: &Pid| {
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
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };

    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let own = rustix::process::getpid();
    numbers
        .filter_map(Pid::from_raw)
        .filter(|pid| *pid != own && wanted(pid))
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
        // A process that has ended and was waited for: its number is free.
        let mut gone = process::command("true").spawn().unwrap();
        gone.wait().unwrap();
        let (here, gone) = (namespace(), gone.id());
        let mut orphan = start(format!("1.{here}.a:{gone}.{here}.b"));
        let others = [
            format!("{}.{here}.c", std::process::id()),
            // Of a container, where the number is somebody's.
            format!("{gone}.{}.d", here + 1),
            format!("{gone}.e"),
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
