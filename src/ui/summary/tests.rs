//! Tests of the summary.

use super::super::sample;
use super::*;

fn render(sample: &sample::Sample, width: usize, height: usize) -> String {
    let proposal = sample.proposal();
    let lines = Summary::new(&proposal, Audience::Asked).lines(TextArea { width, height });
    lines
        .iter()
        .map(|line| line.text().trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_summary_counts_lists_and_warns() {
    insta::assert_snapshot!(render(&sample::bootstrap(), 80, 24), @r#"
    ▶ Reviewing Plan: "Bootstrap New Project Component"
      add-auth · turn 3 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────
     Rationale:
      The component is missing.
     Changes: 2 files  +3
      src/components/new_component/core.py  +2  new file
        +def main():
        +    pass
      pyproject.toml  +1  … 4 more lines: d
     memos.yaml:
      [+] ADD:    All new components must have a core.py file. # Establish a new
      ↪ convention.
     Action Plan:
      - CREATE: 1 file
      - EDIT: 1 file
      - READ: 1 resource
          docs/日本語.md
      - EXECUTE: 1 command (sandboxed, no network)
        $ poetry lock
      - CHAT_WITH_USER: 1 message
          Is **this** right?
    ────────────────────────────────────────────────────────────────────────────────
    enter approves · d diff · c comment · ?
    "#);
}

#[test]
fn a_summary_wraps_on_a_narrow_screen() {
    insta::assert_snapshot!(render(&sample::bootstrap(), 40, 30), @r#"
    ▶ Reviewing Plan: "Bootstrap New
    ↪ Project Component"
      add-auth · turn 3 · 🟢 Green ·
      ↪ Pathfinder
    ────────────────────────────────────────
     Rationale:
      The component is missing.
     Changes: 2 files  +3
      src/components/new_component/core.py
      ↪ +2  new file
        +def main():
        +    pass
      pyproject.toml  +1
        @@ -1,2 +1,3 @@
        … 3 more lines: d
     memos.yaml:
      [+] ADD:    All new components must
      ↪ have a core.py file. # Establish a
      ↪ new convention.
     Action Plan:
      - CREATE: 1 file
      - EDIT: 1 file
      - READ: 1 resource
          docs/日本語.md
      - EXECUTE: 1 command (sandboxed, no
      ↪ network)
        $ poetry lock
      - CHAT_WITH_USER: 1 message
          Is **this** right?
    ────────────────────────────────────────
    enter approves · d diff · c comment · ?
    "#);
}

#[test]
fn a_summary_is_compact_on_a_low_screen() {
    insta::assert_snapshot!(render(&sample::bootstrap(), 40, 12), @r"
    ▶ Bootstrap New Project Component
      add-auth · turn 3 · 🟢 Green · Pathfi…
    ────────────────────────────────────────
     memos: 1 added
     CREATE 1 file, EDIT 1 file, EXECUTE 1
     ↪ command (sandboxed, no network),
     ↪ READ 1 resource, CHAT_WITH_USER 1
     ↪ message  +3
        $ poetry lock
    ");
}

#[test]
fn a_command_that_no_screen_holds_leaves_the_lists_as_they_are() {
    let command: String = (0..100).map(|n| format!("echo {n}\n")).collect();
    let text = render(&sample::command(&command), 40, 12);
    assert!(
        text.contains("- EXECUTE: 1 command") && text.contains("$ echo 0"),
        "{text}"
    );
}

#[test]
fn many_files_are_counted_and_the_rest_is_said() {
    let text = render(&sample::many(500), 80, 24);
    assert!(text.contains("CREATE: 500 files"), "{text}");
    assert!(text.contains("more files: d"), "{text}");
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
        let text = render(&sample, 80, height);
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
    let text = render(&sample, 120, 28);

    assert!(text.lines().count() <= 27, "{text}");
    assert!(
        text.contains("$ poetry lock") && text.contains("CREATE: 41 files"),
        "{text}"
    );
}

/// Bug: the first rows of the title were scrolled away.
#[test]
fn a_long_title_is_on_the_screen_too() {
    let mut sample = sample::many(40);
    sample.plan.title = "Long words ".repeat(20);
    for (width, height) in [(80, 24), (80, 30)] {
        let text = render(&sample, width, height);
        assert!(text.lines().count() < height, "{text}");
    }
}

#[test]
fn a_command_is_whole_however_long() {
    let command: String = (0..100).map(|n| format!("echo {n}\n")).collect();
    let text = render(&sample::command(&command), 80, 24);
    assert!(
        (0..100).all(|n| text.contains(&format!("echo {n}\n"))),
        "{text}"
    );
}

#[test]
fn nothing_in_a_plan_can_steer_the_screen() {
    let sample = sample::command("echo \u{1b}[2K\u{202e}safe\r\n");
    let text = render(&sample, 80, 24);
    assert!(text.contains("\\u{1b}[2K\\u{202e}safe"), "{text}");
    assert!(text.contains("⚠ EXECUTE"), "{text}");
}

#[test]
fn the_value_has_commands_and_counts() {
    let value = proposal_json(&sample::bootstrap().proposal());
    assert_eq!(value["title"], "Bootstrap New Project Component");
    assert_eq!(value["actions"][3]["command"], "poetry lock\n");
    assert_eq!(value["actions"][1]["added"], 1);
}

fn of_actions(actions: &[String]) -> String {
    format!(
        "# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n{}",
        actions.join("")
    )
}

fn create(path: &str, contents: &str) -> String {
    format!("\n### CREATE\n- File Path: {path}\n- Description: d\n````\n{contents}````\n")
}

fn execute(command: &str) -> String {
    format!("\n### EXECUTE\n- Description: d\n- Expected Outcome: o\n````sh\n{command}\n````\n")
}

fn numbered(lines: usize) -> String {
    (1..=lines).map(|n| format!("line {n}\n")).collect()
}

fn changes(sample: &sample::Sample, width: usize, height: usize) -> Vec<String> {
    let text = render(sample, width, height);
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with(" Changes"));
    let lines = lines.take_while(|line| *line != " Action Plan:");
    lines.map(str::to_owned).collect()
}

#[test]
fn commands_and_risks_stand_in_the_order_in_which_they_run() {
    let sample = sample::Sample::new(
        &of_actions(&[
            create("b.txt", "b\n"),
            execute("make one"),
            create("Makefile", "all:\n"),
            execute("PATH=. make two"),
        ]),
        &[],
    );
    let text = render(&sample, 80, 50);
    let (_, plan) = text.split_once(" Action Plan:\n").unwrap();
    insta::assert_snapshot!(plan, @r"
      - CREATE: 1 file  b.txt
      - EXECUTE: 1 command (sandboxed, no network)
        $ make one
      - CREATE: 1 file  Makefile
        ⚠ CREATE Makefile depends on an earlier command; it is checked again when
        ↪ it runs
        ⚠ Makefile executes later: a build runs it
      - EXECUTE: 1 command
        $ PATH=. make two
    ────────────────────────────────────────────────────────────────────────────────
    enter approves · d diff · c comment · ?
    ");
}

/// Regression: above a command with the network, it said that there is none.
#[test]
fn a_granted_network_is_not_denied_above() {
    let mut sample = sample::Sample::new(&of_actions(&[execute("make one")]), &[]);
    let command = sample.plan.actions[0].kind.command_mut().unwrap();
    command.network = true;
    for height in [8, 50] {
        let text = render(&sample, 80, height);
        assert!(text.contains("command (sandboxed)"), "{text}");
        assert!(!text.contains("no network"), "{text}");
    }
}

#[test]
fn the_first_forty_lines_are_shown_and_the_rest_is_said() {
    let sample = sample::Sample::new(&of_actions(&[create("long.txt", &numbered(160))]), &[]);
    let changes = changes(&sample, 80, 100);
    assert_eq!(changes.len(), 1 + 1 + 40 + 1, "{changes:#?}");
    assert_eq!(changes[1], "  long.txt  +160  new file");
    assert_eq!(changes[41], "    +line 40");
    assert_eq!(changes[42], "    … 120 more lines: d");
}

#[test]
fn each_file_has_its_header_and_its_part_of_the_lines() {
    let actions: Vec<String> = (1..=6)
        .map(|n| create(&format!("{n}.txt"), &numbered(n * 5)))
        .collect();
    let sample = sample::Sample::new(&of_actions(&actions), &[]);
    for (width, height) in [(60, 24), (80, 24), (80, 50), (200, 60)] {
        let changes = changes(&sample, width, height);
        for n in 1..=6 {
            let header = format!("  {n}.txt  +{}  new file", n * 5);
            let has = changes.iter().any(|line| line.starts_with(&header));
            assert!(has, "{width}x{height}: {changes:#?}");
        }
        let lines = changes
            .iter()
            .filter(|line| line.starts_with("    +"))
            .count();
        assert!(
            lines <= 40 && changes.len() <= height,
            "{width}x{height}: {changes:#?}"
        );
    }
    insta::assert_snapshot!(changes(&sample, 60, 24).join("\n"), @r"
    Changes: 6 files  +105
     1.txt  +5  new file
       +line 1
       +line 2
       +line 3
       +line 4
       +line 5
     2.txt  +10  new file  … 10 more lines: d
     3.txt  +15  new file  … 15 more lines: d
     4.txt  +20  new file  … 20 more lines: d
     5.txt  +25  new file  … 25 more lines: d
     6.txt  +30  new file  … 30 more lines: d
    ");
}

/// Regression: the changed part was cut off, so that both lines looked the same.
#[test]
fn a_long_line_is_cut_around_its_change() {
    let before = format!("start {} one end\n", "middle ".repeat(20));
    let action = "\n### EDIT\n- File Path: a.txt\n- Description: d\n\nFIND:\n````\n one end\n````\nREPLACE:\n````\n two end\n````\n";
    let sample = sample::Sample::new(&of_actions(&[action.to_owned()]), &[("a.txt", &before)]);
    insta::assert_snapshot!(changes(&sample, 60, 24).join("\n"), @"
    Changes: 1 file  +1 -1
     a.txt  +1 -1
       @@ -1 +1 @@
       -…dle middle  one end
       +…dle middle  two end
    ");
}

#[test]
fn a_long_line_and_a_huge_file_stay_bounded() {
    let huge = format!("{}\n{}", "x".repeat(100_000), numbered(50_000));
    let sample = sample::Sample::new(&of_actions(&[create("huge.txt", &huge)]), &[]);
    let changes = changes(&sample, 80, 24);
    assert!(
        changes.iter().all(|line| line.chars().count() <= 80),
        "{changes:#?}"
    );
    assert!(changes[2].ends_with("xxx…"), "{changes:#?}");
    let proposal = sample.proposal();
    let all = differences(&proposal);
    assert_eq!(all.len(), 2 + 20_000 + 1);
    assert_eq!(
        all.last().unwrap().text(),
        "… 30001 more lines: v in (m)odify"
    );
}

/// Regression: the files after 20,000 lines were left out whole.
#[test]
fn a_file_after_a_huge_one_is_shown() {
    let actions = [
        create("a.txt", &numbered(25_001)),
        create("b.txt", "b\n"),
        create("c.txt", "c\n"),
    ];
    let sample = sample::Sample::new(&of_actions(&actions), &[]);
    let all: Vec<String> = differences(&sample.proposal())
        .iter()
        .map(StyledLine::text)
        .collect();
    insta::assert_snapshot!(all[20_000..].join("\n"), @"
    +line 19999
    +line 20000
    … 5001 more lines: v in (m)odify
    --- /dev/null
    +++ b/b.txt
    +b
    --- /dev/null
    +++ b/c.txt
    +c
    ");
    let proposal = sample.proposal();
    let files = reviewed_files(proposal.plan, proposal.simulation);
    let rows = files.iter().map(|file| file.rows.len());
    assert_eq!(rows.collect::<Vec<_>>(), [20_001, 1, 1]);
    let more = files[0].rows.last().map(|(line, _)| line.text());
    assert_eq!(more.as_deref(), Some("… 5001 more lines: v in (m)odify"));
}

/// Regression: only the first 2,000 columns of the lines were compared and shown.
#[test]
fn a_change_far_behind_in_a_line_is_shown() {
    let words: Vec<String> = (0..1200).map(|n| format!("w{n}")).collect();
    let pair = |find: &str, replace: &str| {
        format!("FIND:\n````\n {find} \n````\nREPLACE:\n````\n {replace} \n````\n")
    };
    let action = format!(
        "\n### EDIT\n- File Path: a.txt\n- Description: d\n\n{}{}",
        pair("w900", "NEW"),
        pair("w1100", "LAST")
    );
    let before = format!("{}\n", words.join(" "));
    let sample = sample::Sample::new(&of_actions(&[action]), &[("a.txt", &before)]);
    insta::assert_snapshot!(changes(&sample, 60, 24).join("\n"), @"
    Changes: 1 file  +1 -1
     a.txt  +1 -1
       @@ -1 +1 @@
       -…7 w898 w899 w900 w901 w902 w903 w904 w905 w906 w907 w…
       +…7 w898 w899 NEW w901 w902 w903 w904 w905 w906 w907 w9…
    ");
    let all: Vec<String> = differences(&sample.proposal())
        .iter()
        .map(StyledLine::text)
        .collect();
    let before = "…w892 w893 w894 w895 w896 w897 w898 w899";
    let between = "w901 w902 w903 w904 w905 w906 w907 w908\
                   …093 w1094 w1095 w1096 w1097 w1098 w1099";
    let after = "w1101 w1102 w1103 w1104 w1105 w1106 w11…";
    assert_eq!(
        all[3..],
        [
            format!("-{before} w900 {between} w1100 {after}"),
            format!("+{before} NEW {between} LAST {after}"),
        ]
    );
}

#[test]
fn the_end_of_a_long_new_line_is_in_the_differences() {
    let line = format!("{} last", "x".repeat(5000));
    let sample = sample::Sample::new(&of_actions(&[create("a.txt", &format!("{line}\n"))]), &[]);
    let all = differences(&sample.proposal());
    assert_eq!(all[2].text(), format!("+{line}"));
}

#[test]
fn two_edits_of_a_file_are_one_difference() {
    let edit = |find: &str, replace: &str| {
        format!(
            "\n### EDIT\n- File Path: x\n- Description: d\n\n`FIND:`\n```\n{find}\n```\n`REPLACE:`\n```\n{replace}\n```\n"
        )
    };
    let sample = sample::Sample::new(
        &of_actions(&[edit("a", "1"), edit("c", "3")]),
        &[("x", "a\nb\nc\n")],
    );
    let lines: Vec<String> = differences(&sample.proposal())
        .iter()
        .map(StyledLine::text)
        .collect();
    assert_eq!(
        lines,
        [
            "--- a/x",
            "+++ b/x",
            "@@ -1,3 +1,3 @@",
            "-a",
            "+1",
            " b",
            "-c",
            "+3"
        ]
    );
}

#[test]
fn who_is_only_told_sees_no_keys() {
    let sample = sample::Sample::new(&of_actions(&[create("long.txt", &numbered(160))]), &[]);
    let proposal = sample.proposal();
    let lines = Summary::new(&proposal, Audience::Informed).lines(TextArea::UNLIMITED);
    let lines: Vec<String> = lines.iter().map(StyledLine::text).collect();
    assert!(
        lines.contains(&"    … 120 more lines".to_owned()),
        "{lines:#?}"
    );
    assert!(lines.last().unwrap().starts_with('─'), "{lines:#?}");
}

/// Returns the first lines of the summary of a plan whose agent ran commands.
fn agent_head(commands: CommandCounts, height: usize) -> Vec<String> {
    let sample = sample::bootstrap();
    let proposal = ReviewRequest {
        agent_commands: commands,
        transcript: Some("# Transcript\n"),
        ..sample.proposal()
    };
    let area = TextArea { width: 80, height };
    let lines = Summary::new(&proposal, Audience::Asked).lines(area);
    let lines = lines.iter().map(StyledLine::text);
    lines.take_while(|line| !line.starts_with('─')).collect()
}

#[test]
fn the_summary_begins_with_what_the_agent_ran() {
    let check = |ran: usize, failed: usize, expected: Option<&str>| {
        let commands = CommandCounts {
            ran,
            failed,
            is_minimum: false,
        };
        for height in [12, 40] {
            let lines = agent_head(commands, height);
            assert_eq!(lines.get(2).map(String::as_str), expected, "{lines:#?}");
        }
    };
    check(0, 0, None);
    check(1, 0, Some("  The agent ran 1 command"));
    check(1, 1, Some("  The agent ran 1 command, 1 failed"));
    check(4, 2, Some("  The agent ran 4 commands, 2 failed"));
    let commands = CommandCounts {
        ran: 3,
        failed: 1,
        is_minimum: true,
    };
    let line = "  The agent ran at least 3 commands, at least 1 failed";
    assert_eq!(agent_head(commands, 40)[2], line);
}

#[test]
fn what_the_agent_ran_is_in_the_review_as_json() {
    let sample = sample::bootstrap();
    let json = |transcript| {
        let proposal = ReviewRequest {
            agent_commands: CommandCounts {
                ran: 4,
                failed: 2,
                is_minimum: false,
            },
            transcript,
            ..sample.proposal()
        };
        proposal_json(&proposal)["agent_commands"].clone()
    };
    let expected = json!({ "ran": 4, "failed": 2, "is_minimum": false });
    assert_eq!(json(Some("# Transcript\n")), expected);
    assert_eq!(json(None), Value::Null);
}
