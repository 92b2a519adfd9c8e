//! Line-based browser for screen readers: reads a command, prints its result, and repeats.
//!
//! It needs neither a full screen nor a movable cursor.

use std::io::{self, BufRead, Write};

use anyhow::Context as _;

use super::source::{compared, find_turns};
use super::turn_view::{self, TurnView};
use crate::git::object::CommitId;
use crate::session::name::SessionName;
use crate::text::counted;

use crate::project::Project;
use crate::query::view::timeline::{SessionLane, Timeline, TimelineMark, mark, timeline};
use crate::ui::browse::turn_view::BrowseTab;
use crate::ui::browse::{BrowseAction, CarryOut, TurnAddress};
use crate::ui::pager::key_lines;
use crate::ui::style::{self, Paint, StyledLine, Tone};
use crate::ui::turn_text::{self, LogColumns};

const PAGE: usize = 20;

/// In columns. The output can be a pipe without a width.
const WIDTH: usize = 72;

/// Line-based browser.
pub struct LinearBrowser<'a> {
    project: &'a Project,
    /// Restricts the browser to one session.
    only: Option<SessionName>,
    actions: &'a mut CarryOut<'a>,
    out: &'a mut dyn Write,
    paint: Paint,
    timeline: Timeline,
    /// Fingerprint of `timeline`, to detect changes.
    last_mark: Option<TimelineMark>,
    /// Selected turn: index of its lane, and index in that lane.
    here: (usize, usize),
    listed: usize,
}

impl<'a> LinearBrowser<'a> {
    /// Returns a browser of one session, or of all.
    pub fn new(
        project: &'a Project,
        only: Option<SessionName>,
        actions: &'a mut CarryOut<'a>,
        out: &'a mut dyn Write,
        paint: Paint,
    ) -> LinearBrowser<'a> {
        LinearBrowser {
            project,
            only,
            actions,
            out,
            paint,
            timeline: Timeline::default(),
            last_mark: None,
            here: (0, 0),
            listed: 0,
        }
    }

    /// Runs the commands of `lines` until they end or the user quits. If a user types them, there is
    /// a prompt.
    pub fn run(&mut self, lines: &mut dyn BufRead, is_typed: bool) -> anyhow::Result<()> {
        self.refresh()?;
        self.list(false)?;
        if is_typed {
            self.print_line(StyledLine::of(Tone::Faint, "help lists the commands"))?;
        }

        loop {
            if is_typed {
                write!(self.out, "{} › ", self.name())?;
                self.out.flush()?;
            }
            let mut line = Vec::new();
            if lines.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            self.refresh()?;
            match LinearCommand::read(&String::from_utf8_lossy(&line)) {
                None => {}
                Some(LinearCommand::Quit) => return Ok(()),
                Some(command) => self.carry_out(command)?,
            }
            self.out.flush()?;
        }
    }

    fn carry_out(&mut self, command: LinearCommand) -> anyhow::Result<()> {
        let result = match command {
            LinearCommand::List => self.list(false),
            LinearCommand::More => self.list(true),
            LinearCommand::Turn(name) => self.turn(&name),
            LinearCommand::Step(by) => self.step(by),
            LinearCommand::Tab(tab) => self.show(tab),
            LinearCommand::Find(text) => self.find(&text),
            LinearCommand::Compare(names) => {
                compared(self.project, &names).and_then(|lines| Ok(self.print(&lines)?))
            }
            LinearCommand::Open(path) => self.open(&path),
            LinearCommand::Do(key) => self.run_action(key),
            LinearCommand::Copy => self.copy(),
            LinearCommand::Help => Ok(self.print(&key_lines(&COMMAND_HELP))?),
            LinearCommand::Unknown(line) => {
                let text = format!("there is no command `{line}`; help lists them");
                Ok(self.print_line(StyledLine::of(Tone::Warning, &text))?)
            }
            LinearCommand::Quit => Ok(()),
        };
        match result {
            // A closed output ends the browser. Any other error is only reported.
            Err(error) if error.downcast_ref::<io::Error>().is_some() => Err(error),
            Err(error) => {
                Ok(self.print_line(StyledLine::of(Tone::Warning, &format!("{error:#}")))?)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Reads the sessions again if they changed, and announces new turns.
    fn refresh(&mut self) -> anyhow::Result<()> {
        let now = mark(self.project, self.only.as_ref())?;
        if self.last_mark.as_ref() == Some(&now) {
            return Ok(());
        }

        let here = self.selected().map(|(lane, row)| (lane.name.clone(), row));
        let is_first = self.last_mark.replace(now).is_none();
        let before = std::mem::take(&mut self.timeline);
        self.timeline = timeline(self.project, self.only.as_ref())?;
        // The turn can have another index now.
        self.here = here
            .and_then(|(_, commit)| self.find_commit(commit))
            .unwrap_or((0, 0));
        if is_first {
            return Ok(());
        }

        for lane in self.timeline.sessions.clone() {
            let earlier_lane = before.sessions.iter().find(|other| other.name == lane.name);
            let earlier_tip = earlier_lane
                .and_then(|other| other.rows.first())
                .map(|row| row.commit);
            if let Some(row) = lane
                .rows
                .first()
                .filter(|row| Some(row.commit) != earlier_tip)
            {
                let text = format!("New: {}:{} {}", lane.name, row.number, row.title);
                self.print_line(StyledLine::of(Tone::Added, &text))?;
            }
        }
        Ok(())
    }

    fn list(&mut self, more: bool) -> anyhow::Result<()> {
        if !more {
            self.listed = 0;
            for lane in self.timeline.sessions.clone() {
                self.print_line(about(&lane))?;
            }
        }
        let Some(lane) = self.timeline.sessions.get(self.here.0) else {
            let none = "There are no sessions; `teddy start '<what you want>'` starts one.";
            return Ok(self.print_line(StyledLine::plain(none))?);
        };

        let rows = lane.rows.iter().skip(self.listed).take(PAGE);
        let lines: Vec<StyledLine> = rows
            .map(|row| {
                turn_text::log_line(&format!("{:>4}", row.number), row, None, LogColumns::All)
            })
            .collect();
        let remaining = lane.rows.len().saturating_sub(self.listed + lines.len());
        self.listed += lines.len();
        self.print(&lines)?;
        if remaining > 0 {
            let text = format!("{} more: more", counted(remaining, "turn"));
            self.print_line(StyledLine::of(Tone::Faint, &text))?;
        }
        Ok(())
    }

    fn turn(&mut self, name: &str) -> anyhow::Result<()> {
        let (session, number) = name
            .rsplit_once(':')
            .map_or((None, name), |(session, number)| (Some(session), number));
        let number: u64 = number.parse()?;
        let mut lanes = self.timeline.sessions.iter();
        let lane = match session {
            Some(name) => lanes.position(|lane| lane.name.as_str() == name),
            None => Some(self.here.0),
        };
        // A branch shares the turns up to its branch point with its parent.
        let turn = lane.and_then(|lane| {
            self.timeline.ancestry(lane).find_map(|(lane, last)| {
                let mut rows = self.timeline.sessions[lane].rows.iter();
                let row = rows.position(|row| row.number == number && number <= last)?;
                Some((lane, row))
            })
        });
        self.here = turn.with_context(|| format!("there is no turn `{name}`; list names them"))?;
        self.show(BrowseTab::Conversation)
    }

    fn step(&mut self, by: isize) -> anyhow::Result<()> {
        let (lane, row) = self.here;
        let count = self
            .timeline
            .sessions
            .get(lane)
            .map_or(0, |lane| lane.rows.len());
        match row.checked_add_signed(by).filter(|row| *row < count) {
            Some(row) => {
                self.here = (lane, row);
                self.show(BrowseTab::Conversation)
            }
            None => anyhow::bail!("there is no further turn in this session"),
        }
    }

    fn show(&mut self, tab: BrowseTab) -> anyhow::Result<()> {
        let turn_view = self.turn_view()?;
        // Unfold every file: there is no key for it here.
        let is_few = turn_view::are_files_open(&turn_view);
        let lines = turn_view::tab_lines(&turn_view, tab, WIDTH, &|_| !is_few).into_iter();
        let lines: Vec<StyledLine> = lines.map(|line| line.line).collect();
        Ok(self.print(&lines)?)
    }

    fn turn_view(&self) -> anyhow::Result<TurnView> {
        let Some((lane, commit)) = self.selected() else {
            anyhow::bail!("the session has no turns of its own");
        };
        turn_view::read_turn_view(self.project, &lane.name, commit)
    }

    fn find(&mut self, text: &str) -> anyhow::Result<()> {
        let turns = find_turns(self.project, text)?;
        if turns.is_empty() {
            anyhow::bail!("`{text}` was found nowhere");
        }

        let mut is_elsewhere = true;
        for (commit, location) in turns {
            let name = self.find_commit(commit).map(|(lane, row)| {
                let lane = &self.timeline.sessions[lane];
                format!("{}:{}", lane.name, lane.rows[row].number)
            });
            if let Some(name) = name {
                is_elsewhere = false;
                self.print_line(
                    StyledLine::of(Tone::Strong, &name).with(Tone::Plain, &format!(" {location}")),
                )?;
            }
        }

        anyhow::ensure!(
            !is_elsewhere,
            "`{text}` is in other sessions only; `teddy browse` without a name lists them all"
        );
        Ok(())
    }

    fn open(&mut self, path: &str) -> anyhow::Result<()> {
        let turn_view = self.turn_view()?;
        let mut files = turn_view.files.into_iter();
        let Some(file) = files.find(|file| path.is_empty() || file.file.path == path) else {
            anyhow::bail!("the turn did not change `{path}`");
        };
        let message = (self.actions)(BrowseAction::Open(Box::new(file.file)));
        Ok(self.print_line(StyledLine::plain(&message))?)
    }

    fn run_action(&mut self, key: char) -> anyhow::Result<()> {
        let (lane, row) = self.here;
        let lane = self.timeline.sessions.get(lane);
        let Some((lane, row)) = lane.and_then(|lane| Some((lane, lane.rows.get(row)?))) else {
            anyhow::bail!("the session has no turns of its own");
        };
        let address = TurnAddress {
            session: lane.name.clone(),
            number: row.number,
        };
        let action = match key {
            'b' => BrowseAction::Branch(address),
            'u' => BrowseAction::Undo(address),
            'r' => BrowseAction::Restore(address),
            'c' => BrowseAction::Review(address.session),
            _ => BrowseAction::Land(address),
        };
        // The action can write to the terminal itself, so flush our output first.
        self.out.flush()?;
        let message = (self.actions)(action);
        Ok(self.print_line(StyledLine::plain(&message))?)
    }

    fn copy(&mut self) -> anyhow::Result<()> {
        let Some((_, commit)) = self.selected() else {
            anyhow::bail!("the session has no turns of its own");
        };
        let message = (self.actions)(BrowseAction::Copy(commit.to_string()));
        Ok(self.print_line(StyledLine::plain(&message))?)
    }

    fn selected(&self) -> Option<(&SessionLane, CommitId)> {
        let lane = self.timeline.sessions.get(self.here.0)?;
        Some((lane, lane.rows.get(self.here.1)?.commit))
    }

    fn find_commit(&self, commit: CommitId) -> Option<(usize, usize)> {
        let lanes = self.timeline.sessions.iter().enumerate();
        lanes.into_iter().find_map(|(at, lane)| {
            let row = lane.rows.iter().position(|row| row.commit == commit)?;
            Some((at, row))
        })
    }

    fn name(&self) -> String {
        let lane = self.timeline.sessions.get(self.here.0);
        let number = lane.and_then(|lane| Some((lane, lane.rows.get(self.here.1)?)));
        number.map_or("teddy".to_owned(), |(lane, row)| {
            format!("{}:{}", lane.name, row.number)
        })
    }

    fn print_line(&mut self, line: StyledLine) -> io::Result<()> {
        self.print(&[line])
    }

    fn print(&mut self, lines: &[StyledLine]) -> io::Result<()> {
        self.out
            .write_all(style::text(lines, self.paint).as_bytes())
    }
}

fn about(lane: &SessionLane) -> StyledLine {
    let used = if lane.in_use { ", in use" } else { "" };
    let from = lane.parent.as_ref();
    let from = from.map_or(String::new(), |(name, turn)| {
        format!(", from {name}:{turn}")
    });
    let count = counted(lane.turns(), "turn");
    let line = StyledLine::plain("Session ").with(Tone::Strong, lane.name.as_str());
    let line = line.with(Tone::Plain, &format!(": {count}{used}{from}"));
    match &lane.ailing {
        Some(why) => line.with(Tone::Warning, &format!("; damaged: {why}")),
        None => line,
    }
}

const COMMAND_HELP: [(&str, &str); 15] = [
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
    ("comment", "review the plan that waits, with comments"),
    ("copy, quit", "copy its id; leave"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum LinearCommand {
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
    fn read(line: &str) -> Option<LinearCommand> {
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
            ("compare" | "C", [one, other]) => {
                LinearCommand::Compare([(*one).to_owned(), (*other).to_owned()])
            }
            ("open" | "e", _) => LinearCommand::Open(arguments.trim().to_owned()),
            ("branch" | "b", []) => LinearCommand::Do('b'),
            ("undo" | "u", []) => LinearCommand::Do('u'),
            ("restore" | "r", []) => LinearCommand::Do('r'),
            ("land" | "l", []) => LinearCommand::Do('l'),
            ("comment" | "c", []) => LinearCommand::Do('c'),
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
