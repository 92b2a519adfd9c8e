//! Concurrent processes: several sessions of TeDDy, git's housekeeping, and the user's commits and
//! saves.

use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::killed_repo::{Rig, Saver, fsck, lost, said, torn};

/// Turns per session.
const TURNS: usize = 4;
/// Each session gets its own process.
const SESSIONS: [&str; 3] = ["alpha", "beta", "gamma"];

fn rig() -> Rig {
    let rig = Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 100);
    SESSIONS
        .iter()
        .for_each(|session| drop(rig.must(&["new", session])));
    rig
}

fn plan(rig: &Rig, session: &str, turn: usize) -> String {
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
fn pruning_everything_between_two_turns_loses_nothing() {
    let rig = rig();
    for turn in 0..3 {
        for session in SESSIONS {
            rig.write(
                "mine.txt",
                &crate::killed_repo::body(&format!("mine {session} {turn}")),
            );
            rig.must(&["-s", session, "execute", &plan(&rig, session, turn), "-y"]);
            rig.must(&[
                "-s",
                session,
                "plan",
                "--from",
                &plan(&rig, session, turn + 10),
            ]);
            rig.git(&["reflog", "expire", "--expire=now", "--all"]);
            rig.git(&["gc", "-q", "--prune=now"]);
        }
    }
    rig.must(&["-s", "alpha", "restore", "1", "--exact", "-y"]);
    assert_eq!([fsck(&rig), torn(&rig)].concat(), [""; 0]);
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

#[test]
fn linked_worktrees_have_their_own_files_and_share_the_sessions() {
    let rig = rig();
    let linked = rig.beside("linked");
    rig.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let plans: Vec<String> = (0..4)
        .map(|turn| plan(&rig, SESSIONS[turn % 2], 10 + turn))
        .collect();
    std::thread::scope(|scope| {
        for (at, plan) in plans.iter().enumerate() {
            let (rig, linked) = (&rig, &linked);
            scope.spawn(move || {
                let mut command =
                    rig.teddy(&["-s", SESSIONS[at % 2], "execute", plan, "-y", "--no-replan"]);
                let folder = if at % 2 == 0 {
                    rig.path()
                } else {
                    linked.clone()
                };
                let output = command.current_dir(folder).output().unwrap();
                assert!(output.status.success(), "{}", said(&output));
            });
        }
    });
    let there = |folder: &std::path::Path, name: &str| folder.join(name).exists();
    assert!(
        there(&rig.path(), "alpha/10.txt")
            && there(&rig.path(), "alpha/12.txt")
            && !there(&rig.path(), "beta/11.txt")
    );
    assert!(
        there(&linked, "beta/11.txt")
            && there(&linked, "beta/13.txt")
            && !there(&linked, "alpha/10.txt")
    );
    assert_eq!(fsck(&rig), [""; 0]);
}

#[test]
fn turns_of_one_session_come_one_after_another() {
    let rig = rig();
    let plans: Vec<String> = (0..4).map(|turn| plan(&rig, "alpha", 20 + turn)).collect();
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for plan in &plans {
            scope.spawn(|| {
                let output = rig.run(&["-s", "alpha", "execute", plan, "-y", "--no-replan"]);
                assert!(output.status.success(), "{}", said(&output));
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    assert_eq!(
        rig.git(&[
            "rev-list",
            "--first-parent",
            "--count",
            "teddy/sessions/alpha"
        ]),
        "5"
    );
    assert_eq!(done.into_inner(), 4);
}

/// Number of concurrent processes.
const CROWD: usize = 16;

/// Executes until it succeeds. Returns failures, except those that ask to try again after a `git
/// gc`.
fn insist(rig: &Rig, folder: &std::path::Path, args: &[&str]) -> Option<String> {
    for _ in 0..8 {
        let mut command = rig.teddy(&[args, &["-y", "--no-replan"]].concat());
        let output = command
            .current_dir(folder)
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
                let folder = if at % 2 == 0 {
                    rig.path()
                } else {
                    linked.clone()
                };
                scope.spawn(move || {
                    failures.lock().unwrap().extend(insist(
                        rig,
                        &folder,
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
        [6, 5, 5],
        "each process recorded its turn:\n{}",
        logs.join("\n\n")
    );
}

#[test]
fn a_lock_of_a_killed_process_is_taken() {
    let rig = rig();
    let plan = plan(&rig, "alpha", 50);
    for point in ["after-lock", "after-run", "after-ref"] {
        let mut command = rig.teddy(&["-s", "alpha", "execute", &plan, "-y", "--no-replan"]);
        let output = command
            .env("FAILPOINTS", format!("{point}=1*return(kill)"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), None, "{point}: {}", said(&output));
        let next = rig
            .teddy(&["-s", "alpha", "execute", &plan, "-y", "--no-replan"])
            .env("TEDDY_LOCK_TIMEOUT", "0")
            .output()
            .unwrap();
        assert!(next.status.success(), "{point}: {}", said(&next));
    }
}

/// Runs a command that fails if it must wait for a lock.
fn reading(rig: &Rig, args: &[&str]) -> Output {
    let mut command = rig.teddy(args);
    command.env("TEDDY_LOCK_TIMEOUT", "0");
    command.output().unwrap()
}

#[test]
fn readers_do_not_wait_and_writers_name_the_lock_holder() {
    let rig = rig();
    rig.must(&["-s", "alpha", "execute", &plan(&rig, "alpha", 0), "-y"]);
    let teddy = rig.path().join(".git/teddy");
    let _lock = teddy::host::lock::Lock::take(&teddy, "execute", Duration::ZERO).unwrap();
    let _session =
        teddy::host::lock::Lock::take(&teddy.join("locks/alpha"), "execute", Duration::ZERO)
            .unwrap();
    for args in [
        ["status"].as_slice(),
        &["log"],
        &["show"],
        &["diff"],
        &["sessions"],
        &["context", "list"],
        &["export", "out"],
        &["gc", "-n"],
    ] {
        let output = reading(&rig, &[["-s", "alpha"].as_slice(), args].concat());
        assert!(output.status.success(), "{args:?}: {}", said(&output));
    }
    let plan = plan(&rig, "beta", 0);
    for args in [
        ["new", "delta"].as_slice(),
        &["undo"],
        &["doctor", "--fix"],
        &["-s", "beta", "execute", &plan, "-y"],
        &["gc"],
    ] {
        let output = rig
            .teddy(args)
            .env("TEDDY_LOCK_TIMEOUT", "0.1")
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(75),
            "{args:?}: {}",
            said(&output)
        );
        let holder = format!("busy: process {} (execute) is at work", std::process::id());
        assert!(
            said(&output).contains(&holder),
            "{args:?}: {}",
            said(&output)
        );
    }
}

/// Bug: a process that waited for a lock printed nothing and ignored signals for 30 seconds.
#[test]
fn a_waiting_process_names_the_lock_holder_and_can_be_interrupted() {
    use std::io::BufRead as _;
    let rig = rig();
    let teddy = rig.path().join(".git/teddy");
    let held = teddy::host::lock::Lock::take(&teddy, "execute", Duration::ZERO).unwrap();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut child = rig
            .teddy(&["-s", "alpha", "undo"])
            .env("TEDDY_LOCK_TIMEOUT", "60")
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
        let waiting = format!("Waiting for process {} (execute)...", std::process::id());
        assert_eq!(lines.next().unwrap().unwrap(), waiting);
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal:?}");
    }
    drop(held);
}

#[test]
fn what_a_plan_did_waits_for_whoever_works_in_the_repository() {
    let rig = rig();
    let (plan, signs) = (plan(&rig, "alpha", 0), rig.beside("signs"));
    std::fs::create_dir(&signs).unwrap();
    let script = rig.beside("ran.sh");
    let wait = format!(
        "touch {0}/ran\nwhile [ ! -e {0}/locked ]; do sleep 0.02; done\n",
        signs.display()
    );
    std::fs::write(&script, wait).unwrap();
    let mut command = rig.teddy(&["-s", "alpha", "execute", &plan, "-y"]);
    command
        .env(
            "FAILPOINTS",
            format!("after-run=1*return(sh:{})", script.display()),
        )
        .env("TEDDY_LOCK_TIMEOUT", "0.1");
    let mut child = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while !signs.join("ran").exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let lock = teddy::host::lock::Lock::take(
        &rig.path().join(".git/teddy"),
        "test",
        Duration::from_secs(30),
    )
    .unwrap();
    std::fs::write(signs.join("locked"), "").unwrap();
    let mut said = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    assert!(said.by_ref().any(|line| {
        line.unwrap()
            .contains("waiting to record what the plan did")
    }));
    drop(lock);
    said.for_each(drop);
    assert!(child.wait().unwrap().success());
    assert_eq!(
        rig.git(&[
            "rev-list",
            "--first-parent",
            "--count",
            "teddy/sessions/alpha"
        ]),
        "2"
    );
}
