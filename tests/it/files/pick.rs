//! `pick`: applies a turn of another session to the current one.

use serde_json::json;

use teddy::workflow::land::LandOptions;
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
    let before = everything(&repo);
    let dry_run = PickOptions {
        dry_run: true,
        ..PickOptions::default()
    };
    insta::assert_snapshot!(repo.workflow().pick(&["other:1"], &dry_run).done(), @r"
    picked other:1
      write a.txt
    ");
    assert_eq!(everything(&repo), before);
    let both = ["other:1", "other:2"];
    let picked = repo.workflow().pick(&both, &PickOptions::default());
    insta::assert_snapshot!(picked.done(), @r"
    picked other:1 as turn 1
      write a.txt
    picked other:2 as turn 2
      write d.txt
    ");
    assert_eq!(repo.read("a.txt"), "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n");
    let log = repo.workflow().log();
    assert_eq!(
        [&log[1]["status"], &log[1]["title"], &log[1]["files"]],
        [
            &json!("picked"),
            &json!("Pick other:1: Change a"),
            &json!(["a.txt"])
        ]
    );
    let source = repo.workflow().turn("other:1");
    let meta: serde_json::Value =
        serde_yaml::from_str(&repo.workflow().artifact("1", "meta.yaml")).unwrap();
    assert_eq!(
        (&meta["status"], &meta["picked"]),
        (
            &json!("picked"),
            &json!({
                "session": "other",
                "turn": 1,
                "turn_id": source["turn_id"],
                "commit": source["commit"],
                "title": "Change a",
            })
        )
    );
    repo.workflow().verify().done();

    repo.workflow().undo(1).done();
    assert!(!repo.path().join("d.txt").exists());
    repo.workflow().redo(1).done();
    let each = LandOptions {
        each: true,
        ..LandOptions::default()
    };
    insta::assert_snapshot!(repo.workflow().land(&each).done(), @r"
    landed [1]: Change a
      commit a.txt
    landed [2]: Make d
      commit d.txt
    ");
    assert_eq!(changed(&repo), "A\td.txt");
    assert_eq!(repo.git(&["log", "-2", "--format=%s"]), "Make d\nChange a");
    assert_eq!(status(&repo), " M a.txt");
}

#[test]
fn the_command_names_the_turns_and_counts_their_files() {
    let repo = two_sessions();
    let tried = repo.teddy(&["pick", "other:1", "-n"]);
    let picked = repo.teddy(&["pick", "other:1", "other:2"]);
    let replies = [tried, picked].map(|reply| reply.shown(&repo));
    insta::assert_snapshot!(replies.join("\n"), @r"
    write a.txt
    --- stderr
    Picking other:1 would change 1 file.
    exit code 0

    write a.txt
    write d.txt
    --- stderr
    Picked other:1 as turn 1: 1 file changed.
    Picked other:2 as turn 2: 1 file changed.
    exit code 0
    ");
}

#[test]
fn a_pick_that_overlaps_changes_nothing_without_an_option() {
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
    insta::assert_snapshot!(repo.printed(&["pick", "other:1"]), @"
    overlap a.txt
    --- stderr
    warning: what the turns did overlaps with your own edits or with other turns in your files; nothing was changed. Use --ours, --theirs or --markers
    exit code 4
    ");
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
    assert_eq!(
        repo.read("a.txt"),
        "1\n<<<<<<< yours\nzwei\n=======\ntwo\n>>>>>>> turn\n3\n4\n5\n6\n7\n8\n9\n"
    );
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
    assert_eq!(repo.read("a.txt"), "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n");
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
