//! `git teddy`: runs the `teddy` program in the same directory.
//!
//! Git starts `git-teddy` for `git teddy`. A second copy of the whole program under that name would
//! double what is linked and shipped; this one only finds `teddy` and becomes it. The name under
//! which it was started is handed on, so that usage and hints say `git teddy`.

use std::env;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The exit code of a failure, as `teddy` itself has it.
const FAILED: u8 = 1;

#[expect(
    clippy::disallowed_methods,
    reason = "becoming another program is all that this one does; it links nothing of ours"
)]
fn main() -> ExitCode {
    let program = find_sibling_teddy().unwrap_or_else(|| PathBuf::from("teddy"));

    // Only returns if the program cannot be started.
    let error = Command::new(&program)
        .arg0("git-teddy")
        .args(env::args_os().skip(1))
        .exec();

    // There is no other place to report a failure of this write.
    let _ = writeln!(
        std::io::stderr(),
        "error: cannot start `{}`: {error}\nhint: install `teddy` beside `git-teddy`, or on your PATH",
        program.display(),
    );

    ExitCode::from(FAILED)
}

/// Returns the `teddy` in the directory of this program, links followed: a package may link
/// `git-teddy` into another directory.
fn find_sibling_teddy() -> Option<PathBuf> {
    let this = env::current_exe().ok()?;
    let sibling = |program: &Path| {
        let teddy = program.with_file_name("teddy");
        teddy.is_file().then_some(teddy)
    };

    sibling(&this).or_else(|| sibling(&this.canonicalize().ok()?))
}
