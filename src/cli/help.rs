//! `teddy help`: the commands in groups, as git lists its own.

use std::ffi::OsString;

use super::{is_started_by_git, parser};

/// A group of commands. The first ones are on the first screen.
struct CommandGroup {
    name: &'static str,
    common: &'static [&'static str],
    others: &'static [&'static str],
}

const GROUPS: [CommandGroup; 6] = [
    CommandGroup {
        name: "start",
        common: &["setup", "start"],
        others: &["demo", "init", "new", "trust"],
    },
    CommandGroup {
        name: "work",
        common: &["resume", "ask", "plan", "execute", "context"],
        others: &[
            "race", "change", "record", "hooks", "acp", "retry", "replay",
        ],
    },
    CommandGroup {
        name: "look",
        common: &["status", "log", "diff"],
        others: &[
            "show", "find", "browse", "web", "blame", "compare", "bisect", "sessions", "verify",
        ],
    },
    CommandGroup {
        name: "go back",
        common: &["undo"],
        others: &["redo", "restore", "branch", "switch"],
    },
    CommandGroup {
        name: "share",
        common: &["land", "push"],
        others: &["pick", "fetch", "adopt", "export", "sign"],
    },
    CommandGroup {
        name: "maintain",
        common: &["doctor"],
        others: &[
            "recover",
            "gc",
            "completions",
            "man",
            "preprocess",
            "get-prompt",
        ],
    },
];

const WIDTH: usize = 80;

/// Returns the list of commands if the line asks for it: `teddy help`, `teddy help --all`. The help of
/// a command is clap's.
pub(super) fn asked_for(arguments: &[OsString]) -> Option<String> {
    let words: Vec<&str> = arguments
        .iter()
        .skip(1)
        .filter_map(|word| word.to_str())
        .collect();
    let program = match is_started_by_git(arguments) {
        true => "git teddy",
        false => "teddy",
    };
    match words.as_slice() {
        ["help" | "-h"] => Some(list(program, false)),
        ["help", "-a" | "--all"] | ["--help"] => Some(list(program, true)),
        _ => None,
    }
}

fn list(program: &str, is_all: bool) -> String {
    let parser = parser();
    let about = |name: &str| {
        let command = parser.find_subcommand(name)?;
        Some(command.get_about()?.to_string())
    };

    let mut text =
        format!("usage: {program} [options] <command> [arguments], or: {program} '<message>'\n\n");
    for group in &GROUPS {
        let others = group.others.iter().filter(|_| is_all);
        for (at, name) in group.common.iter().chain(others).enumerate() {
            let heading = if at == 0 { group.name } else { "" };
            let about = about(name).unwrap_or_default();
            text.push_str(&line(heading, name, &about));
        }
    }
    text.push_str(&match is_all {
        false => format!(
            "\n`{program} help --all` lists all commands, `{program} <command> --help` explains one.\n"
        ),
        true => format!(
            "\n`{program} <command> --help` explains a command; `{program} resume --help` the options.\n"
        ),
    });
    if is_all {
        let mut parser = parser;
        text.push_str(&format!("\n{}", options(&mut parser)));
    }
    text
}

fn line(heading: &str, name: &str, about: &str) -> String {
    let start = format!("{heading:<9} {name:<11} ");
    let width = WIDTH.saturating_sub(start.len());
    let about: String = match about.chars().count() > width {
        true => about
            .chars()
            .take(width.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => about.to_owned(),
    };
    format!("{start}{about}\n")
}

/// Returns the global options and the examples, as clap renders them.
fn options(parser: &mut clap::Command) -> String {
    let help = parser.render_help().to_string();
    let start = help.find("Options:").unwrap_or(help.len());
    help[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|group| group.common.iter().chain(group.others))
            .copied()
            .collect();
        listed.sort_unstable();
        let parser = parser();
        let mut names: Vec<&str> = parser
            .get_subcommands()
            .filter(|command| !command.is_hide_set() && command.get_name() != "help")
            .map(clap::Command::get_name)
            .collect();
        names.sort_unstable();
        assert_eq!(listed, names);
    }

    #[test]
    fn the_first_screen_has_14_commands_and_fits_24_lines() {
        let count: usize = GROUPS.iter().map(|group| group.common.len()).sum();
        assert_eq!(count, 14);
        let text = list("teddy", false);
        assert!(text.lines().count() < 24, "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
    }

    #[test]
    fn only_the_list_itself_is_answered() {
        let asks = |line: &str| asked_for(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(asks("teddy help").is_some() && asks("teddy -h").is_some());
        assert!(asks("teddy help --all").unwrap().contains("\nmaintain "));
        assert_eq!(asks("teddy help log"), None);
        assert_eq!(asks("teddy log --help"), None);
        assert_eq!(asks("teddy"), None);
    }
}
