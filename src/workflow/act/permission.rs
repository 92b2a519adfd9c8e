//! Words of an agent's permission question, as the user reads it.

use crate::model::acting::PermissionQuestion;

/// Shows the command once: agents repeat it in the title, in whole or cut.
pub(super) fn permission_text(name: &str, question: &PermissionQuestion) -> String {
    let is_cut_title = |detail: &str| {
        let title = bare(question.title.trim_end_matches("...").trim_end_matches('…'));
        !title.is_empty() && bare(detail).starts_with(&title)
    };
    let whole = question.detail.iter().find(|detail| is_cut_title(detail));
    let title = match (whole, question.title.as_str()) {
        (Some(command), _) => command.as_str(),
        (None, "") => "use a tool",
        (None, title) => title,
    };

    let mut text = format!("{name} asks: {title}");
    let mut shown = bare(title);
    for detail in &question.detail {
        let detail_text = bare(detail);
        if !shown.contains(&detail_text) {
            text.push_str(&format!("\n  {detail}"));
            shown.push('\n');
            shown.push_str(&detail_text);
        }
    }
    text.push_str(match question.is_confined {
        true => "\n  The sandbox is around it.",
        false => "\n  No sandbox is around it.",
    });
    text
}

/// Without code marks and differences of whitespace.
fn bare(text: &str) -> String {
    let text = text.replace('`', "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(title: &str, detail: &[&str], expected: &str) {
        let question = PermissionQuestion {
            title: title.to_owned(),
            detail: detail.iter().map(|line| (*line).to_owned()).collect(),
            is_confined: false,
            ..PermissionQuestion::default()
        };
        let expected = format!("m asks: {expected}\n  No sandbox is around it.");
        assert_eq!(permission_text("m", &question), expected);
    }

    #[test]
    fn the_command_is_shown_once() {
        check("`cargo test`", &["cargo test"], "cargo test");
        check("Run `cargo  test`", &["cargo test"], "Run `cargo  test`");
        check("cargo te…", &["cargo test --all"], "cargo test --all");
        check("", &["rm a", "rm a"], "use a tool\n  rm a");
        check("Edit a", &["/w/a", "/w/b"], "Edit a\n  /w/a\n  /w/b");
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
            "m asks: Edit a\n  The sandbox is around it."
        );
    }
}
