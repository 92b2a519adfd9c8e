//! Tests of reading, restricting and merging layers.

use super::super::settings::ModelKind;
use super::*;

fn layer(text: &str) -> Layer {
    Layer::parse("test.yaml", text).expect("valid YAML")
}

#[test]
fn later_layers_win_key_by_key() {
    let settings = merge(&[
        layer("replan: {max: 1}\nagent: a"),
        layer("replan: {max: 2}"),
    ])
    .expect("valid settings");
    assert_eq!((settings.replan.max, settings.agent.as_str()), (2, "a"));
}

#[test]
fn cf2_an_unknown_key_is_named_with_its_file_and_line() {
    let check = |text: &str, expected: &str, hint: &str| {
        let error = merge(&[layer(text)]).expect_err("a misspelt key");
        assert_eq!(
            (error.to_string().as_str(), error.hint().as_str()),
            (expected, hint)
        );
    };
    check(
        "# mine\nmodle: x",
        "test.yaml, line 2: unknown setting `modle`",
        "did you mean `model`?",
    );
    check(
        "agent: x\nexecute:\n  sandbox: off\n  timout: 5",
        "test.yaml, line 4: unknown setting `execute.timout`",
        "did you mean `execute.timeout`?",
    );
    // Bug: the name was empty.
    check(
        "replan: {5: 1}",
        "test.yaml, line 1: unknown setting `replan.5`",
        "correct the file; `TEDDY_CONFIG=/dev/null teddy <command>` runs without it",
    );
}

#[test]
fn cf2_a_value_out_of_range_is_named_with_its_key_and_line() {
    let check = |text: &str, expected: &str| {
        let error = merge(&[layer(text)]).expect_err("a value out of range");
        assert_eq!(error.to_string(), format!("test.yaml, line 2: {expected}"));
    };
    check(
        "agent: a\nexecute: {timeout: 0}",
        "`execute.timeout` must be a number of seconds from 1 to 86400, not `0`",
    );
    check(
        "agent: a\nexecute: {timeout: 86401}",
        "`execute.timeout` must be a number of seconds from 1 to 86400, not `86401`",
    );
    check(
        "agent: a\nlimits: {turns: 0}",
        "`limits.turns` must be 1 or more, not `0`",
    );
    check(
        "agent: a\nlimits: {cost: .inf}",
        "`limits.cost` must be an amount that is not negative, not `inf`",
    );
    check(
        "agent: a\nrace: {parallel: 0}",
        "`race.parallel` must be 1 or more, not `0`",
    );
    check(
        "agent: a\nchange: {roles: {poet: m}}",
        "`change.roles.poet`: there is no role `poet`; the roles are `author`, `challenger`, `implementer`, `reviewer`",
    );
    check(
        "agent: a\nmodels: {a: {id: [5]}}",
        "`models.a.id` must be a string, not a list",
    );
    check(
        "agent: a\nmodels: {a: {kind: gpt}}",
        "`models.a.kind` must be one of `openai`, `responses`, `anthropic`, `command`, `replay`, `manual`, `acp`, `agent`, not `gpt`",
    );
    check(
        "agent: a\nmodels: {a: {base_url: localhost}}",
        "`models.a.base_url` must be an address that begins with `http://` or `https://`, not `localhost`",
    );
    // Bug: none of these had a line, and enums named a type of serde's.
    check(
        "agent: a\nexecute: {sandbox: true}",
        "`execute.sandbox` must be one of `off`, `on`, `require`, not `true`",
    );
    check(
        "agent: a\nexecute: {sandbox: {a: 1}}",
        "`execute.sandbox` must be one of `off`, `on`, `require`, not a mapping",
    );
    check(
        "push:\n  allow: [true]\nagent: a",
        "`push.allow` must be `keys` or `paths`, not `true`",
    );
    check(
        "replan:\n  max: -1",
        "`replan.max` must be a whole number that is not negative, not `-1`",
    );
    check("agent: a\nmodel: 5", "`model` must be a string, not `5`");
    check(
        "agent: a\nmodels: {1: {id: x}}",
        "a key of `models` must be a string, not `1`",
    );
    check(
        "agent: a\nmodels: {m: {kind: openai, headers: {true: x}}}",
        "a key of `models.m.headers` must be a string, not `true`",
    );
    check(
        "models:\n  gpt-4.1: {id: [5]}",
        "`models.gpt-4.1.id` must be a string, not a list",
    );
}

#[test]
fn cf2_an_item_of_a_list_is_named_by_its_own_line() {
    let text = "push:\n  allow:\n    - paths\n    - [x]\n";
    let error = merge(&[layer(text)]).expect_err("a list in a list");
    assert_eq!(
        error.to_string(),
        "test.yaml, line 4: `push.allow` must be `keys` or `paths`, not a list"
    );
}

#[test]
fn an_untrusted_repository_cannot_name_a_program_or_a_server() {
    let mut repository = layer(
        "agent: x\npreview_command: evil\nworktree: {setup: evil}\nmodel: m\nmodels: {m: {kind: command}}\nexecute: {sandbox: off}",
    );
    assert_eq!(
        repository.confine(false),
        [
            "preview_command",
            "worktree.setup",
            "model",
            "models.m",
            "execute.sandbox"
        ]
    );
    assert_eq!(merge(&[repository]).expect("the rest is valid").agent, "x");
}

#[test]
fn an_untrusted_repository_may_ask_for_less_and_not_for_more() {
    let mut repository = layer("replan: {max: 1000000}\nlimits: {turns: 1}");
    assert_eq!(repository.lower(&Settings::default()), ["replan.max"]);
    let settings = merge(&[repository]).expect("valid settings");
    assert_eq!(
        (settings.replan.max, settings.limits.turns),
        (Settings::default().replan.max, 1)
    );
}

#[test]
fn deep_nesting_is_refused_before_it_is_read() {
    let deep = "[".repeat(60_000);
    assert!(
        Layer::parse("test.yaml", &deep).is_err()
            && Layer::from_pairs("-c", &[("agent".to_owned(), deep)]).is_err()
    );
}

#[test]
fn a_trusted_repository_still_chooses_no_model_and_no_sandbox() {
    let mut repository =
        layer("preview_command: vim\nmodel: m\nexecute: {sandbox: off, timeout: 5}");
    assert_eq!(repository.confine(true), ["model", "execute.sandbox"]);
    assert_eq!(
        merge(&[repository])
            .expect("the rest is valid")
            .execute
            .timeout,
        5
    );
}

#[test]
fn a_wrong_value_is_named_by_its_key() {
    let pairs = [
        ("agent".to_owned(), "a".to_owned()),
        ("replan.max".to_owned(), "many".to_owned()),
    ];
    let error = merge(&[Layer::from_pairs(CALL, &pairs).expect("valid pairs")])
        .expect_err("`many` is not a number");
    assert_eq!(
        (error.is_of_call(), error.to_string().as_str()),
        (
            true,
            "-c replan.max: must be a whole number that is not negative, not `many`"
        )
    );
    let error = merge(&[layer("replan: {max: many}")]).expect_err("`many` is not a number");
    assert_eq!(
        (
            error.is_of_call(),
            error
                .to_string()
                .starts_with("test.yaml, line 1: `replan.max` must be ")
        ),
        (false, true)
    );
}

#[test]
fn pairs_of_git_config_are_nested() {
    let pairs = [
        ("replan.max".to_owned(), "7".to_owned()),
        ("models.x.kind".to_owned(), "replay".to_owned()),
    ];
    let settings = merge(&[Layer::from_git(&pairs).expect("valid pairs")]).expect("valid settings");
    assert_eq!(
        (settings.replan.max, settings.models["x"].kind),
        (7, ModelKind::Replay)
    );
}
