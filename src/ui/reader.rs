//! Shows a text on a full screen.

use std::io;

use super::draw;
use super::key::Key;
use super::style::Paint;
use super::terminal::{self, Full};
use super::viewer::{self, Viewer, ViewerCommand};

/// Lines for title and keys.
const FRAME: u16 = 2;

/// Shows a text until the user closes it.
pub fn read(full: &mut Full, viewer: Viewer, paint: Paint) -> io::Result<()> {
    let mut viewer = viewer;
    let mut lower = None;
    loop {
        let area = full.screen.size()?;
        viewer = viewer.fit(
            usize::from(area.width),
            usize::from(area.height.saturating_sub(FRAME)),
        );
        full.screen
            .draw(|frame| draw::text(frame, &viewer, paint))?;
        let key = terminal::next_key()?;
        let (next, act) = viewer.press(&key);

        viewer = next;
        match act {
            // Closing the help returns to the text.
            Some(ViewerCommand::Close) => match lower.take() {
                Some(text) => viewer = text,
                None => return Ok(()),
            },
            Some(ViewerCommand::Help) if lower.is_none() => {
                lower = Some(std::mem::replace(&mut viewer, viewer::help()));
            }
            Some(ViewerCommand::Help) => {}
            Some(ViewerCommand::Suspend) => full.suspend()?,
            None if matches!(key, Key::Resize(..) | Key::Continued) => full.renew()?,
            None => {}
        }
    }
}
