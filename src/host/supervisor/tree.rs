//! The processes below another one, as the kernel lists them.

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

use crate::host::fault;

/// A process, as it was when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: Pid,
    /// The number of the process that started it, or adopted it; nothing if that one is outside of
    /// our namespace.
    pub parent: Option<Pid>,
    /// The number of its group.
    pub group: Option<Pid>,
    /// The number of its session.
    pub session: Option<Pid>,
    /// Whether it has ended and waits to be reaped.
    pub ended: bool,
}

/// Returns the processes below one, parents first, without those that have ended.
///
/// The list is old when it is read: who forks meanwhile is found when it is made again.
pub fn below(root: Pid) -> Vec<Process> {
    let mut found = Vec::new();
    match listed_children(root) {
        Some(children) => {
            found.extend(children);
            let mut next = 0;
            while let Some(process) = found.get(next) {
                found.extend(listed_children(process.pid).unwrap_or_default());
                next += 1;
            }
        }
        None => {
            let mut all = scan();
            let mut parents = vec![root];
            while let Some(parent) = parents.pop() {
                let children = all.extract_if(.., |process| process.parent == Some(parent));
                let first = found.len();
                found.extend(children);
                parents.extend(found[first..].iter().map(|process| process.pid));
            }
        }
    }
    found.retain(|process| !process.ended);
    found
}

/// Returns the children of a process that have not ended.
pub fn children(parent: Pid) -> Vec<Process> {
    let mut found = listed_children(parent).unwrap_or_else(scan);
    found.retain(|process| process.parent == Some(parent) && !process.ended);
    found
}

/// Sends a signal to a process that was found below another one. Who is gone already, or is
/// somebody else by now, gets none.
pub fn signal(process: Process, signal: Signal) {
    // Only we reap our own children, so that nobody else can get the number of one.
    if process.parent == Some(getpid()) {
        let _ = kill_process(process.pid, signal);
        return;
    }
    // The descriptor is for one process, whoever gets the number later; that it is the right one
    // is looked up after it was opened.
    let opened = pidfd_open(process.pid, PidfdFlags::empty());
    if look(process.pid).and_then(|now| now.parent) != process.parent {
        return;
    }
    let _ = match opened {
        Ok(process) => pidfd_send_signal(process, signal),
        Err(Errno::NOSYS) => kill_process(process.pid, signal),
        Err(error) => Err(error),
    };
}

/// Returns a process's name and number, for people.
pub fn name(pid: Pid) -> String {
    let number = pid.as_raw_nonzero();
    let name = std::fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
    match name.trim_end() {
        "" => format!("process {number}"),
        name => format!("process {number} ({name})"),
    }
}

/// Returns the children that the kernel lists for each thread; nothing if it has no such lists
/// (`CONFIG_PROC_CHILDREN`).
fn listed_children(parent: Pid) -> Option<Vec<Process>> {
    if fault::emulated("no-proc-children").is_some() {
        return None;
    }
    let threads = std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero())).ok()?;
    let mut found = Vec::new();
    for thread in threads.flatten() {
        let list = match std::fs::read_to_string(thread.path().join("children")) {
            Ok(list) => list,
            // The thread has ended, or the kernel has no lists.
            Err(_) if thread.path().exists() => return None,
            Err(_) => continue,
        };
        let pids = list.split_ascii_whitespace();
        found.extend(pids.filter_map(|pid| look(Pid::from_raw(pid.parse().ok()?)?)));
    }
    Some(found)
}

/// Returns all processes that there are.
fn scan() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| look(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?))
        .collect()
}

/// Looks at a process; nothing if there is none.
fn look(pid: Pid) -> Option<Process> {
    let line = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parse(pid, &line)
}

/// Parses a line of `/proc/<pid>/stat`. The name in parentheses may itself have some.
fn parse(pid: Pid, line: &[u8]) -> Option<Process> {
    let end = line.iter().rposition(|&byte| byte == b')')?;
    let rest = str::from_utf8(&line[end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X" | "x");
    let mut number = || Some(Pid::from_raw(fields.next()?.parse().ok()?));
    Some(Process {
        pid,
        parent: number()?,
        group: number()?,
        session: number()?,
        ended,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a line and compares parent, group, session and whether the process has ended.
    #[track_caller]
    fn check(line: &str, expected: Option<([i32; 3], bool)>) {
        let number = |pid: Option<Pid>| pid.map_or(0, |pid| pid.as_raw_nonzero().get());
        let parsed = parse(Pid::INIT, line.as_bytes()).map(|process| {
            let numbers = [process.parent, process.group, process.session];
            (numbers.map(number), process.ended)
        });
        assert_eq!(parsed, expected, "{line}");
    }

    #[test]
    fn a_name_with_parentheses_and_blanks_deceives_nobody() {
        check("7 (sh) S 5 7 3 0 -1", Some(([5, 7, 3], false)));
        check("7 (a) R 1 1 1 (b)) Z 5 7 3 0", Some(([5, 7, 3], true)));
        check("7 (sh) S 0 7 3", Some(([0, 7, 3], false)));
        check("7 (sh", None);
        check("", None);
    }

    #[test]
    fn the_kernels_lists_and_a_scan_find_the_same_child() {
        let mut child = crate::host::process::command("sleep")
            .arg("300")
            .spawn()
            .unwrap();
        let own = look(Pid::from_child(&child)).unwrap();
        assert_eq!(own.parent, Some(getpid()));
        let listed = listed_children(getpid());
        assert!(listed.is_none_or(|listed| listed.contains(&own)));
        assert!(scan().contains(&own));
        assert!(below(getpid()).contains(&own) && children(getpid()).contains(&own));

        signal(own, Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_number_that_belongs_to_somebody_else_gets_no_signal() {
        let mut child = crate::host::process::command("sleep")
            .arg("300")
            .spawn()
            .unwrap();
        let wrong = Process {
            parent: Some(Pid::INIT),
            ..look(Pid::from_child(&child)).unwrap()
        };
        signal(wrong, Signal::KILL);
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
