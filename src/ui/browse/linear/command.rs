//! Parses the commands of the line-based browser.

use crate::ui::browse::tabs::BrowseTab;

pub(super) const COMMAND_HELP: [(&str, &str); 14] = [
    ("3, demo:3", "read a turn of the session, or of another one"),
    (
        "list, more",
        "the sessions and the newest turns; older ones",
    ),
    ("next, back", "the turn before this one, the one after it"),
    ("turn", "the request and the answer, as 3 does"),
    ("diff", "what it changed"),
    ("outputs", "what commands printed, and its report"),
    ("input", "what the model was given, with its tokens"),
    ("meta", "its facts"),
    ("find TEXT", "the turns of all sessions with a text"),
    ("compare A B", "how two turns differ"),
    (
        "open PATH",
        "a file in the editor, as it was after the turn",
    ),
    (
        "branch, undo",
        "a new session here; undo what came after it",
    ),
    ("restore, land", "take the files back to it; commit turns"),
    ("copy, quit", "copy its id; leave"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LinearCommand {
    List,
    More,
    Turn(String),
    /// Goes back by this many turns, or forward if negative.
    Step(isize),
    Tab(BrowseTab),
    Find(String),
    Compare([String; 2]),
    Open(String),
    /// An action on the turn, by its key on the full screen.
    Do(char),
    Copy,
    Help,
    Quit,
    Unknown(String),
}

impl LinearCommand {
    /// Parses a line. The keys of the full screen work here as well. Returns `None` for an empty
    /// line.
    pub(super) fn read(line: &str) -> Option<LinearCommand> {
        let line = line.trim();
        if let Some(text) = line.strip_prefix('/') {
            return Some(LinearCommand::Find(text.trim().to_owned()));
        }

        let (word, arguments) = line.split_once(' ').unwrap_or((line, ""));
        let args: Vec<&str> = arguments.split_whitespace().collect();
        Some(match (word, args.as_slice()) {
            ("", _) => return None,
            ("list", []) => LinearCommand::List,
            ("more", []) => LinearCommand::More,
            ("next" | "j", []) => LinearCommand::Step(1),
            ("back" | "k", []) => LinearCommand::Step(-1),
            ("turn", []) => LinearCommand::Tab(BrowseTab::Conversation),
            ("turn", [name]) => LinearCommand::Turn((*name).to_owned()),
            ("diff" | "d", []) => LinearCommand::Tab(BrowseTab::Difference),
            ("outputs", []) => LinearCommand::Tab(BrowseTab::Outputs),
            ("input", []) => LinearCommand::Tab(BrowseTab::Input),
            ("meta", []) => LinearCommand::Tab(BrowseTab::Meta),
            ("find", [_, ..]) => LinearCommand::Find(arguments.trim().to_owned()),
            ("compare" | "c", [one, other]) => {
                LinearCommand::Compare([(*one).to_owned(), (*other).to_owned()])
            }
            ("open" | "e", _) => LinearCommand::Open(arguments.trim().to_owned()),
            ("branch" | "b", []) => LinearCommand::Do('b'),
            ("undo" | "u", []) => LinearCommand::Do('u'),
            ("restore" | "r", []) => LinearCommand::Do('r'),
            ("land" | "l", []) => LinearCommand::Do('l'),
            ("copy" | "y", []) => LinearCommand::Copy,
            ("help" | "?", []) => LinearCommand::Help,
            ("quit" | "exit" | "q", []) => LinearCommand::Quit,
            (name, []) if is_turn_number(name) => LinearCommand::Turn(name.to_owned()),
            _ => LinearCommand::Unknown(line.to_owned()),
        })
    }
}

fn is_turn_number(word: &str) -> bool {
    let number = word.rsplit_once(':').map_or(word, |(_, number)| number);
    number.parse::<u64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<LinearCommand>) {
        assert_eq!(LinearCommand::read(line), expected, "{line}");
    }

    #[test]
    fn a_command_is_a_word_or_a_key() {
        let turn = |name: &str| Some(LinearCommand::Turn(name.to_owned()));
        let find = |text: &str| Some(LinearCommand::Find(text.to_owned()));
        check(" 3 \n", turn("3"));
        check("demo:3", turn("demo:3"));
        check("", None);
        check("j", Some(LinearCommand::Step(1)));
        check("find two words", find("two words"));
        check("/two words", find("two words"));
        check("d", Some(LinearCommand::Tab(BrowseTab::Difference)));
        let names = ["1", "x:2"].map(str::to_owned);
        check("compare 1 x:2", Some(LinearCommand::Compare(names)));
        let unknown = |line: &str| Some(LinearCommand::Unknown(line.to_owned()));
        check("compare 1", unknown("compare 1"));
        check("quit now", unknown("quit now"));
    }
}
