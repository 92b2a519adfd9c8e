//! Random plans in random spellings.

use proptest::prelude::*;

use crate::plan::action::{Action, ActionKind, border, write_block};
use crate::plan::document::Plan;
use crate::plan::field::Field;
use crate::plan::memo;
use crate::plan::reading::read;
use crate::plan::render::render;
use crate::plan::repair::{Level, repair};
use crate::plan::samples::plan;
use crate::text::link;
use crate::text::resource::Resource;

/// A repeated sequence of random choices.
struct Choices {
    all: Vec<usize>,
    /// Whether text next to the blocks is added.
    with_text: bool,
    count: usize,
}

impl Choices {
    fn of<'a>(&mut self, spellings: &[&'a str]) -> &'a str {
        self.count += 1;
        spellings[self.all[self.count % self.all.len()] % spellings.len()]
    }
}

/// Returns the headings for an action with fields or a block below; none for actions that have only
/// their own name.
fn headings(row: &'static crate::plan::action::ActionRow) -> &'static [&'static str] {
    match row.name {
        "CREATE" => &[
            "### `CREATE`",
            "### Create",
            "### Step 2 - CREATE",
            "#### 📄 CREATE",
            "**CREATE**",
            "## CREATE",
            "### Create file",
        ],
        "READ" => &[
            "### `READ`",
            "### Read",
            "### 1. READ",
            "### Action 3: Read",
            "### [READ]",
            "##### READ",
        ],
        "EDIT" => &[
            "### `EDIT`",
            "### Edit",
            "### Action 1: EDIT",
            "### ✏️ `EDIT`",
            "**Edit:**",
            "### EDIT - change it",
            "###EDIT",
        ],
        "EXECUTE" => &[
            "### `EXECUTE`",
            "### Execute",
            "### RUN",
            "### Step 4 — EXECUTE",
            "### Run the tests",
            "### ▶️ Execute command",
        ],
        "RESEARCH" => &[
            "### `RESEARCH`",
            "### Research",
            "### 5) RESEARCH",
            "### RESEARCH: how others do it",
        ],
        "CHAT_WITH_USER" => &[
            "### `CHAT_WITH_USER`",
            "### CHAT\\_WITH\\_USER",
            "### Chat with user",
            "### PROMPT",
            "#### CHAT_WITH_USER",
        ],
        "INVOKE" => &[
            "### `INVOKE`",
            "### INVOKE",
            "### Step 9: INVOKE",
            "### Invoke",
        ],
        "CONCLUDE" => &[
            "### `CONCLUDE`",
            "### RETURN",
            "### **CONCLUDE**",
            "#### CONCLUDE",
        ],
        "PRUNE" => &["### `PRUNE`", "### Prune", "### 7. Prune", "### 🧹 PRUNE"],
        _ => &[],
    }
}

/// Writes a field; a value with items keeps its bullet.
fn field(key: &str, value: &str, style: &str, out: &mut String) {
    // Without a list, the backslash would be a line break.
    let style = if value.ends_with('\\') { "list" } else { style };
    let line = match style {
        "bold" => format!("**{key}:** {value}  \n"),
        "plain" => format!("{key}: {value}\n"),
        "numbered" => format!("1. **{key}:** {value}\n"),
        "star" => format!("* *{key}*: {value}\n"),
        "box" => format!("- [x] **{key}:** {value}\n"),
        _ => format!("- **{key}:** {value}\n"),
    };
    out.push_str(&line);
}

/// Returns a path in another spelling; an unusual path keeps its link.
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

fn resource(resource: &Resource, choices: &mut Choices) -> String {
    match resource {
        Resource::File(file) => path(file.as_str(), choices),
        Resource::Url(url) => link::write_url(url),
        Resource::Artifact(artifact) => link::write_path(&artifact.to_string()),
    }
}

/// Writes an action.
fn action(action: &Action, exact: bool, choices: &mut Choices, out: &mut String) {
    let kind = &action.kind;
    let style = choices.of(&["list", "bold", "plain", "numbered", "star", "box"]);
    match headings(kind.row()) {
        // Behind a message only the heading of the format is one.
        _ if exact => out.push_str(&format!("### `{}`", kind.name())),
        [] => out.push_str(&format!("### `{}`", kind.name())),
        spellings => out.push_str(choices.of(spellings)),
    }

    out.push('\n');
    let key = match kind {
        ActionKind::Create(create) => Some((
            choices.of(&["File Path", "Path", "File", "file_path"]),
            path(create.path.as_str(), choices),
        )),
        ActionKind::Edit(edit) => Some((
            choices.of(&["File Path", "Path", "Filename"]),
            path(edit.path.as_str(), choices),
        )),
        ActionKind::Read(read) => Some((
            choices.of(&["Resource", "File", "File Path"]),
            resource(&read.resource, choices),
        )),
        ActionKind::Prune(prune) => Some((
            choices.of(&["Resource", "Path"]),
            resource(&prune.resource, choices),
        )),
        ActionKind::TakePath(take) => Some((
            choices.of(&["File Path", "Path"]),
            path(take.path.as_str(), choices),
        )),
        _ => None,
    };

    if let Some((key, value)) = &key {
        field(key, value, style, out);
    }

    for own in kind.fields() {
        match own.key.as_str() {
            "File Path" | "Resource" => {}
            "Description" if kind.message().is_some() => {}
            "Description" => field("Description", "What it does.", style, out),
            "Timeout" => field(
                "Timeout",
                &format!("{} {}", own.value, choices.of(&["", "s", "seconds"])),
                style,
                out,
            ),
            "env" | "Handoff Resources" => nested(&own, out),
            key => field(key, &own.value, style, out),
        }
    }

    if let ActionKind::Execute(execute) = kind
        && execute.cwd.is_none()
    {
        field(
            "cwd",
            choices.of(&["None", "n/a", "project root"]),
            style,
            out,
        );
    }

    if choices.of(&["no", "yes"]) == "yes" && choices.with_text && kind.message().is_none() {
        out.push_str("\nThis is how it goes:\n\n");
    }

    body(kind, choices, out);
}

fn nested(field: &Field, out: &mut String) {
    out.push_str(&format!("- **{}:**\n", field.key));
    for item in &field.items {
        out.push_str(&format!("  - {item}\n"));
    }
}

fn body(kind: &ActionKind, choices: &mut Choices, out: &mut String) {
    out.push('\n');
    match kind {
        ActionKind::Edit(edit) => {
            // Next to a FIND, other words are captions, so all pairs use the same labels.
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
                out.push_str(choices.of(&between[..2 + usize::from(choices.with_text)]));
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

fn spell(plan: &Plan, choices: &mut Choices) -> String {
    let closing = if plan.title.ends_with('#') { " #" } else { "" };
    let mut out = format!("# {}{closing}\n", plan.title);
    let style = choices.of(&["list", "bold"]);
    if style == "bold" {
        out.push('\n');
    }

    for own in &plan.fields {
        field(&own.key, &own.value, style, &mut out);
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
            .for_each(|change| memo::write_change(change, &mut lines));

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
        if !spoken && choices.with_text {
            out.push_str(choices.of(&[
                "",
                "",
                "Then we do this.\n\n",
                "<!-- next -->\n\n",
                "---\n\n",
            ]));
        }

        action(each, spoken, choices, &mut out);
        out.push('\n');
        spoken = each.kind.message().is_some();
    }

    match choices.of(&["", "words", "plan", "quote"]) {
        "words" if !spoken && choices.with_text => {
            format!("{out}\nThat is all. Tell me what you think!\n")
        }
        "plan" if choices.with_text => format!("<plan>\n{out}</plan>\n"),
        _ => out,
    }
}

/// Returns the meaning of a plan, without line numbers.
fn meaning(plan: &Plan) -> (Vec<ActionKind>, Vec<(bool, String)>, String, String) {
    let memo = |memo: &memo::MemoChange| (memo.verb == memo::Verb::Add, memo.text.clone());
    (
        plan.kinds().cloned().collect(),
        plan.memos.iter().map(memo).collect(),
        plan.title.clone(),
        plan.rationale.clone(),
    )
}

/// Returns a plan without contents that resemble parts of a plan.
fn tame(mut plan: Plan) -> Plan {
    let describe = |text: &str| format!("{} words\n", text.len());
    plan.rationale = describe(&plan.rationale);
    for action in &mut plan.actions {
        match &mut action.kind {
            ActionKind::Create(create) => create.text = describe(&create.text),
            ActionKind::Edit(edit) => edit.pairs.iter_mut().for_each(|pair| {
                pair.find = describe(&pair.find);
                pair.replace = format!("new {}", describe(&pair.replace));
            }),
            ActionKind::Execute(execute) => execute.command = describe(&execute.command),
            ActionKind::Research(research) => research
                .queries
                .iter_mut()
                .for_each(|query| *query = describe(query).trim_end().to_owned()),
            ActionKind::ChatWithUser(chat) => chat.message = without_markup(&chat.message),
            ActionKind::Invoke(invoke) => invoke.message = without_markup(&invoke.message),
            ActionKind::Conclude(conclude) => conclude.message = without_markup(&conclude.message),
            _ => {}
        }
    }

    plan
}

/// Removes code from a message: a heading in it is never trusted, and its fences can be confused
/// with those of other blocks.
fn without_markup(message: &str) -> String {
    message
        .replace("### `READ`", "make")
        .replace("# x", "x")
        .replace("```sh", "words")
        .replace(['`', '~'], "")
}

fn choices() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0_usize..1000, 40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn promise_d10_a_plan_is_the_same_in_every_spelling(plan in plan().prop_map(tame), all in choices()) {
        let text = spell(&plan, &mut Choices { all, with_text: true, count: 0 });
        let reading = read(&text);
        prop_assert_eq!(&reading.diagnostics, &vec![], "{}", text);
        prop_assert_eq!(meaning(&reading.plan), meaning(&plan), "{}", text);
    }

    #[test]
    fn promise_d10_no_spelling_of_a_hostile_plan_is_misread(plan in plan(), all in choices()) {
        // If repair changes or doubts even the exact spelling, the fences are ambiguous.
        prop_assume!(repair(&render(&plan)).level == Level::Clean);
        let text = spell(&plan, &mut Choices { all, with_text: false, count: 0 });
        let reading = read(&text);
        if reading.diagnostics.is_empty() {
            prop_assert_eq!(meaning(&reading.plan), meaning(&plan), "{}", text);
        }
    }
}
