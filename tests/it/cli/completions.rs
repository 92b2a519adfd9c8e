//! `completions`: bash loads the generated script and calls its functions.

use crate::plans::{create, plan};
use crate::support::{Output, TestRepo};

/// A project with two sessions, one of them with turns, and a model. `None` without bash.
fn project() -> Option<TestRepo> {
    teddy::host::process::find("bash")?;
    let repo = TestRepo::new().file("plan-a.md", "").file("src/x.rs", "");
    repo.commit("init");
    repo.configure("models: { sonnet: { kind: anthropic, id: x } }\n");
    repo.workflow().new_session("add-auth").done();
    repo.workflow()
        .run_plan(&plan("One\u{1b}", &[create("one.txt", "1\n")]));
    repo.workflow().new_session("other").done();
    repo.workflow().add(&["src/"]);
    Some(repo)
}

/// Runs a script in a shell. Returns stdout.
fn shell(repo: &TestRepo, (name, option): (&str, &str), script: &str) -> String {
    let mut command = repo.command(name);
    for (name, value) in repo.teddy_command(&[]).get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let out = Output::of(
        command
            .env("TEDDY", env!("CARGO_BIN_EXE_teddy"))
            .current_dir(repo.path())
            .args([option, "-c", script]),
    );
    assert_eq!((out.code, out.stderr.as_str()), (0, ""), "{out}");
    out.stdout
}

/// Runs a script in a bash that has loaded the completions. Returns stdout.
fn bash(repo: &TestRepo, script: &str) -> String {
    shell(
        repo,
        ("bash", "--norc"),
        &format!("set -eu; source <(\"$TEDDY\" completions bash); {script}"),
    )
}

/// Returns the completions of the last word.
fn offered(repo: &TestRepo, words: &[&str]) -> Vec<String> {
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let line = format!(
        "COMP_WORDS=({}); COMP_CWORD={}",
        words.join(" "),
        words.len() - 1
    );
    let said = bash(
        repo,
        &format!("COMP_TYPE=9; {line}; _teddy; printf '%s\\n' \"${{COMPREPLY[@]-}}\""),
    );
    said.lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn bash_offers_what_only_the_project_knows() {
    let Some(repo) = project() else { return };
    let check = |words: &[&str], expected: &[&str]| {
        let words = [&["teddy"], words].concat();
        assert_eq!(offered(&repo, &words), expected, "{words:?}");
    };
    check(&["swi"], &["switch"]);
    check(&["switch", ""], &["add-auth", "other"]);
    check(&["gc", "other", "a"], &["add-auth"]);
    check(&["restore", ""], &["0"]);
    check(&["-s", "add-auth", "restore", ""], &["1", "0"]);
    check(&["restore", "--session", "add-auth", ""], &["1", "0"]);
    check(
        &["-C", "src", "-s", "add-auth", "diff", "1", ""],
        &["1", "0"],
    );
    check(&["branch", ""], &["0"]);
    check(&["-s", "add-auth", "show", "1", "repo"], &["report.md"]);
    check(
        &["-s", "other", "show", "add-auth", ":", "1", "pl"],
        &["plan.md"],
    );
    check(&["show", "ad"], &["add-auth:"]);
    check(&["branch", "ot"], &["other:"]);
    check(&["-s", "add-auth", "pick", ""], &["other:"]);
    check(&["compare", "ad"], &["add-auth"]);
    check(&["compare", ""], &["0", "add-auth", "other"]);
    check(&["log", "--", "pl"], &["plan-a.md"]);
    check(&["diff", "--", "pl"], &["plan-a.md"]);
    check(&["diff", "--", "src", "pl"], &["plan-a.md"]);
    check(&["-c", "replan"], &["replan.max="]);
    check(&["new", "x", "-a", "arch"], &["architect"]);
    check(&["get-prompt", "de"], &["debugger", "developer"]);
    check(&["plan", "--model", ""], &["sonnet"]);
    check(&["execute", "pl"], &["plan-a.md"]);
    check(&["plan", "--from", "p"], &["plan-a.md"]);
    check(&["context", "rm", ""], &["src"]);
    check(&["context", "add", "src/"], &["src/x.rs"]);
    check(&["export", "s"], &["src/"]);
    check(&["export", "a"], &[]);
    check(&["export", "--html", "x", "a"], &["add-auth"]);
    check(&["undo", "--ex"], &["--exact"]);
    check(&["re"], &["resume", "retry", "record", "redo", "restore"]);
    check(&["-C", "/nowhere", "switch", "o"], &[]);
}

#[test]
fn promise_d3_bash_offers_a_listed_name_with_brackets_as_the_name_that_it_is() {
    let Some(repo) = project() else { return };
    repo.write("app/[id]/page.tsx", "x\n");
    repo.workflow().add(&["app/[id]/page.tsx"]);
    let words = ["teddy", "context", "rm", "app"];
    assert_eq!(offered(&repo, &words), ["app/\\[id\\]/page.tsx"]);
    // The shell removes the backslashes.
    repo.done(&["context", "rm", "app/[id]/page.tsx"]);
    assert_eq!(offered(&repo, &words), [""; 0]);
}

#[test]
fn bash_splits_a_word_at_a_colon_and_at_an_equals_sign_and_it_is_one_all_the_same() {
    let Some(repo) = project() else { return };
    assert_eq!(
        offered(&repo, &["teddy", "restore", "add-auth", ":", ""]),
        ["1", "0"]
    );
    assert_eq!(
        offered(&repo, &["teddy", "restore", "add-auth", ":", "1"]),
        ["1"]
    );
    assert_eq!(offered(&repo, &["teddy", "--color", "=", "n"]), ["never"]);
    let whole = "COMP_TYPE=9; COMP_WORDBREAKS=' '; COMP_WORDS=(teddy restore add-auth:1); COMP_CWORD=2; _teddy; echo \"${COMPREPLY[@]-}\"";
    assert_eq!(bash(&repo, whole), "add-auth:1\n");
}

#[test]
fn bash_completes_behind_git_as_well() {
    let Some(repo) = project() else { return };
    // Variables that git's completion sets before it calls the function.
    let ask = |words: &str, cword: usize| {
        let set = format!(
            "COMP_TYPE=9; words=(git {words}); cword={cword}; __git_cmd_idx=$((cword - 2))"
        );
        bash(
            &repo,
            &format!("{set}; _git_teddy; echo \"${{COMPREPLY[@]-}}\""),
        )
    };
    assert_eq!(ask("teddy switch a", 3), "add-auth\n");
    assert_eq!(ask("-C . teddy switch ''", 5), "add-auth other\n");
    assert_eq!(
        ask("teddy restore add-auth:1", 3),
        "1\n",
        "bash keeps what is before the colon"
    );
}

#[test]
fn fish_completes_if_it_is_installed() {
    let (Some(repo), Some(_)) = (project(), teddy::host::process::find("fish")) else {
        return;
    };
    let ask = |line: &str| {
        shell(
            &repo,
            ("fish", "--no-config"),
            &format!("$TEDDY completions fish | source; complete -C '{line}'"),
        )
    };
    assert_eq!(
        ask("teddy -s add-auth restore "),
        "1\tOne\\u{1b}\n0\tStart session add-auth\n"
    );
    assert_eq!(ask("git teddy switch a"), "add-auth\tOne\\u{1b}\n");
}

#[test]
fn the_program_may_have_a_blank_in_its_path() {
    let Some(repo) = project() else { return };
    let program = repo.beside("a b's $x/teddy");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_teddy"), &program).unwrap();
    repo.write("program", program.to_str().unwrap());
    let asked =
        "COMP_TYPE=9; COMP_WORDS=(teddy switch o); COMP_CWORD=2; _teddy; echo \"${COMPREPLY[@]-}\"";
    let load = "set -eu; source <(\"$(cat program)\" completions bash)";
    assert_eq!(
        shell(&repo, ("bash", "--norc"), &format!("{load}; {asked}")),
        "other\n"
    );
    if teddy::host::process::find("fish").is_some() {
        let ask = "set program (cat program); $program completions fish | source";
        for line in ["teddy switch o", "git teddy switch o"] {
            let said = shell(
                &repo,
                ("fish", "--no-config"),
                &format!("{ask}; complete -C '{line}'"),
            );
            assert!(said.starts_with("other"), "{line}: {said}");
        }
    }
}

#[test]
fn every_shell_gets_a_script_that_asks_the_program() {
    let repo = TestRepo::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = repo.done(&["completions", shell]);
        assert!(
            script.contains("TEDDY_COMPLETE") && script.contains(env!("CARGO_BIN_EXE_teddy")),
            "{script}"
        );
    }
    assert!(repo.done(&["completions", "zsh"]).contains("_git-teddy()"));
    assert!(
        repo.done(&["completions", "fish"])
            .contains("--command git ")
    );
}

#[test]
fn names_run_nothing_when_a_shell_puts_them_in_as_they_are() {
    let Some(repo) = project() else { return };
    repo.write("$(touch ran) x.md", "");
    repo.write("a\u{1b}[2J.md", "");
    repo.write(".teddy/prompts/$(touch ran).xml", "<title>x</title>");
    repo.done(&["trust", "-y"]);
    assert_eq!(
        offered(&repo, &["teddy", "execute", ""]),
        [
            "\\$\\(touch\\ ran\\)\\ x.md",
            "one.txt",
            "plan-a.md",
            "src/"
        ]
    );
    assert_eq!(
        offered(&repo, &["teddy", "get-prompt", ""])[0],
        "\\$\\(touch\\ ran\\)"
    );
    let mut command = repo.teddy_command(&["--", "teddy", "get-prompt", "$"]);
    let out = Output::of(
        command
            .env("TEDDY_COMPLETE", "powershell")
            .current_dir(repo.path()),
    );
    assert_eq!(out.stdout, "`$`(touch` ran`)", "{out}");
}

/// Bug: nothing was offered for such a word, and `~` was escaped.
#[test]
fn a_word_with_escapes_or_an_open_quote_goes_on() {
    let Some(repo) = project() else { return };
    repo.write("my dir/a file.txt", "");
    repo.write("my dir/it's.rs", "");
    let offered = |typed: &str| offered(&repo, &["teddy", "execute", typed]);
    assert_eq!(offered("my"), ["my\\ dir/"]);
    assert_eq!(
        offered("my\\ dir/"),
        ["my\\ dir/a\\ file.txt", "my\\ dir/it\\'s.rs"]
    );
    assert_eq!(offered("my\\ dir/a"), ["my\\ dir/a\\ file.txt"]);
    assert_eq!(offered("\"my d"), ["my dir/"]);
    assert_eq!(offered("\"my dir/"), ["my dir/a file.txt"]);

    std::fs::create_dir(repo.beside("home/proj of mine")).unwrap();
    assert_eq!(offered("~/pr"), ["~/proj\\ of\\ mine/"]);
    repo.write("~root/x.md", "");
    assert!(!offered("~").contains(&"~root/".to_owned()));
}

#[test]
fn what_is_offered_cannot_steer_the_terminal() {
    let Some(repo) = project() else { return };
    let mut command = repo.teddy_command(&["--", "teddy", "-s", "add-auth", "restore", ""]);
    let out = Output::of(
        command
            .env("TEDDY_COMPLETE", "fish")
            .current_dir(repo.path()),
    );
    assert_eq!(
        out.stdout, "1\tOne\\u{1b}\n0\tStart session add-auth\n",
        "{out}"
    );
}
