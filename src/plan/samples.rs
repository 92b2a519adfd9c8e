//! Random plans with texts that imitate plan syntax, for tests on several floors.

pub mod actions;

use std::time::Duration;

use proptest::prelude::*;

use super::action::Execute;
use super::action::behavior::Pair;
use super::action::chat_with_user::ChatWithUser;
use super::action::conclude::Conclude;
use super::action::create::Create;
use super::action::edit::Edit;
use super::action::execute::PROMPTS;
use super::action::invoke::Invoke;
use super::action::prune::Prune;
use super::action::read::Read;
use super::action::research::Research;
use super::action::take::{TakePath, TakenState};
use super::action::{Action, ActionKind, ROWS};
use super::document::Plan;
use super::field::Field;
use super::memo::{MemoChange, Verb};
use super::state::{Imprint, KnownState, StateMode};
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

pub fn resource() -> impl Strategy<Value = Resource> {
    prop_oneof![
        path().prop_map(Resource::File),
        "https?://[a-z]{1,8}\\.example(/[a-z()&=?%_]{0,9})?".prop_map(Resource::Url),
        (0_u64..120).prop_map(|n| Resource::parse(&format!(".teddy/a/{n}/report.md")).expect("an artifact")),
    ]
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
    proptest::strategy::Union::new(ROWS.iter().map(|row| kind_of(row.name)))
}

fn kind_of(name: &str) -> BoxedStrategy<ActionKind> {
    match name {
        "CREATE" => create().boxed(),
        "READ" => resource()
            .prop_map(|resource| Read { resource }.into())
            .boxed(),
        "EDIT" => edit().boxed(),
        "EXECUTE" => execute().boxed(),
        "RESEARCH" => research().boxed(),
        "CHAT_WITH_USER" => message()
            .prop_map(|message| ChatWithUser { message }.into())
            .boxed(),
        "INVOKE" => (resources(), message())
            .prop_map(|(resources, message)| {
                let agent = "Architect".to_owned();
                Invoke {
                    agent,
                    resources,
                    message,
                }
                .into()
            })
            .boxed(),
        "CONCLUDE" => (resources(), message())
            .prop_map(|(resources, message)| Conclude { resources, message }.into())
            .boxed(),
        "PRUNE" => resource()
            .prop_map(|resource| Prune { resource }.into())
            .boxed(),
        "TAKE" => take().boxed(),
        _ => panic!("{name} has no sample"),
    }
}

fn create() -> impl Strategy<Value = ActionKind> {
    (path(), file(), any::<[bool; 2]>()).prop_map(|(path, text, [overwrite, keep_bytes])| {
        let language = "md".to_owned();
        Create {
            path,
            text,
            language,
            overwrite,
            keep_bytes,
        }
        .into()
    })
}

fn edit() -> impl Strategy<Value = ActionKind> {
    let find = block_text().prop_filter("not empty", |text| !text.is_empty());
    let pair = (find, block_text()).prop_map(|(find, replace)| Pair {
        line: 0,
        find,
        replace,
        language: "xml".into(),
    });
    (path(), proptest::collection::vec(pair, 1..3))
        .prop_map(|(path, pairs)| Edit { path, pairs }.into())
}

fn execute() -> impl Strategy<Value = ActionKind> {
    let command = block_text().prop_filter("a command", |text| {
        let first = text.trim_start();
        !first.is_empty() && !PROMPTS.iter().any(|prompt| first.starts_with(prompt))
    });
    let env = proptest::collection::btree_map("[A-Z_]{1,5}", "[ -~é]{0,9}", 0..3);
    let cwd = proptest::option::of(path());
    let timeout = proptest::option::of(1_u64..900);
    let flags = any::<(bool, bool)>();
    (command, cwd, env, phrase(), flags, timeout).prop_map(
        |(command, cwd, env, expected, flags, seconds)| {
            let execute = Execute {
                command,
                language: "sh".into(),
                cwd: cwd.filter(|cwd| cwd.as_str() != "(Optional)"),
                env: env.into_iter().collect(),
                expected_outcome: expected,
                allow_failure: flags.0,
                timeout: seconds.map(Duration::from_secs),
                network: flags.1,
            };
            execute.into()
        },
    )
}

fn research() -> impl Strategy<Value = ActionKind> {
    let texts = proptest::collection::vec(block_text(), 1..3);
    texts.prop_filter_map("queries", |texts| {
        let queries = texts.iter().map(|text| text.trim_end_matches(['\n', '\r']));
        let queries = queries.filter(|query| !query.trim().is_empty());
        let queries: Vec<String> = queries.map(str::to_owned).collect();
        (!queries.is_empty()).then(|| Research { queries }.into())
    })
}

fn take() -> impl Strategy<Value = ActionKind> {
    let state = || (0..3_usize, 0..200_u32, "[a-z]{0,9}");
    (
        path(),
        proptest::option::of(state()),
        proptest::option::of(state()),
    )
        .prop_filter("it does something", |(_, a, b)| a.is_some() || b.is_some())
        .prop_map(|(path, becomes, was)| {
            let becomes = becomes.map(|(mode, number, bytes)| TakenState {
                mode: StateMode::ALL[mode],
                artifact: format!("taken/{number:02}"),
                imprint: Imprint::of(bytes.as_bytes()),
            });
            let previous = was.map(|(mode, _, bytes)| KnownState {
                mode: StateMode::ALL[mode],
                imprint: Imprint::of(bytes.as_bytes()),
            });
            TakePath {
                path,
                becomes,
                previous,
                keep_bytes: false,
            }
            .into()
        })
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

/// Describes an action in one line, for comparison.
pub fn describe(kind: &ActionKind) -> String {
    match kind {
        ActionKind::Create(create) => {
            let mark = if create.overwrite { "!" } else { "" };
            format!(
                "CREATE {} {:?} {}{mark}",
                create.path, create.text, create.language
            )
        }
        ActionKind::Edit(edit) => {
            let pairs = edit.pairs.iter();
            let pairs: Vec<_> = pairs
                .map(|pair| (pair.find.as_str(), pair.replace.as_str()))
                .collect();
            format!("EDIT {} {pairs:?}", edit.path)
        }
        ActionKind::Execute(execute) => {
            let cwd = execute.cwd.iter().map(|cwd| format!(" in {cwd}"));
            let env = execute
                .env
                .iter()
                .map(|(name, value)| format!(" {name}={value}"));
            let limit = execute
                .timeout
                .map(|limit| format!(" {}s", limit.as_secs()));
            let failure = execute.allow_failure.then(|| " may fail".to_owned());
            let network = execute.network.then(|| " network".to_owned());
            let settings = cwd.chain(env).chain(limit).chain(failure).chain(network);
            format!(
                "EXECUTE {:?}{}",
                execute.command,
                settings.collect::<String>()
            )
        }
        ActionKind::Research(research) => format!("RESEARCH {:?}", research.queries),
        ActionKind::ChatWithUser(chat) => format!("CHAT {:?}", chat.message),
        ActionKind::Invoke(invoke) => {
            let resources = list(&invoke.resources);
            format!("INVOKE {} [{resources}] {:?}", invoke.agent, invoke.message)
        }
        ActionKind::Conclude(conclude) => {
            format!(
                "CONCLUDE [{}] {:?}",
                list(&conclude.resources),
                conclude.message
            )
        }
        ActionKind::TakePath(take) => {
            let word = |mode: Option<StateMode>| mode.map_or("no file", StateMode::word);
            let becomes = take.becomes.as_ref();
            format!(
                "TAKE {} {} -> {} {}",
                take.path,
                word(take.previous.as_ref().map(|was| was.mode)),
                word(becomes.map(|state| state.mode)),
                becomes.map_or("-", |state| state.artifact.as_str()),
            )
        }
        _ => format!("{} {}", kind.name(), kind.target()),
    }
}

fn list(resources: &[Resource]) -> String {
    let names: Vec<String> = resources.iter().map(ToString::to_string).collect();
    names.join(",")
}
