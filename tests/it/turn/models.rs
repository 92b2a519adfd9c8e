//! Models and providers from the user's view: messages, records and cost, with good, bad and
//! missing answers.

use crate::fake::{Act, Fake, begun, messages, response, stream};
use crate::plans::{create, execute, plan};
use crate::screen::Screen;
use crate::support::{Output, TestRepo};

/// Does not look like a key, so only its exact value can identify it.
pub const SECRET: &str = "hunter2-hunter2-hunter2";

pub fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
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

/// Plans with a provider and compares exit code and messages. Nothing is executed, and the key is
/// stored nowhere.
fn check(acts: Vec<Act>, more: &str, (code, words): (i32, &[&str])) -> TestRepo {
    let repo = project();
    let fake = Fake::start(vec![acts]);
    repo.configure(&fake.config(more));
    let out = teddy(&repo, &["plan", "-m", "make b"]);
    out.check(code, words);
    assert!(!out.to_string().contains(SECRET), "{out}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(draft(&repo, "user_prompt.txt"), "make b");
    assert!(
        !repo
            .git(&["grep", "-c", "", "refs/teddy/drafts/demo"])
            .is_empty()
    );
    repo
}

fn draft(repo: &TestRepo, name: &str) -> String {
    repo.git(&["show", &format!("refs/teddy/drafts/demo:{name}")])
}

fn make_b() -> String {
    plan("Make b", &[create("b.txt", "b\n")])
}

#[test]
fn a_plan_comes_over_the_wire_and_its_use_is_recorded() {
    let more = ", price: { input: 10, output: 100 }, max_tokens: 1000";
    let repo = check(
        vec![Act::Send(stream(&make_b(), "stop", (2000, 30)))],
        more,
        (
            0,
            &["and the answer, $0.", "2,000 tokens in, 30 out, $0.0230"],
        ),
    );
    teddy(&repo, &["execute", "-y"]).check(0, &[]);
    let meta = repo.done(&["show", "1", "meta.yaml"]);
    for line in [
        "asked: fake",
        "answered: gpt-5-2",
        "tokens_in: 2000",
        "tokens_out: 30",
        "cost: 0.023",
        "spent: 0.023",
    ] {
        assert!(meta.contains(line), "no `{line}` in {meta}");
    }
}

#[test]
fn an_unknown_price_is_said_and_not_guessed() {
    let repo = check(
        vec![Act::Send(stream(&make_b(), "stop", (20, 3)))],
        "",
        (
            0,
            &["no price set", "20 tokens in, 3 out; no price is known"],
        ),
    );
    assert!(!draft(&repo, "meta.yaml").contains("cost"));
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
        let out = teddy(&repo, &["plan", "-m", "make b"]);
        (out, draft(&repo, "meta.yaml"))
    };
    let (out, meta) = ask(", cache_read: 10, cache_write: 125");
    out.check(0, &["fake: 6,000 tokens in (3,000 cached), 0 out, $0.3800"]);
    for line in [
        "tokens_in: 6000",
        "tokens_cached: 3000",
        "tokens_cache_written: 2000",
        "cost: 0.38",
        "spent: 0.38",
    ] {
        assert!(meta.contains(line), "no `{line}` in {meta}");
    }
    let (out, meta) = ask(", cache_read: 10");
    out.check(
        0,
        &["the price of model `fake` has no `cache_write`; `limits.cost` counts those tokens as plain input", "no price is known"],
    );
    assert!(
        !meta.contains("cost:") && meta.contains("spent: 0.33"),
        "{meta}"
    );
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
    teddy(&repo, &["plan", "-m", "one"]).check(0, &["$4.0000"]);
    // The draft's answer is replaced, but its cost counts.
    let out = teddy(&repo, &["plan", "-m", "two"]);
    out.check(
        1,
        &[
            "$4.00 is spent, and the limit is $4.00; nothing was sent",
            "limits.cost",
        ],
    );
    assert_eq!(fake.requests().len(), 1);
    assert!(draft(&repo, "meta.yaml").contains("failure: the call would cost"));
    teddy(&repo, &["-c", "limits.cost=9", "plan", "-m", "two"]).check(0, &[]);
}

#[test]
fn what_many_turns_have_cost_is_added_up_once() {
    let repo = project();
    let fake = Fake::answering(&[stream(&make_b(), "stop", (1_000_000, 0))]);
    repo.configure(&format!(
        "{}limits: {{ cost: 4 }}\n",
        fake.config(", price: { input: 4, output: 0 }")
    ));
    teddy(&repo, &["plan", "-m", "one"]).check(0, &["$4.0000"]);
    repo.done(&["execute", "-y"]);
    for number in 0..34 {
        let made = plan("Make it", &[create(&format!("{number}.txt"), "x\n")]);
        std::fs::write(repo.beside("plan.md"), made).unwrap();
        repo.done(&["execute", "../plan.md", "-y"]);
    }

    let refused = |spent: &str| {
        let words = format!("{spent} is spent, and the limit is $4.00; nothing was sent");
        teddy(&repo, &["plan", "-m", "two"]).check(1, &[&words]);
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
    repo.configure(&fake.config(""));
    repo.teddy(&["plan", "-m", "x"]).check(
        1,
        &[
            "model `fake` has no key: FAKE_KEY is not set",
            "hint: set FAKE_KEY",
        ],
    );
    repo.configure("model: openai:gpt-5\n");
    repo.teddy(&["plan"])
        .check(1, &["OPENAI_API_KEY is not set", "api_key_command"]);
}

#[test]
fn no_model_at_all_names_the_ways_to_one() {
    let repo = project();
    repo.teddy(&["plan", "-m", "x"]).check(
        1,
        &["no model is configured", "--model", "teddy plan --from"],
    );
    repo.teddy(&["plan", "-m", "x", "--model", "sonet"]).check(
        1,
        &[
            "`sonet` is not a known model",
            "openai:<id>",
            "`teddy setup` finds one",
        ],
    );
}

#[test]
fn a_busy_provider_is_asked_again_and_the_user_told() {
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        let repo = project();
        let busy = response(
            status,
            "retry-after: 0\r\n",
            "{\"error\":{\"message\":\"slow down\"}}",
        );
        let fake = Fake::answering(&[busy.clone(), busy, stream(&make_b(), "stop", (1, 1))]);
        repo.configure(&fake.config(""));
        teddy(&repo, &["plan", "-m", "x"])
            .check(0, &["slow down; trying again in 0 s (1 of 5)", "(2 of 5)"]);
        assert_eq!(fake.requests().len(), 3);
    }
}

#[test]
fn a_cut_answer_is_kept_and_never_executed() {
    let cut = make_b();
    let repo = check(
        vec![Act::Send(stream(&cut, "length", (9, 9)))],
        "",
        (
            1,
            &[
                "cut at the limit of tokens",
                "max_tokens",
                "teddy -s demo show draft reply.md",
            ],
        ),
    );
    assert_eq!(draft(&repo, "reply.md") + "\n", cut);
    assert!(
        draft(&repo, "meta.yaml").contains("failure: the answer was cut at the limit of tokens")
    );
    teddy(&repo, &["execute", "-y"]).check(1, &["no plan is waiting"]);
    assert!(!repo.path().join("b.txt").exists());
    let failure = "the answer was cut at the limit of tokens";
    assert_eq!(repo.json(&["status"], 0)["failure"], failure);
    let words = [
        "Your message is waiting: make b\n",
        &format!("The model gave no plan: {failure}\n"),
        "Next: teddy plan\n",
    ];
    repo.teddy(&["status"]).check(0, &words);
    repo.reply(&cut);
    repo.teddy(&["plan"])
        .check(0, &["Using the waiting message: make b\n"]);
    assert_eq!(
        repo.json(&["status"], 0)["failure"],
        serde_json::Value::Null
    );
}

#[test]
fn half_a_stream_is_kept_and_never_executed() {
    let half = make_b();
    let repo = check(
        vec![Act::Send(begun(&half))],
        "",
        (1, &["the answer broke off", "hint: run `teddy plan` again"]),
    );
    assert_eq!(draft(&repo, "reply.md") + "\n", half);
    teddy(&repo, &["execute", "-y"]).check(1, &["no plan is waiting"]);
}

#[test]
fn an_answer_that_is_json_is_rejected_and_execute_asks_again() {
    let repo = project();
    let fake = Fake::answering(&[
        stream("{\"name\": \"edit_file\"}\n", "stop", (9, 9)),
        stream(&make_b(), "stop", (9, 9)),
    ]);
    repo.configure(&fake.config(""));
    teddy(&repo, &["plan", "-m", "x"]).check(
        3,
        &[
            "the answer of turn 1 is not a plan",
            "records it as rejected and asks the model again",
        ],
    );
    teddy(&repo, &["execute", "-y"]).check(
        3,
        &[
            "turn 1 rejected",
            "The model wrote another plan for turn 2: \"Make b\"",
        ],
    );
    assert!(!repo.path().join("b.txt").exists());
    teddy(&repo, &["execute", "-y"]).check(0, &["turn 2 executed"]);
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
    repo.teddy(&["plan", "-m", &format!("use {key} for it")])
        .check(0, &["what looks like a key was taken out of the message"]);
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
    screen.wait_for("(q)uit ›");
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
    let out = repo.teddy(&["plan", "-m", "make b", "--model", "manual"]);
    out.check(
        1,
        &[
            "stdin is not a terminal",
            ".git/teddy/manual/input.md",
            "teddy plan --from",
        ],
    );
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
    screen.wait_for("(q)uit ›");
    screen.press("e");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(draft(&repo, "plan.md") + "\n", make_b());
}

#[test]
fn a_recorded_session_is_a_model_by_its_name() {
    let repo = project();
    repo.reply(&make_b())
        .reply(&plan("Make c", &[create("c.txt", "c\n")]));
    for message in ["one", "two"] {
        repo.done(&["plan", "-m", message]);
        repo.done(&["execute", "-y"]);
    }
    repo.done(&["branch", "1", "fork"]);
    // The files are still those of turn 2, with `c.txt`.
    repo.teddy(&[
        "-s",
        "fork",
        "plan",
        "-m",
        "again",
        "--model",
        "replay:demo",
    ])
    .check(3, &["`c.txt` already exists"]);
    assert_eq!(
        repo.json(&["-s", "fork", "status"], 0)["draft"]["title"],
        "Make c"
    );
    repo.configure("model: old\nmodels: { old: { kind: replay, path: fork } }\n");
    repo.done(&["new", "third"]);
    repo.teddy(&["plan", "-m", "once more"])
        .check(3, &["`b.txt` already exists"]);
    assert_eq!(repo.json(&["status"], 0)["draft"]["title"], "Make b");
    repo.teddy(&["plan", "-m", "x", "--model", "replay:none-such"])
        .check(1, &["none-such"]);
}

#[test]
fn keys_in_files_are_taken_out_of_what_is_sent_and_recorded() {
    let key = format!("sk-ant-{}", "a1B2".repeat(10));
    let repo = project();
    repo.write("notes.txt", format!("{key}\n"));
    // Snapshots leave out untracked files with a key, so track it.
    repo.git(&["add", "notes.txt"]);
    repo.done(&["context", "add", "notes.txt"]);
    repo.reply(&plan("Show", &[execute("cat notes.txt")]));
    repo.done(&["plan", "-m", "x"]);
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
fn the_largest_resources_are_named_where_the_context_is_over_its_budget() {
    let repo = project();
    repo.write("big.txt", "word ".repeat(500));
    repo.done(&["context", "add", "big.txt", "a.txt"]);
    repo.reply(&make_b());
    repo.teddy(&["-c", "context.budget=100", "plan", "-m", "x"])
        .check(0, &["over the budget of 100; the largest are big.txt (50"]);
}
