//! Long output page by page, by git's rule: `GIT_PAGER`, `core.pager`, `PAGER`, `less`; an empty
//! value or `cat` means none.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::Stdio;

use super::{env, interrupt, process, stdout};

/// Shows a text: through the pager if standard output is a terminal, else as it is.
///
/// # Errors
/// The output cannot be written. Leaving the pager early is no error.
pub fn page(text: &str, core_pager: Option<&str>) -> io::Result<()> {
    let wanted = [
        variable("GIT_PAGER"),
        core_pager.map(str::to_owned),
        variable("PAGER"),
    ];
    match choose(wanted).filter(|_| io::stdout().is_terminal()) {
        Some(pager) => through(&pager, text),
        None => stdout::write(text),
    }
}

/// Returns a variable that is set, be it to nothing.
fn variable(name: &str) -> Option<String> {
    env::is_set(name).then(|| env::var(name).unwrap_or_default())
}

/// Returns the first pager that is wanted; nothing if that is none.
fn choose(wanted: [Option<String>; 3]) -> Option<String> {
    let pager = wanted
        .into_iter()
        .flatten()
        .next()
        .unwrap_or_else(|| "less".to_owned());
    (!matches!(pager.trim(), "" | "cat")).then_some(pager)
}

/// Gives a text to a pager and waits for it. The pager is the user's own shell command, as in git.
fn through(pager: &str, text: &str) -> io::Result<()> {
    let mut command = process::command("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if !env::is_set(name) {
            command.env(name, value);
        }
    }

    let Ok(mut child) = command.spawn() else {
        return stdout::write(text);
    };
    // ctrl-c is the pager's: it stops a search, and says nothing about the command behind it.
    let (written, ended) = interrupt::deaf(|| {
        let written = child
            .stdin
            .take()
            .map_or(Ok(()), |mut pipe| pipe.write_all(text.as_bytes()));
        (written, child.wait())
    });

    ended?;
    stdout::quietly(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the choice.
    fn check(wanted: [Option<&str>; 3], expected: Option<&str>) {
        assert_eq!(
            choose(wanted.map(|w| w.map(str::to_owned))).as_deref(),
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
