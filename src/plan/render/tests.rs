//! A rendered plan parses as the same plan.

use proptest::prelude::*;

use super::*;
use crate::plan::action::ActionKind;
use crate::plan::action::chat_with_user::ChatWithUser;
use crate::plan::action::read::Read;
use crate::plan::parse::parse;
use crate::plan::repair::{Level, repair};
use crate::plan::samples::{HOSTILE, plan};
use crate::text::resource::Resource;

/// Clears line numbers, which rendering changes.
fn unplaced(mut plan: Plan) -> Plan {
    plan.fields.iter_mut().for_each(|f| f.line = 0);
    plan.memos.iter_mut().for_each(|m| m.line = 0);
    for action in &mut plan.actions {
        action.line = 0;
        action.fields.iter_mut().for_each(|f| f.line = 0);
        if let ActionKind::Edit(edit) = &mut action.kind {
            edit.pairs.iter_mut().for_each(|p| p.line = 0);
        }
    }

    plan
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn p24_a_written_plan_is_read_as_the_same(plan in plan()) {
        let text = render(&plan);
        let (parsed, wrong) = parse(&text);
        prop_assert_eq!(&wrong, &vec![], "{}", text);
        prop_assert_eq!(unplaced(parsed), plan, "{}", text);
    }

    #[test]
    fn p24_repair_leaves_a_written_plan_alone(plan in plan()) {
        let text = render(&plan);
        let repaired = repair(&text);
        // RP8: repair does not trust an action's heading in a code block of a message, and leaves
        // it alone or reports a doubt.
        let suspect = plan.actions.iter().any(|action| action.kind.message().is_some_and(|message| message.contains("### `READ`")));
        prop_assert!(repaired.text == text || (suspect && repaired.level >= Level::Doubtful), "{:?}: {}", repaired.level, repaired.text);
    }

    #[test]
    fn p24_no_text_makes_the_reader_panic(lines in proptest::collection::vec(prop_oneof![proptest::sample::select(&HOSTILE[..]).prop_map(str::to_owned), "\\PC{0,9}", Just("### `EDIT`".to_owned()), Just("## Rationale".to_owned()), Just("- **env:**".to_owned()), Just("### INVOKE".to_owned()), Just("\0".to_owned())], 0..25)) {
        let text = lines.join("\n");
        let (plan, _) = parse(&text);
        crate::plan::reading::outline(&text, &[]);
        // Rendering adds no actions.
        let again = parse(&render(&plan)).0;
        prop_assert_eq!(again.actions.len(), plan.actions.len(), "{}", render(&plan));
    }
}

#[test]
fn p24_the_formats_own_spelling_is_written() {
    let text = "# T #\n* status: Green\n## 1. rationale\n```\nr\n```\n## Memos\n~~~\n[-] a # b\n~~~\n## Action plan:\n### edit\n### PROMPT\nhi\n### **EDIT**\n- Reference: x\n- file_path: `a b.md`\n- Description: d\n  - e\n#### FIND\n~~~py\n```` \n~~~\n#### REPLACE\n```py\n```\n### RETURN\n- Reference Files: [a](/a)\n\nbye\n";
    let (plan, wrong) = parse(text);
    assert_eq!(
        wrong.iter().map(|w| w.message.as_str()).collect::<Vec<_>>(),
        ["unknown action `edit`"]
    );
    let expected = "# T\n- **Status:** Green\n\n## Rationale\n````text\nr\n````\n\n## Memos\n````\n[-] a # b\n````\n\n## Action Plan\n\n### `CHAT_WITH_USER`\nhi\n\n### `EDIT`\n- **File Path:** [a b.md](</a b.md>)\n- **Description:** d\n    - e\n- **Reference:** x\n\n`FIND:`\n`````py\n```` \n`````\n`REPLACE:`\n````py\n````\n\n### `CONCLUDE`\n- **Handoff Resources:**\n    - [a](/a)\n\nbye\n";

    assert_eq!(render(&plan), expected);
}

#[test]
fn p24_no_text_of_a_changed_plan_gets_out_of_its_place() {
    let action = Action {
        line: 0,
        fields: vec![Field::new(
            "Description",
            "a\n### `READ`\n- **Resource:** x",
        )],
        kind: ActionKind::ChatWithUser(ChatWithUser {
            message: "### `EXECUTE`\n```\nls\n```\n```\nopen".into(),
        }),
    };
    let find = Action {
        kind: ActionKind::Read(Read {
            resource: Resource::parse("a").expect("a path"),
        }),
        ..action.clone()
    };

    let plan = Plan {
        title: "T\n## Action Plan".into(),
        rationale: "r".into(),
        actions: vec![action, find],
        ..Plan::default()
    };
    let (parsed, wrong) = parse(&render(&plan));
    assert_eq!(
        (parsed.actions.len(), parsed.actions[1].kind.name(), wrong),
        (2, "READ", vec![]),
        "{}",
        render(&plan)
    );
}

#[test]
fn the_documents_example_is_valid_and_in_the_formats_own_spelling() {
    let document = include_str!("../../../docs/formats/plan.md");
    let lines = crate::text::markdown::Lines::new(document);
    let blocks = crate::text::markdown::blocks(document);
    let example = crate::text::markdown::fenced(&blocks)
        .into_iter()
        .find(|(_, code)| code.info == "markdown")
        .expect("the example");
    let text = lines.span(example.1.line_range.clone());
    let (plan, wrong) = parse(text);

    assert_eq!((wrong, render(&plan).as_str()), (vec![], text));
}
