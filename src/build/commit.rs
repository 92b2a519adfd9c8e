//! Determines the commit that the programs are built from.
//!
//! The source is `TEDDY_COMMIT` (`<id>` or `<id> <date>`), else the file that cargo adds to a
//! package, else git. git is used only for the release profile, because otherwise each commit would
//! trigger a rebuild.
//!
//! Errors never fail the build. The result does not depend on the time or the machine.

use std::env;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

// cargo records a package's commit in this file.
const PACKAGED: &str = ".cargo_vcs_info.json";

const MOST: u64 = 4096;

/// Passes the commit, its date and the target to cargo.
pub fn emit() {
    println!("cargo::rerun-if-env-changed=TEDDY_COMMIT");
    let stamp = from_env().or_else(packaged).or_else(checked_out);
    let stamp = stamp.unwrap_or_default();
    let (commit, date) = stamp.split_once(' ').unwrap_or((&stamp, ""));

    println!("cargo::rustc-env=TEDDY_BUILD_COMMIT={commit}");
    println!("cargo::rustc-env=TEDDY_BUILD_DATE={date}");
    println!(
        "cargo::rustc-env=TEDDY_BUILD_TARGET={}",
        variable("TARGET").unwrap_or_default()
    );
}

fn from_env() -> Option<String> {
    variable("TEDDY_COMMIT").filter(|stamp| is_stamp(stamp))
}

fn packaged() -> Option<String> {
    let dir = variable("CARGO_MANIFEST_DIR")?;
    // Watch the file only if it exists: to cargo, a missing file counts as changed.
    let file = File::open(Path::new(&dir).join(PACKAGED)).ok()?;
    let mut note = String::new();
    file.take(MOST).read_to_string(&mut note).ok()?;
    println!("cargo::rerun-if-changed={PACKAGED}");

    let (_, tail) = note.split_once("\"sha1\"")?;
    let id = tail.split('"').nth(1)?;
    let id = if note.contains("\"dirty\": true") {
        format!("{id}-dirty")
    } else {
        id.to_owned()
    };
    is_stamp(&id).then_some(id)
}

fn checked_out() -> Option<String> {
    // Other builds carry no commit, because each commit would trigger a rebuild.
    if variable("PROFILE")? != "release" || !git(&["rev-parse", "--show-prefix"])?.is_empty() {
        // The package can be unpacked inside a different repository.
        return None;
    }

    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).is_file() {
        println!("cargo::rerun-if-changed={log}");
    }

    let id = git(&[
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ])?;
    let date = git(&["log", "-1", "--format=%cs"])?;
    Some(format!("{id} {date}")).filter(|stamp| is_stamp(stamp))
}

/// Returns `true` for a commit id with an optional date. Rejects anything else, because the
/// programs print it.
fn is_stamp(line: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ' ';
    line.len() >= 7 && line.len() <= 90 && line.chars().all(is_plain)
}

/// Returns git's output without the final line feed. `None` if git is missing or fails.
#[expect(
    clippy::disallowed_methods,
    reason = "a build script is a program of its own"
)]
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output
        .status
        .success()
        .then(|| text.trim_end_matches('\n').to_owned())
}

/// Returns an environment variable if it is not empty.
#[expect(
    clippy::disallowed_methods,
    reason = "a build script is a program of its own"
)]
pub fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
