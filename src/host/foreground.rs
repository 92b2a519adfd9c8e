//! Runs a program that uses the terminal for a while, such as `git commit` with its hooks and
//! editor.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use super::file::temporary_parent;
use super::{interrupt, process, screen};

const TICK: Duration = Duration::from_millis(10);
/// How long to read output after the program has ended. Its background processes can keep the pipe
/// open.
const LINGER: Duration = Duration::from_millis(500);
const MAX_PIECES: usize = 16;
/// How long it has to end by itself after an interrupt: a hook might have to restore the user's
/// edits.
const GRACE: Duration = Duration::from_secs(5);

/// Handling of ctrl-c while the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreground {
    /// TeDDy handles it and ends the program.
    Watched,
    /// The program handles it, because it prompts the user.
    Terminal,
}

/// Runs a program with its output on stderr. An interrupt ends it and its children.
pub fn run(command: &mut Command, keys: Foreground) -> io::Result<ExitStatus> {
    command.stdout(io::stderr());
    if keys == Foreground::Terminal {
        command.stdin(Stdio::inherit());
        let status = interrupt::without_handling(|| command.status())?;
        // If ctrl-c ended an editor or hook, the user wants to stop TeDDy as well.
        if was_interrupted(status) {
            interrupt::raise();
        }
        return Ok(status);
    }

    // In another group than the terminal's, the program would be stopped when it reads the
    // terminal.
    let has_group = !screen::can_prompt();
    if has_group {
        command.process_group(0);
    }

    let mut child = command.spawn()?;
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            if let Some(since) = asked.filter(|_| has_group) {
                end_group(Pid::from_child(&child), since);
            }
            return Ok(status);
        }

        match asked {
            None if interrupt::requested() => {
                signal(&child, has_group, Signal::TERM);
                asked = Some(Instant::now());
            }
            Some(since) if since.elapsed() > GRACE => signal(&child, has_group, Signal::KILL),
            _ => {}
        }

        std::thread::sleep(TICK);
    }
}

/// Waits for the process group of a program that has ended, and kills the rest after [`GRACE`].
fn end_group(group: Pid, since: Instant) {
    while test_kill_process_group(group).is_ok() {
        if since.elapsed() > GRACE {
            let _ = kill_process_group(group, Signal::KILL);
            return;
        }
        std::thread::sleep(TICK);
    }
}

/// Runs a program that has the terminal, including ctrl-c. A termination signal to us is passed on to
/// the program.
pub fn accompany(command: &mut Command) -> io::Result<ExitStatus> {
    interrupt::without_handling(|| {
        let mut child = command.spawn()?;
        let mut is_told = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if !is_told && interrupt::requested() {
                signal(&child, false, Signal::TERM);
                is_told = true;
            }

            thread::sleep(TICK);
        }
    })
}

pub fn read_manual(page: &[u8]) -> io::Result<ExitStatus> {
    let mut file = tempfile::Builder::new()
        .suffix(".1")
        .tempfile_in(temporary_parent())?;
    file.write_all(page)?;
    let mut command = process::command("man");
    command.arg(file.path());
    interrupt::without_handling(|| command.status())
}

/// Runs a program at the terminal. Its output goes there and to `on_output`, in order. Does not
/// wait for background processes.
pub fn run_captured(
    command: &mut Command,
    on_output: &mut dyn FnMut(&[u8]),
) -> io::Result<ExitStatus> {
    let (reader, writer) = io::pipe()?;
    command.stdin(Stdio::inherit());
    command.stdout(writer.try_clone()?).stderr(writer);

    interrupt::without_handling(|| {
        let mut child = command.spawn()?;
        // Closes our copies of the write end. Otherwise the reader would never see the end of the
        // pipe.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let pieces = pieces(reader);
        let mut ended = None;
        while ended.is_none_or(|ended: Instant| ended.elapsed() < LINGER) {
            match pieces.recv_timeout(TICK) {
                Ok(bytes) => {
                    io::stderr().write_all(&bytes)?;
                    on_output(&bytes);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if ended.is_none() && child.try_wait()?.is_some() {
                ended = Some(Instant::now());
            }
        }
        child.wait()
    })
}

fn pieces(mut reader: impl io::Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, pieces) = sync_channel(MAX_PIECES);
    thread::spawn(move || {
        let mut bytes = [0; 8192];
        loop {
            match reader.read(&mut bytes) {
                Ok(0) => return,
                Ok(count) if sender.send(bytes[..count].to_vec()).is_err() => break,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
                _ => {}
            }
        }
        // The receiver is gone. Background processes must not block on a full pipe.
        let _ = io::copy(&mut reader, &mut io::sink());
    });
    pieces
}

fn was_interrupted(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;

    // A shell reports a child killed by a signal as exit code 128 + signal.
    let signal = status.signal().or(status.code().map(|code| code - 128));
    signal == Some(signal_hook::consts::SIGINT)
}

fn signal(child: &Child, has_group: bool, signal: Signal) {
    let id = Pid::from_child(child);
    // Fails if the process is already gone.
    let _ = if has_group {
        kill_process_group(id, signal)
    } else {
        kill_process(id, signal)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_waited_for() {
        let mut command = process::command("sh");
        command.args(["-c", "exit 3"]);
        let status = run(&mut command, Foreground::Watched).unwrap();
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn what_a_program_writes_is_heard_in_order() {
        let mut command = process::command("sh");
        command.args(["-c", "echo a; echo b >&2; echo c; exit 3"]);
        let mut text = Vec::new();
        let status = run_captured(&mut command, &mut |bytes| text.extend(bytes)).unwrap();
        assert_eq!((status.code(), text), (Some(3), b"a\nb\nc\n".to_vec()));
    }

    #[test]
    fn what_a_program_leaves_in_the_background_is_not_waited_for() {
        let mut command = process::command("sh");
        command.args(["-c", "sleep 20 & echo a"]);
        let (begin, mut text) = (Instant::now(), Vec::new());
        let status = run_captured(&mut command, &mut |bytes| text.extend(bytes)).unwrap();
        assert_eq!((status.code(), text), (Some(0), b"a\n".to_vec()));
        assert!(begin.elapsed() < Duration::from_secs(15));
    }
}
