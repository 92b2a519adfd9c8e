//! The prompts teach what the parser accepts: every example is a valid plan, and every format an
//! action.

use teddy::model::prompt::Prompts;
use teddy::plan::parse::parse;
use teddy::plan::repair::repair;
use teddy::plan::{Plan, PlanStatus};

/// Returns attributes and text of all elements with a name. The text starts after the newline.
fn elements<'a>(text: &'a str, name: &str) -> Vec<(&'a str, &'a str)> {
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    text.split(&open)
        .skip(1)
        .filter_map(|rest| {
            let (attributes, rest) = rest.split_once('>')?;
            Some((
                attributes.trim(),
                rest.split_once(&close)?.0.trim_start_matches('\n'),
            ))
        })
        .collect()
}

/// Parses a plan that must be valid without repair.
fn read(name: &str, text: &str) -> Plan {
    let (plan, diagnostics) = parse(text);
    assert!(diagnostics.is_empty(), "{name}: {diagnostics:#?}\n{text}");
    assert_eq!(repair(text).text, text, "{name}");
    plan
}

#[test]
fn every_example_of_a_prompt_is_a_plan_without_a_mistake() {
    for prompt in Prompts::new([], true).all() {
        let examples = elements(&prompt.text, "example");
        let plans: Vec<Plan> = examples
            .iter()
            .map(|(_, text)| read(&prompt.name, text))
            .collect();
        let sizes: Vec<_> = plans
            .iter()
            .map(|plan| (plan.status(), plan.memos.len(), plan.actions.len()))
            .collect();
        assert_eq!(
            sizes,
            [
                (Some(PlanStatus::Green), 2, 3),
                (Some(PlanStatus::Green), 0, 2)
            ],
            "{}",
            prompt.name
        );
        assert_eq!(
            plans[0].memos[0].text,
            "Exported files begin with a header row."
        );
        for plan in &plans {
            assert_eq!(
                plan.field("Agent").map(str::to_lowercase).as_deref(),
                Some(prompt.name.as_str())
            );
        }
    }
}

#[test]
fn every_format_of_a_prompt_is_the_action_it_describes() {
    let prompt = Prompts::new([], true)
        .find("developer")
        .expect("it is built in");
    let (head, _) = elements(&prompt.text, "example")[0]
        .1
        .split_once("## Action Plan\n")
        .expect("a plan has actions");
    let mut taught = Vec::new();
    for (attributes, body) in elements(&prompt.text, "action")
        .into_iter()
        .filter(|(attributes, _)| attributes.starts_with("name="))
    {
        let name = attributes.trim_start_matches("name=").trim_matches('"');
        let plan = read(
            name,
            &format!("{head}## Action Plan\n\n{}", elements(body, "format")[0].1),
        );
        assert_eq!(
            plan.actions
                .iter()
                .map(|action| action.kind.name())
                .collect::<Vec<_>>(),
            [name]
        );
        taught.push(name);
    }
    assert_eq!(
        taught,
        [
            "CREATE",
            "READ",
            "EDIT",
            "EXECUTE",
            "RESEARCH",
            "CHAT_WITH_USER",
            "INVOKE",
            "CONCLUDE",
            "PRUNE"
        ]
    );
}

#[test]
fn what_a_prompt_calls_a_rule_of_the_format_is_one() {
    let prompt = Prompts::new([], true)
        .find("developer")
        .expect("it is built in");
    let (_, example) = elements(&prompt.text, "example")[0];
    let read_first =
        "### `READ`\n- **Resource:** [src/export.rs](/src/export.rs)\n- **Description:** Look.\n\n";
    let wrong = [
        // Text before the plan, and a plan without an action.
        example.replace("# Write the header row of the export\n", "Sure!\n"),
        example
            .split_once("### `EDIT`")
            .expect("it has one")
            .0
            .to_owned(),
        // Label and target of the link differ.
        example.replace(
            "[docs/export.md](/docs/export.md)",
            "[docs/export.md](/docs/other.md)",
        ),
        // Text between blocks.
        example.replace("`REPLACE:`", "And now:\n\n`REPLACE:`"),
    ];
    for text in wrong {
        assert!(!parse(&text).1.is_empty(), "{text}");
    }
    // The parser does not know the files. Validation finds an EDIT of a file that the same plan
    // reads.
    assert_eq!(
        parse(&example.replace("### `EDIT`", &format!("{read_first}### `EDIT`"))).1,
        []
    );
}

#[test]
fn every_agent_that_a_prompt_invokes_exists() {
    let names = Prompts::new([], true);
    let invoked = regex::Regex::new("INVOKE (?:the )?([A-Z][a-z]+)").expect("it is one");
    for prompt in names.all() {
        for found in invoked.captures_iter(&prompt.text) {
            assert!(
                names.find(&found[1]).is_ok(),
                "{}: {}",
                prompt.name,
                &found[0]
            );
        }
    }
}
