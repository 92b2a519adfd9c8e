//! Tests of keys and the validations they cause, of previews, and of the help.

use super::*;
use crate::plan::action::ActionKind;
use crate::ui::sample;

fn previewed(sample: &sample::Sample, keys: &[Key]) -> String {
    let proposal = sample.proposal();
    let mut modify = Modify::new(&proposal);
    for key in keys {
        modify.take(key, &proposal).unwrap();
    }
    let lines = modify.preview(60, &proposal).unwrap();
    lines.iter().map(|line| line.text() + "\n").collect()
}

#[test]
fn a_long_list_is_judged_when_it_is_switched_and_not_when_it_is_read() {
    let sample = sample::many(500);
    let proposal = sample.proposal();
    let mut modify = Modify::new(&proposal);
    for key in [
        Key::Down,
        Key::PageDown,
        Key::End,
        Key::Up,
        Key::Char('/'),
        Key::Char('9'),
        Key::Enter,
        Key::Char('n'),
    ] {
        modify.take(&key, &proposal).unwrap();
        modify.preview(60, &proposal).unwrap();
    }

    assert_eq!(sample.revised.get(), 0, "moving costs no judgement");
    modify.take(&Key::Char(' '), &proposal).unwrap();
    modify.take(&Key::Char('*'), &proposal).unwrap();
    assert_eq!(
        sample.revised.get(),
        2,
        "a switch costs one, however many it switches"
    );
}

#[test]
fn a_command_is_granted_the_network_and_nothing_else_is() {
    let sample = sample::bootstrap();
    let proposal = sample.proposal();
    let mut modify = Modify::new(&proposal);
    let items = modify.list.items.iter();
    let granted = |modify: &Modify| {
        let approved = modify.approved();
        let actions = approved.plan.actions.iter();
        let commands = actions.filter_map(|action| action.kind.command());
        let text = crate::plan::render(&approved.plan);
        let count = commands.filter(|command| command.network).count();
        assert_eq!(text.matches("- **Network:** true").count(), count, "{text}");
        (count, approved.modified.len())
    };
    let rows = items.count() + 2;
    for _ in 0..rows {
        modify.take(&Key::Char('i'), &proposal).unwrap();
        modify.take(&Key::Down, &proposal).unwrap();
    }
    let commands = sample.plan.actions.iter();
    let commands = commands.filter(|action| action.kind.command().is_some());
    assert_eq!(granted(&modify).0, commands.count());
    assert!(granted(&modify).0 > 0 && granted(&modify).0 == granted(&modify).1);

    modify.take(&Key::Home, &proposal).unwrap();
    for _ in 0..rows {
        modify.take(&Key::Char('i'), &proposal).unwrap();
        modify.take(&Key::Down, &proposal).unwrap();
    }
    assert_eq!(granted(&modify), (0, 0));
    assert!(!modify.is_changed());
}

#[test]
fn what_was_changed_goes_back_to_what_was_proposed() {
    let sample = sample::bootstrap();
    let proposal = sample.proposal();
    let mut modify = Modify::new(&proposal);
    modify.draft.change_memo(
        0,
        crate::plan::memo::MemoChange {
            text: "Mine.".to_owned(),
            ..sample.plan.memos[0].clone()
        },
    );
    modify.renew(0, &proposal).unwrap();
    assert!(modify.is_changed() && modify.list.items[0].modified);
    modify.take(&Key::Char('u'), &proposal).unwrap();
    assert!(!modify.is_changed());

    assert_eq!(
        modify.draft.approved(&modify.list),
        Approved::all(&sample.plan)
    );
}

#[test]
fn a_preview_is_made_once_for_each_row() {
    let sample = sample::many(3);
    let proposal = sample.proposal();
    let mut modify = Modify::new(&proposal);
    let first = modify.preview(60, &proposal).unwrap();
    modify.take(&Key::Down, &proposal).unwrap();
    assert!(!Rc::ptr_eq(&first, &modify.preview(60, &proposal).unwrap()));
    modify.take(&Key::Up, &proposal).unwrap();

    assert!(Rc::ptr_eq(&first, &modify.preview(60, &proposal).unwrap()));
}

#[test]
fn a_long_preview_is_cut_beside_the_list_and_whole_on_the_full_screen() {
    let text: String = (0..MAX_BESIDE + 10)
        .map(|n| format!("echo {n}\n"))
        .collect();
    let sample = sample::command(&text);
    let preview = previewed(&sample, &[]);
    assert!(
        preview.ends_with("… (v) shows the rest\n") && preview.lines().count() == MAX_BESIDE + 1,
        "{}",
        preview.lines().count()
    );
    let proposal = sample.proposal();
    let mut modify = Modify::new(&proposal);
    let row = modify.list.row().unwrap();

    assert!(modify.whole_preview(row, &proposal).unwrap().len() >= MAX_BESIDE + 10);
}

#[test]
fn a_resource_is_shown_with_nothing_hidden() {
    let head = "# T\n- **Status:** Green 🟢\n- **Plan Type:** Implementation\n- **Agent:** Pathfinder\n\n## Rationale\n````text\nr\n````\n\n## Action Plan\n\n";
    let read = "### `READ`\n- **Resource:** [a.txt](/a.txt)\n- **Description:** See.\n";
    let sample = sample::Sample::new(&format!("{head}{read}"), &[("a.txt", "one\u{202e}\ntwo\n")]);
    insta::assert_snapshot!(previewed(&sample, &[]), @r"
    See.

    a.txt joins the context of the next turn

    one\u{202e}
    two
    ");
    let long: String = (0..1200).map(|n| format!("{n}\n")).collect();
    let sample = sample::Sample::new(&format!("{head}{read}"), &[("a.txt", &long)]);

    assert!(previewed(&sample, &[]).ends_with("\n999\n… and 200 lines more\n"));
}

#[test]
fn a_resource_that_the_plan_writes_is_shown_as_the_plan_leaves_it() {
    let head = "# T\n- **Status:** Green 🟢\n- **Plan Type:** Implementation\n- **Agent:** Pathfinder\n\n## Rationale\n````text\nr\n````\n\n## Action Plan\n\n";
    let actions = "### `CREATE`\n- **File Path:** [b](/b)\n- **Description:** Make.\n````\nnew\n````\n\n### `READ`\n- **Resource:** [b](/b)\n- **Description:** See.\n";
    let sample = sample::Sample::new(&format!("{head}{actions}"), &[]);
    assert!(
        previewed(&sample, &[Key::Down]).ends_with("as action 1 of this plan leaves it:\nnew\n")
    );
    let off = previewed(&sample, &[Key::Char(' '), Key::Down]);

    assert!(
        off.contains("it is not in the snapshot of your files"),
        "{off}"
    );
}

#[test]
fn the_bytes_of_one_or_all_files_can_be_kept_and_replaced_again() {
    let head = "# T\n\n## Rationale\n````\nr\n````\n\n## Action Plan\n\n";
    let create = |path: &str, text: &str| {
        format!(
            "### `CREATE`\n- **File Path:** [{path}](/{path})\n- **Description:** d\n- **Overwrite:** true\n````\n{text}````\n\n"
        )
    };
    let text = [
        head,
        &create("dos.txt", "one\nthree\n"),
        &create("marked.txt", "x\ny\n"),
        &create("other.txt", "other\n"),
    ]
    .concat();
    let files = [
        ("dos.txt", "one\r\ntwo\r\n"),
        ("marked.txt", "\u{feff}x\n"),
        ("other.txt", "same\n"),
    ];
    let sample = sample::Sample::new(&text, &files);
    let proposal = sample.proposal();
    let mut modify = Modify::new(&proposal);
    let texts = |modify: &Modify| {
        let steps = modify.draft.steps.iter();
        let texts = steps.map(|step| String::from_utf8(step.after.clone().unwrap()).unwrap());
        texts.collect::<Vec<_>>()
    };
    let proposed = texts(&modify);
    let kept = ["one\r\nthree\r\n", "\u{feff}x\ny\n", "other\n"];

    modify.take(&Key::Char('B'), &proposal).unwrap();
    assert_eq!(texts(&modify), [kept[0], "x\ny\n", "other\n"]);
    modify.take(&Key::Char('B'), &proposal).unwrap();
    assert_eq!(texts(&modify), proposed);
    assert!(!modify.is_changed());

    modify.take(&Key::Home, &proposal).unwrap();
    modify.take(&Key::Char('B'), &proposal).unwrap();
    assert_eq!(texts(&modify), kept);
    assert_eq!(modify.list.list.notice, None);
    modify.take(&Key::Char('B'), &proposal).unwrap();
    assert_eq!(texts(&modify), kept);
    assert_eq!(
        modify.list.list.notice.as_deref(),
        Some("no file has bytes to keep")
    );
    modify.take(&Key::End, &proposal).unwrap();
    modify.take(&Key::Char('B'), &proposal).unwrap();
    assert_eq!(
        modify.list.list.notice.as_deref(),
        Some("the plan changes no encoding, line ends or mode that can be kept")
    );
}

#[test]
fn bytes_that_are_not_kept_any_more_leave_the_pairs_switched_as_they_were() {
    let pair = |find: &str, replace: &str| {
        format!("`FIND:`\n````\n{find}\n````\n`REPLACE:`\n````\n{replace}\n````\n")
    };
    let text = format!(
        "# T\n\n## Rationale\n````\nr\n````\n\n## Action Plan\n\n### `EDIT`\n- **File Path:** [a](/a)\n- **Description:** d\n\n{}{}\n",
        pair("\u{feff}one", "1"),
        pair("two", "2")
    );
    let sample = sample::Sample::new(&text, &[("a", "\u{feff}one\ntwo\n")]);
    let proposal = sample.proposal();
    let mut modify = Modify::new(&proposal);
    modify.list.items[0].pairs[1].on = false;
    modify.validate(&proposal).unwrap();
    let before = modify.draft.approved(&modify.list);

    modify.take(&Key::Home, &proposal).unwrap();
    modify.take(&Key::Down, &proposal).unwrap();
    modify.take(&Key::Char('B'), &proposal).unwrap();
    assert_eq!(
        modify.draft.steps[0].after.as_deref(),
        Some("\u{feff}1\ntwo\n".as_bytes())
    );
    modify.take(&Key::Char('B'), &proposal).unwrap();
    assert_eq!(modify.draft.approved(&modify.list), before);
}

#[test]
fn only_what_was_changed_in_the_text_of_the_plan_counts_as_changed() {
    let sample = sample::bootstrap();
    let proposal = sample.proposal();
    let mut modify = Modify::new(&proposal);
    let memo = &sample.plan.memos[0].text;
    let text = format!("\n\n{}", proposal.text.replacen(memo, "Mine.", 1));
    modify.take_plan(&text, &proposal).unwrap().unwrap();

    let approved = modify.draft.approved(&modify.list);
    assert_eq!(approved.plan.memos[0].text, "Mine.");
    assert!(approved.modified.is_empty());
    assert_eq!(approved.plan.actions, sample.plan.actions);
}

#[test]
fn promise_a6_what_fits_is_switched_as_it_was_and_what_does_not_is_named() {
    let head = "# T\n\n## Rationale\n````\nr\n````\n\n## Action Plan\n\n";
    let pair = |find: &str| format!("`FIND:`\n````\n{find}\n````\n`REPLACE:`\n````\nx\n````\n");
    let edit = format!(
        "### `EDIT`\n- **File Path:** [a](/a)\n- **Description:** d\n\n{}{}\n",
        pair("one"),
        pair("two")
    );
    let create = |path: &str| {
        format!(
            "### `CREATE`\n- **File Path:** [{path}](/{path})\n- **Description:** d\n````\nx\n````\n\n"
        )
    };

    let text = [head, &edit, &create("b"), &create("c"), &create("d")].concat();
    let before = sample::Sample::new(&text, &[("a", "one\ntwo\n")]);
    let mut earlier = Approved::all(&before.plan);
    earlier.actions[3] = false;

    // In the meantime, `two` was changed and `b` was created.
    let sample = sample::Sample::unfit(&text, &[("a", "one\nthree\n"), ("b", "mine\n")]);
    let proposal = ReviewRequest {
        earlier: Some(&earlier),
        ..sample.proposal()
    };
    let mut modify = Modify::new(&proposal);
    let misfits = modify.leave_out_misfits(&proposal).unwrap();

    assert_eq!(
        misfits,
        [
            "EDIT a: FIND 2 of 2 is not in `a`",
            "CREATE b: `b` already exists",
        ]
    );
    let approved = modify.approved();
    assert_eq!(approved.actions, [true, false, true, false]);
    let ActionKind::Edit(edit) = &approved.plan.actions[0].kind else {
        panic!("{approved:?}");
    };

    assert_eq!(edit.pairs.len(), 1);
    assert_eq!(
        modify.leave_out_misfits(&proposal).unwrap(),
        Vec::<String>::new()
    );
}

/// Regression: an EDIT that runs without one of its pairs was not counted.
#[test]
fn an_edit_without_one_of_its_pairs_is_changed() {
    let head = "# T\n\n## Rationale\n````\nr\n````\n\n## Action Plan\n";
    let pair =
        |find: &str| format!("`FIND:`\n````\n{find}\n````\n`REPLACE:`\n````\nx{find}\n````\n");
    let edit = "### `EDIT`\n- **File Path:** [a](/a)\n- **Description:** d\n\n";
    let text = [head, edit, &pair("one"), &pair("two")].concat();
    let sample = sample::Sample::new(&text, &[("a", "one\ntwo\n")]);
    let proposal = sample.proposal();
    let mut modify = Modify::new(&proposal);
    for key in [Key::Down, Key::Char('l'), Key::Down, Key::Char(' ')] {
        modify.take(&key, &proposal).unwrap();
    }
    assert_eq!(
        modify.approved().plan.actions[0]
            .kind
            .pairs()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(modify.count_changed_and_off(), (1, 0));
}

#[test]
fn the_help_and_the_page_of_the_review_name_the_same_keys() {
    let page = include_str!("../../../docs/review.md");
    let table = page
        .split("## All keys")
        .nth(1)
        .and_then(|section| section.split("\n## ").next())
        .unwrap();
    let rows: Vec<(&str, &str)> = table
        .lines()
        .filter_map(|line| {
            line.strip_prefix("| ")?
                .strip_suffix(" |")?
                .split_once(" | ")
        })
        .filter(|(keys, _)| *keys != "key" && !keys.starts_with('-'))
        .map(|(keys, meaning)| (keys.trim_matches('`'), meaning))
        .collect();
    let help: Vec<(&str, &str)> = HELP
        .iter()
        .copied()
        .filter(|(keys, _)| !keys.is_empty())
        .collect();

    assert_eq!(rows, help);
}
