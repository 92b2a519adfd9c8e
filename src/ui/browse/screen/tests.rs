//! Snapshots of the screen at several sizes.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::query::view::timeline::{SessionLane, Timeline};
use crate::session::input::ResourceTokens;
use crate::session::meta::Status;
use crate::session::name::SessionName;
use crate::ui::browse::sample::{lane, row};
use crate::ui::browse::source::BrowseNews;
use crate::ui::browse::turn_view::TurnView;
use crate::ui::key::Key;
use crate::ui::sample::rendered;
use crate::ui::style::block;

fn timeline() -> Timeline {
    let demo = SessionName::parse("demo").unwrap();
    let rows = vec![
        row(6, "Land turns 1 to 3", Status::Landed),
        row(5, "Restore 3: Greet by name", Status::Restored),
        row(4, "Undo 4: Shout", Status::Restored),
        row(3, "Greet by \u{1b}[31mname\u{202e}", Status::Executed),
        row(2, "Greet in every language that there is", Status::Failed),
        row(1, "日本語で挨拶する", Status::Executed),
        row(0, "Start session demo", Status::Started),
    ];
    let other = SessionLane {
        parent: Some((demo, 2)),
        ailing: Some("commit 0000 is not a turn of a session".to_owned()),
        ..lane("other", vec![row(3, "Another way", Status::Rejected)])
    };
    let mut sessions = vec![lane("demo", rows), other];
    sessions[0].in_use = true;
    Timeline { sessions }
}

fn screen(size: (u16, u16), keys: &[Key]) -> String {
    let mut browser = Browser::default();
    browser.learn(BrowseNews::Timeline(timeline(), true));
    let commit = browser.commit().unwrap();
    let turn_view = TurnView {
        head: vec![StyledLine::of(Tone::Accent, "turn demo:6")],
        message: block(Tone::Plain, "Land what was done"),
        answer: block(Tone::Plain, "# Land\n\nIt is done."),
        input: vec![ResourceTokens {
            name: "src/greet.rs".to_owned(),
            tokens: Some(1200),
            note: None,
        }],
        ..TurnView::default()
    };
    browser.learn(BrowseNews::Turn(commit, Ok(Box::new(turn_view))));
    let area = Rect::new(0, 0, size.0, size.1);
    fit(&mut browser, area);
    for key in keys {
        let _ = browser.press(key);
        fit(&mut browser, area);
    }

    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal
        .draw(|frame| draw(frame, &browser, "Sessions of greet", Paint::Bare))
        .unwrap();
    rendered(&terminal)
}

#[test]
fn a_common_terminal_has_the_tree_beside_the_turn() {
    insta::assert_snapshot!(screen((80, 24), &[]));
}

#[test]
fn a_small_terminal_has_the_tree_above_the_turn() {
    insta::assert_snapshot!(screen((60, 20), &[Key::Down, Key::Char('m')]));
}

#[test]
fn a_tiny_terminal_has_one_of_them() {
    insta::assert_snapshot!(screen((20, 5), &[]));
    insta::assert_snapshot!(screen((20, 5), &[Key::Enter]));
}

#[test]
fn the_input_and_the_help_have_screens_of_their_own() {
    insta::assert_snapshot!(screen((60, 20), &[Key::Char('4'), Key::Char('z')]));
    insta::assert_snapshot!(screen((80, 30), &[Key::Char('?')]));
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    for (width, height) in [
        (1, 1),
        (2, 3),
        (5, 2),
        (20, 5),
        (76, 4),
        (200, 60),
        (300, 1),
    ] {
        for key in ['j', 'd', 'z', '/', '?', '4'] {
            screen((width, height), &[Key::Char(key)]);
        }
    }
}

#[test]
fn nothing_that_others_wrote_steers_the_terminal() {
    let output = screen((100, 24), &[]);
    assert!(
        output.contains("\\u{1b}[31mname") && !output.contains('\u{202e}'),
        "{output}"
    );
}
