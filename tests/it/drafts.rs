//! The turn in progress: who it is, what git and `show` find of it, and what stays of a plan that
//! never ran.

use std::collections::{BTreeMap, BTreeSet};

use crate::plans::{create, plan};
use crate::support::TestRepo;

/// A project with a session of one turn.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.run_plan(&plan("First", &[create("1.txt", "1\n")]));
    repo
}

/// Returns the plan of a turn that makes a file.
fn makes(path: &str) -> String {
    plan(&format!("Make {path}"), &[create(path, "made\n")])
}

/// Returns the commits of each turn's id, over all sessions.
fn turns_by_id(repo: &TestRepo) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for session in repo.json(&["sessions"], 0).as_array().unwrap() {
        let name = session["name"].as_str().unwrap();
        for row in repo.json(&["-s", name, "log"], 0).as_array().unwrap() {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            found
                .entry(text("turn_id"))
                .or_default()
                .insert(text("commit"));
        }
    }
    found
}

/// Checks that no two turns have the same id.
#[track_caller]
fn check_unique(repo: &TestRepo) {
    let shared: Vec<_> = turns_by_id(repo)
        .into_iter()
        .filter(|(_, commits)| commits.len() > 1)
        .collect();
    assert_eq!(shared, [], "an id names one turn");
}

#[test]
fn promise_b4_turns_after_a_fork_have_ids_of_their_own() {
    let repo = project();
    repo.done(&["branch", "1", "alt"]);
    for session in ["alt", "demo"] {
        repo.teddy_reads(&["-s", session, "execute", "-", "-y"], makes(session))
            .check(0, &[]);
    }
    check_unique(&repo);
}

#[test]
fn promise_b4_a_retried_turn_has_an_id_of_its_own() {
    let repo = project();
    repo.reply(&makes("2.txt"));
    repo.done(&["plan", "-m", "go"]);
    repo.done(&["execute", "-y"]);
    repo.git(&["clean", "-fdq"]);
    repo.done(&["retry", "2"]);
    repo.done(&["execute", "-y"]);
    check_unique(&repo);
}

#[test]
fn promise_b4_turns_after_a_copied_ref_have_ids_of_their_own() {
    for step in [
        ["execute", "-y"].as_slice(),
        &["execute", "../other.md", "-y"],
        &["undo"],
    ] {
        let repo = project();
        std::fs::write(repo.beside("plan.md"), makes("2.txt")).unwrap();
        std::fs::write(repo.beside("other.md"), makes("3.txt")).unwrap();
        repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
        for kind in ["sessions", "drafts"] {
            let (old, new) = (
                format!("refs/teddy/{kind}/demo"),
                format!("refs/teddy/{kind}/copy"),
            );
            repo.git(&["update-ref", &new, &old]);
        }
        repo.done(&["adopt", "copy"]);
        for session in ["copy", "demo"] {
            repo.done(&[&["-s", session], step].concat());
            // What one of them took back is not there to be taken back by the other.
            if step == ["undo"] {
                repo.done(&["-s", session, "redo"]);
            }
            // The files of the other one are in the way of the same plan.
            repo.git(&["clean", "-fdq"]);
        }
        check_unique(&repo);
    }
}

#[test]
fn promise_b4_a_turn_names_the_turn_that_it_continues() {
    let repo = project();
    repo.done(&["branch", "1", "alt"]);
    repo.run_plan(&makes("2.txt"));
    repo.done(&["undo"]);
    let meta = |turn: &str, key: &str| {
        let meta = repo.done(&["show", turn, "meta.yaml"]);
        let line = meta.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default().to_owned()
    };
    for (turn, before) in [("1", "0"), ("2", "1")] {
        assert_eq!(meta(turn, "parent_turn_id: "), meta(before, "turn_id: "));
    }
}
