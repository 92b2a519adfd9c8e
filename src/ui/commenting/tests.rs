//! Tests of moving, folding, and writing comments.

use super::*;
use crate::ui::diff::{FileVersions, render};

fn file(path: &str, before: &str, after: &str) -> ReviewedFile {
    let versions = FileVersions {
        path,
        before: Some(before.as_bytes()),
        after: Some(after.as_bytes()),
    };
    let rendered = render(&versions, usize::MAX);
    ReviewedFile {
        path: path.to_owned(),
        heading: StyledLine::plain(path),
        after: Some(after.to_owned()),
        rows: rendered.rows,
        is_generated: false,
    }
}

fn screen() -> Commenting {
    let files = vec![
        file("a.rs", "1\n2\n3\n", "1\ntwo\n3\n4\n"),
        file("b.rs", "x\n", "y\n"),
    ];
    fitted(files, Vec::new())
}

/// Returns the screen with the cursor at its first row.
fn fitted(files: Vec<ReviewedFile>, comments: Vec<LineComment>) -> Commenting {
    let mut screen = Commenting::new(files, comments, &[], None);
    screen.fit(20);
    press(screen, "g", "")
}

/// Presses keys. A comment that a key asks for gets the text `text`.
fn press(mut screen: Commenting, keys: &str, text: &str) -> Commenting {
    for c in keys.chars() {
        let key = match c {
            '\t' => Key::Tab,
            '\n' => Key::Enter,
            c => Key::Char(c),
        };
        if let Some(CommentingCommand::Write { comment, index }) = screen.press(&key) {
            let comment = LineComment {
                text: text.to_owned(),
                ..*comment
            };
            screen.write(comment, index);
        }
    }
    screen
}

fn shown(screen: &Commenting) -> String {
    let lines: Vec<String> = screen
        .visible_lines(80)
        .iter()
        .map(StyledLine::text)
        .collect();
    lines.join("\n")
}

#[test]
fn a_comment_is_below_its_lines_and_can_be_changed_and_taken_back() {
    let screen = press(screen(), "jjjjVjc", "Why?\nReally.");
    assert_eq!(
        shown(&screen),
        " a.rs\n @@ -1,3 +1,4 @@\n  1\n -2\n +two\n› 3\n   » lines 2 to 3: Why? ↵ Really.\n +4\n \
         b.rs\n @@ -1 +1 @@\n -x\n +y"
    );
    let comment = &screen.comments()[0];
    assert_eq!(
        (comment.place().as_str(), comment.quoted.join("|").as_str()),
        ("a.rs:2-3", "two|3")
    );

    let on_lines = "6/12, 1 comment c comment · s decline · q back · ? help · ";
    assert!(screen.footer().text().starts_with(on_lines));
    let screen = press(screen, "j", "");
    assert_eq!(
        screen.footer().text(),
        "7/12, 1 comment c change it · u take it back · s decline · ? help · q back"
    );
    let screen = press(screen, "c", "Changed");
    assert_eq!(screen.comments().len(), 1);
    assert_eq!(screen.comments()[0].text, "Changed");
    let screen = press(screen, "u", "");
    assert_eq!(screen.comments(), []);
}

/// Bug: the cursor was on the heading, which can have no comment.
#[test]
fn the_cursor_starts_at_the_first_changed_line() {
    let start = |files: Vec<ReviewedFile>, path: Option<&str>| {
        let mut screen = Commenting::new(files, Vec::new(), &[], path);
        screen.fit(20);
        screen.line(screen.row().unwrap()).text()
    };
    let numbers = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let files = vec![
        file("a.rs", numbers, &numbers.replace("8\n", "eight\n")),
        file("b.rs", numbers, &numbers.replace("8\n", "")),
        file("new.rs", "", "x\n"),
        file("large.rs", "", &"line\n".repeat(500)),
        file("mode.sh", "x\n", "x\n"),
    ];
    assert_eq!(start(files.clone(), None), "+eight");
    assert_eq!(start(files.clone(), Some("b.rs")), "-8");
    assert_eq!(start(files.clone(), Some("new.rs")), "+x");
    assert_eq!(start(files.clone(), Some("large.rs")), "+line");
    assert_eq!(start(files.clone(), Some("mode.sh")), "mode.sh");
    assert_eq!(start(files, Some("unchanged.rs")), "+eight");
    let folded = ReviewedFile {
        is_generated: true,
        ..file("Cargo.lock", "1\n", "2\n")
    };
    assert_eq!(start(vec![folded], None), "Cargo.lock  ▸ 3 lines");
    assert_eq!(
        Commenting::new(Vec::new(), Vec::new(), &[], None).row(),
        None
    );
}

#[test]
fn only_lines_after_the_plan_can_have_comments() {
    for (keys, notice) in [
        ("c", "move to a line of a file first"),
        (
            "jc",
            "only a line that the file has after the plan can have a comment",
        ),
        (
            "jjjc",
            "only a line that the file has after the plan can have a comment",
        ),
        ("jjVGc", "a range is in one file"),
        ("u", "there is nothing to take back here"),
        ("{", "there is none in this direction"),
    ] {
        let screen = press(screen(), keys, "x");
        assert_eq!(screen.list.notice.as_deref(), Some(notice), "{keys}");
        assert_eq!(screen.comments(), []);
    }
}

#[test]
fn keys_jump_by_file_and_hunk_and_fold() {
    let at = |keys: &str| {
        let screen = press(screen(), keys, "x");
        screen.line(screen.row().unwrap()).text()
    };
    assert_eq!(at("}"), "b.rs");
    assert_eq!(at("]]"), "@@ -1 +1 @@");
    assert_eq!(at("G["), "@@ -1 +1 @@");
    assert_eq!(at("jjj\t"), "a.rs  ▸ 6 lines");
    assert_eq!(at("jjj\tj"), "b.rs");
    assert_eq!(at("/two\n"), "+two");
}

#[test]
fn a_large_difference_starts_folded_and_a_comment_in_it_is_shown() {
    let text = "line\n".repeat(5000);
    let path = RepoPath::parse("large.rs").unwrap();
    let comment = LineComment::on(path, 3, 3, &text, "here").unwrap();
    let files = vec![file("large.rs", "", &text), file("b.rs", "x\n", "y\n")];
    let screen = fitted(files, vec![comment]);
    assert_eq!(
        shown(&screen),
        "›large.rs  ▸ 5001 lines\n   » line 3: here\n b.rs  ▸ 3 lines"
    );
}

#[test]
fn control_characters_of_a_comment_are_inert() {
    let screen = press(screen(), "jjc", "\u{1b}[31mred <b>");
    assert!(shown(&screen).contains("» line 1: \\u{1b}[31mred <b>"));
}

#[test]
fn a_whole_file_has_its_changed_lines_marked_and_takes_comments() {
    let text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let after = text.replace("8\n", "eight\nmore\n");
    let files = vec![file("a.rs", text, &after), file("b.rs", "x\n", "")];
    let screen = fitted(files.clone(), Vec::new());
    let screen = press(screen, "/eight\nw", "");
    assert_eq!(
        shown(&screen),
        " a.rs  whole file\n  1\n  2\n  3\n  4\n  5\n  6\n  7\n›+eight\n +more\n  9\n b.rs\n \
         @@ -1 +0,0 @@\n -x"
    );
    let screen = press(screen, "g]kc", "Before it.");
    assert_eq!(screen.comments()[0].place(), "a.rs:7");
    let screen = press(screen, "w", "");
    assert_eq!(
        shown(&screen),
        " a.rs\n @@ -5,5 +5,6 @@\n  5\n  6\n› 7\n   » line 7: Before it.\n -8\n +eight\n +more\n  9\n \
         b.rs\n @@ -1 +0,0 @@\n -x"
    );

    let gone = ReviewedFile {
        after: None,
        ..files[1].clone()
    };
    let screen = fitted(vec![gone], Vec::new());
    let notice = |keys| press(screen.clone(), keys, "").list.notice;
    assert_eq!(
        [notice("w"), notice("jjc")].map(Option::unwrap),
        [
            "this file has no text after the plan",
            "the lines of a file without text after the plan cannot have comments"
        ]
    );
}

#[test]
fn cm7_a_comment_says_that_its_lines_changed_since_or_that_its_file_left_the_plan() {
    let commented = |path: &str, line: usize| {
        let path = RepoPath::parse(path).unwrap();
        LineComment::on(path, line, line, "1\n2\n3\n", "why?").unwrap()
    };
    let files = vec![file("a.rs", "1\n", "1\ntwo\n3\n")];
    let comments = vec![
        commented("a.rs", 2),
        commented("a.rs", 3),
        commented("b.rs", 1),
    ];
    let screen = fitted(files, comments);
    assert_eq!(
        shown(&screen),
        "›  » b.rs:1: why?  (the plan does not change this file now)\n a.rs\n @@ -1 +1,3 @@\n  1\n \
         +two\n   » line 2: why?  (its lines changed since)\n +3\n   » line 3: why?"
    );
}

#[test]
fn a_thousand_comments_are_shown_and_no_more_can_be_written() {
    let text: String = (1..=1001).map(|line| format!("{line}\n")).collect();
    let path = RepoPath::parse("a.rs").unwrap();
    let comment = |line| LineComment::on(path.clone(), line, line, &text, "x").unwrap();
    let comments: Vec<LineComment> = (1..=1000).map(comment).collect();
    let mut screen = Commenting::new(vec![file("a.rs", "", &text)], comments, &[], Some("a.rs"));
    screen.fit(5);
    let screen = press(screen, "Gc", "one more");
    assert_eq!(
        screen.list.notice.as_deref(),
        Some("there are 1,000 comments; take one back with u first")
    );
    let screen = press(screen, "kuGc", "one more");
    assert_eq!(screen.comments().len(), 1000);
    assert_eq!(screen.comments()[999].place(), "a.rs:1001");
}

#[test]
fn cm4_comments_on_the_previous_plan_are_shown_with_their_lines() {
    let text = "1\nII\n3\nIV\n5\n6\n";
    let path = |name: &str| RepoPath::parse(name).unwrap();
    let earlier = [
        ("a.rs", 2),
        ("a.rs", 4),
        ("a.rs", 3),
        ("b.rs", 1),
        ("gone.rs", 1),
    ];
    let now = crate::session::comments::quotable("1\ntwo\n3\n5\n6\n");
    let earlier: Vec<FollowedComment> = earlier
        .iter()
        .map(|&(name, line)| {
            let comment = format!("on {line}\nreally");
            let comment = LineComment::on(path(name), line, line, text, &comment).unwrap();
            comment.follow((name == "a.rs").then_some(now.as_slice()))
        })
        .collect();
    let files = vec![
        file("a.rs", "1\n2\n3\n5\n6\n", "1\ntwo\n3\n5\n6\n"),
        file("b.rs", "x\n", "y\n"),
    ];
    let mut screen = Commenting::new(files, Vec::new(), &earlier, None);
    screen.fit(20);
    let screen = press(screen, "gj", "");
    assert_eq!(
        shown(&screen),
        "   « gone.rs:1: on 1 ↵ really  (stale)\n›a.rs\n   « a.rs:4: on 4 ↵ really  (stale)\n @@ -1,5 +1,5 @@\n  1\n -2\n +two\n   « on 2 ↵ really  (addressed)\n  3\n   « on 3 ↵ really  (open)\n  5\n  6\n b.rs\n   « b.rs:1: on 1 ↵ really  (stale)\n @@ -1 +1 @@\n -x\n +y"
    );
    let screen = press(screen, "gu", "");
    assert_eq!(
        screen.list.notice.as_deref(),
        Some("there is nothing to take back here")
    );
    let screen = press(screen, "gc", "x");
    assert_eq!(
        screen.list.notice.as_deref(),
        Some("move to a line of a file first")
    );
}

#[test]
fn deleted_and_binary_files_have_no_lines_to_comment_on() {
    let without_text = |path: &str| ReviewedFile {
        after: None,
        ..file(path, "x\n", "")
    };
    let binary = ReviewedFile {
        rows: vec![(StyledLine::plain("binary content differs"), None)],
        ..without_text("b.bin")
    };
    let files = vec![without_text("gone.rs"), binary];
    let screen = fitted(files, Vec::new());
    let notice = "the lines of a file without text after the plan cannot have comments";
    for keys in ["jjc", "Gc"] {
        let screen = press(screen.clone(), keys, "x");
        assert_eq!(screen.list.notice.as_deref(), Some(notice));
    }
    let screen = press(screen, "w", "");
    assert_eq!(
        screen.list.notice.as_deref(),
        Some("this file has no text after the plan")
    );
}

/// Regression: a line was cut at the width of the screen, with its change.
#[test]
fn a_long_line_is_cut_around_its_change() {
    let line = |end: &str| format!("{} {end} end\n", "word ".repeat(600));
    let files = vec![file("a.rs", &line("old"), &line("new"))];
    let screen = fitted(files, Vec::new());
    let difference = " @@ -1 +1 @@\n -… word word  old end\n +… word word  new end";
    assert_eq!(shown(&screen), format!("›a.rs\n{difference}"));
    let whole = press(screen, "w", "");
    assert_eq!(shown(&whole), "›a.rs  whole file\n +… word word  new end");
}
