//! Forbidden paths in every field that names a file, one row per spelling.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::ground::{Ground, create, edit, plan, read};

/// The value of a field and the expected message.
type Row = (&'static str, &'static str);

/// Paths that leave the project.
const OUT: &[Row] = &[
    ("[../evil](/../evil)", "leaves the project"),
    ("[src/../../evil](/src/../../evil)", "leaves the project"),
    ("[..](/..)", "leaves the project"),
    ("[src/..](/src/..)", "leaves the project"),
    ("[./../evil](/./../evil)", ""),
    ("[../evil](../evil)", "leaves the project"),
    ("[../evil](</../evil>)", "leaves the project"),
    ("`../evil`", "leaves the project"),
    ("../evil", "leaves the project"),
    ("[..\\evil](/..\\evil)", ""),
    ("`..\\..\\evil`", ""),
    ("[src\\..\\..\\evil](/src\\..\\..\\evil)", ""),
    ("[&#46;&#46;/evil](/&#46;&#46;/evil)", "leaves the project"),
    (
        "[&#x2e;&#x2E;/evil](/&#x2e;&#x2E;/evil)",
        "leaves the project",
    ),
    (
        "[&period;&period;&sol;evil](/&period;&period;&sol;evil)",
        "leaves the project",
    ),
    ("[\\.\\./evil](/\\.\\./evil)", "leaves the project"),
    ("[../evil](/%2e%2e/evil)", "leaves the project"),
    ("[../evil](/%2E%2E%2Fevil)", "leaves the project"),
    ("[%2e%2e/evil](/../evil)", "differ"),
    ("[~/evil](/~/evil)", "relative"),
    ("`~`", "relative"),
    ("[C:/evil](/C:/evil)", ""),
    ("[C:\\evil](/C:\\evil)", ""),
    ("[\\\\host\\share\\evil](/\\\\host\\share\\evil)", ""),
    (
        "[file:///etc/passwd](file:///etc/passwd)",
        "addresses are read",
    ),
    ("[etc/passwd](file:///etc/passwd)", ""),
    (
        "[data:text/plain,x](data:text/plain,x)",
        "addresses are read",
    ),
    ("[javascript:x](javascript:x)", "addresses are read"),
    ("[src//evil](/src//evil)", "empty or `.`"),
    ("[src/./evil](/src/./evil)", "empty or `.`"),
    ("[.](/.)", ""),
    // A carriage return alone is no line end for whoever reads the plan.
    ("[src/x\ry](/src/x\ry)", "U+000D"),
    ("[src/x\ry](</src/x\ry>)", "U+000D"),
    ("`src/x\ry`", "U+000D"),
];

/// Paths reserved for git or TeDDy.
const KEPT: &[Row] = &[
    ("[.git/config](/.git/config)", "git's own"),
    (
        "[.git/hooks/post-checkout](/.git/hooks/post-checkout)",
        "git's own",
    ),
    ("[.git](/.git)", "git's own"),
    ("[src/.git](/src/.git)", "git's own"),
    ("[src/.git/config](/src/.git/config)", "git's own"),
    ("[.GIT/config](/.GIT/config)", "git's own"),
    ("[.gIt/hooks/x](/.gIt/hooks/x)", "git's own"),
    ("[.git./config](/.git./config)", "git's own"),
    ("[.git.../config](/.git.../config)", "git's own"),
    ("[.git /config](</.git /config>)", "git's own"),
    ("[.git . ./config](</.git . ./config>)", "git's own"),
    ("[git~1/config](/git~1/config)", "git's own"),
    ("[GIT~2/config](/GIT~2/config)", "git's own"),
    (
        "[.git::$INDEX_ALLOCATION/config](/.git::$INDEX_ALLOCATION/config)",
        "git's own",
    ),
    ("[.git:stream](/.git:stream)", "git's own"),
    ("[.g\u{200c}it/config](/.g\u{200c}it/config)", "U+200C"),
    ("[.gi\u{200d}t/config](/.gi\u{200d}t/config)", "U+200D"),
    ("[.git\u{feff}/config](/.git\u{feff}/config)", "U+FEFF"),
    ("[\u{206a}.git/config](/\u{206a}.git/config)", "U+206A"),
    ("[\u{ff0e}git/config](/\u{ff0e}git/config)", "git's own"),
    (
        "[.\u{ff47}\u{ff49}\u{ff54}/config](/.\u{ff47}\u{ff49}\u{ff54}/config)",
        "git's own",
    ),
    ("[&#46;git/config](/&#46;git/config)", "git's own"),
    ("[\\.git/config](/\\.git/config)", "git's own"),
    ("[.git/config](/%2egit/config)", "git's own"),
    ("[.git\u{a0}/config](/.git\u{a0}/config)", "git's own"),
    ("[.teddy/config.yaml](/.teddy/config.yaml)", "TeDDy's own"),
    (
        "[.teddy/prompts/developer.xml](/.teddy/prompts/developer.xml)",
        "TeDDy's own",
    ),
    (
        "[.teddy/pipelines/evil.yaml](/.teddy/pipelines/evil.yaml)",
        "TeDDy's own",
    ),
    (
        "[.teddy/global.context](/.teddy/global.context)",
        "TeDDy's own",
    ),
    ("[.teddy/memos.yaml](/.teddy/memos.yaml)", "TeDDy's own"),
    ("[.teddy/new](/.teddy/new)", "TeDDy's own"),
    ("[.teddy](/.teddy)", "TeDDy's own"),
    ("[.TEDDY/config.yaml](/.TEDDY/config.yaml)", "TeDDy's own"),
    ("[.Teddy./config.yaml](/.Teddy./config.yaml)", "TeDDy's own"),
    (
        "[.teddy /config.yaml](</.teddy /config.yaml>)",
        "TeDDy's own",
    ),
    (
        "[.teddy::$INDEX_ALLOCATION/x](/.teddy::$INDEX_ALLOCATION/x)",
        "TeDDy's own",
    ),
    (
        "[\u{ff0e}teddy/config.yaml](/\u{ff0e}teddy/config.yaml)",
        "TeDDy's own",
    ),
    ("[teddy~1/config.yaml](/teddy~1/config.yaml)", "TeDDy's own"),
    (
        "[&#46;teddy/config.yaml](/&#46;teddy/config.yaml)",
        "TeDDy's own",
    ),
];

/// Values whose text differs from what they name.
const DECEPTIVE: &[Row] = &[
    ("[a.txt](/src/main.rs)", "differ"),
    ("[a.txt](https://evil.example/x)", ""),
    ("[src/main.rs](/a.txt)", "differ"),
    (
        "[a.txt](/a.txt) [src/main.rs](/src/main.rs)",
        "more than one link",
    ),
    ("[a.txt](/a.txt), and more", "beside"),
    ("see [a.txt](/a.txt)", "beside"),
    ("![a.txt](/a.txt)", ""),
    ("[a.txt][ref]", "form"),
    ("[a.txt]", "form"),
    ("[a.txt](/a.txt \"title\")", "title"),
    ("[a.txt](</a.txt> 'title')", ""),
    ("<a href=\"/a.txt\">a.txt</a>", ""),
    ("<a.txt>", "form"),
    ("[a\u{202e}txt.exe](/a\u{202e}txt.exe)", "U+202E"),
    ("[a\u{2066}x\u{2069}](/a\u{2066}x\u{2069})", "U+2066"),
    ("[a\u{200b}.txt](/a\u{200b}.txt)", "U+200B"),
    ("[a\u{ad}.txt](/a\u{ad}.txt)", "U+00AD"),
    ("[a\u{3164}](/a\u{3164})", "U+3164"),
    ("[a\u{e0041}](/a\u{e0041})", "U+E0041"),
    ("[a\u{1b}[2Jb](/a\u{1b}[2Jb)", "U+001B"),
    ("[a\u{7}b](/a\u{7}b)", "U+0007"),
    ("[a\u{7f}b](/a\u{7f}b)", "U+007F"),
    ("[a\u{9b}31mb](/a\u{9b}31mb)", "U+009B"),
    ("[a\u{2028}b](/a\u{2028}b)", "U+2028"),
    ("[a&#10;b](/a&#10;b)", "U+000A"),
    ("[a&#x1b;b](/a&#x1b;b)", "U+001B"),
    ("[a&#x202e;b](/a&#x202e;b)", "U+202E"),
    ("[a.](/a.)", "dot or a space"),
    ("[a ](</a >)", ""),
    ("[src./a](/src./a)", "dot or a space"),
    ("[ ](/ )", ""),
    ("``", ""),
    ("", ""),
];

/// Returns a plan that uses the value in every field that names a file, and the names of its
/// actions.
fn everywhere(value: &str) -> (String, Vec<&'static str>) {
    let prune = format!("### `PRUNE`\n- **Resource:** {value}\n- **Description:** d\n\n");
    let cwd =
        format!("### `EXECUTE`\n- **Description:** d\n- **cwd:** {value}\n```shell\ntrue\n```\n\n");
    let invoke = format!(
        "### `INVOKE`\n- **Agent:** developer\n- **Handoff Resources:**\n  - {value}\n\nGo.\n\n"
    );
    let text = [create(value), edit(value), read(value), prune, cwd, invoke].concat();
    (
        plan(&text),
        vec!["CREATE", "EDIT", "READ", "PRUNE", "EXECUTE", "INVOKE"],
    )
}

/// Checks that the value is refused in every action except `but`, that one message contains the
/// expected text, and that nothing changes. Returns the violation, if any.
fn accepted(
    ground: &Ground,
    before: &BTreeMap<PathBuf, String>,
    (value, expected): Row,
    but: &[&str],
) -> Option<String> {
    let (text, actions) = everywhere(value);
    let tried = ground.execute(text);
    let diagnostics = tried.json["diagnostics"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let said = |wrong: &Value, key: &str| wrong[key].as_str().unwrap_or_default().to_owned();
    let free = |action: &&&str| {
        !but.contains(action)
            && !diagnostics
                .iter()
                .any(|wrong| said(wrong, "action").starts_with(**action))
    };
    let free: Vec<_> = actions.iter().filter(free).collect();
    let worded = diagnostics
        .iter()
        .any(|wrong| said(wrong, "message").contains(expected));
    let wrong = match () {
        () if ground.state() != *before => "it changed something".to_owned(),
        () if tried.code != 3 => format!("exit code {}: {}", tried.code, tried.words),
        () if !free.is_empty() => format!("accepted by {free:?}"),
        () if !worded => {
            format!(
                "nothing says {expected:?}: {:?}",
                diagnostics
                    .iter()
                    .map(|wrong| said(wrong, "message"))
                    .collect::<Vec<_>>()
            )
        }
        () => return None,
    };
    Some(format!("{value:?}: {wrong}"))
}

/// Checks every row. `but` returns the actions in which a value is valid.
fn refused(rows: &[Row], but: fn(&str) -> &'static [&'static str]) {
    let ground = Ground::new();
    let before = ground.state();
    let wrong: Vec<_> = rows
        .iter()
        .filter_map(|row| accepted(&ground, &before, *row, but(row.0)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_spelling_leads_out_of_the_project() {
    refused(OUT, |_| &[]);
}

#[test]
fn no_spelling_reaches_what_git_or_teddy_keep() {
    refused(KEPT, |_| &[]);
}

#[test]
fn no_name_shows_something_else_than_it_is() {
    // An EXECUTE without a directory runs at the root, and an INVOKE can name any number of files.
    refused(DECEPTIVE, |value| match value {
        "" | "``" => &["EXECUTE", "INVOKE"],
        _ if value.contains(") [") => &["INVOKE"],
        _ => &[],
    });
}

#[test]
fn too_long_a_name_is_refused() {
    let ground = Ground::new();
    for name in [
        "a".repeat(256),
        format!("{}x", "ab/".repeat(1334)),
        "ü".repeat(128),
    ] {
        let before = ground.state();
        let tried = ground.execute(plan(&create(&format!("[{name}](/{name})"))));
        assert_eq!(tried.code, 3, "{}", tried.words);
        assert!(tried.words.contains("too long") && ground.state() == before);
    }
}
