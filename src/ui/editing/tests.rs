//! Tests of the editing dialogs with scripted prompts.

use std::collections::VecDeque;

use super::*;
use crate::plan::Field;
use crate::plan::action::ActionKind;
use crate::plan::action::research::Research;
use crate::plan::samples::actions::{self, create, execute};
use crate::text::edit::apply;
use crate::ui::sample;

/// Scripted answers. Panics on a question that the script does not expect.
#[derive(Default)]
struct Script {
    keys: VecDeque<char>,
    /// In order. `None` leaves the prompt.
    texts: VecDeque<Option<&'static str>>,
    /// What the editor saves. `None` means that there is no editor.
    saves: Option<&'static str>,
    /// Whether the editor runs in the terminal until the user closes it.
    blocks: bool,
    /// Start of the last text prompt.
    offered: String,
    output: String,
}

impl EditingPrompts for Script {
    fn show(&mut self, lines: &[StyledLine]) {
        lines
            .iter()
            .for_each(|line| self.output += &(line.text() + "\n"));
    }

    fn key(&mut self, _question: &str, keys: &[(char, &str)]) -> io::Result<char> {
        let key = self.keys.pop_front().unwrap_or(keys[keys.len() - 1].0);
        let is_known = keys.iter().any(|(other, _)| *other == key);
        assert!(is_known, "{key} is not asked for");
        Ok(key)
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        self.text("")
    }

    fn text(&mut self, start: &str) -> io::Result<Option<String>> {
        self.offered = start.to_owned();
        Ok(self
            .texts
            .pop_front()
            .expect("the script has a text for each question")
            .map(str::to_owned))
    }

    fn open(&mut self, path: &Path) -> io::Result<Option<EditorUse>> {
        let Some(text) = self.saves else {
            return Ok(None);
        };
        std::fs::write(path, text)?;
        Ok(Some(match self.blocks {
            true => EditorUse::Ended,
            false => EditorUse::Window,
        }))
    }
}

fn changed(script: &mut Script, kind: ActionKind, step: &Step) -> Option<ActionKind> {
    edit(script, &sample::action(1, kind), step)
        .unwrap()
        .map(|action| action.kind)
}

fn step() -> Step {
    Step {
        before: Some(b"a\nx\n".to_vec()),
        after: Some(b"b\nx\n".to_vec()),
        ..Step::default()
    }
}

#[test]
fn a_new_file_gets_the_content_of_the_person() {
    let mut script = Script {
        saves: Some("mine\n"),
        keys: ['n', 'y'].into(),
        ..Script::default()
    };
    let edited = changed(
        &mut script,
        create("src/a.rs", "theirs\n"),
        &Step::default(),
    );
    assert_eq!(edited, Some(create("src/a.rs", "mine\n")));
    assert!(!script.output.contains("File path"), "{}", script.output);

    assert!(
        script.output.contains("Take your time"),
        "{}",
        script.output
    );
}

#[test]
fn a_new_file_that_nobody_changed_is_not_modified() {
    let mut script = Script {
        saves: Some("same\n"),
        keys: ['y'].into(),
        ..Script::default()
    };
    assert_eq!(
        changed(&mut script, create("a", "same\n"), &Step::default()),
        None
    );
}

#[test]
fn dropped_changes_leave_the_content() {
    let mut script = Script {
        saves: Some("mine\n"),
        keys: ['d'].into(),
        ..Script::default()
    };
    assert_eq!(
        changed(&mut script, create("a", "theirs\n"), &Step::default()),
        None
    );
}

#[test]
fn a_new_file_gets_another_path_by_its_own_key() {
    let mut script = Script {
        texts: [Some("../x"), Some("src/b.rs")].into(),
        ..Script::default()
    };
    let action = sample::action(1, create("src/a.rs", "theirs\n"));
    let edited = edit_path(&mut script, &action).unwrap();
    assert_eq!(
        edited.map(|action| action.kind),
        Some(create("src/b.rs", "theirs\n"))
    );
    assert!(
        script.output.contains("File path: [src/a.rs]")
            && script.output.contains("leaves the project"),
        "{}",
        script.output
    );

    let mut script = Script {
        texts: [Some("")].into(),
        ..Script::default()
    };
    assert_eq!(edit_path(&mut script, &action).unwrap(), None);
}

/// Regression: a percent-encoded destination stayed as it was.
#[test]
fn both_sides_of_the_link_name_the_new_path() {
    let mut script = Script {
        texts: [Some("a b/日.txt")].into(),
        ..Script::default()
    };
    let mut action = sample::action(1, create("a b/ü.txt", "theirs\n"));
    action.fields = vec![Field::new("File Path", "[a b/ü.txt](/a%20b/%C3%BC.txt)")];
    let edited = edit_path(&mut script, &action).unwrap().unwrap();
    assert_eq!(edited.fields[0].value, "[a b/日.txt](</a b/日.txt>)");
}

#[test]
fn without_an_editor_the_content_is_shown() {
    let mut script = Script {
        keys: ['c'].into(),
        ..Script::default()
    };
    assert_eq!(
        changed(&mut script, create("a", "theirs\n"), &Step::default()),
        None
    );
    assert!(
        script.output.contains("+theirs") && script.output.contains("No editor is known"),
        "{}",
        script.output
    );
}

#[test]
fn a_changed_edit_is_one_pair_from_the_original_to_the_final_file() {
    let mut script = Script {
        saves: Some("c\nx\n"),
        keys: ['y'].into(),
        ..Script::default()
    };
    let edited = changed(&mut script, actions::edit("f", &[("a\n", "b\n")]), &step());
    assert_eq!(edited, Some(actions::edit("f", &[("a\nx\n", "c\nx\n")])));

    assert!(script.output.contains("Editing: [f]"), "{}", script.output);
}

#[test]
fn any_file_is_brought_to_the_content_that_was_saved() {
    for (before, saved) in [
        ("a\n", "c\n"),
        ("a", "c"),
        ("a", "c\n"),
        ("a\n", "c"),
        ("a\r\nb\r\n", "c\nd\r\n"),
        ("a\n", ""),
        ("a\n\n", "\n"),
    ] {
        let step = Step {
            before: Some(before.into()),
            after: Some(b"proposed".to_vec()),
            ..Step::default()
        };
        let mut script = Script {
            saves: Some(saved),
            keys: ['y'].into(),
            ..Script::default()
        };
        let after =
            match changed(&mut script, actions::edit("f", &[("a\n", "b\n")]), &step).unwrap() {
                ActionKind::Edit(edit) => {
                    apply(before, &edit.pairs[0].find, &edit.pairs[0].replace)
                        .unwrap()
                        .0
                }
                ActionKind::Create(create) if create.overwrite => create.text,
                other => panic!("{other:?}"),
            };
        assert_eq!(after, saved, "from {before:?}");
    }
}

#[test]
fn an_edit_that_is_taken_back_is_not_a_change() {
    let mut script = Script {
        saves: Some("a\nx\n"),
        keys: ['y', 'c'].into(),
        ..Script::default()
    };
    assert_eq!(
        changed(&mut script, actions::edit("f", &[("a\n", "b\n")]), &step()),
        None
    );
    assert!(
        script.output.contains("switch the action off instead"),
        "{}",
        script.output
    );
}

#[test]
fn a_command_is_changed_at_the_prompt() {
    let mut script = Script {
        keys: ['e'].into(),
        texts: [Some("make -j2")].into(),
        ..Script::default()
    };
    assert_eq!(
        changed(&mut script, execute("make\n"), &Step::default()),
        Some(execute("make -j2\n"))
    );
    assert_eq!(script.offered, "make");
}

#[test]
fn closing_or_leaving_changes_nothing() {
    let mut closing = Script {
        keys: ['c'].into(),
        ..Script::default()
    };
    assert_eq!(
        changed(&mut closing, execute("make\n"), &Step::default()),
        None
    );
    let mut leaving = Script {
        keys: ['e'].into(),
        texts: [None].into(),
        ..Script::default()
    };
    assert_eq!(
        changed(&mut leaving, execute("make\n"), &Step::default()),
        None
    );
}

#[test]
fn a_memo_is_changed_as_the_line_of_a_plan_until_it_is_one() {
    let proposed = memo::MemoChange {
        line: 12,
        verb: memo::Verb::Add,
        text: "Use npm.".to_owned(),
        comment: Some("why".to_owned()),
    };
    let mut script = Script {
        keys: ['e'].into(),
        texts: [
            Some("Use pnpm."),
            Some("[+] a\n[+] b"),
            Some("[+] Use pnpm."),
        ]
        .into(),
        ..Script::default()
    };

    let changed = edit_memo(&mut script, &proposed).unwrap();
    assert_eq!(
        changed,
        Some(memo::MemoChange {
            text: "Use pnpm.".to_owned(),
            comment: None,
            ..proposed.clone()
        })
    );
    assert_eq!(
        script.output.matches("one line: `[+]").count(),
        2,
        "{}",
        script.output
    );
    let mut same = Script {
        keys: ['e'].into(),
        texts: [Some("[+] Use npm. # why")].into(),
        ..Script::default()
    };

    assert_eq!(edit_memo(&mut same, &proposed).unwrap(), None);
    assert_eq!(same.offered, "[+] Use npm. # why");
}

#[test]
fn queries_are_separated_by_blank_lines() {
    let research = |queries: &[&str]| {
        ActionKind::Research(Research {
            queries: queries.iter().map(|&q| q.to_owned()).collect(),
        })
    };
    let mut script = Script {
        keys: ['e'].into(),
        texts: [Some("one\n\nthree\n\n\n")].into(),
        ..Script::default()
    };

    assert_eq!(
        changed(&mut script, research(&["one", "two"]), &Step::default()),
        Some(research(&["one", "three"]))
    );
    assert_eq!(script.offered, "one\n\ntwo");
}

#[test]
fn who_has_closed_the_editor_is_not_asked_whether_that_is_all() {
    let mut script = Script {
        saves: Some("mine\n"),
        blocks: true,
        texts: [Some("")].into(),
        ..Script::default()
    };
    let proposed = create("a", "theirs\n");
    assert_eq!(
        changed(&mut script, proposed, &Step::default()),
        Some(create("a", "mine\n"))
    );
    assert!(
        !script.output.contains("has been opened"),
        "{}",
        script.output
    );
}
