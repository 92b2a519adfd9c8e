//! Random plans with texts that imitate plan syntax, for tests on several floors.

use proptest::prelude::*;

use super::action::{Action, ActionKind, ROWS};
use super::document::Plan;
use super::field::Field;
use super::memo::{MemoChange, Verb};
use crate::text::path::RepoPath;
use crate::text::resource::Resource;

/// Lines that look like part of a plan.
pub const HOSTILE: [&str; 27] = [
    "```",
    "````",
    "```sh",
    "~~~",
    "~~~~~~",
    "``` x",
    "### `READ`",
    "## Action Plan",
    "# Title",
    "`FIND:`",
    "`REPLACE:`",
    "#### `FIND:`",
    "---",
    "- **File Path:** [b](/b)",
    "  - x",
    "\tx",
    "    x",
    "",
    " ",
    "<!--",
    "text\r",
    "a\rb",
    "> x",
    "\u{feff}x",
    "[a]: /b",
    "é💥",
    "```\r",
];

/// Block contents: hostile lines, joined by any line ending.
pub fn block_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        proptest::sample::select(&HOSTILE[..]).prop_map(str::to_owned),
        "[ -~]{0,12}"
    ];
    proptest::collection::vec(
        (line, proptest::sample::select(&["\n", "\n", "\r\n"][..])),
        0..6,
    )
    .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
}

/// File contents: also without a final newline, or with CRLF throughout.
pub fn file() -> impl Strategy<Value = String> {
    (block_text(), 0..3).prop_map(|(text, shape)| match shape {
        0 => text,
        1 => text.replace(['\r', '\n'], ""),
        _ => text.replace('\r', "").replace('\n', "\r\n"),
    })
}

/// Text on one line.
pub fn phrase() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z][ -~]{0,20}",
        Just("```".to_owned()),
        Just("<!-- `x` **y** # z".to_owned()),
        Just("é: [a](/b)".to_owned())
    ]
    .prop_map(|text| text.trim().to_owned())
}

/// Paths, including odd ones.
pub fn path() -> impl Strategy<Value = RepoPath> {
    let odd = [
        "my file.md",
        "a](b.md",
        "`a`",
        "a&amp;b",
        "src/__main__.py",
        "app/[id]/(x).tsx",
        "%41",
        "x \"y\"",
        "*a*",
        "a<b>",
        "(Optional)",
    ];
    prop_oneof![
        proptest::sample::select(odd.to_vec()).prop_map(str::to_owned),
        "[a-z_]{1,8}(/[a-z._-]{0,5}[a-z]){0,2}"
    ]
    .prop_filter_map("a path", |text| RepoPath::parse(&text).ok())
}

/// Resources of every kind.
pub fn resource() -> impl Strategy<Value = Resource> {
    prop_oneof![
        path().prop_map(Resource::File),
        "https?://[a-z]{1,8}\\.example(/[a-z()&=?%_]{0,9})?".prop_map(Resource::Url),
        (0_u64..120).prop_map(|n| Resource::parse(&format!(".teddy/a/{n}/report.md")).expect("an artifact")),
    ]
}

pub fn of_resource(action: fn(Resource) -> ActionKind) -> BoxedStrategy<ActionKind> {
    resource().prop_map(action).boxed()
}

/// Messages as parsed: without blank lines and rules at their ends.
pub fn message() -> impl Strategy<Value = String> {
    let line = [
        "Hello.",
        "",
        "## Words",
        "### Options",
        "- a",
        "1. b",
        "```sh\n# x\n```",
        "```sh\n### `READ`\n```",
        "~~~\n`FIND:`\n~~~",
        "> ### READ",
        "a\n---",
        "| x |",
        "  y",
    ];
    proptest::collection::vec(proptest::sample::select(line.to_vec()), 0..5)
        .prop_map(|lines| format!("Start.\n{}\n\nEnd", lines.join("\n")))
}

/// Resources passed along with a message.
pub fn resources() -> impl Strategy<Value = Vec<Resource>> {
    proptest::collection::vec(resource(), 0..3)
}

/// Actions of every table entry.
fn kind() -> impl Strategy<Value = ActionKind> {
    proptest::strategy::Union::new(ROWS.iter().map(|row| (row.sample)()))
}

/// An action with the fields of its kind, a description and one unknown field.
fn action() -> impl Strategy<Value = Action> {
    (kind(), phrase()).prop_map(|(kind, description)| {
        let mut fields = kind.fields();
        fields
            .iter_mut()
            .filter(|f| f.key == "Description")
            .for_each(|f| f.value = description.clone());
        if kind.message().is_none() {
            fields.push(Field::new("Other", description));
        }

        Action {
            line: 0,
            fields,
            kind,
        }
    })
}

/// Plans.
pub fn plan() -> impl Strategy<Value = Plan> {
    let title = prop_oneof![phrase(), Just("A #".to_owned()), Just("#x".to_owned())];
    let rationale = block_text().prop_filter("not blank", |text| !text.trim().is_empty());
    let memo = (
        prop_oneof!["[a-zA-Z][a-z:' ]{0,9}[a-z]", Just("C# and #42".to_owned())],
        any::<bool>(),
        proptest::option::of("[a-z]{1,5}"),
    )
        .prop_map(|(text, add, comment)| MemoChange {
            line: 0,
            verb: if add { Verb::Add } else { Verb::Remove },
            text,
            comment,
        });

    let memos = proptest::collection::vec(memo, 0..3);
    (
        title,
        phrase(),
        rationale,
        memos,
        proptest::collection::vec(action(), 1..4),
    )
        .prop_map(|(title, status, rationale, memos, actions)| Plan {
            title,
            fields: vec![Field::new("Status", status), Field::new("Mood", "x: y")],
            rationale,
            memos,
            actions,
        })
}

/// Describes an action in one line.
pub fn describe(kind: &ActionKind) -> String {
    kind.describe()
}

/// Joins resources as [`say`] does.
pub fn list(resources: &[Resource]) -> String {
    let names: Vec<String> = resources.iter().map(ToString::to_string).collect();
    names.join(",")
}
