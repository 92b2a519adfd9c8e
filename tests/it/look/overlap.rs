//! Which waiting plans change the same lines as each other or as the user's edits: in `status` and
//! `sessions --overlap`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;
use teddy::ui::overlap::{limits, lines, status_lines};
use teddy::workflow::overlap::{overlap_in_use, overlaps};

use crate::plans::{create, edit, execute, plan, replace};
use crate::support::TestRepo;

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", TEXT);
    repo.commit("init");
    repo
}

/// Has a plan with these actions wait in a new session.
fn plan_in(repo: &TestRepo, session: &str, actions: &[String]) {
    repo.workflow().new_session(session).done();
    repo.workflow().session(session).add(&["a.txt"]);
    let text = plan("Change it", actions);
    let planned = repo.workflow().session(session).plan_from("go", &text);
    planned.done();
}

/// Returns the text of `sessions --overlap`, with its notes.
fn overlap_text(repo: &TestRepo) -> String {
    let reply = repo.workflow().call(|project, _, out| {
        let overlaps = overlaps(project)?;
        for line in lines(&overlaps).into_iter().chain(limits(&overlaps)) {
            writeln!(out, "{line}")?;
        }
        Ok(true)
    });
    reply.done()
}

/// Returns what `status` says about the plan of a session.
fn status_text(repo: &TestRepo, session: &str) -> String {
    let call = repo.workflow().session(session);
    let reply = call.call(|project, _, out| {
        let overlap = overlap_in_use(project);
        for line in overlap.iter().flat_map(status_lines) {
            writeln!(out, "{}", line.text())?;
        }
        Ok(true)
    });
    reply.done()
}

/// Returns the files below a directory.
fn files(dir: &Path) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(self::files(&entry.path())),
            false => _ = files.insert(entry.path().display().to_string()),
        }
    }
    files
}

#[test]
fn status_names_the_file_whose_lines_the_plan_and_the_user_change() {
    let repo = project();
    plan_in(&repo, "demo", &[edit("a.txt", "two", "TWO")]);
    let waiting = "Session demo, turn 0, on branch main\nA plan is waiting for turn 1: Change it (1 action)\n";
    let clean = format!("{waiting}No file changed since HEAD\n");
    assert_eq!(repo.done(&["status"]), clean);

    repo.write("a.txt", TEXT.replace("two", "zwei"));
    let overlap = "The waiting plan and your edits conflict in a.txt\n";
    let changed = "1 file changed since HEAD:\n  a.txt\n";
    assert_eq!(
        repo.done(&["status"]),
        format!("{waiting}{overlap}{changed}")
    );
    assert_eq!(
        repo.json(&["status"], 0)["overlap"],
        json!({ "paths": ["a.txt"], "not_compared": [] })
    );

    // The same change on both sides, and other lines, merge.
    for text in [TEXT.replace("two", "TWO"), TEXT.replace("six", "sechs")] {
        repo.write("a.txt", &text);
        assert_eq!(repo.done(&["status"]), format!("{waiting}{changed}"));
    }
}

#[test]
fn status_compares_nothing_without_a_waiting_plan() {
    let repo = project();
    repo.workflow().new_session("demo").done();
    repo.write("a.txt", "mine\n");
    assert_eq!(status_text(&repo, "demo"), "");
    assert_eq!(repo.workflow().status().get("overlap"), None);
    assert_eq!(overlap_text(&repo), "No plan is waiting\n");
}

#[test]
fn edits_from_before_the_plan_are_no_overlap() {
    let repo = project();
    repo.write("a.txt", TEXT.replace("two", "zwei"));
    plan_in(&repo, "demo", &[edit("a.txt", "zwei", "ZWEI")]);
    assert_eq!(status_text(&repo, "demo"), "");
}

#[test]
fn a_file_that_both_create_and_one_that_the_user_deletes_overlap() {
    let repo = project();
    let actions = [create("b.txt", "plan\n"), edit("a.txt", "two", "TWO")];
    plan_in(&repo, "demo", &actions);
    repo.write("b.txt", "mine\n");
    std::fs::remove_file(repo.path().join("a.txt")).unwrap();
    assert_eq!(
        status_text(&repo, "demo"),
        "The waiting plan and your edits conflict in a.txt, b.txt\n"
    );
    // A directory in place of the file.
    std::fs::remove_file(repo.path().join("b.txt")).unwrap();
    repo.write("a.txt", TEXT);
    repo.write("b.txt/c.txt", "mine\n");
    assert_eq!(
        status_text(&repo, "demo"),
        "The waiting plan and your edits conflict in b.txt, b.txt/c.txt\n"
    );
}

/// The first plan conflicts with the user's edit, on which the second one is made.
#[test]
fn plans_from_different_times_are_compared_on_the_files_as_they_are() {
    let repo = project();
    plan_in(&repo, "before", &[edit("a.txt", "two", "TWO")]);
    repo.write("a.txt", TEXT.replace("two", "zwei"));
    plan_in(&repo, "after", &[edit("a.txt", "zwei", "ZWEI")]);
    assert_eq!(
        overlap_text(&repo),
        "The plan of before and your edits conflict in a.txt\n"
    );
}

#[test]
fn line_endings_of_a_checkout_are_no_change() {
    let crlf = TEXT.replace('\n', "\r\n");
    let repo = TestRepo::new()
        .file(".gitattributes", "*.txt eol=crlf\n")
        .file("a.txt", &crlf);
    repo.commit("init");
    plan_in(&repo, "demo", &[edit("a.txt", "two", "TWO")]);
    repo.write("a.txt", crlf.replace("six", "sechs"));
    assert_eq!(status_text(&repo, "demo"), "");
    repo.write("a.txt", crlf.replace("two", "zwei"));
    assert_eq!(
        status_text(&repo, "demo"),
        "The waiting plan and your edits conflict in a.txt\n"
    );
}

/// Regression: it was a session that cannot be read.
#[test]
fn a_session_with_a_context_and_no_plan_is_not_compared() {
    let repo = project();
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    let out = repo.teddy(&["sessions", "--overlap"]);
    assert_eq!(
        (out.stdout.as_str(), out.stderr.as_str()),
        ("No plan is waiting\n", "")
    );
}

#[test]
fn sessions_overlap_compares_each_two_plans() {
    let repo = project();
    let new = create("new.txt", "one\n");
    plan_in(&repo, "one", &[edit("a.txt", "two", "TWO"), new]);
    plan_in(&repo, "two", &[edit("a.txt", "two", "zwei")]);
    plan_in(&repo, "three", &[edit("a.txt", "six", "SIX")]);
    plan_in(&repo, "four", &[create("new.txt", "four\n")]);
    let result = repo.json(&["sessions", "--overlap"], 0);
    let mut pairs: Vec<(BTreeSet<&str>, &str)> = Vec::new();
    for pair in result["pairs"].as_array().unwrap() {
        let names = ["session", "other"].map(|key| pair[key].as_str().unwrap());
        let paths = pair["paths"].as_array().unwrap();
        assert_eq!(paths.len(), 1, "{pair}");
        pairs.push((BTreeSet::from(names), paths[0].as_str().unwrap()));
    }
    pairs.sort();
    let expected = [
        (BTreeSet::from(["four", "one"]), "new.txt"),
        (BTreeSet::from(["one", "two"]), "a.txt"),
    ];
    assert_eq!(pairs, expected);
    assert_eq!(
        (
            result["plans"].as_array().unwrap().len(),
            &result["omitted"]
        ),
        (4, &json!(0))
    );
}

#[test]
fn plans_on_different_files_are_compared_on_the_users_files() {
    let repo = project();
    plan_in(&repo, "one", &[edit("a.txt", "two", "TWO")]);
    repo.write("a.txt", TEXT.replace("six", "sechs"));
    plan_in(&repo, "two", &[edit("a.txt", "two", "zwei")]);
    let text = overlap_text(&repo);
    let names = [("two", "one"), ("one", "two")];
    let expected = names.map(|(one, other)| {
        format!("The plan of {one} and the plan of {other} conflict in a.txt\n")
    });
    assert!(expected.contains(&text), "{text}");

    repo.workflow().session("two").execute().done();
    assert_eq!(
        overlap_text(&repo),
        "The plan of one and your edits conflict in a.txt\n"
    );
}

#[test]
fn the_comparison_writes_no_object_and_moves_no_ref() {
    let repo = project();
    plan_in(&repo, "one", &[edit("a.txt", "two", "TWO")]);
    plan_in(&repo, "two", &[replace("a.txt", "all\n")]);
    repo.write("a.txt", TEXT.replace("two", "zwei"));
    // Takes the snapshot of the user's files.
    let _ = repo.workflow().status();
    let objects = repo.path().join(".git/objects");
    let before = (files(&objects), repo.git(&["for-each-ref"]));
    assert_eq!(overlap_text(&repo).lines().count(), 3);
    assert_eq!((files(&objects), repo.git(&["for-each-ref"])), before);
}

#[test]
fn commands_and_large_files_are_named_as_not_compared() {
    let repo = project();
    let large = format!("{}\n", "x".repeat(1000)).repeat(1200);
    let actions = [
        edit("a.txt", "two", "TWO"),
        create("large.txt", &large),
        execute("make"),
    ];
    plan_in(&repo, "demo", &actions);
    repo.write("large.txt", "mine\n");
    assert_eq!(
        overlap_text(&repo),
        "No overlap found between the waiting plan and your edits\n\
         Not compared, of demo: large.txt (larger than 1.0 MiB)\n\
         What 1 command of demo would change is unknown before the run.\n"
    );
    assert_eq!(
        repo.json(&["sessions", "--overlap"], 0),
        json!({
            "plans": [{
                "session": "demo",
                "turn": 1,
                "commands": 1,
                "paths": [],
                "not_compared": [{ "path": "large.txt", "reason": "larger than 1.0 MiB" }],
            }],
            "pairs": [],
            "omitted": 0,
            "unreadable": [],
            "late_pairs": 0,
        })
    );
}

#[test]
fn a_plan_without_its_snapshot_is_named_as_not_compared() {
    let repo = project();
    repo.write("a.txt", TEXT.replace("six", "sechs"));
    plan_in(&repo, "demo", &[edit("a.txt", "two", "TWO")]);
    let snapshots = repo.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/teddy/snapshots",
    ]);
    repo.git(&["update-ref", "-d", &snapshots]);
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(
        status_text(&repo, "demo"),
        "Not compared with your edits: the files on which it was made are not in this repository\n"
    );
}

#[test]
fn at_most_32_plans_are_compared() {
    let repo = project();
    for number in 0..34 {
        let actions = [create(&format!("{number}.txt"), "x\n")];
        plan_in(&repo, &format!("s{number}"), &actions);
    }
    assert_eq!(
        overlap_text(&repo),
        "No overlap found among 32 waiting plans and your edits\n\
         Not compared: 2 plans beyond the 32 sessions that changed last.\n"
    );
}

#[test]
fn a_merge_driver_of_the_user_does_not_run() {
    let repo = project();
    let trap = repo.beside("ran");
    let driver = format!("touch {}; exit 1", trap.display());
    repo.git(&["config", "merge.x.driver", &driver]);
    repo.write(".gitattributes", "* merge=x\n");
    plan_in(&repo, "demo", &[edit("a.txt", "two", "2")]);
    repo.write("a.txt", TEXT.replace("two", "zwei"));
    insta::assert_snapshot!(status_text(&repo, "demo"), @"The waiting plan and your edits conflict in a.txt");
    assert!(!trap.exists());
}

#[test]
fn files_of_many_lines_are_not_compared() {
    let repo = project();
    let many = "a\nb\n".repeat(6_000);
    plan_in(&repo, "demo", &[create("many.txt", &many)]);
    repo.write("many.txt", "c\n");
    insta::assert_snapshot!(status_text(&repo, "demo"), @"Not compared with your edits: many.txt (beyond 10000 lines of the plan's files)");
}
