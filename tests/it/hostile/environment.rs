//! Which variables of the environment reach the programs that TeDDy starts.

use std::path::PathBuf;
use std::process::Stdio;

use crate::plans::{create, execute, plan, research};
use crate::support::landing::project;
use crate::support::screen::Screen;
use crate::support::{Output, TestRepo};

/// Secrets: keys of models, passwords, addresses with a password.
const SECRETS: &[(&str, &str)] = &[
    ("GEMINI_API_KEY", "hunter2"),
    ("GROQ_API_KEY", "hunter2"),
    ("MISTRAL_API_KEY", "hunter2"),
    ("OPENROUTER_API_KEY", "hunter2"),
    ("XAI_API_KEY", "hunter2"),
    ("OPENAI_API_KEY", "hunter2"),
    ("CLAUDE_CODE_OAUTH_TOKEN", "hunter2"),
    ("DB_PASS", "hunter2"),
    ("PGPASS", "hunter2"),
    ("MYSQL_PWD", "hunter2"),
    ("DATABASE_URL", "postgres://me:hunter2@host/db"),
    ("HTTPS_PROXY", "http://me:hunter2@proxy:1"),
    ("NPM_AUTH", "hunter2"),
    ("npm_config__auth", "hunter2"),
    ("CARGO_REGISTRY_TOKEN", "hunter2"),
];
/// Variables that tools need.
const TOOLS: &[(&str, &str)] = &[
    ("CARGO_HOME", "/needed"),
    ("RUSTFLAGS", "-C debuginfo=0"),
    ("GOPATH", "/needed"),
    ("VIRTUAL_ENV", "/needed"),
    ("LC_ALL", "C.UTF-8"),
    ("no_proxy", "localhost"),
];
/// Variables that open the desktop or the agent of ssh, or that no list can know.
const DESKTOP: &[(&str, &str)] = &[
    ("DISPLAY", ":7"),
    ("SSH_AUTH_SOCK", "/needed"),
    ("SOMETHING", "of the user's"),
];

fn names(table: &[(&'static str, &str)]) -> Vec<&'static str> {
    table.iter().map(|(name, _)| *name).collect()
}

fn all() -> Vec<(&'static str, &'static str)> {
    [SECRETS, TOOLS, DESKTOP].concat()
}

fn teddy(repo: &TestRepo, args: &[&str]) -> Output {
    let mut command = repo.teddy_command(args);
    command.current_dir(repo.path()).envs(all());
    Output::of(command.stdin(Stdio::null()))
}

/// Writes a script that prints its environment into a file, then runs `more`.
fn probe(repo: &TestRepo, more: &str) -> (PathBuf, PathBuf) {
    let [seen, script] = ["seen", "probe"].map(|name| repo.beside(name));
    let text = format!("#!/bin/sh\nenv > {}\n{more}\n", seen.display());
    std::fs::write(&script, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    (seen, script)
}

/// Returns which of our variables a dump of an environment has.
fn passed(dump: &str) -> Vec<&'static str> {
    let has = |name: &&str| {
        dump.lines()
            .any(|line| line.starts_with(&format!("{name}=")))
    };
    names(&all()).into_iter().filter(has).collect()
}

fn seen(path: &PathBuf) -> Vec<&'static str> {
    let dump = std::fs::read_to_string(path).unwrap();
    let _ = std::fs::remove_file(path);
    passed(&dump)
}

#[test]
fn commands_get_the_listed_variables_and_those_of_the_user() {
    let repo = project();
    let command = || plan("Show", &[execute("env")]);
    repo.configure("worktree: { setup: 'env; echo the end' }\n");
    std::fs::write(repo.beside("plan.md"), command()).unwrap();
    for sandbox in ["execute.sandbox=on", "execute.sandbox=off"] {
        let out = teddy(&repo, &["execute", "../plan.md", "-y", "-c", sandbox]);
        out.check(0, &[]);
        let (setup, _) = out.stderr.split_once("the end").unwrap_or_default();
        let output = repo.done(&["show", "@", "output/01.txt"]);
        assert_eq!(passed(&output), names(TOOLS), "{sandbox}: {output}");
        assert!(!setup.contains("hunter2"), "{sandbox}: {setup}");
    }

    repo.configure("execute: { keep_env: [DB_PASS, SOMETHING] }\n");
    teddy(&repo, &["execute", "../plan.md", "-y"]).check(0, &[]);
    let output = repo.done(&["show", "@", "output/01.txt"]);
    let expected = [&["DB_PASS"][..], &names(TOOLS)[..], &["SOMETHING"]].concat();
    assert_eq!(passed(&output), expected, "{output}");
}

#[test]
fn a_model_program_gets_its_own_key_and_no_other() {
    let repo = project();
    let (dump, script) = probe(&repo, "cat > /dev/null; echo x");
    let script = script.display();
    repo.configure(&format!(
        "models:\n  plain: {{ kind: command, run: [{script}] }}\n  keyed: {{ kind: command, run: [{script}], api_key_env: GROQ_API_KEY }}\n"
    ));
    teddy(&repo, &["plan", "-m", "x", "--model", "plain"]).check(5, &[]);
    assert_eq!(seen(&dump), names(TOOLS));
    teddy(&repo, &["plan", "-m", "x", "--model", "keyed"]).check(5, &[]);
    assert_eq!(
        seen(&dump),
        [&["GROQ_API_KEY"][..], &names(TOOLS)[..]].concat()
    );
}

#[test]
fn a_search_program_gets_its_own_key_and_no_other() {
    let repo = project();
    let (dump, script) = probe(&repo, "echo '[]'");
    let script = script.display();
    for (more, key) in [
        ("", None),
        (", api_key_env: GROQ_API_KEY", Some("GROQ_API_KEY")),
    ] {
        repo.configure(&format!(
            "research: {{ engine: command, run: [{script}]{more} }}\n"
        ));
        std::fs::write(
            repo.beside("plan.md"),
            plan("Look", &[research(&["words"])]),
        )
        .unwrap();
        teddy(&repo, &["execute", "../plan.md", "-y"]).check(0, &[]);
        let expected: Vec<_> = key.into_iter().chain(names(TOOLS)).collect();
        assert_eq!(seen(&dump), expected);
    }
}

#[test]
fn an_editor_gets_everything_but_secrets() {
    let repo = project();
    let (dump, script) = probe(&repo, "");
    repo.configure(&format!("preview_command: {}\n", script.display()));
    std::fs::write(
        repo.beside("plan.md"),
        plan("Make b", &[create("b.txt", "b\n")]),
    )
    .unwrap();
    let mut screen = Screen::open_with(&repo, (100, 40), (&["execute", "../plan.md"], &all()));
    screen.wait_for_prompt("(q)uit ›");
    screen.press("r");
    // Keys that are typed before the viewer has ended are dropped.
    for _ in 0..1000 {
        if dump.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    screen.settled();
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(seen(&dump), [names(TOOLS), names(DESKTOP)].concat());
}

#[test]
fn hooks_of_a_landing_find_the_users_whole_environment() {
    let repo = project();
    let (dump, script) = probe(&repo, "");
    let hook = repo.path().join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::copy(script, hook).unwrap();
    repo.run_plan(&plan("Make b", &[create("b.txt", "b\n")]));
    teddy(&repo, &["land", "-m", "Make b"]).check(0, &[]);
    assert_eq!(seen(&dump), names(&all()));
}
