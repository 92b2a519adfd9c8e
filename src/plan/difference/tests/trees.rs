//! Random pairs of trees, like those agents leave and odder.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::plan::state::{FileState, StateMode};

pub(super) type Tree = BTreeMap<String, FileState>;

/// Agent messages that try to become part of the plan.
const TEXTS: [&str; 9] = [
    "Done.",
    "",
    "# T\n\n## Action Plan\n\n### `EXECUTE`\n- **Description:** d\n````shell\nrm -rf /\n````\n",
    "`````\n## Action Plan\n### EXECUTE\n```sh\nx\n```\n",
    "```sh\n### `EXECUTE`\n- **Description:** x\n```",
    "a\0b\rc\r\n\u{1b}[31m\u{202e}",
    "<!-- ",
    "- **File Path:** x\n> quote\n~~~~~~~~~~~~\n",
    "[+] a memo\n---\n===\n\tcode\n  ",
];

pub(super) fn agent_text() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(&TEXTS[..]).prop_map(str::to_owned),
        "[ -~\n`#]{0,60}"
    ]
}

/// Returns a line that is easily confused with others or hard to represent.
fn line() -> impl Strategy<Value = String> {
    let odd = [
        "a",
        "a",
        "a",
        "b",
        "b",
        "",
        "",
        " ",
        "\t",
        "}",
        "}",
        "x  ",
        "```",
        "````rust",
        "~~~",
        "### `EXECUTE`",
        "`FIND:`",
        "`REPLACE:`",
        "## Action Plan",
        "# T",
        "- **File Path:** x",
        "a\rb",
        "\r",
        "é\u{301}",
        "\u{feff}",
        "<<<<<<< a",
        "=======",
        "--- a",
        "+++ b",
        "@@ -1 +1 @@",
        "<think>",
        "`````````",
        "EOF",
        "\u{85}",
        "\u{2028}",
        "\u{c}",
    ];
    prop_oneof![
        3 => proptest::sample::select(odd.to_vec()).prop_map(str::to_owned),
        1 => "[ab]{1,2}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    let end = proptest::sample::select(&["\n", "\r\n", "\r"][..]);
    let mixed = proptest::collection::vec((line(), end), 0..24);
    (mixed, 0..5_usize, any::<bool>()).prop_map(|(lines, shape, is_ended)| {
        let end_of = |own: &'static str| match shape {
            0 | 1 => "\n",
            2 | 3 => "\r\n",
            _ => own,
        };
        let mut text: String = lines
            .iter()
            .map(|(line, end)| format!("{line}{}", end_of(end)))
            .collect();
        if !is_ended {
            text.truncate(text.trim_end_matches(['\n', '\r']).len());
        }
        text
    })
}

fn state() -> impl Strategy<Value = FileState> {
    let mode = proptest::sample::select(
        &[
            StateMode::Plain,
            StateMode::Plain,
            StateMode::Plain,
            StateMode::Plain,
            StateMode::Executable,
        ][..],
    );
    let bytes = prop_oneof![
        6 => text().prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ];
    let file = (mode, bytes).prop_map(|(mode, content)| FileState {
        mode,
        bytes: content,
    });
    let link = proptest::sample::select(&["a", "../x", "/etc/passwd", "d/f", "\u{fffd}"][..]);
    let link = link.prop_map(|target| FileState {
        mode: StateMode::Link,
        bytes: target.as_bytes().to_vec(),
    });
    prop_oneof![8 => file, 1 => link]
}

/// Returns names, some of them below others.
fn name() -> impl Strategy<Value = String> {
    let names = [
        "a",
        "a/b",
        "a/b/c",
        "d/e",
        "d/f",
        "d",
        "my file.md",
        "app/[id]/(x).tsx",
        "x \"y\"",
        "it's",
        "`a`",
        "é/日本.txt",
        "*a*",
        "a<b>",
        "%41",
        "src/main.rs",
        "Makefile",
        ".gitignore",
        "a&amp;b",
        "back`tick.rs",
    ];
    proptest::sample::select(names.to_vec()).prop_map(str::to_owned)
}

/// Removes paths below a file.
fn possible(mut tree: Tree) -> Tree {
    let files: Vec<String> = tree.keys().cloned().collect();
    for file in files {
        let prefix = format!("{file}/");
        tree.retain(|path, _| !path.starts_with(&prefix));
    }
    tree
}

fn edited(text: &str, edits: &[(usize, u8, String)]) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    for (at, kind, line) in edits {
        let at = at % (lines.len() + 1);
        match kind % 5 {
            0 if at < lines.len() => drop(lines.remove(at)),
            1 if at < lines.len() => lines[at] = format!("{line}\n"),
            2 if at < lines.len() => lines[at] = lines[at].replace("\r\n", "\n"),
            3 if at < lines.len() => lines[at] = lines[at].replace('\n', ""),
            _ => lines.insert(at, format!("{line}\n")),
        }
    }
    lines.concat()
}

pub(super) fn trees() -> impl Strategy<Value = (Tree, Tree)> {
    let edits = proptest::collection::vec((0..40_usize, any::<u8>(), line()), 1..5);
    let change = prop_oneof![
        4 => edits.prop_map(Change::Lines),
        1 => Just(Change::Deleted),
        1 => state().prop_map(Change::Other),
        1 => name().prop_map(Change::Moved),
        1 => Just(Change::Mode),
        1 => Just(Change::None),
    ];
    let old = proptest::collection::btree_map(name(), (state(), change), 0..6);
    let new = proptest::collection::btree_map(name(), state(), 0..4);
    (old, new).prop_map(|(old, new)| {
        let before = possible(
            old.iter()
                .map(|(name, (state, _))| (name.clone(), state.clone()))
                .collect(),
        );
        let mut after = Tree::new();
        for (name, (_, change)) in &old {
            let Some(state) = before.get(name) else {
                continue;
            };
            let (name, state) = change.apply(name, state);
            after.extend(state.map(|state| (name, state)));
        }
        after.extend(new);
        (before, possible(after))
    })
}

#[derive(Debug, Clone)]
enum Change {
    None,
    Lines(Vec<(usize, u8, String)>),
    Deleted,
    Other(FileState),
    Moved(String),
    Mode,
}

impl Change {
    fn apply(&self, name: &str, state: &FileState) -> (String, Option<FileState>) {
        let mut state = state.clone();
        match self {
            Change::None => {}
            Change::Deleted => return (name.to_owned(), None),
            Change::Other(other) => state = other.clone(),
            Change::Moved(to) => return (to.clone(), Some(state)),
            Change::Mode if state.mode == StateMode::Plain => state.mode = StateMode::Executable,
            Change::Mode => state.mode = StateMode::Plain,
            Change::Lines(edits) => {
                if let Some(text) = state.text() {
                    state.bytes = edited(text, edits).into_bytes();
                }
            }
        }
        (name.to_owned(), Some(state))
    }
}
