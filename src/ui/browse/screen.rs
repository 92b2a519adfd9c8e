//! The browser on a full screen: its event loop, and drawing with ratatui.
//!
//! The loop draws, reads keys, and applies data from the reader threads without ever waiting for
//! them.

use std::io;
use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::browser::{BrowseSide, Browser};
use super::source::{BrowseRequest, BrowseSource};
use super::tree::{BrowseTree, TreeItem, TreeRow};
use crate::git::object::CommitId;
use crate::query::log::LogRow;
use crate::query::view::timeline::SessionLane;
use crate::session::meta::Status;
use crate::text::counted;
use crate::ui::browse::turn_view::BrowseTab;
use crate::ui::browse::{BrowseAction, CarryOut};
use crate::ui::draw::{Panes, put, put_rows};
use crate::ui::key::Key;
use crate::ui::list::Search;
use crate::ui::pager::Pager;
use crate::ui::style::{Paint, StyledLine, Tone};
use crate::ui::terminal::{self, Full};
use crate::ui::turn_text::status_tone;

/// How long to wait for the first turns before the first draw.
const FIRST: Duration = Duration::from_millis(150);

/// How long to wait for a key before checking for data.
const TICK: Duration = Duration::from_millis(40);

/// Runs the browser until the user leaves. `title` is the first line.
pub fn browse(
    source: &BrowseSource,
    actions: &mut CarryOut<'_>,
    title: &str,
    paint: Paint,
) -> io::Result<()> {
    let mut browser = Browser::default();
    if let Some(news) = source.wait(FIRST) {
        browser.learn(news);
    }

    let mut full = Full::enter()?;
    let mut is_stale = true;
    loop {
        while let Some(news) = source.news() {
            browser.learn(news);
            is_stale = true;
        }
        if is_stale {
            fit(&mut browser, full.area()?);
            full.draw(|frame| draw(frame, &browser, title, paint))?;
        }
        if let Some(request) = browser.next_request() {
            source.ask(request);
        }

        is_stale = false;
        // Handle all pending keys before the next draw, so a held key does not lag.
        let mut patience = TICK;
        while let Some(key) = terminal::key_within(patience)? {
            (is_stale, patience) = (true, Duration::ZERO);
            full.handle(&key)?;
            match browser.press(&key) {
                None => {}
                Some(BrowseCommand::Quit) => return Ok(()),
                Some(BrowseCommand::Read(request)) => source.ask(request),
                Some(BrowseCommand::Do(action)) => {
                    browser.detail.notice = Some(carry_out(&mut full, actions, action)?);
                    // Show a new turn without waiting for the next poll.
                    source.poll_now();
                }
            }
        }
    }
}

/// Runs an action on the normal screen.
fn carry_out(
    full: &mut Full,
    actions: &mut CarryOut<'_>,
    action: BrowseAction,
) -> io::Result<String> {
    // The clipboard needs no terminal, so don't leave the full screen.
    if matches!(action, BrowseAction::Copy(_)) {
        return Ok(actions(action));
    }
    let message = terminal::lend(|| actions(action))?;
    full.renew()?;
    Ok(message)
}

const KEY_HELP: [(&str, &str); 27] = [
    ("↑ ↓  k j", "up and down: in the tree, or in the turn"),
    ("PgUp PgDn", "by a page, as do ctrl-b and ctrl-f"),
    ("home end  g G", "to the start, to the end"),
    ("enter  →", "open what is folded; go into the turn"),
    ("←  h  esc", "back to the tree; fold a session"),
    ("space", "open or fold a session, restores, a file"),
    ("tab, 1-5", "the tabs: turn, diff, outputs, input, meta"),
    ("J K", "scroll the turn while the keys go to the tree"),
    ("d", "the difference; enter opens a file, o all files"),
    ("z", "give the turn the whole screen, and back"),
    ("/", "in the tree: search requests, plans, reports, outputs"),
    ("", "of all sessions; in the turn: search its text"),
    ("n N", "to the next or previous match"),
    ("m", "mark a turn; two can be compared"),
    ("C", "compare the two marked turns, or one with this"),
    ("c", "comment on the plan that waits: opens its review"),
    ("e", "open a file in the editor as it was after the turn"),
    ("y", "copy the id of the turn"),
    ("b", "start a new session at this turn"),
    ("u", "undo all turns after this one"),
    ("r", "take the files back to this turn"),
    ("l", "land: commit what turns did to your branch"),
    ("", "u, r and l show what would change, and ask"),
    ("ctrl-l", "draw the screen anew"),
    ("ctrl-z", "suspend; fg resumes"),
    ("?", "this help"),
    ("q, ctrl-c", "back to the tree, then leave; leave at once"),
];

/// Command that a key returns to the caller.
#[derive(Debug)]
pub enum BrowseCommand {
    /// Leave the browser.
    Quit,
    Read(BrowseRequest),
    Do(BrowseAction),
}

impl Browser {
    pub fn press(&mut self, key: &Key) -> Option<BrowseCommand> {
        if *key == Key::Terminate {
            return Some(BrowseCommand::Quit);
        }
        if let Some(text) = &mut self.text {
            if text.press(key) {
                self.text = None;
            }
            return None;
        }
        if self.search.is_some() {
            return self.type_search(key);
        }

        self.detail.is_text = !self.has_cursor();
        self.detail.notice = None;
        let is_text = self.side == BrowseSide::Detail;
        let text = |at: usize| self.lines[at].line.text();
        match key {
            key if is_text && self.detail.search_by(key, text) => {}
            Key::Ctrl('c' | 'd') => return Some(BrowseCommand::Quit),
            Key::Char('q') if self.side == BrowseSide::Tree && !self.is_zoomed => {
                return Some(BrowseCommand::Quit);
            }
            Key::Char('q' | 'h') | Key::Esc | Key::Left => self.back(key),
            _ if self.moves(key) || self.turns_to(key) => {}
            Key::Char(c) => return self.command_for(*c),
            _ => {}
        }
        None
    }

    fn back(&mut self, key: &Key) {
        if self.side == BrowseSide::Detail || self.is_zoomed {
            self.side = BrowseSide::Tree;
            self.is_zoomed = false;
        } else if matches!(key, Key::Left | Key::Char('h')) {
            self.tree.fold(Some(false));
        }
    }

    fn moves(&mut self, key: &Key) -> bool {
        match (key, self.side) {
            (Key::Char('J'), _) => self.detail.scroll(1),
            (Key::Char('K'), _) => self.detail.scroll(-1),
            (key, BrowseSide::Tree) => return self.tree.list.move_by(key),
            (key, BrowseSide::Detail) => return self.detail.move_by(key),
        }
        true
    }

    fn turns_to(&mut self, key: &Key) -> bool {
        match key {
            Key::Tab => self.tab = self.tab.neighbor(1),
            Key::BackTab => self.tab = self.tab.neighbor(-1),
            Key::Char(c @ '1'..='5') => self.tab = BrowseTab::ALL[*c as usize - '1' as usize],
            Key::Char('d') => {
                self.tab = BrowseTab::Difference;
                self.side = BrowseSide::Detail;
            }
            Key::Char('z') => {
                self.is_zoomed = !self.is_zoomed;
                self.side = BrowseSide::Detail;
            }
            Key::Enter | Key::Right | Key::Char(' ') => self.open(key),
            Key::Char('o') => self.toggle_files(true),
            Key::Char('n') => self.go_to_found(1),
            Key::Char('N') => self.go_to_found(-1),
            Key::Char('?') => self.text = Some(Pager::keys(&KEY_HELP)),
            _ => return false,
        }
        true
    }

    fn open(&mut self, key: &Key) {
        if self.side == BrowseSide::Detail {
            match key {
                _ if self.has_cursor() => self.toggle_files(false),
                Key::Char(' ') => drop(self.detail.move_by(&Key::PageDown)),
                _ => {}
            }
            return;
        }

        let row = self.tree.row();
        let is_turn = row.is_some_and(|row| matches!(row.item, TreeItem::Turn(_)));
        let open = (*key == Key::Right).then_some(true);
        let is_folded = self.tree.fold(open);
        if !is_folded && (is_turn || *key == Key::Right) && *key != Key::Char(' ') {
            self.side = BrowseSide::Detail;
        }
    }

    fn type_search(&mut self, key: &Key) -> Option<BrowseCommand> {
        self.search = self.search.take().and_then(|search| search.press(key));
        if let Some(Search::Submitted(text)) = &self.search {
            let text = text.clone();
            self.search = None;
            return Some(BrowseCommand::Read(self.seek(&text)));
        }
        None
    }

    fn command_for(&mut self, key: char) -> Option<BrowseCommand> {
        match key {
            '/' => self.search = Some(Search::begin()),
            'm' => self.mark(),
            'C' => return self.compare(),
            'c' => return self.comment(),
            'e' => return self.open_file(),
            'y' => {
                let id = self.commit()?.to_string();
                return Some(BrowseCommand::Do(BrowseAction::Copy(id)));
            }
            'b' | 'u' | 'r' | 'l' => return self.action_for(key).map(BrowseCommand::Do),
            _ => {}
        }
        None
    }

    fn action_for(&mut self, key: char) -> Option<BrowseAction> {
        let mut address = self.address()?;
        // A turn before the branch point belongs to the session in use, too. Address it there.
        let is_on_the_way = self.tree.is_before_in_use(&address.session, address.number);
        if let Some(in_use) = self.tree.in_use().filter(|_| is_on_the_way) {
            address.session = in_use.clone();
        }
        let verb = match key {
            'b' => return Some(BrowseAction::Branch(address)),
            'r' => return Some(BrowseAction::Restore(address)),
            'u' if is_on_the_way => return Some(BrowseAction::Undo(address)),
            'l' if is_on_the_way => return Some(BrowseAction::Land(address)),
            'u' => "undone in it; r restores to any turn",
            _ => "landed; `teddy switch` goes to another session",
        };
        self.detail.notice = Some(format!(
            "turn {address} is not one of the session in use: only its turns can be {verb}"
        ));
        None
    }

    fn compare(&mut self) -> Option<BrowseCommand> {
        let here = self.address();
        let names = match (self.marks.as_slice(), here) {
            ([(_, one), (_, other)], _) => [one.to_string(), other.to_string()],
            ([(_, one)], Some(here)) if *one != here => [one.to_string(), here.to_string()],
            _ => {
                self.detail.notice = Some("mark a turn with m, and go to another one".to_owned());
                return None;
            }
        };
        self.detail.notice = Some(format!("comparing {} and {}…", names[0], names[1]));
        Some(BrowseCommand::Read(BrowseRequest::Compare(names)))
    }

    /// A recorded turn takes no comments: they are for a plan before it runs.
    fn comment(&mut self) -> Option<BrowseCommand> {
        let session = self.address()?.session;
        if session.remote().is_some() {
            let notice = "comments are for a plan before it runs; a fetched session has none";
            self.detail.notice = Some(notice.to_owned());
            return None;
        }
        Some(BrowseCommand::Do(BrowseAction::Review(session)))
    }

    fn open_file(&mut self) -> Option<BrowseCommand> {
        if let Some(file) = self.file() {
            let file = Box::new(file.file.clone());
            return Some(BrowseCommand::Do(BrowseAction::Open(file)));
        }

        let has_some = self
            .turn_view()
            .is_some_and(|turn_view| !turn_view.files.is_empty());
        self.detail.notice = Some(match has_some {
            true => {
                self.tab = BrowseTab::Difference;
                self.side = BrowseSide::Detail;
                "go to a file, and press e again".to_owned()
            }
            false => "the turn changed no file".to_owned(),
        });
        None
    }
}

/// Most important first: a narrow screen omits the rest.
const KEYS: [(&str, &str); 15] = [
    ("q", "quit"),
    ("?", "help"),
    ("enter", "open"),
    ("tab", "next tab"),
    ("/", "search"),
    ("d", "diff"),
    ("r", "restore"),
    ("u", "undo to here"),
    ("b", "branch"),
    ("l", "land"),
    ("m", "mark"),
    ("c", "comment"),
    ("C", "compare"),
    ("e", "editor"),
    ("y", "copy id"),
];

/// Fits the state to a screen size.
fn fit(browser: &mut Browser, area: Rect) {
    if let Some(text) = &mut browser.text {
        text.fit(area);
    }
    let panes = split_panes(area, browser.side, browser.is_zoomed);
    browser.tree.fit(usize::from(panes.list.height));
    if panes.side.width > 0 {
        browser.refresh(usize::from(panes.side.width));
    }
    let height = usize::from(panes.side.height);
    browser.detail.fit(browser.lines.len(), height);
}

/// Draws the browser. The caller must [`fit`] it to the frame first.
fn draw(frame: &mut Frame<'_>, browser: &Browser, title: &str, paint: Paint) {
    if let Some(text) = &browser.text {
        return text.draw(frame, paint);
    }

    let panes = split_panes(frame.area(), browser.side, browser.is_zoomed);
    panes.draw(frame, title, status(browser, &panes), &KEYS, paint);
    put(frame, tab_line(&panes), [tabs(browser)], paint);
    let width = usize::from(panes.list.width.saturating_sub(1));
    let tree = browser.tree.list.visible().map(|at| {
        let is_here = at == browser.tree.list.cursor();
        let mark = StyledLine::of(Tone::Accent, if is_here { "›" } else { " " });
        let line = mark.append(tree_line(browser, &browser.tree.rows()[at], width));
        (line, is_here && browser.side == BrowseSide::Tree)
    });
    put_rows(frame, panes.list, tree, paint);
    let detail = browser.detail.visible().map(|at| {
        let is_here = browser.has_cursor() && at == browser.detail.cursor();
        (browser.lines[at].line.clone(), is_here)
    });
    put_rows(frame, panes.side, detail, paint);
}

fn tabs(browser: &Browser) -> StyledLine {
    let name = |line: StyledLine, tab: &BrowseTab| match *tab == browser.tab {
        true => {
            let tone = match browser.side {
                BrowseSide::Detail => Tone::Accent,
                BrowseSide::Tree => Tone::Strong,
            };
            line.with(tone, &format!("[{}] ", tab.name()))
        }
        false => line.with(Tone::Faint, &format!("{} ", tab.name())),
    };
    BrowseTab::ALL.iter().fold(StyledLine::default(), name)
}

fn status(browser: &Browser, panes: &Panes) -> StyledLine {
    if let Some(prompt) = browser.search.as_ref().and_then(Search::prompt) {
        return prompt;
    }
    if let Some(status) = browser.detail.status() {
        return status;
    }
    if let Some(why) = &browser.trouble {
        return StyledLine::of(Tone::Removed, &format!("✗ {why}"));
    }

    let count = browser.tree.rows().len();
    let at = (browser.tree.list.cursor() + 1).min(count);
    let mut line = StyledLine::of(Tone::Faint, &format!("{at}/{count}"));
    if !browser.is_whole {
        line = line.with(Tone::Faint, " reading…");
    }
    if let Some(address) = browser.address() {
        line = line.with(Tone::Faint, &format!(" · {address}"));
    }
    if panes.side.height > 0 {
        line = line.with(Tone::Faint, &format!(" · {}", browser.detail.position()));
    }
    if let [(_, one), others @ ..] = browser.marks.as_slice() {
        let other = others
            .first()
            .map_or("…".to_owned(), |(_, other)| other.to_string());
        line = line.with(Tone::Warning, &format!(" · C compares {one} and {other}"));
    }
    line
}

/// Minimum width to show tree and turn side by side.
const MIN_WIDTH_COLUMNS: u16 = 76;

/// Minimum height to stack them on a narrower screen.
const MIN_HEIGHT_ROWS: u16 = 14;

/// Minimum and maximum width of the tree next to a turn.
const TREE_WIDTH: (u16, u16) = (30, 64);

/// Divides the screen. The line above the turn is for the tabs.
fn split_panes(area: Rect, side: BrowseSide, is_zoomed: bool) -> Panes {
    let panes = Panes::new(area);
    let body = panes.list;
    let stacked = |panes: Panes, height| Panes {
        divider: Rect::default(),
        ..panes.below(height)
    };
    match (is_zoomed, side) {
        (false, _) if area.width >= MIN_WIDTH_COLUMNS => {
            let panes = panes.beside((body.width * 2 / 5).clamp(TREE_WIDTH.0, TREE_WIDTH.1));
            let list = panes.side;
            let side = Panes { list, ..panes }.below(0).side;
            Panes { side, ..panes }
        }
        (false, _) if body.height >= MIN_HEIGHT_ROWS => stacked(panes, body.height * 2 / 5),
        (false, BrowseSide::Tree) => panes,
        _ => Panes {
            list: Rect::default(),
            ..stacked(panes, 0)
        },
    }
}

/// Returns the line above the turn.
fn tab_line(panes: &Panes) -> Rect {
    let side = panes.side;
    let y = side.y.saturating_sub(1);
    Rect {
        y,
        height: u16::from(side.width > 0),
        ..side
    }
}

/// Deeper branches are indented no further.
const MAX_INDENT: usize = 6;

/// Minimum width of the tree to show file counts.
const MIN_WIDTH_FILE_COUNT: usize = 44;

fn tree_line(browser: &Browser, row: &TreeRow, width: usize) -> StyledLine {
    let tree = &browser.tree;
    let lane = tree.lane(row);
    let start = StyledLine::default().blanks(2 * row.depth.min(MAX_INDENT));
    let line = match row.item {
        TreeItem::Session => session_line(start, tree, row),
        TreeItem::Damaged => {
            let why = lane.ailing.as_deref().unwrap_or_default();
            start.with(Tone::Warning, &format!("  ! {why}"))
        }
        TreeItem::Restores(at, count) => {
            let text = format!(" {} ", lane.rows[at].number);
            start
                .with(Tone::Faint, &format!("{text:>6}"))
                .with(Tone::Faint, &format!("▸ ↶ {}", counted(count, "restore")))
        }
        TreeItem::Turn(at) => {
            let is_marked = |commit: CommitId| {
                let mut marks = browser.marks.iter();
                marks.any(|(other, _)| *other == commit)
            };
            let row = &lane.rows[at];
            turn_line(start, row, is_marked(row.commit), width)
        }
    };
    line.cut(width)
}

fn session_line(start: StyledLine, tree: &BrowseTree, row: &TreeRow) -> StyledLine {
    let lane = tree.lane(row);
    let is_open = tree.is_open(row.lane);
    let line = start
        .with(Tone::Accent, if is_open { "▾ " } else { "▸ " })
        .with(Tone::Strong, lane.name.as_str());
    let line = match lane.in_use {
        true => line.with(Tone::Added, " (in use)"),
        false => line,
    };
    line.with(Tone::Faint, &lane_summary(lane, is_open))
}

fn lane_summary(lane: &SessionLane, is_open: bool) -> String {
    let from = lane.parent.as_ref();
    let from = from.map_or(String::new(), |(name, turn)| format!(" from {name}:{turn}"));
    let count = lane.turns();
    match (is_open, lane.rows.first()) {
        (false, Some(row)) => format!(" {}{from}: {}", counted(count, "turn"), row.title),
        (_, None) => format!("{from}, no turns of its own"),
        _ => from,
    }
}

fn turn_line(start: StyledLine, row: &LogRow, is_marked: bool, width: usize) -> StyledLine {
    let mark = if is_marked { "*" } else { " " };
    let line = start
        .with(Tone::Warning, mark)
        .with(Tone::Strong, &format!("{:>4} ", row.number))
        .with(
            status_tone(row.shown_status()),
            &format!("{} ", status_sign(row.shown_status())),
        )
        .blanks(2 * row.depth.min(MAX_INDENT));
    let facts = match row.files.len() {
        0 if row.too_many_files && width >= MIN_WIDTH_FILE_COUNT => {
            " (too many files to list)".to_owned()
        }
        0 => String::new(),
        _ if width < MIN_WIDTH_FILE_COUNT => String::new(),
        count => format!(" ({})", counted(count, "file")),
    };

    let max_width = width.saturating_sub(line.width() + facts.len()).max(1);
    let tone = match row.shown_status() {
        Status::Restored => Tone::Faint,
        Status::Landed => Tone::Accent,
        _ => Tone::Plain,
    };
    let title = StyledLine::of(tone, &row.title).cut(max_width);
    line.append(title).with(Tone::Faint, &facts)
}

/// Status is shown by color and sign, so it can be read without colors.
fn status_sign(status: Status) -> &'static str {
    match status {
        Status::Executed => "✓",
        Status::Failed | Status::Rejected => "✗",
        Status::Interrupted => "!",
        Status::Declined => "-",
        Status::Restored => "↶",
        Status::Landed => "⚑",
        Status::Picked => "+",
        Status::Recorded => "●",
        Status::Started | Status::Ready | Status::Planned => "○",
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod panes_tests {
    use super::*;

    #[track_caller]
    fn check(size: (u16, u16), side: BrowseSide, expected: [(u16, u16); 2]) {
        let area = Rect::new(0, 0, size.0, size.1);
        let panes = split_panes(area, side, false);
        let sizes = [panes.list, panes.side].map(|pane| (pane.width, pane.height));
        assert_eq!(sizes, expected, "{size:?}");
        let all = [
            panes.title,
            panes.list,
            tab_line(&panes),
            panes.side,
            panes.status,
            panes.keys,
        ];
        for pane in all {
            assert_eq!(pane.intersection(area), pane, "{size:?}");
        }
    }

    #[test]
    fn a_screen_of_any_size_is_divided() {
        check((120, 40), BrowseSide::Tree, [(48, 37), (70, 36)]);
        check((80, 24), BrowseSide::Tree, [(32, 21), (46, 20)]);
        check((60, 20), BrowseSide::Tree, [(60, 6), (60, 10)]);
        check((60, 12), BrowseSide::Tree, [(60, 9), (0, 0)]);
        check((60, 12), BrowseSide::Detail, [(0, 0), (60, 8)]);
        check((20, 5), BrowseSide::Tree, [(20, 3), (0, 0)]);
        check((20, 5), BrowseSide::Detail, [(0, 0), (20, 2)]);
        for (width, height) in [(1, 1), (0, 0), (3, 2), (200, 1), (76, 3)] {
            let area = Rect::new(0, 0, width, height);
            for side in [BrowseSide::Tree, BrowseSide::Detail] {
                let panes = split_panes(area, side, false);
                assert_eq!(panes.keys.intersection(area), panes.keys);
            }
        }
    }
}
