//! Effects of actions: failures, interrupts, commands, pages, messages.

use super::*;

#[test]
fn what_comes_after_a_failure_is_skipped() {
    let mut world = TestProject::new();
    let ran = world.check(
        vec![
            create("kept", "x\n"),
            execute("exit 3"),
            create("never", "x\n"),
            read("src"),
        ],
        &[
            "Success: created, 1 line",
            "Failure: the command failed with exit code 3",
            "Skipped: skipped because an action before it failed",
            "Skipped: skipped because an action before it failed",
        ],
    );
    assert!(ran.failed && ran.interruption.is_none());
    assert_eq!(ran.outcomes[1].exit_code, Some(3));
    assert_eq!(ran.outcomes[1].output, b"exit 3");
    assert_eq!(
        (world.get("kept").is_some(), world.get("never")),
        (true, None)
    );

    assert_eq!(
        world.log,
        [
            "0 CREATE",
            "0 Success",
            "1 EXECUTE",
            "1 Failure",
            "2 Skipped",
            "3 Skipped"
        ]
    );
}

#[test]
fn a_command_that_may_fail_does_not_stop_the_plan() {
    let mut world = TestProject::new();
    let may_fail = |text: &str| {
        ActionKind::Execute(Execute {
            allow_failure: true,
            ..command(text)
        })
    };
    let ran = world.check(
        vec![may_fail("exit 1"), may_fail("sleep"), execute("true")],
        &[
            "Failure: the command failed with exit code 1",
            "Failure: the command was stopped after its time limit of 2 s",
            "Success: the command succeeded",
        ],
    );
    assert!(!ran.failed);

    assert_eq!(ran.outcomes[1].exit_code, Some(124));
}

#[test]
fn a_command_that_cannot_run_is_a_failure() {
    let mut world = TestProject::new();
    world.check(
        vec![execute("kill")],
        &["Failure: the command was killed by signal 9"],
    );
    world.check(
        vec![execute("nothing")],
        &["Failure: the command cannot be run: no temporary file"],
    );
    let run_in = |cwd: &str| {
        ActionKind::Execute(Execute {
            cwd: Some(path(cwd)),
            ..command("ls")
        })
    };

    world.check(vec![run_in("src")], &["Success: the command succeeded"]);
    world.check(
        vec![run_in("nope")],
        &["Failure: there is no directory `nope` to run in"],
    );
    let with_env = ActionKind::Execute(Execute {
        env: vec![("LD_PRELOAD".to_owned(), "x".to_owned())],
        ..command("ls")
    });

    world.check(
        vec![with_env],
        &["Failure: a plan may not set `LD_PRELOAD`"],
    );
}

#[test]
fn what_the_user_switched_off_is_skipped_and_stops_nothing() {
    let mut world = TestProject::new();
    let kinds = vec![execute("exit 1"), edit("src/a.rs", &[]), create("b", "x\n")];
    let ran = world.run(kinds, &[0]);
    assert_eq!(
        summarize(&ran),
        [
            "Skipped: skipped by the user",
            "Skipped: skipped by the user",
            "Success: created, 1 line"
        ]
    );

    assert!(!ran.failed);
}

#[test]
fn an_interrupt_ends_the_run_after_the_action() {
    let mut world = TestProject::new();
    let stop = ActionKind::Execute(Execute {
        allow_failure: true,
        ..command("stop")
    });
    let ran = world.check(
        vec![stop, create("never", "x\n")],
        &[
            "Failure: stopped by the user",
            "Skipped: skipped because the run was interrupted",
        ],
    );
    assert_eq!(ran.interruption, Some(Interruption::User));
    assert!(ran.failed);
    assert_eq!(ran.outcomes[0].exit_code, Some(130));

    let mut world = TestProject {
        stop: true,
        ..TestProject::new()
    };
    let ran = world.check(
        vec![create("never", "x\n")],
        &["Skipped: skipped because the run was interrupted"],
    );
    assert_eq!(ran.interruption, Some(Interruption::User));

    assert!(!ran.failed);
}

#[test]
fn a_read_that_succeeds_joins_the_context() {
    let mut world = TestProject::new();
    let resources = [
        "src/a.rs",
        "src",
        "https://example.com/x",
        ".teddy/demo/01/report.md",
    ];
    let ran = world.run(resources.iter().map(|r| read(r)).collect(), &[]);
    let effects: Vec<Option<Effect>> = ran.outcomes.iter().map(|o| o.effect.clone()).collect();
    let expected =
        resources.map(|r| Some(Effect::Add(Resource::parse(r).expect("a plain resource"))));

    assert_eq!(effects, expected);
    assert_eq!(
        ran.outcomes[0].detail,
        "read; it is in the context of the next turn"
    );
}

#[test]
fn a_read_that_fails_adds_nothing() {
    let mut world = TestProject::new();
    for (resource, why) in [
        ("nope", "there is no file `nope`"),
        (
            "https://bad.example.com/",
            "`https://bad.example.com/` cannot be read: the server says 403",
        ),
        (
            ".teddy/demo/07/report.md",
            "there is no artifact `.teddy/demo/07/report.md`",
        ),
    ] {
        let ran = world.check(vec![read(resource)], &[&format!("Failure: {why}")]);
        assert_eq!(ran.outcomes[0].effect, None);
    }
}

#[test]
fn a_search_succeeds_if_one_query_does() {
    let mut world = TestProject::new();
    let research = |queries: &[&str]| {
        ActionKind::Research(Research {
            queries: queries.iter().map(|q| (*q).to_owned()).collect(),
        })
    };
    let ran = world.check(
        vec![research(&["rust", "bad one", "git"])],
        &["Success: 2 of 3 queries have results; no result for `bad one`: no answer"],
    );
    let output = String::from_utf8_lossy(&ran.outcomes[0].output).into_owned();

    assert_eq!(
        output, "Query: rust\n\n- about rust\n\nQuery: git\n\n- about git\n\n",
        "what failed is said once"
    );
    world.check(
        vec![research(&["bad"])],
        &["Failure: no result for `bad`: no answer"],
    );
    world.check(
        vec![research(&["rust"])],
        &["Success: the query has results"],
    );
}

#[test]
fn what_the_plan_says_to_others_becomes_an_effect() {
    let mut world = TestProject::new();
    let resource = || Resource::parse("src/a.rs").expect("a plain resource");
    let message = || "hello".to_owned();
    let ran = world.run(
        vec![
            ActionKind::Prune(Prune {
                resource: resource(),
            }),
            ActionKind::ChatWithUser(ChatWithUser { message: message() }),
            ActionKind::Invoke(Invoke {
                agent: "Architect".to_owned(),
                resources: vec![resource()],
                message: message(),
            }),
            ActionKind::Conclude(Conclude {
                resources: vec![],
                message: message(),
            }),
        ],
        &[],
    );
    let effects: Vec<Effect> = ran.outcomes.into_iter().filter_map(|o| o.effect).collect();
    let expected = [
        Effect::Remove(resource()),
        Effect::Chat { message: message() },
        Effect::Invoke {
            agent: "Architect".to_owned(),
            resources: vec![resource()],
            message: message(),
        },
        Effect::Conclude {
            resources: vec![],
            message: message(),
        },
    ];

    assert_eq!(effects, expected);
}
