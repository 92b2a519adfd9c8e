//! Event loop of the browser: draws, reads keys, and applies data from the reader threads without
//! ever waiting for them.

use std::io;
use std::time::Duration;

use super::action::{BrowseAction, BrowseActions};
use super::browser::Browser;
use super::draw;
use super::keys::BrowseCommand;
use super::source::BrowseSource;
use crate::ui::style::Paint;
use crate::ui::terminal::{self, Full};

/// How long to wait for the first turns before the first draw.
const FIRST: Duration = Duration::from_millis(150);
/// How long to wait for a key before checking for data.
const TICK: Duration = Duration::from_millis(40);

/// What surrounds the browser's contents.
pub struct BrowseFrame<'a> {
    /// The first line.
    pub title: &'a str,
    /// Whether to use colors.
    pub paint: Paint,
}

/// Runs the browser until the user leaves.
pub fn browse(
    source: &BrowseSource,
    actions: &mut dyn BrowseActions,
    frame: &BrowseFrame<'_>,
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
            let size = full.screen.size()?;
            let area = ratatui::layout::Rect::new(0, 0, size.width, size.height);
            draw::fit(&mut browser, area);
            let header = (frame.title, frame.paint);
            full.screen
                .draw(|frame| draw::draw(frame, &browser, header))?;
        }
        if let Some(request) = browser.next_request() {
            source.ask(request);
        }

        is_stale = false;
        // Handle all pending keys before the next draw, so a held key does not lag.
        let mut patience = TICK;
        while let Some(key) = terminal::key_within(patience)? {
            (is_stale, patience) = (true, Duration::ZERO);
            match browser.press(&key) {
                None => {}
                Some(BrowseCommand::Quit) => return Ok(()),
                Some(BrowseCommand::Renew) => full.renew()?,
                Some(BrowseCommand::Suspend) => full.suspend()?,
                Some(BrowseCommand::Read(request)) => source.ask(request),
                Some(BrowseCommand::Do(action)) => {
                    browser.notice = Some(carry_out(&mut full, actions, action)?);
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
    actions: &mut dyn BrowseActions,
    action: BrowseAction,
) -> io::Result<String> {
    // The clipboard needs no terminal, so don't leave the full screen.
    if matches!(action, BrowseAction::Copy(_)) {
        return Ok(actions.carry_out(action));
    }
    let message = terminal::lend(|| actions.carry_out(action))?;
    full.renew()?;
    Ok(message)
}
