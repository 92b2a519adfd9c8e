//! Expands shorthand forms of a command line before it is parsed.

use std::ffi::OsString;

use crate::text::has_word;

/// Expands shorthands:
///
/// - `teddy "<message>"` to `teddy resume "<message>"`
/// - `teddy session <command>` to `teddy <command>`
/// - `teddy models` to the list of `setup`
/// - `teddy run -- PROGRAM` to `teddy record -- PROGRAM`
/// - `--session` after `context add`, `rm` and `edit` to the list of that name (`-s` still names a
///   session)
/// - `diff --session` without a name to `--whole`
/// - `log -5` to `log -n5`, as in git
pub(super) fn expand(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if let Some(at) = first_word(&arguments) {
        if arguments[at] == "session" && arguments.len() > at + 1 {
            arguments.remove(at);
        } else if arguments[at] == "models" {
            arguments.splice(at..=at, ["setup", "--list"].map(OsString::from));
        } else if arguments[at] == "run" && arguments.iter().any(|word| word == "--") {
            // Without a program it would record edits where someone means to run a plan.
            arguments[at] = OsString::from("record");
        } else if arguments[at] == "log" {
            number_to_option(&mut arguments[at + 1..]);
        }
    }

    if let Some(at) = whole_session(&arguments) {
        arguments[at] = OsString::from("--whole");
    }

    // No command contains whitespace, so this is a message for the model.
    let first = first_word(&arguments).map(|at| arguments[at].to_string_lossy());
    if first.is_some_and(|word| word.trim().contains(char::is_whitespace)) {
        arguments.insert(1, OsString::from("resume"));
    }

    let is_edit = |pair: &[OsString]| {
        pair[0] == "context" && ["add", "rm", "edit"].iter().any(|verb| pair[1] == *verb)
    };
    let Some(at) = arguments.windows(2).position(is_edit) else {
        return arguments;
    };
    for argument in arguments
        .iter_mut()
        .skip(at + 2)
        .take_while(|argument| *argument != "--")
    {
        if argument == "--session" {
            *argument = OsString::from("--session-list");
        }
    }

    arguments
}

fn number_to_option(words: &mut [OsString]) {
    for word in words.iter_mut().take_while(|word| *word != "--") {
        let number = word.to_str().and_then(|word| word.strip_prefix('-'));
        let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(number) = number.filter(|text| !text.is_empty()).filter(is_number) {
            *word = OsString::from(format!("-n{number}"));
        }
    }
}

/// Finds a `--session` without a name after `diff`.
fn whole_session(arguments: &[OsString]) -> Option<usize> {
    let diff = arguments.iter().position(|argument| *argument == "diff")?;
    let end = arguments.iter().position(|argument| *argument == "--");
    let is_name = |next: &OsString| !next.as_encoded_bytes().starts_with(b"-");
    (diff + 1..end.unwrap_or(arguments.len()))
        .find(|&at| arguments[at] == "--session" && !arguments.get(at + 1).is_some_and(is_name))
}

/// Global options that take a value.
const GLOBAL_VALUES: &str = "-C -s --session -c --color";

/// Options of `resume` that take a value.
const RESUME_VALUES: &str =
    "-m --message -f --file -a --agent --model --pipeline --max-turns --max-cost";

/// Global options without a value.
const FLAGS: &str = "-q --quiet -v --verbose --json";

fn is_in(list: &str, word: &OsString) -> bool {
    word.to_str().is_some_and(|word| has_word(list, word))
}

fn takes_value(word: &OsString) -> bool {
    is_in(GLOBAL_VALUES, word) || is_in(RESUME_VALUES, word)
}

/// Returns the index of the first word that is neither an option nor the value of one. The program is
/// at 0.
pub(super) fn first_word(arguments: &[OsString]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = arguments.get(at) {
        if takes_value(word) {
            at += 1;
        } else if word == "--" {
            return (at + 1 < arguments.len()).then_some(at + 1);
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Returns the name of the command, if only global options precede it.
pub(super) fn command_word(arguments: &[OsString]) -> Option<&str> {
    let at = first_word(arguments)?;
    let mut before = arguments[1..at].iter();
    while let Some(word) = before.next() {
        if !is_in(FLAGS, word) && !is_in(GLOBAL_VALUES, word) {
            return None;
        }
        if takes_value(word) {
            before.next();
        }
    }
    arguments[at].to_str()
}

/// Moves `--json` behind the command, where clap checks its conflicts. `None` if it does not
/// precede the command.
pub(super) fn with_json_moved(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let first = first_word(arguments)?;
    let before = &arguments[..first];
    let at = (1..first).find(|&at| before[at] == "--json" && !takes_value(&before[at - 1]))?;
    let is_words = before.iter().any(|word| word == "--");

    let mut moved = arguments.to_vec();
    let json = moved.remove(at);
    moved.insert(first, json);
    (!is_words).then_some(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_behind_a_change_of_the_context_is_a_list() {
        let check = |line: &str, expected: &str| {
            let expanded = expand(line.split(' ').map(OsString::from).collect());
            assert_eq!(
                expanded
                    .iter()
                    .map(|word| word.to_string_lossy())
                    .collect::<Vec<_>>()
                    .join(" "),
                expected
            );
        };
        check(
            "teddy context add a.rs --session",
            "teddy context add a.rs --session-list",
        );
        check(
            "teddy context add --session a.rs",
            "teddy context add --session-list a.rs",
        );
        check(
            "teddy --session x context rm a.rs",
            "teddy --session x context rm a.rs",
        );
        check("teddy session restore 1", "teddy restore 1");
        check("teddy models --json", "teddy setup --list --json");
        check("teddy -C x session log", "teddy -C x log");
        check("teddy --json models", "teddy --json setup --list");
        check("teddy show models", "teddy show models");
        check("teddy log --session x", "teddy log --session x");
        check("teddy log -5 x -- -3", "teddy log -n5 x -- -3");
        check("teddy log - --all -n 5", "teddy log - --all -n 5");
    }

    #[test]
    fn json_is_moved_behind_the_command_that_it_is_for() {
        let check = |line: &str, expected: Option<&str>| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let expected = expected.map(|line| line.split(' ').map(OsString::from).collect());
            assert_eq!(with_json_moved(&args), expected, "{line}");
        };
        check(
            "teddy --json -s x log --graph",
            Some("teddy -s x log --json --graph"),
        );
        check("teddy log --json", None);
        check("teddy -s --json log", None);
        check("teddy --json -- log", None);
        check("teddy --json", None);
    }

    #[test]
    fn words_for_the_model_are_no_command() {
        let check = |line: &[&str], expected: &[&str]| {
            let args = line.iter().map(OsString::from).collect();
            assert_eq!(expand(args), expected);
        };
        check(
            &["teddy", "add a form", "a.rs"],
            &["teddy", "resume", "add a form", "a.rs"],
        );
        check(
            &["teddy", "-q", "-s", "a b", "add a form"],
            &["teddy", "resume", "-q", "-s", "a b", "add a form"],
        );
        check(
            &["teddy", "-y", "--", "add a form"],
            &["teddy", "resume", "-y", "--", "add a form"],
        );
        check(&["teddy", "log"], &["teddy", "log"]);
        check(
            &["teddy", "run", "--", "make"],
            &["teddy", "record", "--", "make"],
        );
        check(&["teddy", "run", "plan.md"], &["teddy", "run", "plan.md"]);
        check(&["teddy", "find", "a b"], &["teddy", "find", "a b"]);
        check(
            &["teddy", "-C", "a b", "log"],
            &["teddy", "-C", "a b", "log"],
        );
        check(&["teddy", "--color=a b"], &["teddy", "--color=a b"]);
    }
}
