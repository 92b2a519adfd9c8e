//! Tests of keys and switches.

use super::*;

fn list() -> Checklist {
    let pairs = ["one", "two", "three"].map(StyledLine::plain).to_vec();
    let item = |part, label: &str, pairs| Item::new(part, StyledLine::plain(label), pairs);
    let mut list = Checklist::new(vec![
        item(ItemPart::Memo(0), "ADD: a memo", Vec::new()),
        item(ItemPart::Action(0), "EDIT: a.rs", pairs),
        item(ItemPart::Action(1), "EXECUTE: make", Vec::new()),
    ]);
    list.list.fit(list.rows().len(), 20);
    list
}

/// Presses keys: `\n` is enter, `\t` is tab, `^` is home, `$` is end.
fn press(mut list: Checklist, keys: &str) -> (Checklist, Option<ChecklistCommand>) {
    let key = |c| match c {
        '\n' => Key::Enter,
        '\t' => Key::Tab,
        '^' => Key::Home,
        '$' => Key::End,
        c => Key::Char(c),
    };
    let command = keys.chars().fold(None, |_, c| list.press(&key(c)));
    (list, command)
}

fn render(list: &Checklist) -> String {
    let switch = |on| if on { "[x]" } else { "[ ]" };
    let row = |(at, row): (usize, &ChecklistRow)| {
        let cursor = if at == list.list.cursor() { ">" } else { " " };
        match *row {
            ChecklistRow::Memos => format!("{cursor}Memos"),
            ChecklistRow::Actions => format!("{cursor}Actions"),
            ChecklistRow::Item(index) => format!(
                "{cursor}{} {}",
                switch(list.items[index].on),
                list.items[index].label.text()
            ),
            ChecklistRow::Pair(index, pair) => {
                let pair = &list.items[index].pairs[pair];
                format!("{cursor}  {} {}", switch(pair.on), pair.label.text())
            }
        }
    };
    list.rows()
        .iter()
        .enumerate()
        .map(row)
        .collect::<Vec<_>>()
        .join("\n")
}

fn check(keys: &str, expected: &str, act: Option<ChecklistCommand>) {
    let (list, command) = press(list(), keys);
    assert_eq!(
        (render(&list).as_str(), command),
        (expected, act),
        "after {keys:?}"
    );
}

#[test]
fn the_cursor_starts_on_the_first_item_and_stops_at_both_ends() {
    check(
        "",
        " Memos\n>[x] ADD: a memo\n Actions\n [x] EDIT: a.rs\n [x] EXECUTE: make",
        None,
    );
    check(
        "kkk",
        ">Memos\n [x] ADD: a memo\n Actions\n [x] EDIT: a.rs\n [x] EXECUTE: make",
        None,
    );
    check(
        "jjjjjj",
        " Memos\n [x] ADD: a memo\n Actions\n [x] EDIT: a.rs\n>[x] EXECUTE: make",
        None,
    );
}

#[test]
fn space_switches_the_item() {
    check(
        " ",
        " Memos\n>[ ] ADD: a memo\n Actions\n [x] EDIT: a.rs\n [x] EXECUTE: make",
        Some(ChecklistCommand::Changed),
    );
    check(
        "  ",
        " Memos\n>[x] ADD: a memo\n Actions\n [x] EDIT: a.rs\n [x] EXECUTE: make",
        Some(ChecklistCommand::Changed),
    );
}

#[test]
fn all_are_switched_on_unless_all_are_on() {
    check(
        "*",
        " Memos\n>[ ] ADD: a memo\n Actions\n [ ] EDIT: a.rs\n [ ] EXECUTE: make",
        Some(ChecklistCommand::Changed),
    );
    check(
        "$ *",
        " Memos\n [x] ADD: a memo\n Actions\n [x] EDIT: a.rs\n>[x] EXECUTE: make",
        Some(ChecklistCommand::Changed),
    );
}

#[test]
fn a_heading_switches_its_section() {
    check(
        "j ",
        " Memos\n [x] ADD: a memo\n>Actions\n [ ] EDIT: a.rs\n [ ] EXECUTE: make",
        Some(ChecklistCommand::Changed),
    );
}

#[test]
fn pairs_open_switch_and_close() {
    check(
        "jj\tj ",
        " Memos\n [x] ADD: a memo\n Actions\n [x] EDIT: a.rs\n>  [ ] one\n   [x] two\n   [x] three\n [x] EXECUTE: make",
        Some(ChecklistCommand::Changed),
    );
    check(
        "jjljjh",
        " Memos\n [x] ADD: a memo\n Actions\n>[x] EDIT: a.rs\n [x] EXECUTE: make",
        None,
    );
}

#[test]
fn an_edit_without_pairs_is_off_and_comes_back_whole() {
    let (list, _) = press(list(), "jjlj j j ");
    assert!(!list.items[1].on);
    let (list, _) = press(list, "kkk ");
    assert!(list.items[1].is_whole());
}

#[test]
fn one_pair_of_an_edit_that_is_off_brings_that_pair_alone() {
    let (list, _) = press(list(), "jj ljj ");
    assert_eq!(
        list.items[1]
            .pairs
            .iter()
            .map(|pair| pair.on)
            .collect::<Vec<_>>(),
        [false, true, false]
    );
    assert!(list.items[1].on);
}

#[test]
fn a_list_with_a_problem_does_not_run() {
    let mut list = list();
    list.items[1].pairs[2].problem = Some("three needs one".to_owned());
    let (list, act) = press(list, "a");
    assert_eq!(
        (act, list.list.notice.as_deref()),
        (None, Some("cannot run: three needs one"))
    );
    let (list, _) = press(list, "jj ");

    assert_eq!(press(list, "a").1, Some(ChecklistCommand::Run));
}

#[test]
fn keys_ask_for_acts() {
    for (keys, act) in [
        ("a", ChecklistCommand::Run),
        ("\n", ChecklistCommand::Run),
        ("s", ChecklistCommand::Skip),
        ("m", ChecklistCommand::Back),
        ("q", ChecklistCommand::Quit),
        ("jjf", ChecklistCommand::EditPath(1)),
        ("p", ChecklistCommand::Edit(0)),
        ("jjp", ChecklistCommand::Edit(1)),
        ("v", ChecklistCommand::Preview),
        ("?", ChecklistCommand::Help),
    ] {
        assert_eq!(press(list(), keys).1, Some(act), "for {keys}");
    }

    assert_eq!(press(list(), "kp").1, None);
    assert_eq!(press(list(), "u").1, None);
    let mut list = list();
    list.items[0].modified = true;
    assert_eq!(press(list, "u").1, Some(ChecklistCommand::Undo(0)));
}

#[test]
fn a_search_goes_on_and_back_and_says_when_there_is_nothing() {
    assert_eq!(press(list(), "/MAKE\n").0.list.cursor(), 4);
    assert_eq!(press(list(), "/a\nn").0.list.cursor(), 3);
    assert_eq!(press(list(), "/a\nnN").0.list.cursor(), 1);
    assert_eq!(
        press(list(), "/zzz\n").0.list.notice.as_deref(),
        Some("`zzz` was not found")
    );
}

#[test]
fn another_row_shows_its_preview_from_the_start() {
    let top = |keys| {
        let mut list = list();
        list.preview.fit(15, 10);
        press(list, keys).0.preview.visible().start
    };
    assert_eq!(top("JJJK"), 2);
    assert_eq!(top("JJJJJJJJ"), 5);
    assert_eq!(top("JJj"), 0);
}

#[test]
fn an_empty_list_takes_every_key() {
    let (list, act) = press(Checklist::new(Vec::new()), "jk *\t/x\nnNgGJK");
    assert_eq!((list.list.cursor(), act), (0, None));
}
