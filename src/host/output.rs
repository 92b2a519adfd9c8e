//! Shows long output in a pager, chosen as git does: `GIT_PAGER`, `core.pager`, `PAGER`, `less`. An
//! empty value or `cat` means no pager.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::Stdio;

use super::{env, interrupt, process};

/// Exit codes of a shell that did not start its program.
const NOT_STARTED: [i32; 2] = [126, 127];

/// Shows text in the pager if stdout is a terminal, else prints it. Without a pager that starts, it
/// is printed as well. Quitting the pager early is not an error.
pub fn page(text: &str, core_pager: Option<&str>) -> io::Result<()> {
    let candidates = [
        variable("GIT_PAGER"),
        core_pager.map(str::to_owned),
        variable("PAGER"),
    ];
    match choose(candidates).filter(|_| io::stdout().is_terminal()) {
        Some(pager) => through(&pager, text),
        None => write_stdout(text),
    }
}

fn variable(name: &str) -> Option<String> {
    // A variable that is set but empty disables the pager.
    env::is_set(name).then(|| env::var(name).unwrap_or_default())
}

fn choose(candidates: [Option<String>; 3]) -> Option<String> {
    let pager = candidates
        .into_iter()
        .flatten()
        .next()
        .unwrap_or_else(|| "less".to_owned());
    (!matches!(pager.trim(), "" | "cat")).then_some(pager)
}

fn through(pager: &str, text: &str) -> io::Result<()> {
    // As in git, the pager is a shell command, and these are the defaults for `LESS` and `LV`.
    let mut command = process::command_by_hand("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if !env::is_set(name) {
            command.env(name, value);
        }
    }

    let Ok(mut child) = command.spawn() else {
        return write_stdout(text);
    };
    // Ctrl-c is for the pager, for example to stop a search.
    let (written, ended) = interrupt::without_handling(|| {
        let written = child
            .stdin
            .take()
            .map_or(Ok(()), |mut pipe| pipe.write_all(text.as_bytes()));
        (written, child.wait())
    });

    // The shell has said why.
    if ended?
        .code()
        .is_some_and(|code| NOT_STARTED.contains(&code))
    {
        return write_stdout(text);
    }
    ignore_closed_pipe(written)
}

/// Writes and flushes. Ignores a closed pipe.
pub fn write_stdout(bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    ignore_closed_pipe(out.write_all(bytes.as_ref()).and_then(|()| out.flush()))
}

pub fn ignore_closed_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(candidates: [Option<&str>; 3], expected: Option<&str>) {
        assert_eq!(
            choose(candidates.map(|w| w.map(str::to_owned))).as_deref(),
            expected
        );
    }

    #[test]
    fn the_first_wish_counts() {
        check([None, None, None], Some("less"));
        check([None, Some("delta"), Some("more")], Some("delta"));
        check([Some("most -s"), Some("delta"), None], Some("most -s"));
    }

    #[test]
    fn an_empty_wish_means_none() {
        check([Some(""), Some("delta"), None], None);
        check([Some("cat"), None, None], None);
        check([None, None, Some("")], None);
    }

    #[test]
    fn a_pager_that_is_left_early_is_no_error() {
        through("head -c 1 > /dev/null", &"line\n".repeat(100_000)).unwrap();
    }
}

#[cfg(test)]
mod stdout_tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        assert!(ignore_closed_pipe(writer.write_all(b"x")).is_ok());
        assert!(ignore_closed_pipe(Err(io::ErrorKind::StorageFull.into())).is_err());
    }
}
