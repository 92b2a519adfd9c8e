//! `teddy --version`: one line, or all build details with `-v`.

use std::ffi::OsString;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::app;
use super::exit::{ExitStatus, printed};
use crate::host::output;

const RELEASE: &str = env!("CARGO_PKG_VERSION");
/// Commit of the build; empty if unknown.
const COMMIT: &str = env!("TEDDY_BUILD_COMMIT");
/// Date of that commit; empty if unknown.
const DATE: &str = env!("TEDDY_BUILD_DATE");
const TARGET: &str = env!("TEDDY_BUILD_TARGET");

/// Digits of the commit in the short form.
const DIGITS: usize = 9;

/// Version line without the program's name: `0.1.0 (3f2a91c44 2026-11-23, +sandbox)`.
pub(super) fn line() -> &'static str {
    static LINE: LazyLock<String> = LazyLock::new(|| summary(RELEASE, COMMIT, DATE, &features()));
    LINE.as_str()
}

/// Prints the version as the command line asks for it. `error` is clap's, with the version line.
pub(super) fn print(error: &clap::Error, is_json: bool, is_verbose: bool) -> ExitStatus {
    printed(if is_json {
        app::json_text(&to_json())
            .map_err(std::io::Error::other)
            .and_then(output::write_stdout)
    } else if is_verbose {
        output::write_stdout(details())
    } else {
        error.print()
    })
}

/// All build details, one per line.
fn details() -> String {
    let or_unknown = |text: &str| if text.is_empty() { "unknown" } else { text }.to_owned();
    let features = match features().join(", ") {
        none if none.is_empty() => "none".to_owned(),
        some => some,
    };
    format!(
        "teddy {}\nrelease: {RELEASE}\ncommit-hash: {}\ncommit-date: {}\ntarget: {}\nprofile: {}\nfeatures: {features}\n",
        line(),
        or_unknown(COMMIT),
        or_unknown(DATE),
        or_unknown(TARGET),
        profile(),
    )
}

/// The same as JSON; unknown values are null.
fn to_json() -> Value {
    let non_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "release": RELEASE,
        "commit": non_empty(COMMIT),
        "date": non_empty(DATE),
        "target": non_empty(TARGET),
        "profile": profile(),
        "features": features(),
    })
}

/// Returns whether a command line asks only for the version line.
pub(super) fn is_all(arguments: &[OsString]) -> bool {
    matches!(arguments, [_, one] if one == "--version" || one == "-V")
}

/// Returns whether a command line asks for the details: `-vV`, `-V -v`, `--version --verbose`.
pub(super) fn asks_for_details(arguments: &[OsString]) -> bool {
    let options = arguments.iter().skip(1).take_while(|one| *one != "--");
    let mut texts = options.filter_map(|one| one.to_str());
    texts.any(|word| {
        let is_cluster = word.starts_with('-') && !word.starts_with("--");
        word == "--verbose" || (is_cluster && word.contains('v'))
    })
}

fn summary(release: &str, commit: &str, date: &str, features: &[&str]) -> String {
    let (id, dirty) = commit
        .split_once('-')
        .map_or((commit, ""), |(id, _)| (id, "-dirty"));
    let short = format!("{}{dirty} {date}", &id[..id.len().min(DIGITS)]);
    let features = features.iter().map(|name| format!("+{name}"));

    let parts: Vec<String> = std::iter::once(short.trim().to_owned())
        .chain(features)
        .filter(|part| !part.is_empty())
        .collect();
    if parts.is_empty() {
        release.to_owned()
    } else {
        format!("{release} ({})", parts.join(", "))
    }
}

/// Returns the optional features of this build.
fn features() -> Vec<&'static str> {
    let all = [
        ("failpoints", cfg!(feature = "failpoints")),
        ("sandbox", cfg!(feature = "sandbox")),
    ];
    all.into_iter()
        .filter_map(|(name, is_in)| is_in.then_some(name))
        .collect()
}

fn profile() -> &'static str {
    if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_commit_and_features() {
        let check = |commit: &str, date: &str, features: &[&str], expected: &str| {
            assert_eq!(summary("1.2.3", commit, date, features), expected);
        };
        let id = "3f2a91c44d0e5b6f7081920a1b2c3d4e5f607182";
        check(
            id,
            "2026-11-23",
            &["sandbox"],
            "1.2.3 (3f2a91c44 2026-11-23, +sandbox)",
        );
        check(
            &format!("{id}-dirty"),
            "2026-11-23",
            &[],
            "1.2.3 (3f2a91c44-dirty 2026-11-23)",
        );
        check(id, "", &[], "1.2.3 (3f2a91c44)");
        check("", "", &["a", "b"], "1.2.3 (+a, +b)");
        check("", "", &[], "1.2.3");
    }

    #[test]
    fn details_are_asked_for_beside_the_version() {
        let check = |line: &str, expected: bool| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(asks_for_details(&args), expected, "{line}");
        };
        check("teddy -vV", true);
        check("teddy -Vv", true);
        check("teddy --version -v", true);
        check("teddy --verbose --version", true);
        check("teddy -V", false);
        check("teddy --version", false);
        check("teddy --version -- -v", false);
    }
}
