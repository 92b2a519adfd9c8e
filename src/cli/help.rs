//! `teddy help`: the commands in groups, as git lists its own.

use std::ffi::OsString;

use super::{COMMANDS, HelpPlace, ListedCommand, is_started_by_git, parser};
use crate::ui::style::{self, Paint, StyledLine, shortened};
use crate::ui::terminal::stdout_width;

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
        ["help" | "-h"] => Some(list(program, false, stdout_width())),
        ["help", "-a" | "--all"] | ["--help"] => Some(list(program, true, stdout_width())),
        _ => None,
    }
}

/// In a pipe, without a width, no line is cut.
fn list(program: &str, is_all: bool, width: Option<usize>) -> String {
    let parser = parser();
    let about = |name: &str| {
        let command = parser.find_subcommand(name)?;
        Some(command.get_about()?.to_string())
    };

    let mut text =
        format!("usage: {program} [options] <command> [arguments], or: {program} '<message>'\n\n");
    let is_shown = |command: &&ListedCommand| match command.place {
        HelpPlace::First => true,
        HelpPlace::More => is_all,
        HelpPlace::Hidden => false,
    };
    let shown: Vec<&ListedCommand> = COMMANDS.iter().filter(is_shown).collect();
    for group in shown.chunk_by(|a, b| a.group == b.group) {
        for (at, command) in group.iter().enumerate() {
            let heading = if at == 0 { command.group } else { "" };
            let about = about(command.name).unwrap_or_default();
            text.push_str(&line(heading, command.name, &about, width));
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
    let Some(width) = width else { return text };
    let lines = text.lines().map(StyledLine::plain).collect();
    style::text(&style::wrap_all(lines, width), Paint::Bare)
}

fn line(heading: &str, name: &str, about: &str, width: Option<usize>) -> String {
    let start = format!("{heading:<9} {name:<11} ");
    match width {
        Some(width) => {
            let about = shortened(about, width.saturating_sub(start.len()));
            format!("{start}{about}\n")
        }
        None => format!("{start}{about}\n"),
    }
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
    fn the_first_screen_has_14_commands_and_fits_24_lines() {
        let first = COMMANDS.iter().filter(|one| one.place == HelpPlace::First);
        assert_eq!(first.count(), 14);
        for width in [60, 80, 200] {
            let text = list("teddy", false, Some(width));
            assert!(text.lines().count() < 24, "{text}");
            let mut commands = text.lines().skip(2).take(14);
            assert!(commands.all(|line| line.chars().count() <= width), "{text}");
        }
    }

    #[test]
    fn no_description_is_cut_at_80_columns() {
        let text = list("teddy", true, Some(80));
        assert!(!text.contains('…'), "{text}");
    }

    #[test]
    fn in_a_pipe_no_line_is_cut() {
        assert!(!list("teddy", true, None).contains('…'));
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
