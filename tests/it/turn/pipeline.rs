//! Pipelines: found by name, checked before the first call, with the output of each step in the
//! turn.

use crate::fake::{Fake, response, stream};
use crate::plans::{create, edit, plan};
use crate::support::{Output, TestRepo};

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
    repo.done(&["new", "demo"]);
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
    let out = repo.teddy(&["plan", "-m", "make b", "--pipeline", "think"]);
    out.check(
        0,
        &[
            "Step 1 of 2: analysis",
            "Asking one with about",
            "Step 2 of 2: plan",
            "two: 3,000 tokens in, 0 out, $0.0300",
        ],
    );
    repo.done(&["execute", "-y"]);
    let names = repo.git(&[
        "ls-tree",
        "-r",
        "--name-only",
        "teddy/sessions/demo",
        "steps/",
    ]);
    let steps = ["01-analysis", "02-plan"].map(|step| {
        ["input.md", "meta.yaml", "output.md"].map(|file| format!("steps/{step}/{file}"))
    });
    assert_eq!(names, steps.concat().join("\n"));
    assert_eq!(
        repo.done(&["show", "1", "steps/01-analysis/output.md"]),
        "Mind the gap."
    );
    assert!(
        repo.done(&["show", "1", "steps/02-plan/input.md"])
            .contains("Plan: Mind the gap.")
    );
    assert!(
        repo.done(&["show", "1", "steps/02-plan/meta.yaml"])
            .contains("asked: two")
    );
    let meta = repo.done(&["show", "1", "meta.yaml"]);
    assert!(
        meta.contains("pipeline: think")
            && meta.contains("tokens_in: 3000")
            && meta.contains("cost: 0.03"),
        "{meta}"
    );
}

#[test]
fn a_step_that_fails_keeps_what_ran() {
    let repo = project();
    let fake = Fake::answering(&[
        stream("Mind the gap.", "stop", (1000, 0)),
        response("401 Unauthorized", "", "{}"),
    ]);
    configure(&repo, &fake);
    repo.teddy(&["plan", "-m", "x", "--pipeline", "think"])
        .check(1, &["step `plan`: ", "does not accept the key", "hint: "]);
    let draft = |name: &str| repo.git(&["show", &format!("refs/teddy/drafts/demo:{name}")]);
    assert_eq!(draft("steps/01-analysis/output.md"), "Mind the gap.");
    assert!(draft("steps/02-plan/input.md").contains("Mind the gap."));
    let meta = draft("meta.yaml");
    assert!(
        meta.contains("failure: 'step `plan`: ") && meta.contains("spent: 0.01"),
        "{meta}"
    );
    repo.teddy(&["execute", "-y"])
        .check(1, &["no plan is waiting"]);
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
fn st14_the_limit_of_the_session_stands_before_each_step() {
    let repo = project();
    let fake = Fake::answering(&[
        stream("Long.", "stop", (400_000, 0)),
        stream(&make_b(), "stop", (1, 1)),
    ]);
    configure(&repo, &fake);
    let out = repo.teddy(&[
        "-c",
        "limits.cost=4",
        "plan",
        "-m",
        "x",
        "--pipeline",
        "think",
    ]);
    out.check(
        1,
        &[
            "step `plan`: ",
            "$4.00 is spent, and the limit is $4.00; nothing was sent",
        ],
    );
    assert_eq!(fake.requests().len(), 1);
}

#[test]
fn all_mistakes_are_said_before_anything_is_sent() {
    let repo = project();
    let fake = Fake::answering(&[]);
    configure(&repo, &fake);
    repo.write(
        ".teddy/pipelines/bad.yaml",
        "steps:\n- { name: A, prompt: x }\n- { name: b, model: nobody, prompt_file: gone.md }\n",
    );
    repo.done(&["trust", "-y"]);
    let words = [
        "pipeline `bad`",
        "`name` must be lower-case",
        "`nobody` is not a known model",
        "cannot read `gone.md`",
    ];
    repo.teddy(&["plan", "-m", "x", "--pipeline", "bad"])
        .check(1, &words);
    // Don't create a session that cannot continue.
    repo.teddy(&["start", "more", "-m", "x", "--pipeline", "bad"])
        .check(1, &words);
    repo.teddy(&["start", "more", "-m", "x", "--model", "sonet"])
        .check(1, &["`sonet` is not a known model"]);
    assert_eq!(
        repo.json(&["sessions"], 0).as_array().map(Vec::len),
        Some(1)
    );
    repo.teddy(&["plan", "-m", "x", "--pipeline", "none"])
        .check(
            1,
            &[
                "there is no pipeline `none`",
                "takes one of these: bad, think",
            ],
        );
    repo.teddy(&["plan", "-m", "x", "--pipeline", "../think"])
        .check(1, &["is not a valid pipeline name"]);
    assert!(fake.requests().is_empty());
}

#[test]
fn st15_a_pipeline_of_a_repository_takes_trust_and_the_users_own_does_not() {
    let repo = project();
    let own = repo.beside("home/config/teddy/pipelines");
    repo.reply("Think.").reply(&make_b());
    // A changed byte in a file that the pipeline uses ends the trust.
    repo.write(".teddy/pipelines/plan.md", "Plan: {{analysis}}!\n");
    repo.teddy(&["plan", "-m", "x", "--pipeline", "think"])
        .check(
            1,
            &[
                "pipeline `think` of this repository is not trusted",
                "teddy trust",
            ],
        );
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(
        own.join("think.yaml"),
        "steps: [{ name: think, prompt: Think }, { name: plan, prompt: Plan }]\n",
    )
    .unwrap();
    repo.done(&["plan", "-m", "x", "--pipeline", "think"]);
    assert_eq!(repo.json(&["status"], 0)["draft"]["title"], "Make b");
}

#[test]
fn st16_the_configured_pipeline_is_the_usual_way_and_its_recording_a_model() {
    let repo = project();
    let own = repo.beside("home/config/teddy/pipelines");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(
        own.join("two.yaml"),
        "steps: [{ name: think, prompt: Think }, { name: plan, prompt: Plan }]\n",
    )
    .unwrap();
    let wrong = plan("Wrong", &[edit("a.txt", "nine", "9")]);
    repo.reply("First.")
        .reply(&make_b())
        .reply("Second.")
        .reply(&wrong)
        .reply(&plan("Better", &[create("c.txt", "c\n")]));
    let usual = |args: &[&str]| repo.teddy(&[&["-c", "pipeline=two"], args].concat());
    usual(&["plan", "-m", "one"]).check(0, &["Step 1 of 2"]);
    usual(&["execute", "-y"]).check(0, &[]);
    // The replay continues after the answers of the steps. A correction does not run the pipeline.
    usual(&["plan", "-m", "two"]).check(3, &["Step 2 of 2"]);
    usual(&["execute", "-y"]).check(3, &["The model wrote another plan for turn 3: \"Better\""]);
    repo.done(&["execute", "-y"]);
    repo.done(&["new", "again"]);
    repo.teddy(&[
        "plan",
        "-m",
        "one",
        "--pipeline",
        "two",
        "--model",
        "replay:demo",
    ])
    .check(3, &["`b.txt` already exists"]);
    assert_eq!(
        repo.git(&["show", "refs/teddy/drafts/again:steps/01-think/output.md"]),
        "First."
    );
    assert_eq!(repo.json(&["status"], 0)["draft"]["title"], "Make b");
}

#[test]
fn a_loop_goes_through_the_pipeline_that_it_is_given() {
    let repo = project();
    let own = repo.beside("home/config/teddy/pipelines");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(
        own.join("two.yaml"),
        "steps: [{ name: think, prompt: Think }, { name: plan, prompt: Plan }]\n",
    )
    .unwrap();
    repo.reply("First.")
        .reply(&make_b())
        .reply("Second.")
        .reply(&plan("Make c", &[create("c.txt", "c\n")]));
    let out = repo.teddy(&[
        "resume",
        "--yolo",
        "-m",
        "go",
        "--max-turns",
        "2",
        "--pipeline",
        "two",
    ]);
    out.check(
        5,
        &["Step 1 of 2: think", "turn 1 executed", "turn 2 executed"],
    );
    assert_eq!(
        repo.done(&["show", "2", "steps/01-think/output.md"]),
        "Second."
    );
    repo.teddy(&["start", "more", "-m", "go", "-y", "--pipeline", "two"])
        .check(5, &["Started session more", "Step 2 of 2: plan"]);
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
    let out: Output = repo.teddy(&["plan", "-m", "x", "--pipeline", "think"]);
    out.check(
        1,
        &["step `plan` of pipeline `think`: model `two` has no key: NO_KEY is not set"],
    );
    assert!(fake.requests().is_empty());
}
