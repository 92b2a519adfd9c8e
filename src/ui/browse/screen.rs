//! Event loop of the browser: draws, reads keys, and applies data from the reader threads without
//! ever waiting for them.

use std::io;
use std::time::Duration;

use super::browser::{BrowseSide, Browser};
use super::draw;
use super::source::{BrowseRequest, BrowseSource};
use super::tree::TreeItem;
use crate::ui::browse::turn_view::BrowseTab;
use crate::ui::browse::{BrowseAction, CarryOut};
use crate::ui::key::Key;
use crate::ui::list::Search;
use crate::ui::pager::Pager;
use crate::ui::style::Paint;
use crate::ui::terminal::{self, Full};

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
            draw::fit(&mut browser, full.area()?);
            full.draw(|frame| draw::draw(frame, &browser, title, paint))?;
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
