//! Test of the terminal after a panic.

use std::io::Read as _;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use super::*;
use crate::host::env;

/// Set in the child process that panics.
const PANICS: &str = "TEDDY_TEST_PANICS";

#[test]
fn a_panic_on_a_full_screen_gives_the_terminal_back_before_it_prints() {
    if env::is_set(PANICS) {
        crate::host::panic::install();
        let _full = Full::enter().unwrap();
        panic!("the message of the panic");
    }

    let pty = native_pty_system()
        .openpty(PtySize {
            rows: 24,
            cols: 120,
            pixel_width: 0,
            pixel_height: 0,
        })
        .unwrap();
    let before = pty.master.get_termios().unwrap();
    let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
    let name =
        "ui::terminal::tests::a_panic_on_a_full_screen_gives_the_terminal_back_before_it_prints";

    command.args(["--exact", name, "--nocapture"]);
    command.env(PANICS, "1");
    command.env("RUST_BACKTRACE", "0");
    command.env("TERM", "xterm-256color");
    let mut child = pty.slave.spawn_command(command).unwrap();
    let mut reader = pty.master.try_clone_reader().unwrap();
    let reading = std::thread::spawn(move || {
        let (mut written, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(length @ 1..) = reader.read(&mut buffer) {
            written.extend_from_slice(&buffer[..length]);
        }
        written
    });

    assert!(!child.wait().unwrap().success());
    let after = pty.master.get_termios().unwrap();
    assert_eq!(
        (after.local_flags, after.input_flags, after.output_flags),
        (before.local_flags, before.input_flags, before.output_flags)
    );
    drop(pty.slave);
    let mut screen = vt100::Parser::new(24, 120, 0);

    screen.process(&reading.join().unwrap());
    let screen = screen.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
    assert!(
        screen.contents().contains("the message of the panic"),
        "{}",
        screen.contents()
    );
}
