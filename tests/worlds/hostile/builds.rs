//! Common build tools work in the sandbox with the default settings. If something fails, the
//! message names the setting that allows it.

use teddy::host::sandbox::{Availability, availability};

use super::ground::{Ground, plan, run};

/// Name and content of a file.
type Text = (&'static str, &'static str);

/// A required program, a command that must succeed, and the files of its project.
const WORK: &[(&str, &str, &[Text])] = &[
    (
        "cargo",
        "cargo test --offline",
        &[
            (
                "Cargo.toml",
                "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            (
                "src/main.rs",
                "fn main() {}\n\n#[test]\nfn temporary() {\n    std::fs::write(std::env::temp_dir().join(\"x\"), \"y\").unwrap();\n}\n",
            ),
        ],
    ),
    (
        "python3",
        "python3 -m unittest discover t && test -d ~ && python3 -c 'import tempfile; tempfile.TemporaryFile()'",
        &[(
            "t/test_x.py",
            "import multiprocessing, unittest\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        with multiprocessing.Pool(2) as pool:\n            self.assertEqual(pool.map(abs, [-1]), [1])\n",
        )],
    ),
    (
        "npm",
        "npm test --offline",
        &[
            (
                "package.json",
                "{\"name\": \"x\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node --test\"}}\n",
            ),
            ("test/a.test.js", "require('node:test')('a', () => {});\n"),
        ],
    ),
    (
        "make",
        "make",
        &[
            ("Makefile", "all: out.o\nout.o: x.c\n\tcc -c -o $@ x.c\n"),
            ("x.c", "int main(void) { return 0; }\n"),
        ],
    ),
    (
        "go",
        "go build ./...",
        &[
            ("go.mod", "module x\n\ngo 1.20\n"),
            ("main.go", "package main\n\nfunc main() {}\n"),
        ],
    ),
    (
        "git",
        "git status && echo x > made && git add made && git -c user.name=a -c user.email=b commit -q -m made && git log -1",
        &[],
    ),
    (
        "git",
        "git switch -c topic && echo y > b && git add b && git commit -qm b && git tag v1 && echo z > b && git stash && git stash pop && git diff --stat && git checkout -q -f main && git branch -D topic && git gc -q && git log -1",
        &[],
    ),
    (
        "mktemp",
        "f=$(mktemp) && echo x > \"$f\" && echo x > /dev/shm/teddy-$$ && rm /dev/shm/teddy-$$",
        &[],
    ),
    (
        "python3",
        "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); assert b.recv(1) == b\"x\"'",
        &[],
    ),
    (
        "mkfifo",
        "mkfifo p && (echo x > p &) && test \"$(cat p)\" = x && rm p",
        &[],
    ),
    (
        "python3",
        "python3 -c 'import socket; socket.socket().bind((\"127.0.0.1\", 0))'",
        &[],
    ),
    (
        "python3",
        "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen(); socket.socket(socket.AF_UNIX).connect(\"s\")'",
        &[],
    ),
    ("python3", "python3 -c 'import pty; pty.fork()'", &[]),
];

/// Commands that need a setting, and the text that names it.
const HINTS: &[(&str, &str, &str)] = &[
    ("sh", "echo x > ~/.made", "execute.writable"),
    ("sh", "echo x > /tmp/teddy-made", "execute.writable"),
    (
        "python3",
        "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 5)'",
        "execute.network",
    ),
];

/// Notes which row is skipped if the program is missing.
fn is_there(program: &str) -> bool {
    let found = teddy::host::process::find(program).is_some();
    if !found {
        crate::support::skipped(&format!("there is no `{program}` here"));
    }
    found
}

/// Version managers need the real home directory to find their programs.
fn settings() -> Vec<(String, String)> {
    let home = teddy::host::env::var("HOME").unwrap_or_default();
    let place = |name: &str, below: &str| {
        let value = teddy::host::env::var(name).unwrap_or_else(|| format!("{home}/{below}"));
        (name.to_owned(), value)
    };
    vec![
        place("RUSTUP_HOME", ".rustup"),
        place("CARGO_HOME", ".cargo"),
        place("PYENV_ROOT", ".pyenv"),
    ]
}

/// Executes a command in the sandbox. Returns the exit code and both streams.
fn execute(ground: &Ground, command: &str) -> (Option<i32>, String) {
    std::fs::write(ground.repo.beside("plan.md"), plan(&run(command))).unwrap();
    let settings = settings();
    let settings: Vec<_> = settings
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let output = ground.teddy_with(&["execute", "../plan.md", "-y", "--no-replan"], &settings);
    (output.status.code(), super::ground::words(&output))
}

#[test]
fn tools_work_in_the_sandbox_without_settings() {
    if availability() != Availability::Full {
        return;
    }
    let mut wrong = Vec::new();
    for (_, command, files) in WORK.iter().filter(|(program, ..)| is_there(program)) {
        let ground = Ground::new();
        files
            .iter()
            .for_each(|(path, text)| ground.repo.write(path, text));
        let (code, words) = execute(&ground, command);
        if code != Some(0) {
            wrong.push(format!("{command}: {words}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_sandbox_forbids_says_which_setting_opens_it() {
    if availability() != Availability::Full {
        return;
    }
    let ground = Ground::new();
    let mut wrong = Vec::new();
    for (_, command, setting) in HINTS.iter().filter(|(program, ..)| is_there(program)) {
        let (code, words) = execute(&ground, command);
        let report = ground.ok(&["show"]);
        if code != Some(1) || !words.contains(setting) || !report.contains(setting) {
            wrong.push(format!("{command}: {words}"));
        }
    }
    let (_, words) = execute(&ground, "echo broken; exit 3");
    if words.contains("execute.") {
        wrong.push(format!("a failure that is not the sandbox's: {words}"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
