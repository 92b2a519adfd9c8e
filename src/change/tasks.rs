//! Parses, validates and updates `tasks.md`, according to the rules T1-T7 of
//! `docs/formats/tasks.md`.

use std::collections::BTreeSet;

use super::finding::Findings;
use super::section::{self, DocumentSection};
use crate::text::path::RepoPath;

pub const FILE: &str = "tasks.md";
const VERBS: [&str; 3] = ["CREATE", "MODIFY", "DELETE"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    /// From 1.
    pub line: usize,
    /// Such as `1.2`.
    pub number: String,
    pub title: String,
    pub is_done: bool,
    /// A heading, such as `1. Data Layer`.
    pub layer: String,
    /// The lines below its title.
    pub text: String,
    /// The path, and the verb after it.
    pub file: Option<(String, String)>,
    /// Numbers of earlier tasks.
    pub depends: Vec<String>,
}

pub fn read(text: &str) -> Vec<Task> {
    let sections = section::read(text);
    let (mut tasks, mut layer, mut open) = (Vec::<Task>::new(), String::new(), false);
    for ((index, line), raw) in section::prose(text).iter().enumerate().zip(text.lines()) {
        let number = index + 1;
        if let Some(section) = sections.iter().find(|section| section.line == number) {
            open = false;
            // Only level-2 headings are layers.
            if section.level == 2 {
                layer.clone_from(&section.title);
            }
        } else if let Some(task) = boxed(line) {
            tasks.push(Task {
                line: number,
                layer: layer.clone(),
                ..task
            });
            open = true;
        } else if let Some(task) = tasks.last_mut().filter(|_| open) {
            parse_detail(task, line, raw);
        }
    }

    for task in &mut tasks {
        task.text.truncate(task.text.trim_end().len());
    }
    tasks
}

/// `- [ ] 1.1 Title`
fn boxed(line: &str) -> Option<Task> {
    let (mark, tail) = section::checkbox(line)?;
    let tail = tail.trim().trim_start_matches("**");
    let (number, title) = tail.split_once([' ', ':']).unwrap_or((tail, ""));
    Some(Task {
        number: number.trim_end_matches(['.', ':']).to_owned(),
        title: title.replace("**", "").trim().to_owned(),
        is_done: section::is_ticked(mark),
        ..Task::default()
    })
}

fn parse_detail(task: &mut Task, line: &str, raw: &str) {
    task.text.push_str(raw);
    task.text.push('\n');
    let Some((key, value)) = section::key_value(line) else {
        return;
    };

    match key.to_ascii_lowercase().as_str() {
        "file" => {
            let (path, verb) = value.rsplit_once('(').unwrap_or((&value, ""));
            task.file = Some((
                path.replace('`', "").trim().to_owned(),
                verb.trim_end_matches([')', ' ']).to_owned(),
            ));
        }
        "depends" => {
            let names = value
                .split([',', ' '])
                .map(|name| name.trim_matches(['`', '[', ']', '.']));
            task.depends = names
                .filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))
                .map(str::to_owned)
                .collect();
        }
        _ => {}
    }
}

pub(super) fn check(text: &str, _: &[DocumentSection], findings: &mut Findings<'_>) {
    let tasks = read(text);
    if tasks.is_empty() {
        findings.high(
            1,
            "has no task: write `- [ ] 1.1 Title` below `## 1. Layer`",
        );
    }

    let mut numbers: BTreeSet<&str> = BTreeSet::new();
    for task in &tasks {
        number(task, findings);
        if task.title.is_empty() {
            findings.high(task.line, format!("task {} has no title", task.number));
        }

        if task.text.trim().is_empty() {
            findings.low(
                task.line,
                format!("task {} does not say what to do", task.number),
            );
        }

        file(task, findings);
        // Only earlier tasks count, so there are no cycles.
        for name in task
            .depends
            .iter()
            .filter(|name| !numbers.contains(name.as_str()))
        {
            findings.high(
                task.line,
                format!(
                    "task {} depends on {name}, which is not an earlier task",
                    task.number
                ),
            );
        }
        if !numbers.insert(&task.number) {
            findings.high(task.line, format!("there are two tasks {}", task.number));
        }
    }
}

fn number(task: &Task, findings: &mut Findings<'_>) {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let Some((layer, ordinal)) = task
        .number
        .split_once('.')
        .filter(|(layer, ordinal)| digits(layer) && digits(ordinal))
    else {
        return findings.high(
            task.line,
            format!(
                "`{}` is not a task number, such as `1.2`",
                crate::text::sanitize::sanitize_line(&task.number)
            ),
        );
    };

    let (own, _) = task.layer.split_once('.').unwrap_or((&task.layer, ""));
    if own.trim() != layer {
        findings.high(
            task.line,
            format!(
                "task {layer}.{ordinal} is below `## {}`, not below `## {layer}. ...`",
                task.layer
            ),
        );
    }
}

fn file(task: &Task, findings: &mut Findings<'_>) {
    let Some((path, verb)) = &task.file else {
        return;
    };
    if let Err(error) = RepoPath::parse(path) {
        findings.high(
            task.line,
            format!("the file of task {}: {error}", task.number),
        );
    }

    if !VERBS.contains(&verb.as_str()) {
        findings.high(
            task.line,
            format!(
                "the file of task {} is not followed by one of (CREATE), (MODIFY), (DELETE)",
                task.number
            ),
        );
    }
}

/// Removes the ticks of these tasks. All other bytes stay the same.
pub fn untick(text: &str, is_open: impl Fn(&str) -> bool) -> String {
    let is_wrong = |task: &Task| task.is_done && is_open(&task.number);
    let done = read(text).into_iter().filter(is_wrong);
    let lines = done.map(|task| task.line).collect();
    mark(text, &lines, ' ')
}

/// Ticks the first open task with this number. All other bytes stay the same.
pub fn tick(text: &str, number: &str) -> String {
    let Some(task) = read(text)
        .into_iter()
        .find(|task| task.number == number && !task.is_done)
    else {
        return text.to_owned();
    };
    mark(text, &BTreeSet::from([task.line]), 'x')
}

/// Fills the boxes of these lines.
fn mark(text: &str, lines: &BTreeSet<usize>, mark: char) -> String {
    let line = |(index, line): (usize, &str)| match line
        .split_once('[')
        .and_then(|(head, after)| Some((head, after.split_once(']')?.1)))
    {
        Some((head, tail)) if lines.contains(&(index + 1)) => format!("{head}[{mark}]{tail}"),
        _ => line.to_owned(),
    };

    text.split_inclusive('\n').enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::id::ChangeId;
    use crate::change::shape::DocumentKind;

    const GOOD: &str = "# Tasks: greet\n\n## 1. Data Layer\n- [x] 1.1 Say what is wanted\n  - File: `test.sh` (CREATE)\n  - Do: Write a test.\n\n\
        ## 2. Logic Layer\n- [ ] 2.1 Take a name\n  - File: `greet.sh` (MODIFY)\n  - Spec: `greeting` R1\n  - Do: Use `$1`.\n  - Depends: 1.1\n";

    fn check(text: &str, expected: &[&str]) {
        let id = ChangeId::parse("greet").unwrap();
        let actual: Vec<String> = DocumentKind::Tasks
            .check(&id, FILE, text)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(actual, expected, "for {text:?}");
    }

    #[test]
    fn t1_a_task_is_a_box_with_a_number_and_a_title() {
        let tasks = read(GOOD);
        let actual: Vec<_> = tasks
            .iter()
            .map(|t| {
                (
                    t.line,
                    t.number.as_str(),
                    t.title.as_str(),
                    t.is_done,
                    t.layer.as_str(),
                )
            })
            .collect();
        assert_eq!(
            actual,
            [
                (4, "1.1", "Say what is wanted", true, "1. Data Layer"),
                (9, "2.1", "Take a name", false, "2. Logic Layer")
            ]
        );
        assert_eq!(
            tasks[1].file,
            Some(("greet.sh".to_owned(), "MODIFY".to_owned()))
        );
        assert_eq!(
            (tasks[1].depends.clone(), tasks[1].text.lines().count()),
            (vec!["1.1".to_owned()], 4)
        );
        check(GOOD, &[]);
        check(
            "# Tasks: greet\n\n- [ ] 1.1 In a list without a layer\n  - Do: x\n",
            &["tasks.md:3: error: task 1.1 is below `## `, not below `## 1. ...`"],
        );
        check(
            "# Tasks\n",
            &["tasks.md:1: error: has no task: write `- [ ] 1.1 Title` below `## 1. Layer`"],
        );
    }

    #[test]
    fn t2_numbers_are_unique_and_begin_with_the_layers() {
        check(
            &GOOD.replace("2.1 Take", "1.1 Take"),
            &[
                "tasks.md:9: error: task 1.1 is below `## 2. Logic Layer`, not below `## 1. ...`",
                "tasks.md:9: error: there are two tasks 1.1",
            ],
        );
        check(
            &GOOD.replace("2.1 Take", "Take"),
            &["tasks.md:9: error: `Take` is not a task number, such as `1.2`"],
        );
    }

    #[test]
    fn t3_a_file_is_a_path_in_the_project_and_what_happens_to_it() {
        check(
            &GOOD.replace("`greet.sh` (MODIFY)", "`../greet.sh` (MODIFY)"),
            &["tasks.md:9: error: the file of task 2.1: the path leaves the project with `..`"],
        );
        check(
            &GOOD.replace("(MODIFY)", "(RENAME)"),
            &[
                "tasks.md:9: error: the file of task 2.1 is not followed by one of (CREATE), (MODIFY), (DELETE)",
            ],
        );
    }

    #[test]
    fn t4_a_task_depends_on_earlier_ones_alone() {
        check(
            &GOOD.replace("Depends: 1.1", "Depends: 2.1, 3.1"),
            &[
                "tasks.md:9: error: task 2.1 depends on 2.1, which is not an earlier task",
                "tasks.md:9: error: task 2.1 depends on 3.1, which is not an earlier task",
            ],
        );
        check(&GOOD.replace("Depends: 1.1", "Depends: none"), &[]);
    }

    #[test]
    fn t5_a_task_without_words_is_doubted() {
        check(
            "## 1. A\n- [ ] 1.1 Title\n",
            &["tasks.md:2: warning: task 1.1 does not say what to do"],
        );
    }

    #[test]
    fn t6_a_box_in_a_code_block_is_no_task() {
        assert_eq!(read(&format!("{GOOD}\n```\n- [ ] 9.9 no\n```\n")).len(), 2);
    }

    #[test]
    fn t7_ticking_changes_one_box_alone() {
        assert_eq!(tick(GOOD, "2.1"), GOOD.replace("[ ] 2.1", "[x] 2.1"));
        assert_eq!(tick(GOOD, "1.1"), GOOD);
        assert_eq!(
            tick(&GOOD.replace('\n', "\r\n"), "2.1"),
            GOOD.replace('\n', "\r\n").replace("[ ] 2.1", "[x] 2.1")
        );
    }

    #[test]
    fn t8_unticking_changes_the_boxes_of_tasks_alone() {
        let code = "\n```\n- [x] 9.9 no\n```\n";
        let ticked = GOOD.replace("[ ] 2.1", "[✓] 2.1");
        let open = GOOD.replace("[x] 1.1", "[ ] 1.1");
        assert_eq!(
            untick(&format!("{ticked}{code}"), |_| true),
            format!("{open}{code}")
        );
        assert_eq!(untick(&open, |_| true), open);
    }
}
