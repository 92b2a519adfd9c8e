//! What the prompts teach is what the parser reads: every example is a plan, every format an action.

use teddy::model::prompt::Prompts;
use teddy::plan::parse::parse;
use teddy::plan::repair::repair;
use teddy::plan::{Plan, Status};

/// Returns the texts of all elements of a name, without the newline behind the opening tag; attributes come first.
fn elements<'a>(text: &'a str, name: &str) -> Vec<(&'a str, &'a str)> {
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    text.split(&open)
        .skip(1)
        .filter_map(|rest| {
            let (attributes, rest) = rest.split_once('>')?;
            Some((attributes.trim(), rest.split_once(&close)?.0.trim_start_matches('\n')))
        })
        .collect()
}

/// Reads a plan that must have no mistake and nothing to repair.
fn read(name: &str, text: &str) -> Plan {
    let (plan, diagnostics) = parse(text);
    assert!(diagnostics.is_empty(), "{name}: {diagnostics:#?}\n{text}");
    assert_eq!(repair(text).text, text, "{name}");
    plan
}

#[test]
fn every_example_of_a_prompt_is_a_plan_without_a_mistake() {
    for prompt in Prompts::default().all() {
        let examples = elements(&prompt.text, "example");
        assert!(!examples.is_empty(), "{}", prompt.name);
        for (_, text) in examples {
            let plan = read(&prompt.name, text);
            assert_eq!((plan.status(), plan.memos.len(), plan.actions.len()), (Some(Status::Green), 2, 3), "{}", prompt.name);
            assert_eq!(plan.memos[0].text, "Exported files begin with a header row.");
            assert_eq!(plan.field("Agent").map(str::to_lowercase).as_deref(), Some(prompt.name.as_str()));
        }
    }
}

#[test]
fn every_format_of_a_prompt_is_the_action_it_describes() {
    let prompt = Prompts::default().find("developer").expect("it is built in");
    let (head, _) = elements(&prompt.text, "example")[0].1.split_once("## Action Plan\n").expect("a plan has actions");
    let mut taught = Vec::new();
    for (attributes, body) in elements(&prompt.text, "action").into_iter().filter(|(attributes, _)| attributes.starts_with("name=")) {
        let name = attributes.trim_start_matches("name=").trim_matches('"');
        let plan = read(name, &format!("{head}## Action Plan\n\n{}", elements(body, "format")[0].1));
        assert_eq!(plan.actions.iter().map(|action| action.kind.name()).collect::<Vec<_>>(), [name]);
        taught.push(name);
    }
    assert_eq!(taught, ["CREATE", "READ", "EDIT", "EXECUTE", "RESEARCH", "CHAT_WITH_USER", "INVOKE", "CONCLUDE", "PRUNE"]);
}
