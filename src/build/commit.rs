//! Which commit the programs are built from.
//!
//! It comes from `TEDDY_COMMIT` (`<id>` or `<id> <date>`), or else from what cargo wrote into
//! a package, or else, for a build with the release profile, from git. Other builds carry none: each
//! commit would have them made anew. Nothing here fails a build, and nothing depends on the time of
//! day or on the machine.

use std::env;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

/// Where cargo notes the commit that a package was made from.
const PACKAGED: &str = ".cargo_vcs_info.json";

/// The most bytes that are read of it.
const MOST: u64 = 4096;

/// Tells cargo the commit, its date, and what it is built for.
pub fn say() {
    println!("cargo::rerun-if-env-changed=TEDDY_COMMIT");
    let stamp = given().or_else(packaged).or_else(checked_out);
    let stamp = stamp.unwrap_or_default();
    let (commit, date) = stamp.split_once(' ').unwrap_or((&stamp, ""));

    println!("cargo::rustc-env=TEDDY_BUILD_COMMIT={commit}");
    println!("cargo::rustc-env=TEDDY_BUILD_DATE={date}");
    println!(
        "cargo::rustc-env=TEDDY_BUILD_TARGET={}",
        variable("TARGET").unwrap_or_default()
    );
}

/// Returns the commit that whoever builds has given; a line that could not be one is left out.
fn given() -> Option<String> {
    variable("TEDDY_COMMIT").filter(|stamp| is_stamp(stamp))
}

/// Returns the commit from which this package was made.
fn packaged() -> Option<String> {
    let folder = variable("CARGO_MANIFEST_DIR")?;
    // Only a file that is there is watched: cargo takes one that is missing for one that changed.
    let file = File::open(Path::new(&folder).join(PACKAGED)).ok()?;
    let mut note = String::new();
    file.take(MOST).read_to_string(&mut note).ok()?;
    println!("cargo::rerun-if-changed={PACKAGED}");

    let (_, behind) = note.split_once("\"sha1\"")?;
    let id = behind.split('"').nth(1)?;
    let id = if note.contains("\"dirty\": true") {
        format!("{id}-dirty")
    } else {
        id.to_owned()
    };
    is_stamp(&id).then_some(id)
}

/// Returns the commit that is checked out here, for a release.
fn checked_out() -> Option<String> {
    if variable("PROFILE")? != "release" || !git(&["rev-parse", "--show-prefix"])?.is_empty() {
        // A package unpacked in somebody else's repository is not of that repository's commit.
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

/// Tells whether a line is a commit's id and perhaps a date: what is printed later is no more.
fn is_stamp(line: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ' ';
    line.len() >= 7 && line.len() <= 90 && line.chars().all(is_plain)
}

/// Returns what git prints, without the final newline; nothing if it is missing or fails.
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

/// Returns a variable that is set to something.
#[expect(
    clippy::disallowed_methods,
    reason = "a build script is a program of its own"
)]
pub fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
