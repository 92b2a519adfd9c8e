//! What a supervisor that was killed has left to us.
//!
//! A command without a sandbox can kill its supervisor, and so can a person. Because we are a
//! subreaper, too, while supervisors live, its orphans become our children. They are told from the
//! children that we started ourselves by their session: a supervisor makes one of its own, a child
//! of ours stays in ours. None is reaped but by its number: the others have their own who wait for
//! them.
//!
//! Without a supervisor orphans are the system's: nobody would reap what git leaves to tidy up
//! behind it, and a process of many turns would fill the table of processes with the dead.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, waitpid};

use super::tree;

/// How long orphans are killed again and again.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often.
const TICK: Duration = Duration::from_millis(5);

/// The supervisors that live, which are children of ours with a session of their own.
static SUPERVISORS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// How many adoptions live.
static ADOPTIONS: Mutex<usize> = Mutex::new(0);

/// Makes this process the one that adopts orphans, until all such values are dropped.
pub(super) struct Adoption(());

impl Adoption {
    /// Adopts from now on.
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

/// Returns how many live; nobody adopts or ceases to while it is held.
fn adoptions() -> MutexGuard<'static, usize> {
    ADOPTIONS.lock().expect("nothing panics with the lock")
}

/// Makes this process adopt orphans, or not any more.
fn adopt(adopts: bool) {
    // Refused nowhere; where it does not exist orphans go to the system, as they always did.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(adopts.then(getpid));
}

/// Notes a supervisor that was started, or another process of ours with a session of its own.
pub(in crate::host) fn know(id: u32) {
    supervisors().insert(id);
}

/// Forgets a supervisor that has ended.
pub(in crate::host) fn forget(id: u32) {
    supervisors().remove(&id);
}

/// Returns the list.
fn supervisors() -> MutexGuard<'static, BTreeSet<u32>> {
    SUPERVISORS.lock().expect("nothing panics with the lock")
}

/// Kills every orphan and what is below it; returns who could not be ended.
pub(super) fn end_all() -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut orphans = orphans(tree::children(getpid()));
        if orphans.is_empty() {
            // The kernel's list may leave one out when another leaves it meanwhile.
            orphans = self::orphans(tree::scanned_children(getpid()));
        }

        if orphans.is_empty() || Instant::now() >= deadline {
            return orphans
                .iter()
                .map(|orphan| tree::name(orphan.pid))
                .collect();
        }

        for orphan in orphans {
            let mut found = vec![orphan];
            found.extend(tree::below(orphan.pid));
            for process in &found {
                tree::signal(process, &found, Signal::KILL);
            }
            // One that has ended is not listed the next time, whether it was reaped or not.
            let _ = waitpid(Some(orphan.pid), WaitOptions::NOHANG);
        }

        std::thread::park_timeout(TICK);
    }
}

/// Returns those of our children that we did not start.
fn orphans(children: Vec<tree::Process>) -> Vec<tree::Process> {
    let own_session = tree::own_session();
    let known = supervisors().clone();
    let is_known = |pid: Pid| known.contains(&pid.as_raw_nonzero().get().unsigned_abs());
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

    /// A process of many turns adopted whatever git left to tidy up behind it, and reaped none of it.
    #[test]
    #[cfg(target_os = "linux")]
    fn orphans_are_the_systems_once_no_supervisor_lives() {
        let first = Adoption::begin();
        let second = Adoption::begin();
        drop(first);
        assert!(adopts());
        drop(second);

        // Other tests of this process have supervisors, too.
        let begun = Instant::now();
        while adopts() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::park_timeout(TICK);
        }
    }
}
