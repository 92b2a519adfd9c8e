//! `pick`: applies a turn of another session to the current one.

use serde_json::json;

use crate::plans::{create, edit, plan};
use crate::support::TestRepo;
use crate::support::landing::{changed, everything, project, status};

/// Session `other` has two turns, both undone. Session `demo` is current.
fn two_sessions() -> TestRepo {
    let repo = project();
    repo.done(&["new", "other"]);
    repo.done(&["context", "add", "a.txt"]);
    repo.run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    repo.run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.done(&["undo", "2"]);
    repo.done(&["switch", "demo"]);
    repo
}

#[test]
fn t18_a_turn_is_picked_as_a_turn_that_says_where_it_is_from() {
    let repo = two_sessions();
    repo.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    let out = repo.teddy(&["pick", "other:1", "other:2"]);
    out.check(
        0,
        &[
            "write a.txt\nwrite d.txt\n",
            "Picked other:1 as turn 1: 1 file changed.",
            "Picked other:2 as turn 2",
        ],
    );
    assert_eq!(repo.read("a.txt"), "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n");
    let log = repo.json(&["log"], 0);
    assert_eq!(log[1]["status"], "picked");
    assert_eq!(log[1]["title"], "Pick other:1: Change a");
    assert_eq!(log[1]["files"], json!(["a.txt"]));
    let source = repo.json(&["show", "other:1"], 0);
    let meta = repo.done(&["show", "1", "meta.yaml"]);
    for line in [
        "status: picked".to_owned(),
        "  session: other\n  turn: 1\n".to_owned(),
        format!("  turn_id: {}\n", source["turn_id"].as_str().unwrap()),
        format!("  commit: {}\n", source["commit"].as_str().unwrap()),
    ] {
        assert!(meta.contains(&line), "{line}: {meta}");
    }
    repo.done(&["verify"]);

    repo.done(&["undo"]);
    assert!(!repo.path().join("d.txt").exists());
    repo.done(&["redo"]);
    repo.done(&["land", "--each"]);
    assert_eq!(changed(&repo), "A\td.txt");
    assert_eq!(repo.git(&["log", "-2", "--format=%s"]), "Make d\nChange a");
    assert_eq!(status(&repo), " M a.txt");
}

#[test]
fn a_pick_that_overlaps_changes_nothing_unless_it_is_told_what_to_do() {
    let repo = two_sessions();
    let own = "1\nzwei\n3\n4\n5\n6\n7\n8\n9\n";
    repo.write("a.txt", own);
    let before = everything(&repo);
    let value = repo.json(&["pick", "other:2", "other:1"], 4);
    assert_eq!(
        (&value["picked"], &value["overlaps"]),
        (&json!([]), &json!(["a.txt"]))
    );
    repo.teddy(&["pick", "other:1"])
        .check(4, &["overlap a.txt", "--theirs"]);
    assert_eq!(everything(&repo), before);

    repo.done(&["pick", "other:1", "--markers"]);
    assert!(repo.read("a.txt").contains("<<<<<<< yours\nzwei\n"));
    assert_eq!(
        repo.json(&["status"], 0)["workspace"]["marked"],
        json!(["a.txt"])
    );
    repo.done(&["undo", "--ours"]);
    repo.write("a.txt", own);
    repo.done(&["pick", "other:1", "--theirs"]);
    assert!(repo.read("a.txt").contains("\ntwo\n"));
}

#[test]
fn what_cannot_be_picked_is_refused() {
    let repo = two_sessions();
    let before = everything(&repo);
    for (turn, words) in [
        ("nothing:1", "there is no session `nothing`"),
        ("other:9", "has no turn `9`"),
        ("other:0", "turn `other:0` changed no file"),
    ] {
        repo.teddy(&["pick", turn]).check(1, &[words]);
    }
    repo.teddy(&["pick"]).check(2, &[]);
    repo.teddy(&["pick", "other:1", "-n"])
        .check(0, &["write a.txt", "Picking other:1 would change 1 file."]);
    assert_eq!(everything(&repo), before);
    repo.done(&["pick", "other:1"]);
    repo.teddy(&["pick", "other:1"])
        .check(1, &["what turn `other:1` did is already in your files"]);
}

#[test]
fn a_plan_that_waits_goes_on_waiting_behind_a_pick() {
    let repo = two_sessions();
    repo.reply(&plan("Make e", &[create("e.txt", "e\n")]));
    repo.done(&["plan", "-m", "make e"]);
    repo.done(&["pick", "other:2"]);
    assert_eq!(repo.json(&["status"], 0)["draft"]["title"], "Make e");
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("e.txt"), "e\n");
}
