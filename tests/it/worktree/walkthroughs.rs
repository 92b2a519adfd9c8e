//! A Python and a Node project, from a turn to `replay`: every kind of run finds the project's own
//! dependencies, on the files of its turn, without any setting.

use std::process::Command;

use crate::plans::{create, edit, execute, plan};
use crate::scripted_agent::scripted_command;
use crate::support::overlay::overlays;
use crate::support::{TestRepo, skipped};

/// A project whose tests pass.
struct Walkthrough {
    repo: TestRepo,
    /// Runs the tests.
    check: &'static str,
    /// File under test, a line in it, and one with which the tests fail.
    source: &'static str,
    works: &'static str,
    fails: &'static str,
    /// What a passing test run prints.
    passed: &'static str,
}

/// Configures the models `agent`, which runs the tests, and `good` and `bad`. With `bad`, the line
/// `works` of the source becomes `fails`.
pub fn configure_models(repo: &TestRepo, check: &str, source: &str, works: &str, fails: &str) {
    let dir = repo.beside("agent");
    std::fs::create_dir(&dir).unwrap();
    let script = format!("{check} > tested.txt 2>&1 && echo Tested.");
    let agent = scripted_command(&dir, &script);
    let answer = |name: &str, text: &str| {
        let file = repo.beside(name);
        repo.put(file.clone(), text);
        let cat = serde_json::Value::from(format!("cat {}", file.display()));
        format!("{{ kind: command, run: [sh, -c, {cat}] }}")
    };
    let good = plan("Add a note", &[create("note.txt", "note\n")]);
    let bad = plan("Break it", &[edit(source, works, fails)]);
    repo.configure(&format!(
        "models:\n  agent: {{ kind: agent, run: [{}] }}\n  good: {}\n  bad: {}\n",
        agent.display(),
        answer("good.md", &good),
        answer("bad.md", &bad)
    ));
}

/// Returns whether a program runs here, also with the home directory of the test.
pub fn runs(repo: &TestRepo, program: &str, arguments: &[&str]) -> bool {
    let mut command: Command = repo.command(program);
    command.args(arguments).current_dir(repo.path());
    command.output().is_ok_and(|output| output.status.success())
}

impl Walkthrough {
    fn turn_and_replay(&self) {
        let repo = &self.repo;
        repo.done(&["new", "s"]);
        repo.done(&["context", "add", self.source]);
        repo.run_plan(&plan("Test", &[execute(self.check)]));
        let output = repo.done(&["show", "@", "output/01.txt"]);
        assert!(output.contains(self.passed), "{output}");

        // The replay has the files of the turn, not the user's newer ones.
        let text = repo.read(self.source);
        repo.write(self.source, text.replace(self.works, self.fails));
        let replayed = repo.json(&["verify", "--rerun", "1"], 0);
        assert_eq!(replayed["same"], true, "{replayed}");
        repo.write(self.source, text);
    }

    fn agent(&self) {
        let repo = &self.repo;
        configure_models(repo, self.check, self.source, self.works, self.fails);
        repo.done(&["plan", "-m", "test it", "--model", "agent"]);
        repo.done(&["execute", "-y"]);
        let tested = repo.read("tested.txt");
        assert!(tested.contains(self.passed), "{tested}");
    }

    fn race(&self) {
        let request = ["race", "go", self.source, "--with", "agent,good,bad"];
        let check = ["--check", self.check];
        let raced = self.repo.json(&[&request[..], &check].concat(), 0);
        let lanes = raced["lanes"].as_array().unwrap();
        let codes: Vec<Option<i64>> = lanes
            .iter()
            .map(|lane| lane["plan"]["check"]["exit_code"].as_i64())
            .collect();
        assert_eq!(codes, [Some(0), Some(0), Some(1)], "{raced}");
    }

    fn bisect_and_compare(&self) {
        let repo = &self.repo;
        for number in 3..=6 {
            let action = match number {
                5 => edit(self.source, self.works, self.fails),
                _ => create(&format!("{number}.txt"), "x\n"),
            };
            repo.run_plan(&plan(&format!("Step {number}"), &[action]));
        }
        let words: Vec<&str> = self.check.split(' ').collect();
        let found = repo.json(&[&["bisect", "run", "--"], &words[..]].concat(), 0);
        assert_eq!(found["culprits"][0]["turn"], 5, "{found}");

        let compared = repo.json(&["compare", "s:4", "s:5", "--check", self.check], 0);
        let code = |at: usize| compared[at]["check"]["exit_code"].as_i64();
        assert_eq!([code(0), code(1)], [Some(0), Some(1)], "{compared}");
    }

    fn walk(&self) {
        self.turn_and_replay();
        self.agent();
        self.race();
        self.bisect_and_compare();
        self.repo.done(&["verify"]);
    }
}

const PYTHON_TEST: &str = r#"import socket, threading, unittest

import calc


class Sum(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(calc.add(1, 2), 3)


class Served(unittest.TestCase):
    def test_server(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            def serve():
                with server.accept()[0] as client:
                    client.sendall(b"4")

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            with socket.create_connection(server.getsockname(), timeout=30) as client:
                self.assertEqual(client.recv(1), b"4")
            thread.join()
"#;

/// Does what `pip install -e .` does.
pub fn install(repo: &TestRepo) {
    let lib = repo.path().join(".venv/lib");
    let version = std::fs::read_dir(lib).unwrap().next().unwrap().unwrap();
    let packages = version.path().join("site-packages");
    let top = repo.path().canonicalize().unwrap();
    let source = format!("{}/src\n", top.display());
    std::fs::write(packages.join("__editable__.calc-0.1.pth"), source).unwrap();
}

#[test]
fn a_python_project_with_an_editable_install_is_tested_by_every_kind_of_run() {
    if !overlays() {
        return;
    }
    let repo = TestRepo::new()
        .file(".gitignore", ".venv/\n__pycache__/\n")
        .file("src/calc/__init__.py", "def add(a, b): return a + b\n")
        .file("tests/test_calc.py", PYTHON_TEST);
    repo.commit("init");
    if !runs(&repo, "python3", &["-m", "venv", "--without-pip", ".venv"]) {
        return skipped("no python3 with venv here");
    }
    install(&repo);
    Walkthrough {
        repo,
        check: ".venv/bin/python -B -m unittest discover -s tests",
        source: "src/calc/__init__.py",
        works: "a + b",
        fails: "a - b",
        passed: "Ran 2 tests",
    }
    .walk();
}

pub fn make_executable(repo: &TestRepo, path: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(repo.path().join(path), mode).unwrap();
}

const NODE_TEST: &str = r#"import assert from "node:assert";
import { createServer } from "node:http";
import test from "node:test";
import { add } from "../sum.mjs";

test("sum", () => assert.equal(add(1, 2), 3));

test("server", async () => {
  const server = createServer((request, response) => response.end("4"));
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const page = await fetch(`http://127.0.0.1:${server.address().port}/`);
  assert.equal(await page.text(), "4");
  await new Promise((closed) => server.close(closed));
});
"#;

#[test]
fn a_node_project_with_a_dependency_is_tested_by_every_kind_of_run() {
    if !overlays() {
        return;
    }
    let repo = TestRepo::new()
        .file(".gitignore", "node_modules/\n")
        .file("package.json", "{\"type\": \"module\"}\n")
        .file(
            "sum.mjs",
            "import { plus } from \"plus\";\nexport const add = (a, b) => plus(a, b);\n",
        )
        .file("test/sum.test.mjs", NODE_TEST);
    repo.commit("init");
    let script = "fetch && process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)";
    if !runs(&repo, "node", &["-e", script]) {
        return skipped("no node 20 here");
    }
    repo.write(
        "node_modules/plus/package.json",
        "{\"name\": \"plus\", \"version\": \"1.0.0\", \"main\": \"index.js\"}\n",
    );
    repo.write(
        "node_modules/plus/index.js",
        "exports.plus = (a, b) => a + b;\n",
    );
    // A test runner with a program of its own and a cache, as vitest.
    let runner = "#!/usr/bin/env node\n\
        const { mkdirSync, writeFileSync } = require('node:fs');\n\
        mkdirSync('node_modules/.cache', { recursive: true });\n\
        writeFileSync('node_modules/.cache/run.json', '{}');\n\
        const { spawnSync } = require('node:child_process');\n\
        const run = spawnSync(process.execPath, ['test/sum.test.mjs'], { stdio: 'inherit' });\n\
        process.exit(run.status);\n";
    repo.write("node_modules/runner/cli.js", runner);
    make_executable(&repo, "node_modules/runner/cli.js");
    std::fs::create_dir(repo.path().join("node_modules/.bin")).unwrap();
    let program = repo.path().join("node_modules/.bin/runner");
    std::os::unix::fs::symlink("../runner/cli.js", program).unwrap();
    let project = Walkthrough {
        repo,
        check: "node_modules/.bin/runner",
        source: "sum.mjs",
        works: "plus(a, b)",
        fails: "plus(a, -b)",
        passed: "pass 2",
    };
    // The Python project shows the other kinds of runs.
    match crate::WORLDS {
        true => project.walk(),
        false => project.turn_and_replay(),
    }
}
