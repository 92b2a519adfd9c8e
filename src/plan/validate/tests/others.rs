//! Commands, resources, hand-overs, memos, and provisional actions after an EXECUTE.

use super::*;

#[test]
fn a_file_that_the_plan_creates_can_be_edited_and_read() {
    check(
        vec![
            create("hidden/new.rs", "a\nb\n"),
            edit("hidden/new.rs", &[("b\n", "c\n")]),
            read("hidden/new.rs"),
        ],
        "",
    );
    check(
        vec![
            edit("later.rs", &[("a\n", "b\n")]),
            create("later.rs", "a\n"),
        ],
        "10 EDIT later.rs: there is no file `later.rs` (use CREATE for a new file)",
    );
}

#[test]
fn what_a_command_may_put_right_is_judged_when_it_runs() {
    check(
        vec![
            execute("make gen"),
            create("README.md", "x\n"),
            edit("gen.rs", &[("a\n", "b\n")]),
            edit("src/a.rs", &[("not there yet\n", "b\n")]),
            read("out.txt"),
            read("https://example.com"),
        ],
        "action 2 is provisional\naction 3 is provisional\naction 4 is provisional\naction 5 is provisional",
    );
}

#[test]
fn what_no_command_can_put_right_stays_a_mistake() {
    check(
        vec![execute("make gen"), edit("hidden.rs", &[("secret\n", "b\n")])],
        "20 EDIT hidden.rs: `hidden.rs` is in no context list (READ it in this plan and edit it in the next one, when its text is before you; by hand, `teddy context add /hidden.rs` adds it)
action 2 is provisional and wrong",
    );
}

#[test]
fn p15_only_the_user_grants_a_command_the_network() {
    let granted = Execute {
        network: true,
        ..command("curl example.org")
    };
    let plan = plan(vec![ActionKind::Execute(granted)]);
    let message = "10 EXECUTE curl example.org: only the user grants a command the network, in the review (leave `Network` out, and say in the description why it is needed)";
    assert_eq!(report(&plan, &snapshot()), message);
    // The review adds it to the user's version of the plan.
    let changed = validate_changed(&plan, &snapshot()).unwrap();
    assert_eq!(changed.diagnostics, []);
}

#[test]
fn a_command_needs_text_and_a_folder() {
    check(
        vec![execute(" \n")],
        "10 EXECUTE: there is no command (put the command into the code block)",
    );
    let run_in = |cwd: &str| {
        ActionKind::Execute(Execute {
            cwd: Some(path(cwd)),
            ..command("ls")
        })
    };

    check(vec![run_in("src")], "");
    check(vec![create("new/x", "x\n"), run_in("new")], "");
    check(
        vec![run_in("nope")],
        "10 EXECUTE ls: there is no directory `nope` to run in (`cwd` is relative to the project's root)",
    );
    check(
        vec![run_in("README.md")],
        "10 EXECUTE ls: `README.md` is a file, not a directory to run in (name its directory)",
    );
    check(
        vec![run_in("link")],
        "10 EXECUTE ls: `link` is a symbolic link (run in a directory of the project)",
    );

    check(
        vec![execute("mkdir out"), run_in("out")],
        "action 2 is provisional",
    );
}

#[test]
fn variables_that_decide_what_runs_are_refused() {
    let with = |env: &[(&str, &str)]| {
        ActionKind::Execute(Execute {
            env: env
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            ..command("ls")
        })
    };
    check(
        vec![with(&[("LD_PRELOAD", "x"), ("A B", "x"), ("CI", "1"), ("CI", "2")])],
        "10 EXECUTE ls: a plan may not set `LD_PRELOAD` (it decides which programs and services a command reaches; leave it as the user has it)
10 EXECUTE ls: `A B` is not a valid variable name (use letters, digits and `_`)
10 EXECUTE ls: `CI` is set twice (keep one value)",
    );
}

#[test]
fn a_read_names_something_that_is_there() {
    check(
        vec![
            read("src"),
            read("README.md"),
            read("https://nowhere.invalid/x"),
            read(".teddy/demo/01/report.md"),
        ],
        "",
    );
    check(
        vec![read("nope.md")],
        "10 READ nope.md: there is no file `nope.md` (the project structure in the input lists what exists)",
    );
    check(
        vec![read("docs/readme.md")],
        "10 READ docs/readme.md: there is no file `docs/readme.md` (there is `README.md`)",
    );
    check(
        vec![read("link")],
        "10 READ link: `link` is a symbolic link (name the file itself)",
    );

    check(
        vec![read(".teddy/demo/09/report.md")],
        "10 READ .teddy/demo/09/report.md: there is no artifact `.teddy/demo/09/report.md` (name an executed turn and one of its files)",
    );
}

#[test]
fn a_prune_takes_from_the_turns_own_list_once() {
    check(vec![prune("src/a.rs")], "");
    check(
        vec![prune("README.md")],
        "10 PRUNE README.md: `README.md` is not in the turn's context (it comes from the session's or the global list, which the user keeps)",
    );
    check(
        vec![prune("hidden.rs")],
        "10 PRUNE hidden.rs: `hidden.rs` is not in the turn's context (leave the action out)",
    );

    check(
        vec![prune("src/a.rs"), prune("src/a.rs")],
        "20 PRUNE src/a.rs: `src/a.rs` is pruned twice (keep one PRUNE)",
    );
}

#[test]
fn a_hand_over_has_someone_to_go_to() {
    check(vec![invoke("Architect", &["README.md", "src"])], "");
    check(
        vec![invoke("Wizard", &[])],
        "10 INVOKE Wizard: there is no agent `Wizard` (the agents are `architect`, `developer`)",
    );
    check(
        vec![invoke("Poet", &[])],
        "10 INVOKE Poet: the agent `Poet` of this repository is not trusted; the user can trust it with `teddy trust` (the agents are `architect`, `developer`)",
    );
    check(
        vec![invoke("developer", &["nope.md"])],
        "10 INVOKE developer: there is no file `nope.md` (the project structure in the input lists what exists)",
    );
    check(
        vec![
            create("brief.md", "x\n"),
            invoke("developer", &["brief.md"]),
        ],
        "",
    );

    check(vec![conclude()], "");
}

#[test]
fn a_plan_hands_over_once_and_at_its_end() {
    check(vec![read("src"), conclude()], "");
    check(
        vec![invoke("developer", &[]), conclude()],
        "20 CONCLUDE done: the plan hands over twice, first at line 10 (keep one INVOKE or CONCLUDE)",
    );
    check(
        vec![
            conclude(),
            ActionKind::ChatWithUser(ChatWithUser {
                message: "hi".to_owned(),
            }),
        ],
        "10 CONCLUDE done: CONCLUDE is not the last action (put it at the end: nothing of this plan runs after it)",
    );
}

#[test]
fn memos_come_new_and_go_once() {
    let change = |line, verb, text: &str| MemoChange {
        line,
        verb,
        text: text.to_owned(),
        comment: None,
    };
    let memos = vec![
        change(1, Verb::Add, "New."),
        change(2, Verb::Add, "Use pnpm."),
        change(3, Verb::Remove, "Never was."),
        change(4, Verb::Add, "New."),
        change(5, Verb::Remove, "New."),
    ];
    assert_eq!(
        report(
            &Plan {
                memos,
                ..Plan::default()
            },
            &snapshot()
        ),
        "2 : the memo already exists: `Use pnpm.` (leave the line out)
3 : there is no such memo: `Never was.` (copy the memo that you want to remove word for word)
4 : the memo is named twice, first at line 1: `New.` (keep one line)
5 : the memo is added and removed, first at line 1: `New.` (keep only the line that you want)"
    );
}

#[test]
fn nul_is_looked_for_in_a_plan_that_a_person_changed() {
    let hint = "make binary files with EXECUTE, as with `base64 -d`";
    let variable = Execute {
        env: vec![("A".to_owned(), "\0".to_owned())],
        ..command("ls")
    };
    let kinds = vec![
        create("n", "a\0"),
        edit("src/a.rs", &[("one\n", "\0\n")]),
        execute("a\0b"),
        ActionKind::Execute(variable),
    ];
    let plan = plan(kinds);

    assert_eq!(
        validate(&plan, &snapshot())
            .expect("the snapshot can be read")
            .diagnostics,
        []
    );
    let simulation = validate_changed(&plan, &snapshot()).expect("the snapshot can be read");
    let messages: Vec<String> = simulation
        .diagnostics
        .iter()
        .map(|d| format!("{} {}: {}", d.line, d.action, d.message))
        .collect();
    assert_eq!(
        messages,
        [
            "10 CREATE n: the content has a NUL character",
            "20 EDIT src/a.rs: a pair has a NUL character",
            "30 EXECUTE a\\u{0}b: the command has a NUL character",
            "40 EXECUTE ls: a variable has a NUL character",
        ]
    );
    assert!(
        simulation
            .steps
            .iter()
            .all(|step| step.wrong && step.after.is_none())
    );

    assert!(
        simulation
            .diagnostics
            .iter()
            .all(|d| d.hint.as_deref() == Some(hint))
    );
}

#[test]
fn promise_a3_a_search_needs_an_engine() {
    let text =
        "# T\n\n## Rationale\n````\nr\n````\n\n## Action Plan\n\n### `RESEARCH`\n````\nq\n````\n";
    let (plan, _) = crate::plan::parse::parse(text);
    let judged = |search_obstacle| {
        let facts = Snapshot {
            search_obstacle,
            ..snapshot()
        };
        let simulation = validate(&plan, &facts).expect("the snapshot is in memory");
        let wrong = simulation.diagnostics.iter();
        wrong.map(|wrong| wrong.message.clone()).collect::<Vec<_>>()
    };

    assert_eq!(judged(None), Vec::<String>::new());
    assert_eq!(judged(Some("why")), ["RESEARCH cannot search: why"]);
}
