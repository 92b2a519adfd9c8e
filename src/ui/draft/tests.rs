//! Tests of edits, switches and their validation.

use super::super::key::Key;
use super::super::sample;
use super::*;
use crate::plan::samples::actions::{create, execute};

/// Presses keys on the list of the bootstrap sample and validates the result.
fn validated(keys: &[Key]) -> (EditedPlan, Checklist) {
    let sample = sample::bootstrap();
    let proposal = sample.proposal();
    let mut draft = EditedPlan::new(&proposal);
    let mut list = Checklist::new(draft.items());
    for key in keys {
        list.press(key);
    }

    draft.validate(&mut list, &proposal).unwrap();
    (draft, list)
}

#[test]
fn an_untouched_list_approves_the_plan_as_it_is() {
    let (draft, list) = validated(&[]);
    assert_eq!(
        draft.approved(&list),
        Approved::all(&sample::bootstrap().plan)
    );
}

#[test]
fn a_pair_that_needs_a_switched_off_pair_says_so() {
    let (draft, list) = validated(&[
        Key::Down,
        Key::Down,
        Key::Down,
        Key::Right,
        Key::Down,
        Key::Char(' '),
    ]);
    let edit = &list.items[2];
    let problem = "EDIT pyproject.toml depends on what is switched off or changed: FIND is not in `pyproject.toml`";
    assert_eq!(
        edit.pairs
            .iter()
            .map(|pair| pair.problem.as_deref())
            .collect::<Vec<_>>(),
        [None, Some(problem)]
    );
    assert_eq!(list.problem(), Some(problem));
    let approved = draft.approved(&list);

    assert_eq!(approved.modified, [1]);
    let ActionKind::Edit(edit) = &approved.plan.actions[1].kind else {
        panic!("an EDIT stays one")
    };
    assert_eq!(edit.pairs.len(), 1);
}

#[test]
fn a_changed_memo_is_approved_as_changed() {
    let sample = sample::bootstrap();
    let proposal = sample.proposal();
    let mut draft = EditedPlan::new(&proposal);
    let mut list = Checklist::new(draft.items());
    let mine = memo::MemoChange {
        text: "Mine.".to_owned(),
        ..draft.plan.memos[0].clone()
    };

    draft.change_memo(0, mine.clone());
    list.items[0] = draft.item(ItemPart::Memo(0));
    draft.validate(&mut list, &proposal).unwrap();
    assert_eq!((list.items[0].modified, list.problem()), (true, None));
    assert_eq!(draft.approved(&list).plan.memos, [mine]);
}

#[test]
fn a_memo_that_cannot_be_changed_so_is_marked_itself() {
    let sample = sample::bootstrap();
    let proposal = sample.proposal();
    let mut draft = EditedPlan::new(&proposal);
    let mut list = Checklist::new(draft.items());
    draft.change_memo(
        0,
        memo::MemoChange {
            verb: memo::Verb::Remove,
            ..draft.plan.memos[0].clone()
        },
    );
    draft.validate(&mut list, &proposal).unwrap();

    let problem = "there is no such memo: `All new components must have a core.py file.`";
    assert_eq!(list.items[0].problem.as_deref(), Some(problem));
    assert!(list.items[1..].iter().all(|item| item.problem.is_none()));
}

#[test]
fn what_was_approved_before_is_taken_over_into_the_next_review() {
    let (mut draft, mut list) = validated(&[
        Key::Char(' '),
        Key::Down,
        Key::Down,
        Key::Down,
        Key::Right,
        Key::Down,
        Key::Down,
        Key::Char(' '),
    ]);
    draft.change(
        3,
        Action {
            kind: execute("mine\n"),
            ..draft.plan.actions[3].clone()
        },
    );
    list.items[4] = draft.item(ItemPart::Action(3));
    let approved = draft.approved(&list);
    let sample = sample::bootstrap();
    let mut next = EditedPlan::new(&sample.proposal());
    let mut items = Checklist::new(next.items());

    next.take_over(&approved, &mut items);
    assert_eq!(
        items
            .items
            .iter()
            .map(|item| (item.on, item.modified))
            .collect::<Vec<_>>(),
        [
            (false, false),
            (true, false),
            (true, false),
            (true, false),
            (true, true),
            (true, false)
        ]
    );
    assert_eq!(
        items.items[2]
            .pairs
            .iter()
            .map(|pair| pair.on)
            .collect::<Vec<_>>(),
        [true, false]
    );

    assert_eq!(next.approved(&items), approved);
}

#[test]
fn what_is_switched_off_stays_in_the_plan_but_does_not_run() {
    let (draft, list) = validated(&[Key::Char(' '), Key::Down, Key::Down, Key::Char(' ')]);
    let approved = draft.approved(&list);
    assert_eq!(approved.memos, [false]);
    assert_eq!(approved.actions, [false, true, true, true, true]);
    assert_eq!(approved.plan, sample::bootstrap().plan);
    assert_eq!(approved.modified, Vec::<usize>::new());
}

#[test]
fn an_edit_of_a_file_whose_create_is_off_is_marked() {
    let sample = sample::chain();
    let proposal = sample.proposal();
    let mut draft = EditedPlan::new(&proposal);
    let mut list = Checklist::new(draft.items());
    list.press(&Key::Char(' '));

    draft.validate(&mut list, &proposal).unwrap();
    let problems: Vec<Option<&str>> = list
        .items
        .iter()
        .map(|item| item.problem.as_deref())
        .collect();
    assert_eq!(
        problems,
        [
            None,
            Some("EDIT a depends on what is switched off or changed: there is no file `a`")
        ]
    );
}

#[test]
fn a_changed_action_is_judged_again_and_approved_as_changed() {
    let sample = sample::chain();
    let proposal = sample.proposal();
    let mut draft = EditedPlan::new(&proposal);
    let mut list = Checklist::new(draft.items());
    draft.change(
        0,
        Action {
            kind: create("b", "x\n"),
            ..draft.plan.actions[0].clone()
        },
    );
    draft.validate(&mut list, &proposal).unwrap();
    assert!(
        list.problem()
            .is_some_and(|problem| problem.contains("there is no file `a`")),
        "{list:?}"
    );
    draft.change(
        0,
        Action {
            kind: create("a", "x\nz\n"),
            ..draft.plan.actions[0].clone()
        },
    );
    draft.validate(&mut list, &proposal).unwrap();
    assert_eq!(
        (list.problem(), draft.mistakes.as_slice()),
        (None, [].as_slice())
    );

    let approved = draft.approved(&list);
    assert_eq!((&approved.plan, approved.modified), (&draft.plan, vec![0]));
    assert_eq!(draft.steps[1].after.as_deref(), Some(b"y\nz\n".as_slice()));
}
