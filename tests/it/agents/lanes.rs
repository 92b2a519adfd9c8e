//! What runs in the lanes of a race: ports of their own, the files at the start of the race, and checks
//! that can test nothing.

use std::path::Path;

use serde_json::Value;
use teddy::host::sandbox::{Availability, availability};

use crate::plans::{create, execute, plan};
use crate::scripted_agent::scripted_command;
use crate::support::container::{containers, teddy_without};
use crate::support::overlay::{CHECKOUT, OVERLAY, overlays, signs};
use crate::support::{TestRepo, skipped};

/// Listens on the same ports as the other run, at the same time.
const SERVE: &str = r#"python3 - <<'END'
import os, socket, tempfile, time
servers = [socket.create_server(('127.0.0.1', port)) for port in (80, 8080)]
try:
    servers.append(socket.create_server(('::1', 8080), family=socket.AF_INET6))
except OSError:
    pass
tempfile.mkstemp(dir='SIGNS')
until = time.time() + 60
while len(os.listdir('SIGNS')) < 2:
    assert time.time() < until, 'the other run never listened'
    time.sleep(0.02)
for server in servers:
    socket.socket(server.family).connect(server.getsockname())
print('both ' + 'listen')
END"#;

/// A project with the model `one`, whose plan creates a file. Returns the directory of `signs`.
fn project() -> (TestRepo, String) {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    let (sign, _) = signs(&repo);
    let file = repo.beside("one.md");
    repo.put(file.clone(), plan("Make b", &[create("b.txt", "b\n")]));
    let signs = sign.parent().unwrap().display().to_string();
    repo.configure(&format!(
        "execute: {{ writable: ['{signs}'] }}\nmodels:\n  one: {{ kind: command, run: [cat, '{}'] }}\n",
        file.display()
    ));
    repo.done(&["new", "demo"]);
    (repo, signs)
}

fn clear(signs: &str) {
    for sign in std::fs::read_dir(signs).unwrap() {
        std::fs::remove_file(sign.unwrap().path()).unwrap();
    }
}

#[test]
fn lanes_and_sessions_listen_on_the_same_ports_at_the_same_time() {
    let (repo, signs) = project();
    let python = teddy::host::process::find("python3").is_some();
    if !python || availability() != Availability::Full || !containers(&repo) {
        return skipped("no python3 or no whole sandbox here");
    }
    let script = SERVE.replace("SIGNS", &signs);
    let race = [
        "--json", "race", "go", "--with", "one,one", "--check", &script,
    ];
    for (missing, backend) in [
        ("nothing", OVERLAY),
        ("ipv6", OVERLAY),
        ("nothing", CHECKOUT),
    ] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        let raced = teddy_without(missing, &repo, &[&race[..], &["-c", backend]].concat());
        assert_eq!(raced.code, 0, "{raced}");
        let report: Value = serde_json::from_str(&raced.stdout).unwrap();
        for lane in report["lanes"].as_array().unwrap() {
            assert_eq!(
                lane["plan"]["check"]["tail"][0], "both listen",
                "{report:#}"
            );
        }
        clear(&signs);
    }

    repo.put("../serve.md", plan("Serve", &[execute(&script)]));
    let sessions = ["demo-one", "demo-one-2"];
    std::thread::scope(|scope| {
        let run = |session| repo.teddy(&["-s", session, "execute", "../serve.md", "-y"]);
        let runs = sessions.map(|session| scope.spawn(move || run(session)));
        for run in runs {
            run.join().unwrap().check(0, &["both listen"]);
        }
    });
}

/// Notes what it sees, and waits in the first lane.
const LOOK: &str = "
cat a.txt > seen.txt; cat untracked.txt deps/lib >> seen.txt; ls >> seen.txt
if mkdir STATE/started 2> /dev/null; then
    while ! test -e STATE/go; do sleep 0.02; done
fi
sed -i s/b/b2/ b.txt; echo Done.";

/// Bug: a lane that began after the user had edited a file worked on the user's new version.
#[test]
fn a_lane_has_the_files_at_the_start_of_the_race_whatever_the_user_edits_meanwhile() {
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        look_while_the_user_edits(backend);
    }
}

fn look_while_the_user_edits(backend: &str) {
    let repo = TestRepo::new()
        .file(".gitignore", "/deps\n")
        .file("a.txt", "at the start\n")
        .file("b.txt", "1\n2\n3\nb\n")
        .file("gone.txt", "gone\n");
    repo.commit("init");
    let repo = repo
        .file("untracked.txt", "at the start\n")
        .file("deps/lib", "dependency\n");
    let state = repo.beside("state");
    std::fs::create_dir(&state).unwrap();
    let dir = repo.beside("agent");
    std::fs::create_dir(&dir).unwrap();
    let state_text = state.display().to_string();
    let agent = scripted_command(&dir, &LOOK.replace("STATE", &state_text));
    repo.configure(&format!(
        "race: {{ parallel: 1 }}\nworktree: {{ copy: [deps/lib] }}\nmodels:\n  look: {{ kind: agent, run: [{}], state: ['{state_text}'] }}\n",
        agent.display()
    ));
    repo.done(&["new", "demo"]);
    let check = "cat a.txt untracked.txt deps/lib; ls";
    let race = [
        "race",
        "go",
        "--with",
        "look,look",
        "--check",
        check,
        "-c",
        backend,
    ];
    let raced = std::thread::scope(|scope| {
        let race = scope.spawn(|| repo.json(&race, 0));
        wait_for(&state.join("started"), || race.is_finished());
        repo.write("a.txt", "edited\n");
        repo.write("b.txt", "edited\n2\n3\nb\n");
        repo.write("untracked.txt", "edited\n");
        repo.write("new.txt", "new\n");
        repo.remove("gone.txt");
        std::fs::write(state.join("go"), "").unwrap();
        race.join().unwrap()
    });

    let expected = "at the start\nat the start\ndependency\n";
    let names = "a.txt\nb.txt\ndeps\ngone.txt\n";
    for lane in raced["lanes"].as_array().unwrap() {
        let tail = lane["plan"]["check"]["tail"].as_array().unwrap();
        let lines: Vec<&str> = tail.iter().filter_map(Value::as_str).collect();
        let own = "seen.txt\nuntracked.txt";
        assert_eq!(
            lines.join("\n"),
            format!("{expected}{names}{own}"),
            "{backend}"
        );
        assert_eq!(lane["plan"]["files"], 2, "{backend}: {lane:#}");
    }
    for session in ["demo-look", "demo-look-2"] {
        repo.done(&["-s", session, "execute", "-y"]);
        let own = "seen.txt\nuntracked.txt\n";
        assert_eq!(
            repo.read("seen.txt"),
            format!("{expected}{names}{own}"),
            "{session}"
        );
        let users = ["a.txt", "untracked.txt", "new.txt"].map(|path| repo.read(path));
        assert_eq!(users, ["edited\n", "edited\n", "new\n"], "{backend}");
        assert!(!repo.path().join("gone.txt").exists(), "{backend}");
        assert_eq!(repo.read("b.txt"), "edited\n2\n3\nb2\n", "{backend}");
        repo.done(&["-s", session, "undo"]);
    }
}

fn wait_for(path: &Path, is_over: impl Fn() -> bool) {
    while !path.exists() {
        assert!(!is_over(), "`{}` was never made", path.display());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_check_that_cannot_be_run_tests_nothing() {
    let (repo, _) = project();
    let commands = ["no-such-program", "./a.txt", "exit 1"];
    let printed = commands.map(|command| {
        let race = ["race", "go", "--with", "one", "--check", command];
        repo.printed(&[&["--quiet"], &race[..]].concat())
    });
    insta::assert_snapshot!(printed.join("\n"), @"
    model  files  lines  tokens  cost  time   check              session
    one    1      +1 -0  -       - [time]  cannot test (127)  demo-one
    exit code 0

    model  files  lines  tokens  cost  time   check              session
    one    1      +1 -0  -       - [time]  cannot test (126)  demo-one-2
    exit code 0

    model  files  lines  tokens  cost  time   check   session
    one    1      +1 -0  -       - [time]  exit 1  demo-one-3
    exit code 0
    ");
}
