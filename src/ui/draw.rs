//! The full screens, drawn: a text to read, the checklist. States come from elsewhere.

use std::io;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text;
use ratatui::widgets::Paragraph;

use super::key::Key;
use super::style::{Line, Paint, Tone};
use super::terminal::{self, Full};
use super::viewer::{self, Viewer};

/// Shows a text until the person closes it.
///
/// # Errors
/// The terminal is gone.
pub fn read(full: &mut Full, viewer: Viewer, paint: Paint) -> io::Result<()> {
    let mut viewer = viewer;
    loop {
        let area = full.screen.size()?;
        viewer = viewer.fit(usize::from(area.width), usize::from(area.height.saturating_sub(2)));
        full.screen.draw(|frame| text(frame, &viewer, paint))?;
        let key = terminal::next_key()?;
        let (next, act) = viewer.press(&key);
        viewer = next;
        match act {
            Some(viewer::Act::Close) => return Ok(()),
            Some(viewer::Act::Suspend) => full.suspend()?,
            None if matches!(key, Key::Resize(..)) => full.screen.autoresize()?,
            None => {}
        }
    }
}

/// Draws a text: title, lines, keys.
pub fn text(frame: &mut Frame<'_>, viewer: &Viewer, paint: Paint) {
    let area = frame.area();
    let mut lines = vec![Line::of(Tone::Strong, &viewer.title)];
    lines.extend(viewer.shown().iter().cloned());
    lines.resize(usize::from(area.height.saturating_sub(1)), Line::default());
    lines.push(viewer::footer(viewer));
    put(frame, area, &lines, paint);
}

/// Draws lines into an area, each cut to its width.
pub fn put(frame: &mut Frame<'_>, area: Rect, lines: &[Line], paint: Paint) {
    let width = usize::from(area.width);
    let lines: Vec<text::Line<'_>> =
        lines.iter().take(usize::from(area.height)).map(|line| drawn(line.clone().cut(width), paint)).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// Returns a line as the library takes it.
pub fn drawn(line: Line, paint: Paint) -> text::Line<'static> {
    let span = |span: &super::style::Span| text::Span::styled(span.text().to_owned(), style(span.tone, paint));
    text::Line::from(line.spans().iter().map(span).collect::<Vec<_>>())
}

/// Returns how a tone looks; without colours, weight alone.
fn style(tone: Tone, paint: Paint) -> Style {
    let plain = Style::new();
    let (color, modifier) = match tone {
        Tone::Plain => return plain,
        Tone::Strong => return plain.add_modifier(Modifier::BOLD),
        Tone::Faint => return plain.add_modifier(Modifier::DIM),
        Tone::Added => (Color::Green, Modifier::empty()),
        Tone::Removed => (Color::Red, Modifier::empty()),
        Tone::AddedPart => (Color::Green, Modifier::BOLD.union(Modifier::UNDERLINED)),
        Tone::RemovedPart => (Color::Red, Modifier::BOLD.union(Modifier::UNDERLINED)),
        Tone::Warning => (Color::Yellow, Modifier::empty()),
        Tone::Accent => (Color::Cyan, Modifier::empty()),
    };
    match paint {
        Paint::Colors => plain.fg(color).add_modifier(modifier),
        Paint::Bare => plain.add_modifier(modifier),
    }
}
