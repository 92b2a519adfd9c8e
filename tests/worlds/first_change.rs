//! Follows `docs/first-change.md` in a copy of the source. Every block must fit where the page
//! says, and the result must satisfy the rules of the source code.
//!
//! With `TEDDY_FIRST_CHANGE=check` the copy is also compiled. That takes about a minute, so only
//! `.ci/run` does it by default (docs/decisions/0030-tests.md).

use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

use crate::support::TestRepo;
use crate::support::source::files;

const PAGE: &str = "docs/first-change.md";
/// Parts of the project that are copied.
const COPIED: [&str; 13] = [
    ".ci",
    ".release",
    "Cargo.toml",
    "Cargo.lock",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "benches",
    "docs",
    "fixtures",
    "prompts",
    "src",
    "tests",
];

/// An instruction of the page.
#[derive(Debug)]
struct Step {
    path: String,
    /// `true`: below the anchor. `None` for a new file.
    below: Option<bool>,
    /// A line, or its beginning.
    anchor: String,
    /// The text to add.
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    std::fs::read_to_string(root().join(PAGE)).unwrap()
}

fn steps(page: &str) -> Vec<Step> {
    let block = r"\n\n```\w+\n((?s:.*?))\n```\n";
    let made = Regex::new(&format!(r"(?m)^Create `([^`]+)`:{block}")).unwrap();
    let added = format!(r"(?m)^In `([^`]+)`, (above|below):{block}\nadd:{block}");
    let added = Regex::new(&added).unwrap();

    let made = made.captures_iter(page).map(|found| Step {
        path: found[1].to_owned(),
        below: None,
        anchor: String::new(),
        text: found[2].to_owned(),
    });
    let added = added.captures_iter(page).map(|found| Step {
        path: found[1].to_owned(),
        below: Some(&found[2] == "below"),
        anchor: found[3].to_owned(),
        text: found[4].to_owned(),
    });
    made.chain(added).collect()
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        std::fs::copy(from, to).unwrap();
        return;
    }
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        if name != "target" {
            copy(&from.join(&name), &to.join(&name));
        }
    }
}

/// Applies a step to a copy.
fn take(step: &Step, copy: &Path) {
    let path = copy.join(&step.path);
    let Some(below) = step.below else {
        assert!(!path.exists(), "{} is there already", step.path);
        std::fs::write(path, format!("{}\n", step.text)).unwrap();
        return;
    };
    let text = std::fs::read_to_string(&path).unwrap();
    let places: Vec<usize> = text
        .match_indices(&step.anchor)
        .map(|(at, _)| at)
        .filter(|at| *at == 0 || text[..*at].ends_with('\n'))
        .collect();
    let [place] = places[..] else {
        panic!("{} has {} places for {step:?}", step.path, places.len());
    };
    let at = if below {
        let end = place + step.anchor.len();
        text[end..]
            .find('\n')
            .map_or(text.len(), |rest| end + rest + 1)
    } else {
        place
    };
    std::fs::write(
        path,
        format!("{}{}\n{}", &text[..at], step.text, &text[at..]),
    )
    .unwrap();
}

/// Copies the project and applies some steps.
fn changed(repo: &TestRepo, steps: &[Step]) -> PathBuf {
    let to = repo.beside("copy");
    std::fs::create_dir(&to).unwrap();
    for name in COPIED {
        copy(&root().join(name), &to.join(name));
    }
    steps.iter().for_each(|step| take(step, &to));
    to
}

/// Runs tests of `house` on a copy. Returns whether they pass, and their output.
fn tidy(repo: &TestRepo, copy: &Path, tests: &[&str]) -> (bool, String) {
    let this = std::env::current_exe().unwrap();
    let output = repo
        .command(this.to_str().unwrap())
        .args(tests)
        .env("TEDDY_TIDY_ROOT", copy)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), said)
}

#[test]
fn what_the_page_adds_is_whole() {
    let (repo, steps) = (TestRepo::new(), steps(&page()));
    assert_eq!(steps.len(), 17, "{steps:#?}");
    let copy = changed(&repo, &steps);
    let (is_tidy, said) = tidy(&repo, &copy, &["house::"]);
    assert!(is_tidy, "{said}");
    check_style(&steps, &copy);
    compile(&copy);
}

#[test]
fn what_the_page_says_is_needed() {
    let (repo, mut steps) = (TestRepo::new(), steps(&page()));
    steps.retain(|step| step.path.starts_with("src/"));
    let copy = changed(&repo, &steps);
    let (is_tidy, said) = tidy(&repo, &copy, &["house::rules::every_command"]);
    assert!(!is_tidy, "{said}");
    for missing in [
        "no test runs `teddy tally`",
        "docs/cli.md does not tell of `tally`",
    ] {
        assert!(said.contains(missing), "{missing}: {said}");
    }
}

/// Checks that the page's new files are formatted, if rustfmt is installed.
#[expect(clippy::disallowed_methods, reason = "the toolchain is the user's")]
fn check_style(steps: &[Step], copy: &Path) {
    let new = steps
        .iter()
        .filter(|step| step.path.ends_with(".rs") && step.below.is_none());
    let output = Command::new("rustfmt")
        .args(["--check", "--edition", "2024"])
        .args(new.map(|step| copy.join(&step.path)))
        .output();
    if let Ok(output) = output {
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
    }
}

/// Compiles the copy with its tests, if requested.
#[expect(clippy::disallowed_methods, reason = "the toolchain is the user's")]
fn compile(copy: &Path) {
    if teddy::host::env::var("TEDDY_FIRST_CHANGE").as_deref() != Some("check") {
        return;
    }
    let output = Command::new("cargo")
        .args(["check", "--offline", "--tests"])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", root().join("target"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !said.contains("warning: unused"),
        "{said}"
    );
}

#[test]
fn an_action_is_known_in_its_own_file_alone() {
    let table = std::fs::read_to_string(root().join("src/plan/action.rs")).unwrap();
    let (_, table) = table.split_once("\nactions! {\n").unwrap();
    let (table, _) = table.split_once("\n}\n").unwrap();
    let line = Regex::new(r"(?m)^    (\w+)::(\w+),$").unwrap();
    let actions: Vec<(String, String)> = line
        .captures_iter(table)
        .map(|found| (found[1].to_owned(), found[2].to_owned()))
        .collect();
    assert!(actions.len() >= 9, "{actions:?}");

    let mut elsewhere = Vec::new();
    for (file, variant) in actions {
        let own = format!("src/plan/action/{file}");
        let knows = Regex::new(&format!(r"\bActionKind::{variant}\b|\b{file}::ROW\b")).unwrap();
        let others = files("src", ".rs").into_iter().filter(|other| {
            let is_test = other.is_test() || other.path == "src/plan/samples.rs";
            !is_test && !other.path.starts_with(&own) && knows.is_match(other.code())
        });
        elsewhere.extend(others.map(|other| format!("{} knows {variant}", other.path)));
    }
    assert_eq!(elsewhere, Vec::<String>::new());
}
