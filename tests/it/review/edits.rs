//! The user's changes in the review appear in the run, the report and the turn.

use crate::plans::{
    chat, create, edit, edit_pairs, execute, plan, prune, read, research, with_memos,
};
use crate::screen::Screen;
use crate::support::TestRepo;

const FILE: &str = "[tool]\nname = \"x\"\n\n[more]\na = 1\nb = 2\n";

/// A project whose session has this plan and files in its context.
fn project(plan: &str) -> TestRepo {
    let repo = session();
    wait_plan(&repo, plan);
    repo
}

/// A project whose session has files in its context.
fn session() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.toml", FILE)
        .file("note.txt", "seen \u{202e}desrever\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.toml"]);
    repo.done(&["context", "add", "--turn", "note.txt"]);
    repo
}

/// Makes a plan the draft.
fn wait_plan(repo: &TestRepo, plan: &str) {
    std::fs::write(repo.beside("plan.md"), plan).unwrap();
    repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
}

/// Opens the tree of the waiting plan.
fn tree(repo: &TestRepo, variables: &[(&str, &str)]) -> Screen {
    let mut screen = Screen::open_with(repo, (100, 30), (&["execute"], variables));
    screen.wait_for_prompt("(q)uit ›");
    screen.press("m");
    screen.wait_for("will run");
    screen
}

fn of_turn(repo: &TestRepo, name: &str) -> String {
    repo.workflow().artifact("@", name)
}

#[test]
fn promise_a4_r7_an_edit_changed_in_the_editor_is_what_the_file_becomes() {
    let repo = project(&plan("Name it", &[edit("a.toml", "a = 1", "a = 2")]));
    let mut screen = tree(
        &repo,
        &[("GIT_EDITOR", "sed -i -e 's/a = 2/a = 3/' -e '$a c = 4'")],
    );
    screen.press("p");
    screen.wait_for("Editing: [a.toml]");
    screen.wait_for("EDIT: a.toml  *modified");
    let shown = screen.wait_for("+c = 4");
    assert!(
        shown.contains("-a = 1") && shown.contains("+a = 3"),
        "{shown}"
    );
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    let after = "[tool]\nname = \"x\"\n\n[more]\na = 3\nb = 2\nc = 4\n";
    assert_eq!(repo.read("a.toml"), after);
    assert_eq!(
        repo.git(&["show", "teddy/sessions/demo^2:a.toml"]) + "\n",
        after
    );
    assert_eq!(
        of_turn(&repo, "plan.md"),
        std::fs::read_to_string(repo.beside("plan.md")).unwrap(),
        "the proposal stays on record"
    );
    assert!(of_turn(&repo, "approved.md").contains("a = 3\nb = 2\nc = 4"));
    let report = of_turn(&repo, "report.md");
    assert!(
        report.contains("#### `EDIT` (user modified)") && report.contains("+c = 4"),
        "{report}"
    );
    let (ran, proposed) = report
        .split_once("The user changed this action. As proposed it would have been:")
        .unwrap();
    let (_, ran) = ran.split_once("Change of the file:").unwrap();
    assert!(
        ran.contains("\n-a = 1\n+a = 3\n b = 2\n+c = 4\n") && !ran.contains("\n+a = 2"),
        "what did not run is not there as if it had: {report}"
    );
    assert!(
        proposed.contains("--- a/a.toml\n+++ b/a.toml\n") && proposed.contains("\n+a = 2\n"),
        "{report}"
    );
    assert!(
        report.contains("- **Approved By:** the user, in the review\n"),
        "{report}"
    );
    assert!(of_turn(&repo, "meta.yaml").contains("approved_by: person\n"));
}

#[test]
fn r7_a_command_is_changed_in_the_editor() {
    let repo = project(&plan("Say it", &[execute("echo theirs > out.txt")]));
    let mut screen = tree(
        &repo,
        &[(
            "GIT_EDITOR",
            "printf 'echo mine > out.txt\\necho two >> out.txt\\n' >",
        )],
    );
    screen.press("p");
    screen.wait_for("(e)dit or (c)lose");
    screen.press("e");
    screen.wait_for("› echo theirs > out.txt");
    screen.press("\x05");
    screen.wait_for("  echo two >> out.txt");
    screen.press("\r");
    screen.wait_for("*modified");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("out.txt"), "mine\ntwo\n");
    let report = of_turn(&repo, "report.md");
    assert!(
        report.contains("#### `EXECUTE` (user modified)")
            && report.contains("-echo theirs > out.txt"),
        "{report}"
    );
    assert!(of_turn(&repo, "approved.md").contains("echo mine > out.txt\necho two >> out.txt\n"));
}

#[test]
fn r7_a_query_and_a_message_are_changed_at_the_prompt() {
    let repo = session();
    std::fs::write(
        repo.beside("hits"),
        r#"[{"title": "t", "url": "http://a.example/"}]"#,
    )
    .unwrap();
    repo.configure("research: { engine: command, run: [sh, -c, 'cat ../hits'] }\n");
    wait_plan(
        &repo,
        &plan(
            "Ask",
            &[
                research(&["first query", "second query"]),
                chat("Is this right?"),
            ],
        ),
    );
    let mut screen = tree(
        &repo,
        &[("GIT_EDITOR", "printf 'my query\\n\\nsecond query\\n' >")],
    );
    screen.press("p");
    screen.wait_for("(e)dit or (c)lose");
    screen.press("e");
    screen.wait_for("› my query");
    screen.press("\r");
    screen.wait_for("RESEARCH: my query");
    screen.press("jp");
    screen.wait_for("(e)dit or (c)lose");
    screen.press("e");
    screen.wait_for("› Is this right?");
    screen.press("\x15Is it so?\r");
    screen.wait_for("CHAT_WITH_USER: Is it…  *modified");
    screen.press("a");
    screen.wait_for("▌ Is it so?\nYour answer:");
    screen.press("\x04");
    screen.end();
    let approved = of_turn(&repo, "approved.md");
    assert!(
        approved.contains("my query\n")
            && approved.contains("second query\n")
            && approved.contains("Is it so?"),
        "{approved}"
    );
    assert!(
        !approved.contains("first query") && !approved.contains("Is this right?"),
        "{approved}"
    );
    let report = of_turn(&repo, "report.md");
    assert_eq!(report.matches("(user modified)").count(), 2, "{report}");
}

#[test]
fn promise_a4_r7_a_memo_is_changed_and_the_report_has_both() {
    let repo = project(&with_memos(
        "Remember",
        "[+] Use npm. # why\n[+] Be kind.",
        &[create("b.txt", "b\n")],
    ));
    let mut screen = tree(&repo, &[]);
    screen.press("p");
    screen.wait_for_prompt("(e)dit or (c)lose ›");
    screen.press("e");
    screen.wait_for_prompt("› [+] Use npm. # why");
    screen.press("\x15[-] Use pnpm.\r");
    screen.wait_for("✗ there is no such memo: `Use pnpm.`");
    screen.press("p");
    screen.wait_for_prompt("(e)dit or (c)lose ›");
    screen.press("e");
    screen.wait_for_prompt("› [-] Use pnpm.");
    screen.press("\x15[+] Use pnpm.\r");
    screen.wait_for("[+] ADD:    Use pnpm.  *modified");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read(".teddy/memos.yaml"), "- Use pnpm.\n- Be kind.\n");
    let report = of_turn(&repo, "report.md");
    assert!(
        report.contains("- Applied: ` [+] Use pnpm. ` (user modified; proposed: ` [+] Use npm. `)"),
        "{report}"
    );
    assert!(of_turn(&repo, "approved.md").contains("[+] Use pnpm.\n[+] Be kind.\n"));
}

#[test]
fn a_resource_is_seen_before_it_is_read_or_dropped() {
    let repo = project(&plan(
        "Look",
        &[read("a.toml"), prune("note.txt"), create("b", "b\n")],
    ));
    let mut screen = tree(&repo, &[]);
    let shown = screen.wait_for("[more]");
    assert!(shown.contains("a.toml joins the context"), "{shown}");
    screen.press("j");
    let shown = screen.wait_for("note.txt leaves the context");
    assert!(shown.contains("seen \\u{202e}desrever"), "{shown}");
    screen.press("p");
    let shown = screen.wait_for("j/k");
    assert!(
        screen.is_full() && shown.contains("seen \\u{202e}desrever"),
        "{shown}"
    );
    screen.press("qq");
    screen.end();
}

#[test]
fn single_pairs_are_switched_off_and_what_needs_them_says_so() {
    let pairs = [
        ("name = \"x\"", "name = \"y\""),
        ("name = \"y\"", "name = \"z\""),
        ("b = 2", "b = 3"),
    ];
    let repo = project(&plan(
        "Pairs",
        &[
            edit_pairs("a.toml", &pairs),
            edit("a.toml", "b = 3", "b = 4"),
        ],
    ));
    let mut screen = tree(&repo, &[]);
    screen.press("lj ");
    let shown = screen.wait_for("2/3 pairs ✗");
    assert!(
        shown.contains("[✗] 2. name = \"y\""),
        "the pair above it is off: {shown}"
    );
    screen.press("a");
    screen.wait_for("cannot run: EDIT a.toml depends on what is switched off");
    screen.press("j ");
    screen.wait_for("1/3 pairs");
    screen.press("j ");
    let shown = screen.wait_for("[✗] EDIT: a.toml");
    assert!(
        shown.contains("[ ] EDIT: a.toml"),
        "an EDIT without pairs is off, and the one that needs it is marked: {shown}"
    );
    screen.press(" ");
    let shown = screen.wait_for("2 of 2 actions will run");
    assert!(shown.contains("[✓] 3. b = 2 → b = 3"), "{shown}");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("a.toml"), FILE.replace("b = 2", "b = 4"));
    let report = of_turn(&repo, "report.md");
    assert!(
        report.contains("-name = \"x\"\n+name = \"z\"\n"),
        "the report has what the pairs that did not run would have done: {report}"
    );
}

#[test]
fn a_new_file_gets_another_path_and_content_and_is_judged_again() {
    let repo = project(&plan("Make", &[create("b.txt", "theirs\n")]));
    let mut screen = tree(&repo, &[]);
    screen.press("p");
    screen.wait_for("CREATE: b.txt  *modified");
    screen.press("f");
    screen.wait_for("File path: [b.txt]");
    screen.press("a.toml\r");
    screen.wait_for("✗ CREATE a.toml:");
    screen.press("a");
    screen.wait_for("cannot run: CREATE a.toml:");
    screen.press("f");
    screen.wait_for("File path: [a.toml]");
    screen.press("c/d.txt\r");
    screen.wait_for("CREATE: c/d.txt  *modified");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("c/d.txt"), "mine\n");
    assert_eq!(
        repo.git(&[
            "diff",
            "--name-only",
            "teddy/sessions/demo^2^",
            "teddy/sessions/demo^2"
        ]),
        "c/d.txt"
    );
    let report = of_turn(&repo, "report.md");
    assert!(
        report.contains("- **File Path:** [c/d.txt](/c/d.txt)") && report.contains("+mine"),
        "{report}"
    );
}

#[test]
fn the_preview_command_opens_files_and_the_plan() {
    let repo = project(&plan("Make", &[create("b.txt", "theirs\n")]));
    let seen = repo.beside("seen");
    let script = format!(
        "#!/bin/sh\ncp \"$1\" '{}'\necho ours > \"$1\"\n",
        seen.display()
    );
    std::fs::write(repo.beside("viewer"), script).unwrap();
    std::fs::set_permissions(
        repo.beside("viewer"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    repo.configure(&format!(
        "preview_command: {}\n",
        repo.beside("viewer").display()
    ));
    let mut screen = Screen::open(&repo, (80, 24), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("r");
    screen.wait_for("(q)uit › r");
    screen.settled();
    screen.press("m");
    screen.wait_for("1 of 1 action");
    assert!(std::fs::read_to_string(&seen).unwrap().contains("# Make\n"));
    screen.press("p");
    screen.wait_for("*modified");
    assert_eq!(std::fs::read_to_string(&seen).unwrap(), "theirs\n");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("b.txt"), "ours\n");
}

#[test]
fn an_editor_that_returns_at_once_is_asked_about() {
    let repo = project(&plan("Make", &[create("b.txt", "theirs\n")]));
    // Returns immediately, as `code` without `--wait` does. The test writes the file later.
    let script = "#!/bin/sh\necho \"$1\" > \"${0%/*}/opened\"\n";
    std::fs::write(repo.beside("window"), script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(repo.beside("window"), mode).unwrap();
    let editor = repo.beside("window").display().to_string();
    let mut screen = tree(&repo, &[("VISUAL", &editor)]);
    screen.press("p");
    screen.wait_for("(y/n)");
    let opened = std::fs::read_to_string(repo.beside("opened")).unwrap();
    std::fs::write(opened.trim(), "late\n").unwrap();
    screen.press("?");
    screen.wait_for("d      drop your changes");
    screen.press("n");
    screen.wait_for("Take your time");
    screen.press("y");
    screen.wait_for("*modified");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("b.txt"), "late\n");
}

#[test]
fn r7_a_plan_edited_as_a_whole_is_shown_and_runs_as_it_is_shown() {
    let actions = [create("b.txt", "theirs\n"), execute("echo more > more.txt")];
    let repo = project(&plan("Make", &actions));
    let edit = "sed -i -e 's/^theirs/mine/' -e '/EXECUTE/,$d'";
    let plan = repo.beside("plan.md");
    let args = ["execute", plan.to_str().unwrap()];
    let mut screen = Screen::open_with(&repo, (100, 40), (&args, &[("GIT_EDITOR", edit)]));
    screen.wait_for_prompt("(q)uit ›");
    screen.press("e");
    let shown = screen.wait_for("1 action changed, 1 action switched off; (a) runs what is shown");
    let (_, shown) = shown.split_once("(q)uit › e").unwrap();
    assert!(
        shown.contains("    +mine") && !shown.contains("more.txt"),
        "{shown}"
    );
    // A removed part stays removed when the plan is opened again.
    screen.press("e");
    screen.settled();
    screen.press("d");
    screen.wait_for("+++ b/b.txt");
    screen.press("q");
    screen.wait_for("(q)uit › d");
    screen.settled();
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("b.txt"), "mine\n");
    assert!(!repo.path().join("more.txt").exists());
    let report = of_turn(&repo, "report.md");
    assert!(report.contains("#### `CREATE` (user modified)"), "{report}");
    assert!(
        report.contains("2 Total / 1 Approved / 1 Skipped"),
        "{report}"
    );
}

/// Regression: it was above a summary that fills the screen.
#[test]
fn what_is_said_about_the_editor_is_below_the_summary() {
    let lines: String = (0..60).map(|n| format!("line {n}\n")).collect();
    let repo = project(&plan("Make", &[create("b.txt", &lines)]));
    let plan = repo.beside("plan.md");
    let args = ["execute", plan.to_str().unwrap()];
    for (editor, warning) in [
        (
            "sed -i 's/^# Make/# Other/'",
            "Title, header and rationale stay",
        ),
        ("false", "`false` ended with exit status: 1"),
    ] {
        let mut screen = Screen::open_with(&repo, (100, 24), (&args, &[("GIT_EDITOR", editor)]));
        screen.wait_for_prompt("(q)uit ›");
        screen.press("e");
        loop {
            let shown = screen.settled();
            if shown.contains(warning) && shown.trim_end().ends_with("(q)uit ›") {
                break;
            }
            screen.read();
        }
        screen.press("q");
        screen.end();
    }
}

#[test]
fn a_plan_that_gets_another_action_is_refused_and_can_be_edited_again() {
    let repo = project(&plan("Make", &[create("b.txt", "theirs\n")]));
    let more = execute("echo more > more.txt")
        .replace('\n', "\\n")
        .replace('`', "\\140");
    let editor = format!("printf '\\n{more}' >>");
    let plan = repo.beside("plan.md");
    let args = ["execute", plan.to_str().unwrap()];
    let mut screen = Screen::open_with(&repo, (80, 40), (&args, &[("GIT_EDITOR", &editor)]));
    screen.wait_for_prompt("(q)uit ›");
    screen.press("e");
    screen.wait_for("not added or moved");
    screen.wait_for("(e)dit again or (c)lose");
    screen.press("c");
    screen.settled();
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("b.txt"), "theirs\n");
    assert!(!repo.path().join("more.txt").exists());
}

#[test]
fn a_command_that_was_granted_the_network_reaches_it_once_and_the_record_says_so() {
    if teddy::host::process::find("python3").is_none() {
        return crate::support::skipped("python3");
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let script = format!(
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port})); print('reached')\""
    );
    let repo = project(&plan("Connect", &[execute(&script), execute(&script)]));
    let mut screen = tree(&repo, &[]);
    screen.press("i");
    screen.wait_for("*modified");
    screen.press("a");
    assert_eq!(screen.end(), 1, "{}", screen.shown());
    assert_eq!(of_turn(&repo, "output/01.txt"), "reached\n");
    assert!(!of_turn(&repo, "output/02.txt").contains("reached\n"));
    assert!(of_turn(&repo, "meta.yaml").contains("network:\n- 1\n"));
    let report = of_turn(&repo, "report.md");
    let granted = "\n- **Network:** true\n";
    assert_eq!(report.matches(granted).count(), 1, "{report}");
    let approved = of_turn(&repo, "approved.md");
    assert_eq!(approved.matches(granted).count(), 1, "{approved}");
    let hint = "in the review, `m` and then `i` grants one command yours";
    assert!(report.contains(hint), "{report}");

    // A plan that asks for it is refused.
    let asking = execute(&script).replace("````shell", "- **Network:** true\n````shell");
    repo.write("../plan.md", plan("Connect", &[asking]));
    repo.teddy(&["execute", "../plan.md", "-y", "--no-replan"])
        .check(3, &["only the user grants a command the network"]);
}
