//! Checks the refs of sessions, and quickly verifies the newest turns.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::{HealthCheck, Patient, owned_by_another};
use crate::change::id::CHANGES;
use crate::git::keep::store_access::{self, ReadExtent};
use crate::git::object::{BlobId, CommitId, EntryMode};
use crate::git::refs::repair::RefScan;
use crate::git::refs::{self, INCOMING_PREFIX, REMOTES_SIGNED_PREFIX, Reference, SIGNED_PREFIX};
use crate::git::repository::Repository;
use crate::project::Project;
use crate::session::bare::BARE_SESSIONS;
use crate::session::name::{DRAFTS, REMOTES, SESSIONS, SessionName};
use crate::session::publication::Delta;
use crate::session::verify::{CheckedTurn, Fault, SharedChecks, check_newest};
use crate::text::path::lossy;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_word;
use crate::text::{counted, first_names};
use crate::workspace::file_move::changes_of;
use crate::workspace::set_aside::{SetAside, set_aside};

const OURS: &str = "refs/teddy/";
/// These need no session here.
const OTHERS: [&str; 7] = [
    "refs/teddy/snapshots/",
    "refs/teddy/published/",
    REMOTES,
    REMOTES_SIGNED_PREFIX,
    INCOMING_PREFIX,
    BARE_SESSIONS,
    CHANGES,
];
const PATIENCE: Duration = Duration::from_secs(1);
const TURNS: usize = 3;
const MOST: usize = 5;
/// Per turn.
const MOST_FILES: usize = 1000;

pub(super) fn run_checks(patient: &Patient) -> Vec<HealthCheck> {
    let Ok(project) = &patient.project else {
        return Vec::new();
    };
    if owned_by_another(project).is_some() {
        return Vec::new();
    }
    let listed = match refs::list(&project.repository, OURS) {
        Ok(listed) => listed,
        Err(error) => {
            let reason = format!("the refs cannot be read: {error:#}");
            return vec![HealthCheck::problem("refs", reason).remedy("git fsck")];
        }
    };

    let mut checks = damaged(project);
    checks.extend(check_orphan_refs(&listed));
    checks.extend(turns(project));
    checks.extend(check_set_aside(project));
    checks
}

fn check_set_aside(project: &Project) -> Option<HealthCheck> {
    let items = match set_aside(&project.repository) {
        Ok(items) => items,
        Err(error) => {
            return Some(HealthCheck::problem(
                "set-aside",
                sanitize_line(&format!("{error:#}")),
            ));
        }
    };
    if items.is_empty() {
        return None;
    }

    let name = |item: &SetAside| format!("`{}`", sanitize_line(&item.name));
    let names = first_names(items.iter().map(name), MOST);
    let reason = format!("recovery quarantined files that it could not use: {names}");
    let remedy = "teddy doctor --fix --put-back  # puts back what is sound";
    Some(HealthCheck::note("set-aside", reason).remedy(remedy))
}

fn damaged(project: &Project) -> Vec<HealthCheck> {
    let broken = match refs::repair::broken(&project.repository, RefScan::Full) {
        Ok(broken) => broken,
        Err(error) => {
            let reason = format!("{error:#}");
            return vec![HealthCheck::problem("refs", sanitize_line(&reason)).remedy("git fsck")];
        }
    };
    let remedy = match project.repository.is_bare() {
        // Repair needs the state of a checkout.
        true => "git fsck",
        false => "teddy doctor --fix",
    };
    let checks = broken.iter().take(MOST).map(|name| {
        let reason = format!("`{}` names nothing that exists", sanitize_line(name));
        HealthCheck::problem("refs", reason).remedy(remedy)
    });
    checks.collect()
}

fn check_orphan_refs(listed: &[Reference]) -> Vec<HealthCheck> {
    let sessions: HashSet<&str> = listed
        .iter()
        .filter_map(|reference| reference.name.strip_prefix(SESSIONS))
        .collect();
    let orphans = listed
        .iter()
        .filter_map(|reference| Some((reference, why_orphaned(&reference.name, &sessions)?)));

    let checks = orphans.take(MOST).map(|(reference, why)| {
        let reason = format!("`{}` {why}", sanitize_line(&reference.name));
        let remedy = format!(
            "git update-ref -d {} {}",
            shell_word(&reference.name),
            reference.target
        );
        HealthCheck::note("stray-refs", reason).remedy(remedy)
    });
    checks.collect()
}

fn why_orphaned(name: &str, sessions: &HashSet<&str>) -> Option<&'static str> {
    if let Some(session) = name.strip_prefix(SESSIONS) {
        return SessionName::from_ref(session)
            .is_err()
            .then_some("is no name of a session: no command shows it");
    }
    if let Some(session) = name.strip_prefix(DRAFTS) {
        return (!sessions.contains(session))
            .then_some("is the turn in progress of a session that is gone");
    }
    if let Some(session) = name.strip_prefix(SIGNED_PREFIX) {
        return (!sessions.contains(session))
            .then_some("is the signature of a session that is gone");
    }

    let is_known = OTHERS.iter().any(|prefix| name.starts_with(prefix));
    (!is_known).then_some("is nothing that TeDDy knows, but among its refs")
}

/// As many sessions as the time allows.
fn turns(project: &Project) -> Vec<HealthCheck> {
    let mut sessions = match project.store().sessions() {
        Ok(sessions) => sessions,
        Err(error) => {
            let reason = format!("the sessions cannot be listed: {error:#}");
            return vec![HealthCheck::problem("turns", sanitize_line(&reason)).remedy("git fsck")];
        }
    };
    if let Ok(in_use) = project.session() {
        // The current session first: there might not be time for all.
        sessions.sort_by_key(|(name, _)| *name != in_use);
    }

    let deadline = Instant::now() + PATIENCE;
    let mut checks = Vec::new();
    let mut read = 0;
    for (name, tip) in &sessions {
        if Instant::now() > deadline {
            break;
        }
        checks.extend(faults(project, name, *tip));
        read += 1;
    }

    let faulty = checks.len();
    checks.truncate(MOST);
    if faulty == 0 {
        checks.push(report_verified(read, sessions.len()));
    } else if faulty > MOST {
        let reason = match faulty - MOST {
            1 => "1 more session has faults".to_owned(),
            more => format!("{more} more sessions have faults"),
        };
        checks.push(HealthCheck::problem("turns", reason).remedy("teddy verify"));
    }
    checks
}

fn report_verified(read: usize, all: usize) -> HealthCheck {
    let sessions = counted(all, "session");
    if read < all {
        let reason = format!(
            "the newest turns of {read} of {sessions} are sound; there was no time for the others"
        );
        return HealthCheck::ok("turns", reason).remedy("teddy verify");
    }
    match all {
        0 => HealthCheck::ok("turns", "there are no sessions"),
        _ => HealthCheck::ok("turns", format!("{sessions}, the newest turns sound")),
    }
}

fn faults(project: &Project, session: &SessionName, tip: CommitId) -> Option<HealthCheck> {
    let mut checked = check_newest(
        &project.repository,
        session,
        tip,
        TURNS,
        &mut SharedChecks::default(),
    );
    if checked.faults.is_empty() {
        let newest = checked.turns.iter().take(TURNS);
        let missing = newest.filter_map(|turn| missing_file(&project.repository, turn));
        checked.faults.extend(missing);
    }
    let fault = checked.faults.first()?;
    if let Err(error) = store_access::ensure_readable(&project.repository, ReadExtent::Start) {
        return Some(
            HealthCheck::problem("turns", sanitize_line(&error.to_string())).remedy("git fsck"),
        );
    }
    let location = match fault.turn {
        Some(turn) => format!("turn {turn} of `{session}`"),
        None => format!("session `{session}`"),
    };
    let more = match checked.faults.len() {
        1 => String::new(),
        faults => format!(", and {} more", counted(faults - 1, "fault")),
    };

    let reason = format!("{location}: {}{more}", sanitize_line(&fault.what));
    Some(
        HealthCheck::problem("turns", reason)
            .remedy(format!("teddy verify {}", shell_word(session.as_str()))),
    )
}

/// The first file that a turn changed and whose content is gone. A partial clone can lack any.
fn missing_file(repository: &Repository, turn: &CheckedTurn) -> Option<Fault> {
    let [before, after] = turn.code.filter(|_| !turn.without_code)?;
    if repository.is_partial() {
        return None;
    }
    let fault = |what: String| Fault {
        turn: Some(turn.number),
        commit: turn.commit,
        rule: "objects",
        what,
    };
    let changes = match changes_of(repository, Delta { before, after }) {
        Ok(changes) => changes,
        Err(error) => return Some(fault(format!("{error:#}"))),
    };
    changes.iter().take(MOST_FILES).find_map(|change| {
        let entry = change.new.as_ref();
        let entry = entry.filter(|entry| entry.mode != EntryMode::Commit)?;
        let error = repository.blob_size(BlobId::of(entry.id)).err()?;
        Some(fault(format!("`{}`: {error:#}", lossy(&change.path))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ref_of_ours_belongs_to_something() {
        let sessions = HashSet::from(["demo", "change/x"]);
        let check = |name: &str, is_stray: bool| {
            let name = format!("{OURS}{name}");
            assert_eq!(why_orphaned(&name, &sessions).is_some(), is_stray, "{name}");
        };
        for name in [
            "sessions/demo",
            "sessions/change/x",
            "drafts/demo",
            "signed/demo",
            "snapshots/main",
            "published/main",
            "changes/x",
            "remotes/origin/demo",
            "bare/demo",
        ] {
            check(name, false);
        }
        for name in ["sessions/No Name", "drafts/gone", "signed/gone", "x", "x/y"] {
            check(name, true);
        }
    }

    #[test]
    fn what_was_not_read_is_told() {
        let check = |read: usize, all: usize, expected: &str| {
            assert_eq!(report_verified(read, all).reason, expected);
        };
        check(0, 0, "there are no sessions");
        check(1, 1, "1 session, the newest turns sound");
        check(
            7,
            10_000,
            "the newest turns of 7 of 10000 sessions are sound; there was no time for the others",
        );
    }
}
