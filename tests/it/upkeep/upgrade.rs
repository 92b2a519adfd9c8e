//! Repositories of earlier versions (`fixtures/upgrade`). The current version reads all their
//! sessions and continues them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Output, TestRepo};

/// Size limit of a fixture in bytes.
const MOST: u64 = 200 * 1024;

/// Statuses that each fixture must contain. A later one can have more.
const STATUSES: [&str; 9] = [
    "declined",
    "executed",
    "failed",
    "interrupted",
    "landed",
    "picked",
    "rejected",
    "restored",
    "started",
];

fn versions() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/upgrade");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(all)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    assert!(!folders.is_empty());
    folders
}

/// Restores the repository of a version.
fn unpacked(version: &Path) -> TestRepo {
    let repo = TestRepo::with(&["--object-format=sha1"]);
    let file = |name: &str| version.join(name).to_str().unwrap().to_owned();
    let bundle = file("repository.bundle");
    repo.git(&["fetch", "-q", "--update-head-ok", &bundle, "+refs/*:refs/*"]);
    let mut unpack = repo.command("tar");
    unpack
        .current_dir(repo.path())
        .args(["-xzf", &file("files.tar.gz")]);
    Output::of(&mut unpack).check(0, &[]);

    repo.git(&["config", "gpg.format", "ssh"]);
    let signers = file("signers");
    repo.git(&["config", "gpg.ssh.allowedSignersFile", &signers]);
    repo
}

/// Runs a check in the repository of each version.
fn each(check: impl Fn(&TestRepo)) {
    for version in versions() {
        check(&unpacked(&version));
    }
}

fn sessions(repo: &TestRepo) -> Vec<String> {
    let listed = repo.workflow().sessions();
    let names = listed.as_array().unwrap().iter();
    names
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

fn turns(repo: &TestRepo, session: &str) -> Vec<Value> {
    let listed = repo.json(&["log", "-s", session], 0);
    listed.as_array().unwrap().clone()
}

#[test]
fn a_repository_of_a_version_is_small() {
    for version in versions() {
        let files = std::fs::read_dir(&version).unwrap();
        let sizes = files.map(|file| file.unwrap().metadata().unwrap().len());
        assert!(sizes.sum::<u64>() < MOST, "{}", version.display());
    }
}

#[test]
fn every_turn_of_an_earlier_version_is_read() {
    each(|repo| {
        let mut statuses = BTreeSet::new();
        for session in sessions(repo) {
            for turn in turns(repo, &session) {
                statuses.insert(turn["status"].as_str().unwrap().to_owned());
                let name = format!("{session}:{}", turn["number"]);
                let shown = repo.json(&["show", &name], 0);
                assert_eq!(shown["status"], turn["status"], "{name}");
                repo.done(&["show", &name]);
                // The start of a session changes nothing, and other turns might not either.
                let is_start = turn["number"] == 0;
                repo.teddy(&["diff", &name]).check(i32::from(is_start), &[]);

                let commit = turn["commit"].as_str().unwrap();
                let artifacts = repo.git(&["ls-tree", "-r", "--name-only", commit]);
                assert!(artifacts.contains("meta.yaml"), "{name}: {artifacts}");
                for artifact in artifacts.lines() {
                    let recorded = repo.git(&["show", &format!("{commit}:{artifact}")]);
                    let said = repo.done(&["show", &name, artifact]);
                    assert_eq!(said.trim_end(), recorded.trim_end(), "{name} {artifact}");
                }
            }
        }
        let missing = STATUSES.iter().filter(|one| !statuses.contains(**one));
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&str>::new());
    });
}

#[test]
fn the_sessions_of_an_earlier_version_are_sound() {
    if teddy::host::process::find("ssh-keygen").is_none() {
        crate::support::skipped("`ssh-keygen` is not installed");
        return;
    }
    each(|repo| {
        let out = repo.teddy(&["verify"]);
        out.check(0, &["every-kind: 12 turns, sound", "test@localhost"]);
        assert!(!out.stdout.contains("fault"), "{out}");
    });
}

#[test]
fn what_an_earlier_version_left_waiting_is_still_there() {
    each(|repo| {
        let status = repo.workflow().status();
        assert_eq!(status["session"], "waiting");
        assert_eq!(status["state"], "planned");
        let interrupted = repo.json(&["status", "-s", "every-kind"], 0);
        assert_eq!(interrupted["draft"]["title"], "Be interrupted");
        let asks = repo.teddy(&["status", "-s", "fork"]);
        asks.check(0, &["Which colour should it have?"]);
        repo.teddy(&["change", "list"])
            .check(0, &["greet-by-name", "complete", "2/2"]);
        repo.teddy(&["doctor", "--fix"])
            .check(0, &["There is nothing to recover."]);
    });
}

#[test]
fn what_was_recorded_by_an_earlier_version_is_found() {
    each(|repo| {
        repo.teddy(&["find", "make d, slowly"])
            .check(0, &["every-kind"]);
        repo.teddy(&["find", "Mind the gap"]).check(0, &["fork"]);
        let blamed = repo.done(&["blame", "a.txt", "-s", "every-kind"]);
        assert!(blamed.contains("every-kind:1"), "{blamed}");
        repo.teddy(&["compare", "every-kind", "fork"]).check(0, &[]);
        repo.teddy(&["log", "--graph", "--all"])
            .check(0, &["Pick every-kind:4: Make b"]);
        repo.done(&["export", "-s", "fork", "exported"]);
        let exported = repo.read("exported/04/steps/01-analysis/output.md");
        assert_eq!(exported.trim_end(), "Mind the gap.");
    });
}

#[test]
fn sessions_of_an_earlier_version_continue() {
    each(|repo| {
        repo.workflow().execute().done();
        assert_eq!(repo.read("waited.txt"), "It waited.\n");
        repo.workflow().undo(1).done();
        assert!(!repo.path().join("waited.txt").exists());
        repo.workflow().redo(1).done();
        repo.done(&["land", "1", "-m", "Land what waited"]);
        assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "Land what waited");

        assert_eq!(repo.git(&["show", "HEAD:waited.txt"]), "It waited.");
        repo.teddy(&["verify", "waiting"]).check(0, &["sound"]);
    });
}

#[test]
fn a_turn_of_an_earlier_version_is_restored() {
    each(|repo| {
        repo.workflow().switch("every-kind").done();
        repo.workflow().restore("1").done();
        assert_eq!(repo.read("a.txt"), "one\n2\nthree\n");
        repo.workflow().undo(1).done();
        repo.workflow().restore("9").done();
        assert_eq!(repo.read("a.txt"), "one\n2\n3\n");
        repo.workflow().branch("4", "again").done();
        assert_eq!(turns(repo, "again").len(), 5);
    });
}

#[test]
fn a_plan_that_was_interrupted_in_an_earlier_version_runs() {
    each(|repo| {
        repo.workflow().switch("every-kind").done();
        let plan = repo.workflow().artifact("draft", "plan.md");
        assert!(plan.contains("sleep 60"), "{plan}");
        let quick = plan.replace("sleep 60", "echo slept");
        repo.run_plan(&quick);
        assert_eq!(repo.read("d.txt"), "d\n");
    });
}

#[test]
fn a_question_of_an_earlier_version_is_answered() {
    each(|repo| {
        repo.workflow().switch("fork").done();
        let answer = crate::plans::plan("Paint", &[crate::plans::create("red.txt", "red\n")]);
        let file = repo.beside("answer.md");
        std::fs::write(&file, answer).unwrap();
        let file = file.to_str().unwrap();
        repo.done(&["plan", "-m", "red", "--from", file]);
        repo.workflow().execute().done();
        assert_eq!(repo.read("red.txt"), "red\n");
        let input = repo.workflow().artifact("6", "input.md");
        assert!(input.contains("Which colour should it have?"), "{input}");
    });
}

#[test]
fn a_change_of_an_earlier_version_is_archived() {
    each(|repo| {
        repo.teddy(&["change", "archive", "greet-by-name"])
            .check(0, &["greet-by-name archived"]);
        assert!(repo.path().join("specs").is_dir());
    });
}
