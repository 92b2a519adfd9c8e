//! Pipelines: found by name, checked before the first call, with the output of each step in the
//! turn.

use teddy::workflow::plan::PlanOptions;
use teddy::workflow::resume::ResumeOptions;

use crate::fake::{Fake, response, stream};
use crate::plans::{create, edit, plan};
use crate::support::in_process::Reply;
use crate::support::{Output, TestRepo};
use crate::turn::models::model_use;

/// Two steps with different models.
const TWO: &str = "steps:\n- { name: analysis, model: one, prompt: 'Analyse.' }\n- { name: plan, model: two, prompt_file: plan.md }\n";

/// A project with a session and a trusted pipeline `think`.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\n")
        .file(".teddy/pipelines/think.yaml", TWO)
        .file(".teddy/pipelines/plan.md", "Plan: {{analysis}}\n");
    repo.commit("init");
    repo.done(&["trust", "-y"]);
    repo.workflow().new_session("demo").done();
    repo
}

/// Configures two models at a provider, the second with a price.
fn configure(repo: &TestRepo, fake: &Fake) {
    let model = |name: &str| {
        format!(
            "  {name}: {{ kind: openai, id: {name}, base_url: \"{}/v1\", price: {{ input: 10, output: 10 }} }}\n",
            fake.origin
        )
    };
    repo.configure(&format!("models:\n{}{}", model("one"), model("two")));
}

/// Gives the user a pipeline of two steps, with the configured model.
fn own_pipeline(repo: &TestRepo, name: &str) {
    let own = repo.beside("home/config/teddy/pipelines");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(
        own.join(format!("{name}.yaml")),
        "steps: [{ name: think, prompt: Think }, { name: plan, prompt: Plan }]\n",
    )
    .unwrap();
}

fn through(pipeline: &str) -> PlanOptions {
    PlanOptions {
        message: Some("make b".to_owned()),
        pipeline: Some(pipeline.to_owned()),
        ..PlanOptions::default()
    }
}

fn planned(repo: &TestRepo, pipeline: &str) -> Reply {
    repo.workflow().plan_with(through(pipeline))
}

fn make_b() -> String {
    plan("Make b", &[create("b.txt", "b\n")])
}

#[test]
fn st14_the_last_step_yields_the_plan_and_the_steps_are_summed() {
    let repo = project();
    let fake = Fake::answering(&[
        stream("Mind the gap.", "stop", (1000, 0)),
        stream(&make_b(), "stop", (2000, 0)),
    ]);
    configure(&repo, &fake);
    insta::assert_snapshot!(planned(&repo, "think").done(), @r#"
    Step 1 of 2: analysis
    Asking one with about [n] tokens, $[n] and the answer
    Step 2 of 2: plan
    Asking two with about [n] tokens, $[n] and the answer
    planned turn 1: "Make b"
    "#);
    repo.workflow().execute().done();
    let names = repo.workflow().artifacts("1");
    let names: Vec<&String> = names
        .iter()
        .filter(|name| name.starts_with("steps/"))
        .collect();
    let steps = ["01-analysis", "02-plan"].map(|step| {
        ["input.md", "meta.yaml", "output.md"].map(|file| format!("steps/{step}/{file}"))
    });
    assert_eq!(names, steps.as_flattened().iter().collect::<Vec<_>>());
    let read = |name: &str| repo.workflow().artifact("1", name);
    assert_eq!(read("steps/01-analysis/output.md"), "Mind the gap.");
    assert!(read("steps/02-plan/input.md").contains("Plan: Mind the gap."));
    assert!(read("steps/02-plan/meta.yaml").contains("asked: two"));
    insta::assert_snapshot!(model_use(&repo, "1"), @r"
    model:
      asked: two
      answered: gpt-5-2
      tokens_in: 3000
      tokens_out: 0
      tokens_cached: 0
      cost: 0.03
    spent: 0.03
    ");
}

#[test]
fn a_step_that_fails_keeps_what_ran() {
    let repo = project();
    let fake = Fake::answering(&[
        stream("Mind the gap.", "stop", (1000, 0)),
        response("401 Unauthorized", "", "{}"),
        stream("Mind the gap.", "stop", (1000, 0)),
        stream(&make_b(), "stop", (1000, 0)),
    ]);
    configure(&repo, &fake);
    insta::assert_snapshot!(planned(&repo, "think").refused(), @r"
    Step 1 of 2: analysis
    Asking one with about [n] tokens, $[n] and the answer
    Step 2 of 2: plan
    Asking two with about [n] tokens, $[n] and the answer
    error: step `plan`: http://[host] does not accept the key: {}
    hint: check that the key is current and belongs to this address; `api_key_env` names its variable
    exit code 1
    ");
    let draft = |name: &str| repo.workflow().artifact("draft", name);
    assert_eq!(draft("steps/01-analysis/output.md"), "Mind the gap.");
    assert!(draft("steps/02-plan/input.md").contains("Mind the gap."));
    insta::assert_snapshot!(model_use(&repo, "draft"), @r"
    model:
      asked: one
      answered: gpt-5-2
      tokens_in: 1000
      tokens_out: 0
      tokens_cached: 0
      cost: 0.01
    spent: 0.01
    failure: 'step `plan`: http://[host] does not accept the key: {}'
    ");
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r"
    error: no plan is waiting in session `demo`
    hint: `teddy plan '<message>'` makes one; `teddy execute <file>` takes one from elsewhere
    exit code 1
    ");
    // Bug: the configured model was asked instead.
    insta::assert_snapshot!(repo.workflow().plan_with(PlanOptions::default()).done(), @r#"
    Using the waiting message: make b
    Step 1 of 2: analysis
    Asking one with about [n] tokens, $[n] and the answer
    Step 2 of 2: plan
    Asking two with about [n] tokens, $[n] and the answer
    planned turn 1: "Make b"
    "#);
}

/// Regression: it was reported as cut at the limit of tokens, and its cost was not counted.
#[test]
fn st12_a_step_that_ends_early_counts_and_has_the_reason_of_its_model() {
    let repo = project();
    let fake = Fake::answering(&[stream("Mind", "content_filter", (1000, 0))]);
    configure(&repo, &fake);
    insta::assert_snapshot!(planned(&repo, "think").refused(), @r"
    Step 1 of 2: analysis
    Asking one with about [n] tokens, $[n] and the answer
    what arrived was not taken as a plan; `teddy -s demo show draft reply.md` shows it
    error: step `analysis`: the model ended its answer before it was done: `content_filter`
    hint: rephrase the request, or use another model with `--model`
    exit code 1
    ");
    insta::assert_snapshot!(model_use(&repo, "draft"), @r"
    model:
      asked: one
      answered: gpt-5-2
      tokens_in: 1000
      tokens_out: 0
      tokens_cached: 0
      cost: 0.01
    spent: 0.01
    failure: 'step `analysis`: the model ended its answer before it was done: `content_filter`'
    ");
}

#[test]
fn promise_b6_a_crash_keeps_the_steps_that_were_paid_for() {
    let repo = project();
    let fake = Fake::answering(&[
        stream("Mind the gap.", "stop", (1000, 0)),
        stream(&make_b(), "stop", (1000, 0)),
    ]);
    configure(&repo, &fake);
    // The draft is saved before the first step and after each one.
    let mut command = repo.teddy_command(&["plan", "-m", "x", "--pipeline", "think"]);
    let out = Output::of(
        command
            .current_dir(repo.path())
            .env("FAILPOINTS", "before-draft-ref=2*off->return(kill)"),
    );
    assert_eq!(out.code, -1, "{out}");
    let draft = |name: &str| repo.git(&["show", &format!("refs/teddy/drafts/demo:{name}")]);
    assert_eq!(draft("steps/01-analysis/output.md"), "Mind the gap.");
    assert!(draft("meta.yaml").contains("spent: 0.01"));
}

#[test]
fn st14_the_limit_of_the_session_is_checked_before_each_step() {
    let repo = project();
    let fake = Fake::answering(&[
        stream("Long.", "stop", (400_000, 0)),
        stream(&make_b(), "stop", (1, 1)),
    ]);
    configure(&repo, &fake);
    let limited = repo.workflow().setting("limits.cost", "4");
    insta::assert_snapshot!(limited.plan_with(through("think")).refused(), @r"
    Step 1 of 2: analysis
    Asking one with about [n] tokens, $[n] and the answer
    Step 2 of 2: plan
    Asking two with about [n] tokens, $[n] and the answer
    error: step `plan`: the call would cost about $0.04, $4.00 is spent, and the limit is $4.00; nothing was sent
    hint: raise `--max-cost` if you gave it, else `limits.cost` (`-c limits.cost=10` for one call), take resources out of the context, or use another model
    exit code 1
    ");
    assert_eq!(fake.requests().len(), 1);
}

#[test]
fn all_mistakes_are_reported_before_a_request_is_sent() {
    let repo = project();
    let fake = Fake::answering(&[]);
    configure(&repo, &fake);
    repo.write(
        ".teddy/pipelines/bad.yaml",
        "steps:\n- { name: A, prompt: x }\n- { name: b, model: nobody, prompt_file: gone.md }\n",
    );
    repo.done(&["trust", "-y"]);
    insta::assert_snapshot!(planned(&repo, "bad").refused(), @r"
    error: pipeline `bad`: step 1 `A`: `name` must be lower-case letters, digits and dashes, and begin with a letter
    step 2 `b`: cannot read `gone.md`: it does not exist, or is not a .md, .txt or .xml file
    step 2 `b`: `nobody` is not a known model: configured: `one`, `two`; or use `openai:<id>`, `responses:<id>`, `anthropic:<id>`, `command:<program>`, `replay:<path>`, `acp:<agent>`, `agent:<agent>`, `manual`
    exit code 1
    ");
    // Don't create a session that cannot continue.
    let start = ["start", "--name", "more", "-m", "x"];
    let shown = [["--pipeline", "bad"], ["--model", "sonet"]]
        .map(|option| repo.printed(&[&start[..], &option].concat()));
    insta::assert_snapshot!(shown.concat(), @r"
    --- stderr
    error: pipeline `bad`: step 1 `A`: `name` must be lower-case letters, digits and dashes, and begin with a letter
    step 2 `b`: cannot read `gone.md`: it does not exist, or is not a .md, .txt or .xml file
    step 2 `b`: `nobody` is not a known model: configured: `one`, `two`; or use `openai:<id>`, `responses:<id>`, `anthropic:<id>`, `command:<program>`, `replay:<path>`, `acp:<agent>`, `agent:<agent>`, `manual`
    exit code 1
    --- stderr
    error: `sonet` is not a known model
    hint: did you mean `one`? configured: `one`, `two`
    exit code 1
    ");
    assert_eq!(repo.workflow().sessions().as_array().map(Vec::len), Some(1));
    let refused = ["none", "../think"].map(|name| planned(&repo, name).refused());
    insta::assert_snapshot!(refused.concat(), @r"
    error: there is no pipeline `none` in `.teddy/pipelines/` or `[dir]/home/config/teddy/pipelines`
    hint: `--pipeline <name>` takes one of these: bad, think
    exit code 1
    error: `../think` is not a valid pipeline name
    exit code 1
    ");
    assert!(fake.requests().is_empty());
}

#[test]
fn st15_a_pipeline_of_a_repository_takes_trust_and_the_users_own_does_not() {
    let repo = project();
    repo.reply("Think.").reply(&make_b());
    // A changed byte in a file that the pipeline uses ends the trust.
    repo.write(".teddy/pipelines/plan.md", "Plan: {{analysis}}!\n");
    insta::assert_snapshot!(planned(&repo, "think").refused(), @r"
    error: pipeline `think` of this repository is not trusted
    hint: `teddy trust` shows it and remembers it
    exit code 1
    ");
    own_pipeline(&repo, "think");
    planned(&repo, "think").done();
    assert_eq!(repo.workflow().status()["draft"]["title"], "Make b");
}

#[test]
fn st16_the_configured_pipeline_is_the_usual_way_and_its_recording_a_model() {
    let repo = project();
    own_pipeline(&repo, "two");
    let wrong = plan("Wrong", &[edit("a.txt", "nine", "9")]);
    repo.reply("First.")
        .reply(&make_b())
        .reply("Second.")
        .reply(&wrong)
        .reply(&plan("Better", &[create("c.txt", "c\n")]));
    let usual = || repo.workflow().setting("pipeline", "two");
    insta::assert_snapshot!(usual().plan("one").done(), @r#"
    Step 1 of 2: think
    Asking replay:[dir]/answers with about [n] tokens
    Step 2 of 2: plan
    Asking replay:[dir]/answers with about [n] tokens
    planned turn 1: "Make b"
    "#);
    usual().execute().done();
    // The replay continues after the answers of the steps. A correction does not run the pipeline.
    insta::assert_snapshot!(usual().plan("two").refused(), @r#"
    Step 1 of 2: think
    Asking replay:[dir]/answers with about [n] tokens
    Step 2 of 2: plan
    Asking replay:[dir]/answers with about [n] tokens
    planned turn 2: "Wrong", 2 mistakes
    plan.md:13: EDIT a.txt: `a.txt` is in no context list
        hint: READ it in this plan and edit it in the next one, when its text is before you; by hand, `teddy context add /a.txt` adds it
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    "#);
    insta::assert_snapshot!(usual().execute().refused(), @r#"
    The model changed files that it had not read: showing it `a.txt` and asking again.
    Asking replay:[dir]/answers with about [n] tokens
    turn 2 recorded
    plan.md:13: EDIT a.txt: `a.txt` is in no context list
        hint: READ it in this plan and edit it in the next one, when its text is before you; by hand, `teddy context add /a.txt` adds it
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 3: "Better"
    "#);
    repo.workflow().execute().done();
    repo.workflow().new_session("again").done();
    let replayed = repo.workflow().plan_with(PlanOptions {
        model: Some("replay:demo".to_owned()),
        ..through("two")
    });
    insta::assert_snapshot!(replayed.refused(), @r#"
    snapshots include 2 untracked files; use `.gitignore` or `snapshot.exclude` to leave files out
    Step 1 of 2: think
    Asking replay:demo with about [n] tokens
    Step 2 of 2: plan
    Asking replay:demo with about [n] tokens
    planned turn 1: "Make b", 1 mistakes
    plan.md:13: CREATE b.txt: `b.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    "#);
    assert_eq!(
        repo.workflow()
            .artifact("draft", "steps/01-think/output.md"),
        "First."
    );
    assert_eq!(repo.workflow().status()["draft"]["title"], "Make b");
}

#[test]
fn a_loop_goes_through_the_pipeline_that_it_is_given() {
    let repo = project();
    own_pipeline(&repo, "two");
    repo.reply("First.")
        .reply(&make_b())
        .reply("Second.")
        .reply(&plan("Make c", &[create("c.txt", "c\n")]));
    let resumed = repo.workflow().resume_with(ResumeOptions {
        message: Some("go".to_owned()),
        yolo: true,
        alone: true,
        max_turns: Some(2),
        pipeline: Some("two".to_owned()),
        ..ResumeOptions::default()
    });
    insta::assert_snapshot!(resumed.refused(), @r"
    Step 1 of 2: think
    Asking replay:[dir]/answers with about [n] tokens
    Step 2 of 2: plan
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    turn 1 executed
      added b.txt
    Step 1 of 2: think
    Asking replay:[dir]/answers with about [n] tokens
    Step 2 of 2: plan
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    turn 2 executed
      added c.txt
    ended: Turns(2)
    ");
    assert_eq!(
        repo.workflow().artifact("2", "steps/01-think/output.md"),
        "Second."
    );
    let start = [
        "start",
        "--name",
        "more",
        "-m",
        "go",
        "-y",
        "--pipeline",
        "two",
    ];
    insta::assert_snapshot!(repo.printed(&start), @r"
    turn 1 recorded [id]
    turn 2 executed [id]
    Second.
    --- stderr
    Started session more.
    snapshots include 2 untracked files; use `.gitignore` or `snapshot.exclude` to leave files out
    Step 1 of 2: think
    Asking replay:[dir]/answers with about [n] tokens
    Step 2 of 2: plan
    Asking replay:[dir]/answers with about [n] tokens
    The model changed files that it had not read: showing it `b.txt` and asking again.
    Asking replay:[dir]/answers with about [n] tokens
    Your files are unchanged.
    The model answered without a plan:
    exit code 5
    ");
}

#[test]
fn a_missing_key_of_a_later_step_is_found_first() {
    let repo = project();
    let fake = Fake::answering(&[]);
    let one = format!(
        "one: {{ kind: openai, id: x, base_url: \"{}/v1\" }}",
        fake.origin
    );
    repo.configure(&format!(
        "models:\n  {one}\n  two: {{ kind: openai, id: x, api_key_env: NO_KEY }}\n"
    ));
    insta::assert_snapshot!(planned(&repo, "think").refused(), @r"
    error: step `plan` of pipeline `think`: model `two` has no key: NO_KEY is not set, empty or a placeholder
    hint: set NO_KEY, or give the model `api_key_env` or `api_key_command` in your own configuration
    exit code 1
    ");
    assert!(fake.requests().is_empty());
}
