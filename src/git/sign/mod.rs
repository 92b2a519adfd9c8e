//! Signatures: made and checked by git, with the user's settings, keys and programs.

pub mod check;
pub mod make;

use std::process::Command;

/// What could open a window, or ask at a terminal that is not ours to ask at.
const PROMPTS: [&str; 4] = ["DISPLAY", "WAYLAND_DISPLAY", "GPG_TTY", "SSH_ASKPASS"];

/// Takes every way to ask for a passphrase from a program and what it starts: what would wait for
/// an answer fails.
fn ask_nobody(command: &mut Command) {
    for name in PROMPTS {
        command.env_remove(name);
    }

    command
        .env("GIT_TERMINAL_PROMPT", "0")
        // ssh-keygen finds the terminal of its session even if no stream of it is one; it does not
        // look for it if it must ask a program, and this one has no answer.
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env("SSH_ASKPASS", "false");
}
