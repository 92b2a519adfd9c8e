//! Runs the commands of the `land` walkthrough and compares their output with the page.

use crate::plans::{edit, plan};
use crate::support::TestRepo;

const PAGE: &str = include_str!("../../../docs/walkthroughs/landing.md");

/// Requires a conventional commit message.
const HOOK: &str = "#!/bin/sh\ngrep -qE '^(feat|fix): ' \"$1\" && exit\necho 'the subject must begin with feat: or fix:'\nexit 1\n";

/// Returns the repository at the start of the page.
fn repository() -> TestRepo {
    use std::os::unix::fs::PermissionsExt as _;
    let repo = TestRepo::new()
        .file("greet.sh", "echo 'Hello!'\n")
        .file("notes.txt", "one\ntwo\nthree\n");
    repo.commit("Greet");
    let hook = repo.path().join(".git/hooks/commit-msg");
    std::fs::write(&hook, HOOK).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    repo.write(".teddy/global.context", "greet.sh\n");
    let edit = edit("greet.sh", "echo 'Hello!'", "echo \"Hello, $1!\"");
    std::fs::write(
        repo.beside("plan.md"),
        plan("Greet people by name", &[edit]),
    )
    .unwrap();
    repo
}

/// Runs a command at a terminal. Returns the screen.
pub fn run(repo: &TestRepo, command: &str) -> String {
    let teddy = std::path::Path::new(env!("CARGO_BIN_EXE_teddy"));
    let like = repo.teddy_command(&[]);
    let path = repo.command("sh").get_envs().find_map(|(name, value)| {
        (name == "PATH").then(|| value.unwrap().to_str().unwrap().to_owned())
    });
    let path = format!("{}:{}", teddy.parent().unwrap().display(), path.unwrap());
    let mut shell = repo.command("sh");
    for (name, value) in like.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell
        .current_dir(repo.path())
        .env("PATH", path)
        .args(["-c", &format!("exec 2>&1\n{command}")]);
    String::from_utf8(shell.output().unwrap().stdout).unwrap()
}

/// Replaces what differs by run.
fn plain(line: &str) -> String {
    let uuid = regex::Regex::new(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
        .unwrap();
    let id = regex::Regex::new(r"\b[0-9a-f]{7,40}\b").unwrap();
    let time = regex::Regex::new(r"\b[0-9]+\.[0-9] s\b").unwrap();
    let line = uuid.replace_all(line.trim_end(), "<uuid>");
    let size = regex::Regex::new(r"\b[0-9.]+ KiB\b").unwrap();
    let line = time.replace_all(&line, "<time>");
    let line = size.replace_all(&line, "<size>");
    id.replace_all(&line, "<id>").into_owned()
}

/// Returns the commands of a page with the shown output.
fn commands(page: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for block in page.split("```text\n").skip(1) {
        for line in block.split("\n```").next().unwrap().lines() {
            match line.strip_prefix("$ ") {
                Some(command) => found.push((command.to_owned(), Vec::new())),
                None => found.last_mut().unwrap().1.push(line.to_owned()),
            }
        }
    }
    found
}

/// Runs the commands of a page and compares their output.
pub fn check(repo: &TestRepo, page: &str) {
    let commands = commands(page);
    assert!(commands.len() > 12, "{}", commands.len());
    for (command, shown) in commands {
        let printed: Vec<String> = run(repo, &command).lines().map(plain).collect();
        let expected = match shown.split_last() {
            Some((last, shown)) if last == "..." => {
                let printed = printed.get(..shown.len()).unwrap_or(&printed);
                assert_eq!(printed, shown, "{command}");
                continue;
            }
            _ => shown,
        };
        assert_eq!(printed, expected, "{command}");
    }
}

#[test]
fn what_the_page_shows_is_what_the_commands_print() {
    check(&repository(), PAGE);
}
