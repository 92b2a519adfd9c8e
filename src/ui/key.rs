//! `Key`: what a person presses, free of any terminal library.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// One press, or what else a terminal says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A character with ctrl, lower case.
    Ctrl(char),
    /// A character with alt, lower case.
    Alt(char),
    /// Enter.
    Enter,
    /// Enter with alt or shift.
    AltEnter,
    /// Escape.
    Esc,
    /// Tab.
    Tab,
    /// Tab with shift.
    BackTab,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the start.
    Home,
    /// To the end.
    End,
    /// Deletes to the left.
    Backspace,
    /// Deletes to the right.
    Delete,
    /// Text from the clipboard, as a terminal brackets it.
    Paste(String),
    /// The terminal has another size: columns, lines.
    Resize(u16, u16),
    /// The program was stopped and goes on.
    Continued,
    /// The process is asked to end.
    Closed,
}

impl Key {
    /// Returns what an event of the terminal means; nothing for releases, the mouse and the like.
    pub fn read(event: Event) -> Option<Key> {
        match event {
            Event::Key(event) if event.kind != KeyEventKind::Release => pressed(event),
            Event::Paste(text) => Some(Key::Paste(text)),
            Event::Resize(columns, lines) => Some(Key::Resize(columns, lines)),
            _ => None,
        }
    }
}

/// Returns what a press means.
fn pressed(event: KeyEvent) -> Option<Key> {
    let with = |modifier| event.modifiers.contains(modifier);
    Some(match event.code {
        KeyCode::Char(c) if with(KeyModifiers::CONTROL) => Key::Ctrl(c.to_ascii_lowercase()),
        KeyCode::Char(c) if with(KeyModifiers::ALT) => Key::Alt(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter if with(KeyModifiers::ALT) || with(KeyModifiers::SHIFT) => Key::AltEnter,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares what a press means.
    fn check(code: KeyCode, modifiers: KeyModifiers, expected: Option<Key>) {
        assert_eq!(
            Key::read(Event::Key(KeyEvent::new(code, modifiers))),
            expected
        );
    }

    #[test]
    fn modifiers_make_other_keys() {
        check(
            KeyCode::Char('C'),
            KeyModifiers::CONTROL,
            Some(Key::Ctrl('c')),
        );
        check(
            KeyCode::Char('A'),
            KeyModifiers::SHIFT,
            Some(Key::Char('A')),
        );
        check(KeyCode::Enter, KeyModifiers::ALT, Some(Key::AltEnter));
        check(KeyCode::F(1), KeyModifiers::NONE, None);
    }
}
