//! Examples of generated plans.

use std::fmt::Write as _;

use super::*;
use crate::plan::samples::describe;

fn text(path: &str, before: Option<&str>, after: Option<&str>) -> MadeChange {
    bytes(path, before.map(str::as_bytes), after.map(str::as_bytes))
}

fn bytes(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> MadeChange {
    MadeChange {
        path: path.as_bytes().to_vec(),
        before: before.map(FileState::plain),
        after: after.map(FileState::plain),
    }
}

fn check(changes: &[MadeChange], expected: &[&str]) -> WrittenPlan {
    let author = AgentText {
        title: "T",
        rationale: "Because.",
    };
    let written = plan_with_takes(changes, &author, &BTreeSet::new());
    let (plan, mistakes) = parse(&written.text);
    assert_eq!(mistakes, []);
    let actions: Vec<String> = plan
        .actions
        .iter()
        .map(|action| describe(&action.kind))
        .collect();
    assert_eq!(actions, expected, "{}", written.text);
    written
}

/// Returns `count` numbered lines, some of them replaced.
fn lines(count: usize, other: &[(usize, &str)]) -> String {
    let line = |at: usize| {
        let other = other.iter().find(|(position, _)| *position == at);
        other.map_or_else(|| format!("line {at}\n"), |(_, text)| (*text).to_owned())
    };
    (1..=count).map(line).collect()
}

#[test]
fn p41_each_place_is_a_pair_with_a_line_around_it() {
    let after = lines(40, &[(10, "ten\n"), (30, "")]);
    let written = check(
        &[text("a.txt", Some(&lines(40, &[])), Some(&after))],
        &[
            r#"EDIT a.txt [("line 9\nline 10\nline 11\n", "line 9\nten\nline 11\n"), ("line 29\nline 30\nline 31\n", "line 29\nline 31\n")]"#,
        ],
    );
    let expected = "# T\n\n## Rationale\n````text\nBecause.\n````\n\n## Action Plan\n\n### `EDIT`\n\
                    - **File Path:** [a.txt](/a.txt)\n\n`FIND:`\n````txt\nline 9\n";
    assert!(written.text.starts_with(expected), "{}", written.text);
}

#[test]
fn p41_places_that_are_near_or_alike_are_one_pair() {
    let after = lines(9, &[(3, "three\n"), (5, "five\n")]);
    check(
        &[text("a", Some(&lines(9, &[])), Some(&after))],
        &[
            r#"EDIT a [("line 2\nline 3\nline 4\nline 5\nline 6\n", "line 2\nthree\nline 4\nfive\nline 6\n")]"#,
        ],
    );
    let (six, five) = ("x\n".repeat(6), "x\n".repeat(5));
    let edit = format!("EDIT a [({six:?}, {five:?})]");
    check(&[text("a", Some(&six), Some(&five))], &[&edit]);
}

#[test]
fn p41_line_ends_are_kept_and_shown_plainly() {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let changes = [
        text("crlf", Some(&crlf("a\nb\nc\n")), Some(&crlf("a\nB\nc\n"))),
        text("new", None, Some(&crlf("a\nb\n"))),
        text("none", Some("a\nb"), Some("a\nc")),
        text("to-lf", Some("a\r\nb\n"), Some("a\nb\n")),
    ];
    check(
        &changes,
        &[
            r#"EDIT crlf [("a\nb\nc\n", "a\nB\nc\n")]"#,
            r#"CREATE new "a\r\nb\r\n" "#,
            r#"EDIT none [("a\nb\n", "a\nc\n")]"#,
            r#"EDIT to-lf [("a\r\nb\n", "a\nb\n")]"#,
        ],
    );
}

#[test]
fn p41_a_script_that_stays_one_is_edited() {
    let script = |contents: &str| {
        Some(FileState {
            mode: StateMode::Executable,
            bytes: contents.as_bytes().to_vec(),
        })
    };
    let change = |path: &str, before, after| MadeChange {
        path: path.as_bytes().to_vec(),
        before,
        after,
    };
    check(
        &[
            change("run", script("a\nb\n"), script("a\nc\n")),
            change("was", script("a\n"), Some(FileState::plain("b\n"))),
            change("void", script(""), script("b\n")),
        ],
        &[
            r#"EDIT run [("a\nb\n", "a\nc\n")]"#,
            "TAKE void executable file -> executable file taken/01",
            "TAKE was executable file -> file taken/02",
        ],
    );
}

#[test]
fn p41_what_text_cannot_say_is_taken() {
    let mode = |path: &str, mode: StateMode, contents: &str| MadeChange {
        path: path.as_bytes().to_vec(),
        before: Some(FileState::plain("a\n")),
        after: Some(FileState {
            mode,
            bytes: contents.as_bytes().to_vec(),
        }),
    };
    let changes = [
        bytes("bin", Some(b"\0"), Some(b"\0\x01")),
        text("end", Some("a\n"), Some("a")),
        text("gone", Some("g\n"), None),
        mode("link", StateMode::Link, "gone"),
        mode("run", StateMode::Executable, "b\n"),
        text("old", Some("m\n"), None),
        text("young", None, Some("m\n")),
        text("empty", Some(""), Some("e\n")),
    ];
    let written = check(
        &changes,
        &[
            "TAKE gone file -> no file -",
            "TAKE old file -> no file -",
            "TAKE bin file -> file taken/01",
            r#"CREATE empty "e\n" "#,
            "TAKE end file -> file taken/02",
            "TAKE link file -> symbolic link taken/03",
            "TAKE run file -> executable file taken/04",
            r#"CREATE young "m\n" "#,
        ],
    );
    let artifacts = written.taken_bytes.iter().map(|(_, bytes)| &**bytes);
    let expected = [&b"\0\x01"[..], b"a", b"gone", b"b\n"];
    assert_eq!(artifacts.collect::<Vec<_>>(), expected);
    for note in ["renamed to `young`", "renamed from `old`"] {
        assert!(
            written
                .text
                .contains(&format!("- **Description:** {note}\n"))
        );
    }
}

#[test]
fn p41_a_path_that_no_plan_can_name_is_left_out_and_said() {
    let mut changes = vec![text("a", None, Some("a\n"))];
    for path in [&b"\xff"[..], b"a\nb", b".git/hooks/x", b"back\\slash"] {
        changes.push(MadeChange {
            path: path.to_vec(),
            ..changes[0].clone()
        });
    }
    let written = check(&changes, &[r#"CREATE a "a\n" "#]);
    let reasons: Vec<&str> = written.left_out.iter().map(|(_, why)| &**why).collect();
    assert_eq!(
        reasons,
        [
            "`.git` is git's own",
            "the path has the character U+000A, which is not allowed in a path",
            "the path has the character U+005C, which is not allowed in a path",
            "the path is not UTF-8",
        ]
    );
    let listed = "\nNot in this plan:\n- .git/hooks/x: `.git` is git's own\n";
    assert!(written.text.contains(listed), "{}", written.text);
}

#[test]
fn p41_an_agent_that_changed_nothing_has_its_message_shown() {
    let message_of = |rationale: &str| {
        let author = AgentText {
            title: "Q",
            rationale,
        };
        let written = plan_with_takes(&[], &author, &BTreeSet::new());
        let reading = read(&written.text);
        assert_eq!(reading.diagnostics, []);
        let actions = reading.plan.actions.iter();
        let messages = actions.map(|action| action.kind.message().map(str::to_owned));
        messages.collect::<Vec<_>>()
    };
    assert_eq!(message_of("Which one?\n"), [Some("Which one?".to_owned())]);
    assert_eq!(
        message_of(" \n"),
        [Some("The agent said nothing.".to_owned())]
    );
    let code = "```\n### `EXECUTE`\n- **Description:** x\n```\n";
    assert_eq!(message_of(code), [Some(code.trim_end().to_owned())]);
}

#[test]
fn p41_names_that_some_file_systems_take_for_one_are_no_mistake() {
    let changes = [
        text("README", None, Some("b\n")),
        text("readme", None, Some("a\n")),
    ];
    let count_files = |paths: &[&[u8]]| {
        let paths = paths.iter().map(|path| path.to_vec()).collect();
        let written = plan_with_takes(&changes, &AgentText::default(), &paths);
        let taken_bytes = written.taken_bytes.iter().cloned().collect();
        files_after(&parse(&written.text).0, &|_| None, &taken_bytes).map(|files| files.len())
    };
    assert_eq!(count_files(&[b"readme"]), Ok(2));
    assert_eq!(count_files(&[]), Ok(2));
}

#[test]
fn p40_a_name_that_is_spelt_anew_is_no_twin_of_itself() {
    let changes = [
        text("Docs/readme", Some("a\n"), None),
        text("docs/README", None, Some("a\n")),
    ];
    let written = check(
        &changes,
        &[
            "TAKE Docs/readme file -> no file -",
            r#"CREATE docs/README "a\n" "#,
        ],
    );
    let state_of =
        |path: &RepoPath| (path.as_str() == "Docs/readme").then(|| FileState::plain("a\n"));
    let outcome = files_after(&parse(&written.text).0, &state_of, &TakenBytes::new());
    assert_eq!(outcome.map(|outcome| outcome.len()), Ok(2));
}

#[test]
fn p41_many_files_and_large_ones_take_no_more_time_than_their_bytes() {
    let started = std::time::Instant::now();
    let change = |n| {
        text(
            &format!("d{}/f{n}", n % 100),
            Some("a\nb\n"),
            Some("a\nc\n"),
        )
    };
    let many: Vec<MadeChange> = (0..50_000).map(change).collect();
    let written = plan_with_takes(&many, &AgentText::default(), &BTreeSet::new());
    assert_eq!(written.left_out.len(), 48_000);

    let mut large = String::new();
    for n in 0..100_000 {
        writeln!(large, "{}", n % 7).expect("writing to a string");
    }
    let other = large.replace("3\n4\n", "3\nx\n4\n");
    let expected = ["TAKE large file -> file taken/01"];
    check(&[text("large", Some(&large), Some(&other))], &expected);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}
