//! Concurrent processes: sessions of TeDDy, linked worktrees, and locks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::crowd::{SESSIONS, plan, reading, rig};
use crate::killed_repo::{fsck, said, torn};

#[test]
fn pruning_everything_between_two_turns_loses_nothing() {
    let rig = rig();
    for turn in 0..2 {
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
