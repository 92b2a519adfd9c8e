//! Plans at random, with texts that try to leave their place: what the tests of several floors are
//! made of.

use std::time::Duration;

use proptest::prelude::*;

use super::action::chat_with_user::ChatWithUser;
use super::action::conclude::Conclude;
use super::action::create::Create;
use super::action::edit::{Edit, Pair};
use super::action::execute::Execute;
use super::action::invoke::Invoke;
use super::action::prune::Prune;
use super::action::read::Read;
use super::action::research::Research;
use super::action::{Action, ActionKind};
use super::memo::{Change, Verb};
use super::{Field, Plan};
use crate::text::path::RepoPath;
use crate::text::resource::Resource;

/// Lines that could be taken for something of the plan around them.
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

/// Contents of blocks: hostile lines, joined by any line end.
pub fn content() -> impl Strategy<Value = String> {
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

/// Contents of files: also without a line end at the end, or with CRLF throughout.
fn file() -> impl Strategy<Value = String> {
    (content(), 0..3).prop_map(|(text, shape)| match shape {
        0 => text,
        1 => text.replace(['\r', '\n'], ""),
        _ => text.replace('\r', "").replace('\n', "\r\n"),
    })
}

/// Words on one line.
pub fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z][ -~]{0,20}",
        Just("```".to_owned()),
        Just("<!-- `x` **y** # z".to_owned()),
        Just("é: [a](/b)".to_owned())
    ]
    .prop_map(|text| text.trim().to_owned())
}

/// Paths, odd ones too.
fn path() -> impl Strategy<Value = RepoPath> {
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
fn resource() -> impl Strategy<Value = Resource> {
    prop_oneof![
        path().prop_map(Resource::File),
        "https?://[a-z]{1,8}\\.example(/[a-z()&=?%_]{0,9})?".prop_map(Resource::Url),
        (0_u64..120).prop_map(|n| Resource::parse(&format!(".teddy/a/{n}/report.md")).expect("an artifact")),
    ]
}

/// Messages as a reader gives them: cut from the source, without blank lines and rules at their
/// ends.
fn message() -> impl Strategy<Value = String> {
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

/// The nine kinds of actions.
fn kind() -> impl Strategy<Value = ActionKind> {
    let pair = (
        content().prop_filter("not empty", |t| !t.is_empty()),
        content(),
    )
        .prop_map(|(find, replace)| Pair {
            line: 0,
            find,
            replace,
            language: "xml".into(),
        });
    let file_kinds = prop_oneof![
        (path(), file(), any::<bool>()).prop_map(|(path, content, overwrite)| ActionKind::Create(
            Create {
                path,
                content,
                language: "md".into(),
                overwrite
            }
        )),
        (path(), proptest::collection::vec(pair, 1..3))
            .prop_map(|(path, pairs)| ActionKind::Edit(Edit { path, pairs })),
        resource().prop_map(|resource| ActionKind::Read(Read { resource })),
        resource().prop_map(|resource| ActionKind::Prune(Prune { resource })),
    ];
    let resources = || proptest::collection::vec(resource(), 0..3);
    prop_oneof![
        file_kinds,
        execute().prop_map(ActionKind::Execute),
        proptest::collection::vec(content(), 1..3).prop_filter_map("queries", queries),
        message().prop_map(|message| ActionKind::ChatWithUser(ChatWithUser { message })),
        (resources(), message()).prop_map(|(resources, message)| ActionKind::Invoke(Invoke {
            agent: "Architect".into(),
            resources,
            message
        })),
        (resources(), message())
            .prop_map(|(resources, message)| ActionKind::Conclude(Conclude { resources, message })),
    ]
}

/// Makes a RESEARCH of queries that are not blank.
fn queries(texts: Vec<String>) -> Option<ActionKind> {
    let queries: Vec<String> = texts
        .iter()
        .map(|t| t.trim_end_matches(['\n', '\r']).to_owned())
        .filter(|q| !q.trim().is_empty())
        .collect();
    (!queries.is_empty()).then_some(ActionKind::Research(Research { queries }))
}

/// Commands with every field.
fn execute() -> impl Strategy<Value = Execute> {
    let command = content().prop_filter("a command", |text| !text.trim().is_empty());
    let env = proptest::collection::btree_map("[A-Z_]{1,5}", "[ -~é]{0,9}", 0..3);
    (
        command,
        proptest::option::of(path()),
        env,
        words(),
        any::<bool>(),
        proptest::option::of(1_u64..900),
    )
        .prop_map(
            |(command, cwd, env, expected_outcome, allow_failure, seconds)| Execute {
                command,
                language: "sh".into(),
                cwd: cwd.filter(|c| c.as_str() != "(Optional)"),
                env: env.into_iter().collect(),
                expected_outcome,
                allow_failure,
                timeout: seconds.map(Duration::from_secs),
            },
        )
}

/// An action with the fields of its kind, a description and one more.
fn action() -> impl Strategy<Value = Action> {
    (kind(), words()).prop_map(|(kind, description)| {
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
    let title = prop_oneof![words(), Just("A #".to_owned()), Just("#x".to_owned())];
    let rationale = content().prop_filter("not blank", |text| !text.trim().is_empty());
    let memo = (
        prop_oneof!["[a-zA-Z][a-z:' ]{0,9}[a-z]", Just("C# and #42".to_owned())],
        any::<bool>(),
        proptest::option::of("[a-z]{1,5}"),
    )
        .prop_map(|(text, add, comment)| Change {
            line: 0,
            verb: if add { Verb::Add } else { Verb::Remove },
            text,
            comment,
        });
    let memos = proptest::collection::vec(memo, 0..3);
    (
        title,
        words(),
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

/// Says what an action is, in one line.
pub fn say(kind: &ActionKind) -> String {
    let list = |items: &[Resource]| {
        items
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(",")
    };
    match kind {
        ActionKind::Create(c) => format!(
            "CREATE {} {:?} {}{}",
            c.path,
            c.content,
            c.language,
            if c.overwrite { "!" } else { "" }
        ),
        ActionKind::Read(r) => format!("READ {}", r.resource),
        ActionKind::Prune(p) => format!("PRUNE {}", p.resource),
        ActionKind::Edit(e) => {
            format!(
                "EDIT {} {:?}",
                e.path,
                e.pairs
                    .iter()
                    .map(|p| (p.find.as_str(), p.replace.as_str()))
                    .collect::<Vec<_>>()
            )
        }
        ActionKind::Execute(e) => {
            let cwd = e
                .cwd
                .as_ref()
                .map(|c| format!(" in {c}"))
                .unwrap_or_default();
            let env: String = e.env.iter().map(|(k, v)| format!(" {k}={v}")).collect();
            let limit = e
                .timeout
                .map(|t| format!(" {}s", t.as_secs()))
                .unwrap_or_default();
            format!(
                "EXECUTE {:?}{cwd}{env}{limit}{}",
                e.command,
                if e.allow_failure { " may fail" } else { "" }
            )
        }
        ActionKind::Research(r) => format!("RESEARCH {:?}", r.queries),
        ActionKind::ChatWithUser(c) => format!("CHAT {:?}", c.message),
        ActionKind::Invoke(i) => format!(
            "INVOKE {} [{}] {:?}",
            i.agent,
            list(&i.resources),
            i.message
        ),
        ActionKind::Conclude(c) => format!("CONCLUDE [{}] {:?}", list(&c.resources), c.message),
    }
}
