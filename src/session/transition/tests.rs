//! Tests of the turn transition.

use super::*;

fn resources(entries: &[&str]) -> Vec<Resource> {
    entries
        .iter()
        .map(|entry| Resource::parse(entry).expect("a good entry"))
        .collect()
}

fn listed(entries: &[&str]) -> Vec<ListEntry> {
    entries
        .iter()
        .map(|entry| ListEntry::read(entry).expect("a good entry"))
        .collect()
}

fn session() -> SessionName {
    SessionName::parse("s").expect("a good name")
}

/// Runs a transition of turn 2, and compares the context, agent and caller of the next turn.
fn check(context: &[&str], effects: &[Effect], expected: &str) {
    let (session, context) = (session(), listed(context));
    let current = Current {
        session: &session,
        number: 2,
        turn_id: Uuid::from_u128(2),
        caller_turn_id: Some(Uuid::from_u128(1)),
        agent: "dev",
        system_prompt: "<dev/>",
        context: &context,
        is_asked: true,
        question: None,
        requests: &Requests::default(),
    };

    let caller = Caller {
        turn_id: Uuid::from_u128(1),
        caller_turn_id: Some(Uuid::from_u128(9)),
        agent: "boss".to_owned(),
        system_prompt: "<boss/>".to_owned(),
        context: listed(&["brief.md"]),
    };
    let invoked = Agent {
        name: "architect".to_owned(),
        system_prompt: "<architect/>".to_owned(),
    };

    let next = after_run(
        &current,
        effects,
        &Others {
            invoked: Some(invoked),
            caller: Some(caller),
        },
    );
    let list: Vec<String> = next.context.iter().map(ListEntry::name).collect();
    let id = |id: Option<Uuid>| id.map_or_else(|| "none".to_owned(), |id| id.as_u128().to_string());
    let actual = format!(
        "{} {} parent {} caller {}: {}",
        next.agent,
        next.system_prompt,
        next.parent_turn_id.as_u128(),
        id(next.caller_turn_id),
        list.join(" ")
    );

    assert_eq!(actual, expected);
}

fn read(entry: &str) -> Effect {
    Effect::Add(Resource::parse(entry).expect("a good entry"))
}

fn prune(entry: &str) -> Effect {
    Effect::Remove(Resource::parse(entry).expect("a good entry"))
}

const HISTORY: &str = ".teddy/s/02/report.md .teddy/s/02/plan.md .teddy/s/02/user_prompt.txt";

#[test]
fn read_adds_and_prune_removes() {
    check(
        &["b", "c"],
        &[read("a"), prune("b")],
        &format!("dev <dev/> parent 2 caller 1: c a {HISTORY}"),
    );
}

#[test]
fn a_resource_that_is_there_is_not_added_twice() {
    check(
        &["b", "a"],
        &[read("a")],
        &format!("dev <dev/> parent 2 caller 1: b a {HISTORY}"),
    );
}

#[test]
fn a_pattern_stays() {
    check(
        &["src/*.rs", "b"],
        &[read("a"), prune("b")],
        &format!("dev <dev/> parent 2 caller 1: src/*.rs a {HISTORY}"),
    );
}

#[test]
fn read_and_prune_of_one_resource_apply_in_the_plans_order() {
    check(
        &[],
        &[read("a"), prune("a")],
        &format!("dev <dev/> parent 2 caller 1: {HISTORY}"),
    );
    check(
        &["a"],
        &[prune("a"), read("a")],
        &format!("dev <dev/> parent 2 caller 1: a {HISTORY}"),
    );
}

#[test]
fn what_the_turn_before_left_to_read_makes_room() {
    check(
        &[".teddy/s/01/report.md", ".teddy/s/01/plan.md", "a"],
        &[],
        &format!("dev <dev/> parent 2 caller 1: a {HISTORY}"),
    );
    let older = [".teddy/s/00/report.md", ".teddy/s/01/report.md"];
    check(
        &older,
        &[],
        &format!("dev <dev/> parent 2 caller 1: .teddy/s/00/report.md {HISTORY}"),
    );
}

#[test]
fn what_a_turn_left_makes_room_also_after_a_rejected_one() {
    check(
        &[".teddy/s/00/report.md", ".teddy/s/00/plan.md"],
        &[],
        &format!("dev <dev/> parent 2 caller 1: {HISTORY}"),
    );
}

#[test]
fn what_the_session_left_that_was_forked_makes_room() {
    check(
        &[".teddy/t/01/report.md", ".teddy/t/01/plan.md"],
        &[],
        &format!("dev <dev/> parent 2 caller 1: {HISTORY}"),
    );
}

#[test]
fn invoke_starts_with_the_handed_over_resources_alone() {
    let invoke = Effect::Invoke {
        agent: "Architect".to_owned(),
        resources: resources(&["x.md", "y.md"]),
        message: String::new(),
    };
    check(
        &["a"],
        &[read("z"), invoke],
        "architect <architect/> parent 2 caller 2: x.md y.md .teddy/s/02/report.md",
    );
}

#[test]
fn conclude_returns_to_the_caller_and_unwinds() {
    let conclude = Effect::Conclude {
        resources: resources(&["fix.md"]),
        message: String::new(),
    };
    check(
        &["a"],
        &[conclude],
        "boss <boss/> parent 1 caller 9: brief.md fix.md .teddy/s/02/report.md",
    );
}

/// Runs a transition of a turn without a caller, and compares the question and conclusion after it.
fn check_end(effects: &[Effect], (asked, before): (bool, Option<&str>), expected: &str) {
    let session = session();
    let current = Current {
        session: &session,
        number: 2,
        turn_id: Uuid::nil(),
        caller_turn_id: Some(Uuid::from_u128(7)),
        agent: "dev",
        system_prompt: "",
        context: &[],
        is_asked: asked,
        question: before,
        requests: &Requests::default(),
    };

    let next = after_run(&current, effects, &Others::default());
    let text = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    assert_eq!(
        format!("{} / {}", text(next.question), text(next.conclusion)),
        expected
    );
}

fn chat(message: &str) -> Effect {
    Effect::Chat {
        message: message.to_owned(),
    }
}

fn conclude(message: &str) -> Effect {
    Effect::Conclude {
        resources: Vec::new(),
        message: message.to_owned(),
    }
}

#[test]
fn a_question_stays_open_until_the_user_says_something() {
    check_end(&[chat("Red?")], (true, None), "Red? / -");
    check_end(
        &[chat("Red?"), chat("Or blue?")],
        (true, None),
        "Red?\n\nOr blue? / -",
    );
    check_end(&[], (false, Some("Red?")), "Red? / -");
    check_end(&[], (true, Some("Red?")), "- / -");

    check_end(&[chat("Blue?")], (true, Some("Red?")), "Blue? / -");
}

#[test]
fn to_conclude_without_a_caller_ends_the_work_unless_something_is_asked() {
    check_end(&[conclude("Done.")], (true, None), "- / Done.");
    check_end(&[chat("Red?"), conclude("Done.")], (true, None), "Red? / -");
    check_end(&[conclude("Done.")], (false, Some("Red?")), "Red? / -");
}

#[test]
fn who_concludes_without_a_caller_keeps_its_context() {
    let (session, context) = (session(), listed(&["a"]));
    let current = Current {
        session: &session,
        number: 2,
        turn_id: Uuid::from_u128(2),
        caller_turn_id: None,
        agent: "dev",
        system_prompt: "<dev/>",
        context: &context,
        is_asked: true,
        question: None,
        requests: &Requests::default(),
    };

    let next = after_run(&current, &[conclude("Done.")], &Others::default());
    let list: Vec<String> = next.context.iter().map(ListEntry::name).collect();
    assert_eq!(
        (list.join(" "), next.agent.as_str(), next.caller_turn_id),
        (format!("a {HISTORY}"), "dev", None)
    );
}

#[test]
fn a_rejected_plan_changes_nothing_but_shows_the_mistaken_files() {
    let (session, context) = (session(), listed(&["a"]));
    let current = Current {
        session: &session,
        number: 2,
        turn_id: Uuid::nil(),
        caller_turn_id: None,
        agent: "dev",
        system_prompt: "",
        context: &context,
        is_asked: true,
        question: None,
        requests: &Requests::default(),
    };
    assert_eq!(
        after_rejection(&current, &resources(&["a", "b"])).context,
        listed(&["a", "b"])
    );
}
