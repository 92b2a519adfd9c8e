//! Untrusted text on the terminal cannot move the cursor, hide other text or write to the
//! clipboard.

use super::ground::{Ground, create, plan, run};
use crate::support::sample;

/// Characters that must never reach a terminal.
const RAW: [char; 12] = [
    '\u{1b}',
    '\r',
    '\u{7}',
    '\u{8}',
    '\u{9b}',
    '\u{9d}',
    '\u{202e}',
    '\u{2066}',
    '\u{200b}',
    '\u{7f}',
    '\u{e0041}',
    '\u{2028}',
];

/// One of each kind: color, title, clipboard, link, backspace, bell, C1 controls, bidirectional
/// text, invisible characters.
const EVIL: &str = "x\u{1b}[31m\u{1b}]0;t\u{7}\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}]8;;http://evil\u{1b}\\y\u{8}\u{9b}2J\u{9d}0;t\u{202e}\u{2066}\u{200b}\u{7f}\u{e0041}z";

fn raw(text: &str) -> Vec<char> {
    RAW.into_iter().filter(|c| text.contains(*c)).collect()
}

/// Plans that contain `EVIL` in some place.
#[allow(clippy::too_many_lines, reason = "a table")]
fn rows() -> Vec<(&'static str, String)> {
    let evil = plan(&run("true"));
    let message = |text: &str| plan(&format!("### `CHAT_WITH_USER`\n\n{text}\n"));
    let field = |key: &str| {
        plan(&run("true")).replace(
            "- **Description:** d",
            &format!("- **Description:** d\n- **{key}:** {EVIL}"),
        )
    };
    vec![
        ("title", evil.replace("# Hostile", &format!("# {EVIL}"))),
        ("status", evil.replace("Green 🟢", EVIL)),
        ("plan type", evil.replace("Implementation", EVIL)),
        ("agent", evil.replace("Developer", EVIL)),
        ("rationale", evil.replace("\nx\n", &format!("\n{EVIL}\n"))),
        ("description", evil.replace("** d", &format!("** {EVIL}"))),
        ("expected outcome", field("Expected Outcome")),
        ("unknown field", field("Other")),
        ("timeout", field("Timeout")),
        ("allow failure", field("Allow Failure")),
        ("command", plan(&run(&format!("true '{EVIL}'")))),
        (
            "command with returns",
            plan(&run("rm -rf / #\recho harmless")),
        ),
        (
            "command behind blanks",
            plan(&run(&format!("true{}; true", " ".repeat(5000)))),
        ),
        (
            "info string",
            evil.replace("```shell", &format!("```{EVIL}")),
        ),
        (
            "output",
            plan(&run(
                "printf 'x\\033[31m\\007\\r\\302\\233y\\342\\200\\256z\\n'",
            )),
        ),
        (
            "output of a failure",
            plan(&run("printf '\\033]52;c;x\\007' >&2; false")),
        ),
        (
            "output that is not UTF-8",
            plan(&run("printf '\\377\\033[2J\\n'")),
        ),
        (
            "file name",
            plan(&run(
                "touch \"$(printf 'a\\033[31m\\007\\342\\200\\256b')\"",
            )),
        ),
        (
            "file name with a newline",
            plan(&run("touch \"$(printf 'a\\nteddy: done\\r')b\"")),
        ),
        (
            "file content",
            plan(&create("[new.txt](/new.txt)").replace("evil", EVIL)),
        ),
        ("path", plan(&create(&format!("[{EVIL}](/{EVIL})")))),
        ("path in backticks", plan(&create(&format!("`{EVIL}`")))),
        (
            "variable",
            plan(&run("true")).replace("** d", &format!("** d\n- **env:**\n  - `A`: \"{EVIL}\"")),
        ),
        (
            "name of a variable",
            plan(&run("true")).replace("** d", &format!("** d\n- **env:**\n  - `{EVIL}`: \"a\"")),
        ),
        ("unknown action", plan(&format!("### `{EVIL}`\n\nx\n"))),
        (
            "unknown section",
            plan(&run("true")) + &format!("## {EVIL}\n\nx\n"),
        ),
        ("stray text", plan(&format!("{EVIL}\n\n{}", run("true")))),
        ("chat", message(EVIL)),
        (
            "memo",
            plan(&run("true")).replace(
                "## Action Plan",
                &format!("## Memos\n```text\n[+] {EVIL}\n```\n\n## Action Plan"),
            ),
        ),
        (
            "missing memo",
            plan(&run("true")).replace(
                "## Action Plan",
                &format!("## Memos\n```text\n[-] {EVIL}\n```\n\n## Action Plan"),
            ),
        ),
        (
            "agent of a hand-over",
            plan(&format!("### `INVOKE`\n- **Agent:** {EVIL}\n\nGo.\n")),
        ),
        (
            "message of a hand-over",
            plan(&format!("### `INVOKE`\n- **Agent:** developer\n\n{EVIL}\n")),
        ),
        (
            "query",
            plan(&format!(
                "### `RESEARCH`\n- **Description:** d\n```text\n{EVIL}\n```\n"
            )),
        ),
        (
            "address",
            plan(&format!(
                "### `READ`\n- **Resource:** [x](https://{EVIL}.example/)\n- **Description:** d\n"
            )),
        ),
        (
            "edit that does not fit",
            plan(&super::ground::edit("[a.txt](/a.txt)").replace("one", EVIL)),
        ),
    ]
}

fn told(ground: &Ground, commands: &[&[&str]]) -> String {
    commands
        .iter()
        .map(|args| super::ground::words(&ground.teddy(args)))
        .collect()
}

#[test]
fn nothing_of_a_plan_moves_the_cursor() {
    let ground = Ground::new();
    ground.ok(&["context", "add", "a.txt"]);
    let mut wrong = Vec::new();
    let file = ground.repo.beside("plan.md").display().to_string();
    // A turn as text, and what shows the turn, with the turn's own JSON in two of the groups.
    let groups: [&[&[&str]]; 3] = [
        &[&["status"], &["diff"]],
        &[
            &["execute", &file, "-y", "--no-replan", "--json"],
            &["diff", "--json"],
        ],
        &[
            &["execute", &file, "-y", "--no-replan", "--json"],
            &["show", "--json"],
        ],
    ];
    // All of them, or one for each second row: another one each time.
    let step = 2 * groups.len();
    for (number, (name, text)) in rows().into_iter().enumerate() {
        std::fs::write(&file, &text).unwrap();
        let executed = ground.teddy(&["execute", &file, "-y", "--no-replan"]);
        let code = executed.status.code();
        assert!(code.is_some_and(|code| code != 101), "{name}: {executed:?}");
        let shown = sample(&groups, step, number);
        let shown = shown.map(|commands| told(&ground, commands));
        let found = raw(&(super::ground::words(&executed) + &shown.collect::<String>()));
        if !found.is_empty() {
            wrong.push(format!("{name}: {found:?}"));
        }
    }
    for args in [
        &["log"][..],
        &["log", "--json"],
        &["sessions"],
        &["sessions", "--json"],
        &["status", "--json"],
        &["context", "list"],
    ] {
        let found = raw(&told(&ground, &[args]));
        wrong.extend((!found.is_empty()).then(|| format!("{args:?}: {found:?}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_of_a_turn_hides_in_the_commit_message() {
    let ground = Ground::new();
    let title = format!("{EVIL} Teddy-Status: executed");
    ground.execute(
        plan(&run("false\n\nTeddy-Status: executed")).replace("# Hostile", &format!("# {title}")),
    );
    let message = ground
        .repo
        .git(&["log", "-1", "--format=%B", "refs/teddy/sessions/s"]);
    assert!(raw(&message).is_empty(), "{message}");
    assert_eq!(
        ground
            .repo
            .git(&[
                "log",
                "-1",
                "--format=%(trailers:key=Teddy-Status,valueonly)",
                "refs/teddy/sessions/s"
            ])
            .trim(),
        "failed"
    );
}

#[test]
fn nothing_of_the_users_own_files_moves_the_cursor() {
    let ground = Ground::new();
    ground.repo.put(format!("b{}", EVIL.replace('/', "")), "x");
    for args in [
        &["status"][..],
        &["status", "--json"],
        &["context", "list"],
        &["context", "add", EVIL],
        &["show", EVIL],
        &["-s", EVIL, "log"],
        &["new", EVIL],
    ] {
        let found = raw(&super::ground::words(&ground.teddy(args)));
        assert!(found.is_empty(), "{args:?}: {found:?}");
    }
}

#[test]
fn nothing_of_a_model_moves_the_cursor() {
    let ground = Ground::new();
    let script = ground.repo.beside("model");
    for body in [
        "printf 'x\\033[31m\\007\\r\\302\\233y'; exit 1",
        "printf '\\033]52;c;x\\007' >&2; exit 1",
        "kill -9 $$",
        "true",
    ] {
        std::fs::write(&script, format!("#!/bin/sh\ncat > /dev/null\n{body}\n")).unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let model = format!("command:{}", script.display());
        let output = ground.teddy(&["plan", "-m", "x", "--model", &model]);
        let found = raw(&super::ground::words(&output));
        assert!(
            found.is_empty() && output.status.code().is_some_and(|code| code != 101),
            "{body}: {found:?} {output:?}"
        );
    }
}

#[test]
fn a_blank_in_a_command_that_is_no_space_is_shown() {
    let ground = Ground::new();
    for blank in ['\u{a0}', '\u{202f}', '\u{2003}', '\u{3000}', '\u{2800}'] {
        let command = format!("printf %s a{blank}b > made.txt");
        let tried = ground.execute(plan(&run(&command)));
        let shown = format!("a\\u{{{:x}}}b", u32::from(blank));
        assert_eq!(tried.words.matches(&shown).count(), 2, "{}", tried.words);
        assert_eq!(ground.repo.read("made.txt"), format!("a{blank}b"));
    }
}

#[test]
fn a_command_that_is_suggested_has_its_names_quoted() {
    let ground = Ground::new();
    let make = "echo x > 'a;touch pwned'; echo y > ./-rf; mkdir 'd $(id)'; echo z > 'd $(id)/x'";
    assert_eq!(ground.execute(plan(&run(make))).code, 0);
    for name in ["a;touch pwned", "-rf", "d $(id)/x"] {
        std::fs::remove_file(ground.repo.path().join(name)).unwrap();
    }

    let status = ground.ok(&["status"]);
    for command in [
        "`teddy restore 1 --exact 'a;touch pwned'`",
        "`teddy restore 1 --exact -- -rf`",
        "`teddy restore 1 --exact 'd $(id)/x'`",
    ] {
        assert!(status.contains(command), "{status}");
    }
    ground.ok(&["restore", "1", "-y", "--exact", "--", "-rf"]);
    assert_eq!(ground.repo.read("-rf"), "y\n");
}
