//! Key presses and terminal events, independent of the terminal library.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A key press or another event of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// A lowercase character with ctrl.
    Ctrl(char),
    /// A lowercase character with alt.
    Alt(char),
    Enter,
    /// Enter with alt or shift.
    AltEnter,
    Esc,
    Tab,
    BackTab,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Backspace,
    Delete,
    /// Pasted text, from bracketed paste.
    Paste(String),
    /// The terminal was resized to this many columns and lines.
    Resize(u16, u16),
    /// The process was stopped and continued.
    Continued,
    /// The process should end.
    Terminate,
}

impl Key {
    /// Converts an event of the terminal. Returns `None` for other events, such as key releases.
    pub fn read(event: Event) -> Option<Key> {
        match event {
            Event::Key(event) if event.kind != KeyEventKind::Release => pressed(event),
            Event::Paste(text) => Some(Key::Paste(text)),
            Event::Resize(columns, lines) => Some(Key::Resize(columns, lines)),
            _ => None,
        }
    }
}

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
