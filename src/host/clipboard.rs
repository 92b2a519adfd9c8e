//! Reads and writes the clipboard through desktop programs or tmux. Copying falls back to the
//! terminal escape sequence OSC 52.
//!
//! A helper program keeps the copied text available after TeDDy exits, which a clipboard library
//! cannot do. Without a helper the calls fail immediately; they never wait.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::time::Duration;

use super::{env, helper, process};

const LIMIT: Duration = Duration::from_secs(1);
// Limit of common terminals for OSC 52, in bytes of base64.
const MAX_OSC52: usize = 74_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Helper {
    copy: &'static [&'static str],
    paste: &'static [&'static str],
    /// Expects UTF-16 on its input.
    wide: bool,
}

const fn helper(copy: &'static [&'static str], paste: &'static [&'static str]) -> Helper {
    Helper {
        copy,
        paste,
        wide: false,
    }
}

const MACOS: Helper = helper(&["pbcopy"], &["pbpaste"]);
const WSL: Helper = Helper {
    copy: &["clip.exe"],
    paste: &[
        "powershell.exe",
        "-NoProfile",
        "-Command",
        "[Console]::OutputEncoding=[Text.Encoding]::UTF8; Get-Clipboard -Raw",
    ],
    wide: true,
};
const WAYLAND: Helper = helper(&["wl-copy"], &["wl-paste", "--no-newline"]);
const XCLIP: Helper = helper(
    &["xclip", "-selection", "clipboard"],
    &["xclip", "-selection", "clipboard", "-o"],
);
const XSEL: Helper = helper(
    &["xsel", "--clipboard", "--input"],
    &["xsel", "--clipboard", "--output"],
);
// `-w` also passes the text to the clipboard of the outer terminal, if that allows it.
const TMUX: Helper = helper(
    &["tmux", "load-buffer", "-w", "-"],
    &["tmux", "save-buffer", "-"],
);

/// How a text was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    ToClipboard,
    /// A terminal does not say whether it takes the text.
    ToTerminal,
}

impl Copied {
    pub fn predicate(self) -> &'static str {
        match self {
            Copied::ToClipboard => "is in the clipboard",
            Copied::ToTerminal => "was sent to the clipboard of your terminal",
        }
    }
}

pub fn copy(text: &str) -> io::Result<Copied> {
    for helper in helpers(&is_there) {
        let input = if helper.wide {
            wide(text)
        } else {
            text.as_bytes().to_vec()
        };
        // xclip and wl-copy stay in the background to own the selection, so do not wait for output.
        if helper::run_with_input(&mut command(helper.copy), &input, LIMIT).is_ok() {
            return Ok(Copied::ToClipboard);
        }
    }

    through_terminal(text)?;
    Ok(Copied::ToTerminal)
}

/// Returns the text in the clipboard. Fails if no clipboard is reachable or it contains no text.
pub fn paste() -> io::Result<String> {
    for helper in helpers(&is_there) {
        if let Ok(answer) = helper::run_for_answer(&mut command(helper.paste), b"", LIMIT)
            && answer.status.success()
        {
            return String::from_utf8(answer.stdout).map_err(|_| {
                io::Error::new(io::ErrorKind::InvalidData, "the clipboard contains no text")
            });
        }
    }

    Err(unreachable("give the text on standard input (`-`) instead"))
}

/// Returns the helpers for this environment, best first. `is_set` tests an environment variable.
fn helpers(is_set: &dyn Fn(&str) -> bool) -> Vec<Helper> {
    let desktop: &[(bool, Helper)] = &[
        (cfg!(target_os = "macos"), MACOS),
        (is_set("WSL_DISTRO_NAME"), WSL),
        (is_set("WAYLAND_DISPLAY"), WAYLAND),
        (is_set("DISPLAY"), XCLIP),
        (is_set("DISPLAY"), XSEL),
        (is_set("TMUX"), TMUX),
    ];
    desktop
        .iter()
        .filter(|(here, _)| *here)
        .map(|(_, helper)| *helper)
        .collect()
}

fn is_there(variable: &str) -> bool {
    env::var_os(variable).is_some()
}

fn command(argv: &[&str]) -> std::process::Command {
    let mut command = process::command_by_hand(argv.first().copied().unwrap_or_default());
    command.args(argv.iter().skip(1));
    command
}

fn through_terminal(text: &str) -> io::Result<()> {
    let sequence = osc52(text, is_there("TMUX"))?;
    let mut terminal = OpenOptions::new()
        .write(true)
        .open("/dev/tty")
        .map_err(|_| unreachable("take the text from standard output instead"))?;
    terminal.write_all(sequence.as_bytes())
}

fn osc52(text: &str, tmux: bool) -> io::Result<String> {
    let encoded = base64(text.as_bytes());
    if encoded.len() > MAX_OSC52 {
        return Err(unreachable("the text is too long for the terminal's own"));
    }

    // Inside tmux, the sequence needs the passthrough prefix, and each ESC in it is doubled.
    Ok(match tmux {
        true => format!("\u{1b}Ptmux;\u{1b}\u{1b}]52;c;{encoded}\u{7}\u{1b}\\"),
        false => format!("\u{1b}]52;c;{encoded}\u{1b}\\"),
    })
}

fn unreachable(hint: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!("no clipboard is reachable from here; {hint}"),
    )
}

fn wide(text: &str) -> Vec<u8> {
    // The byte order mark tells `clip.exe` that the text is UTF-16.
    "\u{feff}"
        .encode_utf16()
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    let group = |chunk: &[u8]| {
        let number = chunk
            .iter()
            .chain([0, 0].iter())
            .take(3)
            .fold(0u32, |n, &byte| n << 8 | u32::from(byte));
        let digits = chunk.len() + 1;
        (0..4).map(move |position| {
            if position < digits {
                DIGITS[(number >> (18 - 6 * position) & 63) as usize] as char
            } else {
                '='
            }
        })
    };
    bytes.chunks(3).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(set: &[&str], expected: &[&str]) {
        let programs: Vec<_> = helpers(&|name| set.contains(&name))
            .iter()
            .map(|helper| helper.copy[0])
            .collect();
        assert_eq!(
            programs.strip_prefix(&["pbcopy"]).unwrap_or(&programs),
            expected
        );
    }

    #[test]
    fn helpers_follow_the_surroundings() {
        check(&[], &[]);
        check(
            &["WAYLAND_DISPLAY", "DISPLAY"],
            &["wl-copy", "xclip", "xsel"],
        );
        check(&["TMUX"], &["tmux"]);
        check(
            &["WSL_DISTRO_NAME", "DISPLAY"],
            &["clip.exe", "xclip", "xsel"],
        );
    }

    #[test]
    fn the_terminals_sequence_is_wrapped_for_tmux() {
        assert_eq!(osc52("hi", false).unwrap(), "\u{1b}]52;c;aGk=\u{1b}\\");
        assert_eq!(
            osc52("hi", true).unwrap(),
            "\u{1b}Ptmux;\u{1b}\u{1b}]52;c;aGk=\u{7}\u{1b}\\"
        );
        assert!(osc52(&"x".repeat(60_000), false).is_err());
    }

    #[test]
    fn base64_has_padding() {
        assert_eq!(
            ["", "f", "fo", "foo", "foob"].map(|t| base64(t.as_bytes())),
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
        );
    }

    #[test]
    fn windows_gets_utf16_with_a_mark() {
        assert_eq!(wide("ä"), [0xff, 0xfe, 0xe4, 0]);
    }
}
