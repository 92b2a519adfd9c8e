//! Models and providers from the user's view: messages, records and cost, with good, bad and
//! missing answers.

use teddy::workflow::plan::PlanOptions;

use crate::fake::{Act, Fake, begun, events, messages, response, stream};
use crate::machine::write_program;
use crate::plans::{create, execute, plan};
use crate::screen::Screen;
pub use crate::support::in_process::KEY as SECRET;
use crate::support::in_process::Reply;
use crate::support::{Output, TestRepo};

/// The ref of the session's draft.
const DRAFT: &str = "refs/teddy/drafts/demo";

pub fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo
}

/// Runs teddy with the key of the fake provider.
pub fn teddy(repo: &TestRepo, args: &[&str]) -> Output {
    Output::of(
        repo.teddy_command(args)
            .current_dir(repo.path())
            .env("FAKE_KEY", SECRET)
            .stdin(std::process::Stdio::null()),
    )
}

/// Asks a provider for a plan. Nothing is executed, and the key is stored nowhere.
fn planned(acts: Vec<Act>, more: &str) -> (TestRepo, Reply) {
    let repo = project();
    let fake = Fake::start(vec![acts]);
    repo.configure(&fake.config(more));
    let reply = repo.workflow().plan("make b");
    assert!(!reply.to_string().contains(SECRET), "{reply}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(draft(&repo, "user_prompt.txt"), "make b");
    let files = repo.git(&["ls-tree", "-r", "--name-only", DRAFT]);
    for name in files.lines() {
        assert!(!draft(&repo, name).contains(SECRET), "{name}");
    }
    (repo, reply)
}

/// Returns what is recorded about the model of a turn or the draft.
pub fn model_use(repo: &TestRepo, turn: &str) -> String {
    let meta: serde_yaml::Value =
        serde_yaml::from_str(&repo.workflow().artifact(turn, "meta.yaml")).unwrap();
    let keys = ["model", "spent", "failure"];
    let recorded: serde_yaml::Mapping = keys
        .iter()
        .filter_map(|key| Some(((*key).into(), meta.get(key)?.clone())))
        .collect();
    repo.plain(&serde_yaml::to_string(&recorded).unwrap())
}

fn draft(repo: &TestRepo, name: &str) -> String {
    repo.git(&["show", &format!("{DRAFT}:{name}")])
}

/// Plans with a model that is named for this call.
fn planned_by(repo: &TestRepo, model: &str) -> Reply {
    repo.workflow().plan_with(PlanOptions {
        message: Some("again".to_owned()),
        model: Some(model.to_owned()),
        ..PlanOptions::default()
    })
}

fn make_b() -> String {
    plan("Make b", &[create("b.txt", "b\n")])
}

#[test]
fn a_plan_comes_over_the_wire_and_its_use_is_recorded() {
    let more = ", price: { input: 10, output: 100 }, max_tokens: 1000";
    let answer = stream(&make_b(), "stop", (2000, 30));
    let (repo, reply) = planned(vec![Act::Send(answer)], more);
    insta::assert_snapshot!(reply.done(), @r#"
    Asking fake with about [n] tokens, $[n] and the answer, $[n] at most
    planned turn 1: "Make b"
    "#);
    repo.workflow().execute().done();
    insta::assert_snapshot!(model_use(&repo, "1"), @r"
    model:
      asked: fake
      answered: gpt-5-2
      tokens_in: 2000
      tokens_out: 30
      tokens_cached: 0
      cost: 0.023
    spent: 0.023
    ");
}

#[test]
fn an_unknown_price_is_said_and_not_guessed() {
    let answer = stream(&make_b(), "stop", (20, 3));
    let (repo, reply) = planned(vec![Act::Send(answer)], "");
    insta::assert_snapshot!(reply.done(), @r#"
    Asking fake with about [n] tokens, no price set
    planned turn 1: "Make b"
    "#);
    insta::assert_snapshot!(model_use(&repo, "draft"), @r"
    model:
      asked: fake
      answered: gpt-5-2
      tokens_in: 20
      tokens_out: 3
      tokens_cached: 0
    ");
}

#[test]
fn what_a_call_used_is_said_below_the_plan() {
    let usage = serde_json::json!({ "input_tokens": 1000, "cache_creation_input_tokens": 2000, "cache_read_input_tokens": 3000 });
    let cached = messages(&make_b(), "end_turn", (&usage, 0));
    let plain = stream(&make_b(), "stop", (2000, 30));
    let used = [
        ("openai", &plain, ", price: { input: 10, output: 100 }"),
        ("openai", &plain, ""),
        (
            "anthropic",
            &cached,
            ", price: { input: 100, output: 1, cache_read: 10, cache_write: 125 }",
        ),
        (
            "anthropic",
            &cached,
            ", price: { input: 100, output: 1, cache_read: 10 }",
        ),
    ]
    .map(|(kind, answer, price)| {
        let repo = project();
        let fake = Fake::answering(std::slice::from_ref(answer));
        repo.configure(&fake.config_as(kind, price));
        let out = teddy(&repo, &["plan", "-m", "make b"]);
        assert_eq!(out.code, 0, "{out}");
        let last = out.stderr.lines().rev().nth(1).unwrap();
        last.to_owned()
    });
    assert_eq!(
        used,
        [
            "fake: 2,000 tokens in, 30 out, $0.0230",
            "fake: 2,000 tokens in, 30 out; no price is known",
            "fake: 6,000 tokens in (3,000 cached), 0 out, $0.3800",
            "fake: 6,000 tokens in (3,000 cached), 0 out; no price is known",
        ]
    );
}

#[test]
fn the_provider_s_cache_has_prices_of_its_own_and_they_are_not_guessed() {
    let usage = serde_json::json!({ "input_tokens": 1000, "cache_creation_input_tokens": 2000, "cache_read_input_tokens": 3000 });
    let answer = messages(&make_b(), "end_turn", (&usage, 0));
    let ask = |price: &str| {
        let repo = project();
        let fake = Fake::answering(std::slice::from_ref(&answer));
        repo.configure(&fake.config_as(
            "anthropic",
            &format!(", price: {{ input: 100, output: 1{price} }}"),
        ));
        let reply = repo.workflow().plan("make b").done();
        format!("{reply}{}", model_use(&repo, "draft"))
    };
    insta::assert_snapshot!(ask(", cache_read: 10, cache_write: 125"), @r#"
    Asking fake with about [n] tokens, $[n] and the answer
    planned turn 1: "Make b"
    model:
      asked: fake
      answered: claude-x
      tokens_in: 6000
      tokens_out: 0
      tokens_cached: 3000
      tokens_cache_written: 2000
      cost: 0.38
    spent: 0.38
    "#);
    insta::assert_snapshot!(ask(", cache_read: 10"), @r#"
    Asking fake with about [n] tokens, $[n] and the answer
    the cost is unknown: the price of model `fake` has no `cache_write`; `limits.cost` counts those tokens as plain input
    planned turn 1: "Make b"
    model:
      asked: fake
      answered: claude-x
      tokens_in: 6000
      tokens_out: 0
      tokens_cached: 3000
      tokens_cache_written: 2000
    spent: 0.33
    "#);
}

#[test]
fn the_limit_of_the_session_is_kept_before_a_call_is_made() {
    let repo = project();
    let fake = Fake::answering(&[
        stream(&make_b(), "stop", (1_000_000, 0)),
        stream(&make_b(), "stop", (1, 1)),
    ]);
    repo.configure(&format!(
        "{}limits: {{ cost: 4 }}\n",
        fake.config(", price: { input: 4, output: 0 }")
    ));
    insta::assert_snapshot!(repo.workflow().plan("one").done(), @r#"
    Asking fake with about [n] tokens, $[n] and the answer
    planned turn 1: "Make b"
    "#);
    // The draft's answer is replaced, but its cost counts.
    insta::assert_snapshot!(repo.workflow().plan("two").refused(), @r"
    Asking fake with about [n] tokens, $[n] and the answer
    error: the call would cost about $0.01, $4.00 is spent, and the limit is $4.00; nothing was sent
    hint: raise `--max-cost` if you gave it, else `limits.cost` (`-c limits.cost=10` for one call), take resources out of the context, or use another model
    exit code 1
    ");
    assert_eq!(fake.requests().len(), 1);
    assert!(model_use(&repo, "draft").contains("failure: the call would cost"));
    let higher = repo.workflow().setting("limits.cost", "9");
    higher.plan("two").done();
}

/// Regression: only answers with a text counted, so a model that reasoned until its limit was asked
/// and paid again and again.
#[test]
fn what_an_answer_without_a_text_used_counts() {
    let repo = project();
    let tool = r#"data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"shell"}}]},"finish_reason":"tool_calls"}]}"#;
    let used = r#"data: {"choices":[],"usage":{"prompt_tokens":500000,"completion_tokens":0}}"#;
    let fake = Fake::answering(&[
        stream("", "length", (500_000, 500_000)),
        events(&format!("{tool}\n\n{used}\n\ndata: [DONE]\n\n")),
    ]);
    repo.configure(&format!(
        "{}limits: {{ cost: 5 }}\n",
        fake.config(", price: { input: 4, output: 2 }")
    ));
    repo.workflow().plan("one").refused();
    insta::assert_snapshot!(model_use(&repo, "draft"), @r"
    model:
      asked: fake
      answered: gpt-5
      tokens_in: 500000
      tokens_out: 500000
      tokens_cached: 0
      cost: 3.0
    spent: 3.0
    failure: 'the answer is empty: the limit of tokens was reached before any text'
    ");
    let refused = ["two", "three"].map(|message| repo.workflow().plan(message).refused());
    insta::assert_snapshot!(refused.concat(), @r"
    Asking fake with about [n] tokens, $[n] and the answer
    error: the model called the tool `shell` instead of answering, and TeDDy offers none
    hint: run `teddy plan` again, or use another model with `--model`
    exit code 1
    Asking fake with about [n] tokens, $[n] and the answer
    error: the call would cost about $0.01, $5.00 is spent, and the limit is $5.00; nothing was sent
    hint: raise `--max-cost` if you gave it, else `limits.cost` (`-c limits.cost=10` for one call), take resources out of the context, or use another model
    exit code 1
    ");
}

#[test]
fn what_many_turns_have_cost_is_added_up_once() {
    let repo = project();
    let fake = Fake::answering(&[stream(&make_b(), "stop", (1_000_000, 0))]);
    repo.configure(&format!(
        "{}limits: {{ cost: 4 }}\n",
        fake.config(", price: { input: 4, output: 0 }")
    ));
    repo.workflow().plan("one").done();
    repo.workflow().execute().done();
    for number in 0..34 {
        let made = plan("Make it", &[create(&format!("{number}.txt"), "x\n")]);
        repo.workflow().run_plan(&made);
    }

    let refused = |spent: &str| {
        let words = format!("{spent} is spent, and the limit is $4.00; nothing was sent");
        let reply = repo.workflow().plan("two").refused();
        assert!(reply.contains(&words), "{reply}");
    };
    let note = repo.path().join(".git/teddy/spent/demo");
    refused("$4.00");
    let noted = std::fs::read_to_string(&note).unwrap();
    assert_eq!(
        noted,
        format!(
            "{} 4\n",
            repo.git(&["rev-parse", "refs/teddy/sessions/demo"])
        )
    );
    for damaged in ["", "words", &noted.replace(" 4", " -4")] {
        std::fs::write(&note, damaged).unwrap();
        refused("$4.00");
    }
    // The total comes from the note, not from the turns.
    std::fs::write(&note, noted.replace(" 4", " 5")).unwrap();
    refused("$5.00");
}

#[test]
fn a_missing_key_is_found_before_anything_is_asked() {
    let repo = project();
    let fake = Fake::start(vec![]);
    repo.configure(&fake.config("").replace("FAKE_KEY", "NO_KEY"));
    insta::assert_snapshot!(repo.workflow().plan("x").refused(), @r"
    error: model `fake` has no key: NO_KEY is not set, empty or a placeholder
    hint: set NO_KEY, or give the model `api_key_env` or `api_key_command` in your own configuration
    exit code 1
    ");
    repo.configure("model: openai:gpt-5\n");
    let again = PlanOptions::default();
    insta::assert_snapshot!(repo.workflow().plan_with(again).refused(), @r"
    error: model `openai:gpt-5` has no key: OPENAI_API_KEY is not set, empty or a placeholder
    hint: set OPENAI_API_KEY, or give the model `api_key_env` or `api_key_command` in your own configuration
    exit code 1
    ");
}

#[test]
fn no_model_at_all_names_the_ways_to_one() {
    let repo = project();
    insta::assert_snapshot!(repo.workflow().plan("x").refused(), @r"
    error: no model is configured
    hint: `teddy setup` sets one up, `--model` names one for this call, and `teddy plan --from <file>` takes an answer from elsewhere
    exit code 1
    ");
    insta::assert_snapshot!(planned_by(&repo, "sonet").refused(), @r"
    error: `sonet` is not a known model
    hint: no model is configured: `teddy setup` finds one; or use `openai:<id>`, `responses:<id>`, `anthropic:<id>`, `command:<program>`, `replay:<path>`, `acp:<agent>`, `agent:<agent>`, `manual`
    exit code 1
    ");
}

#[test]
fn a_busy_provider_is_asked_again_and_the_user_told() {
    let told = ["429 Too Many Requests", "503 Service Unavailable"].map(|status| {
        let repo = project();
        let busy = response(
            status,
            "retry-after: 0\r\n",
            "{\"error\":{\"message\":\"slow down\"}}",
        );
        let fake = Fake::answering(&[busy.clone(), busy, stream(&make_b(), "stop", (1, 1))]);
        repo.configure(&fake.config(""));
        let reply = repo.workflow().plan("x").done();
        assert_eq!(fake.requests().len(), 3);
        reply
    });
    insta::assert_snapshot!(told.concat(), @r#"
    Asking fake with about [n] tokens, no price set
    too many requests, or no credit left: slow down; trying again in 0 s (1 of 5)
    too many requests, or no credit left: slow down; trying again in 0 s (2 of 5)
    planned turn 1: "Make b"
    Asking fake with about [n] tokens, no price set
    the provider failed with status 503: slow down; trying again in 0 s (1 of 5)
    the provider failed with status 503: slow down; trying again in 0 s (2 of 5)
    planned turn 1: "Make b"
    "#);
}

#[test]
fn a_cut_answer_is_kept_and_never_executed() {
    let cut = make_b();
    let (repo, reply) = planned(vec![Act::Send(stream(&cut, "length", (9, 9)))], "");
    insta::assert_snapshot!(reply.refused(), @r"
    Asking fake with about [n] tokens, no price set
    what arrived was not taken as a plan; `teddy -s demo show draft reply.md` shows it
    error: the answer was cut at the limit of tokens
    hint: raise the model's `max_tokens`, or ask for a smaller step
    exit code 1
    ");
    assert_eq!(draft(&repo, "reply.md") + "\n", cut);
    insta::assert_snapshot!(model_use(&repo, "draft"), @r"
    model:
      asked: fake
      answered: gpt-5-2
      tokens_in: 9
      tokens_out: 9
      tokens_cached: 0
    failure: the answer was cut at the limit of tokens
    ");
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r"
    error: no plan is waiting in session `demo`
    hint: `teddy plan '<message>'` makes one; `teddy execute <file>` takes one from elsewhere
    exit code 1
    ");
    assert!(!repo.path().join("b.txt").exists());
    let failure = "the answer was cut at the limit of tokens";
    assert_eq!(repo.workflow().status()["failure"], failure);
    insta::assert_snapshot!(repo.printed(&["status"]), @r"
    Session demo, turn 0, on branch main
    Ready for turn 1
    Your message is waiting: make b
    No plan from the model: the answer was cut at the limit of tokens
    No file changed since HEAD
    --- stderr
    Next: teddy plan
    exit code 0
    ");
    repo.reply(&cut);
    let again = PlanOptions::default();
    insta::assert_snapshot!(repo.workflow().plan_with(again).done(), @r#"
    Using the waiting message: make b
    Asking replay:[dir]/answers with about [n] tokens
    planned turn 1: "Make b"
    "#);
    assert_eq!(repo.workflow().status()["failure"], serde_json::Value::Null);
}

#[test]
fn half_a_stream_is_kept_and_never_executed() {
    let half = make_b();
    let (repo, reply) = planned(vec![Act::Send(begun(&half))], "");
    insta::assert_snapshot!(reply.refused(), @r"
    Asking fake with about [n] tokens, no price set
    what arrived was not taken as a plan; `teddy -s demo show draft reply.md` shows it
    error: the answer broke off: the connection closed before the end
    hint: run `teddy plan` again; what arrived is kept and was not executed
    exit code 1
    ");
    assert_eq!(draft(&repo, "reply.md") + "\n", half);
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r"
    error: no plan is waiting in session `demo`
    hint: `teddy plan '<message>'` makes one; `teddy execute <file>` takes one from elsewhere
    exit code 1
    ");
}

#[test]
fn an_answer_that_is_json_is_rejected_and_execute_asks_again() {
    let repo = project();
    let fake = Fake::answering(&[
        stream("{\"name\": \"edit_file\"}\n", "stop", (9, 9)),
        stream(&make_b(), "stop", (9, 9)),
    ]);
    repo.configure(&fake.config(""));
    let shown = |args: &[&str]| teddy(&repo, args).shown(&repo);
    insta::assert_snapshot!(shown(&["plan", "-m", "x"]), @r#"
    {"name": "edit_file"}
    --- stderr
    Asking fake with about [n] tokens, no price set
    fake: 9 tokens in, 9 out; no price is known
    warning: the answer of turn 1 is not a plan; 1 mistake:
    plan.md:1: the reply is JSON; a plan is a Markdown document
        hint: answer with `# Title`, `## Rationale` and its code block, then `## Action Plan` with ### `EDIT` and the other actions: a list with `- **File Path:** [src/a.rs](/src/a.rs)`, then `FIND:` and `REPLACE:` with a code block each
    `teddy execute` records it as rejected and asks the model again.
    exit code 3
    "#);
    insta::assert_snapshot!(shown(&["execute", "-y"]), @r#"
    turn 1 rejected [id]
    --- stderr
    The plan was not accepted: 1 mistake
    plan.md:1: the reply is JSON; a plan is a Markdown document
        hint: answer with `# Title`, `## Rationale` and its code block, then `## Action Plan` with ### `EDIT` and the other actions: a list with `- **File Path:** [src/a.rs](/src/a.rs)`, then `FIND:` and `REPLACE:` with a code block each
    Asking fake with about [n] tokens, no price set
    The model wrote another plan for turn 2: "Make b".
    Next: `teddy execute`
    exit code 3
    "#);
    assert!(!repo.path().join("b.txt").exists());
    insta::assert_snapshot!(repo.workflow().execute().done(), @r"
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    turn 2 executed
      added b.txt
    ");
}

#[test]
fn ctrl_c_keeps_what_arrived() {
    let repo = project();
    let fake = Fake::start(vec![vec![
        Act::Send(begun("# Half a plan\n\nand more")),
        Act::Stall,
    ]]);
    repo.configure(&fake.config(""));
    let mut screen = Screen::open_with(
        &repo,
        (80, 24),
        (&["plan", "-m", "x"], &[("FAKE_KEY", SECRET)]),
    );
    let shown = screen.wait_for("Asking fake with about");
    assert!(!shown.contains("Half a plan"), "{shown}");
    screen.wait_for("fake: ~");
    screen.press("\x03");
    assert_eq!(screen.end(), 130, "{}", screen.shown());
    assert_eq!(draft(&repo, "reply.md"), "# Half a plan\n\nand more");
    assert!(draft(&repo, "meta.yaml").contains("failure: interrupted"));
}

#[test]
fn a_key_in_the_message_is_neither_sent_nor_recorded() {
    let key = format!("sk-ant-{}", "a1B2".repeat(10));
    let repo = project();
    repo.reply(&make_b());
    let reply = repo.workflow().plan(&format!("use {key} for it")).done();
    insta::assert_snapshot!(reply, @r#"
    what looks like a key was taken out of the message; it is neither recorded nor sent
    Asking replay:[dir]/answers with about [n] tokens
    planned turn 1: "Make b"
    "#);
    assert_eq!(
        draft(&repo, "user_prompt.txt"),
        "use [redacted anthropic key] for it"
    );
}

/// Configures a model whose key is in a variable with an unusual name.
fn with_credential(more: &str) -> String {
    format!("models:\n  fake: {{ kind: openai, id: x, api_key_env: LLM_CRED }}\n{more}")
}

/// Counts the lines with a key in the environment of a child process.
const COUNT: &str = "env | grep -c hunter2 || true";

/// Runs teddy with keys in its environment.
fn with_keys(repo: &TestRepo, args: &[&str]) -> Output {
    let mut command = repo.teddy_command(args);
    command
        .current_dir(repo.path())
        .env("LLM_CRED", SECRET)
        .env("OPENAI_API_KEY", SECRET)
        .env("ANTHROPIC_API_KEY", SECRET);
    Output::of(command.stdin(std::process::Stdio::null()))
}

#[test]
fn a_model_that_is_a_program_gets_the_key_that_it_names_and_no_other() {
    let repo = project();
    std::fs::write(
        repo.beside("probe"),
        format!("cat >/dev/null; echo \"keys: $({COUNT})\""),
    )
    .unwrap();
    let probe = format!("sh {}", repo.beside("probe").display());
    repo.configure(&with_credential(&format!(
        "  own: {{ kind: command, run: [sh, {}], api_key_env: LLM_CRED }}\n",
        repo.beside("probe").display()
    )));
    with_keys(
        &repo,
        &["plan", "-m", "x", "--model", &format!("command:{probe}")],
    )
    .check(5, &["keys: 0"]);
    with_keys(&repo, &["plan", "-m", "x", "--model", "own"]).check(5, &["keys: 1"]);
}

/// Regression: the key was in the plan, in the files, and in the reason of a failure.
#[test]
fn a_key_that_its_program_prints_is_recorded_nowhere() {
    let repo = project();
    std::fs::write(
        repo.beside("plan.md"),
        plan("Make b", &[create("b.txt", "the key\n")]),
    )
    .unwrap();
    let run = |script: &str| {
        format!("{{ kind: command, run: [sh, -c, \"{script}\"], api_key_env: LLM_CRED }}")
    };
    let show = format!(
        "sed s/the.key/$LLM_CRED/ {}",
        repo.beside("plan.md").display()
    );
    repo.configure(&with_credential(&format!(
        "  shows: {}\n  fails: {}\n",
        run(&show),
        run("echo wrong key $LLM_CRED >&2; exit 1")
    )));
    let out = with_keys(&repo, &["plan", "-m", "x", "--model", "fails"]);
    out.check(1, &["failed (exit status: 1): wrong key [redacted key]"]);
    assert!(draft(&repo, "meta.yaml").contains("wrong key [redacted key]"));
    with_keys(&repo, &["plan", "-m", "x", "--model", "shows"]).check(0, &["[redacted key]"]);
    assert!(draft(&repo, "plan.md").contains("\n[redacted key]\n"));
}

/// Regression: the proxy of the environment, which can be anywhere, got the key unencrypted.
#[test]
fn a_key_for_the_local_network_goes_through_no_proxy() {
    let repo = project();
    let proxy = Fake::answering(&[stream(&make_b(), "stop", (1, 1))]);
    repo.configure(
        "model: near\nmodels:\n  near: { kind: openai, id: x, base_url: 'http://10.255.255.1:9/v1', api_key_env: FAKE_KEY, timeout: 1 }\n",
    );
    let mut command = repo.teddy_command(&["plan", "-m", "x"]);
    command.current_dir(repo.path()).env("FAKE_KEY", SECRET);
    let out = Output::of(command.env("http_proxy", &proxy.origin).env("no_proxy", ""));
    assert_eq!((out.code, proxy.requests().len()), (1, 0), "{out}");
}

#[test]
fn neither_commands_of_a_plan_nor_the_setup_of_a_worktree_get_a_key() {
    let repo = project();
    repo.configure(&with_credential(&format!(
        "worktree: {{ setup: 'echo \"setup: $({COUNT})\"' }}\n"
    )));
    std::fs::write(
        repo.beside("plan.md"),
        plan("Show", &[execute(&format!("echo \"execute: $({COUNT})\""))]),
    )
    .unwrap();
    with_keys(&repo, &["execute", "../plan.md", "-y"]).check(0, &["setup: 0", "execute: 0"]);
    repo.configure(&with_credential("execute: { keep_env: [LLM_CRED] }\n"));
    with_keys(&repo, &["execute", "../plan.md", "-y"]).check(0, &["execute: 1"]);
}

#[test]
fn a_previewer_gets_no_key() {
    let repo = project();
    let (seen, script) = (repo.beside("seen"), repo.beside("preview"));
    std::fs::write(&script, format!("({COUNT}) > {}", seen.display())).unwrap();
    repo.configure(&with_credential(&format!(
        "preview_command: sh {}\n",
        script.display()
    )));
    std::fs::write(repo.beside("plan.md"), make_b()).unwrap();
    let keys = [("LLM_CRED", SECRET), ("OPENAI_API_KEY", SECRET)];
    let mut screen = Screen::open_with(&repo, (100, 40), (&["execute", "../plan.md"], &keys));
    screen.wait_for_prompt("(q)uit ›");
    screen.press("r");
    screen.wait_for("(q)uit › r");
    screen.settled();
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(std::fs::read_to_string(seen).unwrap(), "0\n");
}

#[test]
fn a_manual_model_without_a_terminal_leaves_the_input_and_names_the_flag() {
    let repo = project();
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "make b", "--model", "manual"]), @r"
    --- stderr
    Asking manual with about [n] tokens
    The input is in `[dir]/repo/.git/teddy/manual/input.md`.
    error: someone must fetch the answer, but stdin is not a terminal: the input is in `[dir]/repo/.git/teddy/manual/input.md`
    hint: take the input to your chat, and its answer back with `teddy plan --from <file>`
    exit code 1
    ");
    assert!(
        repo.read(".git/teddy/manual/input.md")
            .contains("# Message\n\nmake b")
    );
}

#[test]
fn a_manual_model_takes_the_answer_from_the_editor() {
    let repo = project();
    let answer = repo.beside("answer.md");
    std::fs::write(&answer, make_b()).unwrap();
    let editor = format!("cp {}", answer.display());
    let mut screen = Screen::open_with(
        &repo,
        (100, 40),
        (
            &["plan", "-m", "make b", "--model", "manual"],
            &[("GIT_EDITOR", &editor)],
        ),
    );
    screen.wait_for_prompt("(q)uit ›");
    let shown = screen.shown().replace("\n↪ ", " ").replace("\n", " ");
    assert!(
        shown.contains("and was sent to the clipboard of your terminal."),
        "{shown}"
    );
    screen.press("c");
    screen.wait_for("No clipboard can be read from here: press e");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("e");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(draft(&repo, "plan.md") + "\n", make_b());
}

/// Regression: the input, which TeDDy itself had copied, was taken as a plan and rejected.
#[test]
fn the_input_in_the_clipboard_is_not_the_answer() {
    let repo = project();
    let (bin, clip) = (repo.beside("bin"), repo.beside("clip"));
    std::fs::create_dir_all(&bin).unwrap();
    write_program(
        &bin.join("xclip"),
        "case \"$*\" in *-o) cat \"$CLIP\";; *) cat > \"$CLIP\";; esac\n",
    );
    let script = r#"PATH="$BIN:$PATH" "$TEDDY" plan -m 'make b' --model manual"#;
    let variables = [
        ("BIN", bin.to_str().unwrap()),
        ("CLIP", clip.to_str().unwrap()),
        ("DISPLAY", ":0"),
    ];
    let mut screen = Screen::shell(&repo, (100, 40), (script, &variables));
    screen.wait_for_prompt("(q)uit ›");
    screen.press("c");
    screen.wait_for("That is the input itself: copy the answer of the chat first.");
    screen.wait_for_prompt("(q)uit ›");
    std::fs::write(&clip, make_b()).unwrap();
    screen.press("c");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(draft(&repo, "plan.md") + "\n", make_b());
}

/// Bug: it was called an interruption.
#[test]
fn leaving_the_prompt_of_a_manual_model_takes_no_answer() {
    let repo = project();
    let manual = ["--model", "manual"];
    let plan = ["plan", "-m", "make b"];
    let mut screen = Screen::open(&repo, (100, 40), &[&plan[..], &manual].concat());
    screen.wait_for_prompt("(q)uit ›");
    screen.press("q");
    assert_eq!(screen.end(), 1, "{}", screen.shown());
    let shown = screen.shown();
    assert!(
        shown.contains(
            "error: no answer was taken; the input stays where it is\nhint: run `teddy plan`"
        ),
        "{shown}"
    );
    std::fs::write(repo.beside("answer.md"), make_b()).unwrap();
    repo.done(&["plan", "--from", "../answer.md"]);
    assert_eq!(draft(&repo, "user_prompt.txt"), "make b");

    let resume = ["resume", "-m", "make b"];
    repo.workflow().new_session("loop").done();
    let mut screen = Screen::open(&repo, (100, 40), &[&resume[..], &manual].concat());
    screen.wait_for_prompt("(q)uit ›");
    screen.press("q");
    screen.wait_for("enter tries again, /model chooses another");
    let shown = screen.settled();
    assert!(
        shown.contains("hint: press enter, or take the answer from a file"),
        "{shown}"
    );
    screen.press("\x04");
    assert_eq!(screen.end(), 1, "{}", screen.shown());
}

#[test]
fn a_recorded_session_is_a_model_by_its_name() {
    let repo = project();
    repo.reply(&make_b())
        .reply(&plan("Make c", &[create("c.txt", "c\n")]));
    for message in ["one", "two"] {
        repo.workflow().plan(message).done();
        repo.workflow().execute().done();
    }
    repo.workflow().branch("1", "fork").done();
    // The files are still those of turn 2, with `c.txt`.
    insta::assert_snapshot!(planned_by(&repo, "replay:demo").refused(), @r#"
    your files do not match turn 1: they have turn 2 of demo; `teddy restore @` takes them there
    Asking replay:demo with about [n] tokens
    planned turn 2: "Make c", 1 mistakes
    plan.md:13: CREATE c.txt: `c.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    "#);
    repo.configure("model: old\nmodels: { old: { kind: replay, path: fork } }\n");
    repo.workflow().new_session("third").done();
    insta::assert_snapshot!(repo.workflow().plan("once more").refused(), @r#"
    snapshots include 2 untracked files; use `.gitignore` or `snapshot.exclude` to leave files out
    Asking old with about [n] tokens
    planned turn 1: "Make b", 1 mistakes
    plan.md:13: CREATE b.txt: `b.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    "#);
    insta::assert_snapshot!(planned_by(&repo, "replay:none-such").refused(), @r"
    error: reading `none-such`: No such file or directory (os error 2)
    hint: check the path and its permissions
    exit code 1
    ");
}

#[test]
fn keys_in_files_are_taken_out_of_what_is_sent_and_recorded() {
    let key = format!("sk-ant-{}", "a1B2".repeat(10));
    let repo = project();
    repo.write("notes.txt", format!("{key}\n"));
    // Snapshots leave out untracked files with a key, so track it.
    repo.git(&["add", "notes.txt"]);
    repo.workflow().add(&["notes.txt"]);
    repo.reply(&plan("Show", &[execute("cat notes.txt")]));
    repo.workflow().plan("x").done();
    assert!(draft(&repo, "input.md").contains("[redacted anthropic key]"));
    repo.done(&["execute", "-y"]);
    for name in ["input.md", "report.md", "output/01.txt"] {
        let text = repo.done(&["show", "1", name]);
        assert!(
            text.contains("[redacted anthropic key]") && !text.contains(&key),
            "{name}: {text}"
        );
    }
}

#[test]
fn what_fills_a_large_input_is_named_with_the_command_that_leaves_it_out() {
    let repo = project();
    repo.write("src/big.txt", "word ".repeat(500));
    repo.write("src/more.txt", "word ".repeat(200));
    repo.done(&["context", "add", "a.txt", "src"]);
    repo.done(&["context", "add", "--turn", "b.txt"]);
    repo.reply(&make_b()).reply(&make_b());
    let out = repo.teddy(&["-c", "context.budget=100", "plan", "-m", "x"]);
    let (line, _) = out.stderr.split_once("\nAsking ").unwrap();
    let total = line
        .strip_prefix("About ")
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    assert_eq!(
        line,
        format!(
            "About {total} tokens in each turn: src is 702 of them (`teddy context rm /src` leaves it out)"
        )
    );
    out.check(0, &[&format!(" with about {total} tokens\n")]);

    // From another directory, and from the turn's own list.
    std::fs::create_dir_all(repo.path().join("dir")).unwrap();
    let gone = repo.teddy_in(
        &repo.path().join("dir"),
        &["context", "rm", "/src", "b.txt", "x"],
    );
    insta::assert_snapshot!(gone.shown(&repo), @"
    --- stderr
    Removed src (session)
    Removed b.txt (turn)
    `dir/x` is not in the list (session)
    exit code 0
    ");
    let out = repo.teddy(&["-c", "context.budget=1000000", "plan", "-m", "x"]);
    insta::assert_snapshot!(out.shown(&repo), @r#"
    # Make b
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    Make b, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [b.txt](/b.txt)
    - **Description:** Make b.txt.
    ````text
    b
    ````
    --- stderr
    Asking replay:[dir]/answers with about [n] tokens
    Planned turn 1: "Make b". Next: `teddy execute`
    exit code 0
    "#);
}
