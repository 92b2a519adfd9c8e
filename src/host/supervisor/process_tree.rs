//! Kills the processes that a killed supervisor has left.
//!
//! A command without a sandbox, or the user, can kill a supervisor. TeDDy is a subreaper while
//! supervisors run, so the orphans become its children. They differ from our own children by their
//! session: each supervisor creates a new one, other children stay in ours.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, pidfd_send_signal,
    waitpid,
};

use crate::host::fault;
use crate::host::file::uninterrupted;

const KILL_PATIENCE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(5);

/// Children with their own session: running supervisors and overlay holders.
static SUPERVISORS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

static ADOPTIONS: Mutex<usize> = Mutex::new(0);

/// Makes this process a subreaper while at least one value exists.
pub(super) struct Adoption(());

impl Adoption {
    pub(super) fn begin() -> Adoption {
        let mut count = adoptions();
        *count += 1;
        adopt(*count > 0);
        Adoption(())
    }
}

impl Drop for Adoption {
    fn drop(&mut self) {
        let mut count = adoptions();
        *count -= 1;
        // A subreaper that runs for long collects zombies, such as background processes of git.
        adopt(*count > 0);
    }
}

/// Hold the guard while changing the subreaper flag.
fn adoptions() -> MutexGuard<'static, usize> {
    ADOPTIONS.lock().expect("nothing panics with the lock")
}

fn adopt(adopts: bool) {
    // The call never fails. Without it, orphans become children of init.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(adopts.then(getpid));
}

/// Registers a supervisor, or another child with its own session.
pub(in crate::host) fn register_supervisor(id: u32) {
    supervisors().insert(id);
}

pub(in crate::host) fn unregister_supervisor(id: u32) {
    supervisors().remove(&id);
}

fn supervisors() -> MutexGuard<'static, BTreeSet<u32>> {
    SUPERVISORS.lock().expect("nothing panics with the lock")
}

/// Kills all orphans and their descendants. Returns those that could not be killed.
pub(super) fn kill_orphans() -> Vec<String> {
    let deadline = Instant::now() + KILL_PATIENCE;
    loop {
        let mut orphans = find_orphans(children(getpid()));
        if orphans.is_empty() {
            // The kernel's list of children can miss one if another exits while it is read.
            orphans = self::find_orphans(scanned_children(getpid()));
        }

        if orphans.is_empty() || Instant::now() >= deadline {
            return orphans
                .iter()
                .map(|orphan| process_name(orphan.pid))
                .collect();
        }

        for orphan in orphans {
            let mut processes = vec![orphan];
            processes.extend(descendants(orphan.pid));
            for process in &processes {
                signal_process(process, &processes, Signal::KILL);
            }
            // Only by pid: other code waits for the other children. An ended child is not listed
            // next time, even if it was not reaped here.
            let _ = waitpid(Some(orphan.pid), WaitOptions::NOHANG);
        }

        std::thread::park_timeout(TICK);
    }
}

/// Filters out the children that we started ourselves.
fn find_orphans(children: Vec<Process>) -> Vec<Process> {
    let own_session = own_session();
    let registered = supervisors().clone();
    let is_known = |pid: Pid| registered.contains(&pid.as_raw_nonzero().get().unsigned_abs());
    children
        .into_iter()
        .filter(|child| !child.ended && !is_known(child.pid))
        .filter(|child| child.session != own_session)
        .collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub pid: Pid,
    /// The process that started or adopted it. `None` if that is outside of our pid namespace.
    pub parent: Option<Pid>,
    pub group: Option<Pid>,
    pub session: Option<Pid>,
    /// Start time in clock ticks since boot. Identifies the process together with `pid`.
    pub started: u64,
    /// A zombie: ended, but not reaped.
    pub ended: bool,
}

/// Returns all descendants, parents first, including zombies. The list is outdated immediately:
/// callers repeat the call to find new processes, and [`signal_process`] detects reused pids.
pub fn descendants(root: Pid) -> Vec<Process> {
    let mut processes = Vec::new();
    match listed_children(root) {
        Some(children) => {
            processes.extend(children);
            let mut next = 0;
            while let Some(process) = processes.get(next) {
                processes.extend(listed_children(process.pid).unwrap_or_default());
                next += 1;
            }
        }
        None => {
            let mut all = scan_processes();
            let mut parents = vec![root];
            while let Some(parent) = parents.pop() {
                let children = all.extract_if(.., |process| process.parent == Some(parent));
                let first = processes.len();
                processes.extend(children);
                parents.extend(processes[first..].iter().map(|process| process.pid));
            }
        }
    }

    processes
}

/// Returns the children of a process, including zombies.
pub fn children(parent: Pid) -> Vec<Process> {
    let mut processes = listed_children(parent).unwrap_or_else(scan_processes);
    processes.retain(|process| process.parent == Some(parent));
    processes
}

/// Like [`children`], but scans all processes, which is slower and misses none.
pub fn scanned_children(parent: Pid) -> Vec<Process> {
    let mut processes = scan_processes();
    processes.retain(|process| process.parent == Some(parent));
    processes
}

/// Sends a signal to one of `processes`, unless it has ended, even if another process reuses its
/// pid.
pub fn signal_process(process: &Process, processes: &[Process], signal: Signal) {
    // The pid of our own child cannot be reused: only we can reap it.
    if process.parent == Some(getpid()) {
        let _ = kill_process(process.pid, signal);
        return;
    }

    // A pidfd always refers to the same process. Open it first, then check that it is the right
    // one.
    let opened = pidfd_open(process.pid, PidfdFlags::empty());
    if !is_still_descendant(process, processes) {
        return;
    }

    let _ = match opened {
        Ok(process) => pidfd_send_signal(process, signal),
        // Before Linux 5.3 there are no pidfds, and a small race remains.
        Err(Errno::NOSYS) => kill_process(process.pid, signal),
        Err(error) => Err(error),
    };
}

/// Returns whether a process and all its ancestors up to this process are unchanged.
fn is_still_descendant(process: &Process, processes: &[Process]) -> bool {
    let mut process = process;
    loop {
        let same = read_stat(process.pid)
            .is_some_and(|now| (now.started, now.parent) == (process.started, process.parent));
        if !same {
            return false;
        }

        if process.parent == Some(getpid()) {
            return true;
        }

        let parent = processes
            .iter()
            .find(|other| Some(other.pid) == process.parent);
        match parent {
            Some(parent) => process = parent,
            None => return false,
        }
    }
}

pub fn process_name(pid: Pid) -> String {
    let number = pid.as_raw_nonzero();
    let name = std::fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
    match name.trim_end() {
        "" => format!("process {number}"),
        name => format!("process {number} ({name})"),
    }
}

/// Reads `/proc/<pid>/task/<tid>/children`. `None` if the kernel lacks it (`CONFIG_PROC_CHILDREN`).
fn listed_children(parent: Pid) -> Option<Vec<Process>> {
    if fault::emulated("no-proc-children").is_some() {
        return None;
    }

    let threads =
        uninterrupted(|| std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero())))
            .ok()?;
    let mut children = Vec::new();
    for thread in threads.flatten() {
        let list = match std::fs::read_to_string(thread.path().join("children")) {
            Ok(list) => list,
            // Either the thread has ended, or the kernel lacks the file.
            Err(_) if thread.path().exists() => return None,
            Err(_) => continue,
        };
        let pids = list.split_ascii_whitespace();
        children.extend(pids.filter_map(|pid| read_stat(Pid::from_raw(pid.parse().ok()?)?)));
    }

    Some(children)
}

fn scan_processes() -> Vec<Process> {
    let entries = uninterrupted(|| std::fs::read_dir("/proc"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter_map(|entry| read_stat(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?))
        .collect()
}

pub(super) fn own_session() -> Option<Pid> {
    // `getsid` returns 0 in a container whose init process got its session from outside.
    read_stat(rustix::process::getpid())?.session
}

/// Returns `None` if the process does not exist.
fn read_stat(pid: Pid) -> Option<Process> {
    let line = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parse_stat(pid, &line)
}

fn parse_stat(pid: Pid, line: &[u8]) -> Option<Process> {
    // The process name in parentheses can contain parentheses itself.
    let end = line.iter().rposition(|&byte| byte == b')')?;
    let suffix = str::from_utf8(&line[end + 1..]).ok()?;
    let mut fields = suffix.split_ascii_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X" | "x");
    let mut number = || Some(Pid::from_raw(fields.next()?.parse().ok()?));
    let (parent, group, session) = (number()?, number()?, number()?);

    Some(Process {
        pid,
        parent,
        group,
        session,
        // Field 22, `starttime`.
        started: fields.nth(15)?.parse().ok()?,
        ended,
    })
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use super::*;

    #[cfg(target_os = "linux")]
    fn adopts() -> bool {
        rustix::process::child_subreaper().unwrap().is_some()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn orphans_are_the_systems_once_no_supervisor_lives() {
        let first = Adoption::begin();
        let second = Adoption::begin();
        drop(first);
        assert!(adopts());
        drop(second);

        // Other tests in this process run supervisors as well.
        let start = Instant::now();
        while adopts() {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::park_timeout(TICK);
        }
    }
}

#[cfg(test)]
mod tree_tests {
    use super::*;

    /// Expects parent, group, session, start time and whether the process has ended.
    #[track_caller]
    fn check(line: &str, expected: Option<([i32; 3], u64, bool)>) {
        let number = |pid: Option<Pid>| pid.map_or(0, |pid| pid.as_raw_nonzero().get());
        let parsed = parse_stat(Pid::INIT, line.as_bytes()).map(|process| {
            let numbers = [process.parent, process.group, process.session];
            (numbers.map(number), process.started, process.ended)
        });
        assert_eq!(parsed, expected, "{line}");
    }

    #[test]
    fn a_name_with_parentheses_and_blanks_deceives_nobody() {
        let suffix = "0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 4096";
        let check = |begin: &str, expected| check(&format!("{begin} {suffix}"), expected);
        check("7 (sh) S 5 7 3", Some(([5, 7, 3], 99, false)));
        check("7 (a) R 1 1 1 (b)) Z 5 7 3", Some(([5, 7, 3], 99, true)));
        check("7 (sh) S 0 7 3", Some(([0, 7, 3], 99, false)));
        check("7 (sh", None);
    }

    fn sleeper() -> (std::process::Child, Process) {
        let mut command = crate::host::process::command("sleep");
        let child = command.arg("300").spawn().unwrap();
        let process = read_stat(Pid::from_child(&child)).unwrap();
        (child, process)
    }

    #[test]
    fn the_kernels_lists_and_a_scan_find_the_same_child() {
        let (mut child, own) = sleeper();
        assert_eq!(own.parent, Some(getpid()));
        let is_own = |process: &Process| (process.pid, process.started) == (own.pid, own.started);
        let listed = listed_children(getpid());
        assert!(listed.is_none_or(|listed| listed.iter().any(is_own)));
        assert!(scan_processes().iter().any(is_own));
        assert!(descendants(getpid()).iter().any(is_own) && children(getpid()).iter().any(is_own));

        signal_process(&own, &[], Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_number_that_belongs_to_somebody_else_gets_no_signal() {
        let (mut child, own) = sleeper();
        let parent = read_stat(getpid()).unwrap();
        // Found below another process, and below a process whose pid we got later.
        let foreign = Process {
            parent: Some(Pid::INIT),
            ..own
        };
        let earlier = Process {
            started: parent.started + 1,
            parent: own.parent,
            ..parent
        };
        let reused = Process {
            started: own.started + 1,
            parent: Some(earlier.pid),
            ..own
        };
        signal_process(&foreign, &[foreign], Signal::KILL);
        assert!(!is_still_descendant(&foreign, &[foreign]));
        assert!(!is_still_descendant(&reused, &[earlier, reused]));
        assert!(is_still_descendant(&own, &[own]));
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
