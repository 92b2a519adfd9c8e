//! Reading a text on a full screen, key by key.

use std::io;

use super::draw;
use super::key::Key;
use super::style::Paint;
use super::terminal::{self, Full};
use super::viewer::{self, Viewer, ViewerCommand};

/// Lines for title and keys.
const FRAME: u16 = 2;

/// Shows a text until the person closes it.
///
/// # Errors
/// The terminal is gone.
pub fn read(full: &mut Full, viewer: Viewer, paint: Paint) -> io::Result<()> {
    let mut viewer = viewer;
    let mut below = None;
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
            // The help lies above what it was asked for.
            Some(ViewerCommand::Close) => match below.take() {
                Some(text) => viewer = text,
                None => return Ok(()),
            },
            Some(ViewerCommand::Help) if below.is_none() => {
                below = Some(std::mem::replace(&mut viewer, viewer::help()));
            }
            Some(ViewerCommand::Help) => {}
            Some(ViewerCommand::Suspend) => full.suspend()?,
            None if matches!(key, Key::Resize(..) | Key::Continued) => full.renew()?,
            None => {}
        }
    }
}
