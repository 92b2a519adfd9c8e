//! Tests of the progress output.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::workflow::user::Notice;
use crate::workspace::notice::FilesNotice;

fn render(width: fn() -> Option<usize>, is_quiet: bool, events: &[Event<'_>]) -> String {
    let mut out = Vec::new();
    let mut progress = Progress::new(
        &mut out,
        OutputStyle {
            paint: Paint::Bare,
            width,
            moves_cursor: true,
            is_quiet,
        },
    );
    events.iter().for_each(|event| progress.report(event));
    String::from_utf8(out).unwrap()
}

#[test]
fn an_answer_is_followed_on_a_terminal() {
    let text = "# Title\n\n## Action Plan\n\n### `CREATE`\n";
    let events = [
        Event::Asking {
            model: "sonnet",
            tokens: 12_345,
            estimate: Estimate::Free,
        },
        Event::Received { text },
        Event::Answered { failed: false },
    ];
    let output = render(|| Some(80), false, &events).replace("\r\x1b[K", "<clear>");
    insta::with_settings!({filters => [(r"\d+ s,", "N s,")]}, { insta::assert_snapshot!(output, @r#"
    Asking sonnet with about 12,345 tokens
    <clear>sonnet: ~9 tokens, N s, 1 action<clear>sonnet: ~9 tokens, N s, 1 action
    "#) });
}

#[test]
fn a_wait_is_seen_to_go_on() {
    let events = [
        Event::Asking {
            model: "sonnet",
            tokens: 2,
            estimate: Estimate::Free,
        },
        Event::Received { text: "" },
        Event::Received { text: "" },
    ];
    let output = render(|| Some(80), false, &events).replace("\r\x1b[K", "<clear>");
    assert_eq!(
        output,
        "Asking sonnet with about 2 tokens\n<clear>sonnet: nothing yet, 0 s"
    );
}

#[test]
fn lines_are_folded_on_a_terminal_alone() {
    assert_eq!(
        render(
            || Some(9),
            false,
            &[Event::Notice(Notice::ModelRemark(
                "one two three".to_owned()
            ))]
        ),
        "one two \n↪ three\n"
    );
    assert_eq!(
        render(
            || None,
            false,
            &[Event::Notice(Notice::ModelRemark(
                "one two three".to_owned()
            ))]
        ),
        "one two three\n"
    );
}

#[test]
fn a_window_that_gets_another_size_is_followed() {
    static WIDTH: AtomicUsize = AtomicUsize::new(20);
    let mut out = Vec::new();
    let style = OutputStyle {
        paint: Paint::Bare,
        width: || Some(WIDTH.load(Ordering::SeqCst)),
        moves_cursor: true,
        is_quiet: false,
    };
    let mut progress = Progress::new(&mut out, style);
    progress.report(&Event::Notice(Notice::ModelRemark(
        "one two three".to_owned(),
    )));
    WIDTH.store(9, Ordering::SeqCst);
    progress.report(&Event::Notice(Notice::ModelRemark(
        "one two three".to_owned(),
    )));
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "one two three\none two \n↪ three\n"
    );
}

#[test]
fn elsewhere_an_answer_is_awaited_in_silence() {
    let events = [
        Event::Asking {
            model: "sonnet",
            tokens: 2,
            estimate: Estimate::Unknown,
        },
        Event::Received { text: "# Title\n" },
        Event::Answered { failed: false },
    ];
    assert_eq!(
        render(|| None, false, &events),
        "Asking sonnet with about 2 tokens, no price set\n"
    );
}

#[test]
fn a_terminal_that_can_only_print_gets_no_status_line() {
    let mut out = Vec::new();
    let style = OutputStyle {
        paint: Paint::Bare,
        width: || Some(80),
        moves_cursor: false,
        is_quiet: false,
    };
    let mut progress = Progress::new(&mut out, style);
    progress.report(&Event::Asking {
        model: "sonnet",
        tokens: 2,
        estimate: Estimate::Unknown,
    });
    progress.report(&Event::Received { text: "# Title\n" });
    progress.report(&Event::Answered { failed: false });
    let text = String::from_utf8(out).unwrap();
    assert!(!text.contains(['\r', '\u{1b}']), "{text:?}");
}

#[test]
fn an_action_that_never_started_says_which_it_is() {
    let outcome = |ending, detail| Outcome::of(ending, detail);
    let (success, skipped) = (
        outcome(Ending::Success, "created"),
        outcome(Ending::Skipped, "skipped because you left it out"),
    );
    let events = [
        Event::Started {
            index: 0,
            label: "CREATE a",
        },
        Event::Finished {
            index: 0,
            outcome: &success,
        },
        Event::Finished {
            index: 1,
            outcome: &skipped,
        },
    ];
    assert_eq!(
        render(|| None, false, &events),
        "▶ 1. CREATE a\n  ✓ created\n  - 2. skipped because you left it out\n"
    );
}

#[test]
fn the_quiet_manner_keeps_warnings() {
    assert_eq!(
        render(
            || None,
            true,
            &[
                Event::Notice(Notice::ModelRemark("a".to_owned())),
                Event::Notice(Notice::Files(FilesNotice::ReferenceIncomplete(
                    "b\u{1b}[2J".to_owned()
                ))),
            ]
        ),
        "some of what `b\\u{1b}[2J` reaches is gone, and no earlier state of it is whole\n"
    );
}

#[test]
fn numbers_are_grouped() {
    assert_eq!(
        [0, 999, 1000, 1_234_567].map(grouped),
        ["0", "999", "1,000", "1,234,567"]
    );
}

#[test]
fn filling_a_worktree_is_one_line_on_a_terminal_and_nothing_elsewhere() {
    let at = |files| {
        Event::Filling(Some(WriteCount {
            files,
            total: 80_000,
        }))
    };
    let over = Event::Filling(None);
    let events = [at(12_345), at(80_000), over];
    assert_eq!(
        render(|| Some(80), false, &events).replace("\r\x1b[K", "<clear>"),
        "<clear>filling the worktree: 12,345 of 80,000 files\
         <clear>filling the worktree: 80,000 of 80,000 files<clear>"
    );
    assert_eq!(render(|| Some(80), true, &events), "");
    assert_eq!(render(|| None, false, &events), "");
}
