//! Kills the processes that a killed supervisor has left.
//!
//! A command without a sandbox, or the user, can kill a supervisor. TeDDy is a subreaper while
//! supervisors run, so the orphans become its children. They differ from our own children by their
//! session: each supervisor creates a new one, other children stay in ours. Orphans are reaped only
//! by pid, because other code waits for the other children.
//!
//! Without running supervisors TeDDy is not a subreaper. Otherwise a long-running process would
//! collect zombies, such as background processes of git.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, waitpid};

use super::tree;

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
        let mut orphans = find_orphans(tree::children(getpid()));
        if orphans.is_empty() {
            // The kernel's list of children can miss one if another exits while it is read.
            orphans = self::find_orphans(tree::scanned_children(getpid()));
        }

        if orphans.is_empty() || Instant::now() >= deadline {
            return orphans
                .iter()
                .map(|orphan| tree::process_name(orphan.pid))
                .collect();
        }

        for orphan in orphans {
            let mut processes = vec![orphan];
            processes.extend(tree::descendants(orphan.pid));
            for process in &processes {
                tree::signal_process(process, &processes, Signal::KILL);
            }
            // An ended child is not listed next time, even if it was not reaped here.
            let _ = waitpid(Some(orphan.pid), WaitOptions::NOHANG);
        }

        std::thread::park_timeout(TICK);
    }
}

/// Filters out the children that we started ourselves.
fn find_orphans(children: Vec<tree::Process>) -> Vec<tree::Process> {
    let own_session = tree::own_session();
    let registered = supervisors().clone();
    let is_known = |pid: Pid| registered.contains(&pid.as_raw_nonzero().get().unsigned_abs());
    children
        .into_iter()
        .filter(|child| !child.ended && !is_known(child.pid))
        .filter(|child| child.session != own_session)
        .collect()
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
