//! What is written is read again, whatever it holds.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::plan::action::Kind;
use crate::plan::action::chat_with_user::ChatWithUser;
use crate::plan::action::conclude::Conclude;
use crate::plan::action::create::Create;
use crate::plan::action::edit::{Edit, Pair};
use crate::plan::action::execute::Execute;
use crate::plan::action::invoke::Invoke;
use crate::plan::action::prune::Prune;
use crate::plan::action::read::Read;
use crate::plan::action::research::Research;
use crate::plan::memo::{Change, Verb};
use crate::plan::parse::parse;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;

/// Lines that could be taken for something of the plan around them.
const HOSTILE: [&str; 27] = [
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
fn content() -> impl Strategy<Value = String> {
    let line = prop_oneof![proptest::sample::select(&HOSTILE[..]).prop_map(str::to_owned), "[ -~]{0,12}"];
    proptest::collection::vec((line, proptest::sample::select(&["\n", "\n", "\r\n"][..])), 0..6)
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
fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z][ -~]{0,20}", Just("```".to_owned()), Just("<!-- `x` **y** # z".to_owned()), Just("é: [a](/b)".to_owned())]
        .prop_map(|text| text.trim().to_owned())
}

/// Paths, odd ones too.
fn path() -> impl Strategy<Value = RepoPath> {
    let odd =
        ["my file.md", "a](b.md", "`a`", "a&amp;b", "src/__main__.py", "app/[id]/(x).tsx", "%41", "x \"y\"", "*a*", "a<b>", "(Optional)"];
    prop_oneof![proptest::sample::select(odd.to_vec()).prop_map(str::to_owned), "[a-z_]{1,8}(/[a-z._-]{0,5}[a-z]){0,2}"]
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

/// Messages as a reader gives them: cut from the source, without blank lines and rules at their ends.
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
fn kind() -> impl Strategy<Value = Kind> {
    let pair = (content().prop_filter("not empty", |t| !t.is_empty()), content()).prop_map(|(find, replace)| Pair {
        line: 0,
        find,
        replace,
        language: "xml".into(),
    });
    let file_kinds = prop_oneof![
        (path(), file(), any::<bool>()).prop_map(|(path, content, overwrite)| Kind::Create(Create {
            path,
            content,
            language: "md".into(),
            overwrite
        })),
        (path(), proptest::collection::vec(pair, 1..3)).prop_map(|(path, pairs)| Kind::Edit(Edit { path, pairs })),
        resource().prop_map(|resource| Kind::Read(Read { resource })),
        resource().prop_map(|resource| Kind::Prune(Prune { resource })),
    ];
    let resources = || proptest::collection::vec(resource(), 0..3);
    prop_oneof![
        file_kinds,
        execute().prop_map(Kind::Execute),
        proptest::collection::vec(content(), 1..3).prop_filter_map("queries", queries),
        message().prop_map(|message| Kind::ChatWithUser(ChatWithUser { message })),
        (resources(), message()).prop_map(|(resources, message)| Kind::Invoke(Invoke { agent: "Architect".into(), resources, message })),
        (resources(), message()).prop_map(|(resources, message)| Kind::Conclude(Conclude { resources, message })),
    ]
}

/// Makes a RESEARCH of queries that are not blank.
fn queries(texts: Vec<String>) -> Option<Kind> {
    let queries: Vec<String> = texts.iter().map(|t| t.trim_end_matches(['\n', '\r']).to_owned()).filter(|q| !q.trim().is_empty()).collect();
    (!queries.is_empty()).then_some(Kind::Research(Research { queries }))
}

/// Commands with every field.
fn execute() -> impl Strategy<Value = Execute> {
    let command = content().prop_filter("a command", |text| !text.trim().is_empty());
    let env = proptest::collection::btree_map("[A-Z_]{1,5}", "[ -~é]{0,9}", 0..3);
    (command, proptest::option::of(path()), env, words(), any::<bool>(), proptest::option::of(1_u64..900)).prop_map(
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
        fields.iter_mut().filter(|f| f.key == "Description").for_each(|f| f.value = description.clone());
        if kind.message().is_none() {
            fields.push(Field::new("Other", description));
        }
        Action { line: 0, fields, kind }
    })
}

/// Plans.
fn plan() -> impl Strategy<Value = Plan> {
    let title = prop_oneof![words(), Just("A #".to_owned()), Just("#x".to_owned())];
    let rationale = content().prop_filter("not blank", |text| !text.trim().is_empty());
    let memo =
        (prop_oneof!["[a-zA-Z][a-z:' ]{0,9}[a-z]", Just("C# and #42".to_owned())], any::<bool>(), proptest::option::of("[a-z]{1,5}"))
            .prop_map(|(text, add, comment)| Change { line: 0, verb: if add { Verb::Add } else { Verb::Remove }, text, comment });
    let memos = proptest::collection::vec(memo, 0..3);
    (title, words(), rationale, memos, proptest::collection::vec(action(), 1..4)).prop_map(|(title, status, rationale, memos, actions)| {
        Plan { title, fields: vec![Field::new("Status", status), Field::new("Mood", "x: y")], rationale, memos, actions }
    })
}

/// Forgets the lines, which writing changes.
fn unplaced(mut plan: Plan) -> Plan {
    plan.fields.iter_mut().for_each(|f| f.line = 0);
    plan.memos.iter_mut().for_each(|m| m.line = 0);
    for action in &mut plan.actions {
        action.line = 0;
        action.fields.iter_mut().for_each(|f| f.line = 0);
        if let Kind::Edit(edit) = &mut action.kind {
            edit.pairs.iter_mut().for_each(|p| p.line = 0);
        }
    }
    plan
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn p24_a_written_plan_is_read_as_the_same(plan in plan()) {
        let text = render(&plan);
        let (found, wrong) = parse(&text);
        prop_assert_eq!(&wrong, &vec![], "{}", text);
        prop_assert_eq!(unplaced(found), plan, "{}", text);
    }

    #[test]
    fn p24_repair_leaves_a_written_plan_alone(plan in plan()) {
        let example = |action: &Action| action.kind.message().is_some_and(|message| message.contains("### `READ`"));
        prop_assume!(!plan.actions.iter().any(example));
        let text = render(&plan);
        prop_assert_eq!(crate::plan::repair::repair(&text).text, text);
    }

    #[test]
    fn p24_no_text_makes_the_reader_panic(lines in proptest::collection::vec(prop_oneof![proptest::sample::select(&HOSTILE[..]).prop_map(str::to_owned), "\\PC{0,9}", Just("### `EDIT`".to_owned()), Just("## Rationale".to_owned()), Just("- **env:**".to_owned()), Just("### INVOKE".to_owned()), Just("\0".to_owned())], 0..25)) {
        let text = lines.join("\n");
        let (plan, _) = parse(&text);
        crate::plan::outline::outline(&text);
        // Whatever was read is written so that nothing is added to it.
        let again = parse(&render(&plan)).0;
        prop_assert_eq!(again.actions.len(), plan.actions.len(), "{}", render(&plan));
    }
}

#[test]
fn p24_the_formats_own_spelling_is_written() {
    let text = "# T #\n* status: Green\n## 1. rationale\n```\nr\n```\n## Memos\n~~~\n[-] a # b\n~~~\n## Action plan:\n### edit\n### PROMPT\nhi\n### **EDIT**\n- Reference: x\n- file_path: `a b.md`\n- Description: d\n  - e\n#### FIND\n~~~py\n```` \n~~~\n#### REPLACE\n```py\n```\n### RETURN\n- Reference Files: [a](/a)\n\nbye\n";
    let (plan, wrong) = parse(text);
    assert_eq!(wrong.iter().map(|w| w.message.as_str()).collect::<Vec<_>>(), ["unknown action `edit`"]);
    let expected = "# T\n- **Status:** Green\n\n## Rationale\n````text\nr\n````\n\n## Memos\n````\n[-] a # b\n````\n\n## Action Plan\n\n### `CHAT_WITH_USER`\nhi\n\n### `EDIT`\n- **File Path:** [a b.md](</a b.md>)\n- **Description:** d\n    - e\n- **Reference:** x\n\n`FIND:`\n`````py\n```` \n`````\n`REPLACE:`\n````py\n````\n\n### `CONCLUDE`\n- **Handoff Resources:**\n    - [a](/a)\n\nbye\n";
    assert_eq!(render(&plan), expected);
}

#[test]
fn p24_no_text_of_a_changed_plan_gets_out_of_its_place() {
    let action = Action {
        line: 0,
        fields: vec![Field::new("Description", "a\n### `READ`\n- **Resource:** x")],
        kind: Kind::ChatWithUser(ChatWithUser { message: "### `EXECUTE`\n```\nls\n```\n```\nopen".into() }),
    };
    let find = Action { kind: Kind::Read(Read { resource: Resource::parse("a").expect("a path") }), ..action.clone() };
    let plan = Plan { title: "T\n## Action Plan".into(), rationale: "r".into(), actions: vec![action, find], ..Plan::default() };
    let (found, wrong) = parse(&render(&plan));
    assert_eq!((found.actions.len(), found.actions[1].kind.name(), wrong), (2, "READ", vec![]), "{}", render(&plan));
}

#[test]
fn the_documents_example_is_valid_and_in_the_formats_own_spelling() {
    let document = include_str!("../../../docs/formats/plan.md");
    let lines = crate::text::lines::Lines::new(document);
    let blocks = crate::text::markdown::blocks(document);
    let example = crate::text::markdown::fenced(&blocks).into_iter().find(|(_, code)| code.info == "markdown").expect("the example");
    let text = lines.span(example.1.content.clone());
    let (plan, wrong) = parse(text);
    assert_eq!((wrong, render(&plan).as_str()), (vec![], text));
}
