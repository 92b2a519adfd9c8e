//! `pick`: applies a turn of another session to the current one.

use serde_json::json;

use teddy::workflow::pick::PickOptions;
use teddy::workflow::restore::{OnOverlap, RestoreOptions};

use crate::plans::{create, edit, plan};
use crate::support::TestRepo;
use crate::support::landing::{changed, everything, project, status};

/// Session `other` has two turns, both undone. Session `demo` is current.
fn two_sessions() -> TestRepo {
    let repo = project();
    repo.workflow().new_session("other").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.workflow().undo(2).done();
    repo.workflow().switch("demo").done();
    repo
}

#[test]
fn t18_a_turn_is_picked_as_a_turn_that_says_where_it_is_from() {
    let repo = two_sessions();
    repo.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    repo.teddy(&["pick", "other:1", "-n"])
        .check(0, &["write a.txt", "Picking other:1 would change 1 file."]);
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
    let log = repo.workflow().log();
    assert_eq!(log[1]["status"], "picked");
    assert_eq!(log[1]["title"], "Pick other:1: Change a");
    assert_eq!(log[1]["files"], json!(["a.txt"]));
    let source = repo.workflow().turn("other:1");
    let meta = repo.workflow().artifact("1", "meta.yaml");
    for line in [
        "status: picked".to_owned(),
        "  session: other\n  turn: 1\n".to_owned(),
        format!("  turn_id: {}\n", source["turn_id"].as_str().unwrap()),
        format!("  commit: {}\n", source["commit"].as_str().unwrap()),
    ] {
        assert!(meta.contains(&line), "{line}: {meta}");
    }
    repo.workflow().verify().done();

    repo.workflow().undo(1).done();
    assert!(!repo.path().join("d.txt").exists());
    repo.workflow().redo(1).done();
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
    let both = ["other:2", "other:1"];
    let said = repo
        .workflow()
        .pick(&both, &PickOptions::default())
        .refused();
    insta::assert_snapshot!(said, @"  overlap a.txt");
    let said = repo
        .workflow()
        .pick(&["other:1"], &PickOptions::default())
        .refused();
    insta::assert_snapshot!(said, @"  overlap a.txt");
    assert_eq!(everything(&repo), before);

    repo.workflow()
        .pick(
            &["other:1"],
            &PickOptions {
                on_overlap: OnOverlap::Markers,
                dry_run: false,
            },
        )
        .done();
    assert!(repo.read("a.txt").contains("<<<<<<< yours\nzwei\n"));
    assert_eq!(
        repo.workflow().status()["workspace"]["marked"],
        json!(["a.txt"])
    );
    repo.workflow()
        .undo_with(
            1,
            &RestoreOptions {
                on_overlap: OnOverlap::Ours,
                ..RestoreOptions::default()
            },
        )
        .done();
    repo.write("a.txt", own);
    repo.workflow()
        .pick(
            &["other:1"],
            &PickOptions {
                on_overlap: OnOverlap::Theirs,
                dry_run: false,
            },
        )
        .done();
    assert!(repo.read("a.txt").contains("\ntwo\n"));
}

#[test]
fn what_cannot_be_picked_is_refused() {
    let repo = two_sessions();
    let before = everything(&repo);
    let refused = ["nothing:1", "other:9", "other:0"].map(|turn| {
        repo.workflow()
            .pick(&[turn], &PickOptions::default())
            .refused()
    });
    insta::assert_snapshot!(refused.concat(), @r"
    error: there is no session `nothing`
    hint: `teddy sessions` lists the sessions
    exit code 1
    error: session `other` has no turn `9`; its turns are 0 to 3
    hint: `teddy log` lists the turns
    exit code 1
    error: turn `other:0` changed no file, so there is nothing of it to pick
    exit code 1
    ");
    let said = repo
        .workflow()
        .pick(
            &["other:1"],
            &PickOptions {
                on_overlap: OnOverlap::Stop,
                dry_run: true,
            },
        )
        .done();
    insta::assert_snapshot!(said, @r"
    picked other:1
      write a.txt
    ");
    assert_eq!(everything(&repo), before);
    repo.workflow()
        .pick(&["other:1"], &PickOptions::default())
        .done();
    let said = repo
        .workflow()
        .pick(&["other:1"], &PickOptions::default())
        .refused();
    insta::assert_snapshot!(said, @r"
    error: what turn `other:1` did is already in your files
    exit code 1
    ");
}

#[test]
fn a_plan_that_waits_goes_on_waiting_behind_a_pick() {
    let repo = two_sessions();
    repo.reply(&plan("Make e", &[create("e.txt", "e\n")]));
    repo.workflow().plan("make e").done();
    repo.workflow()
        .pick(&["other:2"], &PickOptions::default())
        .done();
    assert_eq!(repo.workflow().status()["draft"]["title"], "Make e");
    repo.workflow().execute().done();
    assert_eq!(repo.read("e.txt"), "e\n");
}
