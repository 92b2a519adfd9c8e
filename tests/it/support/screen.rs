//! A pseudo-terminal that renders a program's output and sends it keys and signals.

use std::io::{Read as _, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::support::{PATIENCE, TestRepo};

/// A frame is complete if no output follows for this time.
const SILENCE: Duration = Duration::from_millis(200);
/// A program that has not ended by then hangs.
const MAX_RUN: Duration = Duration::from_secs(120);

pub struct Screen {
    parser: vt100::Parser,
    output: Receiver<Vec<u8>>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    written: Vec<u8>,
}

pub fn start(
    repo: &TestRepo,
    size: (u16, u16),
    (args, variables): (&[&str], &[(&str, &str)]),
) -> (Box<dyn MasterPty + Send>, Box<dyn Child + Send + Sync>) {
    spawn(repo, size, (env!("CARGO_BIN_EXE_teddy"), args, variables))
}

/// Starts any program with the environment of the test repository.
fn spawn(
    repo: &TestRepo,
    (cols, rows): (u16, u16),
    (program, args, variables): (&str, &[&str], &[(&str, &str)]),
) -> (Box<dyn MasterPty + Send>, Box<dyn Child + Send + Sync>) {
    let pty = native_pty_system()
        .openpty(PtySize {
            rows,
            cols,
            pixel_width: 0,
            pixel_height: 0,
        })
        .unwrap();
    let like = repo.teddy_command(&[]);
    let mut command = CommandBuilder::new(program);
    command.env_clear();
    command.cwd(repo.path());
    command.args(args);
    for (name, value) in like.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("TERM", "xterm-256color");
    command.env("TEDDY", env!("CARGO_BIN_EXE_teddy"));
    command.env("GIT_EDITOR", "printf 'mine\\n' >");
    variables
        .iter()
        .for_each(|(name, value)| command.env(name, value));
    let child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    (pty.master, child)
}

impl Screen {
    pub fn open(repo: &TestRepo, size: (u16, u16), args: &[&str]) -> Screen {
        Screen::open_with(repo, size, (args, &[]))
    }

    pub fn open_with(
        repo: &TestRepo,
        (cols, rows): (u16, u16),
        (args, variables): (&[&str], &[(&str, &str)]),
    ) -> Screen {
        let (master, child) = start(repo, (cols, rows), (args, variables));
        Screen::of(master, child)
    }

    /// Runs a shell script, in which `$TEDDY` is the program.
    pub fn shell(
        repo: &TestRepo,
        (cols, rows): (u16, u16),
        (script, variables): (&str, &[(&str, &str)]),
    ) -> Screen {
        let (master, child) = spawn(repo, (cols, rows), ("sh", &["-c", script], variables));
        Screen::of(master, child)
    }

    /// Runs an interactive shell with job control.
    pub fn jobs(repo: &TestRepo, (cols, rows): (u16, u16)) -> Screen {
        let (master, child) = spawn(
            repo,
            (cols, rows),
            ("sh", &["-i"], &[("PS1", "SHELL> "), ("ENV", "/dev/null")]),
        );
        Screen::of(master, child)
    }

    fn of(master: Box<dyn MasterPty + Send>, child: Box<dyn Child + Send + Sync>) -> Screen {
        let size = master.get_size().unwrap();
        let (mut reader, keys) = (
            master.try_clone_reader().unwrap(),
            master.take_writer().unwrap(),
        );
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Screen {
            parser: vt100::Parser::new(size.rows, size.cols, 0),
            output,
            keys,
            child,
            master,
            written: Vec::new(),
        }
    }

    /// Waits until the text appears. Returns the screen.
    pub fn wait_for(&mut self, text: &str) -> String {
        let start = Instant::now();
        loop {
            let shown = self.shown();
            if shown.contains(text) {
                return shown;
            }
            let left = PATIENCE.saturating_sub(start.elapsed());
            let Ok(bytes) = self.output.recv_timeout(left) else {
                panic!("no `{text}` on the screen:\n{shown}")
            };
            self.take(&bytes);
        }
    }

    /// Waits until the screen ends with the text.
    ///
    /// An older prompt on the screen, with its answer behind it, does not count. A program
    /// discards keys that arrive before it asks.
    pub fn wait_for_prompt(&mut self, text: &str) -> String {
        let start = Instant::now();
        loop {
            let shown = self.shown();
            if shown.trim_end().ends_with(text) {
                return shown;
            }
            let left = PATIENCE.saturating_sub(start.elapsed());
            let Ok(bytes) = self.output.recv_timeout(left) else {
                panic!("the screen does not end with `{text}`:\n{shown}")
            };
            self.take(&bytes);
        }
    }

    pub fn read(&mut self) {
        let bytes = self
            .output
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("nothing more comes:\n{}", self.shown()));
        self.take(&bytes);
    }

    /// Returns the screen after `SILENCE`, because a frame can arrive in pieces.
    pub fn settled(&mut self) -> String {
        while let Ok(bytes) = self.output.recv_timeout(SILENCE) {
            self.take(&bytes);
        }
        self.shown()
    }

    /// Returns the text of the screen without trailing spaces.
    pub fn shown(&self) -> String {
        let lines: Vec<String> = self
            .parser
            .screen()
            .contents()
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        lines.join("\n")
    }

    pub fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    fn take(&mut self, bytes: &[u8]) {
        self.written.extend_from_slice(bytes);
        self.parser.process(bytes);
    }

    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.written
    }

    /// Checks whether the program uses the alternate screen.
    pub fn is_full(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// Checks whether the terminal is in cooked mode with echo, as a shell leaves it.
    pub fn is_ordinary(&self) -> bool {
        use rustix::termios::LocalModes;
        let wanted = (LocalModes::ICANON | LocalModes::ECHO).bits();
        self.master.get_termios().unwrap().local_flags.bits() & wanted == wanted
    }

    pub fn resize(&mut self, (cols, rows): (u16, u16)) {
        self.parser.screen_mut().set_size(rows, cols);
        self.master
            .resize(PtySize {
                rows,
                cols,
                pixel_width: 0,
                pixel_height: 0,
            })
            .unwrap();
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.process_id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Waits for the program to exit and reads the rest of its output.
    pub fn end(&mut self) -> u32 {
        let started = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.exit_code();
            }
            if started.elapsed() > MAX_RUN {
                let _ = self.child.kill();
                panic!("it has not ended:\n{}", self.shown());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        while let Ok(bytes) = self.output.recv_timeout(PATIENCE) {
            self.take(&bytes);
        }
        assert!(
            !self.is_full()
                && !self.parser.screen().hide_cursor()
                && !self.parser.screen().bracketed_paste()
        );
        code
    }
}
