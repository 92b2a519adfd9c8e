//! `record`: what was done in the user's files without TeDDy, as a turn.

use serde_json::json;

use crate::land::{changed, everything, project, status};
use crate::plans::{create, edit, plan};
use crate::support::TestRepo;

#[test]
fn t21_what_changed_since_the_newest_turn_is_a_turn_like_any_other() {
    let repo = project();
    repo.run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.write("d.txt", "d\nagent\n");
    repo.write("new/e.txt", "e\n");
    repo.write("note", "{\"role\":\"user\"}\n{\"role\":\"agent\"}\n");
    let chat = repo.beside("chat.jsonl");
    std::fs::rename(repo.path().join("note"), &chat).unwrap();
    let out = repo.teddy(&[
        "record",
        "-m",
        "add e\nplease",
        "--by",
        "aider",
        "--transcript",
        chat.to_str().unwrap(),
    ]);
    out.check(
        0,
        &[
            "write d.txt\nwrite new/e.txt\n",
            "Recorded as turn 2: 2 files changed.",
        ],
    );

    let log = repo.json(&["log"], 0);
    assert_eq!(
        [&log[0]["status"], &log[0]["title"], &log[0]["files"]],
        [
            &json!("recorded"),
            &json!("add e"),
            &json!(["d.txt", "new/e.txt"])
        ]
    );
    let meta = repo.done(&["show", "2", "meta.yaml"]);
    assert!(meta.contains("recorded:\n  by: aider\n"), "{meta}");
    let report = repo.done(&["show", "2", "report.md"]);
    assert!(report.contains("**Done by:** aider\n"), "{report}");
    let kept = repo.done(&["show", "2", "transcript.jsonl"]);
    assert_eq!(kept, "{\"role\":\"user\"}\n{\"role\":\"agent\"}\n");
    let requests = repo.git(&["show", "teddy/sessions/demo:next/requests.yaml"]);
    assert!(requests.contains("add e"), "{requests}");
    repo.done(&["verify"]);

    repo.done(&["undo"]);
    assert_eq!(repo.read("d.txt"), "d\n");
    assert!(!repo.path().join("new/e.txt").exists());
    repo.done(&["redo"]);
    repo.done(&["restore", "1"]);
    assert_eq!(repo.read("d.txt"), "d\n");
    repo.done(&["undo"]);
    let blamed = repo.json(&["blame", "d.txt"], 0);
    assert_eq!([&blamed[0]["turn"], &blamed[1]["turn"]], [1, 2]);
    repo.done(&["land", "--each"]);
    assert_eq!(changed(&repo), "M\td.txt\nA\tnew/e.txt");
    assert_eq!(status(&repo), "");
}

#[test]
fn nothing_to_record_is_an_error_that_changes_nothing() {
    let repo = project();
    repo.run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    let tip = repo.git(&["rev-parse", "teddy/sessions/demo"]);
    repo.teddy(&["record", "-m", "x"]).check(
        1,
        &[
            "nothing changed since turn 1 of session `demo`",
            "--allow-empty",
        ],
    );
    assert_eq!(repo.git(&["rev-parse", "teddy/sessions/demo"]), tip);
    let done = repo.json(&["record", "-m", "x", "--allow-empty"], 0);
    assert_eq!([&done["turn"], &done["written"]], [&json!(2), &json!([])]);
    repo.done(&["verify"]);
    repo.done(&["undo"]);
    assert!(!repo.path().join("d.txt").exists());
}

#[test]
fn without_a_session_one_is_started_on_what_head_has() {
    let repo = TestRepo::new().file("a.txt", "1\n");
    repo.commit("init");
    let before = everything(&repo);
    repo.teddy(&["record"])
        .check(1, &["nothing changed since HEAD"]);
    assert_eq!(everything(&repo), before);

    repo.write("a.txt", "2\n");
    repo.teddy(&["record", "-m", "Make it two"]).check(
        0,
        &["Started session make-it-two.", "Recorded as turn 1: 1 file"],
    );
    repo.done(&["undo"]);
    assert_eq!(repo.read("a.txt"), "1\n");
}

#[test]
fn without_a_commit_everything_is_new() {
    let repo = TestRepo::new().file("a.txt", "1\n");
    repo.done(&["record", "-m", "begin"]);
    assert_eq!(repo.json(&["log"], 0)[0]["files"], json!(["a.txt"]));
    repo.done(&["undo"]);
    assert!(!repo.path().join("a.txt").exists());
    repo.done(&["verify"]);
}

#[test]
fn what_another_session_brought_is_not_recorded_again() {
    let repo = project();
    repo.done(&["new", "other"]);
    repo.done(&["context", "add", "a.txt"]);
    repo.run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    repo.done(&["switch", "demo"]);
    repo.write("b.txt", "agent\n");
    repo.done(&["record", "-m", "write b"]);
    assert_eq!(repo.json(&["log"], 0)[0]["files"], json!(["b.txt"]));
    repo.done(&["undo"]);
    assert!(repo.read("a.txt").contains("two"));
    repo.done(&["verify"]);
}

#[test]
fn a_branch_that_was_switched_to_is_nobodys_work() {
    let repo = project();
    repo.run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("theirs.txt", "theirs\n");
    repo.git(&["add", "theirs.txt"]);
    repo.git(&["commit", "-q", "-m", "theirs"]);
    repo.write("mine.txt", "mine\n");
    repo.done(&["record", "-m", "mine"]);
    assert_eq!(repo.json(&["log"], 0)[0]["files"], json!(["mine.txt"]));
}

#[test]
fn a_plan_that_waits_goes_on_waiting_behind_a_recorded_turn() {
    let repo = project();
    repo.reply(&plan("Make e", &[create("e.txt", "e\n")]));
    repo.done(&["plan", "-m", "make e"]);
    repo.write("b.txt", "agent\n");
    repo.done(&["record"]);
    let status = repo.json(&["status"], 0);
    assert_eq!(status["draft"]["title"], "Make e");
    assert_eq!(repo.json(&["log"], 0)[0]["title"], "Record b.txt");
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("e.txt"), "e\n");
}

#[test]
fn a_transcript_is_a_regular_file_and_only_its_end_is_kept() {
    let repo = project();
    repo.write("b.txt", "agent\n");
    let long = repo.beside("long.md");
    std::fs::write(&long, "line\n".repeat(1 << 20)).unwrap();
    let link = repo.beside("link.md");
    std::os::unix::fs::symlink(&long, &link).unwrap();
    let record = |file: &std::path::Path| {
        let file = file.to_str().unwrap();
        repo.teddy(&["record", "--transcript", file])
    };
    record(&link).check(1, &["cannot read"]);
    record(&repo.beside("gone")).check(1, &["cannot read"]);
    record(&repo.path()).check(1, &["not a regular file"]);
    record(&long).check(0, &["Recorded as turn 1"]);
    let kept = repo.done(&["show", "1", "transcript.md"]);
    assert!(kept.starts_with("*(3145728 bytes left out)*\n\nline\n"));
    assert!(kept.len() < (2 << 20) + 100, "{}", kept.len());
}

#[test]
fn a_key_in_the_words_or_the_transcript_is_not_recorded() {
    let repo = project();
    let key = format!("sk-ant-{}", "aB3dE5gH7j".repeat(4));
    repo.write("b.txt", "agent\n");
    let chat = repo.beside("chat.txt");
    std::fs::write(&chat, &key).unwrap();
    let words = format!("use {key}");
    let chat = chat.to_str().unwrap();
    repo.done(&["record", "-m", &words, "--transcript", chat]);
    for name in ["transcript.txt", "user_prompt.txt", "meta.yaml"] {
        let text = repo.done(&["show", "1", name]);
        assert!(!text.contains(&key), "{name}: {text}");
    }
}
