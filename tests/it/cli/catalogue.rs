//! A catalogue of errors and refusals. Each test compares the output of several commands with one
//! page of `snapshots/`, which can be read from top to bottom.
//!
//! A message states what failed, the object in backquotes, and the reason. A line `hint:` with a
//! command follows. `INSTA_UPDATE=always cargo test --test it catalogue` rewrites the pages.

mod changes;
mod command_line;
mod context;
mod files;
mod land;
mod models;
mod plans;
mod pushes;
mod remotes;
mod repositories;
mod sessions;
mod turns;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Output, TestRepo};

const PAGES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/cli/catalogue/snapshots"
);

/// Command lines and their output.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    /// Runs a command that must fail, and adds its output and the `kind` of its error in JSON. Runs
    /// it twice.
    fn refused(&mut self, repo: &TestRepo, args: &[&str]) -> &mut Page {
        self.refused_with(repo, args, &[])
    }

    fn refused_with(
        &mut self,
        repo: &TestRepo,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> &mut Page {
        let output = Output::of(&mut command(repo, args, variables));
        assert_ne!(output.code, 0, "{args:?}: {output}");
        self.add(repo, &typed(args), &output)
            .kind(repo, args, variables)
    }

    /// Runs a command once, with any exit code. For commands that change something.
    fn shown(&mut self, repo: &TestRepo, args: &[&str]) -> &mut Page {
        self.shown_with(repo, args, &[])
    }

    fn shown_with(
        &mut self,
        repo: &TestRepo,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> &mut Page {
        let output = Output::of(&mut command(repo, args, variables));
        self.add(repo, &typed(args), &output)
    }

    /// Adds the `kind` of the last error. `args` is a command that fails with the same error now,
    /// if the original would not fail again.
    fn kind(&mut self, repo: &TestRepo, args: &[&str], variables: &[(&str, &str)]) -> &mut Page {
        let args = [&["--json"], args].concat();
        let output = Output::of(&mut command(repo, &args, variables));
        let value: serde_json::Value = serde_json::from_str(&output.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {output}"));
        assert_eq!(value["error"]["exit_code"], output.code, "{args:?}");
        let kind = value["error"]["kind"].as_str();
        let kind = kind.unwrap_or_else(|| panic!("{args:?} is no error: {output}"));
        self.text.truncate(self.text.trim_end().len());
        writeln!(self.text, ", kind {kind}\n").unwrap();
        self
    }

    fn add(&mut self, repo: &TestRepo, typed: &str, output: &Output) -> &mut Page {
        let printed = format!(
            "{}{}",
            plain(repo, &output.stdout),
            plain(repo, &output.stderr)
        );
        let typed = plain(repo, typed);
        write!(
            self.text,
            "$ {typed}\n{printed}exit code {}\n\n",
            output.code
        )
        .unwrap();
        self
    }

    /// Compares the page with the stored one of this name.
    fn compare(&self, name: &str) {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(PAGES);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name, self.text.trim_end()));
    }
}

/// Without a terminal on any standard stream.
fn command(repo: &TestRepo, args: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = repo.teddy_command(args);
    command
        .current_dir(repo.path())
        .envs(variables.iter().copied())
        .stdin(Stdio::null());
    command
}

fn typed(args: &[&str]) -> String {
    let words = ["teddy"].iter().chain(args).copied();
    shlex::try_join(words).expect("no NUL is in it")
}

/// Replaces what differs by run or machine: directories, ids, processes, ports and times.
fn plain(repo: &TestRepo, text: &str) -> String {
    // Unfold lines first, because the length of the directory's name decides where they are folded.
    let text = text.replace("\n↪ ", "");
    let text = text.replace(&repo.beside("").display().to_string(), "<tmp>/");
    let rules = [
        (r"process \d+", "process <pid>"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
        (r"\b(?:[0-9a-f]{40}|[0-9a-f]{12})\b", "<id>"),
        (r" \([0-9.]+ s\)", ""),
        (r"after \d+ ms", "after <n> ms"),
        (r"/worktrees/repo-\w+/", "/worktrees/<repo>/"),
        (r"\d+(?:\.\d+)? s old", "<seconds> s old"),
        // The input contains the name of the directory and the system.
        (r"about [\d,]+ tokens", "about <n> tokens"),
        (r"\d+ objects, [\d.]+ \w+,", "<n> objects, <size>,"),
        (r"\$\d{4,}\.\d+", "$$<price>"),
        (r"- \*\*OS:\*\* .*", "- **OS:** <system>"),
        (r"- \*\*Shell:\*\* .*", "- **Shell:** <shells>"),
        (r"- \*\*Commands:\*\* .*", "- **Commands:** <sandbox>"),
    ];
    let mut text = text;
    for (pattern, with) in rules {
        let pattern = regex::Regex::new(pattern).expect("the pattern is one");
        text = pattern.replace_all(&text, with).into_owned();
    }
    text
}

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "a.txt"]);
    repo
}

/// Writes a plan next to the project, for `execute ../plan.md`.
fn write_plan(repo: &TestRepo, actions: &[String]) {
    let text = crate::plans::plan("Change", actions);
    std::fs::write(repo.beside("plan.md"), text).unwrap();
}

fn turn(repo: &TestRepo, actions: &[String]) {
    repo.run_plan(&crate::plans::plan("Change", actions));
}

fn pages() -> String {
    let mut pages: Vec<_> = Path::new(PAGES)
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "snap"))
        .collect();
    pages.sort();
    pages
        .iter()
        .map(|page| std::fs::read_to_string(page).unwrap())
        .collect()
}

#[test]
fn every_kind_of_error_is_in_the_catalogue() {
    let document =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md")).unwrap();
    let (_, table) = document
        .split_once("| Kind | Exit code | Meaning |\n")
        .unwrap();
    let listed: BTreeSet<&str> = table
        .lines()
        .skip(1)
        .map_while(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    let pages = pages();
    let met: BTreeSet<&str> = pages
        .lines()
        .filter_map(|line| Some(line.split_once(", kind ")?.1))
        .collect();
    let missing: Vec<_> = listed.difference(&met).collect();
    assert!(listed.len() > 40 && missing.is_empty(), "{missing:?}");
}

#[test]
fn every_exit_code_is_in_the_catalogue() {
    let pages = pages();
    for code in [1, 2, 3, 4, 5, 75, 127, 130] {
        let is_met = pages.lines().any(|line| {
            let rest = line.strip_prefix("exit code ");
            rest.is_some_and(|rest| rest.split(',').next() == Some(&code.to_string()))
        });
        assert!(is_met, "{code}");
    }
}

#[test]
fn an_error_has_one_form() {
    for line in pages().lines() {
        let Some(message) = line.strip_prefix("error: ") else {
            continue;
        };
        let first = message.chars().next().unwrap();
        assert!(
            !first.is_uppercase() || message.starts_with("HEAD"),
            "{line}"
        );
        assert!(
            !message.ends_with('.') || message.ends_with("..."),
            "{line}"
        );
    }
}

#[test]
fn an_error_that_programs_can_tell_apart_has_a_hint() {
    // For these kinds, the message already says what to do, or TeDDy can't know.
    let without = ["Usage", "Failed", "Interrupted"];
    for block in pages().split("\n$ ") {
        let Some((_, kind)) = block.rsplit_once(", kind ") else {
            continue;
        };
        let kind = kind.lines().next().unwrap();
        assert!(
            block.contains("\nhint: ") || without.contains(&kind),
            "no hint:\n{block}"
        );
    }
}
