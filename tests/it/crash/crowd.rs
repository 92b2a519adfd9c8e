//! Sessions of TeDDy that work at the same time, beside git's housekeeping, and the user's commits and
//! saves.

use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::killed_repo::{Rig, Saver, fsck, lost, said, torn};

/// Turns per session.
const TURNS: usize = if crate::WORLDS { 4 } else { 2 };
/// Each session gets its own process.
pub const SESSIONS: [&str; 3] = ["alpha", "beta", "gamma"];

pub fn rig() -> Rig {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 100);
    SESSIONS
        .iter()
        .for_each(|session| drop(rig.must(&["new", session])));
    rig
}

pub fn plan(rig: &Rig, session: &str, turn: usize) -> String {
    let files = [
        format!("{session}/{turn}.txt"),
        format!("{session}/same.txt"),
    ];
    let path = rig.beside(&format!("{session}-{turn}.md"));
    std::fs::rename(
        rig.plan(&format!("{session} {turn}"), &files, Some("true")),
        &path,
    )
    .unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs the turns of all sessions concurrently, and `beside` in a loop. Returns what went wrong.
fn sessions_beside(rig: &Rig, beside: &(dyn Fn(usize) + Sync)) -> Vec<String> {
    let plans: Vec<Vec<String>> = SESSIONS
        .iter()
        .map(|session| (0..TURNS).map(|turn| plan(rig, session, turn)).collect())
        .collect();
    let (stop, wrong) = (AtomicBool::new(false), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let noise = scope.spawn(|| {
            for round in 0.. {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                beside(round);
            }
        });
        let runs: Vec<_> = SESSIONS
            .iter()
            .zip(&plans)
            .map(|(session, plans)| {
                let wrong = &wrong;
                scope.spawn(move || {
                    for plan in plans {
                        let done = (0..8).any(|_| {
                            let output =
                                rig.run(&["-s", session, "execute", plan, "-y", "--no-replan"]);
                            // `git gc --prune=now` can delete the new objects of a turn. The turn
                            // fails then, and a retry must succeed.
                            let again = said(&output).contains("try again");
                            if !output.status.success() && !again {
                                wrong
                                    .lock()
                                    .unwrap()
                                    .push(format!("{session}: {}", said(&output)));
                            }
                            output.status.success()
                        });
                        if !done {
                            wrong
                                .lock()
                                .unwrap()
                                .push(format!("{session}: `{plan}` was not executed"));
                        }
                    }
                })
            })
            .collect();
        runs.into_iter().for_each(|run| run.join().unwrap());
        stop.store(true, Ordering::SeqCst);
        noise.join().unwrap();
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.extend(torn(rig));
    wrong.extend(fsck(rig));
    for session in SESSIONS {
        let turns = rig.git(&[
            "rev-list",
            "--first-parent",
            "--count",
            &format!("teddy/sessions/{session}"),
        ]);
        if turns.parse::<usize>().unwrap() != TURNS + 1 {
            wrong.push(format!("{session} has {turns} commits"));
        }
        if std::fs::read(rig.path().join(format!("{session}/{}.txt", TURNS - 1))).is_err() {
            wrong.push(format!("{session}'s file is not there"));
        }
    }
    wrong
}

/// Checks that sessions work while git commands run in a loop.
fn check_beside(housekeeping: &[&[&str]]) {
    let rig = rig();
    let wrong = sessions_beside(&rig, &|round| {
        let args = housekeeping[round % housekeeping.len()];
        let output = rig.command("git").args(args).output().unwrap();
        // git fails if a file that it packs disappears. That must not be a ref or lock of TeDDy's.
        let text = said(&output);
        assert!(
            output.status.success() || !text.contains("refs/teddy"),
            "git {args:?}: {text}"
        );
    });
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn sessions_go_on_beside_repacking_and_the_users_commits() {
    let commit = ["commit", "-q", "--allow-empty", "-m", "Mine"];
    check_beside(&[
        &["pack-refs", "--all"],
        &["repack", "-adq"],
        &["worktree", "prune"],
        &commit,
    ]);
}

#[test]
fn sessions_go_on_beside_gc() {
    check_beside(&[
        &["-c", "gc.auto=1", "gc", "-q", "--auto", "--no-detach"],
        &["gc", "-q"],
    ]);
}

#[test]
fn sessions_go_on_beside_pruning_of_all_that_no_ref_reaches() {
    check_beside(&[
        &["gc", "-q", "--prune=now"],
        &["prune", "--expire=now"],
        &["repack", "-adq"],
    ]);
}

#[test]
fn an_editor_that_saves_all_the_time_keeps_every_save() {
    let rig = rig();
    let saver = std::sync::Mutex::new(Saver::default());
    let wrong = sessions_beside(&rig, &|round| {
        saver
            .lock()
            .unwrap()
            .save(&rig, &Rig::file(round % 40), round % 2 == 0);
        std::thread::sleep(Duration::from_millis(60));
    });
    assert_eq!(wrong, [""; 0]);
    assert_eq!(lost(&rig, &saver.lock().unwrap()), [""; 0]);
}

/// Runs a command that fails if it must wait for a lock.
pub fn reading(rig: &Rig, args: &[&str]) -> Output {
    let mut command = rig.teddy(args);
    command.env("TEDDY_LOCK_TIMEOUT", "0");
    command.output().unwrap()
}

/// Number of concurrent processes.
const CROWD: usize = if crate::WORLDS { 16 } else { 6 };

/// Executes until it succeeds. Returns failures, except those that ask to try again after a `git
/// gc`.
fn insist(rig: &Rig, dir: &std::path::Path, args: &[&str]) -> Option<String> {
    for _ in 0..8 {
        let mut command = rig.teddy(&[args, &["-y", "--no-replan"]].concat());
        let output = command
            .current_dir(dir)
            .env("TEDDY_LOCK_TIMEOUT", "60")
            .output()
            .unwrap();
        if output.status.success() || output.status.code() == Some(4) {
            return None;
        }
        if !said(&output).contains("try again") {
            return Some(said(&output));
        }
    }
    Some(format!("{args:?} was not executed"))
}

#[test]
fn a_crowd_on_few_sessions_in_two_worktrees_beside_everything_loses_nothing() {
    let rig = rig();
    let linked = rig.beside("linked");
    rig.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let plans: Vec<String> = (0..CROWD)
        .map(|at| plan(&rig, SESSIONS[at % 3], 30 + at))
        .collect();
    let (saver, stop) = (
        std::sync::Mutex::new(Saver::default()),
        AtomicBool::new(false),
    );
    let failures = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let housekeeping = scope.spawn(|| {
            let commit = ["commit", "-q", "--allow-empty", "-m", "Mine"];
            let chores: [&[&str]; 5] = [
                &["gc", "-q"],
                &["pack-refs", "--all"],
                &["repack", "-adq"],
                &["worktree", "prune"],
                &commit,
            ];
            for round in 0.. {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                drop(
                    rig.command("git")
                        .args(chores[round % chores.len()])
                        .output()
                        .unwrap(),
                );
                saver
                    .lock()
                    .unwrap()
                    .save(&rig, &Rig::file(round % 40), round % 2 == 0);
            }
        });
        let readers = scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                for args in [
                    ["status"].as_slice(),
                    &["-s", "alpha", "log"],
                    &["sessions"],
                    &["-s", "beta", "show"],
                ] {
                    let output = reading(&rig, args);
                    if !output.status.success() {
                        failures
                            .lock()
                            .unwrap()
                            .push(format!("{args:?}: {}", said(&output)));
                    }
                }
            }
        });
        let runs: Vec<_> = plans
            .iter()
            .enumerate()
            .map(|(at, plan)| {
                let (rig, linked, failures) = (&rig, &linked, &failures);
                let dir = if at % 2 == 0 {
                    rig.path()
                } else {
                    linked.clone()
                };
                scope.spawn(move || {
                    failures.lock().unwrap().extend(insist(
                        rig,
                        &dir,
                        &["-s", SESSIONS[at % 3], "execute", plan],
                    ))
                })
            })
            .collect();
        runs.into_iter().for_each(|run| run.join().unwrap());
        stop.store(true, Ordering::SeqCst);
        housekeeping.join().unwrap();
        readers.join().unwrap();
    });
    assert_eq!(failures.into_inner().unwrap(), [""; 0]);
    // A retried turn can leave an unreachable tree in a separate pack, and a repack by the user
    // drops the blobs of that tree from other packs. So drop unreachable objects first. If anything
    // else is missing, these commands fail too.
    rig.git(&["rev-list", "--objects", "--all", "--reflog", "--quiet"]);
    rig.git(&["repack", "-adq"]);
    assert_eq!(
        [torn(&rig), fsck(&rig), lost(&rig, &saver.lock().unwrap())].concat(),
        [""; 0]
    );
    // A concurrent `git repack -ad` can delete objects that no ref reaches yet. The turn is then
    // recorded as interrupted, and the next attempt executes the plan.
    let logs = SESSIONS
        .map(|session| rig.git(&["reflog", "show", &format!("refs/teddy/sessions/{session}")]));
    let executed = |log: &String| {
        log.lines()
            .filter(|line| line.ends_with(" executed"))
            .count()
    };
    assert_eq!(
        logs.each_ref().map(executed),
        [CROWD, CROWD - 1, CROWD - 2].map(|processes| processes.div_ceil(SESSIONS.len())),
        "each process recorded its turn:\n{}",
        logs.join("\n\n")
    );
}
