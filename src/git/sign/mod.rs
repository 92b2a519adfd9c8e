//! Signatures, created and verified by git with the user's settings, keys and programs.

pub mod check;
pub mod make;

use std::process::Command;

/// Variables through which a program could open a window or ask at another terminal.
const PROMPT_VARIABLES: [&str; 4] = ["DISPLAY", "WAYLAND_DISPLAY", "GPG_TTY", "SSH_ASKPASS"];

/// Makes programs fail instead of asking for a passphrase.
fn disable_prompts(command: &mut Command) {
    for name in PROMPT_VARIABLES {
        command.env_remove(name);
    }

    command
        .env("GIT_TERMINAL_PROMPT", "0")
        // ssh-keygen opens the terminal of its session even if none of its streams is one. With
        // SSH_ASKPASS_REQUIRE=force it runs a program instead, and this one fails.
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env("SSH_ASKPASS", "false");
}
