//! Tests of rows and cursor.

use super::*;
use crate::session::meta::Status;
use crate::ui::browse::sample::{lane, numbered, row};

fn render(tree: &BrowseTree) -> Vec<String> {
    let rows = tree.rows().iter().enumerate();
    let line = |(at, row): (usize, &TreeRow)| {
        let lane = tree.lane(row);
        let label = match row.item {
            TreeItem::Session => lane.name.to_string(),
            TreeItem::Damaged => "ailing".to_owned(),
            TreeItem::Turn(turn) => lane.rows[turn].number.to_string(),
            TreeItem::Restores(_, count) => format!("{count} restores"),
        };
        let mark = if at == tree.list.cursor() { ">" } else { "" };
        format!("{mark}{}{label}", " ".repeat(row.depth))
    };
    rows.map(line).collect()
}

fn branched() -> Timeline {
    let child = |name, from| SessionLane {
        parent: Some(from),
        rows: vec![row(9, name, Status::Executed)],
        ..lane(name, Vec::new())
    };
    let demo = SessionName::parse("demo").unwrap();
    let other = SessionName::parse("other").unwrap();
    let mut sessions = vec![
        lane("demo", numbered(0..4)),
        child("other", (demo, 2)),
        child("third", (other, 9)),
    ];
    sessions[0].in_use = true;
    Timeline { sessions }
}

fn tree(timeline: Timeline) -> BrowseTree {
    let mut tree = BrowseTree::default();
    tree.fit(5);
    tree.learn(timeline, false);
    tree
}

#[test]
fn a_branch_stands_above_the_turn_that_it_left() {
    let mut tree = tree(branched());
    assert_eq!(
        render(&tree),
        ["demo", ">3", " other", "  third", "2", "1", "0"]
    );
    tree.list.step(1);
    assert!(tree.fold(None));
    assert_eq!(
        render(&tree),
        ["demo", "3", "> other", "  third", " 9", "2", "1", "0"]
    );
    tree.list.step(2);
    assert!(tree.fold(Some(false)));
    assert!(tree.fold(Some(false)));
    assert_eq!(
        render(&tree),
        ["demo", "3", "> other", "  third", "2", "1", "0"]
    );
}

#[test]
fn the_sessions_before_the_one_in_use_are_open() {
    let mut timeline = branched();
    timeline.sessions[0].in_use = false;
    timeline.sessions[1].in_use = true;
    let tree = tree(timeline);
    assert_eq!(
        render(&tree),
        ["demo", "3", " other", "  third", "> 9", "2", "1", "0"]
    );
    let [demo, other] = ["demo", "other"].map(|name| SessionName::parse(name).unwrap());
    assert!(tree.is_before_in_use(&demo, 2) && tree.is_before_in_use(&other, 9));
    assert!(!tree.is_before_in_use(&demo, 3));
}

/// Bug: the browser that prints line by line followed such parents without end.
#[test]
fn parents_that_form_a_cycle_end() {
    let mut timeline = branched();
    timeline.sessions[0].parent = Some((timeline.sessions[1].name.clone(), 9));
    assert_eq!(timeline.ancestry(0).count(), timeline.sessions.len());
}

#[test]
fn a_session_stands_for_its_newest_turn_be_it_a_shared_one() {
    let mut timeline = branched();
    timeline.sessions[1].rows.clear();
    timeline.sessions[2].rows.clear();
    timeline.sessions[2].parent.as_mut().unwrap().1 = 1;
    let mut tree = tree(timeline);
    let mut check = |step, expected: &str| {
        tree.list.step(step);
        let (lane, row) = tree.selected().unwrap();
        assert_eq!(format!("{}:{}", lane.name, row.number), expected);
    };
    check(0, "demo:3");
    check(1, "demo:2");
    check(1, "demo:1");
    check(-3, "demo:3");
}

#[test]
fn restores_in_a_row_are_one_row_until_they_are_opened() {
    let mut rows = numbered(0..6);
    for row in &mut rows[1..4] {
        row.status = Status::Restored;
    }
    let mut tree = tree(Timeline {
        sessions: vec![lane("demo", rows.clone())],
    });
    assert_eq!(render(&tree), ["demo", ">5", "3 restores", "1", "0"]);
    assert!(tree.go_to(rows[2].commit));
    assert_eq!(render(&tree), ["demo", "5", "4", ">3", "2", "1", "0"]);
}

#[test]
fn the_cursor_stays_on_its_turn_and_a_session_shows_its_newest() {
    let mut tree = tree(branched());
    let mut longer = branched();
    longer.sessions[0].rows = numbered(0..6);
    tree.learn(longer.clone(), false);
    assert_eq!(tree.selected().unwrap().1.number, 3);

    tree.list.step(-9);
    assert_eq!(tree.selected().unwrap().1.number, 5);
    longer.sessions[0].rows = numbered(0..8);
    tree.learn(longer, false);
    assert_eq!(tree.selected().unwrap().1.number, 7);
}

#[test]
fn the_turn_that_is_read_stays_selected() {
    let mut tree = tree(branched());
    let mut longer = branched();
    longer.sessions[0].rows = numbered(0..6);
    tree.learn(longer.clone(), true);
    assert_eq!(tree.selected().unwrap().1.number, 3);

    // The row of a session counts as its newest turn.
    tree.list.step(-9);
    assert_eq!(tree.selected().unwrap().1.number, 5);
    longer.sessions[0].rows = numbered(0..8);
    tree.learn(longer.clone(), true);
    assert_eq!(tree.selected().unwrap().1.number, 5);

    // A group of restores grows.
    let restored = |numbers| {
        let mut rows = numbered(numbers);
        let newer = rows.iter_mut().filter(|row| row.number > 5);
        newer.for_each(|row| row.status = Status::Restored);
        rows
    };
    longer.sessions[0].rows = restored(0..8);
    tree.learn(longer.clone(), false);
    tree.list.step(-1);
    assert_eq!(tree.selected().unwrap().1.number, 7);
    longer.sessions[0].rows = restored(0..9);
    tree.learn(longer, true);
    assert_eq!(tree.selected().unwrap().1.number, 7);
}

#[test]
fn the_cursor_is_always_on_the_screen() {
    let mut tree = tree(Timeline {
        sessions: vec![lane("demo", numbered(0..10_000))],
    });
    for by in [7, -3, isize::MAX / 2, -4, isize::MIN / 2] {
        tree.list.step(by);
        let visible = tree.list.visible();
        assert!(
            visible.contains(&tree.list.cursor()) && visible.len() == 5,
            "{by}"
        );
    }
    tree.learn(Timeline::default(), false);
    assert_eq!((tree.rows().len(), tree.selected().is_none()), (0, true));
}

#[test]
fn a_session_that_branches_off_from_itself_is_shown_once() {
    let mut timeline = branched();
    let third = SessionName::parse("third").unwrap();
    timeline.sessions[1].parent = Some((third, 9));
    let tree = tree(timeline);
    assert_eq!(
        render(&tree),
        ["demo", ">3", "2", "1", "0", "other", " third"]
    );
}

#[test]
fn a_title_is_found_in_every_session() {
    let tree = tree(branched());
    assert_eq!(tree.titled("OTHER").count(), 1);
    assert_eq!(tree.titled("turn").count(), 4);
}
