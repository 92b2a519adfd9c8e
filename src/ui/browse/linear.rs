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
use crate::query::log::LogRow;
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
            match String::from_utf8_lossy(&line).trim() {
                "" => {}
                "quit" | "exit" | "q" => return Ok(()),
                line => self.carry_out(line)?,
            }
            self.out.flush()?;
        }
    }

    fn carry_out(&mut self, line: &str) -> anyhow::Result<()> {
        match self.command(line) {
            // A closed output ends the browser. Any other error is only reported.
            Err(error) if !error.is::<io::Error>() => {
                Ok(self.print_line(StyledLine::of(Tone::Warning, &format!("{error:#}")))?)
            }
            result => result,
        }
    }

    /// Runs a command. The keys of the full screen work here as well.
    fn command(&mut self, line: &str) -> anyhow::Result<()> {
        if let Some(text) = line.strip_prefix('/') {
            return self.find(text.trim());
        }

        let (word, arguments) = line.split_once(' ').unwrap_or((line, ""));
        let args: Vec<&str> = arguments.split_whitespace().collect();
        match (word, args.as_slice()) {
            ("list", []) => self.list(false),
            ("more", []) => self.list(true),
            ("next" | "j", []) => self.step(1),
            ("back" | "k", []) => self.step(-1),
            ("turn", []) => self.show(BrowseTab::Conversation),
            ("turn", [name]) => self.turn(name),
            ("diff" | "d", []) => self.show(BrowseTab::Difference),
            ("outputs", []) => self.show(BrowseTab::Outputs),
            ("input", []) => self.show(BrowseTab::Input),
            ("meta", []) => self.show(BrowseTab::Meta),
            ("find", [_, ..]) => self.find(arguments.trim()),
            ("compare" | "C", [one, other]) => {
                let names = [*one, *other].map(str::to_owned);
                let lines = compared(self.project, &names)?;
                Ok(self.print(&lines)?)
            }
            ("open" | "e", _) => self.open(arguments.trim()),
            ("branch" | "b", []) => self.run_action(BrowseAction::Branch),
            ("undo" | "u", []) => self.run_action(BrowseAction::Undo),
            ("restore" | "r", []) => self.run_action(BrowseAction::Restore),
            ("land" | "l", []) => self.run_action(BrowseAction::Land),
            ("comment" | "c", []) => self.run_action(|turn| BrowseAction::Review(turn.session)),
            ("copy" | "y", []) => self.copy(),
            ("help" | "?", []) => Ok(self.print(&key_lines(&COMMAND_HELP))?),
            (name, []) if is_turn_number(name) => self.turn(name),
            _ => anyhow::bail!("there is no command `{line}`; help lists them"),
        }
    }

    /// Reads the sessions again if they changed, and announces new turns.
    fn refresh(&mut self) -> anyhow::Result<()> {
        let now = mark(self.project, self.only.as_ref())?;
        if self.last_mark.as_ref() == Some(&now) {
            return Ok(());
        }

        let here = self.selected().map(|(_, row)| row.commit);
        let is_first = self.last_mark.replace(now).is_none();
        let before = std::mem::take(&mut self.timeline);
        self.timeline = timeline(self.project, self.only.as_ref())?;
        // The turn can have another index now.
        let place = here.and_then(|commit| self.find_commit(commit));
        self.here = place.unwrap_or((0, 0));
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
        let (lane, row) = self.own_turn()?;
        turn_view::read_turn_view(self.project, &lane.name, row.commit)
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

    fn run_action(&mut self, action: fn(TurnAddress) -> BrowseAction) -> anyhow::Result<()> {
        let (lane, row) = self.own_turn()?;
        let address = TurnAddress {
            session: lane.name.clone(),
            number: row.number,
        };
        // The action can write to the terminal itself, so flush our output first.
        self.out.flush()?;
        let message = (self.actions)(action(address));
        Ok(self.print_line(StyledLine::plain(&message))?)
    }

    fn copy(&mut self) -> anyhow::Result<()> {
        let id = self.own_turn()?.1.commit.to_string();
        let message = (self.actions)(BrowseAction::Copy(id));
        Ok(self.print_line(StyledLine::plain(&message))?)
    }

    fn selected(&self) -> Option<(&SessionLane, &LogRow)> {
        let lane = self.timeline.sessions.get(self.here.0)?;
        Some((lane, lane.rows.get(self.here.1)?))
    }

    fn own_turn(&self) -> anyhow::Result<(&SessionLane, &LogRow)> {
        self.selected()
            .context("the session has no turns of its own")
    }

    fn find_commit(&self, commit: CommitId) -> Option<(usize, usize)> {
        let lanes = self.timeline.sessions.iter().enumerate();
        lanes.into_iter().find_map(|(at, lane)| {
            let row = lane.rows.iter().position(|row| row.commit == commit)?;
            Some((at, row))
        })
    }

    fn name(&self) -> String {
        self.selected().map_or("teddy".to_owned(), |(lane, row)| {
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

fn is_turn_number(word: &str) -> bool {
    let number = word.rsplit_once(':').map_or(word, |(_, number)| number);
    number.parse::<u64>().is_ok()
}
