//! Commands that are not about one session: `init`, `trust`, `get-prompt`, `completions`, `man`,
//! `recover`.

use crate::support::TestRepo;

#[test]
fn init_makes_what_is_missing_and_changes_nothing_that_is_there() {
    let repo = TestRepo::new();
    let made = repo.json(&["init"], 0)["made"].clone();
    assert_eq!(
        made,
        serde_json::json!([".teddy/config.yaml", ".teddy/global.context"])
    );
    repo.write(".teddy/config.yaml", "agent: architect\n");
    assert_eq!(repo.json(&["init"], 0)["made"], serde_json::json!([]));
    assert_eq!(repo.read(".teddy/config.yaml"), "agent: architect\n");
}

#[test]
fn init_names_the_configuration_that_is_read() {
    let repo = TestRepo::new();
    repo.teddy(&["init"]).check(
        0,
        &[&format!(
            "writes it to {}.",
            repo.beside("teddy.yaml").display()
        )],
    );
}

#[test]
fn init_makes_a_repository_where_there_is_none() {
    let repo = TestRepo::new();
    let folder = repo.beside("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(repo.teddy_in(&folder, &["init"]).code, 0);
    assert!(folder.join(".git/HEAD").exists() && folder.join(".teddy/config.yaml").exists());
    assert_eq!(repo.teddy_in(&folder, &["new", "x"]).code, 0);
}

#[test]
fn init_makes_nothing_where_no_project_may_be() {
    let repo = TestRepo::new();
    let home = repo.beside("home");
    std::fs::create_dir_all(&home).unwrap();
    insta::assert_snapshot!(repo.teddy_in(&home, &["init"]).shown(&repo), @"
    --- stderr
    error: `[dir]/home` is your home directory: TeDDy does not record it as a project
    hint: give the project a directory of its own
    exit code 1
    ");
    assert!(!home.join(".git").exists());
    let shown = repo
        .teddy_in(std::path::Path::new("/"), &["init"])
        .shown(&repo);
    insta::assert_snapshot!(shown, @"
    --- stderr
    error: `/` is the root of the file system: TeDDy does not record it as a project
    hint: give the project a directory of its own
    exit code 1
    ");
}

#[test]
fn the_configuration_that_init_writes_is_valid_with_every_comment_taken_away() {
    let repo = TestRepo::new();
    repo.done(&["init"]);
    let text = repo.read(".teddy/config.yaml");
    // Comments at the top, then settings.
    let (_, settings) = text.split_once("\n\n").unwrap();
    let open: Vec<&str> = settings
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .collect();
    assert!(open.len() > 8, "{open:?}");
    repo.write(".teddy/config.yaml", open.join("\n"));
    repo.done(&["trust", "-y"]);
    repo.teddy(&["status"]).check(0, &[]);
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    No session is in use here.
    --- stderr
    `teddy start '<what you want>'` starts one; `teddy sessions` lists them.
    exit code 0
    ");
}

#[test]
fn what_could_run_a_program_holds_only_after_trust_and_until_a_byte_changes() {
    let repo = TestRepo::new().file(
        ".teddy/config.yaml",
        "worktree: { setup: touch prepared }\n",
    );
    repo.workflow().new_session("demo").done();
    let ignored = "settings of this repository are ignored: worktree.setup";
    repo.teddy(&["status"]).check(0, &[ignored]);
    insta::assert_snapshot!(repo.printed(&["trust"]), @r#"
    --- .teddy/config.yaml
    worktree: { setup: touch prepared }

    --- stderr
    error: stdin is not a terminal, so TeDDy cannot ask "Trust exactly this?"
    hint: `-y` says yes
    exit code 1
    "#);
    repo.done(&["trust", "-y"]);
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session demo, turn 0, on branch main
    Ready for turn 1
    1 file changed since HEAD:
      .teddy/config.yaml
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
    assert_eq!(repo.json(&["trust"], 0)["trusted"], true);
    repo.write(".teddy/config.yaml", "worktree: { setup: touch other }\n");
    repo.teddy(&["status"]).check(0, &[ignored]);
    insta::assert_snapshot!(repo.printed(&["trust"]), @r#"
    --- trusted
    +++ config.yaml
    @@ -1 +1 @@
    -worktree: { setup: touch prepared }
    +worktree: { setup: touch other }
    --- stderr
    error: stdin is not a terminal, so TeDDy cannot ask "Trust exactly this?"
    hint: `-y` says yes
    exit code 1
    "#);
    let told = repo.json(&["trust", "-y"], 0);
    assert_eq!(
        (
            &told["trusted"],
            told["shown"]
                .as_str()
                .is_some_and(|text| text.contains("touch other"))
        ),
        (&true.into(), true)
    );
    assert_eq!(repo.json(&["trust", "--revoke"], 0)["trusted"], false);
    repo.teddy(&["status"]).check(0, &[ignored]);
}

#[test]
fn an_untrusted_repository_names_no_model() {
    let repo = TestRepo::new().file(".teddy/config.yaml", "model: \"command:touch stolen\"\n");
    repo.workflow().new_session("demo").done();
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "x"]), @"
    --- stderr
    warning: settings of this repository are ignored: model (a repository may not decide that)
    error: no model is configured
    hint: `teddy setup` sets one up, `--model` names one for this call, and `teddy plan --from <file>` takes an answer from elsewhere
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["trust", "--revoke"]), @"
    --- stderr
    warning: settings of this repository are ignored: model (a repository may not decide that)
    This repository was not trusted.
    exit code 0
    ");
    repo.done(&["trust", "-y"]);
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "x"]), @"
    --- stderr
    warning: settings of this repository are ignored: model (a repository may not decide that)
    error: no model is configured
    hint: `teddy setup` sets one up, `--model` names one for this call, and `teddy plan --from <file>` takes an answer from elsewhere
    exit code 1
    ");
}

#[test]
fn get_prompt_lists_the_agents_and_prints_one() {
    let repo = TestRepo::new();
    let names: Vec<String> = repo
        .done(&["get-prompt"])
        .lines()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "architect",
            "assistant",
            "debugger",
            "developer",
            "pathfinder",
            "prototyper"
        ]
    );
    assert!(
        repo.done(&["get-prompt", "Architect"])
            .contains("# Action Plan")
            || repo
                .done(&["get-prompt", "architect"])
                .contains("Action Plan")
    );
    insta::assert_snapshot!(repo.printed(&["get-prompt", "nobody"]), @"
    --- stderr
    error: there is no agent `nobody`; available: architect, assistant, debugger, developer, pathfinder, prototyper
    hint: `teddy get-prompt` lists the agents
    exit code 1
    ");
    assert_eq!(repo.json(&["get-prompt"], 0)[4]["name"], "pathfinder");
    let outside = repo.beside("home");
    assert_eq!(
        repo.teddy_in(&outside, &["get-prompt", "developer"]).code,
        0,
        "no repository is needed"
    );
}

#[test]
fn the_manual_comes_from_the_parser_and_has_a_page_for_each_command() {
    let repo = TestRepo::new();
    let page = repo.done(&["man"]);
    assert!(
        page.contains(".TH teddy 1")
            && page.contains("\nteddy, git\\-teddy \\- Git\\-native sessions"),
        "{page}"
    );
    repo.done(&["man", "--out", "../man/man1"]);
    let read = |name: &str| {
        std::fs::read_to_string(repo.beside("man/man1").join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    assert_eq!(
        read("git-teddy.1"),
        page,
        "git looks for this one at `git teddy --help`"
    );
    let restore = read("teddy-restore.1");
    assert!(
        restore.contains("\\fBteddy restore\\fR [OPTIONS] <TURN> [PATH]..."),
        "{restore}"
    );
    assert!(
        restore.contains("\n.nf\n  teddy restore 2\n  teddy restore 2 src/"),
        "examples stand line by line: {restore}"
    );
    assert!(restore.contains("\\-C\\fR \\fI<DIR>"), "{restore}");
    assert!(
        read("teddy-plan.1").contains("teddy plan \\(aqadd a \\-\\-version flag\\(aq"),
        "what is copied from it is what was meant"
    );
    assert!(read("teddy-change-plan.1").contains("teddy change plan"));
}

#[test]
fn init_makes_nothing_where_a_link_of_a_clone_leads() {
    let repo = TestRepo::new();
    let outside = repo.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, repo.path().join(".teddy")).unwrap();
    insta::assert_snapshot!(repo.printed(&["init"]), @"
    --- stderr
    error: cannot create `.teddy/config.yaml`: `.teddy` is a link
    exit code 1
    ");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn recover_has_nothing_to_do_where_nothing_was_interrupted() {
    let repo = TestRepo::new();
    insta::assert_snapshot!(repo.printed(&["doctor", "--fix"]), @"
    machine     ok  git [version]  commands can be sandboxed
    settings    ok
    model       1 note
      note      no model is configured: plans come from elsewhere
                fix: teddy setup
    git         ok
    worktrees   ok
    sessions    ok  there are no sessions
    agents      ok
    --- stderr
    There is nothing to recover.
    1 note.
    exit code 0
    ");
    assert_eq!(
        repo.json(&["doctor", "--fix"], 0)["recovery"],
        serde_json::json!({ "recovered": false, "put_back": [], "foreign_locks": [] })
    );
}

#[test]
fn usage_errors_exit_with_2_and_help_with_0() {
    let repo = TestRepo::new();
    for args in [
        &["restore"][..],
        &["nonsense"],
        &["undo", "0"],
        &["restore", "1", "--ours", "--theirs"],
        &["log", "--color", "pink"],
        &["change"],
    ] {
        assert_eq!(repo.teddy(args).code, 2, "{args:?}");
    }
    insta::assert_snapshot!(repo.printed(&["-c", "agent", "log"]), @"
    --- stderr
    error: `-c agent`: write `key=value`
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["-c", "replan.max=many", "status"]), @"
    --- stderr
    error: -c replan.max: must be a whole number that is not negative, not `many`
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["-c", "replan.max=[", "status"]), @"
    --- stderr
    error: -c replan.max: did not find expected node content at line 2 column 1, while parsing a flow node
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["-c", "nonsense=1", "status"]), @"
    --- stderr
    error: -c: unknown setting `nonsense`
    exit code 2
    ");
    repo.configure("replan: { max: many }\n")
        .teddy(&["status"])
        .check(1, &["teddy.yaml, line 1: `replan.max` must be"]);
    repo.configure("");
    for args in [
        &["--help"][..],
        &["execute", "--help"],
        &["--version"],
        &["help", "restore"],
    ] {
        assert_eq!(repo.teddy(args).code, 0, "{args:?}");
    }
}

#[test]
fn a_search_engine_that_is_none_is_named() {
    let repo = TestRepo::new();
    repo.configure("research: { engine: gogle }\n")
        .teddy(&["status"])
        .check(1, &["not `gogle`", "`searxng`"]);
}

#[test]
fn verbose_says_what_a_call_works_with() {
    let repo = TestRepo::new().file(".teddy/config.yaml", "agent: architect\n");
    repo.configure("model: sonnet\n");
    repo.workflow().new_session("demo").done();
    let config = format!(
        "Settings: git config, {}, .teddy/config.yaml as far as",
        repo.beside("teddy.yaml").display()
    );
    repo.teddy(&["-v", "status"])
        .check(0, &[", session demo, model sonnet. ", &config, "Took 0."]);
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session demo, turn 0, on branch main
    Ready for turn 1
    1 file changed since HEAD:
      .teddy/config.yaml
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
}

#[test]
fn quiet_says_nothing_and_colours_are_asked_for() {
    let repo = TestRepo::new();
    let out = repo.teddy(&["-q", "new", "demo"]);
    assert_eq!(
        (out.stdout.as_str(), out.stderr.as_str()),
        ("refs/teddy/sessions/demo\n", "")
    );
    assert!(!repo.done(&["log"]).contains('\u{1b}'));
    assert!(repo.done(&["--color", "always", "log"]).contains('\u{1b}'));
}
