//! What a person sees first.

use super::super::sample;
use super::*;

/// Returns the bare text of a summary.
fn shown(sample: &sample::Sample, width: usize, height: usize) -> String {
    let lines = lines(&sample.proposal(), TextArea { width, height });
    lines
        .iter()
        .map(|line| line.text().trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_summary_counts_lists_and_warns() {
    insta::assert_snapshot!(shown(&sample::bootstrap(), 80, 24), @r#"
    ▶ Reviewing Plan: "Bootstrap New Project Component"
      add-auth · turn 3 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────
     memos.yaml:
      [+] ADD:    All new components must have a core.py file. # Establish a new
      ↪ convention.
     Action Plan:
      - CREATE: 1 file
          src/components/new_component/core.py  +2
      - EDIT: 1 file
          pyproject.toml  +1
      - EXECUTE: 1 command (sandboxed, no network)
        $ poetry lock
      - READ: 1 resource
          docs/日本語.md
      - CHAT_WITH_USER: 1 message
          Is **this** right?
    ────────────────────────────────────────────────────────────────────────────────
    "#);
}

#[test]
fn a_summary_wraps_on_a_narrow_screen() {
    insta::assert_snapshot!(shown(&sample::bootstrap(), 40, 30), @r#"
    ▶ Reviewing Plan: "Bootstrap New
    ↪ Project Component"
      add-auth · turn 3 · 🟢 Green ·
      ↪ Pathfinder
    ────────────────────────────────────────
     memos.yaml:
      [+] ADD:    All new components must
      ↪ have a core.py file. # Establish a
      ↪ new convention.
     Action Plan:
      - CREATE: 1 file
          src/components/new_component/core.
          ↪ py  +2
      - EDIT: 1 file
          pyproject.toml  +1
      - EXECUTE: 1 command (sandboxed, no
      ↪ network)
        $ poetry lock
      - READ: 1 resource
          docs/日本語.md
      - CHAT_WITH_USER: 1 message
          Is **this** right?
    ────────────────────────────────────────
    "#);
}

#[test]
fn a_summary_is_compact_on_a_low_screen() {
    insta::assert_snapshot!(shown(&sample::bootstrap(), 40, 12), @r#"
    ▶ Bootstrap New Project Component
      add-auth · turn 3 · 🟢 Green · Pathfi…
    ────────────────────────────────────────
     memos: 1 added
     CREATE 1 file, EDIT 1 file, EXECUTE 1
     ↪ command (sandboxed, no network),
     ↪ READ 1 resource, CHAT_WITH_USER 1
     ↪ message
        $ poetry lock
    "#);
}

#[test]
fn a_command_that_no_screen_holds_leaves_the_lists_as_they_are() {
    let command: String = (0..100).map(|n| format!("echo {n}\n")).collect();
    let text = shown(&sample::command(&command), 40, 12);
    assert!(
        text.contains("- EXECUTE: 1 command") && text.contains("$ echo 0"),
        "{text}"
    );
}

#[test]
fn many_files_are_counted_and_the_rest_is_said() {
    let text = shown(&sample::many(500), 80, 24);
    assert!(text.contains("CREATE: 500 files"), "{text}");
    assert!(text.contains("more: (m)odify lists them all"), "{text}");
    assert!(text.lines().count() <= 24, "{text}");
}

#[test]
fn a_file_that_two_edits_change_is_one_file() {
    let edit = |file: &str, line: &str| {
        format!(
            "\n### EDIT\n- File Path: {file}\n\n`FIND:`\n```\n{line}\n```\n`REPLACE:`\n```\nnew\n```\n"
        )
    };
    let text = format!(
        "# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n{}{}{}",
        edit("x", "a"),
        edit("x", "b"),
        edit("y", "a")
    );
    let sample = sample::Sample::new(&text, &[("x", "a\nb\n"), ("y", "a\n")]);

    for height in [40, 8] {
        let text = shown(&sample, 80, height);
        assert!(
            text.contains("EDIT: 2 files") || text.contains("EDIT 2 files"),
            "{text}"
        );
    }
}

#[test]
fn a_plan_that_has_a_bit_of_everything_fits_a_screen() {
    let mut sample = sample::many(40);
    let mut more = sample::bootstrap().plan;
    sample.plan.memos = vec![more.memos.remove(0); 20];
    sample.plan.actions.extend(more.actions);
    let text = shown(&sample, 120, 24);

    assert!(text.lines().count() <= 24, "{text}");
    assert!(
        text.contains("$ poetry lock") && text.contains("CREATE: 41 files"),
        "{text}"
    );
}

#[test]
fn a_command_is_whole_however_long() {
    let command: String = (0..100).map(|n| format!("echo {n}\n")).collect();
    let text = shown(&sample::command(&command), 80, 24);
    assert!(
        (0..100).all(|n| text.contains(&format!("echo {n}\n"))),
        "{text}"
    );
}

#[test]
fn nothing_in_a_plan_can_steer_the_screen() {
    let sample = sample::command("echo \u{1b}[2K\u{202e}safe\r\n");
    let text = shown(&sample, 80, 24);
    assert!(text.contains("\\u{1b}[2K\\u{202e}safe"), "{text}");
    assert!(text.contains("⚠ EXECUTE"), "{text}");
}

#[test]
fn the_value_has_commands_and_counts() {
    let value = json(&sample::bootstrap().proposal());
    assert_eq!(value["title"], "Bootstrap New Project Component");
    assert_eq!(value["actions"][3]["command"], "poetry lock\n");
    assert_eq!(value["actions"][1]["added"], 1);
}
