//! Plans in the manner of today's models, and random plans in random spellings.

use proptest::prelude::*;

use crate::plan::action::heading::Act;
use crate::plan::action::{Action, Kind, border, write_block};
use crate::plan::reading::{Reading, read};
use crate::plan::render;
use crate::plan::repair::{Level, repair};
use crate::plan::samples::{plan, say};
use crate::plan::{Field, Plan, memo};
use crate::text::link;
use crate::text::resource::Resource;

/// Returns what each plan of `fixtures/spellings` is read as: its notes, its actions, its mistakes.
fn meanings() -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/spellings");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    let mut out = String::new();
    for name in &names {
        let found = read(&std::fs::read_to_string(format!("{folder}/{name}")).unwrap());
        out.push_str(&format!("== {}\n", name.trim_end_matches(".md")));
        for note in &found.repaired.notes {
            out.push_str(&format!("note {}: {}\n", note.line, note.message));
        }
        for action in &found.plan.actions {
            out.push_str(&format!("{}\n", say(&action.kind)));
        }
        for wrong in &found.diagnostics {
            let message = wrong.message.replace('\n', "\n  ");
            out.push_str(&format!("wrong {}: {message}\n", wrong.line));
        }
    }
    out
}

#[test]
fn promise_d10_plans_in_the_manner_of_models_are_read_as_they_are_meant() {
    let expected = include_str!("../../../fixtures/spellings/meanings.txt");
    let found = meanings();
    let differs = found
        .lines()
        .zip(expected.lines())
        .position(|(a, b)| a != b);
    let from = differs.unwrap_or_default().saturating_sub(3);
    let shown: Vec<&str> = found.lines().skip(from).take(12).collect();
    assert!(
        found == expected,
        "from line {}:\n{}",
        from + 1,
        shown.join("\n")
    );
}

#[test]
fn promise_d10_what_has_two_meanings_is_refused_and_nothing_else_is() {
    let meanings = meanings();
    let plans: Vec<&str> = meanings.split("== ").skip(1).collect();
    for plan in &plans {
        let refused = plan.lines().any(|line| line.starts_with("wrong "));
        assert_eq!(refused, plan.starts_with("no-"), "{plan}");
    }
    assert!(plans.len() >= 60, "{}", plans.len());
}

#[test]
fn p25_words_and_an_action_without_any_part_of_a_plan_are_no_plan() {
    let action = "### Execute\n- **Description:** d\n```sh\nrm -rf build\n```\n";
    for (text, expected) in [
        (action.to_owned(), true),
        (format!("# T\n\n{action}"), true),
        (format!("## Steps\n\n{action}"), true),
        (format!("You could write this:\n\n{action}"), false),
    ] {
        assert_eq!(read(&text).diagnostics.is_empty(), expected, "{text}");
    }
}

/// Checks each plan of `fixtures/spellings` whose name begins so: it is read with nothing wrong, is
/// noted, and fits.
fn check(start: &str, fits: impl Fn(&Reading) -> bool) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/spellings");
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.starts_with(start) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let found = read(&text);
        assert_eq!(found.diagnostics, vec![], "{name}");
        let noted =
            found.repaired.text == text || found.repaired.notes.iter().any(|note| note.spelling);
        assert!(noted && fits(&found), "{name}: {found:?}");
        checked += 1;
    }
    assert!(checked > 0, "nothing begins with {start}");
}

/// Returns whether a plan has the one EDIT of the fixtures.
fn edits(found: &Reading) -> bool {
    let edit = "EDIT src/app.py [(\"    return \\\"hi\\\"\\n\", \"    return \\\"Hello\\\"\\n\")]";
    found
        .plan
        .actions
        .first()
        .is_some_and(|action| say(&action.kind) == edit)
}

#[test]
fn p25_what_the_parser_reads_stays_and_what_it_does_not_is_noted() {
    let text = "# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n\n### READ\n- Resource: a\n";
    let found = read(text);
    assert_eq!(
        (
            found.repaired.text.as_str(),
            found.repaired.level,
            found.repaired.notes.len()
        ),
        (text, Level::Clean, 0)
    );
    let found = read(&text.replace("### READ", "### Read"));
    let notes: Vec<(usize, &str, bool)> = found
        .repaired
        .notes
        .iter()
        .map(|note| (note.line, note.message.as_str(), note.spelling))
        .collect();
    assert_eq!(notes, [(10, "read `### Read` as the action READ", true)]);
    assert_eq!(
        (found.repaired.text, found.repaired.level),
        (text.replace("### READ", "### `READ`"), Level::Refenced)
    );
}

#[test]
fn p26_the_heading_of_an_action_is_known_with_what_is_around_its_name() {
    check("heading-", |found| !found.plan.actions.is_empty());
    check("heading-title", edits);
    check("heading-number", edits);
    check("heading-bold", edits);
}

#[test]
fn p27_sections_are_known_by_their_place() {
    check("sections-", |found| {
        edits(found) && found.plan.rationale.contains("curt")
    });
    check("action-plan-", edits);
    check("memos-in-german", |found| found.plan.memos.len() == 1);
}

#[test]
fn p28_a_rationale_without_a_block_is_put_into_one() {
    check("rationale-", |found| {
        edits(found) && !found.plan.rationale.trim().is_empty()
    });
}

#[test]
fn p29_memos_may_be_a_list_or_none() {
    check("memos-list", |found| found.plan.memos.len() == 2);
    check("memos-lines", |found| found.plan.memos.len() == 2);
    check("memos-no", |found| found.plan.memos.is_empty());
}

#[test]
fn p30_the_header_may_be_lines_and_the_title_another_heading() {
    check("header-lines", |found| {
        found.plan.field("Agent") == Some("Developer")
    });
    check("title-", |found| !found.plan.title.is_empty());
}

#[test]
fn p31_fields_are_known_without_bullets_and_by_other_keys() {
    check("fields-", edits);
    check("path-file", edits);
    check("path-german", edits);
}

#[test]
fn p33_commands_and_queries_may_stand_in_fields() {
    check("command-", |found| {
        say(&found.plan.actions[0].kind) == "EXECUTE \"make test\\n\""
    });
    check("query-", |found| {
        say(&found.plan.actions[0].kind) == "RESEARCH [\"rust diff crates\", \"myers diff\"]"
    });
}

#[test]
fn p34_labels_are_known_above_their_blocks() {
    check("labels-", |found| {
        found.plan.actions.len() == 1
            && say(&found.plan.actions[0].kind).starts_with("EDIT src/app.py [(\"    return \\\"hi")
    });
}

#[test]
fn p37_the_forms_of_other_tools_are_named_and_never_read() {
    for (name, what) in [
        ("no-diff-in-edit", "is a diff"),
        ("no-conflict-markers", "has conflict markers"),
        ("no-json", "the reply is JSON"),
        ("no-tool-call", "a call of a tool"),
    ] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/spellings");
        let found = read(&std::fs::read_to_string(format!("{folder}/{name}.md")).unwrap());
        assert!(found.diagnostics[0].message.contains(what), "{found:?}");
    }
}

/// Choices, one after another, again and again.
struct Choices {
    /// The choices.
    all: Vec<usize>,
    /// Whether words may stand beside the blocks.
    words: bool,
    /// How many were made.
    made: usize,
}

impl Choices {
    /// Returns one of some spellings.
    fn of<'a>(&mut self, spellings: &[&'a str]) -> &'a str {
        self.made += 1;
        spellings[self.all[self.made % self.all.len()] % spellings.len()]
    }
}

/// Returns the headings that mean an action, where fields or a block follow.
fn headings(act: Act) -> &'static [&'static str] {
    match act {
        Act::Create => &[
            "### `CREATE`",
            "### Create",
            "### Step 2 - CREATE",
            "#### 📄 CREATE",
            "**CREATE**",
            "## CREATE",
            "### Create file",
        ],
        Act::Read => &[
            "### `READ`",
            "### Read",
            "### 1. READ",
            "### Action 3: Read",
            "### [READ]",
            "##### READ",
        ],
        Act::Edit => &[
            "### `EDIT`",
            "### Edit",
            "### Action 1: EDIT",
            "### ✏️ `EDIT`",
            "**Edit:**",
            "### EDIT - change it",
            "###EDIT",
        ],
        Act::Execute => &[
            "### `EXECUTE`",
            "### Execute",
            "### RUN",
            "### Step 4 — EXECUTE",
            "### Run the tests",
            "### ▶️ Execute command",
        ],
        Act::Research => &[
            "### `RESEARCH`",
            "### Research",
            "### 5) RESEARCH",
            "### RESEARCH: how others do it",
        ],
        Act::Chat => &[
            "### `CHAT_WITH_USER`",
            "### CHAT\\_WITH\\_USER",
            "### Chat with user",
            "### PROMPT",
            "#### CHAT_WITH_USER",
        ],
        Act::Invoke => &[
            "### `INVOKE`",
            "### INVOKE",
            "### Step 9: INVOKE",
            "### Invoke",
        ],
        Act::Conclude => &[
            "### `CONCLUDE`",
            "### RETURN",
            "### **CONCLUDE**",
            "#### CONCLUDE",
        ],
        Act::Prune => &["### `PRUNE`", "### Prune", "### 7. Prune", "### 🧹 PRUNE"],
    }
}

/// Writes a field; a value with items keeps its bullet.
fn field(key: &str, value: &str, way: &str, out: &mut String) {
    // There a backslash would break the line.
    let way = if value.ends_with('\\') { "list" } else { way };
    let line = match way {
        "bold" => format!("**{key}:** {value}  \n"),
        "plain" => format!("{key}: {value}\n"),
        "numbered" => format!("1. **{key}:** {value}\n"),
        "star" => format!("* *{key}*: {value}\n"),
        "box" => format!("- [x] **{key}:** {value}\n"),
        _ => format!("- **{key}:** {value}\n"),
    };
    out.push_str(&line);
}

/// Returns a path in another spelling; one with anything odd in it keeps its link.
fn path(path: &str, choices: &mut Choices) -> String {
    let plain = path
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
        && !path.starts_with(['.', '_', '-']);
    let system = [
        "bin", "dev", "etc", "home", "lib", "opt", "run", "sys", "tmp", "usr", "var", "mnt",
        "proc", "root", "sbin",
    ];
    let link = link::write_path(path);
    if !plain || system.contains(&path.split('/').next().unwrap_or_default()) {
        return link;
    }
    match choices.of(&[
        "link", "plain", "dot", "absolute", "quotes", "bold", "code", "dots",
    ]) {
        "plain" => path.to_owned(),
        "dot" => format!("./{path}"),
        "absolute" => format!("[/{path}](/{path})"),
        "quotes" => format!("\"{path}\""),
        "bold" => format!("**{path}**"),
        "code" => format!("`./{path}`"),
        "dots" => format!("[./{path}](./{path})"),
        _ => link,
    }
}

/// Returns a resource in another spelling.
fn resource(resource: &Resource, choices: &mut Choices) -> String {
    match resource {
        Resource::File(file) => path(file.as_str(), choices),
        Resource::Url(url) => link::write_url(url),
        Resource::Artifact(artifact) => link::write_path(&artifact.to_string()),
    }
}

/// Writes an action.
fn action(action: &Action, choices: &mut Choices, out: &mut String) {
    let kind = &action.kind;
    let way = choices.of(&["list", "bold", "plain", "numbered", "star", "box"]);
    out.push_str(choices.of(headings(kind.act())));
    out.push('\n');
    let key = match kind {
        Kind::Create(create) => Some((
            choices.of(&["File Path", "Path", "File", "file_path"]),
            path(create.path.as_str(), choices),
        )),
        Kind::Edit(edit) => Some((
            choices.of(&["File Path", "Path", "Filename"]),
            path(edit.path.as_str(), choices),
        )),
        Kind::Read(read) => Some((
            choices.of(&["Resource", "File", "File Path"]),
            resource(&read.resource, choices),
        )),
        Kind::Prune(prune) => Some((
            choices.of(&["Resource", "Path"]),
            resource(&prune.resource, choices),
        )),
        _ => None,
    };
    if let Some((key, value)) = &key {
        field(key, value, way, out);
    }
    for own in kind.fields() {
        match own.key.as_str() {
            "File Path" | "Resource" => {}
            "Description" if kind.message().is_some() => {}
            "Description" => field("Description", "What it does.", way, out),
            "Timeout" => field(
                "Timeout",
                &format!("{} {}", own.value, choices.of(&["", "s", "seconds"])),
                way,
                out,
            ),
            "env" | "Handoff Resources" => nested(&own, out),
            key => field(key, &own.value, way, out),
        }
    }
    if let Kind::Execute(execute) = kind
        && execute.cwd.is_none()
    {
        field(
            "cwd",
            choices.of(&["None", "n/a", "project root"]),
            way,
            out,
        );
    }
    if choices.of(&["no", "yes"]) == "yes" && choices.words && kind.message().is_none() {
        out.push_str("\nThis is how it goes:\n\n");
    }
    body(kind, choices, out);
}

/// Writes a field with items.
fn nested(field: &Field, out: &mut String) {
    out.push_str(&format!("- **{}:**\n", field.key));
    for item in &field.items {
        out.push_str(&format!("  - {item}\n"));
    }
}

/// Writes what stands below the fields.
fn body(kind: &Kind, choices: &mut Choices, out: &mut String) {
    out.push('\n');
    match kind {
        Kind::Edit(edit) => {
            // Beside a FIND other words only show something, so all pairs have the same ones.
            let [find, replace] = [
                ["`FIND:`", "`REPLACE:`"],
                ["**Find:**", "**Replace:**"],
                ["FIND", "REPLACE"],
                ["#### Find", "#### Replace"],
                ["### FIND", "### REPLACE"],
                ["- FIND:", "- REPLACE:"],
                ["**Search:**", "**Replace with:**"],
                ["🔍 Old:", "✅ New:"],
                ["`FIND 1`", "`REPLACE 1`"],
            ][choices
                .of(&["0", "1", "2", "3", "4", "5", "6", "7", "8"])
                .parse::<usize>()
                .unwrap()];
            for pair in &edit.pairs {
                out.push_str(&format!("{find}\n"));
                write_block(&pair.find, &pair.language, out);
                let between = ["", "\n", "\nIt becomes this.\n\n"];
                out.push_str(choices.of(&between[..2 + usize::from(choices.words)]));
                out.push_str(&format!("{replace}\n"));
                write_block(&pair.replace, &pair.language, out);
                out.push('\n');
            }
        }
        other => match other.message() {
            Some(message) => border::write_message(message, out),
            None => other.write(out),
        },
    }
}

/// Writes a plan in some spelling.
fn spell(plan: &Plan, choices: &mut Choices) -> String {
    let closed = if plan.title.ends_with('#') { " #" } else { "" };
    let mut out = format!("# {}{closed}\n", plan.title);
    let way = choices.of(&["list", "bold"]);
    if way == "bold" {
        out.push('\n');
    }
    for own in &plan.fields {
        field(&own.key, &own.value, way, &mut out);
    }
    out.push_str(&format!(
        "\n{}\n",
        choices.of(&[
            "## Rationale",
            "## 🧠 Rationale",
            "## Begründung",
            "**Rationale**",
            "### Rationale",
            "## 1. Rationale",
            "## Reasoning"
        ])
    ));
    write_block(&plan.rationale, "text", &mut out);
    if !plan.memos.is_empty() {
        out.push_str("\n## Memos\n");
        let mut lines = String::new();
        plan.memos
            .iter()
            .for_each(|change| memo::write(change, &mut lines));
        match choices.of(&["block", "list", "lines"]) {
            "list" => lines
                .lines()
                .for_each(|line| out.push_str(&format!("- {line}\n"))),
            "lines" => out.push_str(&lines),
            _ => write_block(&lines, "", &mut out),
        }
    }
    out.push_str(&format!(
        "\n{}\n\n",
        choices.of(&[
            "## Action Plan",
            "## 🎯 Action Plan",
            "## Aktionsplan",
            "**Action Plan**",
            "## Steps",
            "### ACTION PLAN"
        ])
    ));
    let mut spoken = false;
    for each in &plan.actions {
        if !spoken && choices.words {
            out.push_str(choices.of(&[
                "",
                "",
                "Then we do this.\n\n",
                "<!-- next -->\n\n",
                "---\n\n",
            ]));
        }
        action(each, choices, &mut out);
        out.push('\n');
        spoken = each.kind.message().is_some();
    }
    match choices.of(&["", "words", "plan", "quote"]) {
        "words" if !spoken && choices.words => {
            format!("{out}\nThat is all. Tell me what you think!\n")
        }
        "plan" if choices.words => format!("<plan>\n{out}</plan>\n"),
        _ => out,
    }
}

/// Returns what a plan does, whatever its lines are.
fn meaning(plan: &Plan) -> (Vec<Kind>, Vec<(bool, String)>, String, String) {
    let memo = |memo: &memo::Change| (memo.verb == memo::Verb::Add, memo.text.clone());
    (
        plan.actions
            .iter()
            .map(|action| action.kind.without_lines())
            .collect(),
        plan.memos.iter().map(memo).collect(),
        plan.title.clone(),
        plan.rationale.clone(),
    )
}

/// Returns a plan whose contents hold nothing that could be taken for a part of a plan.
fn tame(mut plan: Plan) -> Plan {
    let words = |text: &str| format!("{} words\n", text.len());
    plan.rationale = words(&plan.rationale);
    for action in &mut plan.actions {
        match &mut action.kind {
            Kind::Create(create) => create.content = words(&create.content),
            Kind::Edit(edit) => edit.pairs.iter_mut().for_each(|pair| {
                pair.find = words(&pair.find);
                pair.replace = format!("new {}", words(&pair.replace));
            }),
            Kind::Execute(execute) => execute.command = words(&execute.command),
            Kind::Research(research) => research
                .queries
                .iter_mut()
                .for_each(|query| *query = words(query).trim_end().to_owned()),
            Kind::ChatWithUser(chat) => chat.message = quiet(&chat.message),
            Kind::Invoke(invoke) => invoke.message = quiet(&invoke.message),
            Kind::Conclude(conclude) => conclude.message = quiet(&conclude.message),
            _ => {}
        }
    }
    plan
}

/// Returns a message without code: a heading in it is never trusted, and its fences may be taken for
/// those of the blocks around.
fn quiet(message: &str) -> String {
    message
        .replace("### `READ`", "make")
        .replace("# x", "x")
        .replace("```sh", "words")
        .replace(['`', '~'], "")
}

/// Returns choices.
fn choices() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0_usize..1000, 40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn promise_d10_a_plan_is_the_same_in_every_spelling(plan in plan().prop_map(tame), all in choices()) {
        let text = spell(&plan, &mut Choices { all, words: true, made: 0 });
        let found = read(&text);
        prop_assert_eq!(&found.diagnostics, &vec![], "{}", text);
        prop_assert_eq!(meaning(&found.plan), meaning(&plan), "{}", text);
    }

    #[test]
    fn promise_d10_no_spelling_of_a_hostile_plan_is_misread(plan in plan(), all in choices()) {
        // Where repair doubts or mends the format's own spelling, its fences are at fault.
        prop_assume!(repair(&render(&plan)).level == Level::Clean);
        let text = spell(&plan, &mut Choices { all, words: false, made: 0 });
        let found = read(&text);
        if found.diagnostics.is_empty() {
            prop_assert_eq!(meaning(&found.plan), meaning(&plan), "{}", text);
        }
    }
}
