//! Comments on lines decline a plan, and the next review says what became of their lines.

use serde_json::json;

use crate::plans::{edit, edit_pairs, plan};
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new();
    repo.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "base"]);
    repo.teddy(&["new", "demo"]).check(0, &[]);
    repo.teddy(&["context", "add", "a.txt"]).check(0, &[]);
    repo
}

/// Declines a plan with comments on lines 2, 5 and 8.
fn decline(repo: &TestRepo) {
    let first = plan(
        "First",
        &[edit_pairs("a.txt", &[("2", "two"), ("8", "eight")])],
    );
    let args = [
        "execute",
        "-",
        "--comment",
        "a.txt:2=write it out: Two",
        "--comment",
        "a.txt:5-6=and these?",
        "--comment",
        "a.txt:8=not needed",
    ];
    repo.teddy_reads(&args, &first)
        .check(0, &["turn 1 declined"]);
}

#[test]
fn a_plan_is_declined_with_comments_and_the_next_review_follows_them() {
    let repo = project();
    decline(&repo);
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let message = repo.done(&["show", "1", "declined.txt"]);
    assert_eq!(
        message,
        "Please change the plan as these comments on its result say. The rest of it can stay.\n\n\
         ## a.txt, line 2\n````text\ntwo\n````\nwrite it out: Two\n\n\
         ## a.txt, lines 5 to 6\n````text\n5\n6\n````\nand these?\n\n\
         ## a.txt, line 8\n````text\neight\n````\nnot needed\n"
    );

    let comments = repo.done(&["show", "1", "comments.md"]);
    assert!(
        comments.starts_with("# Comments\n\n## a.txt:2\n"),
        "{comments}"
    );

    let second = plan(
        "Second",
        &[edit_pairs("a.txt", &[("2", "Two"), ("7\n8\n9", "7\n9")])],
    );
    let out = repo.teddy_reads(&["--json", "execute", "-"], &second);
    let reply: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(
        reply["review"]["comments"],
        json!([
            { "path": "a.txt", "lines": [2, 2], "text": "write it out: Two", "status": "addressed" },
            { "path": "a.txt", "lines": [5, 6], "text": "and these?", "status": "open" },
            { "path": "a.txt", "lines": [8, 8], "text": "not needed", "status": "stale" },
        ]),
        "{out}"
    );
    let out = repo.teddy(&["execute"]);
    out.check(
        1,
        &[
            "your comment on a.txt:2 is addressed: write it out: Two",
            "your comment on a.txt:5-6 is open: and these?",
            "your comment on a.txt:8 is stale: not needed",
        ],
    );
}

#[test]
fn a_comment_on_nothing_is_refused_and_the_plan_waits() {
    let repo = project();
    let text = plan("First", &[edit("a.txt", "2", "two")]);
    for (comment, problem) in [
        (
            "a.txt:10=x",
            "`a.txt` has no lines 10 to 10 after this plan",
        ),
        ("b.txt:1=x", "after this plan there is no file `b.txt`"),
    ] {
        repo.teddy_reads(&["execute", "-", "--comment", comment], &text)
            .check(1, &[problem]);
    }
    for comment in [
        "a.txt=x",
        "a.txt:1",
        "a.txt:1=",
        "../a.txt:1=x",
        ".git/config:1=x",
    ] {
        repo.teddy(&["execute", "--comment", comment]).check(2, &[]);
    }
    repo.teddy(&["execute", "-y"])
        .check(0, &["turn 1 executed"]);
}
