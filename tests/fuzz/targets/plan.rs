//! Any bytes as a reply: repaired, parsed, outlined, written.
//!
//! Nothing panics; a repair is repaired no further; what is clean or hopeless comes back byte for
//! byte; a plan that is read without a mistake is, written, the same plan, and repair leaves what
//! was written alone.

#![no_main]

use libfuzzer_sys::fuzz_target;
use teddy::plan::action::Action;
use teddy::plan::repair::{Level, repair};
use teddy::plan::{Plan, reading, parse, render};

fuzz_target!(|bytes: &[u8]| {
    let reply = String::from_utf8_lossy(bytes);
    let repaired = repair(&reply);
    assert_eq!(repair(&repaired.text).text, repaired.text, "a repair is repaired again");
    if matches!(repaired.level, Level::Clean | Level::Hopeless) {
        assert_eq!(repaired.text, reply, "{:?}, and changed", repaired.level);
    }
    let (plan, wrong) = parse(&repaired.text);
    outline(&repaired.text, &wrong);
    teddy::plan::reading::read(&reply);
    let written = render(&plan);
    let (again, mistakes) = parse(&written);
    if wrong.is_empty() {
        assert_eq!(mistakes, [], "a plan that is written has mistakes:\n{written}");
        assert_eq!(unplaced(again), unplaced(plan.clone()), "a plan that is written is another one:\n{written}");
        let kept = repair(&written);
        // What code in a message may hide is in doubt (RP8).
        let message = |action: &Action| action.kind.message().is_some();
        let doubted = kept.level >= Level::Doubtful && plan.actions.iter().any(message);
        assert!(kept.text == written || doubted, "repair changes a plan that was written:\n{written}");
    } else {
        assert_eq!(again.actions.len(), plan.actions.len(), "an action comes or goes:\n{written}");
    }
});

/// Returns a plan as the format spells it, without the places where things stood.
fn unplaced(plan: Plan) -> Plan {
    let mut plan = plan;
    plan.memos.iter_mut().for_each(|memo| memo.line = 0);
    plan.fields.iter_mut().for_each(|field| field.line = 0);
    for action in &mut plan.actions {
        action.line = 0;
        action.fields.clear();
        if let teddy::plan::action::ActionKind::Edit(edit) = &mut action.kind {
            edit.pairs.iter_mut().for_each(|pair| pair.line = 0);
        }
    }
    plan
}
