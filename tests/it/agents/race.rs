//! `race`: sends one request to several models, each in its own session and worktree.

use std::time::{Duration, Instant};

use crate::fake::{Act, Fake, stream};
use crate::plans::{create, edit, plan, replace};
use crate::screen::Screen;
use crate::scripted_agent::scripted_agent;
use crate::support::{Output, PATIENCE, TestRepo};

/// Returns the configuration of a model that runs a script.
fn model(name: &str, script: &str) -> String {
    let script = serde_json::Value::from(script);
    format!("  {name}: {{ kind: command, run: [sh, -c, {script}] }}\n")
}

/// A project with the models `one` and `two`, whose plans create a file each.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.put(
        repo.beside("one.md"),
        plan("Make b", &[create("b.txt", "b\n")]),
    );
    repo.put(
        repo.beside("two.md"),
        plan(
            "Change a",
            &[edit("a.txt", "one", "two"), create("c.txt", "1\n2\n")],
        ),
    );
    let cat = |name: &str| format!("cat {}", repo.beside(name).display());
    repo.configure(&format!(
        "models:\n{}{}{}",
        model("one", &cat("one.md")),
        model("two", &cat("two.md")),
        model("broken", "echo no credit >&2; exit 9"),
    ));
    repo
}

#[test]
fn damage_to_files_is_named_for_each_plan() {
    let repo = project();
    repo.write("Cargo.lock", "one\n");
    repo.put(
        repo.beside("one.md"),
        plan("Change the lock", &[edit("Cargo.lock", "one", "two")]),
    );
    repo.done(&["new", "demo"]);
    let args = [
        "race",
        "improve it",
        "Cargo.lock",
        "a.txt",
        "--with",
        "one,two",
    ];
    let reply = repo.json(&args, 0);
    let damage = |at: usize| reply["lanes"][at]["plan"]["damage"].clone();
    assert_eq!(
        damage(0),
        serde_json::json!([
            { "path": "Cargo.lock", "kind": "generated", "text": "a tool generates this file" }
        ])
    );
    assert_eq!(damage(1), serde_json::Value::Null);
}

#[test]
fn t26_a_lane_from_another_users_draft_has_its_context_and_this_users_turns() {
    let repo = project();
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "a.txt"]);
    std::fs::remove_dir_all(repo.path().join(".git/teddy/own-drafts")).unwrap();
    repo.done(&["race", "improve it", "--with", "one,two"]);
    let id = repo.git(&["rev-parse", "teddy/sessions/demo"]);
    for lane in ["demo-one", "demo-two"] {
        let record = std::fs::read_to_string(repo.path().join(".git/teddy/tips").join(lane));
        assert_eq!(record.unwrap(), format!("{id} foreign-context\n"));
    }
}

#[test]
fn a_lane_of_a_long_name_ends_in_its_model() {
    let repo = project();
    let session = "count-words-right-also-with-several-spaces-and-lines";
    repo.done(&["new", session]);
    let race = repo.json(&["race", "improve it", "a.txt", "--with", "one,two"], 0);
    for (at, model) in ["one", "two"].into_iter().enumerate() {
        assert_eq!(race["lanes"][at]["session"], format!("{session}-{model}"));
    }
}

#[test]
fn each_model_plans_in_a_session_of_its_own_and_nothing_reaches_the_files() {
    let repo = project();
    repo.write("a.txt", "one\n");
    repo.write("draft.txt", "not committed\n");
    repo.done(&["new", "demo"]);
    let told = repo.json(&["race", "improve it", "a.txt", "--with", "one,two"], 0);
    let lanes = told["lanes"].as_array().unwrap();
    let of = |at: usize, field: &str| lanes[at]["plan"][field].clone();
    assert_eq!(
        (lanes[0]["session"].as_str(), lanes[1]["session"].as_str()),
        (Some("demo-one"), Some("demo-two"))
    );
    assert_eq!(
        (
            of(0, "files"),
            of(0, "added"),
            of(1, "files"),
            of(1, "added"),
            of(1, "removed")
        ),
        (1.into(), 1.into(), 2.into(), 3.into(), 1.into())
    );
    assert_eq!(
        (repo.read("a.txt"), repo.path().join("b.txt").exists()),
        ("one\n".into(), false)
    );

    // Both got the same snapshot and message.
    let input = |session: &str| {
        let text = repo.git(&["show", &format!("refs/teddy/drafts/{session}:input.md")]);
        text.replace(session, "SESSION")
    };
    assert_eq!(input("demo-one"), input("demo-two"));
    repo.done(&["--session", "demo-two", "execute", "-y"]);
    assert_eq!(repo.read("a.txt"), "two\n");
    assert_eq!(repo.read("draft.txt"), "not committed\n");
    repo.done(&["verify"]);
}

#[test]
fn a_check_runs_on_what_each_of_them_made_and_is_kept_with_the_plan() {
    let repo = project();
    repo.done(&["new", "demo"]);
    let told = repo.json(
        &[
            "race",
            "improve it",
            "a.txt",
            "--with",
            "one,two",
            "--check",
            "grep -q two a.txt",
        ],
        0,
    );
    let code = |at: usize| told["lanes"][at]["plan"]["check"]["exit_code"].clone();
    assert_eq!((code(0), code(1)), (1.into(), 0.into()));
    let kept = repo.git(&["show", "refs/teddy/drafts/demo-two:check.yaml"]);
    assert!(kept.contains("exit_code: 0"), "{kept}");
    assert_eq!(repo.read("a.txt"), "one\n");
}

#[test]
fn commands_of_a_plan_that_nobody_looked_at_do_not_run_for_a_check() {
    let repo = project();
    let text = plan(
        "Run",
        &[
            crate::plans::execute("touch ran.txt"),
            create("b.txt", "b\n"),
        ],
    );
    repo.put(repo.beside("one.md"), text);
    repo.done(&["new", "demo"]);
    let told = repo.json(
        &[
            "race",
            "x",
            "--with",
            "one",
            "--check",
            "test -e b.txt && ! test -e ran.txt",
        ],
        0,
    );
    let plan = &told["lanes"][0]["plan"];
    assert_eq!(
        (plan["commands"].clone(), plan["check"]["exit_code"].clone()),
        (1.into(), 0.into())
    );
}

#[test]
fn a_model_that_fails_leaves_the_others_alone() {
    let repo = project();
    repo.done(&["new", "demo"]);
    let told = repo.json(&["race", "x", "--with", "broken,one"], 0);
    let error = told["lanes"][0]["error"].as_str().unwrap();
    assert!(error.contains("no credit"), "{error}");
    assert_eq!(told["lanes"][1]["plan"]["title"], "Make b");
    repo.teddy(&["race", "x", "--with", "broken"])
        .check(1, &["no model made a plan", "no credit"]);
}

/// Bug: half of the work of an agent that refused looked like the whole.
#[test]
fn an_agent_that_stopped_early_is_named_and_not_approved_unseen() {
    let repo = project();
    let dir = repo.beside("agent");
    std::fs::create_dir_all(&dir).unwrap();
    let agent = scripted_agent(&dir, "echo half > half.txt; message 'No.'; stop=refusal");
    let models = format!("acp:{},one", agent.display());
    repo.done(&["new", "demo"]);
    let race = ["race", "x", "a.txt", "--with", &models];
    let stopped = "the agent stopped early: refusal; the plan can be a part of the work";
    repo.teddy(&race).check(0, &[stopped]);

    repo.done(&["switch", "demo"]);
    let reply = repo.json(&[&race[..], &["--pick", "1+2"]].concat(), 0);
    let plan = |at: usize| &reply["lanes"][at]["plan"];
    assert_eq!(plan(0)["stopped"], "refusal");
    assert_eq!(plan(1)["stopped"], serde_json::Value::Null);
    let lane = reply["lanes"][0]["session"].as_str().unwrap();
    for session in [lane, reply["picked"].as_str().unwrap()] {
        let out = repo.teddy(&["--session", session, "execute", "-y"]);
        assert!(out.code == 5 && out.stderr.contains(stopped), "{out}");
    }
    assert!(!repo.path().join("half.txt").exists());
}

#[test]
fn a_model_that_is_none_is_said_before_anything_is_made() {
    let repo = project();
    repo.done(&["new", "demo"]);
    repo.teddy(&["race", "x", "--with", "one,nonsense"])
        .check(1, &["`nonsense` is not a known model"]);
    repo.teddy(&["race", "x", "--with", "one,,two"])
        .check(2, &["error: `--with` has an empty name"]);
    assert_eq!(
        repo.git(&["for-each-ref", "refs/teddy/sessions", "--format=%(refname)"]),
        "refs/teddy/sessions/demo"
    );
}

#[test]
fn a_model_named_twice_has_two_sessions_and_races_do_not_mix() {
    let repo = project();
    repo.done(&["new", "demo"]);
    let told = repo.json(&["race", "x", "--with", "one,one"], 0);
    let again = repo.json(&["race", "x", "--with", "one"], 0);
    let names: Vec<_> = [&told["lanes"][0], &told["lanes"][1], &again["lanes"][0]]
        .iter()
        .map(|lane| lane["session"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["demo-one", "demo-one-2", "demo-one-3"]);
}

#[test]
fn a_model_of_a_race_has_its_key() {
    let repo = project();
    let script = format!(
        "test \"$MY_KEY\" = secret && cat {}",
        repo.beside("one.md").display()
    );
    let script = serde_json::Value::from(script);
    repo.configure(&format!(
        "models:\n  keyed: {{ kind: command, run: [sh, -c, {script}], api_key_env: MY_KEY }}\n"
    ));
    repo.done(&["new", "demo"]);
    let mut command = repo.teddy_command(&["--json", "race", "x", "--with", "keyed"]);
    let out = Output::of(command.current_dir(repo.path()).env("MY_KEY", "secret"));
    out.check(0, &["Make b"]);
}

#[test]
fn a_judge_compares_without_names_and_is_kept_with_each_plan() {
    let repo = project();
    let seen = repo.beside("seen.md");
    let judge = model(
        "judge",
        &format!("cat > {}; echo 'A is better.'", seen.display()),
    );
    let cat = |name: &str| format!("cat {}", repo.beside(name).display());
    repo.configure(&format!(
        "models:\n{}{}{judge}",
        model("one", &cat("one.md")),
        model("two", &cat("two.md"))
    ));
    repo.done(&["new", "demo"]);
    let told = repo.json(
        &[
            "race",
            "improve it",
            "a.txt",
            "--with",
            "one,two",
            "--judge",
            "judge",
        ],
        0,
    );
    assert_eq!(told["verdict"]["text"], "A is better.\n");
    let asked = std::fs::read_to_string(&seen).unwrap();
    for words in ["improve it", "# Plan A", "# Plan B", "Make b", "Change a"] {
        assert!(asked.contains(words), "{words}: {asked}");
    }
    assert!(!asked.contains("demo-one"), "{asked}");
    for session in ["demo-one", "demo-two"] {
        let kept = repo.git(&[
            "show",
            &format!("refs/teddy/drafts/{session}:comparison.md"),
        ]);
        assert!(
            kept.contains("A is better.") && kept.contains("- B: two"),
            "{kept}"
        );
    }
}

/// A race with a judge whose answer costs a dollar.
fn judged_race(repo: &TestRepo, fake: &Fake) -> std::process::Command {
    let one = format!("cat {}", repo.beside("one.md").display());
    repo.configure(&format!(
        "models:\n{}  judge: {{ kind: openai, id: gpt-5, base_url: \"{}/v1\", api_key_env: FAKE_KEY, price: {{ input: 1, output: 0 }} }}\n",
        model("one", &one),
        fake.origin
    ));
    let args = ["race", "x", "--with", "one,one", "--judge", "judge"];
    let mut command = repo.teddy_command(&args);
    command.current_dir(repo.path()).env("FAKE_KEY", "secret");
    command
}

/// Bug: the session got the cost of the judge in a draft that counted as the user's own.
#[test]
fn the_cost_of_a_judge_does_not_adopt_a_waiting_plan() {
    let repo = project();
    repo.done(&["new", "demo"]);
    let theirs = plan("Theirs", &[create("theirs.txt", "x\n")]);
    repo.workflow().plan_from("go", &theirs).done();
    std::fs::remove_dir_all(repo.path().join(".git/teddy/own-drafts")).unwrap();

    let fake = Fake::answering(&[stream("A is better.", "stop", (1_000_000, 0))]);
    let out = Output::of(&mut judged_race(&repo, &fake));
    let uncounted = "what the judge cost is not counted: the plan waiting in session `demo` is not recorded as yours";
    out.check(0, &["A is better.", uncounted]);
    repo.teddy(&["-s", "demo", "execute", "-y"])
        .check(1, &["is not recorded as yours"]);
}

/// Bug: the plan was lost.
#[test]
fn a_plan_that_is_made_while_the_judge_works_waits_afterwards() {
    let repo = project();
    repo.done(&["new", "demo"]);
    let answer = stream("A is better.", "stop", (1_000_000, 0));
    let fake = Fake::start(vec![vec![Act::Drip(answer, Duration::from_millis(10))]]);
    let mut race = judged_race(&repo, &fake);
    let child = race.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while fake.requests().is_empty() && begin.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
    }

    let mine = plan("Mine", &[create("mine.txt", "x\n")]);
    let workflow = || repo.workflow().session("demo");
    workflow().plan_from("mine", &mine).done();
    let out = child.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.contains("A is better."), "{out}");
    assert_eq!(workflow().status()["draft"]["title"], "Mine");
    let meta = repo.git(&["show", "refs/teddy/drafts/demo:meta.yaml"]);
    assert!(meta.contains("spent: 1.0"), "{meta}");
}

/// Regression: only plans counted, so all lanes ran.
#[test]
fn what_a_lane_without_a_plan_used_counts_for_the_race() {
    let repo = project();
    let fake = Fake::answering(&[1, 2, 3].map(|_| stream("", "length", (300_000, 0))));
    repo.configure(&format!(
        "models: {{ m: {{ kind: openai, id: x, base_url: \"{}/v1\", price: {{ input: 10, output: 10 }} }} }}\nrace: {{ parallel: 1 }}\n",
        fake.origin,
    ));
    repo.done(&["new", "demo"]);
    let told = repo.json(&["race", "x", "--with", "m,m,m"], 1);
    assert_eq!(told["lanes"][2]["error"], "it did not begin");
    assert_eq!(fake.requests().len(), 2);
}

/// Regression: a comparison that was cut was shown as the whole.
#[test]
fn a_comparison_that_is_cut_is_none_and_counts() {
    let repo = project();
    let fake = Fake::answering(&[stream("A is b", "length", (1000, 0))]);
    let cat = |name: &str| format!("cat {}", repo.beside(name).display());
    repo.configure(&format!(
        "models:\n{}{}  judge: {{ kind: openai, id: x, base_url: \"{}/v1\", price: {{ input: 10, output: 10 }} }}\n",
        model("one", &cat("one.md")),
        model("two", &cat("two.md")),
        fake.origin,
    ));
    repo.done(&["new", "demo"]);
    let race = [
        "race", "x", "a.txt", "--with", "one,two", "--judge", "judge",
    ];
    let told = repo.json(&race, 0);
    assert_eq!(told["verdict"], serde_json::Value::Null);
    let expected = "the answer was cut at the limit of tokens";
    assert_eq!(told["judge_error"], expected);
    let meta = repo.git(&["show", "refs/teddy/drafts/demo:meta.yaml"]);
    assert!(meta.contains("spent: 0.01"), "{meta}");
}

#[test]
fn lanes_run_beside_each_other_as_many_as_the_setting_says() {
    let repo = project();
    let log = repo.beside("log");
    let (log, one) = (log.display(), repo.beside("one.md"));
    // Ends only when three have begun.
    let waits = format!(
        "echo begin >> {log}; until [ $(grep -c begin {log}) = 3 ]; do sleep 0.02; done; cat {}",
        one.display()
    );
    let takes_time = format!(
        "echo begin >> {log}; sleep 0.1; cat {}; echo end >> {log}",
        one.display()
    );
    repo.configure(&format!(
        "race: {{ parallel: 3 }}\nmodels:\n{}{}",
        model("waits", &waits),
        model("slow", &takes_time)
    ));
    repo.done(&["new", "demo"]);
    repo.json(&["race", "x", "--with", "waits,waits,waits"], 0);

    std::fs::remove_file(repo.beside("log")).unwrap();
    let alone = ["-c", "race.parallel=1", "race", "x", "--with"];
    repo.json(&[&alone[..], &["slow,slow,slow"]].concat(), 0);
    let log = std::fs::read_to_string(repo.beside("log")).unwrap();
    assert_eq!(log, "begin\nend\n".repeat(3));
}

/// Presses ctrl-c when it is time, and returns what the command prints.
fn interrupted(repo: &TestRepo, args: &[&str], is_time: &dyn Fn() -> bool) -> serde_json::Value {
    let mut command = repo.teddy_command(&[&["--json"], args].concat());
    command
        .current_dir(repo.path())
        .stdout(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let begin = Instant::now();
    while !is_time() && begin.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
    }
    let id = child.id();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(id as i32).unwrap(),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Bug: the plans and the results of their checks were not shown.
#[test]
fn a_judge_that_fails_or_is_stopped_takes_nothing_from_the_race() {
    let repo = project();
    repo.done(&["new", "demo"]);
    let race = ["race", "x", "a.txt", "--with", "one,two", "--judge"];
    let told = repo.json(&[&race[..], &["broken", "--pick", "2"]].concat(), 0);
    let error = told["judge_error"].as_str().unwrap();
    assert!(error.contains("no credit"), "{error}");
    let picked = (&told["lanes"][0]["plan"]["title"], &told["picked"]);
    assert_eq!(picked, (&"Make b".into(), &"demo-two".into()));
    repo.done(&["switch", "demo"]);
    repo.teddy(&[&race[..], &["broken"]].concat()).check(
        0,
        &["demo-two-2", "the judge gave no verdict: ", "no credit"],
    );

    let mark = repo.beside("judging");
    let stuck = format!("touch {}; exec sleep 600", mark.display());
    let cat = |name: &str| format!("cat {}", repo.beside(name).display());
    repo.configure(&format!(
        "models:\n{}{}{}",
        model("one", &cat("one.md")),
        model("two", &cat("two.md")),
        model("stuck", &stuck)
    ));
    let told = interrupted(&repo, &[&race[..], &["stuck"]].concat(), &|| mark.exists());
    assert_eq!(told["lanes"][1]["plan"]["title"], "Change a", "{told}");
    assert_eq!(told["stopped"], "you stopped the race");
}

#[test]
fn who_stops_a_race_keeps_what_is_done_and_leaves_no_process() {
    let repo = project();
    let mark = repo.beside("pid");
    let stuck = format!("echo $$ > {}; exec sleep 600", mark.display());
    let cat = format!("cat {}", repo.beside("one.md").display());
    repo.configure(&format!(
        "models:\n{}{}",
        model("one", &cat),
        model("stuck", &stuck)
    ));
    repo.done(&["new", "demo"]);
    let drafted = || {
        let draft = "refs/teddy/drafts/demo-one";
        let found = repo.git(&["for-each-ref", draft, "--format=%(objectname)"]);
        let files = ["ls-tree", "--name-only", draft];
        !found.is_empty() && repo.git(&files).contains("plan.md") && mark.exists()
    };
    let told = interrupted(&repo, &["race", "x", "--with", "one,stuck"], &drafted);
    assert_eq!(told["lanes"][0]["plan"]["title"], "Make b");
    assert!(
        told["lanes"][1]["plan"].is_null() && !told["stopped"].is_null(),
        "{told}"
    );
    let pid: i32 = std::fs::read_to_string(&mark)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let alive = rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid).unwrap());
    assert!(alive.is_err(), "the model lives on");
}

#[test]
fn at_a_terminal_one_is_chosen_reviewed_and_the_others_are_dropped() {
    let repo = project();
    repo.done(&["new", "demo"]);
    // Bug: with `-s`, the plan of that session was reviewed.
    let race = ["-s", "demo", "race", "x", "a.txt", "--with", "one,two"];
    let mut screen = Screen::open(&repo, (100, 40), &race);
    screen.wait_for("Review the plan of which model?");
    screen.press("2");
    screen.wait_for("Session demo-two is in use now");
    screen.wait_for("Change a");
    screen.press("a");
    screen.wait_for("Drop the plans of the others");
    screen.press("y");
    assert_eq!(screen.end(), 0);
    assert_eq!(repo.read("a.txt"), "two\n");
    let sessions = repo.git(&[
        "for-each-ref",
        "refs/teddy/sessions",
        "--format=%(refname:lstrip=3)",
    ]);
    assert_eq!(sessions, "demo\ndemo-two");
}

/// Bug: its turn was deleted for good.
#[test]
fn a_lane_that_ran_meanwhile_stays_and_a_dropped_one_leaves_a_bundle() {
    let repo = project();
    repo.done(&["new", "demo"]);
    let race = ["race", "x", "a.txt", "--with", "one,two,one"];
    let mut screen = Screen::open(&repo, (100, 40), &race);
    screen.wait_for("Review the plan of which model?");
    screen.press("2");
    screen.wait_for("Change a");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("a");
    screen.wait_for("Drop the plans of the others (demo-one, demo-one-2)?");
    repo.done(&["--session", "demo-one", "execute", "-y"]);
    screen.settled();
    screen.press("y");
    screen.wait_for("restores session demo-one-2");
    assert_eq!(screen.end(), 0);
    let sessions = repo.git(&[
        "for-each-ref",
        "refs/teddy/sessions",
        "--format=%(refname:lstrip=3)",
    ]);
    assert_eq!(sessions, "demo\ndemo-one\ndemo-two");
    let bundles = crate::support::names(&repo.path().join(".git/teddy/archive"));
    assert_eq!(bundles.len(), 1, "{bundles:?}");
}

/// Bug: the other plans were to be dropped, although none had run.
#[test]
fn without_a_turn_no_plan_is_dropped() {
    let repo = project();
    repo.done(&["new", "demo"]);
    let race = ["race", "x", "a.txt", "--with", "one,two"];
    let mut screen = Screen::open(&repo, (100, 40), &race);
    screen.wait_for("Review the plan of which model?");
    screen.press("2");
    screen.wait_for("Change a");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("q");
    screen.end();
    assert!(!screen.written().contains("Drop the plans"));
}

/// A project with the models `one`, `two` and `three`, which change one file each: `one` and `two` at
/// different places, `three` at that of `one`.
fn shared_file() -> TestRepo {
    let repo = project();
    repo.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let put = |name: &str, text: String| repo.put(repo.beside(name), text);
    put(
        "one.md",
        plan(
            "Change the top",
            &[
                edit("a.txt", "2", "two"),
                crate::plans::execute("echo one > ran.txt"),
            ],
        ),
    );
    put(
        "two.md",
        plan(
            "Change the end",
            &[edit("a.txt", "8", "eight"), create("b.txt", "b\n")],
        ),
    );
    put(
        "three.md",
        plan("Rewrite it", &[edit("a.txt", "2\n3", "II\nIII")]),
    );
    let cat = |name: &str| format!("cat {}", repo.beside(name).display());
    repo.configure(&format!(
        "models:\n{}{}{}",
        model("one", &cat("one.md")),
        model("two", &cat("two.md")),
        model("three", &cat("three.md")),
    ));
    repo.done(&["new", "demo"]);
    repo
}

/// Bug: the only session was not the only one any more once the lanes were there.
#[test]
fn plans_are_combined_in_the_only_session_although_it_is_not_in_use() {
    let repo = shared_file();
    repo.commit("numbers");
    let other = repo.beside("other");
    repo.git(&["worktree", "add", "-q", other.to_str().unwrap()]);
    let args = ["race", "x", "a.txt", "--with", "one,two", "--pick", "1+2"];
    let out = repo.teddy_in(&other, &args);
    out.check(0, &["Session demo-one-and-two is in use now."]);
}

#[test]
fn two_plans_that_change_no_line_in_common_become_one_turn() {
    let repo = shared_file();
    let args = ["race", "x", "a.txt", "--with", "one,two", "--pick", "1+2"];
    let reply = repo.json(&args, 0);
    assert_eq!(reply["picked"], "demo-one-and-two");
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let text = repo.done(&["show", "draft", "plan.md"]);
    for part in [
        "# Change the top, and Change the end\n",
        "`one` (session demo-one) and `two` (session demo-two) wrote in a race",
        "echo one > ran.txt",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }

    repo.teddy(&["execute", "-y"])
        .check(0, &["turn 1 executed"]);
    assert_eq!(repo.read("a.txt"), "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n");
    assert_eq!(
        (repo.read("b.txt"), repo.read("ran.txt")),
        ("b\n".into(), "one\n".into())
    );
    let turns = repo.done(&["log"]);
    assert_eq!(
        turns.matches("executed").count() + turns.matches('✓').count(),
        1,
        "{turns}"
    );
    repo.done(&["verify"]);
}

#[test]
fn plans_that_change_an_encoding_are_not_combined_and_the_file_is_named() {
    let repo = project();
    repo.write("latin.txt", b"caf\xe9\n");
    let overwrite = replace("latin.txt", "café\n");
    repo.put(repo.beside("one.md"), plan("Change latin", &[overwrite]));
    repo.done(&["new", "demo"]);
    let args = [
        "race",
        "x",
        "a.txt",
        "latin.txt",
        "--with",
        "one,two",
        "--pick",
        "1+2",
    ];
    repo.teddy(&args).check(
        1,
        &["cannot be combined: one of them changes the encoding, mode or binary content of latin.txt"],
    );
}

#[test]
fn plans_that_change_the_same_lines_are_not_combined_and_the_place_is_named() {
    let repo = shared_file();
    let race = |with: &str, pick: &str| {
        repo.teddy(&["race", "x", "a.txt", "--with", with, "--pick", pick])
    };
    race("one,three", "1+2").check(
        1,
        &[
            "the plans of `one` (session demo-one) and `three` (session demo-three) cannot be combined: \
             both change a.txt, lines 2 to 3",
            "`teddy --session demo-one execute` reviews one of them",
        ],
    );
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let sessions = repo.git(&[
        "for-each-ref",
        "refs/teddy/sessions",
        "--format=%(refname:lstrip=3)",
    ]);
    assert_eq!(sessions, "demo\ndemo-one\ndemo-three");

    race("one,three", "1+3").check(2, &["`--pick 3` is out of range: `--with` names 2 models"]);
    for pick in ["0", "1+1", "a+b", "1+2+3", ""] {
        race("one,three", pick).check(2, &["write it as `2`, or as `1+2` for two of them"]);
    }
    // Bug: the lanes and the error were two values.
    let args = ["race", "x", "a.txt", "--with", "one,three", "--pick", "1+2"];
    let both = repo.json(&args, 1);
    assert_eq!(both["lanes"].as_array().map(Vec::len), Some(2));
    assert_eq!(both["error"]["exit_code"], 1);
    race("one,three", "2").check(0, &["Next: `teddy execute`"]);
    repo.teddy(&["execute", "-y"]).check(0, &[]);
    assert_eq!(repo.read("a.txt"), "1\nII\nIII\n4\n5\n6\n7\n8\n9\n");
}

#[test]
fn at_a_terminal_two_plans_are_reviewed_together() {
    let repo = shared_file();
    let args = ["race", "x", "a.txt", "--with", "one,two,three"];
    let mut screen = Screen::open(&repo, (110, 45), &args);
    screen.wait_for("(t)wo together");
    screen.press("t");
    screen.wait_for("The first of the two?");
    screen.press("1");
    screen.wait_for("And the second?");
    screen.press("3");
    screen.wait_for("a.txt, lines 2 to 3");
    screen.settled();
    screen.press("t");
    screen.settled();
    screen.press("1");
    screen.settled();
    screen.press("2");
    screen.wait_for("Session demo-one-and-two is in use now");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("a");
    screen.wait_for("Drop the plans of the others (demo-one, demo-two, demo-three)?");
    screen.settled();
    screen.press("y");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("a.txt"), "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n");
}
