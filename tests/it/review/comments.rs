//! Comments on lines decline a plan, and the next review says what became of their lines.

use serde_json::json;

use crate::plans::{edit, edit_pairs, plan, read};
use crate::screen::Screen;
use crate::scripted_agent::use_scripted_agent;
use crate::support::{Output, TestRepo};

fn project() -> TestRepo {
    project_in(TestRepo::new())
}

fn project_in(repo: TestRepo) -> TestRepo {
    repo.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "base"]);
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
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

    insta::assert_snapshot!(repo.printed(&["export", "--format", "md"]), @"
    ### Session `demo`

    1 turn · commit `[id]`

    **Turns**

    - 1: `First` declined

    **Decisions**

    - turn 1: declined `First`
    - turn 1: commented on `a.txt:2`: `write it out: Two`
    - turn 1: commented on `a.txt:5-6`: `and these?`
    - turn 1: commented on `a.txt:8`: `not needed`
    exit code 0
    ");

    let second = plan(
        "Second",
        &[edit_pairs("a.txt", &[("2", "Two"), ("7\n8\n9", "7\n9")])],
    );
    let out = repo.teddy_reads(&["--json", "execute", "-"], &second);
    let reply: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(
        reply["review"]["comments"],
        json!([
            { "path": "a.txt", "lines": [2, 2], "text": "write it out: Two", "status": "addressed", "line": 2 },
            { "path": "a.txt", "lines": [5, 6], "text": "and these?", "status": "open", "line": 6 },
            { "path": "a.txt", "lines": [8, 8], "text": "not needed", "status": "stale", "line": null },
        ]),
        "{out}"
    );
    let out = repo.teddy(&["execute"]);
    insta::assert_snapshot!(out.shown(&repo), @r#"
    --- stderr
    ▶ Reviewing Plan: "Second"
      demo · turn 2 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Second, because it is wanted.
     Changes: 1 file  +1 -2
      a.txt  +1 -2
        @@ -1,9 +1,8 @@
         1
        -2
        +Two
         3
         4
         5
         6
         7
        -8
         9
     Look at:
      ⚠ your comment on a.txt:2 is addressed: write it out: Two
      ⚠ your comment on a.txt:5-6 is open: and these?
      ⚠ your comment on a.txt:8 is stale: not needed
     Action Plan:
      - EDIT: 1 file
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    error: stdin is not a terminal, so TeDDy cannot ask for approval of this plan
    hint: `-y` approves it
    exit code 1
    "#);
}

/// Bug: only the plan right after the comments showed them.
#[test]
fn cm4_turns_that_need_no_review_keep_the_comments_for_the_next_one() {
    let repo = project();
    decline(&repo);
    let second = plan("Second", &[edit_pairs("a.txt", &[("2", "Two")])]);
    repo.reply("Which form do you mean?")
        .reply(&plan("Look", &[read("a.txt")]))
        .reply(&plan("Wrong", &[edit("a.txt", "ten", "Ten")]))
        .reply(&second)
        .reply(&plan("Third", &[edit("a.txt", "3", "three")]));
    repo.teddy(&["plan"]).check(5, &["Which form"]);
    repo.done(&["plan", "the written one"]);
    repo.teddy(&["execute"])
        .check(0, &["needs no approval", "turn 3 executed"]);
    repo.teddy(&["plan", "go on"]).check(3, &["1 mistake"]);
    let comments = || {
        let out = repo.teddy(&["--json", "execute"]);
        let reply: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        let comments = reply["review"]["comments"].as_array().unwrap().clone();
        let of = |comment: &serde_json::Value| {
            let status = comment["status"].as_str().unwrap();
            format!("{}: {status}", comment["text"].as_str().unwrap())
        };
        comments.iter().map(of).collect::<Vec<_>>()
    };
    repo.teddy(&["execute"]).check(3, &["turn 4 rejected"]);
    assert_eq!(
        comments(),
        [
            "write it out: Two: addressed",
            "and these?: open",
            "not needed: addressed"
        ]
    );

    // The user decided on the second plan, so its comments alone are of interest.
    repo.done(&["execute", "-y"]);
    repo.done(&["plan", "and the third"]);
    assert_eq!(comments(), Vec::<String>::new());
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
        ("-b.txt:1=x", "after this plan there is no file `-b.txt`"),
    ] {
        repo.teddy_reads(&["execute", "-", "--comment", comment], &text)
            .check(1, &[problem]);
    }
    let refused = [
        "a.txt=x",
        "a.txt:1",
        "a.txt:1=",
        "../a.txt:1=x",
        ".git/config:1=x",
    ]
    .map(|comment| repo.printed(&["execute", "--comment", comment]));
    insta::assert_snapshot!(refused.concat(), @"
    --- stderr
    error: invalid value 'a.txt=x' for '--comment <FILE:LINE=TEXT>': write it as `file:line=text` or `file:first-last=text`

    hint: `teddy execute --help` shows its arguments, with examples
    exit code 2
    --- stderr
    error: invalid value 'a.txt:1' for '--comment <FILE:LINE=TEXT>': write it as `file:line=text` or `file:first-last=text`

    hint: `teddy execute --help` shows its arguments, with examples
    exit code 2
    --- stderr
    error: invalid value 'a.txt:1=' for '--comment <FILE:LINE=TEXT>': it has no text

    hint: `teddy execute --help` shows its arguments, with examples
    exit code 2
    --- stderr
    error: invalid value '../a.txt:1=x' for '--comment <FILE:LINE=TEXT>': the path leaves the project with `..`

    hint: `teddy execute --help` shows its arguments, with examples
    exit code 2
    --- stderr
    error: invalid value '.git/config:1=x' for '--comment <FILE:LINE=TEXT>': `.git` is git's own

    hint: `teddy execute --help` shows its arguments, with examples
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["execute", "-y"]), @r#"
    turn 1 executed [id]
    --- stderr
    ▶ Reviewing Plan: "First"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      First, because it is wanted.
     Changes: 1 file  +1 -1
      a.txt  +1 -1
        @@ -1,5 +1,5 @@
         1
        -2
        +two
         3
         4
         5
     Action Plan:
      - EDIT: 1 file
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. EDIT a.txt
      ✓ changed 1 place: 1 line added, 1 removed
    Updated your files: a.txt
    exit code 0
    "#);
}

/// Writes a comment on the line under the cursor.
fn comment(screen: &mut Screen, text: &str) {
    screen.press("c");
    screen.wait_for("Your comment:");
    screen.press(&format!("{text}\r"));
    screen.wait_for(&format!(": {text}"));
    screen.settled();
}

/// The agent reads the legacy file as UTF-8, so its other encoding is lost.
const FIRST: &str = "printf '1\\ntwo\\n3\\n4\\n5\\n6\\n7\\neight\\n9\\n' > a.txt; printf 'top\\nmiddle\\nend\\n' > f1.txt; for n in 2 3 4 5 6 7 8 9 10; do echo new > f$n.txt; done; printf 'caf\\357\\277\\275\\nname = 2\\n' > legacy.ini; message 'Reworked it.'";

const SECOND: &str = "printf '1\\nTwo\\n3\\n4\\n5\\n6\\n7\\n9\\n' > a.txt; printf 'top\\ncentre\\nend\\n' > f1.txt; for n in 2 3 4 5 6 7 8 9 10; do echo new > f$n.txt; done; printf 'caf\\357\\277\\275\\nname = 2\\n' > legacy.ini; message 'Reworked it again.'";

#[test]
fn an_agents_turn_is_commented_sent_back_and_lands_with_the_bytes_of_the_user() {
    let repo = project_in(TestRepo::on_disk());
    repo.write("legacy.ini", b"caf\xe9\nname = 1\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "legacy"]);
    use_scripted_agent(&repo, FIRST);
    repo.done(&["plan", "-m", "rework it"]);

    let mut screen = Screen::open(&repo, (110, 45), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("c");
    screen.wait_for("c comment · s decline");
    for (search, text) in [
        ("+two", "write Two"),
        ("+eight", "not needed"),
        ("+middle", "British, please"),
    ] {
        screen.press(&format!("/{search}\r"));
        screen.settled();
        comment(&mut screen, text);
    }

    // They are saved as they are written, so the end of the program loses none.
    screen.signal(rustix::process::Signal::TERM);
    assert_eq!(screen.end(), 130, "{}", screen.shown());
    use_scripted_agent(&repo, SECOND);
    let mut screen = Screen::open(&repo, (110, 45), &["execute"]);
    screen.wait_for("3 comments not sent: (c) shows them, (s) declines the plan with them.");
    screen.press("c");
    screen.wait_for("» line 8: not needed");
    screen.settled();
    // The plan that the agent makes instead is reviewed next.
    screen.press("s");
    screen.wait_for("your comment on a.txt:2 is addressed: write Two");
    let shown = screen.wait_for_prompt("(q)uit ›");
    let comments = repo.done(&["show", "1", "comments.md"]);
    assert_eq!(comments.matches("\n## ").count(), 3, "{comments}");
    insta::assert_snapshot!(repo.printed(&["show", "1", "declined.txt"]), @"
    Please change the plan as these comments on its result say. The rest of it can stay.

    ## a.txt, line 2
    ````text
    two
    ````
    write Two

    ## a.txt, line 8
    ````text
    eight
    ````
    not needed

    ## f1.txt, line 2
    ````text
    middle
    ````
    British, please
    exit code 0
    ");
    assert!(!repo.path().join("f1.txt").exists());
    for line in [
        "your comment on a.txt:8 is stale: not needed",
        "your comment on f1.txt:2 is addressed: British, please",
        "legacy.ini: 1 byte that is not UTF-8 became U+FFFD",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    screen.press("B");
    screen.wait_for("With your changes: 1 action changed");
    screen.settled();
    screen.press("m");
    screen.wait_for("12 of 12 actions");
    screen.wait_for("*modified");
    screen.settled();
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    let legacy = std::fs::read(repo.path().join("legacy.ini")).unwrap();
    assert_eq!(legacy, b"caf\xe9\nname = 2\n");
    assert_eq!(repo.read("f1.txt"), "top\ncentre\nend\n");
    // Sent comments are no part of the turn that ran.
    repo.teddy(&["show", "2", "comments.md"]).check(1, &[]);

    repo.done(&["land", "-m", "Rework"]);
    assert_eq!(repo.git(&["show", "HEAD:f1.txt"]), "top\ncentre\nend");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn cm6_a_plan_with_comments_that_are_not_sent_runs_only_if_the_user_says_so() {
    let repo = project();
    let text = plan("First", &[edit_pairs("a.txt", &[("2", "two")])]);
    repo.reply(&text);
    repo.done(&["plan", "-m", "x"]);
    let mut screen = Screen::open(&repo, (100, 30), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("c");
    screen.wait_for("c comment · s decline");
    screen.press("/+two\r");
    screen.settled();
    comment(&mut screen, "why?");
    // The key that sends them must come alone.
    screen.press("ks");
    screen.wait_for("Keys that arrive together approve nothing");
    screen.settled();
    screen.press("q");
    screen.wait_for("1 comment not sent");
    screen.settled();
    screen.press("a");
    screen.wait_for("Run the plan without sending your 1 comment?");
    screen.settled();
    screen.press("n");
    screen.settled();
    screen.press("a");
    screen.settled();
    assert!(!screen.shown().contains("Updated your files"));
    screen.press("y");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("a.txt"), "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n");
}

#[test]
fn comments_that_are_not_sent_stop_an_approval_unseen_and_go_with_a_rejection() {
    let repo = project();
    repo.reply(&plan("First", &[edit_pairs("a.txt", &[("2", "two")])]));
    repo.done(&["plan", "-m", "x"]);
    let mut screen = Screen::open(&repo, (100, 30), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("c");
    screen.wait_for("c comment · s decline");
    screen.press("/+two\r");
    screen.settled();
    comment(&mut screen, "why?");
    screen.press("q");
    screen.wait_for("1 comment not sent");
    screen.settled();
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());

    insta::assert_snapshot!(repo.printed(&["execute", "-y", "-q"]), @"
    --- stderr
    error: comments on this plan are not sent yet
    hint: `teddy execute` without `-y` shows them; `u` takes one back, `s` sends them
    exit code 1
    ");
    repo.write("a.txt", "1\nzwei\n3\n4\n5\n6\n7\n8\n9\n");
    let out = repo.teddy(&["execute", "--no-replan"]);
    assert_eq!(out.code, 3, "{out}");
    let comments = repo.done(&["show", "1", "comments.md"]);
    insta::assert_snapshot!(repo.plain(&comments), @"
    # Comments

    ## a.txt:2

    Quoted from line 1: 1 in front, 1 meant

    ````text
    1
    two
    3
    4
    ````

    > why?
    ");
}

#[test]
fn cm4_comments_follow_files_in_other_encodings_and_binary_files_have_none() {
    let repo = project();
    repo.write("wide.txt", b"\xff\xfea\0\n\0b\0\n\0");
    repo.write("legacy.ini", b"caf\xe9\nname = 1\n");
    // Without a mark, the bytes do not prove that this is UTF-16.
    repo.write("unmarked.txt", b"a\0\n\0");
    let text = plan("First", &[edit("a.txt", "2", "two")]);
    let shown = repo
        .teddy_reads(&["execute", "-", "--comment", "unmarked.txt:1=x"], &text)
        .shown(&repo);
    insta::assert_snapshot!(shown, @"
    --- stderr
    error: after this plan there is no file `unmarked.txt`, or it is binary or too large to comment on
    hint: `teddy diff draft` shows what the plan does
    exit code 1
    ");
    let args = [
        "execute",
        "-",
        "--comment",
        "wide.txt:2=wide",
        "--comment",
        "legacy.ini:1=\u{1b}[31mwhich encoding?",
    ];
    insta::assert_snapshot!(repo.teddy_reads(&args, &text).shown(&repo), @"
    turn 1 declined [id]
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["show", "1", "declined.txt"]), @r"
    Please change the plan as these comments on its result say. The rest of it can stay.

    ## wide.txt, line 2
    ````text
    b
    ````
    wide

    ## legacy.ini, line 1
    ````text
    caf\xe9
    ````
    \u{1b}[31mwhich encoding?
    exit code 0
    ");
    let out = repo.teddy_reads(&["--json", "execute", "-"], &text);
    let reply: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let statuses = [0, 1].map(|at| reply["review"]["comments"][at]["status"].clone());
    assert_eq!(statuses, [json!("open"), json!("open")], "{out}");
}

#[test]
fn two_reviews_of_one_plan_do_not_lose_each_others_comments() {
    let repo = project();
    repo.reply(&plan("First", &[edit_pairs("a.txt", &[("2", "two")])]));
    repo.done(&["plan", "-m", "x"]);
    let mut screen = Screen::open(&repo, (100, 30), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    let mut second = repo.teddy_command(&["execute", "--comment", "a.txt:1=from elsewhere"]);
    second
        .current_dir(repo.path())
        .env("TEDDY_LOCK_TIMEOUT", "0");
    insta::assert_snapshot!(Output::of(&mut second).shown(&repo), @"
    --- stderr
    error: busy: process [pid] (execute: the plan for turn 1 is open in a review) is at work in this repository
    hint: decide in the review there, or try again once it has ended; `TEDDY_LOCK_TIMEOUT=<seconds>` waits longer
    exit code 75
    ");
    screen.press("c");
    screen.wait_for("c comment · s decline");
    screen.press("/+two\r");
    screen.settled();
    comment(&mut screen, "why?");
    screen.press("s");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    let comments = repo.done(&["show", "1", "comments.md"]);
    insta::assert_snapshot!(repo.plain(&comments), @"
    # Comments

    ## a.txt:2

    Quoted from line 1: 1 in front, 1 meant

    ````text
    1
    two
    3
    4
    ````

    > why?
    ");
}

#[test]
fn a_comment_is_written_from_the_browser_on_the_plan_that_waits() {
    let repo = project();
    repo.teddy_reads(
        &["execute", "-", "-y"],
        plan("First", &[edit("a.txt", "1", "one")]),
    )
    .check(0, &[]);
    let mut screen = Screen::open(&repo, (110, 30), &["browse"]);
    screen.wait_for("First");
    screen.settled();
    screen.press("c");
    screen.wait_for("comments are for a plan before it runs, and none waits in demo");
    repo.reply(&plan("Second", &[edit("a.txt", "2", "two")]));
    repo.done(&["plan", "-m", "x"]);
    screen.settled();
    screen.press("c");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("c");
    screen.wait_for("c comment · s decline");
    screen.press("/+two\r");
    screen.settled();
    comment(&mut screen, "why?");
    screen.press("s");
    screen.wait_for("Press a key to go back to the browser.");
    screen.settled();
    screen.press(" ");
    screen.wait_for("back from the review");
    screen.settled();
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    let comments = repo.done(&["show", "2", "comments.md"]);
    insta::assert_snapshot!(repo.plain(&comments), @"
    # Comments

    ## a.txt:2

    Quoted from line 1: 1 in front, 1 meant

    ````text
    one
    two
    3
    4
    ````

    > why?
    ");
}
