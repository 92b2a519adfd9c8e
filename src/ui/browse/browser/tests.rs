//! Tests of keys and read requests.

use super::*;
use crate::query::view::timeline::{SessionLane, Timeline};
use crate::session::meta::Status;
use crate::session::name::SessionName;
use crate::ui::browse::BrowseAction;
use crate::ui::browse::sample::{lane, numbered, row};
use crate::ui::browse::screen::BrowseCommand;
use crate::ui::key::Key;

fn browser() -> Browser {
    let demo = SessionName::parse("demo").unwrap();
    let other = SessionLane {
        parent: Some((demo, 1)),
        ..lane("other", vec![row(2, "Another way", Status::Executed)])
    };
    let mut sessions = vec![lane("demo", numbered(0..4)), other];
    sessions[0].in_use = true;
    let mut browser = Browser::default();
    browser.tree.fit(10);
    browser.detail.fit(0, 10);
    browser.learn(BrowseNews::Timeline(Timeline { sessions }, true));
    browser
}

fn press(browser: &mut Browser, keys: &str) -> Option<BrowseCommand> {
    let mut last = None;
    for key in keys.chars() {
        last = browser.press(&match key {
            '\n' => Key::Enter,
            '\t' => Key::Tab,
            '<' => Key::Left,
            key => Key::Char(key),
        });
    }
    last
}

#[track_caller]
fn check(keys: &str, expected: &str) {
    let mut browser = browser();
    let outcome = match press(&mut browser, keys) {
        None => browser.detail.notice.clone().unwrap_or_default(),
        Some(BrowseCommand::Quit) => "quit".to_owned(),
        Some(BrowseCommand::Read(BrowseRequest::Find(text))) => format!("find {text}"),
        Some(BrowseCommand::Read(BrowseRequest::Compare(names))) => names.join(" to "),
        Some(BrowseCommand::Read(BrowseRequest::Turn(..))) => "turn".to_owned(),
        Some(BrowseCommand::Do(BrowseAction::Branch(turn))) => format!("branch {turn}"),
        Some(BrowseCommand::Do(BrowseAction::Undo(turn))) => format!("undo {turn}"),
        Some(BrowseCommand::Do(BrowseAction::Restore(turn))) => format!("restore {turn}"),
        Some(BrowseCommand::Do(BrowseAction::Land(turn))) => format!("land {turn}"),
        Some(BrowseCommand::Do(BrowseAction::Review(session))) => format!("review {session}"),
        Some(BrowseCommand::Do(BrowseAction::Open(file))) => file.path.clone(),
        Some(BrowseCommand::Do(BrowseAction::Copy(id))) => format!("copy {}", &id[..8]),
    };
    assert_eq!(outcome, expected, "{keys:?}");
}

#[test]
fn a_key_says_what_is_to_be_done_with_the_turn_under_the_cursor() {
    check("r", "restore demo:3");
    check("jr", "restore demo:2");
    check("ju", "undo demo:2");
    check("jl", "land demo:2");
    check("jb", "branch demo:2");
    check("y", "copy 9e3779b4");
    check("q", "quit");
    check("\nq", "");
    check("\nqq", "quit");
    check("/greet\n", "find greet");
    check("e", "the turn changed no file");
}

#[test]
fn a_turn_of_another_session_is_not_undone() {
    let why = "turn other:2 is not one of the session in use: only its turns can be";
    let to_other = "jj\nj";
    check(&format!("{to_other}r"), "restore other:2");
    check(
        &format!("{to_other}u"),
        &format!("{why} undone in it; r restores to any turn"),
    );
    check(
        &format!("{to_other}l"),
        &format!("{why} landed; `teddy switch` goes to another session"),
    );
}

#[test]
fn two_marked_turns_are_compared() {
    check("mjmC", "demo:3 to demo:2");
    check("mjC", "demo:3 to demo:2");
    check("mC", "mark a turn with m, and go to another one");
    check("mmjC", "mark a turn with m, and go to another one");
    check("mjmjjmC", "demo:2 to demo:1");
}

#[test]
fn a_comment_goes_to_the_plan_that_waits_in_the_session() {
    check("c", "review demo");
    check("jdc", "review demo");
}

#[test]
fn a_turn_is_read_once_and_the_last_one_only() {
    let mut browser = browser();
    let Some(BrowseRequest::Turn(_, commit)) = browser.next_request() else {
        panic!("the newest turn is to be read");
    };
    assert_eq!(browser.next_request(), None);
    browser.learn(BrowseNews::Turn(commit, Err("it is gone".to_owned())));
    assert_eq!(browser.next_request(), None);
    browser.refresh(40);
    assert_eq!(browser.lines[0].line.text(), "! it is gone");

    browser.learn(BrowseNews::Trouble(Some("it is away".to_owned())));
    assert_eq!(browser.next_request(), None);
    browser.learn(BrowseNews::Trouble(None));
    assert!(
        browser.next_request().is_some(),
        "what could not be read is not tried again"
    );

    press(&mut browser, "j");
    assert!(browser.next_request().is_some());
    browser.refresh(40);
    assert_eq!(browser.lines[0].line.text(), "Reading…");
}

#[test]
fn a_new_turn_does_not_move_a_reader() {
    let newest = |keys: &str, scrolled: isize| {
        let mut browser = browser();
        press(&mut browser, keys);
        browser.detail.restart(40);
        browser.detail.scroll(scrolled);
        let mut sessions = vec![lane("demo", numbered(0..5))];
        sessions[0].in_use = true;
        browser.learn(BrowseNews::Timeline(Timeline { sessions }, true));
        browser.address().unwrap().to_string()
    };
    assert_eq!(newest("", 0), "demo:3");
    assert_eq!(newest("\n", 0), "demo:3");
    assert_eq!(newest("", 10), "demo:3");
    // The row of a session shows its newest turn.
    assert_eq!(newest("g", 0), "demo:4");
    assert_eq!(newest("g", 10), "demo:3");
}

#[test]
fn a_search_goes_from_turn_to_turn() {
    let mut browser = browser();
    let other = row(2, "Another way", Status::Executed).commit;
    let turns = vec![(numbered(1..2)[0].commit, "plan.md:3: way".to_owned())];
    browser.learn(BrowseNews::Matches("way".to_owned(), Ok(turns)));
    assert_eq!(browser.address().unwrap().to_string(), "demo:1");
    assert_eq!(
        browser.detail.notice.as_deref(),
        Some("1 of 2 turns with `way`: plan.md:3: way")
    );
    press(&mut browser, "n");
    assert_eq!(browser.commit(), Some(other));
    assert_eq!(
        browser.detail.notice.as_deref(),
        Some("2 of 2 turns with `way`: in the title")
    );
    press(&mut browser, "n");
    assert_eq!(browser.address().unwrap().to_string(), "demo:1");

    browser.learn(BrowseNews::Matches("none".to_owned(), Ok(Vec::new())));
    let notice = browser.detail.notice.clone();
    assert_eq!(notice.as_deref(), Some("`none` was found nowhere"));
}

#[test]
fn tabs_and_sides_change_by_keys() {
    let mut browser = browser();
    press(&mut browser, "\t");
    assert_eq!(browser.tab, BrowseTab::Difference);
    press(&mut browser, "4");
    assert_eq!(
        (browser.tab, browser.side),
        (BrowseTab::Input, BrowseSide::Tree)
    );
    press(&mut browser, "d");
    assert_eq!(
        (browser.tab, browser.side),
        (BrowseTab::Difference, BrowseSide::Detail)
    );
    press(&mut browser, "z<");
    assert_eq!((browser.is_zoomed, browser.side), (false, BrowseSide::Tree));
}
