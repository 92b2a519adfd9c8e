//! Parsing, validation and preview of a TAKE.

use std::collections::BTreeMap;

use super::*;
use crate::plan::difference::{FileState, TakenBytes, files_after};
use crate::plan::reading::read;
use crate::text::damage::Damage;

/// SHA-256 of `hello\n`.
const HELLO: &str = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

fn plan(fields: &str) -> String {
    format!("# T\n\n## Rationale\n````\nr\n````\n\n## Action Plan\n\n### `TAKE`\n{fields}")
}

fn check(fields: &str, expected: &[&str]) {
    let diagnostics = read(&plan(fields)).diagnostics;
    let messages: Vec<&str> = diagnostics
        .iter()
        .map(|wrong| wrong.message.as_str())
        .collect();
    assert_eq!(messages, expected, "{fields}");
}

/// Returns the files after a TAKE with these fields.
fn run(fields: &str, before: &[(&str, FileState)]) -> Result<Vec<String>, Vec<String>> {
    let before: BTreeMap<&str, FileState> = before.iter().cloned().collect();
    let artifacts = TakenBytes::from([("taken/01".to_owned(), b"hello\n".to_vec())]);
    let reading = read(&plan(fields));
    assert_eq!(reading.diagnostics, []);
    let state_of = |path: &RepoPath| before.get(path.as_str()).cloned();
    let outcome = files_after(&reading.plan, &state_of, &artifacts);
    let describe =
        |state: Option<FileState>| state.map_or("nothing".to_owned(), |s| s.mode.to_string());
    let outcome = outcome.map(|outcome| {
        outcome
            .into_iter()
            .map(|(path, state)| format!("{path}: {}", describe(state)))
            .collect()
    });
    outcome.map_err(|wrong| wrong.into_iter().map(|wrong| wrong.message).collect())
}

fn fields(becomes: &str, was: &str) -> String {
    format!(
        "- **File Path:** [a](/a)\n- **Becomes:** {becomes}\n- **Artifact:** taken/01, 6 bytes, sha256:{HELLO}\n- **Was:** {was}\n"
    )
}

#[test]
fn p38_a_take_names_what_comes_of_a_path_its_bytes_and_what_was_there() {
    let previous = format!("symbolic link, 6 bytes, sha256:{HELLO}");
    for becomes in ["file", "executable file", "symbolic link"] {
        check(&fields(becomes, &previous), &[]);
        check(&fields(becomes, "no file"), &[]);
    }
    let removed =
        format!("- **File Path:** [a](/a)\n- **Becomes:** no file\n- **Was:** {previous}\n");
    check(&removed, &[]);
}

#[test]
fn p38_its_fields_have_one_spelling() {
    check(
        "- **File Path:** [a](/a)\n",
        &[
            "TAKE has no `Becomes`",
            "TAKE has no `Was`",
            "TAKE has no `Artifact`",
        ],
    );
    check(
        &fields("directory", "no file"),
        &["`Becomes` cannot be read: \"directory\""],
    );
    check(
        &fields("file", "a file"),
        &["`Was` cannot be read: \"a file\""],
    );
    check(
        &fields("no file", "no file"),
        &[
            "TAKE makes nothing of nothing",
            "TAKE has an `Artifact` but nothing is made from the file",
        ],
    );
    for wrong in [
        format!("../plan.md, 6 bytes, sha256:{HELLO}"),
        format!("taken/01, 06 bytes, sha256:{HELLO}"),
        format!("taken/01, 6 bytes, sha256:{}", &HELLO[1..]),
        format!("taken/01, 6 bytes, sha256:{}", HELLO.to_uppercase()),
        format!("taken/01, 6 bytes, sha256:{HELLO}, x"),
        "taken/01".to_owned(),
    ] {
        let text = fields("file", "no file")
            .replace(&format!("taken/01, 6 bytes, sha256:{HELLO}"), &wrong);
        let short: String = wrong.chars().take(60).collect();
        let messages: Vec<String> = read(&plan(&text))
            .diagnostics
            .into_iter()
            .map(|wrong| wrong.message)
            .collect();
        assert!(
            messages.len() == 1
                && messages[0]
                    .starts_with(&format!("`Artifact` cannot be read: \"{}", &short[..8])),
            "{messages:?}"
        );
    }
}

#[test]
fn p39_nothing_is_taken_that_the_turn_does_not_have() {
    let fields = fields("file", "no file");
    assert_eq!(run(&fields, &[]), Ok(vec!["a: file".to_owned()]));
    let other = fields.replace("taken/01", "taken/02");
    assert_eq!(
        run(&other, &[]),
        Err(vec![
            "the turn has no `taken/02`, whose bytes TAKE needs".to_owned()
        ])
    );
    let changed = fields.replace("6 bytes", "7 bytes");
    assert_eq!(
        run(&changed, &[]),
        Err(vec![
            "`taken/01` does not have the bytes that TAKE names".to_owned()
        ])
    );
}

#[test]
fn p39_what_has_changed_since_is_not_overwritten() {
    let previous = format!("file, 6 bytes, sha256:{HELLO}");
    let same = [("a", FileState::plain("hello\n"))];
    assert_eq!(
        run(&fields("executable file", &previous), &same),
        Ok(vec!["a: executable file".to_owned()])
    );
    let refused = |previous: &str, existing: &[(&str, FileState)]| {
        run(&fields("executable file", previous), existing).unwrap_err()
    };
    let other = [("a", FileState::plain("hallo\n"))];
    assert_eq!(
        refused(&previous, &other),
        ["`a` is not what it was when this plan was made"]
    );
    let link = FileState {
        mode: StateMode::Link,
        bytes: b"hello\n".to_vec(),
    };
    assert_eq!(
        refused(&previous, &[("a", link)]),
        ["`a` is not what it was when this plan was made"]
    );
    assert_eq!(
        refused(&previous, &[]),
        ["`a` is missing, and existed when this plan was made"]
    );
    assert_eq!(
        refused("no file", &same),
        ["`a` is there now, and was not when this plan was made"]
    );
}

#[test]
fn p40_what_is_risky_about_a_take_is_said() {
    let risks = |kind: &TakePath, after: Option<&[u8]>| {
        let step = Step {
            after: after.map(<[u8]>::to_vec),
            removed: after.is_none(),
            ..Step::default()
        };
        kind.risks(&step)
    };
    let take = |mode: Option<StateMode>, bytes: &[u8]| TakePath {
        path: RepoPath::parse("d/a").unwrap(),
        becomes: mode.map(|mode| TakenState {
            mode,
            artifact: "taken/01".to_owned(),
            imprint: Imprint::of(bytes),
        }),
        previous: Some(FileState::plain("hello\n").known_state()),
        keep_bytes: false,
    };
    let link = |target: &str| {
        risks(
            &take(Some(StateMode::Link), target.as_bytes()),
            Some(target.as_bytes()),
        )
    };
    assert_eq!(link("../x/y"), ["d/a becomes a link to `../x/y`"]);
    for out in ["/etc/passwd", "../../x", "../x/../../y"] {
        assert_eq!(
            link(out),
            [format!("d/a becomes a link out of the project, to `{out}`")]
        );
    }
    assert_eq!(
        link("../.git/config"),
        ["d/a becomes a link out of the project, to `../.git/config`"]
    );
    assert_eq!(risks(&take(None, b""), None), ["d/a is removed (6 bytes)"]);
    let executable = take(Some(StateMode::Executable), b"x");
    assert_eq!(
        executable.mode_change().damage(),
        Some(Damage::BecomesExecutable),
        "named with other damage"
    );
    let new = TakePath {
        previous: None,
        ..executable
    };
    assert_eq!(risks(&new, Some(b"x")), ["d/a is executable"]);
    let instead_of_link = TakePath {
        previous: Some(KnownState {
            mode: StateMode::Link,
            imprint: Imprint::of(b"x"),
        }),
        ..new
    };
    assert_eq!(risks(&instead_of_link, Some(b"x")), ["d/a is executable"]);
    assert_eq!(
        risks(&take(Some(StateMode::Plain), b"\0"), Some(b"\0")),
        Vec::<String>::new()
    );
}

#[test]
fn a_link_that_leads_out_of_the_files_is_a_risk() {
    let check = |path: &str, target: &str, expected: bool| {
        assert_eq!(leads_out(path, target.as_bytes()), expected, "{target}");
    };
    check("a/link", "../b/c", false);
    check("a/link", "../../b", true);
    check("link", "/etc/passwd", true);
    check("link", "sub/.git/config", true);
    check("link", ".teddy", true);
    check("a/b/link", "../../.TeDDy/project.context", true);
    check("a/link", ".teddy/x", false);
    check("link", ".teddyx", false);
}

#[test]
fn p40_a_take_keeps_the_bytes_and_the_mode_of_lines_that_stay() {
    let state = |mode, bytes: &[u8]| FileState {
        mode,
        bytes: bytes.to_vec(),
    };
    let before = state(StateMode::Executable, b"caf\xe9\r\n");
    let after = state(StateMode::Plain, "caf\u{fffd}\nnew\n".as_bytes());
    let mut take = TakePath {
        path: RepoPath::parse("a").unwrap(),
        becomes: Some(TakenState {
            mode: after.mode,
            artifact: "taken/01".to_owned(),
            imprint: Imprint::of(&after.bytes),
        }),
        previous: Some(before.known_state()),
        keep_bytes: false,
    };
    assert_eq!(take.kept(Some(&before), after.clone()), after);
    take.keep_bytes = true;
    assert_eq!(
        take.kept(Some(&before), after),
        state(StateMode::Executable, b"caf\xe9\r\nnew\r\n")
    );
}
